"use strict";
(() => {
  const folded = document.querySelector(".toc-narrow details");
  folded?.addEventListener("click", (event) => {
    if (event.target.closest("a")) folded.open = false;
  });

  // The contents beside the page show where the reader is.
  const links = new Map([...document.querySelectorAll(".toc-wide a")].map((link) => [link.hash.slice(1), link]));
  const targets = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const side = document.querySelector(".toc-wide");
  let current = null;

  function follow() {
    const passed = targets.filter((one) => one.getBoundingClientRect().top < innerHeight / 3);
    const link = passed.length ? links.get(passed.at(-1).id) : null;
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
