// SPDX-License-Identifier: BSD-3-Clause
// cluster: peers and controllers as a gateway sees them; or, at a controller, its servers and tenants.

import { fill, h } from "./dom.js";
import { bytes, short, time } from "./units.js";

const cell = (key, v) => (v === null || v === undefined ? "–" : typeof v === "boolean" ? (v ? "yes" : "no")
  : typeof v === "number" ? (key.endsWith("_s") ? time(v) : key.endsWith("bytes") ? bytes(v) : short(v)) : typeof v === "object" ? Object.values(v).filter((part) => part !== null).join(", ") : String(v));

/** A table of objects with the same keys. */
export function tableOf(rows) {
  if (!rows?.length) return h("p", { class: "muted" }, "none");
  const keys = Object.keys(rows[0]);

  return h("table", null, h("thead", null, h("tr", null, keys.map((k) => h("th", null, k.replace(/_s$/, "").replaceAll("_", " "))))),
    h("tbody", null, rows.map((r) => h("tr", { class: r.connected === false || r.up === false ? "sick" : null }, keys.map((k) => h("td", { class: typeof r[k] === "number" ? "number" : null }, cell(k, r[k])))))));
}

const facts = (o) => h("dl", { class: "facts" }, Object.entries(o).filter(([, v]) => v === null || typeof v !== "object")
  .map(([k, v]) => h("div", null, h("dt", null, k.replace(/_s$/, "").replaceAll("_", " ")), h("dd", null, cell(k, v)))));

export function clusterView(store) {
  const place = h("div");

  return {
    element: h("section", null, h("h2", null, "Cluster"), place),
    update: () => {
      const s = store.status;

      if (!s) return;
      if (!s.tenants) {
        const { bytes_, ...rest } = s;

        fill(place, facts(rest), s.reservations?.why ? h("p", { class: "problem" }, s.reservations.why) : null,
          s.servers ? [h("h3", null, "Servers"), tableOf(s.servers)] : null, s.buckets ? [h("h3", null, "Tenants, tokens of a period"), tableOf(s.buckets.slice(0, 1000))] : null,
          s.services ? [h("h3", null, "Services"), tableOf(s.services)] : null);
        return;
      }
      fill(place, h("h3", null, "Controllers"), tableOf(s.controllers),
        h("h3", null, "Peers"), s.peers ? facts(s.peers) : h("p", { class: "muted" }, "The policy names no peers."),
        s.remarks?.length ? [h("h3", null, "Not as the policy says"), h("ul", { class: "problems" }, s.remarks.map((t) => h("li", null, t)))] : null);
    },
  };
}
