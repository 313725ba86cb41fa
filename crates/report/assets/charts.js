"use strict";
// The charts of a bench or a replay, in the order in which they stand; a new chart is one entry (see frame.js).

/** What times count from. */
const ORIGIN = "the start of the measurement";

/** Causes of the file system's writes in the order in which they are stacked, each with its texture: cleaning looks as
 * the drive's does. */
const WRITE_CAUSES = { data: 0, node: 2, cleaning: 1, checkpoint: 3, nat: 4, sit: 5, ssa: 6, journal: 7 };

/** Cells of a row of the segment map. */
const SEGMENT_COLUMNS = 64;

/** The kinds of call, as their latencies are titled. */
const LATENCY_OF = { read: "Read", write: "Write", flush: "Sync" };

/** Runs with a file system have charts of it, and curves over written volume. */
const onFiles = runs => runs.some(run => !run.data.trace);

const CHARTS = [
  OVERVIEW,
  ...curves(TIME, ""),
  ...curves(WRITTEN, "-written").map(chart => ({ ...chart, when: onFiles })),
  {
    section: "Writes by cause", id: "causes", title: "Blocks written by the file system", when: onFiles,
    has: (choice, runs) => runs.some(run => Object.values(run.data.written ?? {}).some(blocks => blocks > 0) && choice.whole(null, 1, run) > 0),
    about: "Over the whole measurement, by what they hold or why.",
    choices: [
      { name: "Per block of the workload", whole: (_, __, run) => askedByCalls(run, "written") / 4096, text: significant, none: "The workload wrote nothing." },
      { name: "Blocks", whole: () => 1, text: value => `${count(value)} blocks`, none: "No run wrote blocks." },
      { name: "Shares", whole: (_, total) => total, text: value => `${significant(100 * value)} %`, none: "No run wrote blocks." },
    ],
    render: frame => causeBars(frame, writeCauses(frame.report.runs), run => run.data.written, "blocks", frame.chosen),
  },
  programsByCause("Writes by cause", "Pages programmed by the drive", "Over the whole measurement, by why.", run => run.data.totals?.programs),
  latencyDistributions([["write", "Writes"], ["flush", "Syncs"], ["read", "Reads"], ["discard", "Discards"]]),
  {
    section: "Requests", id: "addresses", title: "Addresses over time", wide: true,
    about: "A sample of the requests of one run by when they reached the drive (of a trace, by when they arrived) and their first byte.",
    has: (_, runs) => runs.some(run => run.data.scatter?.length),
    render: scatter,
  },
  {
    section: "Requests", id: "sizes", title: "Sizes of requests", wide: true,
    about: "The share of requests to the drive of each class of sizes: from the size below a bar to below its double.",
    choices: [["write", "Writes"], ["read", "Reads"], ["discard", "Discards"]].map(([kind, name]) => ({ kind, name })),
    has: ({ kind }, runs) => runs.some(run => run.data.requests?.[kind]?.sizes?.some(requests => requests > 0)),
    render: frame => requestSizes(frame, frame.chosen),
  },
  {
    section: "Space", id: "segments", title: "Segment map", wide: true, when: onFiles,
    about: "The volume at the end in equal parts, in the order of addresses, row by row: the share of blocks in use in each.",
    has: (_, runs) => runs.some(run => run.data.occupancy?.length),
    render: frame => heatMaps(frame, frame.runs.map(run => ({ run, rows: linesOf(run.data.occupancy ?? []) })), SEGMENT_MAP),
  },
  {
    section: "Flash", id: "dies", title: "Load by die", about: "Each die over the whole measurement, in the order of channel, then die.",
    choices: [
      { name: "Busy", label: "Busy (%)", csv: "busy_percent", y: die => 100 * die.busy, text: value => `${significant(value)} %` },
      { name: "Queue", label: "Operations waiting or under way", csv: "queue_depth", y: die => die.queue_depth_mean, text: significant },
      { name: "Operations", label: "Operations", csv: "operations", y: die => die.operations, text: count },
    ],
    has: ({ y }, runs) => runs.some(run => run.data.dies?.some(die => y(die) > 0)),
    render: frame => perDie(frame, frame.chosen),
  },
  wearMaps(),
];

