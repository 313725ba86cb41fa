"use strict";
// The picture that a report begins with: what was asked for, what came on top, and the rate beside it.

/** Parts of what was written: textures are those of other charts, cleaning looks like the drive's. */
const OVERVIEW_PARTS = [
  { key: "asked", name: "Asked for", index: 0 },
  { key: "files", name: "Added by the file system", index: 2 },
  { key: "drive", name: "Added by the drive", index: 1 },
  { key: "memory", name: "Asked for, but not on flash", mark: "held" },
];

/** Kinds of call in the plural. */
const BUSY = { read: "reads", write: "writes", flush: "syncs", discard: "discards" };

/** Asked for by a file system's user, that reached the drive, and that the flash did: as parts of what was done. */
function overviewParts(asked, reached, done) {
  const through = Math.min(reached, done);
  const kept = Math.min(asked, through);
  return { asked: kept, files: through - kept, drive: done - through, memory: asked - kept };
}

/** Asked for by calls, those of ramps among them: file system and drive count what they cause. */
function askedByCalls(run, kind) {
  const totals = run.data.totals ?? {};
  return (totals[`${kind}_bytes`] ?? 0) + (totals[`ramp_${kind}_bytes`] ?? 0);
}

/** In a trace, what reached the drive. */
function askedBytes(run, kind) {
  return run.data.trace ? (run.data.totals?.[`${kind}_blocks`] ?? 0) * 4096 : askedByCalls(run, kind);
}

function writtenParts(run) {
  const totals = run.data.totals ?? {};
  const reached = (totals.written_blocks ?? 0) * 4096;
  return overviewParts(askedBytes(run, "written"), reached, reached * (totals.device_waf ?? 0));
}

function readParts(run) {
  const totals = run.data.totals ?? {};
  const reached = (totals.read_blocks ?? 0) * 4096;
  const flash = totals.flash_reads ?? {};
  const own = ((flash.merge ?? 0) + (flash.move ?? 0) + (flash.translation ?? 0)) * (run.data.drive?.page_bytes ?? 0);
  return overviewParts(askedBytes(run, "read"), reached, reached + own);
}

/** The rate; where a trace dictates it, or all are equal within 2 %, the latency of the calls that take most of the time. */
function besideRate(runs, rate, what) {
  const rates = runs.map(run => run.data.totals?.[rate] ?? 0);
  const isPaced = runs.some(run => run.data.replay?.mode === "timed");
  const isLevel = runs.length > 1 && Math.max(...rates) <= 1.02 * Math.min(...rates);
  const time = kind => runs.reduce((sum, run) => sum + (run.data.latency?.[kind]?.count ?? 0) * (run.data.latency?.[kind]?.mean_ns ?? 0), 0);
  const kind = Object.keys(BUSY).reduce((most, kind) => (time(kind) > time(most) ? kind : most));
  if ((isPaced || isLevel) && time(kind) > 0) return { head: `p99 latency of ${BUSY[kind]} (less is better)`, csv: "p99_ns", value: run => run.data.latency?.[kind]?.p99_ns ?? 0, text: value => duration(value) };
  return { head: `Rate of ${what}`, csv: "mb_per_s", value: run => run.data.totals?.[rate] ?? 0, text: value => `${significant(value)} MB/s` };
}

/** What can be shown: writes as they are and for each byte asked for, and reads. */
function overviewChoices(runs) {
  const writes = { parts: writtenParts, beside: besideRate(runs, "write_mb_per_s", "writes"), none: "Nothing was written." };
  const reads = { parts: readParts, beside: besideRate(runs, "read_mb_per_s", "reads"), none: "Nothing was read." };
  const choices = [
    { name: "Writes", head: "Bytes written to flash", whole: () => 1, text: bytes, ...writes },
    { name: "Per byte asked for", head: "Bytes written to flash for each byte asked for", whole: (_, __, run) => askedBytes(run, "written"), text: significant, ...writes },
    { name: "Reads", head: "Bytes read from the drive, and for its own work", whole: () => 1, text: bytes, ...reads },
  ];
  const has = choice => runs.some(run => Object.values(choice.parts(run)).some(part => part > 0) && choice.whole(null, null, run) > 0);
  const there = choices.filter(has);
  return there.length ? there : choices.slice(0, 1);
}

/** Runs that asked for different amounts are compared for each byte; a job that mostly reads begins with its reads. */
function overviewStart(runs) {
  const choices = overviewChoices(runs);
  const sum = kind => runs.reduce((all, run) => all + askedBytes(run, kind), 0);
  const asked = runs.map(run => askedBytes(run, "written"));
  const wanted = sum("read") > 4 * sum("written") ? "Reads" : Math.max(...asked) > 1.02 * Math.min(...asked) ? "Per byte asked for" : "Writes";
  return Math.max(0, choices.findIndex(choice => choice.name === wanted));
}

/** The chart. */
const OVERVIEW = {
  id: "overview", title: "What was asked for, and what it took", wide: true,
  about: "Left: what the workload asked for, what the file system added and what the drive added by itself. Right: how fast it was.",
  choices: overviewChoices, start: overviewStart,
  render: frame => {
    const { parts } = frame.chosen;
    const causes = OVERVIEW_PARTS.filter(({ key }) => frame.runs.some(run => parts(run)[key] > 0));
    return causeBars(frame, causes, parts, "bytes", frame.chosen);
  },
};
