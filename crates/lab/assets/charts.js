"use strict";
// The charts, in the order in which they stand. A new chart is one entry:
//
//   id, title, about     its anchor, heading and what it shows
//   section              the heading that it stands under
//   wide                 optional; takes the full width
//   choices              optional; `{name, ...}` for each of several things that it can show
//   start(runs)          optional; the index of the choice at the start, else 0
//   render(frame)        see frame.js

const CHARTS = [
  overTime({
    id: "throughput", title: "Throughput", about: "Means of each interval.",
    choices: [
      { name: "Writes", unit: "MB/s", of: "Written", key: "write_mb_per_s", zeros: "No run writes anything." },
      { name: "Reads", unit: "MB/s", of: "Read", key: "read_mb_per_s", zeros: "No run reads anything." },
      { name: "Requests", unit: "requests/s", of: "Arrived", key: "iops", zeros: "No run has requests." },
    ],
  }),
  overTime({
    id: "waf", title: "Write amplification", about: "Bytes programmed over bytes written by the host, of each interval. Gaps: nothing was written.",
    choices: [{ name: "", unit: "", of: "WAF", key: "waf", none: "No run writes anything, so there is no write amplification." }],
  }),
  overTime({
    id: "read-latency", title: "Read latency", about: "Of the requests of each interval.",
    choices: latencyChoices("read"), start: latencyStart,
  }),
  overTime({
    id: "write-latency", title: "Write latency", about: "Of the requests of each interval.",
    choices: latencyChoices("write"), start: latencyStart,
  }),
  overTime({
    id: "flush-latency", title: "Flush latency", about: "Of the flushes of each interval.",
    choices: latencyChoices("flush"), start: latencyStart,
  }),
  overTime({
    id: "load", title: "Load", about: "Requests in flight are means over arrivals; busy is the share of the dies' time in which they worked.",
    choices: [
      { name: "Queue depth", unit: "requests", of: "In flight", key: "queue_depth", none: "No run has requests." },
      { name: "Dies busy", unit: "%", of: "Dies busy", size: 0.01, key: "die_busy", none: "No run has intervals." },
    ],
  }),
  overTime({
    id: "cleaning", title: "Cleaning and memory", about: "What the drive did by itself in each interval, and what it had at the interval's end.",
    choices: [
      { name: "Moved", unit: "pages", of: "Moved", key: "moved_pages", zeros: "No run moved pages." },
      { name: "Erases", unit: "blocks", of: "Erased", key: "erases", zeros: "No run erased blocks." },
      { name: "Free lines", unit: "lines", of: "Free", key: "free_lines", none: "No run has intervals." },
      { name: "Map", unit: "MiB", of: "Map", size: 2 ** 20, key: "map_bytes", none: "No run has intervals." },
    ],
  }),
  {
    section: "Latency", id: "cdf", title: "Distribution of latency", wide: true,
    about: "The share of commands that took at most this long. Both axes are logarithmic, so that the tail can be seen.",
    choices: [["read", "Reads"], ["write", "Writes"], ["flush", "Flushes"], ["discard", "Discards"]].map(([kind, name]) => ({ kind, name })),
    render: frame => distribution(frame, frame.chart.choices[frame.choice]),
  },
  {
    section: "Requests", id: "addresses", title: "Addresses over time", wide: true,
    about: "A sample of the requests of one run by when they arrived and their first byte.",
    render: scatter,
  },
  {
    section: "Flash", id: "programs", title: "Programs by cause", about: "Pages programmed over the whole replay.",
    choices: [
      { name: "Pages", whole: () => 1, text: value => `${count(value)} pages`, none: "No run programmed pages." },
      { name: "Per page of the host", whole: programs => programs.host, text: significant, none: "No run has pages written by the host." },
      { name: "Shares", whole: (_, total) => total, text: value => `${significant(100 * value)} %`, none: "No run programmed pages." },
    ],
    render: frame => causeBars(frame, frame.chart.choices[frame.choice]),
  },
  {
    section: "Flash", id: "dies", title: "Load by die", about: "Each die over the whole replay, in the order of channel, then die.",
    choices: [
      { name: "Busy", label: "Busy (%)", csv: "busy_percent", y: die => 100 * die.busy, text: value => `${significant(value)} %` },
      { name: "Queue", label: "Operations waiting or under way", csv: "queue_depth", y: die => die.queue_depth_mean, text: significant },
      { name: "Operations", label: "Operations", csv: "operations", y: die => die.operations, text: count },
    ],
    render: frame => perDie(frame, frame.chart.choices[frame.choice]),
  },
  {
    section: "Flash", id: "wear", title: "Wear map", wide: true,
    about: "Mean erases of equal shares of each plane's blocks, in the order of their numbers. All runs have one scale.",
    render: wearMaps,
  },
];

/** A chart of the intervals of every run. A choice names a column of the series by its `key` (or several `lines`), and
 * what it is `of` in which `unit`, after division by `size`. `none` is said when no run has values; `zeros` instead
 * when zeros alone count as none, too. */
function overTime(chart) {
  return { section: "Over time", ...chart, render: frame => seriesPlot(frame, chart.choices[frame.choice]) };
}

