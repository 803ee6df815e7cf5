"use strict";
(() => {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const darkMode = matchMedia("(prefers-color-scheme: dark)");
  const DASHES = ["solid", "9px,3px", "2px,3px", "9px,3px,2px,3px", "16px,4px", "16px,4px,2px,4px", "5px,5px"];
  const DARK_COLOURS = ["#5aa9e6", "#ff8f4a", "#3ecf9f", "#e08acb", "#9bd1f5", "#e6b84d", "#c9ced6", "#b39ff0"];
  const LIGHT = { ink: "#1b1f24", soft: "#57606a", line: "#e4e7eb", paper: "#ffffff", colours: report.colours };
  const DARK = { ink: "#e6e9ee", soft: "#9aa5b1", line: "#2b323c", paper: "#13161b", colours: DARK_COLOURS };
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const PRINT_WIDTH = 680; // fits a page of A4 or Letter between its margins
  const LEGEND_ROW = 19; // what plotly gives an entry at our font size
  const DOUBLE_CLICK = 300; // milliseconds, as in plotly
  let printing = false;

  const theme = () => (darkMode.matches && !printing ? DARK : LIGHT);
  const isNumber = (value) => typeof value === "number";
  const isPositive = (value) => isNumber(value) && value > 0;
  // plotly reads a little HTML in its texts, formulas between dollars and %{templates}: names must come through as they are
  const literal = (text) => text.replace(/[&<>$%]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  // in the middle: names of one family differ at their ends
  const shortened = (text) => (text.length > 30 ? `${text.slice(0, 15)}…${text.slice(-14)}` : text);
  const colour = (agent) => theme().colours[agent % theme().colours.length];
  const dash = (agent) => DASHES[Math.floor(agent / report.colours.length) % DASHES.length];
  const translucent = (hex) => hex + (theme() === DARK ? "33" : "26");

  function written(value) {
    if (!isNumber(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(4);
    return value.toLocaleString("en", size >= 1e4 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 5 });
  }

  class Chart {
    constructor(figure, chapter) {
      this.figure = figure;
      this.chapter = chapter;
      this.box = figure.querySelector(".chart");
      this.state = { quantity: chapter.quantities[0].key }; // and x, y once the reader has chosen a scale
      this.bands = true;
      this.shown = new Set(chapter.series.slice(0, chapter.first).map((one) => one.agent));
      this.last = { agent: null, time: -Infinity };
      this.drawn = false;
      figure.querySelectorAll("button[data-set]").forEach((button) => {
        button.addEventListener("click", () => this.choose(button.dataset.set, button.dataset.value));
      });
      figure.querySelectorAll("button[data-show]").forEach((button) => {
        button.addEventListener("click", () => this.show(button.dataset.show));
      });
      figure.querySelector("input").addEventListener("change", (event) => {
        this.bands = event.target.checked;
        this.draw();
      });
    }

    choose(key, value) {
      this.state[key] = value;
      this.figure.querySelectorAll("button[data-set]").forEach((button) => {
        const now = button.dataset.set === "quantity" ? this.state.quantity : this.scale(button.dataset.set);
        button.setAttribute("aria-pressed", String(button.dataset.value === now));
      });
      this.draw();
    }

    /** The scale of an axis: what the reader chose, else what suits the quantity. */
    scale(axis) {
      return this.state[axis] ?? this.quantity[axis];
    }

    show(which) {
      const count = { all: Infinity, none: 0, best: this.chapter.first }[which];
      this.shown = new Set(this.chapter.series.slice(0, count).map((one) => one.agent));
      this.draw();
    }

    /** Switch an agent on or off; the second click of a double click leaves it alone, or brings all back where it was alone. */
    click(agent, time) {
      const isSecond = this.last.agent === agent && time - this.last.time < DOUBLE_CLICK;
      this.last = { agent, time: isSecond ? -Infinity : time };
      if (isSecond) this.shown = this.shown.size ? new Set([agent]) : this.everyone;
      else if (!this.shown.delete(agent)) this.shown.add(agent);
      this.draw();
    }

    get everyone() {
      return new Set(this.chapter.series.map((one) => one.agent));
    }

    get quantity() {
      return this.chapter.quantities.find((one) => one.key === this.state.quantity);
    }

    /** The agents of the legend; paper cannot switch one on, so there the legend has the visible ones alone. */
    get listed() {
      return this.chapter.series.filter((one) => !printing || this.shown.has(one.agent));
    }

    get visible() {
      return this.chapter.series.filter((one) => this.shown.has(one.agent));
    }

    get isNarrow() {
      return this.width < 700;
    }

    get width() {
      return printing ? PRINT_WIDTH : this.figure.clientWidth;
    }

    /** The smallest positive number in sight: where a band on a logarithmic axis ends below. */
    get floor() {
      const values = this.visible.flatMap((one) => {
        const { mean, low } = one.values[this.state.quantity];
        return mean.concat(low || []).filter(isPositive);
      });
      return values.reduce((a, b) => Math.min(a, b), Infinity);
    }

    band(one, floor) {
      const { low, high } = one.values[this.state.quantity];
      if (!this.bands || !low || !this.shown.has(one.agent)) return null;
      const isLog = this.scale("y") === "log";
      const kept = one.t.map((_, i) => i).filter((i) => isNumber(low[i]) && isNumber(high[i]) && (!isLog || high[i] > floor));
      const bottom = kept.map((i) => (isLog ? Math.max(low[i], floor) : low[i]));
      const times = kept.map((i) => one.t[i]);
      return {
        x: times.concat([...times].reverse()),
        y: kept.map((i) => high[i]).concat(bottom.reverse()),
        type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: translucent(colour(one.agent)),
        hoverinfo: "skip", showlegend: false, name: "", meta: { agent: one.agent, isBand: true },
      };
    }

    line(one) {
      const { mean, low, high } = one.values[this.state.quantity];
      const label = report.agents[one.agent];
      const range = (i) => (low ? `95\u00a0%: [${written(low[i])}, ${written(high[i])}]` : "one run: no interval");
      return {
        x: one.t,
        y: this.scale("y") === "log" ? mean.map((value) => (isPositive(value) ? value : null)) : mean,
        customdata: one.t.map((t, i) => [t.toLocaleString("en"), written(mean[i]), range(i)]),
        type: "scatter", mode: "lines", line: { color: colour(one.agent), width: 2, dash: dash(one.agent), simplify: false },
        name: literal(shortened(label)),
        meta: { agent: one.agent, label: literal(label) },
        visible: this.shown.has(one.agent) ? true : "legendonly",
        hovertemplate: "<b>%{meta.label}</b><br>t = %{customdata[0]}<br>mean %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
      };
    }

    traces() {
      const floor = this.floor;
      const bands = this.chapter.series.map((one) => this.band(one, floor)).filter(Boolean);
      return bands.concat(this.listed.map((one) => this.line(one)));
    }

    axis(name, title) {
      const { soft, line } = theme();
      const isLog = this.scale(name) === "log";
      return {
        title: { text: literal(title), standoff: 12 }, type: this.scale(name), automargin: true,
        gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: soft }, exponentformat: "power", minexponent: 4,
        separatethousands: true, rangemode: isLog ? "normal" : "tozero", nticks: isLog ? undefined : this.isNarrow ? 5 : 9,
        dtick: isLog && this.decades(name) > 2 ? 1 : undefined,
      };
    }

    /** How many powers of ten the data span: with three or more, ticks at the powers alone. */
    decades(name) {
      const values = this.visible.flatMap((one) => (name === "x" ? one.t : one.values[this.state.quantity].mean)).filter(isPositive);
      if (!values.length) return 0;
      const ends = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, 0]);
      return Math.log10(ends[1] / ends[0]);
    }

    layout() {
      const { ink, soft, paper } = theme();
      const rows = this.listed.length;
      const legendHeight = (printing ? rows : Math.min(rows, 9)) * LEGEND_ROW + 12;
      const plotHeight = this.isNarrow ? 300 : Math.min(Math.max(0.42 * this.width, 380), 560);
      const below = { x: 0, xanchor: "left", y: -70 / plotHeight, yanchor: "top", maxheight: legendHeight };
      return {
        width: this.width,
        height: this.isNarrow ? plotHeight + 80 + legendHeight : plotHeight + 96,
        // above a wide chart is room for plotly's buttons, which would lie over the legend
        margin: this.isNarrow ? { l: 48, r: 18, t: 10, b: 70 + legendHeight } : { l: 64, r: 18, t: 36, b: 60 },
        paper_bgcolor: paper, plot_bgcolor: paper,
        font: { family: FONT, size: 13, color: ink },
        xaxis: this.axis("x", "step t"),
        yaxis: this.axis("y", this.quantity.title),
        legend: { ...(this.isNarrow ? below : { x: 1.02, y: 1 }), font: { size: 12, color: ink }, bgcolor: "rgba(0,0,0,0)" },
        hovermode: "closest", hoverdistance: 60,
        hoverlabel: { bgcolor: paper, bordercolor: soft, font: { family: FONT, color: ink, size: 13 }, align: "left", namelength: -1 },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
        dragmode: this.isNarrow ? false : "zoom", // a finger on the chart scrolls the page
        showlegend: true,
      };
    }

    /** Groups of visible agents whose lines look like one: nowhere further apart than a fraction of the chart's height. */
    coinciding() {
      const isLog = this.scale("y") === "log";
      const place = (value) => (isLog ? (isPositive(value) ? Math.log10(value) : null) : value);
      const lines = this.visible.map(({ agent, t, values }) => ({ agent, t, y: values[this.state.quantity].mean.map(place) }));
      const ends = lines.flatMap((one) => one.y).filter(isNumber).concat(isLog ? [] : [0]);
      const [least, most] = ends.reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [Infinity, -Infinity]);
      const room = report.within * (most - least);
      const same = (a, b) => a === b || (isNumber(a) && isNumber(b) && Math.abs(a - b) <= room);
      const near = (a, b) => a.t.length === b.t.length && a.t.every((t, i) => t === b.t[i] && same(a.y[i], b.y[i]));
      const groups = [];
      for (const one of lines) {
        const group = groups.find(([first]) => near(first, one));
        if (group) group.push(one);
        else groups.push([one]);
      }
      return groups.filter((group) => group.length > 1).map((group) => group.map((one) => one.agent));
    }

    notes() {
      const { series, first, unknown } = this.chapter;
      const notes = [];
      if (unknown) notes.push("Regret unknown: the optimal gain is not known. The cumulative reward is shown instead.");
      if (series.length > first) {
        notes.push(`${this.shown.size} of ${series.length} agents are shown, at first the ${first} best; the legend switches each on and off.`);
      }
      for (const group of this.coinciding()) {
        notes.push(`${group.map((agent) => report.agents[agent]).join(" = ")}: these lines coincide, and one hides the others.`);
      }
      if (this.scale("y") === "log") {
        const means = this.visible.flatMap((one) => one.values[this.state.quantity].mean);
        const left = means.filter((value) => isNumber(value) && value <= 0).length;
        if (left) notes.push(`${left.toLocaleString("en")} of the points drawn are zero or negative, and the log axis leaves them out.`);
      }
      return notes.join(" ");
    }

    draw() {
      const config = {
        displaylogo: false, displayModeBar: this.isNarrow || printing ? false : "hover",
        modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]], // and none that would ask a server
        toImageButtonOptions: { format: "svg", filename: `${this.state.quantity}--${this.chapter.folder}` },
      };
      Plotly.react(this.box, this.traces(), this.layout(), config);
      if (!this.drawn) this.listen();
      this.box.setAttribute("aria-label", this.quantity.caption);
      this.figure.querySelector("figcaption").textContent = this.quantity.caption;
      this.figure.querySelector(".note").textContent = this.notes();
    }

    listen() {
      this.drawn = true;
      this.box.on("plotly_legendclick", (event) => {
        this.click(event.data[event.curveNumber].meta.agent, event.event.timeStamp);
        return false;
      });
      this.box.on("plotly_legenddoubleclick", () => false);
    }
  }

  const charts = [...document.querySelectorAll("figure[data-chapter]")].map(
    (figure) => new Chart(figure, report.chapters[Number(figure.dataset.chapter)]),
  );
  const redraw = () => charts.filter((chart) => chart.drawn).forEach((chart) => chart.draw());

  const seen = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      seen.unobserve(entry.target);
      const chart = charts.find((one) => one.figure === entry.target);
      if (!chart.drawn) chart.draw();
    }),
    { rootMargin: "400px" },
  );
  charts.forEach((chart) => seen.observe(chart.figure));

  let lastWidth = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth || printing) return; // a phone's address bar changes the height alone
    lastWidth = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  });
  darkMode.addEventListener("change", redraw);

  window.addEventListener("beforeprint", () => { printing = true; charts.forEach((chart) => chart.draw()); });
  window.addEventListener("afterprint", () => { printing = false; redraw(); });

  function sort(header) {
    const table = header.closest("table");
    const column = [...header.parentNode.children].indexOf(header);
    const isAscending = header.getAttribute("aria-sort") !== "ascending";
    header.parentNode.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === ""); // what has no number stands last either way
      const order = Number.isNaN(Number(x) + Number(y)) ? x.localeCompare(y, "en", { numeric: true }) : Number(x) - Number(y);
      return isAscending ? order : -order;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }
  document.querySelectorAll("th button").forEach((button) => {
    button.addEventListener("click", () => sort(button.closest("th")));
  });
})();
