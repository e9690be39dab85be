// SPDX-License-Identifier: BSD-3-Clause
// sketch: small pictures inside a table: a line of the recent past, bars of shares and of causes.

import { h } from "./dom.js";
import { CAUSES, CAUSE_TEXT } from "./store.js";
import { percent, short } from "./units.js";

const SVG = "http://www.w3.org/2000/svg";

/** A line of the numbers, from 0 up. */
export function line(values, label) {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  const top = Math.max(...values, 1e-12);

  svg.setAttribute("viewBox", "0 0 60 16");
  svg.setAttribute("class", "line");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  path.setAttribute("d", values.map((v, i) =>
    `${i ? "L" : "M"}${((i / Math.max(1, values.length - 1)) * 60).toFixed(1)} ${(15 - (v / top) * 14).toFixed(1)}`).join(""));
  svg.append(path);
  return svg;
}

/** What is due, asked for and served, one over the other on one scale. */
export function shareBar(due, asked, more, served, scale) {
  const part = (x) => `${Math.min(100, (100 * x) / scale).toFixed(1)}%`;
  const text = `due ${due === null ? "unknown" : short(due)}, asked for ${more ? "more than " : ""}${short(asked)}, served ${short(served)} iops`;

  return h("span", { class: "sharebar", role: "img", "aria-label": text, title: text },
    h("i", { class: more ? "asked more" : "asked", style: { width: part(asked) } }),
    h("i", { class: "served", style: { width: part(served) } }),
    due === null ? null : h("i", { class: "due", style: { left: part(due) } }));
}

/** The causes of waiting, as parts of the time that requests spend in all. */
export function causeBar(waiting, inside) {
  const all = CAUSES.reduce((sum, c) => sum + waiting[c], inside);
  const text = all > 1e-6
    ? [...CAUSES.filter((c) => waiting[c] > 0.005 * all).map((c) => `${CAUSE_TEXT[c]} ${percent(waiting[c] / all)}`), `in the device ${percent(inside / all)}`].join(", ")
    : "nothing waits";

  return h("span", { class: "causebar", role: "img", "aria-label": text, title: text },
    all > 1e-6 ? CAUSES.map((c) => h("i", { class: `cause-${c}`, style: { width: `${(100 * waiting[c]) / all}%` } })) : null,
    all > 1e-6 ? h("i", { class: "cause-device", style: { width: `${(100 * inside) / all}%` } }) : null);
}
