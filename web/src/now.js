// SPDX-License-Identifier: BSD-3-Clause
// now: all tenants, the worst first. Only the rows that can be seen are in the document.

import { fill, h } from "./dom.js";
import { causeBar, line, shareBar } from "./sketch.js";
import { CAUSES, CAUSE_TEXT } from "./store.js";
import { short, time } from "./units.js";

const ROW = 36; // px, as in page.css
const EXTRA = 8; // rows above and below those that are seen

const ORDERS = {
  worst: { title: "Worst first", value: (row) => row.bad },
  served: { title: "Busiest", value: (row) => row.rates?.served ?? 0 },
  p99: { title: "Slowest", value: (row) => row.rates?.p99 ?? row.tenant.latency?.p99_s ?? 0 },
  waits: { title: "Most waiting", value: (row) => row.rates?.waits ?? 0 },
  tree: { title: "As in the policy", value: null },
};

/** The cause that most waiting requests have, or null. */
export function mainCause(rates) {
  if (!rates || rates.waits < 0.01) return null;
  return CAUSES.reduce((a, b) => (rates.waiting[b] > rates.waiting[a] ? b : a));
}

export function nowView(store, go) {
  const search = h("input", { type: "search", placeholder: "Search tenants", "aria-label": "Search tenants", autocomplete: "off", spellcheck: "false" });
  const order = h("select", { "aria-label": "Order" }, Object.entries(ORDERS).map(([key, o]) => h("option", { value: key }, o.title)));
  const count = h("span", { class: "muted" });
  const space = h("div", { class: "space" }), body = h("div", { class: "rows" });
  const scroll = h("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": "Tenants" },
    h("div", { class: "grid-head", role: "row" },
      ["Tenant", "Due, asked for, served", "iops", "p99", "SLO", "Waits for", "Recent"].map((t) => h("span", { role: "columnheader" }, t))),
    space);
  const elements = new Map(); // by path: a row stays in the document while it is clicked
  let list = [], selected = null, scale = 1, steady = false; // steady: the pointer is over the table, so that rows keep their places

  space.append(body);

  function choose() {
    const text = search.value.trim().toLowerCase(), value = ORDERS[order.value].value;

    const places = new Map(list.map((row, i) => [row.tenant.path, i]));

    list = [...store.rows.values()];
    if (text) list = list.filter((row) => row.tenant.path.toLowerCase().includes(text));
    if (value) {
      list = list.filter((row) => row.tenant.leaf);
      list.sort((a, b) => value(b) - value(a) || (a.tenant.path < b.tenant.path ? -1 : 1));
      if (steady) {
        const place = (row) => places.get(row.tenant.path) ?? places.size;

        list.sort((a, b) => place(a) - place(b));
      }
    }
    scale = 1;
    for (const row of list)
      scale = Math.max(scale, row.rates?.served ?? 0, row.rates?.arrived ?? 0, Number.isFinite(row.due ?? 0) ? row.due ?? 0 : 0);
  }

  function cells(row) {
    const { tenant, rates } = row, cause = mainCause(rates), depth = order.value === "tree" ? tenant.path.split("/").length - 1 : 0;
    const name = order.value === "tree" ? tenant.path.split("/").pop() : tenant.path, slo = tenant.slo;
    const state = slo?.minute?.met;

    let element = elements.get(tenant.path);

    if (!element) {
      element = h("div", { role: "row", "data-path": tenant.path, onclick: () => go(`tenant/${encodeURIComponent(tenant.path)}`) });
      elements.set(tenant.path, element);
    }
    element.className = `grid-row${tenant.path === selected ? " selected" : ""}`;
    element.setAttribute("aria-selected", String(tenant.path === selected));
    return fill(element,
    h("span", { role: "gridcell", class: "name", style: { "padding-left": `${depth * 14}px` }, title: tenant.path },
      tenant.leaf ? h("a", { href: `#/tenant/${encodeURIComponent(tenant.path)}`, tabindex: "-1" }, name) : h("b", null, name)),
    h("span", { role: "gridcell" }, shareBar(row.due, rates?.arrived ?? 0, (rates?.waits ?? 0) > 0.5, rates?.served ?? 0, scale)),
    h("span", { role: "gridcell", class: "number" }, short(rates?.served)),
    h("span", { role: "gridcell", class: "number" }, time(rates?.p99 ?? null)),
    h("span", { role: "gridcell" }, slo
      ? h("span", { class: `badge ${state === false ? "bad" : state ? "good" : ""}` },
        `${state === false ? "missed" : state ? "met" : "idle"} ${time(slo.minute.value_s)} / ${time(slo.latency_s)}`) : null),
    h("span", { role: "gridcell", class: "waits" }, rates ? causeBar(rates.waiting, rates.inside) : null,
      h("span", { class: "words" }, cause ? (tenant.held_by && (cause === "max" || cause === "above") && tenant.held_by !== tenant.path ? `max of ${tenant.held_by}` : CAUSE_TEXT[cause]) : "")),
    h("span", { role: "gridcell" }, row.recent.length > 1 ? line(row.recent.map((p) => p[1]), "requests per second, the last two minutes") : null));
  }

  function draw() {
    const top = scroll.scrollTop, height = scroll.clientHeight || 600;
    const from = Math.max(0, Math.floor(top / ROW) - EXTRA), to = Math.min(list.length, Math.ceil((top + height) / ROW) + EXTRA);

    space.style.setProperty("height", `${list.length * ROW}px`);
    body.style.setProperty("transform", `translateY(${from * ROW}px)`);
    const shown = list.slice(from, to).map(cells);

    if (shown.length !== body.children.length || shown.some((e, i) => e !== body.children[i])) {
      body.replaceChildren(...shown);
      if (elements.size > 4 * shown.length + 100)
        for (const [path, element] of elements) if (!element.isConnected) elements.delete(path);
    }
    scroll.setAttribute("aria-rowcount", String(list.length));
  }

  function update() {
    const s = store.status;

    choose();
    draw();
    fill(count, list.length === 1 ? "1 tenant" : `${list.length} tenants`,
      s?.left_out ? `, and ${s.left_out} that were never active` : "");
  }

  scroll.addEventListener("pointerenter", () => { steady = true; });
  scroll.addEventListener("pointerleave", () => { steady = false; });
  scroll.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  scroll.addEventListener("keydown", (e) => {
    const at = list.findIndex((row) => row.tenant.path === selected);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1, PageDown: at + 10, PageUp: at - 10 }[e.key];

    if (e.key === "Enter" && selected !== null) go(`tenant/${encodeURIComponent(selected)}`);
    if (to === undefined || !list.length) return;
    e.preventDefault();
    const index = Math.max(0, Math.min(list.length - 1, to)), y = index * ROW;

    selected = list[index].tenant.path;
    if (y < scroll.scrollTop) scroll.scrollTop = y;
    else if (y + ROW > scroll.scrollTop + scroll.clientHeight - ROW) scroll.scrollTop = y + 2 * ROW - scroll.clientHeight;
    draw();
  });
  const again = () => { list = []; update(); };
  search.addEventListener("input", again);
  order.addEventListener("change", () => { scroll.scrollTop = 0; again(); });

  return {
    element: h("section", { class: "now" },
      h("div", { class: "row" }, search, order, count, h("span", { class: "legend" },
        CAUSES.map((c) => h("span", null, h("i", { class: `cause-${c}` }), c)), h("span", null, h("i", { class: "cause-device" }), "device"))), scroll),
    update,
    focus: () => search.focus(),
  };
}
