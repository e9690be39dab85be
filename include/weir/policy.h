/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: read the tree of tenants from a file, check it, and turn it into knobs for a gate.
 *
 * Pure: parsed from memory. One YAML file describes a machine (listen, resources, exports, tenants); weir-policy(5)
 * is the manual of the format and describes every key.
 *
 *   policy.c           memory, remarks, the top level
 *   policy/serve.c     keys for the gateway: addresses, TLS, threads, memory
 *   policy/resource.c  resources, exports
 *   policy/hosts.c     keys for hosts that share a resource: peers, the window's controller
 *   policy/server.c    controllers of a server's own gate: AdapTBF, static rules
 *   policy/cluster.c   servers with one min and max over all of them: pShift
 *   policy/tenant.c    the tree
 *   policy/limit.c     min, max, burst, slo
 *   policy/check.c     conflicts between the parts (matches: policy/check-match.c, effects on clients:
 *                      policy/check-client.c)
 *   policy/bounds.c    effective min and max of every tenant in the tree
 *   policy/match.c     the tenant of a request
 *   policy/index.c     an index for match.c
 *   policy/install.c   knobs for a gate, and the cost of requests
 */
#ifndef WEIR_POLICY_H
#define WEIR_POLICY_H

#include <weir/err.h>
#include <weir/units.h>
#include <weir/gate.h>
#include <stdbool.h>
#include <stddef.h>

WEIR_BEGIN_DECLS

/* Operations are limited all together, or reads and writes separately. Writes are all operations that change data or
 * make it durable: flushes and trims too. A status request is neither a read nor a write: only limits of all
 * requests count it. */
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
};

struct weir_policy_tls {        /* files; NULL: not stated */
	const char *cert, *key; /* own certificate and key */
	const char *ca;         /* trusted authorities */
	const char *psk;        /* lines of NAME:HEXKEY */
	bool required;          /* gateway: clients without TLS are refused */
};

enum weir_controller { /* control of a resource's gate beside the policy */
	WEIR_CONTROLLER_NONE,
	WEIR_CONTROLLER_PARDA,   /* the window, together with the other hosts */
	WEIR_CONTROLLER_ADAPTBF, /* every leaf's tokens, by this server alone */
	WEIR_CONTROLLER_TBF,     /* static rules */
	WEIR_CONTROLLER_PSHIFT,  /* every leaf's tokens, by the cluster's controller */
	WEIR_CONTROLLERS
};

/* Parameters of PARDA for the window of a resource that hosts share; control/parda/parda.h describes each. */
struct weir_policy_parda {
	const char *array;   /* the hosts' common name for the resource; never NULL when
	                        controlled */
	weir_time threshold; /* target latency; with `find` the highest target */
	bool find;           /* threshold: auto */
	double gamma, epsilon, wmin, wmax;
	bool local;      /* estimate: by this host's own latency only */
	int smoothing;   /* enum parda_smoothing */
	int idle;        /* enum parda_idle */
	weir_time burst; /* time for which unused slots are saved for a burst; 0: none */
	double alpha;    /* 0: the default, as in all below */
	weir_time tau;
	unsigned age;
	uint64_t slot;       /* bytes of an IO that takes one slot, with `cost: bytes`; 0: every IO
	                        takes one */
	uint64_t size_fixed; /* bytes */
	bool probe;          /* reads of this host's own help to find the threshold */
	bool no_floor;       /* stranger: ignore. No minimum is kept beside strangers */
	bool abrupt;         /* start: depth. The window begins at the resource's depth */
};

/* Parameters of AdapTBF for a server's tokens; control/adaptbf/adaptbf.h and control/adaptbf/gate.h describe each.
 * The total rate is the resource's capacity; if that is auto it is learned, from `guess` on. */
struct weir_policy_adaptbf {
	weir_time period;
	bool hold;    /* tokens: hold; else first */
	double depth; /* tokens that a bucket holds; 0: the default, as in all below */
	double guess; /* tokens per second */
	double headroom;
	weir_time forget;
	enum weir_unit unit;      /* unit of a token: requests, or bytes (4 KiB) */
	double debt_floor;        /* part of its share that a borrower keeps while it repays */
	weir_time debt_half_life; /* half-life of claims; 0: they do not age */
};

struct weir_policy_tbf_rule {
	const char *match; /* tenants' paths; '*' for any text; several are separated by spaces */
	double rate;       /* requests per second, for each tenant that it matches */
};

struct weir_policy_tbf { /* Lustre's filter, control/tbf/tbf.h */
	unsigned depth;
	double other; /* requests per second of a tenant that matches no rule; INFINITY: no limit */
	struct weir_policy_tbf_rule *rules; /* in order; in the policy's memory */
	size_t n_rules;
};

