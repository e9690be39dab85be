// SPDX-License-Identifier: BSD-3-Clause
// main: the frame of the page: navigation, the state of the connection, the token, the theme.

import "./page.css";
import { forgetToken, onTokenNeeded } from "./api.js";
import { clusterView } from "./cluster.js";
import { fill, h, put } from "./dom.js";
import { nowView } from "./now.js";
import { planView } from "./plan.js";
import { policyView } from "./policy.js";
import { resourcesView, volumesView } from "./resources.js";
import { Store } from "./store.js";
import { tenantView } from "./tenant.js";
import { time } from "./units.js";

const VIEWS = { "": ["Now", nowView], resources: ["Resources", resourcesView], volumes: ["Volumes", volumesView], policy: ["Policy", policyView], plan: ["Plan", planView], cluster: ["Cluster", clusterView] };

const store = new Store(), main = h("main", { tabindex: "-1" });
const state = h("span", { class: "state", role: "status", "aria-live": "polite" }), version = h("span", { class: "muted" });
const nav = h("nav", { "aria-label": "Views" });
let view = null, links = {};

const go = (hash) => { location.hash = `#/${hash}`; };

function drawNav() {
  const only = store.status && !store.status.tenants; // a controller has the cluster only

  links = Object.fromEntries(Object.entries(VIEWS).filter(([key]) => !only || key === "cluster" || key === "plan")
    .map(([key, [title]]) => [key, h("a", { href: `#/${key}` }, title)]));
  fill(nav, Object.values(links));
  markNav();
}

function markNav() {
  const [name] = location.hash.slice(2).split("/"), key = name === "tenant" ? "" : name;

  for (const [k, link] of Object.entries(links))
    if (k === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
}

function show() {
  const [asked, ...rest] = location.hash.slice(2).split("/");
  const name = store.status && !store.status.tenants && asked !== "plan" ? "cluster" : asked; // a controller has no tenants of its own

  view?.end?.();
  try {
    if (name === "tenant") view = tenantView(store, go, decodeURIComponent(rest.join("/")));
    else view = (VIEWS[name] ?? VIEWS[""])[1](store, go);
  } catch (error) {
    view = { element: h("p", { class: "problem" }, error.message), update: () => {} };
  }
  fill(main, view.element);
  markNav();
  view.update();
  scrollTo(0, 0);
}

/** Ask for the token in a dialog; the promise ends with it. */
function askForToken(wrong) {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "current-password", "aria-label": "token" });
    const dialog = h("dialog", { "aria-label": "Token" }, h("form", { method: "dialog", onsubmit: (e) => {
      e.preventDefault();
      dialog.close();
      dialog.remove();
      resolve(input.value.trim());
    } }, h("h2", null, "Token"), h("p", null, wrong ? "That token is not right. " : "", "This gateway asks for the token of its API, the first line of its token file."), input,
    h("div", { class: "row end" }, h("button", { class: "primary" }, "Go on"))));

    dialog.addEventListener("cancel", (e) => e.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

let asking = null;
onTokenNeeded((wrong) => {
  forgetToken();
  asking ??= askForToken(wrong).finally(() => { asking = null; });
  return asking;
});

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try {
    theme ? localStorage.setItem("weir-theme", theme) : localStorage.removeItem("weir-theme");
  } catch { /* storage is off */ }
  dispatchEvent(new Event("themechange"));
}

function toggleTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  setTheme(dark ? "light" : "dark");
}

let kind;
store.listen(() => {
  const s = store.status;

  if (s && kind !== Boolean(s.tenants)) {
    kind = Boolean(s.tenants);
    drawNav();
    if (!kind && location.hash !== "#/plan") go("cluster");
  }
  document.body.classList.toggle("lost", store.error !== null);
  put(state, store.error ? `not connected: ${store.error.message}` : "connected");
  put(version, s ? `weir ${s.weir}${s.policy_version ? `, policy ${s.policy_version}` : ""}, up ${time(s.uptime_s)}${s.enforce === false ? ", not enforced (shadow mode)" : ""}` : "");
  view?.update();
});

addEventListener("hashchange", show);
addEventListener("keydown", (e) => {
  if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/") {
    e.preventDefault();
    if (location.hash.length > 2) go("");
    requestAnimationFrame(() => view?.focus?.());
  } else if (e.key === "Escape" && location.hash.startsWith("#/tenant/")) go("");
});
try {
  const theme = localStorage.getItem("weir-theme");

  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* storage is off */ }
document.body.append(h("a", { class: "skip", href: "#main", onclick: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the content"),
  h("header", null, h("a", { class: "brand", href: "#/" }, "Weir"), nav, h("span", { class: "grow" }), version, state,
    h("button", { class: "plain", onclick: toggleTheme, "aria-label": "Light or dark" }, "◐")), main);
drawNav();
show();
store.start();
