"use strict";
// Charts of the intervals of every run: a column of the series over another one that rises.

/** What columns are drawn over: the column `key`, in a unit that suits its end. */
const TIME = { key: "time_s", section: "Over time", share: "time", unit: timeUnit, label: unit => `Time since ${ORIGIN} (${unit.name})`, short: unit => `Time (${unit.name})` };
const WRITTEN = { key: "written_bytes", section: "Over written volume", share: "written", unit: byteUnit, label: unit => `Written by the workload (${unit.name})` };

/** A chart of the intervals of every run. A choice names a column of the series by its `key` (or several `lines`), or
 * gets it by `column(series)`, and says what it is `of` in which `unit`, after division by `size`. With `total`, the
 * column has counts of each interval, and what is shown is what was counted until its end. `none` is said when no run
 * has values; `zeros` instead when zeros alone count as none, too. */
function over(against, chart) {
  const has = (choice, runs) => runs.some(run => (choice.lines ?? [choice]).some(part => seriesLine(run, choice, part, against).y.length));
  return { section: against.section, has, ...chart, render: frame => seriesPlot(frame, frame.chosen, against) };
}

function overTime(chart) {
  return over(TIME, chart);
}

function seriesPlot(frame, choice, against) {
  const lines = frame.runs.flatMap(run => (choice.lines ?? [choice]).map(part => seriesLine(run, choice, part, against)));
  const end = frame.all.reduce((last, run) => Math.max(last, run.data.series?.[against.key]?.at(-1) ?? 0), 0);
  const unit = against.unit(end);
  for (const line of lines) line.step = (line.step ?? Infinity) / unit.size;
  const suffix = choice.unit ? ` ${choice.unit}` : "";
  const axes = {
    x: { label: against.label(unit), short: against.short?.(unit), size: unit.size, share: frame.chart.place ? null : against.share, csv: against.key, value: value => `${significant(value)} ${unit.name}` },
    y: {
      label: choice.unit && !choice.log ? `${choice.of} (${choice.unit})` : choice.of, size: choice.size ?? 1, log: choice.log,
      text: choice.text, value: choice.text ?? (value => (value == null ? MISSING : significant(value) + suffix)), csv: choice.key ?? choice.csv,
    },
  };
  return linePlot(frame, lines, axes, choice.none ?? choice.zeros);
}

function seriesLine(run, { log, zeros, total, lines }, { key, column, name, thin }, against) {
  const series = run.data.series ?? {};
  const all = column ? column(series) : series[key];
  const { x, y } = distinct(series[against.key] ?? [], (log ? positive(all) : all) ?? [], total);
  const seen = y.some(value => (zeros ? value > 0 : value != null));
  return { run, name: lines ? name : "", thin, x: seen ? x : [], y: seen ? y : [], step: series.interval_s ?? widest(x) };
}

/** The values where x rises, or with `total` their sums until there. Where x stands still, nothing but sums moves. */
function distinct(xs, ys, total) {
  const points = { x: [], y: [] };
  let sum = 0;
  for (let index = 0; index < Math.min(xs.length, ys.length); index += 1) {
    sum += ys[index];
    const last = points.x.length - 1;
    if (xs[index] > (points.x[last] ?? 0)) {
      points.x.push(xs[index]);
      points.y.push(total ? sum : ys[index]);
    } else if (total && last >= 0) points.y[last] = sum;
  }
  return points;
}

/** The longest way from one value to the next. */
function widest(xs) {
  return xs.reduce((most, x, index) => Math.max(most, x - (xs[index - 1] ?? 0)), 0);
}

/** A logarithmic axis has no place for 0. */
function positive(values) {
  return values?.map(value => (value > 0 ? value : null));
}
