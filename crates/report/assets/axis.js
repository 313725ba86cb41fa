"use strict";
// Axes and zoom that the plots share. A plot's x axis is `{label, log, text, range}`; its range is kept by `Window`,
// not by the library, so that keys, buttons and the mouse all zoom the same way.

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

/** Width in pixels below which a plot has its short heading. */
const NARROW = 400;

/** The part of an axis that is shown, in the axis's own units. */
class Window {
  constructor(whole, log) {
    this.whole = whole;
    this.to = log ? Math.log10 : value => value;
    this.from = log ? value => 10 ** value : value => value;
    this.range = whole;
  }

  /** Shows `[low, high]`, within the whole. */
  show(low, high) {
    const [first, last] = this.whole.map(this.to);
    const width = Math.min(Math.max(high - low, (last - first) * 1e-4), last - first);
    const start = Math.min(Math.max(low, first), last - width);
    this.range = width === last - first ? this.whole : [this.from(start), this.from(start + width)];
  }

  /** Zooms by `factor` about `centre`. */
  zoom(factor, centre) {
    const [low, high] = this.range.map(this.to);
    const at = centre == null ? (low + high) / 2 : this.to(centre);
    this.show(at - (at - low) / factor, at + (high - at) / factor);
  }

  /** Moves so that `value` can be seen. */
  reveal(value) {
    if (value >= this.range[0] && value <= this.range[1]) return false;
    const half = (this.to(this.range[1]) - this.to(this.range[0])) / 2;
    this.show(this.to(value) - half, this.to(value) + half);
    return true;
  }
}

/** Ticks of a logarithmic axis: all of 1 to 9, or 1, 2 and 5, or powers of ten, by how many decades are shown. */
function logSplits(low, high) {
  const decades = Math.log10(high / low);
  if (decades < 0.3) return evenSplits(low, high);
  const steps = decades < 1 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decades < 3 ? [1, 2, 5] : [1];
  const splits = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
    for (const step of steps) splits.push(Number((step * 10 ** power).toPrecision(1)));
  return splits.filter(split => split >= low * 0.9999 && split <= high * 1.0001);
}

function evenSplits(low, high, parts = 4) {
  const raw = (high - low) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= raw);
  const splits = [];
  for (let split = Math.ceil(low / step) * step; split <= high; split += step) splits.push(Number(split.toPrecision(12)));
  return splits;
}

/** The least and the greatest of 1, 2 and 5 times a power of ten around `low` and `high`. */
function logRange(low, high) {
  const around = (value, pick) => {
    const power = 10 ** Math.floor(Math.log10(value));
    const step = value / power;
    return power * (pick < 0 ? [5, 2, 1].find(s => s <= step * 1.0001) ?? 1 : [1, 2, 5, 10].find(s => s >= step * 0.9999) ?? 10);
  };
  const [first, last] = [around(low, -1), around(high, 1)];
  return last > first ? [first, last] : [first / 2, last * 2];
}

/** From 0 to a little above the greatest value. */
function fromZero(_, __, high) {
  return [0, high > 0 ? high * 1.06 : 1];
}

function logFromData(_, low, high) {
  return low > 0 && high > 0 ? logRange(low, high) : [1, 10];
}

/** An axis in the library's terms. */
function axisOptions(theme, axis, vertical) {
  const options = {
    stroke: theme.muted, font: FONT, labelFont: FONT, label: axis.label, labelSize: 20, labelGap: 2,
    grid: { stroke: theme.grid, width: 1 }, ticks: { stroke: theme.grid, width: 1, size: 4 },
    values: (_, splits) => splits.map(split => (split == null ? "" : (axis.text ?? tick)(split))),
  };
  if (axis.splits || axis.log) {
    options.splits = (_, __, low, high) => (axis.splits ?? logSplits)(low, high);
    options.filter = (_, splits) => splits;
  }
  if (vertical) options.size = (_, values) => 14 + 6.6 * Math.max(3, ...(values ?? []).map(value => value.length));
  else options.size = 24;
  return options;
}

/** What all plots set alike. `hooks.moved` is called when the mouse moves the cursor, `hooks.zoomed(low, high)` after a
 * drag; while `hooks.still()` the cursor moves with its value. */
