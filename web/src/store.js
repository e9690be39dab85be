// SPDX-License-Identifier: BSD-3-Clause
// store: the status of the gateway, asked for again and again, and its rates: the differences of two answers.

import { get } from "./api.js";

export const CAUSES = ["max", "above", "tokens", "window", "turn"];
/** Each cause in words. */
export const CAUSE_TEXT = {
  max: "its own max", above: "the max of a group above it", tokens: "tokens of its controller",
  window: "a free slot of the resource", turn: "its turn: other tenants go first",
};

const KEPT = 120; // points of a tenant's recent rates
const MANY = 1000; // tenants: above, histograms are asked for one tenant only

/** The value of a histogram's bucket in seconds (weir-api(7)). */
function bucketValue(b) {
  return (b < 128 ? b : (128 + 2 * ((b - 128) % 64) + 1) * 2 ** Math.floor((b - 128) / 64)) / 1e9;
}

/** Percentiles of the requests between two replies' histograms (alternating buckets and counts), or null: there are none. */
export function between(before, after, percentiles) {
  const counts = new Map();
  let total = 0;

  for (let i = 0; i < after.length; i += 2) counts.set(after[i], after[i + 1]);
  for (let i = 0; i < (before?.length ?? 0); i += 2) counts.set(before[i], (counts.get(before[i]) ?? 0) - before[i + 1]);
  const list = [...counts].filter(([, n]) => n > 0).sort((a, b) => a[0] - b[0]);

  for (const [, n] of list) total += n;
  if (!total) return null;
  return percentiles.map((p) => {
    let left = Math.ceil((p / 100) * total);

    for (const [b, n] of list) {
      left -= n;
      if (left <= 0) return bucketValue(b);
    }
    return bucketValue(list[list.length - 1][0]);
  });
}

/** What a tenant did between two looks, per second. */
function rates(before, now, dt) {
  const per = (key) => Math.max(0, (now[key] - before[key]) / dt);
  const waiting = {};
  let all = 0;

  for (const cause of CAUSES) {
    waiting[cause] = Math.max(0, (now.wait_s[cause] - before.wait_s[cause]) / dt);
    all += waiting[cause];
  }
  const tails = now.latency?.buckets ? between(before.latency?.buckets, now.latency.buckets, [50, 99]) : null;

  return {
    served: per("served"), arrived: per("arrivals"), bytes: per("bytes"), errors: per("errors"),
    inside: Math.max(0, (now.device_s - before.device_s) / dt), waiting, waits: all,
    p50: tails?.[0] ?? null, p99: tails?.[1] ?? null,
  };
}

/** The part of all that is due to a tenant, in requests a second: its part of each resource's capacity, within min and max. */
function due(tenant, resources) {
  let sum = null;

  for (const at of tenant.at ?? []) {
    const capacity = resources.get(at.resource)?.capacity?.iops;

    if (capacity && at.due !== null) sum = (sum ?? 0) + at.due * capacity;
  }
  if (sum === null) return null;
  return Math.min(Math.max(sum, tenant.min?.iops ?? 0), tenant.max?.iops ?? Infinity);
}

/** How bad a tenant's state is: a missed slo counts most, then the part of its time that requests wait. */
function badness(tenant, r) {
  const missed = tenant.slo?.minute?.met === false ? 10 : tenant.slo?.hour?.met === false ? 5 : 0;
  const failing = r && r.errors > 0 ? 20 : 0;

  if (!r) return missed;
  const outside = r.waits, inside = r.inside;
  return failing + missed + (outside + inside > 0.01 ? outside / (outside + inside) : 0) + Math.min(1, Math.log10(1 + outside) / 4);
}

export class Store {
  constructor() {
    this.status = null;
    this.error = null;
    this.failures = 0;
    this.rows = new Map(); // by path: {tenant, rates, due, bad, recent: [[t, served, p99, waits]…]}
    this.resources = new Map();
    this.listeners = new Set();
    this.focus = null; // path: the tenant whose histogram is wanted whatever their number
    this.offset = 0;
  }

  listen(f) {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  start() {
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.soon(0); });
    this.soon(0);
  }

  soon(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), ms);
  }

  async look() {
    if (document.hidden || this.looking) return;
    this.looking = true;
    const began = performance.now();
    let wait = 1000;

    try {
      const many = (this.status?.tenants_all ?? 0) > MANY;
      const s = await get(`/v1/status?active=auto${many ? "" : "&histograms=1"}`);
      // Looking at a large gateway costs it more: look less often, so that the cost stays small.
      wait = Math.min(5000, Math.max(1000, 10 * (performance.now() - began), s.bytes_ / 400));
      this.take(s);
      this.error = null;
      this.failures = 0;
    } catch (error) {
      this.error = error;
      this.failures++;
      wait = Math.min(5000, 500 * this.failures);
    }
    this.looking = false;
    for (const f of this.listeners) f(this);
    this.soon(wait);
  }

  take(s) {
    const before = this.status, dt = before ? s.now_s - before.now_s : 0;
    const again = before && (s.uptime_s < before.uptime_s || dt <= 0); // another gateway: its counters begin at 0
    const old = again ? new Map() : this.rows;

    this.status = s;
    if (!s.tenants) return; // a controller
    this.resources = new Map((s.resources ?? []).map((r) => [r.name, r]));
    this.rows = new Map();
    for (const t of s.tenants) {
      const was = old.get(t.path);
      const r = was && dt > 0 && t.wait_s && was.tenant.wait_s ? rates(was.tenant, t, dt) : null;
      const recent = was?.recent ?? [];

      if (r) {
        recent.push([Date.now() / 1000, r.served, r.p99, r.waits]);
        if (recent.length > KEPT) recent.shift();
      }
      this.rows.set(t.path, { tenant: t, rates: r, due: due(t, this.resources), bad: badness(t, r), recent });
    }
  }
}
