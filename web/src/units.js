// SPDX-License-Identifier: BSD-3-Clause
// units: numbers as the command line prints them.

/** 1234567 → "1.23M". */
export function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return "∞";
  const size = Math.abs(x);

  for (const [by, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= by * 0.9995) return digits(x / by) + letter;
  return size > 0 && size < 0.01 ? "<0.01" : digits(x);
}

function digits(x) {
  const size = Math.abs(x);

  return String(+x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2));
}

/** Bytes: 1536 → "1.5 KiB". */
export function bytes(x) {
  if (x === null || x === undefined) return "–";
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;

  while (x >= 1024 && i < names.length - 1) {
    x /= 1024;
    i++;
  }
  return `${digits(x)} ${names[i]}`;
}

/** Seconds: 0.0042 → "4.2 ms". */
export function time(s) {
  if (s === null || s === undefined || Number.isNaN(s)) return "–";
  if (s === 0) return "0";
  if (s < 1e-3) return `${digits(s * 1e6)} µs`;
  if (s < 1) return `${digits(s * 1e3)} ms`;
  if (s < 120) return `${digits(s)} s`;
  if (s < 7200) return `${digits(s / 60)} min`;
  return s < 172800 ? `${digits(s / 3600)} h` : `${digits(s / 86400)} days`;
}

export const percent = (x) => (x === null || x === undefined || Number.isNaN(x) ? "–" : `${digits(100 * x)} %`);

const LIMITS = {
  iops: ["", "iops"], read_iops: ["reads", "iops"], write_iops: ["writes", "iops"],
  bytes: ["", "bytes"], read_bytes: ["reads", "bytes"], write_bytes: ["writes", "bytes"],
};

/** Bytes as a policy has them, with nothing rounded away: 1536 → "1.5 KiB", 1000001 → "1000001 B". */
function exactBytes(x) {
  for (const [by, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (x >= by && Number.isInteger((x / by) * 100)) return `${x / by} ${unit}`;
  return `${x} B`;
}

/** Limits of a tenant in the status, {iops: 500, read_bytes: 1e6}, as a policy has them: "{all: 500 iops, reads: 976.56 KiB/s}". exact: for
 * a field, whose text may be sent back as it is; else rounded. */
export function limits(of, exact = false) {
  const kinds = {};

  for (const [key, value] of Object.entries(of ?? {})) {
    const [kind, unit] = LIMITS[key] ?? ["", key];

    (kinds[kind || "all"] ??= []).push(unit === "bytes" ? `${exact ? exactBytes(value) : bytes(value)}/s` : `${exact ? value : short(value)} ${unit}`);
  }
  const list = (texts) => (texts.length > 1 ? `[${texts.join(", ")}]` : texts[0]);
  const parts = Object.entries(kinds);

  if (!parts.length) return "";
  return parts.length === 1 && kinds.all ? list(kinds.all) : `{${parts.map(([kind, texts]) => `${kind}: ${list(texts)}`).join(", ")}}`;
}
