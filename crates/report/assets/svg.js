"use strict";
// Charts as SVG files: vectors with title, axes, labels and legend, in the light colours. They are drawn anew from what a
// view shows, not from its pixels.

const SVG_WIDTH = 820;
const SVG_FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
/** Width of a letter on average, in pixels; it is only for where lines break. */
const SVG_LETTER = 6.6;

/** A drawing under way: elements as text. */
class Svg {
  constructor(title, theme) {
    Object.assign(this, { title, theme, parts: [], defs: [] });
    this.add("text", { x: 16, y: 24, "font-size": 15, "font-weight": 650 }, title);
  }

  add(tag, attributes, text) {
    this.parts.push(svgElement(tag, attributes, text));
  }

  /** A line of text; `anchor` is start, middle or end. */
  label(x, y, text, anchor = "start", more = {}) {
    this.add("text", { x: px(x), y: px(y), "text-anchor": anchor, ...more }, text);
  }

  /** The whole file. */
  file(height) {
    const box = { xmlns: "http://www.w3.org/2000/svg", width: SVG_WIDTH, height: px(height), viewBox: `0 0 ${SVG_WIDTH} ${px(height)}`, role: "img", style: `font: ${SVG_FONT}`, fill: this.theme.get("--ink") };
    const open = svgElement("svg", box, "").replace("></svg>", ">");
    const page = svgElement("rect", { width: "100%", height: "100%", fill: this.theme.get("--page") });
    return [open, svgElement("title", {}, this.title), `<defs>${this.defs.join("")}</defs>`, page, ...this.parts, "</svg>"].join("\n") + "\n";
  }

  /** The legend from `y` on, in as many columns as fit: `{label, mark(svg, x, y)}` each. Returns where it ends. */
  legend(items, y) {
    const widest = items.reduce((most, item) => Math.max(most, item.label.length), 0) * SVG_LETTER + 70;
    const columns = Math.min(Math.max(Math.floor((SVG_WIDTH - 32) / widest), 1), Math.max(items.length, 1));
    items.forEach((item, index) => {
      const at = { x: 16 + (index % columns) * ((SVG_WIDTH - 32) / columns), y: y + Math.floor(index / columns) * 18 };
      item.mark(this, at.x, at.y);
      this.label(at.x + 42, at.y + 4, item.label);
    });
    return y + Math.ceil(items.length / columns) * 18;
  }

