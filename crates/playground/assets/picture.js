"use strict";
// Maps of a run: cells, coloured by the share of what is still needed in each.

/** A cell that is erased and waits to be filled. */
const FREE = -1;

/** A map with a heading, a picture and a sentence that says what is seen. */
class Picture {
  constructor(title, about) {
    this.canvas = el("canvas", { role: "img", "aria-label": title });
    this.says = el("p", { class: "says" });
    this.box = el("div", { class: "picture" }, el("h4", {}, title), el("p", { class: "about" }, about), this.canvas, this.says);
    this.title = title;
  }

  /** Shows `cells` in percent. They are laid out in columns of `depth` cells, side by side in as many bands as there must be. */
  show(cells, depth, words) {
    this.last = [cells, depth, words];
    this.box.hidden = !cells.length;
    if (!cells.length) return;
    const sentence = words(cells, depth);
    if (this.says.textContent !== sentence) {
      this.says.textContent = sentence;
      this.canvas.setAttribute("aria-label", `${this.title}: ${sentence}`);
    }
    this.paint(cells, depth);
  }

  again() {
    if (this.last) this.show(...this.last);
  }

  paint(cells, depth) {
    const scale = Math.min(devicePixelRatio || 1, 2);
    const width = Math.max(120, this.box.clientWidth) * scale;
    const columns = Math.ceil(cells.length / depth);
    const across = depth === 1 ? columns : Math.ceil(columns / Math.ceil(columns / 100));
    const place = depth === 1 ? evenPlace(cells.length, width, scale) : linePlace(columns, across, depth, width, scale);
    const { canvas } = this;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== place.height) canvas.height = place.height;
    canvas.style.height = `${place.height / scale}px`;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const free = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    const colours = Array.from({ length: 101 }, (_, percent) => rampColour(percent / 100));
    cells.forEach((cell, index) => {
      context.fillStyle = cell === FREE ? free : colours[cell];
      context.fillRect(...place.of(index));
    });
  }
}

/** Cells one after another, row by row, with gaps. */
function evenPlace(count, width, scale) {
  const columns = Math.max(1, Math.min(count, Math.round(width / scale / 11)));
  const size = width / columns;
  const gap = Math.max(1, Math.round(scale));
  const at = index => Math.round(index * size);
  return {
    height: Math.ceil(Math.ceil(count / columns) * size),
    of: index => {
      const [x, y] = [index % columns, Math.floor(index / columns)];
      return [at(x), at(y), at(x + 1) - at(x) - gap, at(y + 1) - at(y) - gap];
    },
  };
}

/** Lines as columns of cells, in bands below each other. */
function linePlace(columns, across, depth, width, scale) {
  const size = width / across;
  const cell = Math.max(1, Math.round(2.5 * scale));
  const band = depth * cell + Math.round(4 * scale);
  const at = index => Math.round(index * size);
  const gap = size > 3 * scale ? Math.round(scale) : 0;
  return {
    height: Math.ceil(columns / across) * band,
    of: index => {
      const [column, y] = [Math.floor(index / depth), index % depth];
      const x = column % across;
      return [at(x), Math.floor(column / across) * band + y * cell, at(x + 1) - at(x) - gap, cell];
    },
  };
}

/** The volume's parts in a sentence. */
function volumeWords(cells) {
  const [empty, full] = [cells.filter(cell => cell === FREE).length, cells.filter(cell => cell === 100).length];
  return `${count(cells.length)} parts: ${count(empty)} empty, ${count(full)} full, ${count(cells.length - empty - full)} with holes.`;
}

/** The places of the last writes in a sentence. */
function writeWords(cells) {
  const hit = cells.filter(cell => cell !== FREE).length;
  return hit ? `The last writes went to ${count(hit)} of ${count(cells.length)} parts.` : "Nothing was written just now.";
}

/** The drive's lines in a sentence. */
function driveWords(cells, depth) {
  const lines = cells.length / depth;
  const free = cells.filter((cell, index) => index % depth === 0 && cell === FREE).length;
  const used = cells.filter(cell => cell !== FREE);
  const valid = used.reduce((sum, cell) => sum + cell, 0) / Math.max(1, used.length);
  if (free === lines) return `${count(lines)} lines, all erased.`;
  return `${count(lines)} lines: ${count(free)} erased; of the others ${significant(valid)} % is still needed, the rest is waste.`;
}

/** The colours of the maps, with their meaning. */
function mapLegend() {
  return el("div", { class: "ramp" },
    el("p", { class: "ends" }, "Colours of the volume and the flash"),
    el("div", { class: "row" }, el("i", { class: "free" }), el("span", {}, "empty, ready for new data")),
    el("i", { style: `background: linear-gradient(90deg, ${RAMP.join(", ")})` }),
    el("p", { class: "ends" }, el("span", {}, "only waste"), el("span", {}, "half"), el("span", {}, "all still needed")));
}
