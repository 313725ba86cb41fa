"use strict";
// What reports show of the flash.

const PROGRAM_CAUSES = [
  { key: "host", name: "Host" },
  { key: "gc", name: "Cleaning" },
  { key: "wear", name: "Wear levelling" },
  { key: "retire", name: "Bad blocks" },
  { key: "journal", name: "Record of discards" },
  { key: "remap", name: "Record of remaps" },
];

/** Pages programmed by cause; `programs(run)` has their counts. */
function programsByCause(section, title, about, programs) {
  return {
    section, id: "programs", title, about,
    choices: [
      { name: "Pages", whole: () => 1, text: value => `${count(value)} pages`, none: "No run programmed pages." },
      { name: "Per page of the host", whole: pages => pages.host, text: significant, none: "No run has pages written by the host." },
      { name: "Shares", whole: (_, total) => total, text: value => `${significant(100 * value)} %`, none: "No run programmed pages." },
    ],
    has: (choice, runs) => runs.some(run => PROGRAM_CAUSES.some(({ key }) => programs(run)?.[key] > 0) && choice.whole(programs(run), 1) > 0),
    render: frame => causeBars(frame, PROGRAM_CAUSES, programs, "pages", frame.chosen),
  };
}

/** Wear: planes (rows) by shares of their blocks (columns). */
function wearMaps() {
  const kind = {
    none: "No run has a map of its wear.",
    values: "Mean erases of a block",
    text: significant, unit: " erases",
    ends: ["First block", "Last block"],
    size: rows => `${count(rows.length)} ${rows.length === 1 ? "plane" : "planes"} (rows)`,
    place: (x, y, map) => `plane ${y}, block share ${x + 1} of ${map.columns}`,
    columns: ["plane", "block_share", "mean_erases"],
  };
  return {
    section: "Flash", id: "wear", title: "Wear map", wide: true,
    about: "Mean erases of equal shares of each plane's blocks, in the order of their numbers. All runs have one scale.",
    has: (_, runs) => runs.some(run => run.data.wear?.map?.some(row => row.some(erases => erases > 0))),
    render: frame => heatMaps(frame, frame.runs.map(run => ({ run, rows: run.data.wear?.map ?? [] })), kind),
  };
}
