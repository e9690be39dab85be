/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: read the tree of tenants from a file, check it, and turn it into knobs for a gate.
 *
 * Pure: parsed from memory. One YAML file describes a machine (listen, resources, exports,
 * tenants); weir-policy(5) is the manual of the format and describes every key.
 *
 *   policy.c           memory, remarks, the top level
 *   policy/serve.c     keys for the gateway: addresses, TLS, threads, memory
 *   policy/resource.c  resources, exports
 *   policy/hosts.c     peers: the hosts that share a resource
 *   policy/controller.c  the controller of a resource and its settings
 *   policy/cluster.c   servers with one min and max over all of them: pShift
 *   policy/tenant.c    the tree
 *   policy/limit.c     min, max, burst
 *   policy/plan.c      slo, and the keys for a planner: links, trace, path
 *   policy/by-size.c   min and max that follow the size of the tenant's exports
 *   policy/class.c     classes: named sets of a tenant's knobs
 *   policy/each.c      templates: a tenant per export, client, uid or TLS identity
 *   policy/check.c     conflicts between the parts (matches: policy/check-match.c, effects on
 *                      clients: policy/check-client.c)
 *   policy/bounds.c    effective min and max of every tenant in the tree
 *   policy/match.c     the tenant of a request
 *   policy/index.c     an index for match.c
 *   policy/resource.c  resources and exports, and the cost of requests
 *   policy/knobs/install.c  knobs for a gate
 */
#ifndef WEIR_POLICY_H
#define WEIR_POLICY_H

#include <weir/err.h>
#include <weir/units.h>
#include <weir/gate.h>
#include <stdbool.h>
#include <stddef.h>

WEIR_BEGIN_DECLS

/* Operations are limited all together, or reads and writes separately. Writes are all operations
 * that change data or make it durable: flushes and trims too. A status request is neither a read
 * nor a write: only limits of all requests count it. */
#define WEIR_OPS_READS  WEIR_OPS(WEIR_READ)
#define WEIR_OPS_WRITES (WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_FLUSH) | WEIR_OPS(WEIR_TRIM))

/* One bound: `5k iops`, `20 MiB/s`, or several together, for all, reads or writes. */
struct weir_limit {
	enum weir_unit unit; /* requests or bytes */
	uint8_t ops;         /* WEIR_OPS_ALL, WEIR_OPS_READS or WEIR_OPS_WRITES */
	double rate;         /* per second, > 0 */
	double burst_rate;   /* max only: > 0: this rate instead of `rate` … */
	weir_time burst_for; /* … for at most this long after being idle */
	struct weir_place at;
};
#define WEIR_LIMITS 6 /* {iops, bytes} × {all, reads, writes} */
/* Return the index of the bound of a unit and an operation class in an array of WEIR_LIMITS. */
static inline unsigned weir_limit_slot(enum weir_unit unit, uint8_t ops)
{
	return (unsigned)unit * 3 + (ops == WEIR_OPS_READS ? 1 : ops == WEIR_OPS_WRITES ? 2 : 0);
}

struct weir_match { /* every field that is set must match; see weir_policy_match */
	const char *export_, *client, *uid, *tls, *path; /* NULL: anything */
	struct weir_place at;
};

/* A bound by size: `3 iops/GiB`, of the exports that the tenant matches by name. */
struct weir_by_size {
	enum weir_unit unit;
	uint8_t ops;
	double per_gib;           /* per second, for each GiB */
	double at_least, at_most; /* per second; 0 and INFINITY: not stated */
	double burst_rate;        /* max only, as in struct weir_limit */
	weir_time burst_for;
	struct weir_place at;
};

struct weir_each;      /* a template, which only this program's own code reads */
struct policy_planned; /* keys for a planner, which only this program's own code reads */
struct policy_net;     /* shares of links and matches of packets, likewise */

struct weir_tenant {
	const char *name;              /* last part */
	const char *path;              /* "prod/db" */
	int parent;                    /* index, -1: top level; always lower than its own index */
	int first_child, next_sibling; /* index or -1 */
	double weight;
	struct weir_limit min[WEIR_LIMITS], max[WEIR_LIMITS];
	unsigned n_min, n_max;
	double slo_percentile; /* 0: none; "p99.9 < 10ms" → 99.9. Leaves only */
	weir_time slo_latency;
	struct weir_match *match;
	unsigned n_match;             /* leaves only */
	const char **servers;         /* of the cluster, that serve the tenant; leaves only */
	unsigned n_servers;           /* 0: all servers */
	bool is_default;              /* takes the requests that match no tenant */
	struct weir_place at, slo_at; /* slo_at: of the slo, if there is one */
	const char *class_;           /* name of its class; NULL: none */
	/* bounds that follow a size; also in min and max, once the size is known */
	const struct weir_by_size *min_by_size, *max_by_size;
	unsigned n_min_by_size, n_max_by_size;
	const struct weir_each
		*each;        /* the template of its children; then `match` is the template's */
	bool made;            /* by the parent's template, for its match; found by its name */
	bool others;          /* takes the clients for which the parent's template has no tenant */
	const char *min_off;  /* why its min is not in force, nor in min; NULL: it is */
	uint8_t slo_ops;      /* of the slo: 0: all requests, WEIR_OPS_READS or WEIR_OPS_WRITES */
	weir_time slo_window; /* over which it counts; 0: not stated */
	const struct policy_planned *planned; /* NULL: none of its keys is stated */
	const struct policy_net *net;         /* NULL: not a service of links */
};