function seriesPlot(frame, choice) {
  const lines = frame.runs.flatMap(run => (choice.lines ?? [choice]).map(({ key, name, thin }) => timeLine(run, choice, key, choice.lines ? name : "", thin)));
  const end = frame.report.runs.reduce((last, run) => Math.max(last, run.data.series?.time_s?.at(-1) ?? 0), 0);
  const unit = timeUnit(end);
  for (const line of lines) line.step = (line.step ?? Infinity) / unit.size;
  const suffix = choice.unit ? ` ${choice.unit}` : "";
  const axes = {
    x: { label: `Time since the first request (${unit.name})`, size: unit.size, share: "time", csv: "time_s", value: value => `${significant(value)} ${unit.name}` },
    y: {
      label: choice.unit && !choice.log ? `${choice.of} (${choice.unit})` : choice.of, size: choice.size ?? 1, log: choice.log,
      text: choice.text, value: choice.text ?? (value => (value == null ? MISSING : significant(value) + suffix)), csv: choice.key ?? choice.csv,
    },
  };
  return linePlot(frame, lines, axes, choice.none ?? choice.zeros);
}

function timeLine(run, { log, zeros }, key, name, thin) {
  const series = run.data.series ?? {};
  const values = (log ? positive(series[key]) : series[key]) ?? [];
  const seen = values.some(value => (zeros ? value > 0 : value != null));
  return { run, name, thin, x: seen ? series.time_s : [], y: seen ? values : [], step: series.interval_s };
}

function latencyChoices(kind) {
  const p50 = { name: "p50", key: `${kind}_p50_us`, thin: true };
  const p99 = { name: "p99", key: `${kind}_p99_us` };
  const choice = (name, lines) => ({
    name, lines, log: true, unit: "µs", csv: "latency_us", of: `${kind === "read" ? "Read" : "Write"} latency (log scale)`,
    text: value => duration(value == null ? null : value * 1e3, value => significant(Number(value.toPrecision(6))).replace(/\.0+$/, "")),
    none: `No run has ${kind}s.`,
  });
  return [choice("p50 and p99", [p99, p50]), choice("p50", [{ ...p50, thin: false }]), choice("p99", [p99])];
}

/** Both percentiles of more than three runs are too many lines to begin with. */
function latencyStart(runs) {
  return runs.length > 3 ? 2 : 0;
}

/** A logarithmic axis has no place for 0. */
function positive(values) {
  return values?.map(value => (value > 0 ? value : null));
}

function distribution(frame, { kind, name }) {
  const lines = frame.runs.map(run => cdfLine(run, run.data.latency?.[kind]));
  const axes = {
    x: { label: "Latency (log scale)", size: 1, log: true, csv: "latency_ns", text: value => duration(value, tick), value: value => duration(value) },
    y: { label: "Share of commands (%)", of: nines, steps: true, range: ninesRange, splits: ninesSplits, text: percentile, value: percentile, csv: "share" },
  };
  return linePlot(frame, lines, axes, `No run has ${name.toLowerCase()}.`);
}

/** The distribution of one run, from 0 just before its first value. */
function cdfLine(run, latency) {
  const points = new Map();
  for (const [ns, share] of latency?.count ? latency.cdf : []) points.set(Math.max(ns, 1), share);
  const sorted = [...points].sort(([a], [b]) => a - b);
  if (sorted.length) sorted.unshift([sorted[0][0] * 0.9999, 0]);
  return { run, name: "", x: sorted.map(([ns]) => ns), y: sorted.map(([, share]) => share), count: latency?.count, skip: 1 };
}

/** How many nines a share has: 0 for 0, 1 for 90 %, 2 for 99 %. The greatest of n commands is at 1 - 1/2n (Hazen). */
function nines(share, line) {
  return -Math.log10(Math.max(1 - share, 0.5 / Math.max(line.count, 1)));
}

function ninesRange(_, __, high) {
  return [0, Math.max(1, Math.ceil((high ?? 1) * 4) / 4)];
}

function ninesSplits(_, high) {
  const splits = [0, -Math.log10(0.5)];
  for (let nine = 1; nine <= high; nine += 1) splits.push(nine);
  return splits;
}

/** A share given by its nines, in percent. */
function percentile(value) {
  if (value == null) return MISSING;
  const digits = Math.min(Math.max(Math.ceil(value) - 1, 0), 6);
  return `${(100 - 100 * 10 ** -value).toFixed(Number.isInteger(value) ? Math.max(value - 2, 0) : digits)} %`;
}

function perDie(frame, choice) {
  const lines = frame.runs.map(run => {
    const dies = run.data.dies ?? [];
    return { run, name: "", x: dies.map((_, index) => index), y: dies.map(choice.y), step: 0 };
  });
  const whole = value => (Number.isInteger(value) ? tick(value) : "");
  const axes = {
    x: { label: "Die", size: 1, whole: true, csv: "die", text: whole, value: value => `Die ${value}` },
    y: { label: choice.label, size: 1, csv: choice.csv, value: choice.text },
  };
  return linePlot(frame, lines, axes, "No run has dies.");
}
