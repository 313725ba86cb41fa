"use strict";
// The charts of a replay, in the order in which they stand; a new chart is one entry (see frame.js).

/** What times count from. */
const ORIGIN = "the first request";

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
  overTime({
    id: "map-cache", title: "Split map cache", about: "At the end of each interval: entries of the part for writes, and the multiple access hard threshold (MAHT) below which reads give way.",
    choices: [
      { name: "Write part", unit: "entries", of: "Write part", key: "cache_write_part", zeros: "No run has a split cache of its map." },
      { name: "MAHT", unit: "entries", of: "MAHT", key: "cache_maht", zeros: "No run has a split cache of its map." },
    ],
  }),
  latencyDistributions([["read", "Reads"], ["write", "Writes"], ["flush", "Flushes"], ["discard", "Discards"]]),
  {
    section: "Requests", id: "addresses", title: "Addresses over time", wide: true,
    about: "A sample of the requests of one run by when they arrived and their first byte.",
    render: scatter,
  },
  programsByCause("Flash", "Programs by cause", "Pages programmed over the whole replay.", run => run.data.totals?.programs),
  {
    section: "Flash", id: "dies", title: "Load by die", about: "Each die over the whole replay, in the order of channel, then die.",
    choices: [
      { name: "Busy", label: "Busy (%)", csv: "busy_percent", y: die => 100 * die.busy, text: value => `${significant(value)} %` },
      { name: "Queue", label: "Operations waiting or under way", csv: "queue_depth", y: die => die.queue_depth_mean, text: significant },
      { name: "Operations", label: "Operations", csv: "operations", y: die => die.operations, text: count },
    ],
    render: frame => perDie(frame, frame.chosen),
  },
  wearMaps(),
];

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