struct weir_policy;   /* a file, read and checked */
struct weir_resource; /* one of its resources */

/* Results of parsing: errors, which refuse the policy, and warnings, which do not, in the order in
 * which they were found. Both counts may exceed the number kept. */
#define WEIR_POLICY_REMARKS 20
struct weir_policy_remarks {
	size_t n_errors, n_warnings;
	struct weir_err errors[WEIR_POLICY_REMARKS], warnings[WEIR_POLICY_REMARKS];
};

/* Read a file that a policy names (`tenants: tenants.yaml`): put the file's text, malloc'ed, into
 * *ret_text; or return a negative errno and a message without a place. `name` is as written, `from`
 * the name of the file that names it. */
typedef int weir_policy_reader(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err);

/* Parse and check a policy (weir-policy(5), "What is refused"). Return 0, or -EINVAL / -ENOMEM and
 * the first error, with its place. `name` is the file's name for messages. The policy cannot name
 * another file. */
WEIR_API int weir_policy_parse(const char *text, size_t len, const char *name,
	struct weir_policy **ret_policy, struct weir_err *err);
/* The same, with all errors and warnings, and with other files if `reader` is not NULL. The remarks
 * are always set, the policy only if there is no error. */
WEIR_API int weir_policy_parse_all(const char *text, size_t len, const char *name,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks);
WEIR_API void weir_policy_free(struct weir_policy *p);

/* The tenants, parents before their children. The pointer lives as long as the policy. */
WEIR_API size_t weir_policy_tenants(const struct weir_policy *p);
WEIR_API const struct weir_tenant *weir_policy_tenant(const struct weir_policy *p, size_t i);
/* A resource by its name, or the first one if name is NULL; NULL if there is none. */
WEIR_API const struct weir_resource *weir_policy_resource(
	const struct weir_policy *p, const char *name);
WEIR_API int weir_policy_find(const struct weir_policy *p, const char *path); /* index or -ENOENT */

/* Effective bounds of a tenant, per slot (weir_limit_slot).
 * min: its guarantee: its own min, or its children's together if that is more, or its part of what
 *      its parent has beyond the children's own, which is divided by weight; 0: none.
 * max: the least of its own max and its ancestors'; INFINITY: none. */
struct weir_bounds {
	double min[WEIR_LIMITS], max[WEIR_LIMITS]; /* per second */
};
/* Compute the bounds of all tenants; ret_bounds has n_tenants. Return 0 or -ENOMEM. */
WEIR_API int weir_policy_bounds(const struct weir_policy *p, struct weir_bounds *ret_bounds);
/* Compute every tenant's share of its parent when all siblings are busy, 0 … 1, of what the mins
 * leave; and the product of these along its path. Each array has n_tenants. O(n_tenants). */
WEIR_API void weir_policy_share(
	const struct weir_policy *p, double *ret_of_parent, double *ret_of_all);

/* Return a leaf's shares in its host's part of a resource that hosts share: its weight at the top
 * of the tree; below, its part by weight of its parent's. */
WEIR_API double weir_policy_shares(const struct weir_policy *p, size_t leaf);

/* The sender of a request; NULL: not known, which only an absent field or "*" matches. */
struct weir_who {
	const char *export_, *client, *uid, *tls, *path;
};
/* Return the tenant of a request: the leaf with the most specific match, else the default tenant,
 * else -ENOENT: refuse the request. Patterns are shell globs (* ? [a-z] [!a-z]; * matches / as
 * well); `client` may also be an address block (10.0.0.0/24, fd00::/8), and is the peer's numeric
 * address. More specific: more fields set; else, in the first of export, client, uid, tls, path in
 * which the two differ, the one with more literal characters before the first wildcard (for blocks:
 * bits), then with more literal characters altogether. The check refuses policies in which two
 * tenants tie over a request. A template counts as a leaf; if it wins, the tenant is the one that it
 * made for this sender, or else its `others`. O(matches with a pattern in `export`, or none, + log of
 * all). */
WEIR_API int weir_policy_match(const struct weir_policy *p, const struct weir_who *who);

/* Build the policy's tree in a gate (empty but for its root): nodes[i] is tenant i's node. Set
 * weights, hold buckets from max (and burst), R-buckets from min; in shadow mode (enforce: false)
 * add only the nodes, so that tenants are counted and all are equal. The window is not set. On
 * error the gate is unchanged. The rates are the whole tenant's: with several gates the caller
 * divides them. */
WEIR_API int weir_policy_install(const struct weir_policy *p, struct weir_gate *g, weir_time now,
	weir_node *ret_nodes, struct weir_err *err);
/* Make a gate's configuration from resource r. */
WEIR_API void weir_policy_gate(const struct weir_resource *r, struct weir_gate_config *ret_config);
/* Return the cost of one request in requests, by the resource's rules, ≥ 1; and in bytes: the
 * length of a read or a write, 0 for a flush, a trim or a status request. */
WEIR_API uint32_t weir_policy_cost(const struct weir_resource *r, enum weir_op op, uint64_t bytes);
WEIR_API uint32_t weir_policy_cost_bytes(enum weir_op op, uint64_t bytes);

WEIR_END_DECLS

#endif
