// SPDX-License-Identifier: BSD-3-Clause
// resources: windows, capacity and controllers; the bypass; and the volumes behind each gate.

import { call, get } from "./api.js";
import { confirmByWord, fill, h, put, refill, toast } from "./dom.js";
import { bytes, percent, short, time } from "./units.js";

const word = (value) => (value === null || value === undefined ? "–"
  : typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "number" ? short(value) : String(value));

/** The single values of a controller's facts. */
function controllerFacts(r) {
  const facts = r.controller ? r[r.controller] : null;

  if (!facts) return null;
  return h("dl", { class: "facts" }, Object.entries(facts).filter(([, v]) => typeof v !== "object" || v === null).map(([k, v]) =>
    h("div", null, h("dt", null, k.replace(/_s$/, "").replaceAll("_", " ")), h("dd", null, k.endsWith("_s") ? time(v) : word(v)))));
}

export function resourcesView(store) {
  const cards = h("div", { class: "cards" });
  let before = null;

  async function bypass(r) {
    const on = !r.bypassed;

    if (on && !(await confirmByWord("Bypass the gate", `All requests will go past the gate of ${r.name}: no limit, min or weight acts there until this is undone.`, r.name)))
      return;
    try {
      const reply = await call(on ? "PUT" : "DELETE", `/v1/bypass/${encodeURIComponent(r.name)}`);

      toast(on ? `${r.name} is bypassed; ${reply.released} waiting requests were released` : `the gate of ${r.name} is in force again`);
    } catch (error) {
      toast(error.message, { error: true });
    }
    store.soon(0);
  }

  function card(r, dt) {
    const was = before?.get(r.name), rate = was && dt > 0 ? (r.served - was.served) / dt : null;
    const full = was && dt > 0 ? (r.full_s - was.full_s) / dt : null;

    return h("article", { class: `card${r.healthy ? "" : " sick"}` },
      h("h3", null, r.name, r.bypassed ? h("span", { class: "badge bad" }, `bypassed for ${time(r.bypassed_s)}`) : null),
      h("p", { class: "muted" }, r.back, " · ", r.state),
      h("dl", { class: "facts" }, [
        ["served", rate === null ? "–" : `${short(rate)} iops`],
        ["window", `${short(r.window)}${r.window_bytes ? `, ${bytes(r.window_bytes)}` : ""}`], ["inside", String(r.in_flight)], ["waiting", String(r.queued)],
        ["window full", full === null ? "–" : percent(Math.min(1, full))],
        ["capacity", r.capacity?.iops ? `${short(r.capacity.iops)} iops${r.capacity.bytes ? `, ${bytes(r.capacity.bytes)}/s` : ""} ${r.capacity.stated ? "(stated)" : "(learned)"}` : "not known yet"],
        ["mins", r.mins === null ? "–" : `${percent(r.mins)} of the capacity`], ["stalled volumes", String(r.stalled)], ["errors", String(r.errors)],
        ["controller", r.controller ?? "none"],
      ].map(([k, v]) => h("div", null, h("dt", null, k), h("dd", null, v)))), controllerFacts(r),
      h("button", { class: r.bypassed ? "primary" : "danger", "data-key": r.name, onclick: () => bypass(r) }, r.bypassed ? "Close the gate again" : "Bypass…"));
  }

  return {
    element: h("section", null, h("h2", null, "Resources"), cards),
    update: () => {
      const s = store.status;

      if (!s?.resources) return;
      const dt = before ? s.now_s - before.at : 0;

      refill(cards, s.resources.map((r) => card(r, dt)));
      before = new Map(s.resources.map((r) => [r.name, r]));
      before.at = s.now_s;
    },
  };
}

export function volumesView(store) {
  const table = h("div"), problems = h("ul", { class: "problems" }), say = h("p", { class: "problem", role: "alert" });
  const field = (name, placeholder) => h("input", { name, placeholder, "aria-label": placeholder, autocomplete: "off", spellcheck: "false" });
  const name = field("name", "name"), resource = field("resource", "resource"), size = field("size", "size, 20 GiB"), klass = field("class", "class (or none)");
  let due = 0;

  async function change(method, path, body, text) {
    put(say, "");
    try {
      await call(method, path, body === undefined ? undefined : JSON.stringify(body));
      toast(text);
    } catch (error) {
      put(say, error.message);
    }
    load();
  }

  async function load() {
    due = Date.now() + 5000;
    try {
      const r = await get("/v1/volumes");

      fill(problems, [...r.unserved, ...r.remarks].map((t) => h("li", null, t)));
      refill(table, r.volumes.length ? h("table", null, h("thead", null, h("tr", null,
        ["Volume", "resource", "size", "clients", "tenant", "class", "URI", ""].map((t) => h("th", null, t)))),
      h("tbody", null, r.volumes.map(row))) : h("p", { class: "muted" }, "There are no volumes."));
    } catch (error) {
      put(say, error.message);
    }
  }

  function row(v) {
    const path = `/v1/volumes/${encodeURIComponent(v.name)}`;
    const ask = async (label, key) => {
      const value = prompt(`${label} of ${v.name}`, key === "class" ? v.class ?? "" : bytes(v.size));

      if (value !== null) change("PATCH", path, { [key]: value.trim() === "" ? null : value.trim() }, `${v.name}: ${key} ${value}`);
    };
    const remove = async () => {
      if (await confirmByWord("Remove the volume", `${v.name} (${v.back}) is removed${v.from === "api" ? ", and the file that was created for it" : ""}.`, v.name))
        change("DELETE", path, undefined, `${v.name} is removed`);
    };

    return h("tr", { class: v.open && !v.trouble ? null : "sick" }, h("td", null, v.name, v.trouble ? h("div", { class: "problem" }, v.trouble) : null),
      h("td", null, v.resource), h("td", { class: "number" }, bytes(v.size)), h("td", { class: "number" }, String(v.clients)),
      h("td", null, v.tenant ? h("a", { href: `#/tenant/${encodeURIComponent(v.tenant)}` }, v.tenant) : "by client"), h("td", null, v.class ?? "–"), h("td", { class: "uri" }, v.uri ?? "–"),
      h("td", { class: "buttons" }, h("button", { "data-key": `grow ${v.name}`, onclick: () => ask("New size", "size") }, "Grow"), h("button", { "data-key": `class ${v.name}`, onclick: () => ask("Class", "class") }, "Class"),
        h("button", { class: "danger", "data-key": `remove ${v.name}`, onclick: remove }, "Remove")));
  }

  return {
    element: h("section", null, h("h2", null, "Volumes"),
      h("form", { class: "row", onsubmit: (e) => {
        e.preventDefault();
        change("PUT", `/v1/volumes/${encodeURIComponent(name.value.trim())}`,
          { resource: resource.value.trim(), size: size.value.trim(), ...(klass.value.trim() ? { class: klass.value.trim() } : {}) }, `${name.value} is made`);
      } }, name, resource, size, klass, h("button", { class: "primary" }, "Create")), say, problems, table),
    update: () => {
      if (!resource.value && store.status?.resources?.length) resource.value = store.status.resources[0].name;
      if (Date.now() >= due) load();
    },
  };
}
