"use strict";
// Charts of the intervals of every run: a column of the series over another one that rises.

/** What columns are drawn over: the column `key` in a unit that suits its end; rates are by `per`. */
const TIME = {
  key: "time_s", section: "Over time", share: "time", unit: timeUnit, per: { size: 1, name: "s" },
  label: unit => `Time since ${ORIGIN} (${unit.name})`,
};
const WRITTEN = {
  key: "written_bytes", section: "Over written volume", share: "written", unit: byteUnit, per: { size: 2 ** 30, name: "GiB" },
  label: unit => `Written by the workload (${unit.name})`,
};

/** A chart of the intervals of every run. A choice names a column of the series by its `key` (or several `lines`), or
 * gets it by `column(series)`, and says what it is `of` in which `unit`, after division by `size`. With `rate`, values
 * are what was counted in each interval, and are shown by second or by GiB written. `none` is said when no run has
 * values; `zeros` instead when zeros alone count as none, too. */
function over(against, chart) {
  return { section: against.section, ...chart, render: frame => seriesPlot(frame, frame.chosen, against) };
}

function overTime(chart) {
  return over(TIME, chart);
}

function seriesPlot(frame, choice, against) {
  const lines = frame.runs.flatMap(run => (choice.lines ?? [choice]).map(part => seriesLine(run, choice, part, against)));
  const end = frame.report.runs.reduce((last, run) => Math.max(last, run.data.series?.[against.key]?.at(-1) ?? 0), 0);
  const unit = against.unit(end);
  for (const line of lines) line.step = (line.step ?? Infinity) / unit.size;
  const measure = choice.rate ? `${choice.unit}/${against.per.name}` : choice.unit;
  const suffix = measure ? ` ${measure}` : "";
  const axes = {
    x: { label: against.label(unit), size: unit.size, share: against.share, csv: against.key, value: value => `${significant(value)} ${unit.name}` },
    y: {
      label: measure && !choice.log ? `${choice.of} (${measure})` : choice.of, size: choice.size ?? 1, log: choice.log,
      text: choice.text, value: choice.text ?? (value => (value == null ? MISSING : significant(value) + suffix)), csv: choice.key ?? choice.csv,
    },
  };
  return linePlot(frame, lines, axes, choice.none ?? choice.zeros);
}

function seriesLine(run, { log, zeros, rate, lines }, { key, column, name, thin }, against) {
  const series = run.data.series ?? {};
  const all = column ? column(series) : series[key];
  const { x, y } = distinct(series[against.key] ?? [], (log ? positive(all) : all) ?? [], rate ? against.per : null);
  const seen = y.some(value => (zeros ? value > 0 : value != null));
  return { run, name: lines ? name : "", thin, x: seen ? x : [], y: seen ? y : [], step: series.interval_s ?? widest(x) };
}

/** The values where x rises: an interval in which x stood still counts with the next one if values are counts to be
 * shown `per` some x, and is left out otherwise. */
function distinct(xs, ys, per) {
  const points = { x: [], y: [] };
  let [last, sum] = [0, 0];
  for (let index = 0; index < Math.min(xs.length, ys.length); index += 1) {
    sum += ys[index];
    if (xs[index] <= last) continue;
    points.x.push(xs[index]);
    points.y.push(per ? (sum * per.size) / (xs[index] - last) : ys[index]);
    [last, sum] = [xs[index], 0];
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
