"use strict";
// The addresses of requests over time, of one run at a time.

const OPS = [
  { op: "r", name: "reads", one: "read", size: 5 },
  { op: "w", name: "writes", one: "write", size: 5 },
  { op: "d", name: "discards", one: "discard", size: 6 },
];

function scatter(frame) {
  const run = frame.runs.find(run => run.index === frame.memory.run) ?? frame.runs[0];
  const off = frame.memory.off ??= new Set();
  scatterControls(frame, run, off);
  const all = run.data.scatter ?? [];
  const points = all.filter(point => !off.has(point.op));
  if (!all.length) return frame.empty(`There is no sample of requests for ${run.label}.`);
  if (!points.length) return frame.empty("Every kind of request in the sample is switched off.");
  points.sort((a, b) => a.t - b.t);
  const time = timeUnit(Math.max(...[all[all.length - 1].t, run.data.totals?.elapsed_s ?? 0]));
  const space = byteUnit(all.reduce((most, point) => Math.max(most, point.at), 0));
  const axes = {
    x: { label: TIME.label(time), short: TIME.short(time) },
    y: { label: `Address (${space.name})` },
  };
  const ys = OPS.map(({ op }) => points.map(point => (point.op === op ? point.at / space.size : null)));
  const data = [points.map(point => point.t / time.size), ...ys];
  const last = data[0][points.length - 1];
  const range = new Window([0, last > 0 ? last : 1], false);
  range.key = `${run.index} ${range.whole}`;
  const view = new ScatterView(frame, view => scatterOptions(frame, view, axes, range), data, range);
  view.describe(points, run, time, axes);
  return view;
}

function scatterControls(frame, run, off) {
  const pick = el("select", { "aria-label": "Run", onchange: () => { frame.memory.run = Number(pick.value); frame.draw(); } },
    ...frame.runs.map(other => el("option", { value: other.index, selected: other === run }, other.label)));
  const kinds = OPS.map(({ op, name }) => {
    const change = () => { if (!off.delete(op)) off.add(op); frame.draw(); frame.controls.querySelector(`[data-op="${op}"]`)?.focus(); };
    return el("label", {}, el("input", { type: "checkbox", "data-op": op, checked: !off.has(op), onchange: change }), opMark(op), name);
  });
  frame.controls.append(frame.runs.length > 1 ? pick : el("span", { class: "none" }, run.label), ...kinds);
}

/** The shape of a kind of request as it stands in the chart. */
function opMark(op) {
  const shape = { r: '<circle cx="6" cy="6" r="3"/>', w: '<rect x="3" y="3" width="6" height="6"/>', d: '<path d="M3 3l6 6M9 3l-6 6" stroke-width="1.6"/>' };
  const box = el("span", { "aria-hidden": "true", style: "display:contents" });
  box.innerHTML = `<svg width="12" height="12" style="fill:var(--op-${op});stroke:var(--op-${op})">${shape[op]}</svg>`;
  return box;
}

function scatterOptions(frame, view, axes, range) {
  const hooks = {
    moved: plot => { view.index = view.under(plot); view.read(false); view.mark(); },
    still: () => view.still,
    zoomed: (low, high) => view.showRange(low, high),
  };
  const options = plotOptions(frame, axes.x, axes.y, range, hooks);
  options.cursor.points = { show: false };
  options.series = [{}, ...OPS.map(({ op, size }) => {
    const colour = frame.report.theme.op(op);
    return { paths: () => null, points: { show: true, size, width: op === "d" ? 1.5 : 0, fill: op === "d" ? null : colour, stroke: colour, paths: shapes(op, size) } };
  })];
  return options;
}

/** Draws circles for reads, squares for writes and crosses for discards. */
function shapes(op, size) {
  return (plot, series, first, last) => {
    const path = new Path2D();
    const half = (size / 2) * devicePixelRatio * (op === "w" ? 0.85 : 1);
    const [xs, ys] = [plot.data[0], plot.data[series]];
    for (let index = first; index <= last; index += 1) {
      if (ys[index] == null) continue;
      const [x, y] = [plot.valToPos(xs[index], "x", true), plot.valToPos(ys[index], "y", true)];
      if (op === "w") path.rect(x - half, y - half, 2 * half, 2 * half);
      else if (op === "r") { path.moveTo(x + half, y); path.arc(x, y, half, 0, 2 * Math.PI); }
      else { path.moveTo(x - half, y - half); path.lineTo(x + half, y + half); path.moveTo(x + half, y - half); path.lineTo(x - half, y + half); }
    }
    return { stroke: op === "d" ? path : null, fill: op === "d" ? null : path, clip: null, flags: 0 };
  };
}

class ScatterView extends PlotView {
  describe(points, run, time, axes) {
    Object.assign(this, { points, run, time, axes });
    this.ring = el("div", { class: "ring", hidden: true });
    this.plot.over.append(this.ring);
    this.frame.focusable(this.frame.plot, `${this.frame.chart.title}: a sample of ${count(points.length)} requests of ${run.label}`);
    this.frame.legend([{ mark: null, label: run.label }]);
  }

  /** The request nearest to the mouse, within 20 pixels. */
  under(plot) {
    const { left, top } = plot.cursor;
    if (left < 0 || !this.points) return null;
    let best = null;
    let least = 400;
    for (let index = 0; index < this.points.length; index += 1) {
      const across = plot.valToPos(this.data[0][index], "x") - left;
      if (Math.abs(across) > 20) continue;
      const down = plot.valToPos(this.height(index), "y") - top;
      const distance = across * across + down * down;
      if (distance < least) [best, least] = [index, distance];
    }
    return best;
  }

  height(index) {
    return this.data[1][index] ?? this.data[2][index] ?? this.data[3][index];
  }

  place() {
    super.place();
    this.mark();
  }

  /** Rings the request at the cursor. */
  mark() {
    if (!this.ring) return;
    const x = this.index == null ? null : this.data[0][this.index];
    this.ring.hidden = x == null || x < this.range.range[0] || x > this.range.range[1];
    if (this.ring.hidden) return;
    this.ring.style.left = `${this.plot.valToPos(x, "x")}px`;
    this.ring.style.top = `${this.plot.valToPos(this.height(this.index), "y")}px`;
  }

  read(aloud) {
    if (!this.points) return;
    if (this.index == null) return this.frame.read("", [], false);
    const { t, at, len, op } = this.points[this.index];
    const kind = OPS.find(kind => kind.op === op)?.one ?? op;
    this.frame.read(`${significant(t / this.time.size)} ${this.time.name}: ${kind} of ${bytes(len)} at byte ${count(at)} (${bytes(at)})`, [], aloud);
  }

  rows() {
    return [["run", "time_s", "operation", "first_byte", "bytes"], ...this.points.map(({ t, at, len, op }) => [this.run.label, t, op, at, len])];
  }
  svg(theme) {
    return scatterSvg(this, theme);
  }
}
