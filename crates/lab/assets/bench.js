"use strict";
// The charts of a bench, in the order in which they stand; a new chart is one entry (see frame.js).

/** What times count from. */
const ORIGIN = "the start of the measurement";

/** Causes of the file system's writes in the order in which they are stacked, each with its texture: cleaning looks as
 * the drive's does. */
const WRITE_CAUSES = { data: 0, node: 2, cleaning: 1, checkpoint: 3, nat: 4, sit: 5, ssa: 6, journal: 7 };

/** Cells of a row of the segment map. */
const SEGMENT_COLUMNS = 64;

const CHARTS = [
  ...curves(TIME, ""),
  ...curves(WRITTEN, "-written"),
  {
    section: "Writes by cause", id: "causes", title: "Blocks written by the file system",
    about: "Over the whole measurement, by what they hold or why.",
    choices: [
      { name: "Per block of the workload", whole: (_, __, run) => (run.data.totals?.written_bytes ?? 0) / 4096, text: significant, none: "The workload wrote nothing." },
      { name: "Blocks", whole: () => 1, text: value => `${count(value)} blocks`, none: "No run wrote blocks." },
      { name: "Shares", whole: (_, total) => total, text: value => `${significant(100 * value)} %`, none: "No run wrote blocks." },
    ],
    render: frame => causeBars(frame, writeCauses(frame.report.runs), run => run.data.written, "blocks", frame.chosen),
  },
  programsByCause("Writes by cause", "Pages programmed by the drive", "Over the whole measurement, by why.", run => run.data.programs),
  latencyDistributions([["write", "Writes"], ["flush", "Syncs"], ["read", "Reads"], ["discard", "Punched holes"]]),
  {
    section: "Requests to the drive", id: "addresses", title: "Addresses over time", wide: true,
    about: "A sample of the requests that reached the drive in one run, by when they did and their first byte.",
    render: scatter,
  },
  {
    section: "Requests to the drive", id: "sizes", title: "Sizes of requests", wide: true,
    about: "The share of requests of each class of sizes: from the size below a bar to below its double.",
    choices: [["write", "Writes"], ["read", "Reads"], ["discard", "Discards"]].map(([kind, name]) => ({ kind, name })),
    render: frame => requestSizes(frame, frame.chosen),
  },
  {
    section: "Space", id: "segments", title: "Segment map", wide: true,
    about: "The volume at the end in equal parts, in the order of addresses, row by row: the share of blocks in use in each.",
    render: frame => heatMaps(frame, frame.runs.map(run => ({ run, rows: linesOf(run.data.occupancy ?? []) })), SEGMENT_MAP),
  },
  wearMaps(),
];

/** The charts of the series over one of its columns. */
function curves(against, suffix) {
  const chart = (id, title, about, choices) => over(against, { id: id + suffix, title, about, choices });
  const one = choice => [{ name: "", unit: "", ...choice }];
  return [
    chart("throughput", "Throughput", "Of the workload; means of each interval.", [
      { name: "Writes", unit: "MB/s", of: "Written", key: "write_mb_per_s", zeros: "No run writes anything." },
      { name: "Reads", unit: "MB/s", of: "Read", key: "read_mb_per_s", zeros: "No run reads anything." },
    ]),
    chart("calls", "Calls", "Calls that read, write, sync or punch holes; means of each interval.",
      one({ unit: "calls/s", of: "Calls", key: "calls_per_s", zeros: "No run makes calls." })),
    chart("fs-waf", "Write amplification of the file system", "Blocks that it wrote over blocks that the workload wrote, of each interval. Gaps: the workload wrote nothing.",
      one({ of: "WAF", key: "fs_waf", none: "The workload wrote nothing, so there is no write amplification." })),
    chart("device-waf", "Write amplification of the drive", "Bytes programmed over bytes that reached the drive, of each interval. Gaps: nothing was written.",
      one({ of: "WAF", key: "device_waf", none: "Nothing was written to the drive, so there is no write amplification." })),
    chart("write-size", "Size of write requests", "Means of the requests that reached the drive in each interval. Gaps: there was none.",
      one({ unit: "KiB", of: "Mean size", key: "write_kib", none: "No write reached the drive." })),
    chart("map-memory", "Map", "The drive's memory that its map takes at the end of each interval.",
      one({ unit: "bytes", of: "Map", key: "map_bytes", zeros: "No run has a map." })),
    chart("map-cache", "Split map cache", "At the end of each interval: entries of the part for writes, and the multiple access hard threshold (MAHT) below which reads give way.", [
      { name: "Write part", unit: "entries", of: "Write part", key: "cache_write_part", zeros: "No run has a split cache of its map." },
      { name: "MAHT", unit: "entries", of: "MAHT", key: "cache_maht", zeros: "No run has a split cache of its map." },
    ]),
    chart("events", "Events in the file system", "What had happened by the end of each interval.", eventChoices),
  ];
}

/** A choice for each kind of event that happened in some run. */
function eventChoices(runs) {
  const names = new Set(runs.flatMap(run => Object.keys(run.data.series?.events ?? {})));
  const happened = [...names].filter(name => runs.some(run => run.data.events?.[name] > 0)).sort();
  const none = "Nothing happened in the file system that is counted.";
  if (!happened.length) return [{ name: "", unit: "", column: () => [], none }];
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
