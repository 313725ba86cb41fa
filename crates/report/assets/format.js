"use strict";
// Numbers as text. Missing values are a dash.

const MISSING = "–";

/** About three significant digits, with thousands separators. */
function significant(value) {
  if (value == null || !Number.isFinite(value)) return MISSING;
  const size = Math.abs(value);
  if (size !== 0 && size < 0.1) return size < 1e-6 ? value.toExponential(1) : String(Number(value.toPrecision(2)));
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: size ? digits : 0, maximumFractionDigits: digits });
}

/** A whole number with thousands separators. */
function count(value) {
  return value == null ? MISSING : Math.round(value).toLocaleString("en-US");
}

/** A tick of an axis: as many digits as it needs. */
function tick(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 9 });
}

/** Nanoseconds in the unit that suits their size. */
function duration(ns, show = significant) {
  if (ns == null || !Number.isFinite(ns)) return MISSING;
  if (ns >= 1e9) return `${show(ns / 1e9)} s`;
  if (ns >= 1e6) return `${show(ns / 1e6)} ms`;
  if (ns >= 1e3) return `${show(ns / 1e3)} µs`;
  return `${show(ns)} ns`;
}

/** Bytes in the unit that suits their size. */
function bytes(value) {
  if (value == null) return MISSING;
  const unit = byteUnit(value);
  return `${unit.size === 1 ? count(value) : significant(value / unit.size)} ${unit.name}`;
}

/** The largest binary unit not above `value` bytes. */
function byteUnit(value) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  while (power < names.length - 1 && value >= 1024 ** (power + 1)) power += 1;
  return { name: names[power], size: 1024 ** power };
}

/** The unit for an axis of time that ends at `seconds`. */
function timeUnit(seconds) {
  const units = [
    { name: "days", size: 86400, from: 345600 },
    { name: "h", size: 3600, from: 14400 },
    { name: "min", size: 60, from: 600 },
    { name: "s", size: 1, from: 1 },
    { name: "ms", size: 1e-3, from: 1e-3 },
    { name: "µs", size: 1e-6, from: 0 },
  ];
  return units.find(unit => seconds >= unit.from) ?? units[3];
}

/** Rows of fields as comma-separated values (RFC 4180). */
function toCsv(rows) {
  const field = value => {
    const text = value == null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map(row => row.map(field).join(",")).join("\r\n") + "\r\n";
}
