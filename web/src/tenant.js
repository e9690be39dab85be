// SPDX-License-Identifier: BSD-3-Clause
// tenant: why one tenant is slow, its past, the tenants that were served meanwhile, and its knobs.

import { get } from "./api.js";
import { setKnob } from "./change.js";
import { chart } from "./chart.js";
import { fill, h, put, refill, toast } from "./dom.js";
import { mainCause } from "./now.js";
import { CAUSES } from "./store.js";
import { bytes, limits, percent, short, time } from "./units.js";

const SPANS = { 300: "5 min", 3600: "1 h", 21600: "6 h", 86400: "24 h" };

/** Why the tenant waits, and what would help, in a sentence or two. */
export function reason(row) {
  const { tenant, rates } = row;

  if (!rates) return "Measuring…";
  const cause = mainCause(rates), inside = rates.inside, all = rates.waits + inside;

  if (all < 0.01) return rates.served > 0 ? "Nothing waits: each request passes at once, and the device is quick." : "It is idle.";
  if (!cause || rates.waits < 0.2 * all)
    return `Requests spend ${percent(inside / all)} of their time in the device: neither limits nor other tenants hold them back.`;
  const part = percent(rates.waiting[cause] / all);
  const text = {
    max: `${part} of its requests' time is spent waiting for its own max, ${limits(tenant.max)}. A higher max would help, if the device has room.`,
    above: `${part} of its requests' time is spent waiting for the max of ${tenant.held_by ?? "a group above it"}. That group's max holds back all tenants in it.`,
    tokens: `${part} of its requests' time is spent waiting for tokens of the resource's controller: its share there is used up.`,
    window: `${part} of its requests' time is spent waiting for a free slot of the resource: the device itself is busy. A larger depth lets more in at once, at the price of a longer time inside.`,
    turn: `${part} of its requests' time is spent waiting while other tenants go first. A larger weight or a min gives it more; or limit a neighbour (below).`,
  };
  return text[cause];
}

/** An slo's window in words. Without requests it is neither met nor missed. */
const verdict = (w) => (w.met === null ? "no requests" : `${time(w.value_s)} ${w.met ? "met" : "missed"}`);

function knobForm(path, store, soon) {
  const inputs = {}, was = {};
  const say = h("p", { class: "problem", role: "alert" });
  const rows = ["weight", "min", "max"].map((knob) => {
    const input = h("input", { id: `knob-${knob}`, autocomplete: "off", spellcheck: "false", placeholder: { weight: "1", min: "none", max: "none" }[knob] });
    const apply = async (value) => {
      put(say, "");
      try {
        await setKnob(`${path}.${knob}`, value, soon);
        was[knob] = input.value;
      } catch (error) {
        put(say, error.message);
        input.focus();
      }
    };

    inputs[knob] = input;
    return h("form", { class: "knob", onsubmit: (e) => { e.preventDefault(); apply(input.value.trim() || "none"); } },
      h("label", { for: `knob-${knob}` }, knob), input, h("button", null, "Apply"),
      h("button", { type: "button", class: "plain", title: "As in the policy", onclick: () => apply(null) }, "reset"));
  });

  /** Show the values in force, but not over what is being typed. */
  function update(tenant) {
    const now = { weight: String(tenant.weight), min: limits(tenant.min, true), max: limits(tenant.max, true) };

    for (const [knob, input] of Object.entries(inputs)) {
      if (input.value === (was[knob] ?? "") && document.activeElement !== input) input.value = now[knob];
      if (document.activeElement !== input) was[knob] = input.value;
    }
  }
  return { element: h("div", { class: "card" }, h("h3", null, "Change"), rows, say,
    h("p", { class: "muted" }, "As with weir set: 5k iops, 100 MiB/s, [4k iops, 40 MiB/s], none.")), update };
}

/** The others at the tenant's resources, without those of a group, the most served first: those that were served while it waited. */
function others(store, path) {
  const mine = store.rows.get(path), at = new Set((mine?.tenant.at ?? []).map((a) => a.resource));

  return [...store.rows.values()]
    .filter((row) => row.tenant.leaf && !`${row.tenant.path}/`.startsWith(`${path}/`) && row.rates?.served > 0 && row.tenant.at.some((a) => at.has(a.resource)))
    .sort((a, b) => b.rates.served - a.rates.served).slice(0, 10);
}

