/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: what the policy's own files share. Others include weir/policy.h; a reader of another
 * format that contains policies (the scenario) may call policy_node_parse below.
 */
#pragma once

#include "base/yamldoc.h"
#include "control/controller.h"
#include "control/joint.h"
#include "policy/policy.h"

/* A tree deeper than this is a mistake, and every level costs at each request. */
#define POLICY_DEPTH_MAX 16
/* Nested aliases could make a small file expand to billions: stop long before. */
#define POLICY_TENANTS_MAX (1u << 20)
/* The range of a gate's bucket: 1/1024 to 2·10¹¹ a second, and 2⁵² at a time. */
#define POLICY_RATE_MIN   (1.0 / 1024)
#define POLICY_RATE_MAX   2e11
#define POLICY_BUCKET_MAX 4e15

struct policy_reading {
	struct weir_policy *policy;
	struct weir_policy_remarks *remarks;
	weir_policy_reader *reader;
	void *reader_arg;
	struct weir_err err; /* for the message of a getter, which policy_took records */
	bool no_memory;      /* sticky: what was read is not whole */
	const char *file;    /* the last file named by policy_place, in the policy's memory */
	size_t tenants_room, labs_room, exports_room, folders_room;
	bool tenants_only; /* the policies that have them are others, with the servers of a cluster */
	bool names_controllers; /* a resource names its controller, or states that it has none */
	void *export_names;     /* tsearch's, until all exports are read */
};

/* Remarks. `policy_refuse` at a node, `policy_refuse_at` at a place that was kept; `policy_took`
 * passes on a getter's result: 0, or -ENOENT (absent), or the error, whose message the getter put into
 * r->err and which it records. */
