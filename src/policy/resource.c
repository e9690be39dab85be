/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource: resources and exports, and what requests cost them.
 *
 * LAW     A request costs ⌈bytes / io_unit⌉ requests, at least 1, and its bytes; a flush costs
 *         flush_cost requests and a trim trim_cost, whatever its length, and no bytes.
 */
#include "policy/impl.h"
#include <stdlib.h>
#include <search.h>
#include <string.h>

static const char *const resource_keys[] = {"name", "back", "depth", "capacity", "cost", "run",
	"run_distance", "credit", "io_unit", "flush_cost", "trim_cost", "connections", "timeout",
	"stall", "keep", "direct", "threads", "read_only", "lock", "tls", "controller", "volumes",
	"profile", "lab", NULL};
static const char *const export_keys[] = {
	"name", "resource", "offset", "size", "read_only", "description", "class", NULL};
static const char *const cost_words[] = {"requests", "bytes", "time", NULL}; /* enum weir_unit */

#define KEYS            64                  /* of a resource, with its controllers' */
#define DEPTH_BYTES_MAX (UINT64_C(1) << 52) /* largest window in bytes of a gate */

/* ---- resources */

void policy_resource_default(const char *name, struct weir_resource *ret_resource)
{
	*ret_resource = (struct weir_resource){
		.name = name,
		.depth = 0, /* auto: the back end knows best */
		.cost = WEIR_UNIT_REQUESTS,
		.capacity = {{0, WEIR_UNIT_REQUESTS}, {0, WEIR_UNIT_BYTES}},
		.capacity_auto = true,
		.run_distance = 256 * 1024,
		/* a size at which a disk's transfer takes about as long as its seek */
		.io_unit = 256 * 1024,
		.flush_cost = 1,
		.trim_cost = 1,
		.lab = {.estimate_io = WEIR_MS,
			.pairs = 4,
			.levels = 64,
			.blocking = true,
			.margin = 1},
	};
}

static bool is_word(yamldoc_node n, const char *word)
{
	const char *text = yamldoc_text(n);

	return text && strcmp(text, word) == 0;
}

static bool is_auto(yamldoc_node n)
{
	return is_word(n, "auto");
}

static void read_depth_requests(
	struct policy_reading *r, yamldoc_node n, const char *key, struct weir_resource *to)
{
	double depth = to->depth;

	if (is_auto(yamldoc_get(n, key))) {
		to->depth = 0;
		return;
	}
	if (r->policy->lab && is_word(yamldoc_get(n, key), "none")) {
		to->depth = POLICY_DEPTH_OPEN;
		return;
	}
	if (policy_took(r, yamldoc_count(n, key, &depth, &r->err)) != 0)
		return;
	if (r->policy->lab && depth >= 0 && depth < 1)
		to->depth = depth > 0 ? depth : POLICY_DEPTH_SHUT;
	else if (depth < 1 || depth > 65536)
		policy_refuse(r, yamldoc_get(n, key), "must be from 1 to 65536, or auto");
	else
		to->depth = depth;
}

static void read_depth_bytes(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	uint64_t bytes = 0;

	if (r->policy->lab && is_word(yamldoc_get(n, "bytes"), "none"))
		return;
	if (policy_took(r, yamldoc_size_of(n, "bytes", &bytes, &r->err)) != 0)
		return;
	if (bytes < 1 || bytes > DEPTH_BYTES_MAX)
		policy_refuse(r, yamldoc_get(n, "bytes"),
			"must be from 1 B to 4 PiB; leave it out for no window in bytes");
	else
		to->depth_bytes = bytes;
}

void policy_resource_read_depth(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	static const char *const keys[] = {"requests", "bytes", NULL};
	yamldoc_node depth = yamldoc_get(n, "depth");

	if (!depth.id)
		return;
	to->depth_bytes = 0;
	if (yamldoc_kind(depth) != YAMLDOC_MAP) {
		read_depth_requests(r, n, "depth", to);
		return;
	}
	to->depth = 0;
	if (!policy_keys(r, depth, keys))
		return;
	read_depth_requests(r, depth, "requests", to);
	read_depth_bytes(r, depth, to);
}

void policy_resource_read_capacity(
	struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	struct weir_limit limits[WEIR_LIMITS];
	unsigned many;

	if (!n.id || is_auto(n))
		return;
	if (yamldoc_kind(n) == YAMLDOC_MAP) {
		policy_refuse(r, n, "must be a rate, a list of rates, or auto");
		return;
	}
	to->capacity_at = policy_place(r, n);
	policy_limit_read(r, n, "capacity", limits, &many);
	for (unsigned i = 0; i < many; i++) {
		to->capacity[limits[i].unit].per_second = limits[i].rate;
		to->capacity_auto = false;
	}
}