export function tenantView(store, go, path) {
  const title = h("h2", null, path), why = h("p", { class: "why" }), facts = h("dl", { class: "facts" });
  const span = h("select", { "aria-label": "Time shown" }, Object.entries(SPANS).map(([s, text]) => h("option", { value: s }, text)));
  const note = h("span", { class: "muted" }), table = h("div");
  const slo = store.rows.get(path)?.tenant.slo ?? null;
  const causes = chart({ title: "Requests that wait, by cause", stacked: true, format: short,
    series: CAUSES.map((c) => ({ label: c, color: `--cause-${c}` })) });
  const tails = chart({ title: "Latency", format: time, mark: slo?.latency_s ?? null,
    series: [{ label: "p50", color: "--cool" }, { label: "p99", color: "--warm" }] });
  const rate = chart({ title: "Requests per second", format: short,
    series: [{ label: "arrived", color: "--muted" }, { label: "served", color: "--accent" }] });
  const knobs = knobForm(path, store, () => store.soon(0));
  let due = 0, aborted = new AbortController();

  async function history() {
    due = Date.now() + (span.value === "300" ? 5000 : 30000);
    try {
      const r = await get(`/v1/history?tenant=${encodeURIComponent(path)}&span=${span.value}s`, aborted.signal);
      const column = (name) => r.points.map((p) => p[r.columns.indexOf(name)]);
      const times = column("time_s");

      put(note, r.points.length ? `every ${time(r.step_s)}` : "nothing was recorded yet");
      causes.set([times, ...CAUSES.map((c) => column(`wait_${c}`))]);
      tails.set([times, column("p50_s"), column("p99_s")]);
      rate.set([times, column("arrived"), column("served")]);
    } catch (error) {
      if (error.name !== "AbortError") put(note, error.message);
    }
  }

  function cap(row) {
    const half = Math.max(1, Math.round(row.rates.served / 2));
    const value = `${half} iops`;

    return h("button", { "data-key": `cap ${row.tenant.path}`, onclick: async () => {
      try {
        await setKnob(`${row.tenant.path}.max`, value, () => store.soon(0));
      } catch (error) {
        toast(error.message, { error: true });
      }
    } }, `Cap at ${short(half)}`);
  }

  function update() {
    const row = store.rows.get(path);

    if (!row) {
      put(why, store.status ? "There is no such tenant, or it was never active." : "");
      return;
    }
    const { tenant, rates } = row;

    put(why, reason(row));
    fill(facts, [
      ["served", rates ? `${short(rates.served)} iops, ${bytes(rates.bytes)}/s` : "–"],
      ["due", row.due === null ? "–" : `${short(row.due)} iops`],
      ["waiting now", String(tenant.queued)], ["in the device", String(tenant.in_flight)],
      ["oldest waits", time(tenant.oldest_wait_s)],
      ["p50, p99", `${time(rates?.p50 ?? null)}, ${time(rates?.p99 ?? null)}`],
      ["clients", String(tenant.clients)],
      ["errors", String(tenant.errors)],
      tenant.slo && [`p${tenant.slo.percentile} < ${time(tenant.slo.latency_s)}`,
        `last minute ${verdict(tenant.slo.minute)}, hour ${verdict(tenant.slo.hour)}`],
    ].filter(Boolean).map(([k, v]) => h("div", null, h("dt", null, k), h("dd", null, v))));
    knobs.update(tenant);
    const list = others(store, path);

    refill(table, list.length ? h("table", null,
      h("thead", null, h("tr", null, ["Tenant", "served", "due", "inside", ""].map((t) => h("th", null, t)))),
      h("tbody", null, list.map((o) => h("tr", null,
        h("td", null, h("a", { "data-key": o.tenant.path, href: `#/tenant/${encodeURIComponent(o.tenant.path)}` }, o.tenant.path)),
        h("td", { class: "number" }, `${short(o.rates.served)} iops`), h("td", { class: "number" }, o.due === null ? "–" : `${short(o.due)} iops`),
        h("td", { class: "number" }, short(o.rates.inside)), h("td", null, cap(o))))))
      : h("p", { class: "muted" }, "No other tenant is served there now."));
    if (Date.now() >= due) history();
  }

  span.addEventListener("change", history);
  return {
    element: h("section", { class: "tenant" },
      h("div", { class: "row" }, h("a", { href: "#/", class: "back" }, "← all tenants"), span, note), title, why, facts,
      h("div", { class: "columns" }, h("div", { class: "charts" }, causes.element, tails.element, rate.element),
        h("div", null, knobs.element, h("div", { class: "card" }, h("h3", null, "Served meanwhile"), table)))),
    update,
    end: () => { aborted.abort(); for (const c of [causes, tails, rate]) c.end(); },
  };
}