/** The charts of the series over one of its columns. */
function curves(against, suffix) {
  const chart = (id, title, about, choices, more) => over(against, { id: id + suffix, title, about, choices, ...more });
  const one = choice => [{ name: "", unit: "", ...choice }];
  return [
    chart("throughput", "Throughput", "Means of each interval: of the workload, and of the drive in whole blocks.", [
      { name: "Writes", unit: "MB/s", of: "Written", key: "write_mb_per_s", zeros: "No run writes anything." },
      { name: "Reads", unit: "MB/s", of: "Read", key: "read_mb_per_s", zeros: "No run reads anything." },
      { name: "Drive writes", unit: "MB/s", of: "Written to the drive", key: "drive_write_mb_per_s", zeros: "Nothing was written to the drive." },
      { name: "Drive reads", unit: "MB/s", of: "Read from the drive", key: "drive_read_mb_per_s", zeros: "Nothing was read from the drive." },
    ]),
    chart("calls", "Calls", "Calls that read, write, sync or punch holes, or requests of the trace; means of each interval.",
      one({ unit: "calls/s", of: "Calls", key: "calls_per_s", zeros: "No run makes calls." })),
    chart("fs-waf", "Write amplification of the file system", "Blocks that it wrote over blocks that the workload wrote, of each interval. Gaps: the workload wrote nothing.",
      one({ of: "WAF", key: "fs_waf", none: "The workload wrote nothing, so there is no write amplification." }), { when: onFiles }),
    chart("device-waf", "Write amplification of the drive", "Bytes programmed over bytes that reached the drive, of each interval. Gaps: nothing was written.",
      one({ of: "WAF", key: "device_waf", none: "Nothing was written to the drive, so there is no write amplification." })),
    ...["read", "write", "flush"].map(kind => chart(`${kind}-latency`, `${LATENCY_OF[kind]} latency`, "Of the calls or requests of each interval.",
      latencyChoices(kind), { start: latencyStart })),
    chart("load", "Load", "Calls or requests in flight are means over arrivals; busy is the share of the dies' time in which they worked.", [
      { name: "Queue depth", unit: "calls", of: "In flight", key: "queue_depth", none: "No run has calls." },
      { name: "Dies busy", unit: "%", of: "Dies busy", size: 0.01, key: "die_busy", none: "No run has intervals." },
    ]),
    chart("cleaning", "Cleaning", "What the drive did by itself in each interval, and what it had at the interval's end.", [
      { name: "Moved", unit: "pages", of: "Moved", key: "moved_pages", zeros: "No run moved pages." },
      { name: "Erases", unit: "blocks", of: "Erased", key: "erases", zeros: "No run erased blocks." },
      { name: "Free lines", unit: "lines", of: "Free", key: "free_lines", none: "No run has intervals." },
    ]),
    chart("write-size", "Size of write requests", "Means of the requests that reached the drive in each interval. Gaps: there was none.",
      one({ unit: "KiB", of: "Mean size", key: "write_kib", none: "No write reached the drive." })),
    chart("map-memory", "Map", "The drive's memory that its map takes at the end of each interval.",
      one({ unit: "MiB", of: "Map", size: 2 ** 20, key: "map_bytes", zeros: "No run has a map." })),
    chart("map-cache", "Split map cache", "At the end of each interval: entries of the part for writes, and the multiple access hard threshold (MAHT) below which reads give way.", [
      { name: "Write part", unit: "entries", of: "Write part", key: "cache_write_part", zeros: "No run has a split cache of its map." },
      { name: "MAHT", unit: "entries", of: "MAHT", key: "cache_maht", zeros: "No run has a split cache of its map." },
    ], { when: runs => runs.some(run => run.data.map_cache?.policy === "split") }),
    chart("events", "Events in the file system", "What had happened by the end of each interval.", eventChoices, { when: onFiles }),
  ];
}

