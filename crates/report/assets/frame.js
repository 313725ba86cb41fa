"use strict";
// What every chart has around it: a figure with its heading, choices, zoom and download, a readout of the values
// at the cursor, and the keys. A chart is
//
//   id, title, about     its anchor, heading and what it shows
//   section              the heading that it stands under, or
//   place                the id of the element that it stands in
//   free                 optional; needs no runs
//   of                   optional; what its file's title begins with
//   wide                 optional; takes the full width
//   runs                 optional; its own runs in place of the report's
//   choices              optional; `{name, ...}` for each of several things that it can show, or a function of the runs
//   when(runs)           optional; whether these runs have such a chart
//   has(choice, runs)    optional; whether a choice has anything to show: others are left out, and with all of them the chart
//   start(runs)          optional; the index of the choice at the start, else 0
//   render(frame)        draws into `frame.plot`
//
// and `render` returns a view:
//
//   rows()               the data as rows for CSV, headings first
//   svg(theme)           the chart as the text of an SVG file, in the colours of `theme`
//   move(dx, dy)         moves the cursor by steps; false if that key means nothing here
//   edge(end)            moves it to the start (-1) or the end (1)
//   zoom(factor)         optional; above 1 shows less
//   reset()              optional; shows everything
//   leave()              removes the cursor
//   silent               optional; all values stand in the picture, and nothing is read out below it
//   destroy()            optional
//
// or null when there is nothing to draw, after `frame.empty(sentence)`.

/** An element with attributes and children; text never becomes markup. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value != null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child != null));
  return element;
}

/** The choices of a chart that have anything to show, all of them before there are runs; one that is undefined where a
 * chart has none to choose from. */
function choicesOf(chart, runs) {
  const all = typeof chart.choices === "function" ? chart.choices(runs) : chart.choices ?? [undefined];
  return chart.has && runs.length ? all.filter(choice => chart.has(choice, runs)) : all;
}

/** A short piece of a run's line: its colour and its dashes. */
function swatch(index, thin = false) {
  const box = el("span", { "aria-hidden": "true", style: "display:contents" });
  const style = `swatch c${index % COLOURS} d${index % DASHES}${thin ? " thin" : ""}`;
  box.innerHTML = `<svg class="${style}" viewBox="0 0 34 10"><line x1="0" y1="5" x2="34" y2="5"/></svg>`;
  return box;
}

class Frame {
  constructor(chart, report) {
    this.chart = chart;
    this.report = report;
    this.choices = choicesOf(chart, this.all);
    this.choice = chart.start?.(this.all) ?? 0;
    this.memory = {}; // what a chart keeps while it is drawn anew, such as its zoom
    this.view = null;
    this.build();
  }

  get runs() {
    return this.chart.runs ?? this.report.shown();
  }

  /** The runs that are there, shown or not. */
  get all() {
    return this.chart.runs ?? this.report.runs;
  }

  get chosen() {
    return this.choices[this.choice];
  }

  get choiceName() {
    return this.chosen?.name ?? "";
  }

