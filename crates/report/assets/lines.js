"use strict";
// Charts of lines. A line is `{run, name, thin, x, y, step, skip}`: its run, what it shows beside the run's label (may be
// empty), its values, how far from a value the cursor may be and still read it (in units of x), and optionally how
// many values to `skip` in the download, and the `error` of each value, drawn as a bar up and down.
//
// Axes are `{label, log, size, text, value, csv}` (and `bars` for y, to draw bars in place of lines): the heading, whether the scale is logarithmic, the size of a unit by
// which values are divided, how a tick and a value are written, and the name of the column in the download; `rows`
// gives a download of its own. An x axis with `dots` shows each value as a point, and so does one that is `whole`; one
// whose values are names, `apart`, has no line between them. Charts whose x axes have the same `share` have one zoom and one
// cursor.

/** Draws `lines`; null if none has a value. */
function linePlot(frame, lines, axes, none) {
  const { x, y } = axes;
  const missing = frame.runs.filter(run => !lines.some(line => line.run === run && line.y.length));
  const drawn = lines.filter(line => line.y.length);
  if (!drawn.length) return frame.empty(none);
  const tables = drawn.map(line => [line.x.map(v => v / x.size), line.y.map(v => (v == null ? null : y.of ? y.of(v, line) : v / y.size))]);
  const data = uPlot.join(tables);
  const range = lineRange(data[0], x);
  range.key = `${x.label} ${range.whole}`;
  const view = new LineView(frame, view => lineOptions(frame, view, drawn, axes, range), data, range);
  view.describe(drawn, axes);
  frame.legend([
    ...drawn.map(line => ({ mark: x.apart ? dotSwatch(line.run.index) : swatch(line.run.index, line.thin), label: [line.run.label, line.name].filter(Boolean).join(", ") })),
    ...missing.map(run => ({ mark: swatch(run.index), label: `${run.label}: nothing to show` })),
  ]);
  return view;
}

function lineRange(xs, axis) {
  const [first, last] = [xs[0], xs[xs.length - 1]];
  if (axis.log) return new Window(axis.dots ? [first / 1.15, last * 1.15] : logRange(first, last), true);
  if (axis.whole) return new Window([first - 0.5, last + 0.5], false);
  if (axis.dots) {
    const room = (last - first || Math.abs(first) || 1) * 0.05;
    return new Window([first - room, last + room], false);
  }
  return new Window([0, last > 0 ? last * (xs.length === 1 ? 1.5 : 1) : 1], false);
}

function lineOptions(frame, view, lines, { x, y }, range) {
  const hooks = {
    moved: plot => { view.index = plot.cursor.idx; view.read(false); },
    still: () => view.still,
    zoomed: (low, high) => view.showRange(low, high),
  };
  const options = plotOptions(frame, x, y, range, hooks);
  options.cursor.dataIdx = (_, series, index) => (series === 0 ? index : view.nearest(series, view.forced ?? index));
  if (x.share) options.cursor.sync = { key: x.share, scales: ["x", null], setSeries: false, filters: { pub: event => event === "mousemove" || event === "mouseleave" } };
  if (lines.some(line => line.error)) options.hooks.draw = [plot => drawErrors(plot, frame.report.theme, lines, x, y)];
  const style = y.bars ? barStyle : lineStyle;
  options.series = [{}, ...lines.map((line, place) => style(frame.report.theme, line, x, y, place / lines.length, 1 / lines.length))];
  return options;
}

/** Whether a line's points are rings: without lines there are no dashes to tell lines of one colour apart. */
function isRing(index) {
  return Math.floor(index / COLOURS) % 2 === 1;
}

/** A run's point, as large as it is drawn. */
function dotSwatch(index) {
  const box = el("span", { "aria-hidden": "true", style: "display:contents" });
  const colour = `var(--run-${index % COLOURS})`;
  box.innerHTML = `<svg class="swatch" viewBox="0 0 34 10"><circle cx="17" cy="5" r="${dotRadius(index)}" fill="${isRing(index) ? "none" : colour}" stroke="${colour}"/></svg>`;
  return box;
}

/** Radius of a point that no line joins; it is larger from the third time of a colour on. */
function dotRadius(index) {
  return index < 2 * COLOURS ? 4 : 6;
}

/** Points that no line joins. */
function pointStyle(theme, line) {
  const { index } = line.run;
  const colour = theme.run(index);
  const points = { show: true, size: 2 * dotRadius(index), width: 1.5, fill: isRing(index) ? theme.get("--page") : colour, stroke: colour };
  return { stroke: colour, paths: () => null, points };
}

