"use strict";
// Wear of the flash: for each run a map of planes (rows) by shares of their blocks (columns), all on one scale.

/** Dark to light, perceptually even and safe for the colour-blind (the map "viridis" of Matplotlib, CC0). */
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];

function wearMaps(frame) {
  const maps = frame.runs.map(run => ({ run, rows: (run.data.wear?.map ?? []).filter(row => row.length) })).filter(map => map.rows.length);
  if (!maps.length) return frame.empty("No run has a map of its wear.");
  const scale = wearScale(maps);
  const views = maps.map(map => new HeatMap(frame, map, scale));
  frame.plot.append(rampLegend(scale), el("div", { class: "maps" }, ...views.map(view => view.box)));
  views.forEach(view => view.draw());
  return new WearView(frame, maps, views);
}

function wearScale(maps) {
  const values = maps.flatMap(map => map.rows.flat()).filter(Number.isFinite);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return { low, high, share: value => (high > low ? (value - low) / (high - low) : 0.5) };
}

function rampLegend({ low, high }) {
  const even = high > low;
  const colours = even ? RAMP.join(", ") : `${rampColour(0.5)}, ${rampColour(0.5)}`;
  const ends = even ? [low, (low + high) / 2, high] : [low];
  return el("div", { class: "ramp" }, el("p", { class: "ends" }, "Mean erases of a block"),
    el("i", { style: `background: linear-gradient(90deg, ${colours})` }), el("p", { class: "ends" }, ...ends.map(value => el("span", {}, significant(value)))));
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
  constructor(frame, { run, rows }, scale) {
    Object.assign(this, { frame, run, rows, scale, cell: null });
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
    const size = `${count(this.rows.length)} ${this.rows.length === 1 ? "plane" : "planes"} (rows)`;
    const box = el("div", { class: "map" },
      el("p", {}, swatch(this.run.index), el("span", {}, this.run.label)), this.canvas,
      el("p", { class: "ends" }, el("span", {}, "First block"), el("span", {}, size), el("span", {}, "Last block")));
    this.frame.focusable(box, `${this.frame.chart.title} of ${this.run.label}: ${size} by ${this.columns} shares of their blocks`);
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
    const value = this.rows[y][x];
    this.frame.read(`${this.run.label}: plane ${y}, block share ${x + 1} of ${this.columns}: ${significant(value)} erases`, [], aloud);
  }

  leave() {
    if (!this.cell) return;
    this.cell = null;
    this.draw();
    this.frame.read("", [], false);
  }
}

/** All maps, for the download. */
class WearView {
  constructor(frame, maps, views) {
    Object.assign(this, { frame, maps, views });
  }

  rows() {
    const cells = ({ run, rows }) => rows.flatMap((row, plane) => row.map((value, share) => [run.label, plane, share, value]));
    return [["run", "plane", "block_share", "mean_erases"], ...this.maps.flatMap(cells)];
  }
}