void policy_refuse(struct policy_reading *r, yamldoc_node at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void policy_refuse_at(struct policy_reading *r, struct weir_place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void policy_warn_at(struct policy_reading *r, struct weir_place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int policy_took(struct policy_reading *r, int rc);
/* Refuse a value that is not a map (false), every key outside `keys`, and every key with a null
 * value. */
bool policy_keys(struct policy_reading *r, yamldoc_node n, const char *const *keys);

/* Return memory that lives as long as the policy; NULL (and no_memory) if there is none. */
void *policy_alloc(struct policy_reading *r, size_t size);
/* Return zeroed memory for n objects and one more, which the caller frees; NULL as above. */
void *policy_scratch(struct policy_reading *r, size_t n, size_t size);
const char *policy_string(struct policy_reading *r, const char *text);
struct weir_place policy_place(struct policy_reading *r, yamldoc_node n);
/* Make room for one more in an array of `size`-byte elements of which n are used. */
bool policy_grow(struct policy_reading *r, void **array, size_t n, size_t *room, size_t size);

/* Return the value of `key` as a non-empty string in the policy's memory; NULL when absent or
 * refused. */
const char *policy_get_string(struct policy_reading *r, yamldoc_node map, const char *key);

/* policy/serve.c: the gateway's keys: of the top level, of one resource, of one export. */
void policy_serve_read(struct policy_reading *r, yamldoc_node root);
void policy_serve_read_resource(struct policy_reading *r, yamldoc_node n, struct weir_resource *to);
void policy_serve_read_export(struct policy_reading *r, yamldoc_node n, struct weir_export *to);
/* Read one address or a list of them, into a list in the policy's memory. `listens`: a unix socket may have a
 * mode and a group, {unix: PATH, mode: 0660, group: NAME}, and then becomes the address
 * "unix:PATH?mode=0660&group=NAME". */
void policy_serve_read_addresses(
	struct policy_reading *r, yamldoc_node n, bool listens, const char ***list, size_t *used);

/* The files of a map of TLS, whose keys are `keys`. */
void policy_serve_read_tls(struct policy_reading *r, yamldoc_node n, const char *const *keys,
	struct weir_policy_tls *to);

/* policy/access.c: `access` of the top level; after `api` and `token`. */
void policy_access_read(struct policy_reading *r, yamldoc_node root);

/* policy/hosts.c: `peers` of the top level. */
void policy_hosts_read(struct policy_reading *r, yamldoc_node root);

/* policy/controller.c: a resource's controller and its settings. Name, cost and capacity were read
 * before. */
void policy_controller_read(struct policy_reading *r, yamldoc_node n, struct weir_resource *to);
bool policy_controller_counts_bytes(const struct weir_resource *r);
/* Collect the keys of a resource's map: `more` (NULL-terminated) and the controllers'. Return
 * names. */
const char **policy_controller_keys(const char *const *more, const char **names, size_t room);
/* The keys of a resource's `lab`: `own` (NULL-terminated) and those of all controllers. `names` has room for KEYS_MOST. Return
 * names. */
const char **policy_controller_lab_keys(const char *const *own, const char **names);
/* Copy settings into the policy's memory. */
void policy_settings_set(
	struct policy_reading *r, struct weir_resource *to, const void *settings, size_t len);

/* policy/cluster.c: `cluster` of the top level, and its restrictions. */
void policy_cluster_read(struct policy_reading *r, yamldoc_node root);
void policy_cluster_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Parts of it, also for a scenario's cluster: `period` and `interval` of the map; `stand_in` itself. */
void policy_cluster_read_times(
	struct policy_reading *r, yamldoc_node map, struct weir_policy_cluster *to);
void policy_cluster_read_stand_in(
	struct policy_reading *r, yamldoc_node n, struct weir_policy_cluster *to);
void policy_cluster_check(struct policy_reading *r);
/* Return true if this leaf is served at the server; and at how many servers in all. */
bool policy_cluster_at(const struct weir_policy *p, size_t leaf, const char *server);
size_t policy_cluster_parts(const struct weir_policy *p, size_t leaf);
/* Return the name of the server that is the first (rank 0), second, … stand-in for the controller,
 * and its address in that role; NULL: there is none. */
#define POLICY_CLUSTER_ADDRESS 256 /* bytes of any address */
const char *policy_cluster_stand_in(
	const struct weir_policy *p, unsigned rank, char *ret_address, size_t room);
/* Get a leaf's min and max over the cluster, in tokens a period; bounds: weir_policy_bounds, of
 * all. */
struct policy_cluster_tokens {
	int64_t reservation, limit; /* limit: INT64_MAX if there is none */
};
void policy_cluster_tokens(const struct weir_policy *p, size_t leaf,
	const struct weir_bounds *bounds, struct policy_cluster_tokens *ret);

/* policy/resource.c */
/* Return the key of a resource that is spelled so, or nearly so; or NULL. */
const char *policy_resource_near(const char *key);
void policy_resource_read(struct policy_reading *r, yamldoc_node resources);
void policy_resource_read_exports(struct policy_reading *r, yamldoc_node exports);
/* Read the key `depth` of a resource's map, a count or a map; the value of the key `capacity`. */
void policy_resource_read_depth(struct policy_reading *r, yamldoc_node n, struct weir_resource *to);
void policy_resource_read_runs(struct policy_reading *r, yamldoc_node n, struct weir_resource *to);
void policy_resource_read_capacity(
	struct policy_reading *r, yamldoc_node n, struct weir_resource *to);

/* Add an export; one whose name is taken is refused, at the node if there is one. */
void policy_resource_add_export(
	struct policy_reading *r, yamldoc_node name, const struct weir_export *one);

/* policy/volume.c: `volumes` of a resource's map, which was read as that resource (index). */
void policy_volume_read(struct policy_reading *r, yamldoc_node map, int resource);

/* policy/limit.c: `what` is "min", "max" or "capacity"; return false if anything was refused. */
bool policy_limit_read(struct policy_reading *r, yamldoc_node n, const char *what,
	struct weir_limit *limits, unsigned *n_limits);
void policy_limit_read_bursts(
	struct policy_reading *r, yamldoc_node n, struct weir_limit *max, unsigned n_max);
/* The same for a tenant, whose limits may be by size, too: its min or its max, without bursts; its bursts, which replace all
 * that it has. */
bool policy_limit_read_tenant(
	struct policy_reading *r, yamldoc_node n, bool max, struct weir_tenant *t);
void policy_limit_read_bursts_tenant(
	struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Read the text of a rate; return false if it was refused, at n. */
bool policy_limit_read_rate(
	struct policy_reading *r, yamldoc_node n, const char *text, struct weir_rate *ret);

/* policy/plan.c: an slo; `links` of the top level; `trace` and `path` of a tenant's map, after links and resources. */
void policy_plan_read_slo(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
void policy_plan_read_links(struct policy_reading *r, yamldoc_node links);
void policy_plan_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
void policy_plan_read_together(struct policy_reading *r, yamldoc_node n); /* after the tenants */

/* policy/net.c: `network` of the top level; `net` and the matches of packets of a tenant's map. */
void policy_net_read(struct policy_reading *r, yamldoc_node n);
/* Read the keys of one share; those that are absent keep their values. */
struct policy_net_share;
void policy_net_read_share(struct policy_reading *r, yamldoc_node n, struct policy_net_share *to);
void policy_net_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Return true if the map is a match of packets, not of requests. */
bool policy_net_is_match(yamldoc_node n);
/* policy/check-net.c: whether the mins of links can be met, and matches of packets that tie. */
void policy_check_net(struct policy_reading *r);

/* policy/by-size.c: return true if the node is a limit by size; read one. */
bool policy_size_is(yamldoc_node n);
bool policy_size_read(struct policy_reading *r, yamldoc_node n, struct weir_by_size *ret);
/* Refuse limits by size of tenants whose size cannot be known. */
void policy_size_check(struct policy_reading *r);

/* policy/class.c: `classes` of the top level. */
void policy_class_read(struct policy_reading *r, yamldoc_node classes);
/* Read the keys of a class: those of a tenant that are its own business. */
#define POLICY_CLASS_KEYS "weight", "min", "max", "burst", "slo"
/* Read these keys of a tenant's, or template's, map, without its class; return which there are. A burst without a max is not
 * read. */
unsigned policy_class_read_keys(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Read `class` of a map; NULL: it has none, or it was refused. */
const struct policy_class *policy_class_get(struct policy_reading *r, yamldoc_node n);
const struct policy_class *policy_class_find(const struct weir_policy *p, const char *name);
/* Give t the keys of `own`, and those of the class (NULL: none) that `own` lacks. n: the map of `own`. */
void policy_class_join(struct policy_reading *r, yamldoc_node n, const struct policy_class *c,
	const struct weir_tenant *own, unsigned given, struct weir_tenant *t);
/* Give t the keys of `from` that are given. */
void policy_class_lay(struct weir_tenant *t, const struct weir_tenant *from, unsigned given);

/* policy/each.c: `each` of tenant's map n: sets t->each and t->match. */
void policy_each_read(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Refuse children of a template whose name it might make, too. */
void policy_each_check(struct policy_reading *r);
/* Copy a template into the policy's memory, for writing; NULL: no memory. */
struct weir_each *policy_each_copy(struct policy_reading *r, const struct weir_each *from);

/* policy/tenant.c */
/* Return why a tenant may not have that name, or NULL. */
const char *policy_tenant_name_bad(const char *name);
void policy_tenant_read_matches(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t);
/* Return the path of a child of tenant `parent` (-1: of none). NULL: no memory. */
const char *policy_tenant_path(struct policy_reading *r, int parent, const char *name);
void policy_tenant_read(struct policy_reading *r, yamldoc_node tenants);
/* Read the key `weight` of a map, which keeps its value if it is absent or refused. */
void policy_tenant_read_weight(struct policy_reading *r, yamldoc_node n, double *weight);

/* policy/lab.c: `lab` of a tenant's or a resource's map. */
void policy_lab_read_tenant(struct policy_reading *r, yamldoc_node map, size_t tenant);
void policy_lab_read_resource(struct policy_reading *r, yamldoc_node map, struct weir_resource *to);
/* Read the map `lab` itself; `change`: a change during a run, which may grant tokens. */
int policy_lab_tenant_read(
	yamldoc_node map, bool change, struct policy_lab_tenant *ret, struct weir_err *err);

/* policy/check.c: everything that needs more than one value. */
void policy_check(struct policy_reading *r);
/* The part of it about mins and maxes. */
void policy_check_limits(struct policy_reading *r);
/* Only the maxes of one leaf against its own mins. */
void policy_check_leaf(struct policy_reading *r, const struct weir_tenant *t);
/* Return the only resource that a leaf's requests can reach, or a negative number. */
int policy_check_reach(const struct weir_policy *p, const struct weir_tenant *t);
/* policy/check-match.c: the part of it about matches and exports. */
void policy_check_matches(struct policy_reading *r);
/* policy/check-client.c: warnings about effects on clients. */
void policy_check_clients(struct policy_reading *r);

/* policy/bounds.c, per tenant: needs[i].min: its own min or the sum of those below, whichever is
 * more; .max: own max, or the children's together if that is less; INFINITY. */
void policy_bounds_needs(const struct weir_policy *p, struct weir_bounds *ret_needs);
void policy_bounds_leaf(
	const struct weir_tenant *t, struct weir_bounds *ret_need); /* of one leaf */

/* policy/match.c */
bool policy_match_bad(const struct weir_match *m, const char **ret_field, const char **ret_why);
#define POLICY_MATCH_FIELDS 5
/* The sort key of matches, the less specific first. Two that tie over a request have equal keys. */
struct policy_match_key {
	/* Fields that exclude something; four numbers for each field. */
	uint16_t rank[1 + 4 * POLICY_MATCH_FIELDS];
	uint64_t begin; /* hash of the literal beginnings of all fields */
};
void policy_match_key(const struct weir_match *m, struct policy_match_key *ret);
int policy_match_key_order(const struct policy_match_key *a, const struct policy_match_key *b);
/* Get how many bytes after a field's last wildcard are literal; 0 without one. */
void policy_match_ends(const struct weir_match *m, uint8_t ret_lens[POLICY_MATCH_FIELDS]);
/* Return a hash of the last so many of them: two of equal keys that tie over a request have the
 * same, if the lens are no more than either's. */
uint64_t policy_match_end(const struct weir_match *m, const uint8_t lens[POLICY_MATCH_FIELDS]);
/* Return true if the match fits the sender. */
bool policy_match_fits(const struct weir_match *m, const struct weir_who *who);
/* Return the owner of the most specific match, which may be a template's tenant; else the default tenant, else -ENOENT. */
int policy_match_owner(const struct weir_policy *p, const struct weir_who *who);
/* Return true if some client of the export has a tenant, or a template makes one for it. */
bool policy_match_serves(const struct weir_policy *p, const char *export_);
/* -1, 0, 1: a is less, equally, more specific than b. */
int policy_match_compare(const struct weir_match *a, const struct weir_match *b);
/* Return true if a request can match both. */
bool policy_match_overlap(const struct weir_match *a, const struct weir_match *b);

/* A plan's part of a tenant's knobs at one gate; n 0: none. */
#define POLICY_CLAIM_PAIRS 16 /* profile buckets, at most */
struct policy_claim {
	int priority; /* 0 … 63 */
	unsigned n;
	const struct weir_bucket_spec *profile;
};

/* policy/knobs/install.c: get a tenant's buckets: for each slot of max two hold buckets, for each of min
 * one of R-tokens; then, in a part, those of its `lab`, a plan's and a controller's. Return their number; ret has room for
 * POLICY_BUCKETS. */
#define POLICY_BUCKETS (WEIR_LIMITS * 3 + POLICY_LAB_PROFILES + 2 + POLICY_CLAIM_PAIRS + 2)
unsigned policy_install_buckets(const struct weir_tenant *t, const struct weir_bounds *bounds,
	struct weir_bucket_spec *ret);
/* One gate's part of every tenant: the part of each of its limits, 0 … 1, if there are several
 * gates, the controller's rule and the plan's claim. NULL: all of it, and none. Tenant i's limits are rows
 * first[i] … first[i + 1]: its max in the policy's order, then, for a leaf, the slots of min in its
 * bounds. The part of a max that is not divided is 0. */
struct policy_part {
	const uint32_t *first;
	const double *rows;
	const struct controller_rule *rules; /* by tenant */
	const struct policy_claim *claims;   /* by tenant */
};
#define POLICY_ROWS (2 * WEIR_LIMITS)
/* Return how many rows a tenant has. ret_slots: weir_limit_slot of each, of min WEIR_LIMITS
 * more. */
unsigned policy_install_rows(const struct weir_tenant *t, const struct weir_bounds *bounds,
	uint8_t ret_slots[POLICY_ROWS]);
/* Return the first row of each tenant; [n_tenants]: the number of all rows. NULL: no memory. Free
 * it. */
uint32_t *policy_install_first(const struct weir_policy *p, const struct weir_bounds *bounds);
/* The same with rates and sizes of tenant i's part, its claim's, and its rule's buckets last, so that the others
 * keep their places and so their levels. In a cluster the controller sets the limits: there are
 * only its lab's, the claim's and the rule's. */
unsigned policy_install_buckets_part(const struct weir_policy *p, size_t i,
	const struct weir_bounds *bounds, struct policy_part part, struct weir_bucket_spec *ret);
/* Return true if so many gates share a bucket for this limit, rather than divide it. */
bool policy_install_is_joint(const struct weir_limit *max, size_t gates);
struct joint_size policy_install_joint(const struct weir_limit *max);
/* Return tenant i's weight in the gate. */
double policy_install_weight(const struct weir_policy *p, size_t i, struct policy_part part);
/* Get the knobs of tenant i: its weight, its buckets, which are in ret_buckets (POLICY_BUCKETS), and, of a leaf, its
 * priority and, if its `lab` has one, its deadline. Return how many there are. */
#define POLICY_KNOBS 4
size_t policy_install_knobs(const struct weir_policy *p, size_t i, weir_node node,
	const struct weir_bounds *bounds, struct policy_part part,
	struct weir_knob ret_knobs[POLICY_KNOBS], struct weir_bucket_spec *ret_buckets);

/* Read and check a policy that is part of another document, with keys for experiments. The policy does not need the document
 * any more. `reader` as for weir_policy_parse_all. */
int policy_node_parse(yamldoc_node root, weir_policy_reader *reader, void *reader_arg,
	struct weir_policy **ret_policy, struct weir_err *err);
/* Return true for a key of a resource, or one that is spelled nearly as such, which is none of the top level. */
bool policy_key_is_resources(const char *key);

/* Read some keys with the policy's readers: calls `read` with a policy that has nothing but keys for experiments, and frees it.
 * Return 0, or -EINVAL / -ENOMEM with the first error. */
int policy_part_read(void (*read)(struct policy_reading *r, yamldoc_node n, void *to),
	yamldoc_node n, void *to, struct weir_err *err);