  build() {
    const { id, title, about, wide } = this.chart;
    this.plot = el("div", { class: "plot" });
    this.list = el("ul");
    this.where = el("p");
    this.readout = el("div", { class: "readout" }, this.where, this.list);
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.controls = el("div", { class: "choices" });
    this.figure = el(
      "figure", { id, class: wide ? "wide" : null, "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-about` },
      el("figcaption", {}, el("h3", { id: `${id}-title` }, title), el("p", { class: "about", id: `${id}-about` }, about)),
      this.tools(),
      this.plot,
      this.readout,
      this.live,
    );
    this.listenTo(this.plot);
  }

  tools() {
    const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const of = `: ${this.chart.title}`;
    this.zoomButtons = [
      button("+", `Zoom in${of}`, () => this.zoom(2)),
      button("−", `Zoom out${of}`, () => this.zoom(0.5)),
      button("Whole", `Show everything${of}`, () => this.view?.reset?.()),
    ];
    this.csvButton = button("CSV", `Download the data as CSV${of}`, () => this.download("csv", "text/csv", toCsv(this.view.rows())));
    this.svgButton = button("SVG", `Save the picture as SVG${of}`, () => this.download("svg", "image/svg+xml", this.view.svg(this.report.themes.light())));
    const choices = this.choices.length > 1 ? this.radios() : null;
    return el("div", { class: "tools" }, choices, this.controls, el("div", {}, ...this.zoomButtons, this.csvButton, this.svgButton));
  }

  radios() {
    const name = `${this.chart.id}-choice`;
    const radio = (choice, index) => {
      const choose = () => { this.choice = index; this.draw(); };
      return el("label", {}, el("input", { type: "radio", name, checked: index === this.choice, onchange: choose }), choice.name);
    };
    return el("fieldset", { class: "choices" },
      el("legend", { class: "hidden" }, `${this.chart.title}: what is shown`), ...this.choices.map(radio));
  }

  /** Draws the chart anew. */
  draw() {
    this.view?.destroy?.();
    this.plot.replaceChildren();
    this.controls.replaceChildren();
    this.legend([]);
    this.focusable(this.plot, false);
    this.view = this.runs.length || this.chart.free ? this.chart.render(this) : this.empty("Every run is switched off.");
    this.readout.hidden = !this.view || Boolean(this.view.silent);
    this.csvButton.disabled = this.svgButton.disabled = !this.view;
    for (const button of this.zoomButtons) button.hidden = !this.view?.zoom;
  }

  /** Says why there is no chart. */
  empty(sentence) {
    this.plot.replaceChildren(el("p", { class: "empty" }, sentence));
    return null;
  }

  /** Makes an element take the focus, with a name for those who do not see it. */
  focusable(element, label) {
    const attributes = { tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": label, "aria-describedby": "keys" };
    for (const [name, value] of Object.entries(attributes)) {
      if (label) element.setAttribute(name, value);
      else element.removeAttribute(name);
    }
  }

  /** Sets what the readout lists: `{mark, label}` each. Their values come with `read`. */
  legend(items) {
    this.items = items.map(item => ({ ...item, value: el("span", { class: "value" }) }));
    this.list.replaceChildren(...this.items.map(item =>
      el("li", {}, item.mark, el("span", { class: "label" }, item.label), item.value)));
    this.where.textContent = "";
  }

  /** Shows the values at the cursor; says them aloud when a key moved it. */
  read(where, values, aloud) {
    this.where.textContent = where;
    this.items.forEach((item, index) => { item.value.textContent = values[index] ?? ""; });
    if (aloud) this.say([where, ...this.items.map((item, index) => values[index] && `${item.label} ${values[index]}`)]);
  }

  say(parts) {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => { this.live.textContent = parts.filter(Boolean).join("; "); }, 150);
  }

  zoom(factor) {
    this.view?.zoom?.(factor);
  }

  listenTo(element, view = () => this.view) {
    element.addEventListener("keydown", event => {
      if (event.target !== element || event.ctrlKey || event.metaKey || event.altKey || !view()) return;
      if (this.press(event.key, view()) !== false) event.preventDefault();
    });
  }

  press(key, view) {
    switch (key) {
      case "ArrowLeft": return view.move(-1, 0);
      case "ArrowRight": return view.move(1, 0);
      case "ArrowUp": return view.move(0, -1);
      case "ArrowDown": return view.move(0, 1);
      case "PageUp": return view.move(-10, 0);
      case "PageDown": return view.move(10, 0);
      case "Home": return view.edge(-1);
      case "End": return view.edge(1);
      case "+": case "=": return view.zoom ? view.zoom(2) : false;
      case "-": case "_": return view.zoom ? view.zoom(0.5) : false;
      case "0": return view.reset ? view.reset() : false;
      case "Escape": return view.leave();
      default: return false;
    }
  }

  /** Saves a text as a file that is named after the chart and its choice. */
  download(ending, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const choice = this.choiceName.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    el("a", { href: url, download: `${["dovetail", this.chart.id, choice].filter(Boolean).join("-")}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}