function latencyChoices(kind) {
  const p50 = { name: "p50", key: `${kind}_p50_us`, thin: true };
  const p99 = { name: "p99", key: `${kind}_p99_us` };
  const choice = (name, lines) => ({
    name, lines, log: true, unit: "µs", csv: "latency_us", of: `${LATENCY_OF[kind]} latency (log scale)`,
    text: value => duration(value == null ? null : value * 1e3, value => significant(Number(value.toPrecision(6))).replace(/\.0+$/, "")),
    none: `No run has ${kind === "flush" ? "syncs" : `${kind}s`}.`,
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

/** A choice for each kind of event that happened in some run. */
function eventChoices(runs) {
  const names = new Set(runs.flatMap(run => Object.keys(run.data.series?.events ?? {})));
  const happened = [...names].filter(name => runs.some(run => run.data.events?.[name] > 0)).sort();
  const none = "Nothing happened in the file system that is counted.";
  return happened.map(name => ({
    name: titleOf(FIGURES.events, name), of: titleOf(FIGURES.events, name), unit: "", total: true, csv: name, column: series => series.events?.[name], zeros: none,
  }));
}

/** The causes that some run has, those that are not known last. */
function writeCauses(runs) {
  const seen = new Set(runs.flatMap(run => Object.entries(run.data.written ?? {}).filter(([, blocks]) => blocks > 0).map(([key]) => key)));
  const known = Object.keys(WRITE_CAUSES);
  const others = [...seen].filter(key => !known.includes(key)).sort();
  const cause = (key, place) => ({ key, index: known.includes(key) ? WRITE_CAUSES[key] : place, name: titleOf(FIGURES.written, key) });
  return [...known, ...others].map(cause).filter(({ key }) => seen.has(key));
}

/** The title of a figure by its key; FIGURES are those of the runs' file systems. */
function titleOf(figures, key) {
  return figures[key] ?? key;
}

function requestSizes(frame, { kind, name }) {
  const sizes = run => run.data.requests?.[kind]?.sizes ?? [];
  const classes = Math.max(0, ...frame.runs.map(run => sizes(run).findLastIndex(requests => requests > 0) + 1));
  const open = Math.max(...frame.runs.map(run => sizes(run).length)) - 1;
  const lines = frame.runs.map(run => sizeLine(run, sizes(run).slice(0, classes)));
  const whole = (low, high) => Array.from({ length: classes }, (_, index) => index).filter(index => index >= low && index <= high);
  const axes = {
    x: {
      label: "Size of a request", size: 1, whole: true, csv: "size_class", splits: whole,
      text: index => sizeText(index) + (index === open ? "+" : ""),
      value: index => (index === open ? `From ${sizeText(index)}` : `${sizeText(index)} to below ${sizeText(index + 1)}`),
    },
    y: { label: "Share of requests (%)", size: 1, bars: true, csv: "share_percent", value: value => (value == null ? MISSING : `${significant(value)} %`) },
  };
  return linePlot(frame, lines, axes, `No ${name.toLowerCase()} reached the drive.`);
}

function sizeLine(run, sizes) {
  const total = sizes.reduce((sum, requests) => sum + requests, 0);
  const drawn = total > 0 ? sizes : [];
  return { run, name: "", x: drawn.map((_, index) => index), y: drawn.map(requests => (100 * requests) / total), step: 0 };
}

/** The least size of a class. */
function sizeText(index) {
  const size = 4096 * 2 ** index;
  const unit = byteUnit(size);
  return `${tick(size / unit.size)} ${unit.name}`;
}

const SEGMENT_MAP = {
  none: "No run has a map of its volume.",
  values: "Blocks in use",
  range: [0, 1],
  text: share => (share == null ? MISSING : `${significant(100 * share)} %`),
  ends: ["First part", "Last part"],
  size: rows => `${count(rows.flat().length)} parts, row by row`,
  place: (x, y, map) => `part ${y * SEGMENT_COLUMNS + x + 1} of ${map.rows.flat().length}`,
  columns: ["row", "column", "share_in_use"],
};

function linesOf(cells) {
  const rows = [];
  for (let at = 0; at < cells.length; at += SEGMENT_COLUMNS) rows.push(cells.slice(at, at + SEGMENT_COLUMNS));
  return rows;
}
