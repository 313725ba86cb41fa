"use strict";
// What was done by cause: a stacked bar for each run.

/** Textures of causes in the style sheet. */
const TEXTURES = 8;

/** `causes` are `{key, name}` each, and `index`, their texture, if it is not their place; `parts(run)` has the counts by
 * key, in `unit`. `choice.whole(parts, total, run)` is what a run's values are divided by, `choice.text` writes the
 * quotient. */
function causeBars(frame, causes, parts, unit, choice) {
  const bars = frame.runs.map(run => causeBar(run, causes, parts(run) ?? {}, choice)).filter(bar => bar.total > 0 && bar.whole > 0);
  if (!bars.length) return frame.empty(choice.none);
  const most = bars.reduce((most, bar) => Math.max(most, bar.total / bar.whole), 0);
  for (const bar of bars) bar.box = barBox(bar, most, causes, choice);
  frame.plot.append(...bars.map(bar => bar.box));
  frame.legend(causes.map((cause, place) => ({ mark: el("span", { class: `key ${texture(cause, place)}`, "aria-hidden": "true" }), label: cause.name })));
  frame.focusable(frame.plot, `${frame.chart.title}, ${choice.name}: ${bars.length} ${bars.length === 1 ? "run" : "runs"}`);
  return new BarView(frame, bars, causes, unit, choice);
}

function texture({ index }, place) {
  return `t${(index ?? place) % TEXTURES}`;
}

function causeBar(run, causes, counts, choice) {
  const parts = causes.map(cause => counts[cause.key] ?? 0);
  const total = parts.reduce((sum, part) => sum + part, 0);
  return { run, parts, total, whole: choice.whole(counts, total, run) };
}

function barBox(bar, most, causes, choice) {
  const width = part => `width: ${(100 * part) / bar.whole / most}%`;
  bar.marks = bar.parts.map((part, index) => el("i", { class: texture(causes[index], index), style: width(part) }));
  return el("div", { class: "bar" },
    el("div", {}, swatch(bar.run.index), el("span", { class: "label" }, bar.run.label), el("span", { class: "value" }, choice.text(bar.total / bar.whole))),
    el("div", { class: "track" }, ...bar.marks));
}

class BarView {
  constructor(frame, bars, causes, unit, choice) {
    Object.assign(this, { frame, bars, causes, unit, choice, at: null });
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
    return [["run", ...this.causes.map(cause => `${cause.key}_${this.unit}`)], ...this.bars.map(bar => [bar.run.label, ...bar.parts])];
  }

  destroy() {
    this.frame.plot.removeEventListener("pointerleave", this.gone);
  }
}
