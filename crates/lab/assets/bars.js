"use strict";
// Pages programmed by cause: a stacked bar for each run.

const CAUSES = [
  { key: "host", name: "Host" },
  { key: "gc", name: "Cleaning" },
  { key: "wear", name: "Wear levelling" },
  { key: "retire", name: "Bad blocks" },
  { key: "journal", name: "Record of discards" },
];

/** `choice.whole(programs, total)` is what a run's values are divided by, `choice.text` writes the quotient. */
function causeBars(frame, choice) {
  const bars = frame.runs.map(run => causeBar(run, choice)).filter(bar => bar.total > 0 && bar.whole > 0);
  if (!bars.length) return frame.empty(choice.none);
  const most = bars.reduce((most, bar) => Math.max(most, bar.total / bar.whole), 0);
  for (const bar of bars) bar.box = barBox(bar, most, choice);
  frame.plot.append(...bars.map(bar => bar.box));
  frame.legend(CAUSES.map(cause => ({ mark: el("span", { class: `key ${cause.key}`, "aria-hidden": "true" }), label: cause.name })));
  frame.focusable(frame.plot, `${frame.chart.title}, ${choice.name}: ${bars.length} ${bars.length === 1 ? "run" : "runs"}`);
  return new BarView(frame, bars, choice);
}

function causeBar(run, choice) {
  const programs = run.data.totals?.programs ?? {};
  const parts = CAUSES.map(cause => programs[cause.key] ?? 0);
  const total = parts.reduce((sum, part) => sum + part, 0);
  return { run, parts, total, whole: choice.whole(programs, total) };
}

function barBox(bar, most, choice) {
  const width = part => `width: ${(100 * part) / bar.whole / most}%`;
  bar.marks = bar.parts.map((part, index) => el("i", { class: CAUSES[index].key, style: width(part) }));
  return el("div", { class: "bar" },
    el("div", {}, swatch(bar.run.index), el("span", { class: "label" }, bar.run.label), el("span", { class: "value" }, choice.text(bar.total / bar.whole))),
    el("div", { class: "track" }, ...bar.marks));
}

class BarView {
  constructor(frame, bars, choice) {
    Object.assign(this, { frame, bars, choice, at: null });
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
    this.goTo(within(row + dy, this.bars.length), within((part ?? 0) + dx, CAUSES.length), true);
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
    if (aloud) this.frame.say([bar.run.label, `${CAUSES[part].name} ${values[part]}`]);
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
    return [["run", ...CAUSES.map(cause => `${cause.key}_pages`)], ...this.bars.map(bar => [bar.run.label, ...bar.parts])];
  }

  destroy() {
    this.frame.plot.removeEventListener("pointerleave", this.gone);
  }
}