function plotOptions(frame, x, y, range, hooks) {
  const theme = frame.report.theme;
  const width = Math.max(220, frame.plot.clientWidth);
  const across = width < NARROW && x.short ? { ...x, label: x.short } : x;
  return {
    width,
    height: frame.chart.wide ? 340 : 270,
    legend: { show: false },
    padding: [10, 12, 0, 0],
    scales: {
      x: { time: false, distr: x.log ? 3 : 1, range: () => range.range },
      y: { distr: y.log ? 3 : 1, range: y.range ?? (y.log ? logFromData : fromZero) },
    },
    axes: [axisOptions(theme, across, false), axisOptions(theme, y, true)],
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => null } },
    hooks: {
      setCursor: [plot => { if (!hooks.still()) hooks.moved(plot); }],
      setSelect: [plot => {
        if (plot.select.width < 4) return;
        const at = left => range.to(plot.posToVal(left, "x"));
        hooks.zoomed(at(plot.select.left), at(plot.select.left + plot.select.width));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }],
    },
  };
}

/** The moves that all plots share; `data` holds the x values first, `read(aloud)` shows the values at the cursor. */
class PlotView {
  constructor(frame, options, data, range) {
    Object.assign(this, { frame, data, range, index: null, forced: null, still: false });
    this.plot = new uPlot(options(this), data, frame.plot);
    this.plot.over.addEventListener("dblclick", () => this.reset());
    this.plot.over.addEventListener("pointerleave", () => this.leave());
    this.keepZoom();
  }

  /** Takes up the zoom that the chart had before it was drawn anew, if it still fits. */
  keepZoom() {
    const { memory } = this.frame;
    if (memory.key === this.range.key && memory.range) {
      this.range.show(...memory.range.map(this.range.to));
      this.apply(false);
    }
    memory.key = this.range.key;
  }

  move(dx) {
    if (!dx) return false;
    this.goTo(this.index == null ? this.first(dx) : this.index + dx);
  }

  first(dx) {
    const [low, high] = this.range.range;
    const inside = this.data[0].findIndex(x => x >= low);
    return dx > 0 ? Math.max(0, inside) : this.data[0].findLastIndex(x => x <= high);
  }

  edge(end) {
    this.goTo(end < 0 ? 0 : this.data[0].length - 1);
  }

  goTo(index) {
    this.index = Math.min(Math.max(index, 0), this.data[0].length - 1);
    if (this.range.reveal(this.data[0][this.index])) this.apply();
    else this.place();
    this.read(true);
  }

  /** Puts the cursor's line where its index is. */
  place() {
    const x = this.index == null ? null : this.data[0][this.index];
    const seen = x != null && x >= this.range.range[0] && x <= this.range.range[1];
    this.forced = this.index;
    this.plot.setCursor(seen ? { left: this.plot.valToPos(x, "x"), top: this.plot.over.clientHeight / 2 } : { left: -10, top: -10 }, false);
    this.forced = null;
  }

  zoom(factor) {
    this.range.zoom(factor, this.index == null ? null : this.data[0][this.index]);
    this.apply();
  }

  showRange(low, high) {
    this.range.show(low, high);
    this.apply();
  }

  reset() {
    this.range.range = this.range.whole;
    this.apply();
  }

  /** Draws the range that is shown now. Charts of one `share` name show the same. */
  apply(share = true) {
    this.frame.memory.range = this.range.range === this.range.whole ? null : this.range.range;
    const [min, max] = this.range.range;
    this.still = true; // the cursor stays on its value, not at its pixel
    this.plot.batch(() => this.plot.setScale("x", { min, max }));
    this.still = false;
    this.place();
    if (share && this.share) this.frame.report.others(this).forEach(other => other.follow(this.range));
  }

  follow({ range, whole }) {
    if (range === whole) this.range.range = this.range.whole;
    else this.range.show(...range);
    this.apply(false);
  }

  leave() {
    this.index = null;
    this.place();
    this.frame.read("", [], false);
  }

  destroy() {
    this.plot.destroy();
  }
}
