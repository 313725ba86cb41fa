"use strict";
// Maps of cells: for each run rows and columns of values, all on one scale.

/** Dark to light, perceptually even and safe for the colour-blind (the map "viridis" of Matplotlib, CC0). */
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];

/** Draws `maps`, `{run, rows}` each. `kind` says what they are:
 *
 *   none                 said when there are none
 *   values               what the colours are
 *   range                optional; the ends of the scale, else those of the values
 *   text(value), unit    a value as text, and what follows it where there is room
 *   ends, size(rows)     what stands below a map: at both its ends, and between
 *   place(x, y, map)     where a cell lies
 *   columns              of the download: two for the place, one for the value
 */
function heatMaps(frame, maps, kind) {
  const drawn = maps.map(({ run, rows }) => ({ run, rows: rows.filter(row => row.length) })).filter(map => map.rows.length);
  if (!drawn.length) return frame.empty(kind.none);
  const scale = mapScale(drawn, kind);
  const views = drawn.map(map => new HeatMap(frame, map, scale, kind));
  frame.plot.append(rampLegend(scale, kind), el("div", { class: "maps" }, ...views.map(view => view.box)));
  views.forEach(view => view.draw());
  return new MapsView(frame, drawn, kind, scale);
}

function mapScale(maps, { range }) {
  const values = range ?? maps.flatMap(map => map.rows.flat()).filter(Number.isFinite);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return { low, high, share: value => (high > low ? (value - low) / (high - low) : 0.5) };
}

function rampLegend({ low, high }, kind) {
  const even = high > low;
  const colours = even ? RAMP.join(", ") : `${rampColour(0.5)}, ${rampColour(0.5)}`;
  const ends = even ? [low, (low + high) / 2, high] : [low];
  return el("div", { class: "ramp" }, el("p", { class: "ends" }, kind.values),
    el("i", { style: `background: linear-gradient(90deg, ${colours})` }), el("p", { class: "ends" }, ...ends.map(value => el("span", {}, kind.text(value)))));
}

function rampColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const index = Math.min(Math.floor(at), RAMP.length - 2);
  const channel = (colour, offset) => parseInt(colour.slice(offset, offset + 2), 16);
  const mix = offset => Math.round(channel(RAMP[index], offset) + (at - index) * (channel(RAMP[index + 1], offset) - channel(RAMP[index], offset)));
  return `rgb(${mix(1)}, ${mix(3)}, ${mix(5)})`;
}

/** The map of one run; takes the focus by itself. */
class HeatMap {
  constructor(frame, { run, rows }, scale, kind) {
    Object.assign(this, { frame, run, rows, scale, kind, cell: null });
    this.columns = Math.max(...rows.map(row => row.length));
    this.height = Math.min(Math.max(Math.round(220 / rows.length), 3), 18);
    this.canvas = el("canvas", { role: "presentation" });
    this.box = this.build();
    frame.listenTo(this.box, () => this);
    this.box.addEventListener("blur", () => this.leave());
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
  }

  build() {
    const [first, last] = this.kind.ends;
    const size = this.kind.size(this.rows);
    const box = el("div", { class: "map" },
      el("p", {}, swatch(this.run.index), el("span", {}, this.run.label)), this.canvas,
      el("p", { class: "ends" }, el("span", {}, first), el("span", {}, size), el("span", {}, last)));
    this.frame.focusable(box, `${this.frame.chart.title} of ${this.run.label}: ${size}`);
    return box;
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth || 300, this.rows.length * this.height];
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    this.rows.forEach((row, y) => row.forEach((value, x) => {
      if (!Number.isFinite(value)) return;
      context.fillStyle = rampColour(this.scale.share(value));
      context.fillRect(...this.area(x, y));
    }));
    if (this.cell) this.outline(context, ratio);
  }

  /** A cell in pixels of the canvas, on whole pixels so that no seams show. */
  area(x, y) {
    const edge = (index, parts, size) => Math.round((index * size) / parts);
    const [left, right] = [edge(x, this.columns, this.canvas.width), edge(x + 1, this.columns, this.canvas.width)];
    const [top, bottom] = [edge(y, this.rows.length, this.canvas.height), edge(y + 1, this.rows.length, this.canvas.height)];
    return [left, top, right - left, bottom - top];
  }

  outline(context, ratio) {
    const [x, y, width, height] = this.area(...this.cell);
    for (const [colour, line] of [["#000000", 4], ["#ffffff", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = line * ratio;
      context.strokeRect(x, y, width, height);
    }
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = (position, size, parts) => Math.min(Math.max(Math.floor((position / size) * parts), 0), parts - 1);
    this.goTo(at(event.clientX - box.left, box.width, this.columns), at(event.clientY - box.top, box.height, this.rows.length), false);
  }

  move(dx, dy) {
    const [x, y] = this.cell ?? [dx > 0 ? -1 : 0, dy > 0 ? -1 : 0];
    this.goTo(Math.min(Math.max(x + dx, 0), this.columns - 1), Math.min(Math.max(y + dy, 0), this.rows.length - 1), true);
  }

  edge(end) {
    this.goTo(end < 0 ? 0 : this.columns - 1, this.cell?.[1] ?? 0, true);
  }

  goTo(x, y, aloud) {
    this.cell = [x, y];
    this.draw();
    this.frame.read(`${this.run.label}: ${this.kind.place(x, y, this)}: ${this.kind.text(this.rows[y][x])}${this.kind.unit ?? ""}`, [], aloud);
  }

  leave() {
    if (!this.cell) return;
    this.cell = null;
    this.draw();
    this.frame.read("", [], false);
  }
}

/** All maps, for the download. */
class MapsView {
  constructor(frame, maps, kind, scale) {
    Object.assign(this, { frame, maps, kind, scale });
  }

  rows() {
    const cells = ({ run, rows }) => rows.flatMap((row, y) => row.map((value, x) => [run.label, y, x, value]));
    return [["run", ...this.kind.columns], ...this.maps.flatMap(cells)];
  }
  svg(theme) {
    return mapsSvg(this, theme);
  }
}