/* A burst credit counts in the unit of fair queueing, and is written in it. */
static void read_credit(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	weir_time span = 0;
	int64_t requests = 0;

	if (to->cost == WEIR_UNIT_BYTES) {
		policy_took(r, yamldoc_size_of(n, "credit", &to->credit, &r->err));
	} else if (to->cost == WEIR_UNIT_TIME) {
		policy_took(r, yamldoc_time(n, "credit", &span, &r->err));
		to->credit = (uint64_t)span;
	} else {
		policy_took(r, yamldoc_int(n, "credit", 0, 1000000, &requests, &r->err));
		to->credit = (uint64_t)requests;
	}
}

void policy_resource_read_runs(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	int64_t run = to->run;

	/* A run is served out of turn: 4096 is already a second of a slow disk. */
	policy_took(r, yamldoc_int(n, "run", 0, 4096, &run, &r->err));
	to->run = (uint32_t)run;
	policy_took(r, yamldoc_size_of(n, "run_distance", &to->run_distance, &r->err));
	read_credit(r, n, to);
}

static void read_costs(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	uint64_t unit = to->io_unit;
	int64_t flush = 1, trim = 1;

	policy_took(r, yamldoc_size_of(n, "io_unit", &unit, &r->err));
	if (unit < 512 || unit > UINT64_C(1) << 31)
		policy_refuse(r, yamldoc_get(n, "io_unit"), "must be from 512 B to 2 GiB");
	else
		to->io_unit = (uint32_t)unit;
	/* Each passes the gate, so each costs at least one. */
	policy_took(r, yamldoc_int(n, "flush_cost", 1, 65536, &flush, &r->err));
	policy_took(r, yamldoc_int(n, "trim_cost", 1, 65536, &trim, &r->err));
	to->flush_cost = (double)flush;
	to->trim_cost = (double)trim;
}

/* Names of exports have at most 255 bytes, which a connection keeps. */
static const char *read_name(struct policy_reading *r, yamldoc_node n, const char *what)
{
	const char *name = policy_get_string(r, n, "name");

	if (!yamldoc_has(n, "name"))
		policy_refuse(r, n, "%s needs a name", what);
	if (name && strlen(name) > 255)
		policy_refuse(r, yamldoc_get(n, "name"), "has more than 255 bytes");
	return name;
}

static void read_cost(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	int cost = WEIR_UNIT_REQUESTS;

	policy_took(r, yamldoc_choice(n, "cost", cost_words, &cost, &r->err));
	to->cost = (enum weir_unit)cost;
}

/* If a controller's tokens count bytes, weights share bytes by default: a tenant with small
 * requests could not use its tokens beside large ones. */
static void imply_cost(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	if (!policy_controller_counts_bytes(to) || to->cost == WEIR_UNIT_BYTES)
		return;
	if (yamldoc_has(n, "cost"))
		policy_warn_at(r, policy_place(r, yamldoc_get(n, "cost")),
			"tokens count bytes, but weights share %s: tenants with small requests may "
			"not be able to use their tokens; leave 'cost' out, or set it to bytes",
			cost_words[to->cost]);
	else
		to->cost = WEIR_UNIT_BYTES;
}

/* Return false if it has no name. */
static bool read_resource(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	const char *name, *keys[KEYS];

	if (!policy_keys(r, n, policy_controller_keys(resource_keys, keys, KEYS)))
		return false;
	name = read_name(r, n, "a resource");
	if (name && weir_policy_resource(r->policy, name))
		policy_refuse(r, yamldoc_get(n, "name"), "a second resource '%s'", name);
	policy_resource_default(name, to);
	to->at = policy_place(r, n);
	to->back = policy_get_string(r, n, "back");
	to->back_at = policy_place(r, yamldoc_get(n, "back"));
	read_cost(r, n, to);
	policy_resource_read_depth(r, n, to);
	policy_resource_read_capacity(r, yamldoc_get(n, "capacity"), to);
	policy_controller_read(r, n, to);
	imply_cost(r, n, to);
	policy_resource_read_runs(r, n, to);
	read_costs(r, n, to);
	policy_serve_read_resource(r, n, to);
	to->profile = policy_get_string(r, n, "profile");
	to->profile_at = policy_place(r, yamldoc_get(n, "profile"));
	policy_lab_read_resource(r, n, to);
	return name != NULL;
}

const char *policy_resource_near(const char *key)
{
	const char *keys[KEYS];

	policy_controller_keys(resource_keys, keys, KEYS);
	return weir_err_near(key, keys);
}

void policy_resource_read(struct policy_reading *r, yamldoc_node resources)
{
	struct weir_policy *p = r->policy;
	size_t room = 0;

	if (!resources.id || policy_took(r, yamldoc_list(resources, &r->err)) != 0)
		return;
	for (size_t i = 0; i < yamldoc_size(resources); i++)
		r->names_controllers |= yamldoc_has(yamldoc_at(resources, i), "controller");
	for (size_t i = 0; i < yamldoc_size(resources); i++) {
		struct weir_resource one;

		if (!policy_grow(r, (void **)&p->resources, p->n_resources, &room, sizeof(one)))
			return;
		if (!read_resource(r, yamldoc_at(resources, i), &one))
			continue;
		p->resources[p->n_resources++] = one;
		policy_volume_read(r, yamldoc_at(resources, i), (int)p->n_resources - 1);
	}
}