struct weir_policy_peers { /* the other hosts, see weir-peers(7); NULL: not stated */
	const char **to;   /* addresses */
	size_t n_to;
	const char *listen, *key, *cluster;
	struct weir_place *to_at, listen_at; /* places in the file; to_at: of each of `to` */
	const char *host;                    /* name of this host; NULL: the machine's name */
	weir_time period;                    /* between two steps of the controllers */
};

struct weir_policy_cluster {      /* servers under one controller; n_servers 0: none */
	const char *name;         /* never NULL in a cluster */
	const char *key;          /* file */
	const char **controllers; /* addresses at which servers find the controller */
	size_t n_controllers;
	const char **listen; /* addresses at which it listens, if they differ */
	size_t n_listen;
	const char **servers; /* names of resources, over all machines; sorted */
	size_t n_servers;
	weir_time period;   /* a QoS period */
	weir_time interval; /* between two rounds of the controller; 0: it adapts */
	/* Addresses of the first servers, by name, while they stand in for the controller; none: beside the
	 * controller's unix socket. */
	const char **stand_ins;
	size_t n_stand_ins;
	bool no_stand_in; /* no server stands in */
	struct weir_place at;
};

struct weir_resource {
	const char *name, *back; /* back: NULL when not stated */
	enum weir_controller controller;
	struct weir_policy_parda parda;
	struct weir_policy_adaptbf adaptbf;
	struct weir_policy_tbf tbf;
	double depth;         /* the window until a controller sets it; 0: auto */
	uint64_t depth_bytes; /* the window in bytes, not set by controllers; 0: none */
	enum weir_unit cost;
	struct weir_rate capacity[2]; /* stated, requests and bytes; per_second 0: not stated */
	bool capacity_auto;           /* no capacity is stated: learned */
	uint32_t run;
	uint64_t run_distance, credit;
	uint32_t io_unit; /* bytes that count as one request; larger ones count ⌈bytes/io_unit⌉ */
	double flush_cost, trim_cost;               /* in requests, whole, ≥ 1 */
	struct weir_place at, back_at, capacity_at; /* back_at, capacity_at: places of these
	                                               values, if stated */
	/* Access to the back end; 0: the back end's own default. */
	unsigned connections;       /* to an upstream */
	weir_time timeout;          /* an upstream that is away for longer is an error */
	uint64_t keep;              /* bytes of writes kept until they are flushed */
	bool direct;                /* bypass the page cache */
	bool threads;               /* use threads and never io_uring */
	bool read_only;             /* no writes, whatever its exports say */
	bool shared;                /* lock: false: other programs may write to its file
	                               meanwhile */
	struct weir_policy_tls tls; /* of an upstream */
};

#define WEIR_POLICY_KEEP_LEAST                                                                     \
	(1u << 20) /* bytes: a smaller buffer would flush after every few
	              writes */

struct weir_export { /* a part of a resource under a name that clients ask for */
	const char *name;
	int resource;    /* index */
	uint64_t offset; /* bytes */
	uint64_t size;   /* bytes; 0: up to the resource's end */
	struct weir_place at;
	bool read_only;
	const char *description; /* shown to clients; NULL: none */
};

enum weir_policy_log_level {
	WEIR_POLICY_LOG_ERROR,
	WEIR_POLICY_LOG_WARNING,
	WEIR_POLICY_LOG_INFO,
	WEIR_POLICY_LOG_DEBUG
};
enum weir_policy_log_form { WEIR_POLICY_LOG_TEXT, WEIR_POLICY_LOG_JSON };

struct policy_index;

struct weir_policy {
	struct weir_tenant *tenants; /* parents before children */
	size_t n_tenants;
	struct weir_resource *resources;
	size_t n_resources;
	bool enforce; /* false: shadow mode */
	void *memory; /* owns every string above */
	struct weir_export *exports;
	size_t n_exports;
	const char **listen; /* "unix:/run/weir/nbd.sock", "tcp:127.0.0.1:10809" */
	size_t n_listen;
	int default_tenant; /* index of the tenant for requests that match none; -1: these are
	                       refused */
	/* For the gateway; NULL or 0: not stated. */
	const char **api; /* addresses of the HTTP API, as in listen */
	size_t n_api;
	const char *token;        /* file; there is one when api names a TCP address */
	const char *state;        /* folder for state kept across a restart */
	const char *recordings;   /* folder for recorded traces */
	const char *tenants_text; /* text of the file that `tenants` names; NULL: it names none */
	unsigned threads;         /* workers; 0: auto */
	uint64_t buffers;         /* key `memory`: bytes for payloads, all threads together */
	weir_time client_timeout; /* time after which clients give up; 0: never */
	enum weir_policy_log_level log_level; /* INFO when not stated */
	enum weir_policy_log_form log_form;
	struct weir_policy_tls tls;
	struct weir_policy_peers peers;
	struct weir_policy_cluster cluster;
	const struct policy_index *index; /* in `memory`; NULL: policy built by hand */
};

