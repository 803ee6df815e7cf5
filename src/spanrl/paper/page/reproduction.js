"use strict";
(() => {
  const folded = document.querySelector(".toc-narrow details");
  folded?.addEventListener("click", (event) => {
    if (event.target.closest("a")) folded.open = false;
  });

  const tools = document.getElementById("all-claims");
  if (tools) {
    tools.hidden = false;
    tools.addEventListener("click", (event) => {
      const asked = event.target.closest("button")?.dataset.do;
      if (asked) for (const one of tools.closest("section").querySelectorAll("details.claim")) one.open = asked === "open";
    });
  }

  // A link to something folded unfolds it.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target?.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    target?.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // Paper cannot be opened: all numbers are printed, and folded again as they were.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...opened, ...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });

  // The contents beside the page show where the reader is.
  const links = new Map([...document.querySelectorAll(".toc-wide a")].map((link) => [link.hash.slice(1), link]));
  const targets = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const side = document.querySelector(".toc-wide");
  let current = null;

  function follow() {
    const top = (one) => one.getBoundingClientRect().top;
    const passed = targets.filter((one) => top(one) < 24);  // what a link leads to stops 16 below the edge
    const asked = passed.find((one) => `#${one.id}` === location.hash && top(one) === top(passed.at(-1)));  // one of two side by side
    const link = passed.length ? links.get((asked ?? passed.at(-1)).id) : null;
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "location");
    current = link;
    if (!link || !side.offsetParent) return;
    const [box, room] = [link.getBoundingClientRect(), side.getBoundingClientRect()];
    if (box.top < room.top || box.bottom > room.bottom) side.scrollTop += box.top - room.top - room.height / 3;
  }

  let isAsked = false;
  addEventListener("scroll", () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => { isAsked = false; follow(); });
  }, { passive: true });
  follow();
})();
