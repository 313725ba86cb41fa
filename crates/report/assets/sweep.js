"use strict";
// The chart of a sweep: a figure over an axis, a line for each combination of the other axes, means with their errors.

const SWEEP = JSON.parse(document.getElementById("data").textContent).sweep;

/** Lines that can be told apart; further ones are not drawn. */
const MOST_LINES = 24;
/** Lines from which on an axis begins with one of its values. */
const MANY_LINES = 12;
/** The same for an axis that changes nothing. */
const FEW_LINES = 4;
/** Factor below which a figure does not depend on an axis. */
const WORTH = 1.02;
/** Greatest over least value from which on an axis of numbers is logarithmic. */
const LOG_FROM = 16;

/** The value of a text that is a number, a fraction or a size such as 64k; NaN of others. */
function axisNumber(text) {
  const size = /^([0-9.]+) ?([kmgt])(i?b)?$/i.exec(text.trim());
  if (size) return Number(size[1]) * 1024 ** (1 + "kmgt".indexOf(size[2].toLowerCase()));
  const parts = text.split("/");
  return parts.length === 2 ? Number(parts[0] || NaN) / Number(parts[1] || NaN) : Number(text.trim() || NaN);
}

/** An axis with its values as numbers, if all are. */
function sweepAxis(axis, index) {
  const numbers = axis.values.map(axisNumber);
  const isNumeric = numbers.every(Number.isFinite);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  return { ...axis, index, numbers, isNumeric, log: isNumeric && least > 0 && most / least >= LOG_FROM };
}

const SWEEP_AXES = SWEEP.axes.map(sweepAxis);

/** How values of a figure are shown: the size and the name of a unit that suits the greatest, and a value as text. */
function sweepUnit({ unit, means }) {
  const most = Math.max(0, ...means.filter(mean => mean != null));
  if (unit === "bytes") return { ...byteUnit(most), text: bytes };
  if (unit === "ns" || unit === "s") {
    const second = unit === "s" ? 1 : 1e9;
    const found = timeUnit(most / second);
    return { name: found.name, size: found.size * second, text: value => duration(value / second * 1e9) };
  }
  return { name: "", size: 1, text: significant };
}

/** The axis of numbers that matters most, if one does; else whatever axis does. */
function firstAxis() {
  const sorted = [...SWEEP_AXES].sort((a, b) => b.effect - a.effect);
  return sorted.find(axis => axis.isNumeric && axis.effect > WORTH) ?? sorted[0];
}

/** What is chosen: the figure, the x axis, and of each other axis a value or a line for each (-1). */
class SweepChoice {
  constructor() {
    this.figure = SWEEP.start;
    this.fixed = SWEEP_AXES.map(() => -1);
    this.fromZero = true;
    this.setAxis(firstAxis().index);
  }

  /** Takes another x axis. Of the other axes those that matter least begin with one value, until lines are few; those that
   * change nothing, until they are very few. */
  setAxis(index) {
    this.axis = index;
    this.fixed.fill(-1);
    const others = this.others().sort((a, b) => a.effect - b.effect);
    for (const axis of others) if (this.lines() > (axis.effect > WORTH ? MANY_LINES : FEW_LINES)) this.fixed[axis.index] = 0;
  }

  others() {
    return SWEEP_AXES.filter(axis => axis.index !== this.axis);
  }

  /** Axes that have a line for each value. */
  apart() {
    return this.others().filter(axis => this.fixed[axis.index] < 0);
  }

  lines() {
    return this.apart().reduce((all, axis) => all * axis.values.length, 1);
  }

  has(cell) {
    return this.others().every(axis => this.fixed[axis.index] < 0 || cell[axis.index] === this.fixed[axis.index]);
  }
}

/** The lines of a choice: `{run, name, x, y, error}`, in the order of their values. */
function sweepLines(choice) {
  const figure = SWEEP.figures[choice.figure];
  const [axis, apart] = [SWEEP_AXES[choice.axis], choice.apart()];
  const lines = new Map();
  SWEEP.cells.forEach((cell, at) => {
    if (!choice.has(cell) || figure.means[at] == null) return;
    const key = apart.map(other => cell[other.index]);
    const id = key.join(" ");
    if (!lines.has(id)) lines.set(id, { key, points: [] });
    const place = cell[choice.axis];
    lines.get(id).points.push({ x: axis.isNumeric ? axis.numbers[place] : place, y: figure.means[at], error: figure.errors[at] ?? 0, at });
  });
  const before = (a, b) => { const at = a.key.findIndex((value, place) => value !== b.key[place]); return at < 0 ? 0 : a.key[at] - b.key[at]; };
  const label = key => apart.map((other, place) => `${other.name} ${other.values[key[place]]}`).join(", ") || figure.title;
  return [...lines.values()].sort(before).map(({ key, points }, index) => {
    points.sort((a, b) => a.x - b.x);
    const run = { index, label: label(key), shown: true };
    return { run, name: "", points, x: points.map(point => point.x), y: points.map(point => point.y), error: points.map(point => point.error), step: 0 };
  });
}

