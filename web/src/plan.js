// SPDX-License-Identifier: BSD-3-Clause
// plan: which SLOs hold, why others do not, and whether a new tenant would fit.

import { call, get } from "./api.js";
import { fill, h, put } from "./dom.js";
import { short, time } from "./units.js";

function table(p) {
  return h("table", null, h("thead", null, h("tr", null,
    ["Tenant", "slo", "bound", "replayed", "margin", "priority"].map((t) => h("th", null, t)))),
  h("tbody", null, p.tenants.map((t) => h("tr", { class: t.met ? null : "sick" },
    h("td", null, t.name), h("td", null, `p${t.slo.percentile} < ${time(t.slo.latency)}`),
    h("td", { class: "number" }, t.bound === null ? "none" : time(t.bound)),
    h("td", { class: "number" }, t.replayed ? `${time(t.replayed.latency)} (${time(t.replayed.low)} to ${time(t.replayed.high)})` : "–"),
    h("td", { class: "number" }, t.margin === null || t.margin === undefined ? "–" : `${t.margin < 0 ? "−" : ""}${time(Math.abs(t.margin))}`),
    h("td", null, t.stages.map((s) => `${s.name} ${s.priority}`).join(", "))))));
}

/** The parts of a bound, in words. */
function waits({ waits: w }) {
  if (!w) return "";
  const parts = [...Object.entries(w.others).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([name, s]) => `${time(s)} for ${name}`),
    `${time(w.own)} for itself`, `${time(w.blocking)} for requests of lower priority`, w.inside > 0 && `${time(w.inside)} inside`];

  return `it waits ${parts.filter(Boolean).join(", ")}`;
}

/** A change that would suffice, in words. */
function remedy({ change, of, to }) {
  if (change === "slo") return `${of}: an slo of ${time(to)}`;
  if (change === "rate") return `${of} at ${short(100 * to)} % of its trace's rate`;
  if (change === "depth") return `depth ${to} on ${of}`;
  return `without ${of}`;
}

function result(p) {
  const missed = p.tenants.filter((t) => !t.met), remedies = p.remedies ?? [];

  return [
    h("p", { class: p.feasible ? "good" : "problem" }, p.feasible
      ? `✓ All ${p.tenants.length} SLOs are kept${p.found ? `, found by ${p.found}` : ""}.`
      : missed.length ? `${missed.map((t) => t.name).join(", ")}: the slo would be missed.` : "The slos cannot be kept."),
    p.tenants.length ? table(p) : null,
    h("ul", null, missed.map((t) => h("li", null, `${t.name} misses its slo${t.bound === null ? ": no bound exists" : ` by ${time(t.bound - t.slo.latency)} in the worst case`}; ${waits(t)}`))),
    remedies.length ? [h("h3", null, "Any one of these would do"), h("ul", null, remedies.map((r) => h("li", null, remedy(r))))] : null,
    (p.unknown ?? []).length ? h("p", { class: "muted" }, `Not planned, since they have no trace: ${p.unknown.join(", ")}`) : null,
  ];
}

/** A trace of evenly spaced 4 KiB reads: what a tenant that is known by its rate only would send. */
export function evenTrace(rate, size, seconds = 20) {
  const lines = ["# seconds op offset bytes"], n = Math.min(20000, Math.max(10, Math.round(rate * seconds)));

  for (let i = 0; i < n; i++) lines.push(`${(i / rate).toFixed(6)} R ${((i * 7919) % 65536) * size} ${size}`);
  return `${lines.join("\n")}\n`;
}

export function planView(store) {
  const force = h("p", { class: "muted" }), out = h("div"), answer = h("div"), say = h("p", { class: "problem", role: "alert" });
  const input = (id, label, placeholder, extra = {}) => [h("label", { for: id }, label), h("input", { id, placeholder, autocomplete: "off", spellcheck: "false", ...extra })];
  const form = h("form", { class: "admit" },
    input("a-name", "Name", "new tenant"), input("a-slo", "slo", "p99 < 20ms"), input("a-path", "Resource", "ssd1"),
    input("a-trace", "Trace file", "", { type: "file" }), input("a-rate", "or a steady rate of 4 KiB reads, iops", "500", { inputmode: "numeric" }),
    h("button", { class: "primary" }, "Would it fit?"));
  const of = (id) => form.querySelector(`#${id}`);
  const make = h("button", { class: "primary", onclick: plan }, "Plan the policy in force");

  async function inForce() {
    try {
      const p = await get("/v1/plan");

      put(force, `Plan ${p.number} is in force since ${new Date(p.applied * 1000).toLocaleString()}${p.untrue.length ? `; no longer true: ${p.untrue.join("; ")}` : ""}.`);
    } catch (error) {
      put(force, error.status === 404 ? "No plan is in force." : error.message);
    }
  }

  async function plan() {
    make.disabled = true;
    put(say, "");
    try {
      fill(out, result(await call("POST", "/v1/plan", JSON.stringify({ remedies: true }))));
    } catch (error) {
      put(say, error.message);
    }
    make.disabled = false;
  }

  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const file = of("a-trace").files[0], rate = Number(of("a-rate").value);

    fill(answer);
    if (!file && !(rate > 0)) {
      fill(answer, h("p", { class: "problem" }, "Give a trace or a rate above 0."));
      return;
    }
    const text = file ? await file.text() : evenTrace(rate, 4096), name = file?.name ?? "steady.trace";
    const tenant = { name: of("a-name").value.trim() || "new", slo: of("a-slo").value.trim(), trace: name, path: [of("a-path").value.trim()] };

    try {
      fill(answer, result(await call("POST", "/v1/plan/admit", JSON.stringify({ tenants: [tenant], traces: { [name]: text } }))));
    } catch (error) {
      fill(answer, h("p", { class: "problem", role: "alert" }, error.message));
    }
  });
  inForce();
  return {
    element: h("section", null, h("h2", null, "Plan"), force, make, say, out, h("div", { class: "card" }, h("h3", null, "Admit a new tenant"), form, answer)),
    update: () => {
      const at = of("a-path");

      if (!at.value && store.status?.resources?.length) at.value = store.status.resources[0].name;
    },
  };
}
