"use strict";
(() => {
  const figure = document.getElementById("knight");
  if (!figure) return;
  const frames = JSON.parse(document.getElementById("knight-data").textContent);
  const find = (selector) => figure.querySelector(selector);
  const pieces = { knight: find("#knight-piece-hero"), dragon: find("#knight-piece-dragon") };
  const [slider, status, playButton] = [find(".knight-slider"), find(".knight-status"), find("[data-do=play]")];
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const STEP = 750; // milliseconds a step, and a little longer where something happens
  const PAUSE = 1800;
  let place = 0;
  let timer = 0;
  let isTouched = false; // once the reader has used a control, nothing starts by itself

  const signed = (value) => (value > 0 ? `+${value}` : String(value).replace("-", "\u2212"));
  const isPlaying = () => timer !== 0;
  const isLast = () => place === frames.length - 1;

  function sentence(frame) {
    return frame.step ? `The knight ${frame.event}.` : `A new game: the knight ${frame.event}.`;
  }

  function count(frame) {
    return `Game ${frame.game} of ${frame.games} \u00b7 step ${frame.step} of ${frame.steps}`;
  }

  function show(next) {
    const later = frames[Math.max(next, place)];
    // between two games, and across several steps, the pieces do not slide: they are just there
    figure.classList.toggle("knight-jump", Math.abs(next - place) !== 1 || later.step === 0);
    place = next;
    const frame = frames[place];
    for (const [name, piece] of Object.entries(pieces)) {
      piece.style.transform = `translate(${frame[name][0]}px, ${frame[name][1]}px)`;
    }
    find(".knight-count").textContent = count(frame);
    find(".knight-event").textContent = sentence(frame);
    find("[data-number=reward]").textContent = frame.step ? signed(frame.reward) : "\u2013";
    find("[data-number=total]").textContent = signed(frame.total);
    find("[data-number=carries]").textContent = frame.carries;
    figure.querySelectorAll(".knight-story li").forEach((item, i) => {
      if (i + 1 === frame.leg) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", `${count(frame)}: ${sentence(frame)}`);
    figure.dataset.carries = frame.carries;
  }

  function tell() {
    const label = isPlaying() ? "Pause" : isLast() ? "Play again" : "Play";
    playButton.setAttribute("aria-pressed", String(isPlaying()));
    playButton.setAttribute("aria-label", label);
    playButton.querySelector("span").textContent = label;
    status.setAttribute("aria-live", isPlaying() ? "off" : "polite"); // a running animation is not read out
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    tell();
  }

  function wait() {
    const { reward, event } = frames[place];
    const isMoment = reward > 0 || /collects|buys|rescues|sets out/.test(event);
    timer = setTimeout(advance, isMoment ? PAUSE : STEP);
  }

  function advance() {
    show(place + 1);
    if (isLast()) pause();
    else wait();
  }

  function play() {
    if (isLast()) show(0);
    wait();
    tell();
  }

  function go(next) {
    isTouched = true;
    pause();
    show(Math.min(Math.max(next, 0), frames.length - 1));
    tell();
  }

  playButton.addEventListener("click", () => {
    isTouched = true;
    if (isPlaying()) pause();
    else play();
  });
  find("[data-do=back]").addEventListener("click", () => go(place - 1));
  find("[data-do=forward]").addEventListener("click", () => go(place + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  window.addEventListener("beforeprint", pause);

  find(".knight-show").hidden = false;
  show(0);
  tell();

  new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) pause();
      else if (!isTouched && !calm.matches && !isPlaying() && !isLast()) play();
    },
    { threshold: 0.6 },
  ).observe(find(".knight-board"));
})();
