"use strict";
// What was seen, in sentences.

/** Why bytes reach the flash: of the file system's causes the first group that names one, then the drive's. `index` is the texture. */
const GROUPS = [
  { key: "data", index: 0, name: "The program's data", about: "what it wrote, once", written: ["data"] },
  { key: "notes", index: 2, name: "Notes of the file system", about: "where the data lie: nodes, tables, checkpoints", written: null },
  { key: "journal", index: 7, name: "Journal", about: "notes written ahead, so that a power cut breaks nothing", written: ["journal"] },
  { key: "cleaning", index: 5, name: "Cleaning by the file system", about: "live data moved together to get empty segments", written: ["cleaning"] },
  { key: "moved", index: 1, name: "Cleaning by the drive", about: "pages that are still needed, copied before a line is erased", programs: ["gc"] },
  { key: "other", index: 3, name: "Other work of the drive", about: "its own notes, wear levelling, its cache", programs: null },
];

/** Bytes on flash for each byte of the program, by group: what the drive took from the host is shared out by the file system's causes. */
function shares({ totals, written }) {
  const pages = Object.values(totals.programs).filter(Number.isFinite).reduce((sum, pages) => sum + pages, 0);
  const blocks = Object.values(written).reduce((sum, blocks) => sum + blocks, 0);
  if (!pages || !totals.total_waf) return null;
  const page = totals.total_waf / pages;
  const named = kind => new Set(GROUPS.flatMap(group => group[kind] ?? []));
  const pick = (counts, keys, kind, left) => Object.entries(counts)
    .filter(([key]) => (keys ? keys.includes(key) : !named(kind).has(key) && key !== left)).reduce((sum, [, value]) => sum + (value || 0), 0);
  const host = totals.programs.host * page;
  return GROUPS.map(group => ("written" in group
    ? (blocks ? host * pick(written, group.written, "written") / blocks : group.key === "data" ? host : 0)
    : page * pick(totals.programs, group.programs, "programs", "host")));
}

/** Times, as in "2.3 times". */
function times(value) {
  return value == null ? MISSING : `${significant(value)} times`;
}

/** What became of the program's bytes. */
function sentence({ totals }) {
  const { total_waf: total, fs_waf: above, device_waf: below } = totals;
  if (!totals.written_bytes) {
    return totals.read_bytes ? `The program read ${bytes(totals.read_bytes)} and wrote nothing so far.` : "The program has not written anything so far.";
  }
  if (total == null) return "Nothing has reached the flash so far: it is all in memory.";
  const parts = above == null ? "" : `: the file system wrote ${significant(above)} bytes for it, and the drive ${below == null ? MISSING : significant(below)} for each of those`;
  return `Each byte that the program wrote was written ${times(total)} to flash${parts}.`;
}

/** The groups beside the data that cost most, in a sentence; nothing where little was written beside them. */
function reason(parts) {
  if (!parts) return "";
  const sorted = GROUPS.map((group, index) => ({ group, part: parts[index] })).filter(({ group, part }) => group.key !== "data" && part > 0.1).sort((a, b) => b.part - a.part);
  const total = parts.reduce((sum, part) => sum + part, 0);
  if (total < 0.95) return "That is less than once: the rest was overwritten in memory before it went out.";
  if (!sorted.length) return "Little else than the data was written.";
  const [{ group, part }] = sorted;
  return `Most of the rest, ${significant(part)} bytes for each byte, goes into ${group.name[0].toLowerCase()}${group.name.slice(1)}: ${group.about}.`;
}

/** The runs compared, best first. */
function verdict(runs, isOver) {
  const known = runs.filter(run => run.figures?.totals.total_waf != null).sort((a, b) => a.figures.totals.total_waf - b.figures.totals.total_waf);
  if (!known.length) return "";
  const [best, worst] = [known[0], known.at(-1)];
  const waf = run => run.figures.totals.total_waf;
  const start = isOver ? "" : "So far, ";
  const each = isOver ? "Each byte" : "each byte";
  if (known.length === 1) return `${start}${best.title} wrote each byte ${times(waf(best))} to flash.`;
  const list = known.map(run => `${run.title} ${times(waf(run))}`).join(", ");
  const factor = waf(worst) / waf(best);
  const much = factor < 1.1 ? "There is little between them." : `${worst.title} wears the same flash out ${significant(factor)} times as fast as ${best.title}.`;
  return `${start}${each} was written to flash: ${list}. ${much}`;
}

/** The wait for calls of a kind, in a sentence; nothing where there was none. */
function waits(latency) {
  const names = { flush: "fsync", read: "read", write: "write" };
  return Object.entries(names).filter(([kind]) => latency[kind].count > 0).map(([kind, name]) => {
    const { p50_ns: half, p99_ns: most } = latency[kind];
    return { name, half: duration(half), most: duration(most) };
  });
}