/** The axis's own values as its ticks, where they are few and not too close to each other. */
function sweepSplits({ numbers, log }) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = sorted.map(value => (log ? Math.log(value) : value));
  const gaps = at.slice(1).map((value, index) => (value - at[index]) / (at[at.length - 1] - at[0]));
  return Math.min(...gaps) > 0.07 ? (low, high) => sorted.filter(value => value >= low && value <= high) : undefined;
}

/** The axes of the plot. */
function sweepPlotAxes(choice, lines) {
  const figure = SWEEP.figures[choice.figure];
  const axis = SWEEP_AXES[choice.axis];
  const unit = sweepUnit(figure);
  const ends = lines.flatMap(line => line.points.flatMap(({ y, error }) => [y - error, y + error])).map(end => end / unit.size);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const isZero = choice.fromZero && low >= 0;
  const room = (high - (isZero ? 0 : low)) * 0.06 || Math.abs(high) * 0.06 || 1;
  const named = value => axis.values[value] ?? "";
  const numbers = {
    label: axis.name, log: axis.log, size: 1, dots: true, csv: axis.name, value: value => `${axis.name} ${tick(value)}`,
    text: value => axis.values[axis.numbers.indexOf(value)] ?? tick(value), splits: sweepSplits(axis),
  };
  const names = {
    label: axis.name, size: 1, whole: true, apart: true, csv: axis.name, text: named, value: value => `${axis.name} ${named(value)}`,
    splits: (from, to) => axis.values.map((_, index) => index).filter(index => index >= from && index <= to),
  };
  return {
    x: axis.isNumeric ? numbers : names,
    y: {
      label: unit.name ? `${figure.title} (${unit.name})` : figure.title, size: unit.size, csv: figure.path,
      value: value => (value == null ? MISSING : unit.text(value * unit.size)), range: () => [isZero ? 0 : low - room, high + room],
    },
    rows: () => sweepRows(choice, lines, figure),
  };
}

/** The chart as rows for CSV. */
function sweepRows(choice, lines, figure) {
  const heads = [...SWEEP_AXES.map(axis => axis.name), "runs", figure.path, "standard_error"];
  const row = ({ at }) => [...SWEEP.cells[at].map((place, axis) => SWEEP_AXES[axis].values[place]), SWEEP.runs[at], figure.means[at], figure.errors[at]];
  return [heads, ...lines.flatMap(line => line.points.map(row))];
}

/** A list of choices that draws the chart anew and keeps the focus. */
function sweepSelect(frame, name, options, value, choose) {
  const id = `sweep-${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const act = () => { choose(Number(pick.value)); frame.draw(); document.getElementById(id)?.focus(); };
  const pick = el("select", { id, onchange: act }, ...options.map(([text, at]) => el("option", { value: at, selected: at === value }, text)));
  return el("label", {}, name, pick);
}

function sweepControls(frame, choice) {
  const figures = SWEEP.figures.map((figure, index) => [figure.title, index]);
  const axes = SWEEP_AXES.map(axis => [axis.name, axis.index]);
  const filter = axis => sweepSelect(frame, axis.name, [["a line each", -1], ...axis.values.map((value, index) => [value, index])], choice.fixed[axis.index],
    value => { choice.fixed[axis.index] = value; });
  const zero = el("input", { id: "sweep-zero", type: "checkbox", checked: choice.fromZero, onchange: () => { choice.fromZero = zero.checked; frame.draw(); document.getElementById("sweep-zero").focus(); } });
  return [
    sweepSelect(frame, "Figure", figures, choice.figure, value => { choice.figure = value; }),
    sweepSelect(frame, "Over", axes, choice.axis, value => choice.setAxis(value)),
    ...choice.others().map(filter),
    el("label", {}, zero, "from 0"),
  ];
}

function sweepChart(frame) {
  const choice = frame.memory.choice ??= new SweepChoice();
  const all = sweepLines(choice);
  const lines = all.slice(0, MOST_LINES);
  const { chart } = frame;
  chart.title = `${SWEEP.figures[choice.figure].title} over ${SWEEP_AXES[choice.axis].name}`;
  chart.runs = lines.map(line => line.run);
  frame.figure.querySelector("h3").textContent = chart.title;
  frame.controls.replaceChildren(...sweepControls(frame, choice));
  const view = linePlot(frame, lines, sweepPlotAxes(choice, lines), "No combination has this figure.");
  if (all.length > lines.length) frame.plot.append(el("p", { class: "note" }, `${lines.length} of ${all.length} lines are drawn: choose a value of an axis.`));
  return view;
}

const CHARTS = SWEEP.figures.length && SWEEP_AXES.length ? [{
  id: "sweep", place: "first", title: "A figure over an axis", wide: true, free: true, runs: [],
  about: "Means over the seeds, with their standard errors as bars. A line is a combination of the axes that are not fixed to one value; over an axis of names its points are not joined.",
  render: sweepChart,
}] : [];