function lineStyle(theme, line, x, y) {
  if (x.apart) return pointStyle(theme, line);
  const colour = theme.run(line.run.index);
  return {
    stroke: colour, width: line.thin ? 1 : 2, dash: theme.dash(line.run.index),
    paths: y.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    points: { show: Boolean(x.whole || x.dots), filter: (plot, series, show) => (show ? null : lonely(plot.data[series])), size: 6, fill: colour, stroke: colour },
  };
}

/** A line's errors: `[x, low, high]` of each value that has one, in the units of the axes. */
function errorsOf(line, x, y) {
  const ends = line.y.map((value, index) => [line.x[index] / x.size, (value - line.error[index]) / y.size, (value + line.error[index]) / y.size]);
  return ends.filter((_, index) => line.y[index] != null && line.error[index] > 0);
}

/** Draws errors as bars with short ends. */
function drawErrors(plot, theme, lines, x, y) {
  const { ctx, bbox } = plot;
  const end = 4 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.setLineDash([]);
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const line of lines.filter(line => line.error)) {
    ctx.strokeStyle = theme.run(line.run.index);
    ctx.beginPath();
    for (const [at, low, high] of errorsOf(line, x, y)) {
      const [left, bottom, top] = [plot.valToPos(at, "x", true), plot.valToPos(low, "y", true), plot.valToPos(high, "y", true)];
      ctx.moveTo(left, bottom);
      ctx.lineTo(left, top);
      for (const height of [bottom, top]) { ctx.moveTo(left - end, height); ctx.lineTo(left + end, height); }
    }
    ctx.stroke();
  }
  ctx.restore();
}

/** Bars side by side around each x: of the room that they share, this line's begin at `from` and take `share`. */
function barStyle(theme, line, _, __, from, share) {
  const room = 0.8;
  const disp = {
    x0: { unit: 1, values: plot => plot.data[0].map(x => x + room * (from - 0.5)) },
    size: { unit: 1, values: plot => plot.data[0].map(() => room * share) },
  };
  const colour = theme.run(line.run.index);
  return { stroke: colour, fill: colour, width: 0, paths: uPlot.paths.bars({ disp }), points: { show: false } };
}

/** The indices of values between two gaps, which no line would show. */
function lonely(values) {
  const indices = [];
  let before = null;
  let run = 0;
  const close = () => { if (run === 1) indices.push(before); };
  values.forEach((value, index) => {
    if (value === undefined) return;
    if (value === null) { close(); run = 0; return; }
    before = index;
    run += 1;
  });
  close();
  return indices;
}

class LineView extends PlotView {
  describe(drawn, axes) {
    Object.assign(this, { drawn, axes, share: axes.x.share });
    const { chart, choiceName, runs } = this.frame;
    const what = [chart.title, choiceName].filter(Boolean).join(", ");
    this.frame.focusable(this.frame.plot, `${what}: ${axes.y.label} over ${axes.x.label}, ${runs.length} ${runs.length === 1 ? "run" : "runs"}`);
  }

  /** Where a line has its value for the x at `index`; null if that is too far away. */
  nearest(series, index) {
    const [xs, ys] = [this.data[0], this.data[series]];
    if (index == null) return null;
    const seek = by => { let at = index; while (at >= 0 && at < xs.length && ys[at] === undefined) at += by; return xs[at] === undefined ? null : at; };
    const left = seek(-1);
    if (this.axes?.y.steps) return left;
    const right = seek(1);
    const gap = at => (at == null ? Infinity : Math.abs(xs[at] - xs[index]));
    const best = gap(right) < gap(left) ? right : left;
    return gap(best) <= (this.drawn?.[series - 1].step ?? Infinity) ? best : null;
  }

  read(aloud) {
    if (!this.drawn) return;
    const { x, y } = this.axes;
    if (this.index == null) return this.frame.read("", [], false);
    const values = this.drawn.map((line, index) => {
      const at = this.nearest(index + 1, this.index);
      return at == null ? MISSING : y.value(this.data[index + 1][at]);
    });
    this.frame.read(x.value(this.data[0][this.index]), values, aloud);
  }

  rows() {
    if (this.axes.rows) return this.axes.rows();
    const { x, y } = this.axes;
    const heads = ["run", "line", x.csv, y.csv];
    return [heads, ...this.drawn.flatMap(line => line.x.map((value, index) => [line.run.label, line.name, value, line.y[index]]).slice(line.skip ?? 0))];
  }
  svg(theme) {
    return linesSvg(this, theme);
  }
}