/* Results of parsing: errors, which refuse the policy, and warnings, which do not, in the order in which they were
 * found. Both counts may exceed the number kept. */
#define WEIR_POLICY_REMARKS 20
struct weir_policy_remarks {
	size_t n_errors, n_warnings;
	struct weir_err errors[WEIR_POLICY_REMARKS], warnings[WEIR_POLICY_REMARKS];
};

/* Read a file that a policy names (`tenants: tenants.yaml`): put the file's text, malloc'ed, into *ret_text; or
 * return a negative errno and a message without a place. `name` is as written, `from` the name of the file that
 * names it. */
typedef int weir_policy_reader(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err);

/* Parse and check a policy (weir-policy(5), "What is refused"). Return 0, or -EINVAL / -ENOMEM and the first error,
 * with its place. `name` is the file's name for messages. The policy cannot name another file. */
WEIR_API int weir_policy_parse(const char *text, size_t len, const char *name,
	struct weir_policy **ret_policy, struct weir_err *err);
/* The same, with all errors and warnings, and with other files if `reader` is not NULL. The remarks are always set,
 * the policy only if there is no error. */
WEIR_API int weir_policy_parse_all(const char *text, size_t len, const char *name,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks);
WEIR_API void weir_policy_free(struct weir_policy *p);
WEIR_API int weir_policy_find(const struct weir_policy *p, const char *path); /* index or -ENOENT */

/* Effective bounds of a tenant, per slot (weir_limit_slot).
 * min: its guarantee: its own min, or its children's together if that is more, or its part of what its parent has
 *      beyond the children's own, which is divided by weight; 0: none.
 * max: the least of its own max and its ancestors'; INFINITY: none. */
struct weir_bounds {
	double min[WEIR_LIMITS], max[WEIR_LIMITS]; /* per second */
};
/* Compute the bounds of all tenants; ret_bounds has n_tenants. Return 0 or -ENOMEM. */
WEIR_API int weir_policy_bounds(const struct weir_policy *p, struct weir_bounds *ret_bounds);
/* Compute every tenant's share of its parent when all siblings are busy, 0 … 1, of what the mins leave; and the
 * product of these along its path. Each array has n_tenants. O(n_tenants). */
WEIR_API void weir_policy_share(
	const struct weir_policy *p, double *ret_of_parent, double *ret_of_all);

/* Return a leaf's shares in its host's part of a resource that hosts share: its weight at the top of the tree;
 * below, its part by weight of its parent's. */
WEIR_API double weir_policy_shares(const struct weir_policy *p, size_t leaf);

/* The sender of a request; NULL: not known, which only an absent field or "*" matches. */
struct weir_who {
	const char *export_, *client, *uid, *tls, *path;
};
/* Return the tenant of a request: the leaf with the most specific match, else the default tenant, else -ENOENT:
 * refuse the request. Patterns are shell globs (* ? [a-z] [!a-z]; * matches / as well); `client` may also be an
 * address block (10.0.0.0/24, fd00::/8), and is the peer's numeric address. More specific: more fields set; else, in
 * the first of export, client, uid, tls, path in which the two differ, the one with more literal characters before
 * the first wildcard (for blocks: bits), then with more literal characters altogether. The check refuses policies in
 * which two tenants tie over a request. O(matches with a pattern in `export`, or none, + log of all). */
WEIR_API int weir_policy_match(const struct weir_policy *p, const struct weir_who *who);

/* Build the policy's tree in a gate (empty but for its root): nodes[i] is tenant i's node. Set weights, hold buckets
 * from max (and burst), R-buckets from min; in shadow mode (enforce: false) add only the nodes, so that tenants are
 * counted and all are equal. The window is not set. On error the gate is unchanged. The rates are the whole
 * tenant's: with several gates the caller divides them. */
WEIR_API int weir_policy_install(const struct weir_policy *p, struct weir_gate *g, weir_time now,
	weir_node *ret_nodes, struct weir_err *err);
/* Make a gate's configuration from resource r. */
WEIR_API void weir_policy_gate(const struct weir_resource *r, struct weir_gate_config *ret_config);
/* Return the cost of one request in requests, by the resource's rules, ≥ 1; and in bytes: the length of a read or a
 * write, 0 for a flush, a trim or a status request. */
WEIR_API uint32_t weir_policy_cost(const struct weir_resource *r, enum weir_op op, uint64_t bytes);
WEIR_API uint32_t weir_policy_cost_bytes(enum weir_op op, uint64_t bytes);
/* Make a resource with every default, as `{name: NAME}` gives it. `name` is borrowed. */
WEIR_API void weir_policy_resource_default(const char *name, struct weir_resource *ret_resource);

WEIR_END_DECLS

#endif