  /** The name of a fill that looks like a cause's texture in the style sheet. */
  texture(index) {
    const colour = this.theme.get(`--cause-${index % TEXTURES}`);
    const angle = { 1: 45, 2: 90, 3: -45, 5: 0, 7: 45 }[index % TEXTURES];
    if (angle === undefined) return colour;
    const [id, wide] = [`texture-${index % TEXTURES}`, index % TEXTURES === 7 ? 4 : 6];
    const tile = svgElement("rect", { width: wide, height: wide, fill: colour }) + svgElement("rect", { width: wide, height: wide / 3, fill: "#ffffff", "fill-opacity": 0.42 });
    const pattern = svgElement("pattern", { id, width: wide, height: wide, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` }, "").replace("></pattern>", `>${tile}</pattern>`);
    if (!this.defs.includes(pattern)) this.defs.push(pattern);
    return `url(#${id})`;
  }
}

function svgElement(tag, attributes, text) {
  const safe = value => String(value).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const listed = Object.entries(attributes).filter(([, value]) => value != null && value !== "").map(([name, value]) => ` ${name}="${safe(value)}"`);
  return `<${tag}${listed.join("")}${text == null ? "/>" : `>${safe(text)}</${tag}>`}`;
}

/** A coordinate with as many digits as can be seen. */
function px(value) {
  return Number(value.toFixed(2));
}

/** The area of a plot with its axes. `x` and `y` are `{axis, low, high}`. */
class SvgPlot {
  constructor(svg, x, y, height = 320) {
    const ticks = side => {
      const splits = (side.axis.splits ?? (side.axis.log ? logSplits : evenSplits))(side.low, side.high, 7);
      return splits.filter(split => split >= side.low && split <= side.high).map(split => [split, (side.axis.text ?? tick)(split)]).filter(([, text]) => text !== "");
    };
    Object.assign(this, { svg, x, y, xTicks: ticks(x), yTicks: ticks(y) });
    const widest = this.yTicks.reduce((most, [, text]) => Math.max(most, text.length), 3);
    Object.assign(this, { left: 40 + widest * SVG_LETTER, right: SVG_WIDTH - 24, top: 44, bottom: 44 + height });
    this.frame();
  }

  /** Where a value lies, in pixels. */
  at(value, side) {
    const of = side.axis.log ? Math.log10 : value => value;
    return (of(value) - of(side.low)) / (of(side.high) - of(side.low));
  }

  px(value) { return px(this.left + this.at(value, this.x) * (this.right - this.left)); }
  py(value) { return px(this.bottom - this.at(value, this.y) * (this.bottom - this.top)); }

  frame() {
    const { svg, left, right, top, bottom } = this;
    const [grid, muted] = [svg.theme.grid, svg.theme.muted];
    const area = { x: left, y: top, width: right - left, height: bottom - top };
    svg.defs.push(svgElement("clipPath", { id: "area" }, "").replace("></clipPath>", `>${svgElement("rect", area)}</clipPath>`));
    for (const [value, text] of this.yTicks) {
      svg.add("path", { d: `M${left} ${this.py(value)}H${right}`, stroke: grid });
      svg.label(left - 6, this.py(value) + 4, text, "end", { fill: muted });
    }
    let free = -Infinity; // labels of logarithmic axes may be close to each other
    for (const [value, text] of this.xTicks) {
      svg.add("path", { d: `M${this.px(value)} ${top}V${bottom}`, stroke: grid });
      const half = (text.length * SVG_LETTER) / 2;
      if (this.px(value) - half < free) continue;
      free = this.px(value) + half + 4;
      svg.label(this.px(value), bottom + 17, text, "middle", { fill: muted });
    }
    svg.add("path", { d: `M${left} ${top}V${bottom}H${right}`, fill: "none", stroke: muted });
    svg.label((left + right) / 2, bottom + 36, this.x.axis.label, "middle");
    svg.label(0, 0, this.y.axis.label, "middle", { transform: `translate(18 ${(top + bottom) / 2}) rotate(-90)` });
  }

  path(d, attributes) {
    if (d) this.svg.add("path", { d, "clip-path": "url(#area)", ...attributes });
  }

  /** The path of a line through what is defined; null is a gap. */
  line(xs, ys, steps) {
    let [d, before] = ["", null];
    xs.forEach((x, index) => {
      const y = ys[index];
      if (y === undefined) return;
      if (y === null) { before = null; return; }
      const [left, top] = [this.px(x), this.py(y)];
      d += before == null ? `M${left} ${top}` : steps ? `H${left}V${top}` : `L${left} ${top}`;
      before = top;
    });
    return d;
  }
}

/** The title of what a chart shows now. */
function svgTitle(frame) {
  const { of, title } = frame.chart;
  return [of, title, frame.choiceName].filter(Boolean).join(": ");
}

/** A sample of a run's line. */
function svgSwatch(theme, run, thin) {
  return (svg, x, y) => svg.add("path", { d: `M${px(x)} ${y}h34`, stroke: theme.run(run.index), "stroke-width": thin ? 1.25 : 2.5, "stroke-dasharray": theme.dash(run.index).join(" ") });
}

/** The look of a point that no line joins. */
function svgPoint(theme, run) {
  return { fill: isRing(run.index) ? theme.get("--page") : theme.run(run.index), stroke: theme.run(run.index) };
}

/** A sample of such points. */
function svgPointSwatch(theme, run) {
  return (svg, x, y) => svg.add("path", { d: svgDot(px(x + 17), y, dotRadius(run.index)), ...svgPoint(theme, run) });
}

/** Lines, points or bars of a `LineView`. */
function linesSvg(view, theme) {
  const { frame, axes, data, drawn, plot } = view;
  const svg = new Svg(svgTitle(frame), theme);
  const [low, high] = view.range.range;
  const area = new SvgPlot(svg, { axis: axes.x, low, high }, { axis: axes.y, low: plot.scales.y.min, high: plot.scales.y.max });
  drawn.forEach((line, place) => {
    const [xs, ys, colour] = [data[0], data[place + 1], theme.run(line.run.index)];
    if (axes.y.bars) return area.path(svgBars(area, xs, ys, place, drawn.length), { fill: colour });
    if (!axes.x.apart) area.path(area.line(xs, ys, axes.y.steps), { fill: "none", stroke: colour, "stroke-width": line.thin ? 1 : 2, "stroke-dasharray": theme.dash(line.run.index).join(" ") });
    if (line.error) area.path(svgErrors(area, errorsOf(line, axes.x, axes.y)), { fill: "none", stroke: colour, "stroke-width": 1.5 });
    const points = axes.x.whole || axes.x.dots ? ys.map((_, index) => index).filter(index => ys[index] != null) : lonely(ys);
    const [radius, style] = axes.x.apart ? [dotRadius(line.run.index), svgPoint(theme, line.run)] : [3, { fill: colour }];
    area.path(points.map(index => svgDot(area.px(xs[index]), area.py(ys[index]), radius)).join(""), style);
  });
  const items = drawn.map(line => ({ label: [line.run.label, line.name].filter(Boolean).join(", "), mark: axes.x.apart ? svgPointSwatch(theme, line.run) : svgSwatch(theme, line.run, line.thin) }));
  return svg.file(svg.legend(items, area.bottom + 60) + 4);
}

/** Bars of errors with short ends. */
function svgErrors(area, errors) {
  const bar = ([x, low, high]) => {
    const [left, bottom, top] = [area.px(x), area.py(low), area.py(high)];
    return `M${left} ${bottom}V${top}M${px(left - 4)} ${bottom}h8M${px(left - 4)} ${top}h8`;
  };
  return errors.map(bar).join("");
}

function svgDot(x, y, radius) {
  return `M${px(x - radius)} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
}

function svgBars(area, xs, ys, place, count) {
  const [room, ground] = [0.8, area.bottom];
  const bar = (x, y) => {
    const [left, right] = [x + room * (place / count - 0.5), x + room * ((place + 1) / count - 0.5)].map(value => area.px(value));
    return `M${left} ${ground}V${area.py(y)}H${right}V${ground}Z`;
  };
  return xs.map((x, index) => (ys[index] > 0 ? bar(x, ys[index]) : "")).join("");
}

/** The points of a `ScatterView`. */
function scatterSvg(view, theme) {
  const { frame, axes, points, plot } = view;
  const svg = new Svg(`${svgTitle(frame)}: ${view.run.label}`, theme);
  const [low, high] = view.range.range;
  const area = new SvgPlot(svg, { axis: axes.x, low, high }, { axis: axes.y, low: plot.scales.y.min, high: plot.scales.y.max });
  const shape = {
    r: (x, y) => svgDot(x, y, 2.5), w: (x, y) => `M${px(x - 2)} ${px(y - 2)}h4v4h-4z`, d: (x, y) => `M${px(x - 3)} ${px(y - 3)}l6 6m-6 0l6 -6`,
  };
  const style = op => (op === "d" ? { fill: "none", stroke: theme.op(op), "stroke-width": 1.5 } : { fill: theme.op(op) });
  const seen = OPS.filter(({ op }) => points.some(point => point.op === op));
  seen.forEach(({ op }, at) => {
    const own = points.map((point, index) => [point, index]).filter(([point]) => point.op === op);
    area.path(own.map(([, index]) => shape[op](area.px(view.data[0][index]), area.py(view.height(index)))).join(""), style(op));
  });
  const items = seen.map(({ op, name }) => ({ label: name, mark: (svg, x, y) => svg.add("path", { d: shape[op](x + 17, y), ...style(op) }) }));
  return svg.file(svg.legend(items, area.bottom + 60) + 4);
}

/** Stacked bars of a `BarView`, with what stands beside them. */
function barsSvg(view, theme) {
  const { frame, bars, causes, choice, most } = view;
  const svg = new Svg(svgTitle(frame), theme);
  const beside = choice.beside;
  const width = beside ? 470 : SVG_WIDTH - 32;
  let y = 44;
  if (beside) {
    svg.label(16, y, choice.head, "start", { fill: theme.muted });
    svg.label(16 + width + 40, y, beside.head, "start", { fill: theme.muted });
    y += 20;
  }
  for (const bar of bars) {
    svgSwatch(theme, bar.run)(svg, 16, y - 4);
    svg.label(58, y, bar.run.label);
    svg.label(16 + width, y, choice.text(bar.total / bar.whole), "end");
    let x = 16;
    bar.parts.forEach((part, index) => {
      const share = (width * part) / bar.whole / most;
      if (share > 0) svg.add("rect", { x: px(x), y: y + 6, width: px(share), height: 20, ...svgFill(svg, causes[index], index) });
      x += share;
    });
    if (beside) {
      const [left, room] = [16 + width + 40, SVG_WIDTH - 72 - width];
      svg.label(left + room, y, beside.text(bar.beside), "end");
      svg.add("rect", { x: left, y: y + 6, width: px(view.mostBeside > 0 ? (room * bar.beside) / view.mostBeside : 0), height: 20, fill: theme.run(bar.run.index) });
    }
    y += 48;
  }
  const items = causes.map((cause, index) => ({ label: cause.name, mark: (svg, x, y) => svg.add("rect", { x: x + 14, y: y - 7, width: 14, height: 14, ...svgFill(svg, cause, index) }) }));
  return svg.file(svg.legend(items, y + 6) + 4);
}

function svgFill(svg, cause, place) {
  if (cause.mark) return { fill: svg.theme.get("--panel"), stroke: svg.theme.get("--control"), "stroke-dasharray": "3 2" };
  return { fill: svg.texture(cause.index ?? place) };
}

/** All maps of a `MapsView`. */
function mapsSvg(view, theme) {
  const { frame, maps, kind, scale } = view;
  const svg = new Svg(svgTitle(frame), theme);
  svg.label(16, 50, kind.values);
  svg.defs.push(svgElement("linearGradient", { id: "ramp" }, "").replace("></", `>${RAMP.map((colour, index) => svgElement("stop", { offset: index / (RAMP.length - 1), "stop-color": colour })).join("")}</`));
  svg.add("rect", { x: 16, y: 58, width: 300, height: 12, fill: scale.high > scale.low ? "url(#ramp)" : rampColour(0.5) });
  svg.label(16, 84, kind.text(scale.low));
  svg.label(316, 84, kind.text(scale.high), "end");
  let y = 112;
  for (const { run, rows } of maps) {
    svgSwatch(theme, run)(svg, 16, y - 4);
    svg.label(58, y, run.label);
    const height = Math.min(Math.max(Math.round(220 / rows.length), 3), 18);
    const columns = Math.max(...rows.map(row => row.length));
    rows.forEach((row, index) => svgCells(svg, row, scale, { y: y + 8 + index * height, height, width: (SVG_WIDTH - 32) / columns }));
    y += 8 + rows.length * height + 16;
    svg.label(16, y, kind.ends[0], "start", { fill: theme.muted });
    svg.label(SVG_WIDTH / 2, y, kind.size(rows), "middle", { fill: theme.muted });
    svg.label(SVG_WIDTH - 16, y, kind.ends[1], "end", { fill: theme.muted });
    y += 30;
  }
  return svg.file(y);
}

/** A row of cells; neighbours of one colour are one rectangle. */
function svgCells(svg, row, scale, { y, height, width }) {
  const colours = row.map(value => (Number.isFinite(value) ? rampColour(scale.share(value)) : null));
  let from = 0;
  for (let at = 1; at <= colours.length; at += 1) {
    if (at < colours.length && colours[at] === colours[from]) continue;
    if (colours[from]) svg.add("rect", { x: px(16 + from * width), y, width: px((at - from) * width), height, fill: colours[from], "shape-rendering": "crispEdges" });
    from = at;
  }
}
