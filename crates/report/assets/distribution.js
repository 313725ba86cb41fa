"use strict";
// Distributions of latency, with the tail spread out.

/** The chart of `kinds`, each the name of a kind of command in the results and what it is called. */
function latencyDistributions(kinds) {
  return {
    section: "Latency", id: "cdf", title: "Distribution of latency", wide: true,
    about: "The share of commands that took at most this long. Both axes are logarithmic, so that the tail can be seen.",
    choices: kinds.map(([kind, name]) => ({ kind, name })),
    has: ({ kind }, runs) => runs.some(run => run.data.latency?.[kind]?.count),
    render: frame => distribution(frame, frame.chosen),
  };
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
