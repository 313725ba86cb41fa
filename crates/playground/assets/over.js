"use strict";
// The charts of all runs over what the program wrote; a chart is as in frame.js.

const ORIGIN = "the start";
const OVER = { ...WRITTEN, label: unit => `Written by the program (${unit.name})` };
const RATES = { ...TIME, label: unit => `Time since ${ORIGIN} (${unit.name})` };

/** Both write amplifications of each interval, multiplied. */
function together({ fs_waf: above = [], device_waf: below = [] }) {
  return above.map((value, index) => (value == null || below[index] == null ? null : value * below[index]));
}

function waitChoice(kind, name) {
  return {
    name, key: `${kind}_p99_us`, log: true, unit: "µs", csv: "latency_us", of: `99 of 100 ${name.toLowerCase()} (log scale)`,
    text: value => duration(value == null ? null : value * 1e3), none: `The program has made no ${name.toLowerCase()} so far.`,
  };
}

const CHARTS = [
  over(OVER, {
    id: "amplification", title: "Bytes on flash for each byte of the program", wide: true,
    about: "It rises when free room has ended: then everything that is written needs room that is made by cleaning.",
    choices: [
      { name: "Together", unit: "", of: "Bytes for a byte", column: together, csv: "waf", none: "The program has written nothing so far." },
      { name: "File system", unit: "", of: "Bytes for a byte", key: "fs_waf", none: "The program has written nothing so far." },
      { name: "Drive", unit: "", of: "Bytes for a byte", key: "device_waf", none: "Nothing has reached the drive so far." },
    ],
  }),
  over(RATES, {
    id: "throughput", title: "Speed", about: "What the program gets, in simulated time: whoever ends first was fastest.",
    choices: [
      { name: "Writes", unit: "MB/s", of: "Written", key: "write_mb_per_s", zeros: "The program has written nothing so far." },
      { name: "Reads", unit: "MB/s", of: "Read", key: "read_mb_per_s", zeros: "The program has read nothing so far." },
    ],
  }),
  over(OVER, {
    id: "waits", title: "Waits", about: "How long all but the slowest of a hundred calls take.",
    choices: [waitChoice("flush", "Syncs"), waitChoice("write", "Writes"), waitChoice("read", "Reads")],
  }),
];
