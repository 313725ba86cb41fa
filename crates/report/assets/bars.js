"use strict";
// What was done by cause: a stacked bar for each run.

/** Textures of causes in the style sheet. */
const TEXTURES = 8;

/** `causes` are `{key, name}` each, and `index`, their texture, if it is not their place, or `mark`, a class of its own;
 * `parts(run)` has the counts by key, in `unit`. `choice.whole(parts, total, run)` is what a run's values are divided by,
 * `choice.text` writes the quotient. With `choice.beside`, `{head, csv, value(run), text}`, a second bar stands beside each,
 * and `choice.head` is the heading of the first ones. */
function causeBars(frame, causes, parts, unit, choice) {
  const bars = frame.runs.map(run => causeBar(run, causes, parts(run) ?? {}, choice)).filter(bar => bar.total > 0 && bar.whole > 0);
  if (!bars.length) return frame.empty(choice.none);
  const most = bars.reduce((most, bar) => Math.max(most, bar.total / bar.whole), 0);
  const mostBeside = bars.reduce((most, bar) => Math.max(most, bar.beside), 0);
  for (const bar of bars) bar.box = barBox(bar, { most, mostBeside }, causes, choice);
  const heads = choice.beside ? [el("div", { class: "bar pair heads" }, el("p", {}, choice.head), el("p", {}, choice.beside.head))] : [];
  frame.plot.append(...heads, ...bars.map(bar => bar.box));
  frame.legend(causes.map((cause, place) => ({ mark: el("span", { class: `key ${texture(cause, place)}`, "aria-hidden": "true" }), label: cause.name })));
  frame.focusable(frame.plot, `${frame.chart.title}, ${choice.name}: ${bars.length} ${bars.length === 1 ? "run" : "runs"}`);
  return new BarView(frame, bars, causes, { unit, choice, most, mostBeside });
}

function texture({ index, mark }, place) {
  return mark ?? `t${(index ?? place) % TEXTURES}`;
}

function causeBar(run, causes, counts, choice) {
  const parts = causes.map(cause => counts[cause.key] ?? 0);
  const total = parts.reduce((sum, part) => sum + part, 0);
  return { run, parts, total, whole: choice.whole(counts, total, run), beside: choice.beside?.value(run) ?? 0 };
}

function barBox(bar, { most, mostBeside }, causes, choice) {
  const width = (part, whole) => `width: ${whole > 0 ? (100 * part) / whole : 0}%`;
  bar.marks = bar.parts.map((part, index) => el("i", { class: texture(causes[index], index), style: width(part / bar.whole, most) }));
  const head = (text, ...before) => el("div", {}, ...before, el("span", { class: "value" }, text));
  const own = [head(choice.text(bar.total / bar.whole), swatch(bar.run.index), el("span", { class: "label" }, bar.run.label)), el("div", { class: "track" }, ...bar.marks)];
  if (!choice.beside) return el("div", { class: "bar" }, ...own);
  const rate = el("i", { style: `${width(bar.beside, mostBeside)}; background: var(--run-${bar.run.index % COLOURS})` });
  const beside = el("div", {}, head(choice.beside.text(bar.beside), el("span", { class: "label" })), el("div", { class: "track" }, rate));
  return el("div", { class: "bar pair" }, el("div", {}, ...own), beside);
}

class BarView {
  constructor(frame, bars, causes, { unit, choice, most, mostBeside }) {
    Object.assign(this, { frame, bars, causes, unit, choice, most, mostBeside, at: null });
    bars.forEach((bar, row) => {
      bar.box.addEventListener("pointerenter", () => this.goTo(row, null, false));
      bar.marks.forEach((mark, part) => mark.addEventListener("pointerenter", () => this.goTo(row, part, false)));
    });
    this.gone = () => this.leave();
    frame.plot.addEventListener("pointerleave", this.gone);
  }

  move(dx, dy) {
    const [row, part] = this.at ?? [dy > 0 ? -1 : 0, dx > 0 ? -1 : 0];
    const within = (value, parts) => Math.min(Math.max(value, 0), parts - 1);
    this.goTo(within(row + dy, this.bars.length), within((part ?? 0) + dx, this.causes.length), true);
  }

  edge(end) {
    this.goTo(end < 0 ? 0 : this.bars.length - 1, this.at?.[1] ?? 0, true);
  }

  goTo(row, part, aloud) {
    this.clear();
    this.at = [row, part];
    const bar = this.bars[row];
    bar.marks[part]?.classList.add("at");
    const values = bar.parts.map(value => this.choice.text(value / bar.whole));
    this.frame.read(bar.run.label, values, false);
    if (aloud) this.frame.say([bar.run.label, `${this.causes[part].name} ${values[part]}`]);
  }

  clear() {
    if (this.at?.[1] != null) this.bars[this.at[0]].marks[this.at[1]].classList.remove("at");
    this.at = null;
  }

  leave() {
    this.clear();
    this.frame.read("", [], false);
  }

  rows() {
    const { beside } = this.choice;
    const heads = ["run", ...this.causes.map(cause => `${cause.key}_${this.unit}`), ...(beside ? [beside.csv] : [])];
    return [heads, ...this.bars.map(bar => [bar.run.label, ...bar.parts, ...(beside ? [bar.beside] : [])])];
  }

  svg(theme) {
    return barsSvg(this, theme);
  }

  destroy() {
    this.frame.plot.removeEventListener("pointerleave", this.gone);
  }
}