/* ---- exports */

static int export_resource(struct policy_reading *r, yamldoc_node n)
{
	const struct weir_policy *p = r->policy;
	const char *name = policy_get_string(r, n, "resource");
	const struct weir_resource *found = name ? weir_policy_resource(p, name) : NULL;

	if (found)
		return (int)(found - p->resources);
	if (name) {
		const char **names = calloc(p->n_resources + 1, sizeof(*names)), *near = NULL;

		for (size_t i = 0; names && i < p->n_resources; i++)
			names[i] = p->resources[i].name;
		if (names)
			near = weir_err_near(name, names);
		free(names);
		policy_refuse(r, yamldoc_get(n, "resource"), "no resource '%s'%s%s%s", name,
			near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	} else if (!yamldoc_has(n, "resource")) {
		if (p->n_resources == 1)
			return 0;
		policy_refuse(r, n, "an export needs a resource when there is not just one");
	}
	return -1;
}

/* Return false if it was refused. */
static bool read_export(struct policy_reading *r, yamldoc_node n, struct weir_export *to)
{
	const struct weir_policy *p = r->policy;
	size_t errors = r->remarks->n_errors;

	*to = (struct weir_export){.at = policy_place(r, n)};
	if (!policy_keys(r, n, export_keys))
		return false;
	to->name = read_name(r, n, "an export");
	to->resource = export_resource(r, n);
	if (to->resource >= 0 && p->resources[to->resource].volumes)
		policy_refuse(r, n, "resource '%s' has volumes, and each of them is an export",
			p->resources[to->resource].name);
	policy_took(r, yamldoc_size_of(n, "offset", &to->offset, &r->err));
	if (policy_took(r, yamldoc_size_of(n, "size", &to->size, &r->err)) == 0 && !to->size)
		policy_refuse(r, yamldoc_get(n, "size"),
			"must be more than 0; leave it out for all up to the resource's end");
	if (to->offset + to->size < to->offset)
		policy_refuse(r, n, "its end is beyond 2⁶⁴ bytes");
	policy_serve_read_export(r, n, to);
	return r->remarks->n_errors == errors && !r->no_memory;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

void policy_resource_add_export(
	struct policy_reading *r, yamldoc_node name, const struct weir_export *one)
{
	struct weir_policy *p = r->policy;
	const char *const *found = tsearch(one->name, &r->export_names, by_text);

	if (!found) {
		r->no_memory = true;
		return;
	}
	if (*found != one->name) {
		if (name.id)
			policy_refuse(r, name, "a second export '%s'", one->name);
		else
			policy_refuse_at(r, one->at, "a second export '%s'", one->name);
		return;
	}
	if (policy_grow(r, (void **)&p->exports, p->n_exports, &r->exports_room, sizeof(*one)))
		p->exports[p->n_exports++] = *one;
}

/* Without `exports` each resource is one, whole. That needs no list, unless volumes are in it. */
static void add_whole_resources(struct policy_reading *r)
{
	struct weir_policy *p = r->policy;
	bool volumes = false;

	for (size_t i = 0; i < p->n_resources; i++)
		volumes |= p->resources[i].volumes;
	for (size_t i = 0; volumes && i < p->n_resources; i++)
		if (!p->resources[i].volumes)
			policy_resource_add_export(r, (yamldoc_node){0},
				&(struct weir_export){.name = p->resources[i].name,
					.resource = (int)i,
					.at = p->resources[i].at});
}

static void read_exports(struct policy_reading *r, yamldoc_node exports)
{
	if (policy_took(r, yamldoc_list(exports, &r->err)) != 0)
		return;
	for (size_t i = 0; i < yamldoc_size(exports); i++) {
		struct weir_export one;

		if (read_export(r, yamldoc_at(exports, i), &one))
			policy_resource_add_export(
				r, yamldoc_get(yamldoc_at(exports, i), "name"), &one);
	}
}

static void keep(void *name)
{
}

void policy_resource_read_exports(struct policy_reading *r, yamldoc_node exports)
{
	if (exports.id)
		read_exports(r, exports);
	else
		add_whole_resources(r);
	tdestroy(r->export_names, keep);
	r->export_names = NULL;
}

/* ---- costs */

uint32_t weir_policy_cost(const struct weir_resource *r, enum weir_op op, uint64_t bytes)
{
	uint64_t units;

	if (op == WEIR_STATUS)
		return 1;
	if (op == WEIR_FLUSH)
		return (uint32_t)r->flush_cost;
	if (op == WEIR_TRIM)
		return (uint32_t)r->trim_cost;
	units = bytes / r->io_unit + (bytes % r->io_unit != 0);
	return units == 0 ? 1 : units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
}

uint32_t weir_policy_cost_bytes(enum weir_op op, uint64_t bytes)
{
	if (op == WEIR_FLUSH || op == WEIR_TRIM || op == WEIR_STATUS)
		return 0;
	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}
