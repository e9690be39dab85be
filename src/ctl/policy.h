/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: the tree of tenants, as written by a person, checked, and as knobs for a gate.
 *
 * Pure: parsed from memory. One YAML file holds a machine (listen, resources, exports, tenants);
 * this room reads `resources` and `tenants` and leaves the others to the gateway. See weir-policy(5).
 */
#ifndef WEIR_CTL_POLICY_H
#define WEIR_CTL_POLICY_H

#include "base/err.h"
#include "base/units.h"
#include "gate/gate.h"
#include <stdbool.h>
#include <stddef.h>

/* One bound: `5k iops`, `20 MiB/s`, or several together, for all, reads or writes. */
struct weir_limit {
	enum weir_unit unit; /* requests or bytes */
	uint8_t ops;         /* mask WEIR_OPS(…); WEIR_OPS_ALL */
	double rate;         /* per second */
	double burst_rate;   /* max only: > 0: this much instead of rate … */
	weir_time burst_for; /* … for at most this long after being idle */
	struct weir_place at;
};
#define WEIR_LIMITS 6 /* {iops, bytes} × {all, reads, writes} */

struct weir_match { /* every field that is set must match; patterns are shell globs */
	const char *export_, *client, *uid, *tls, *path; /* NULL: anything */
	struct weir_place at;
};

struct weir_tenant {
	const char *name; /* last part */
	const char *path; /* "prod/db" */
	int parent;       /* index, -1: top level; always lower than its own index */
	int first_child, next_sibling; /* index or -1 */
	double weight;
	struct weir_limit min[WEIR_LIMITS], max[WEIR_LIMITS];
	unsigned n_min, n_max;
	double slo_percentile; /* 0: none; "p99.9 < 10ms" → 99.9 */
	weir_time slo_latency;
	struct weir_match *match;
	unsigned n_match; /* leaves only */
	bool is_default;  /* takes what nobody matches */
	struct weir_place at;
};

struct weir_resource {
	const char *name, *back;
	double depth; /* the window until a controller sets it; 0: auto */
	enum weir_unit cost;
	struct weir_rate capacity[2]; /* stated, requests and bytes; per_second 0: not stated */
	bool capacity_auto;           /* learned */
	uint32_t run;
	uint64_t run_distance, credit;
	uint32_t io_unit;     /* bytes that count as one request; larger ones count ⌈bytes/io_unit⌉ */
	double flush_cost, trim_cost; /* in requests */
	struct weir_place at;
};

struct weir_policy {
	struct weir_tenant *tenants; /* parents before children */
	size_t n_tenants;
	struct weir_resource *resources;
	size_t n_resources;
	bool enforce; /* false: shadow mode */
	void *memory; /* owns every string above */
};

/* Parses and checks: unknown keys, mins over the parent's or the capacity, max below min or above
 * nothing, zero weights, cycles, two tenants matching the same thing. 0, or -EINVAL / -ENOMEM and
 * the first error, with its place. `name` is the file's name for messages. */
WEIR_API int weir_policy_parse(const char *text, size_t len, const char *name,
	struct weir_policy **ret_policy, struct weir_err *err);
WEIR_API void weir_policy_free(struct weir_policy *p);
WEIR_API int weir_policy_find(const struct weir_policy *p, const char *path); /* index or -ENOENT */

/* Builds the policy's tree in a gate (empty but for its root): nodes[i] is tenant i's node. Sets
 * weights, hold buckets from max (and burst), R-buckets from min. On error the gate is as it was. */
WEIR_API int weir_policy_install(const struct weir_policy *p, struct weir_gate *g, weir_time now,
	weir_node *ret_nodes, struct weir_err *err);
/* A gate's configuration from resource r. */
WEIR_API void weir_policy_gate(const struct weir_resource *r, struct weir_gate_config *ret_config);
/* The cost of one request in requests, by the resource's rules. */
WEIR_API uint32_t weir_policy_cost(const struct weir_resource *r, enum weir_op op, uint64_t bytes);

#endif
