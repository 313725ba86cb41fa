"use strict";
// Puts the report together: its data, which runs are shown, and the charts.

class Report {
  constructor(results) {
    this.runs = (results?.runs ?? []).map((data, index) => ({ data, index, label: data.label || data.stack?.name || `Run ${index + 1}`, shown: true }));
    this.theme = new Theme();
    this.frames = CHARTS.filter(chart => this.has(chart)).map(chart => new Frame(chart, this));
  }

  /** A chart that these runs have, and that has something to show. */
  has(chart) {
    const runs = chart.runs ?? this.runs;
    return (!chart.when || chart.when(runs)) && choicesOf(chart, runs).length > 0;
  }

  shown() {
    return this.runs.filter(run => run.shown);
  }

  /** The views that share an axis with `view`. */
  others(view) {
    return this.frames.map(frame => frame.view).filter(other => other && other !== view && other.share === view.share);
  }

  /** The button beside the command that made the results. */
  offerCopy() {
    const [button, text] = ["copy", "command"].map(id => document.getElementById(id));
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      getSelection().selectAllChildren(text);
      const copied = document.execCommand("copy"); // pages on disk have no clipboard of their own
      button.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
    });
  }

  start() {
    this.offerCopy();
    if (!this.runs.length && !CHARTS.some(chart => chart.place)) return;
    this.listRuns();
    this.layOut();
    this.themes = new ThemeSwitch(() => this.draw());
    this.followWidth();
    this.followPrinter();
    this.draw();
  }

  draw() {
    this.theme = new Theme();
    for (const frame of this.frames) frame.draw();
  }

  /** The charts under the headings of their sections, or at the places that they name; those without either before all
   * others. */
  layOut() {
    const main = document.getElementById("charts");
    const sections = new Map([[undefined, document.getElementById("first")]]);
    for (const frame of this.frames) {
      const { section, place } = frame.chart;
      if (place) { document.getElementById(place).append(frame.figure); continue; }
      if (!sections.has(section)) {
        sections.set(section, el("div", { class: "grid" }));
        main.append(el("section", {}, el("h2", {}, section), sections.get(section)));
      }
      sections.get(section).append(frame.figure);
    }
  }

  /** A button for each run; with one run there is nothing to choose. */
  listRuns() {
    if (this.runs.length < 2) return;
    const bar = document.getElementById("runs");
    const buttons = this.runs.map(run => {
      const button = el("button", { type: "button", "aria-pressed": "true", onclick: () => show([run], !run.shown) }, swatch(run.index), el("span", {}, run.label));
      run.press = () => button.setAttribute("aria-pressed", String(run.shown));
      return button;
    });
    const show = (runs, shown) => {
      for (const run of runs) { run.shown = shown; run.press(); }
      this.draw();
    };
    bar.append(...buttons, el("button", { type: "button", onclick: () => show(this.runs, true) }, "All"));
    bar.hidden = false;
  }

  followWidth() {
    let width = document.body.clientWidth;
    let waiting = 0;
    new ResizeObserver(() => {
      if (document.body.clientWidth === width) return;
      width = document.body.clientWidth;
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => this.draw());
    }).observe(document.body);
  }

  /** Paper is light and as wide as a page. */
  followPrinter() {
    const page = (width, dark) => {
      document.body.style.width = width;
      this.themes.apply(dark);
      this.draw();
    };
    addEventListener("beforeprint", () => page("680px", false));
    addEventListener("afterprint", () => page("", this.themes.dark));
  }
}

new Report(JSON.parse(document.getElementById("data").textContent)).start();
