// SPDX-License-Identifier: BSD-3-Clause
// policy: the whole file, checked while it is typed, compared, applied and rolled back.

import { call, get } from "./api.js";
import { fill, h, put, toast } from "./dom.js";

const HISTORY = "weir-policies"; // earlier policies of this session, newest last

/** The lines of two texts as [sign, line], by a longest common subsequence; unchanged beginnings and ends are cheap. */
export function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let head = 0, tail = 0;

  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail), out = [];

  if (x.length * y.length > 4e6) return [...x.map((l) => ["-", l]), ...y.map((l) => ["+", l])];
  const length = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));

  for (let i = x.length - 1; i >= 0; i--)
    for (let k = y.length - 1; k >= 0; k--)
      length[i][k] = x[i] === y[k] ? length[i + 1][k + 1] + 1 : Math.max(length[i + 1][k], length[i][k + 1]);
  for (let i = 0, k = 0; i < x.length || k < y.length;) {
    if (i < x.length && k < y.length && x[i] === y[k]) {
      out.push([" ", x[i++]]);
      k++;
    } else if (k >= y.length || (i < x.length && length[i + 1][k] >= length[i][k + 1])) out.push(["-", x[i++]]);
    else out.push(["+", y[k++]]);
  }
  return out;
}

const earlier = () => JSON.parse(sessionStorage.getItem(HISTORY) ?? "[]");
function remember(policy) {
  const list = earlier().slice(-9);

  list.push(policy);
  try {
    sessionStorage.setItem(HISTORY, JSON.stringify(list));
  } catch {
    sessionStorage.removeItem(HISTORY); // too large
  }
}

const put_ = (policy, text, tenants, dry, keep) => {
  const query = new URLSearchParams({ name: policy.name });
  const rest = policy.tenants_text === undefined || policy.tenants_text === null ? null : tenants;

  if (dry) query.set("dry", "1");
  if (keep) query.set("keep", "1");
  if (rest !== null) query.set("tenants", String(new TextEncoder().encode(rest).length));
  return call("PUT", `/v1/policy?${query}`, text + (rest ?? ""));
};

export function policyView(store) {
  const text = h("textarea", { class: "code", spellcheck: "false", "aria-label": "Policy", rows: 24, wrap: "off" });
  const tenants = h("textarea", { class: "code", spellcheck: "false", "aria-label": "The policy's file of tenants", rows: 14, wrap: "off", hidden: true });
  const keep = h("input", { type: "checkbox", id: "keep", checked: true });
  const apply = h("button", { class: "primary", disabled: true }, "Apply"), back = h("button", { disabled: true }, "Roll back");
  const verdict = h("div", { class: "verdict", role: "status", "aria-live": "polite" }), diff = h("pre", { class: "diff" });
  const head = h("span", { class: "muted" }), overrides = h("p", { class: "muted" });
  let policy = null, timer = 0, asked = 0;

  const changed = () => policy && (text.value !== policy.text || (!tenants.hidden && tenants.value !== policy.tenants_text));

  async function load() {
    try {
      policy = await get("/v1/policy");
    } catch (error) {
      fill(verdict, h("p", { class: "problem" }, error.message));
      return;
    }
    text.value = policy.text;
    tenants.hidden = policy.tenants_text === undefined || policy.tenants_text === null;
    tenants.value = policy.tenants_text ?? "";
    put(head, `${policy.name}, version ${policy.version}`);
    put(overrides, policy.overrides.length
      ? `Set since then: ${policy.overrides.map((o) => `${o.key} = ${o.value}`).join(", ")}` : "");
    back.disabled = !earlier().length;
    fill(verdict);
    fill(diff);
    apply.disabled = true;
  }

  /** Select the line and column that an error names, "name:LINE:COLUMN: text". */
  function point(message) {
    const at = message.match(/:(\d+):(\d+):/);

    if (!at) return null;
    return h("button", { class: "plain", onclick: () => {
      const lines = text.value.split("\n"), n = Number(at[1]) - 1;
      const from = lines.slice(0, n).reduce((sum, l) => sum + l.length + 1, 0);

      text.focus();
      text.setSelectionRange(from, from + (lines[n]?.length ?? 0));
      text.scrollTop = Math.max(0, (n - 5) * 20);
    } }, `go to line ${at[1]}`);
  }

  async function check() {
    const mine = ++asked;

    fill(diff, difference(policy.text, text.value).map(([sign, l]) => h("span", { class: { "+": "add", "-": "del", " ": "" }[sign] }, `${sign} ${l}\n`)));
    if (!changed()) {
      fill(verdict);
      apply.disabled = true;
      return;
    }
    try {
      const r = await put_(policy, text.value, tenants.value, true, keep.checked);

      if (mine !== asked) return;
      apply.disabled = false;
      fill(verdict, h("p", { class: "good" }, "✓ This policy can be put in force."), h("ul", null, r.notes.map((n) => h("li", null, n))));
    } catch (error) {
      if (mine !== asked) return;
      apply.disabled = true;
      fill(verdict, h("p", { class: "problem", role: "alert" }, error.message, " ", point(error.message)));
    }
  }

  async function run(newText, newTenants, word) {
    const before = { name: policy.name, text: policy.text, tenants_text: policy.tenants_text ?? null };

    try {
      const r = await put_(policy, newText, newTenants, false, keep.checked);

      if (word === "applied") remember(before);
      await load();
      toast(`The policy is ${word}: version ${r.version}${r.notes.length ? `. ${r.notes.join("; ")}` : ""}`);
      store.soon(0);
    } catch (error) {
      toast(error.message, { error: true });
    }
  }

  for (const area of [text, tenants, keep])
    area.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(check, 300);
    });
  apply.addEventListener("click", () => run(text.value, tenants.value, "applied"));
  back.addEventListener("click", async () => {
    const list = earlier(), last = list.pop();

    if (!last) return;
    await run(last.text, last.tenants_text ?? "", "rolled back");
    sessionStorage.setItem(HISTORY, JSON.stringify(list));
    back.disabled = !list.length;
  });
  load();
  return {
    element: h("section", { class: "policy" }, h("div", { class: "row" }, h("h2", null, "Policy"), head), overrides,
      h("div", { class: "columns even" }, h("div", null, text, tenants,
        h("div", { class: "row" }, apply, back, h("button", { onclick: load }, "Discard"), h("label", { for: "keep" }, keep, " keep what weir set changed"))),
      h("div", null, verdict, diff))),
    update: () => {},
  };
}
