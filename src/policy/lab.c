/* SPDX-License-Identifier: BSD-3-Clause */
/* lab: keys that only experiments need, under `lab` of a tenant or of a resource. */
#include "policy/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The largest size or cost: the gate's buckets hold it, and a double holds it exactly. */
#define QUANTITY_MAX 4503599627370496.0

static const char *const order_words[] = {"fair", "fifo", "edf", NULL}; /* enum weir_order */
static const char *const plan_words[] = {"none", "meister", "edf", NULL};
static const char *const only_words[] = {"all", "steady", "sharp", NULL};
static const char *const limit_words[] = {"priority", "requests", NULL};
static const char *const ops_words[] = {"all", "reads", "writes", NULL};

/* ---- a tenant */

static int read_in_unit(
	yamldoc_node map, const char *key, enum weir_unit unit, double *ret, struct weir_err *err)
{
	uint64_t bytes;
	weir_time time;
	double found;
	int r;

	switch (unit) {
	case WEIR_UNIT_BYTES:
		r = yamldoc_size_of(map, key, &bytes, err);
		found = r ? 0 : (double)bytes;
		break;
	case WEIR_UNIT_TIME:
		r = yamldoc_time(map, key, &time, err);
		found = r ? 0 : (double)time;
		break;
	default:
		r = yamldoc_count(map, key, &found, err);
		break;
	}
	if (r)
		return r;
	if (found > QUANTITY_MAX)
		return yamldoc_error(yamldoc_get(map, key), err, "is too large");
	*ret = found;
	return 0;
}

/* {rate: 100 iops, size: 10, ops: reads}, or {share: 0.3, size: 20ms} of the device's time. */
static int read_bucket(yamldoc_node n, enum weir_bucket_kind kind, struct weir_bucket_spec *ret,
	struct weir_err *err)
{
	static const char *const keys[] = {"rate", "share", "size", "ops", NULL};
	static const uint8_t masks[] = {WEIR_OPS_ALL, WEIR_OPS_READS, WEIR_OPS_WRITES};
	struct weir_rate rate = {0, WEIR_UNIT_REQUESTS};
	double share;
	int ops = 0, r;

	if ((r = yamldoc_map(n, keys, err)))
		return r;
	r = yamldoc_count(n, "share", &share, err);
	if (r == 0) {
		rate = (struct weir_rate){share * (double)WEIR_SEC, WEIR_UNIT_TIME};
		if (yamldoc_get(n, "rate").id)
			return yamldoc_error(n, err, "give 'rate' or 'share', not both");
	} else if (r == -ENOENT) {
		r = yamldoc_rate(n, "rate", &rate, err);
	}
	if (r == -ENOENT)
		return yamldoc_error(n, err, "a bucket needs 'rate' (as in '100 iops') or 'share'");
	if (r || (r = yamldoc_optional(yamldoc_choice(n, "ops", ops_words, &ops, err))))
		return r;
	*ret = (struct weir_bucket_spec){kind, rate.unit, masks[ops], rate.per_second, 0};
	r = read_in_unit(n, "size", ret->unit, &ret->size, err);
	if (r == -ENOENT || (r == 0 && ret->size <= 0))
		return yamldoc_error(
			n, err, "a bucket needs a 'size' above 0, in the unit of its rate");
	return r;
}

static int read_profile(yamldoc_node map, struct policy_lab_tenant *to, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(map, "profile");
	int r;

	if (!list.id)
		return 0;
	if ((r = yamldoc_list(list, err)))
		return r;
	if (yamldoc_size(list) > POLICY_LAB_PROFILES)
		return yamldoc_error(
			list, err, "must have at most %d buckets", POLICY_LAB_PROFILES);
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		if ((r = read_bucket(yamldoc_at(list, i), WEIR_PROFILE, &to->profile[i], err)))
			return r;
	}
	to->n_profile = (unsigned)yamldoc_size(list);
	to->given |= POLICY_LAB_PROFILE;
	return 0;
}

static int read_tokens(yamldoc_node map, const char *key, enum weir_bucket_kind kind,
	unsigned given, struct weir_bucket_spec *ret, struct policy_lab_tenant *to,
	struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, key);
	int r = n.id ? read_bucket(n, kind, ret, err) : 0;

	if (r == 0 && n.id)
		to->given |= given;
	return r;
}

static int read_grant(yamldoc_node map, const char *key, unsigned given, double *ret,
	struct policy_lab_tenant *to, struct weir_err *err)
{
	int r = yamldoc_count(map, key, ret, err);

	if (r == 0)
		to->given |= given;
	return yamldoc_optional(r);
}

static int read_priority(yamldoc_node map, struct policy_lab_tenant *to, struct weir_err *err)
{
	const char *text = yamldoc_text(yamldoc_get(map, "priority"));
	int64_t priority = -1;
	int r = 0;

	if (!text || strcmp(text, "none") != 0)
		r = yamldoc_int(map, "priority", 0, 63, &priority, err);
	to->priority = (int)priority;
	if (r == 0)
		to->given |= POLICY_LAB_PRIORITY;
	return yamldoc_optional(r);
}

static int read_values(yamldoc_node map, struct policy_lab_tenant *ret, struct weir_err *err)
{
	int r;

	*ret = (struct policy_lab_tenant){.priority = -1};
	if ((r = read_priority(map, ret, err)))
		return r;
	r = yamldoc_time(map, "deadline", &ret->deadline, err);
	if (r == 0)
		ret->given |= POLICY_LAB_DEADLINE;
	if ((r = yamldoc_optional(r)) || (r = read_profile(map, ret, err)) ||
		(r = read_tokens(map, "rtokens", WEIR_RTOKENS, POLICY_LAB_RTOKENS, &ret->rtokens,
			 ret, err)) ||
		(r = read_tokens(map, "ltokens", WEIR_LTOKENS, POLICY_LAB_LTOKENS, &ret->ltokens,
			 ret, err)) ||
		(r = read_grant(map, "rgrant", POLICY_LAB_RGRANT, &ret->rgrant, ret, err)))
		return r;
	return read_grant(map, "lgrant", POLICY_LAB_LGRANT, &ret->lgrant, ret, err);
}

int policy_lab_tenant_read(
	yamldoc_node map, bool change, struct policy_lab_tenant *ret, struct weir_err *err)
{
	static const char *const keys[] = {
		"priority", "deadline", "profile", "rtokens", "ltokens", "rgrant", "lgrant", NULL};
	const char *known[sizeof(keys) / sizeof(keys[0])] = {NULL};
	int r;

	memcpy(known, keys, (sizeof(keys) / sizeof(keys[0]) - (change ? 1 : 3)) * sizeof(*keys));
	r = yamldoc_map(map, known, err);
	return r ? r : read_values(map, ret, err);
}

/* Return true if the map has a `lab`, and it may have one. */
static bool has_lab(struct policy_reading *r, yamldoc_node map)
{
	yamldoc_node n = yamldoc_get(map, "lab");

	if (!n.id)
		return false;
	if (!r->policy->lab)
		policy_refuse(r, n, "is for experiments only: give --lab to accept it");
	return r->policy->lab;
}

void policy_lab_read_tenant(struct policy_reading *r, yamldoc_node map, size_t tenant)
{
	struct weir_policy *p = r->policy;
	yamldoc_node n = yamldoc_get(map, "lab");
	struct policy_lab_tenant lab;

	if (!has_lab(r, map) ||
		policy_took(r, policy_lab_tenant_read(n, false, &lab, &r->err)) != 0)
		return;
	if (yamldoc_has(map, "children")) {
		policy_refuse(r, n, "is for tenants without children");
		return;
	}
	lab.tenant = tenant;
	lab.at = policy_place(r, n);
	if (policy_grow(r, (void **)&p->labs, p->n_labs, &r->labs_room, sizeof(lab)))
		p->labs[p->n_labs++] = lab;
}

static int by_tenant(const void *key, const void *item)
{
	size_t i = *(const size_t *)key, k = ((const struct policy_lab_tenant *)item)->tenant;

	return (i > k) - (i < k);
}

const struct policy_lab_tenant *policy_lab_of(const struct weir_policy *p, size_t tenant)
{
	return p->n_labs ? bsearch(&tenant, p->labs, p->n_labs, sizeof(*p->labs), by_tenant) : NULL;
}

/* ---- a resource */

static int read_estimate(yamldoc_node n, struct policy_lab_resource *to, struct weir_err *err)
{
	static const char *const keys[] = {"io", "rate", "profile", NULL};
	struct weir_rate rate = {0, WEIR_UNIT_BYTES};
	int r;

	if ((r = yamldoc_map(n, keys, err)) ||
		(r = yamldoc_optional(yamldoc_time(n, "io", &to->estimate_io, err))) ||
		(r = yamldoc_optional(yamldoc_rate(n, "rate", &rate, err))))
		return r;
	if (rate.unit != WEIR_UNIT_BYTES)
		return yamldoc_error(
			yamldoc_get(n, "rate"), err, "must be bytes per second, as in '100 MB/s'");
	to->estimate_rate = rate.per_second;
	return 0;
}

/* The keys of a plan, which the simulator makes. */
static void read_plan(struct policy_reading *r, yamldoc_node n, struct policy_lab_resource *to)
{
	int plan = POLICY_LAB_NO_PLAN, only = POLICY_LAB_ALL, limit = 0;
	int64_t pairs = to->pairs, levels = to->levels;

	policy_took(r, yamldoc_choice(n, "plan", plan_words, &plan, &r->err));
	policy_took(r, yamldoc_choice(n, "only", only_words, &only, &r->err));
	policy_took(r, yamldoc_choice(n, "limit", limit_words, &limit, &r->err));
	policy_took(r, yamldoc_int(n, "pairs", 1, POLICY_LAB_PROFILES, &pairs, &r->err));
	policy_took(r, yamldoc_int(n, "levels", 1, 64, &levels, &r->err));
	policy_took(r, yamldoc_bool(n, "blocking", &to->blocking, &r->err));
	policy_took(r, yamldoc_count(n, "margin", &to->margin, &r->err));
	if (to->margin < 1)
		policy_refuse(r, yamldoc_get(n, "margin"), "must be 1 or more");
	policy_took(r, yamldoc_bool(n, "aligned", &to->aligned, &r->err));
	to->levels = (unsigned)levels;
	to->plan = (enum policy_lab_plan)plan;
	to->only = (enum policy_lab_only)only;
	to->holds = limit == 1;
	to->pairs = (unsigned)pairs;
	if (to->plan == POLICY_LAB_EDF)
		to->order = WEIR_EDF;
}

void policy_lab_read_resource(struct policy_reading *r, yamldoc_node map, struct weir_resource *to)
{
	static const char *const own[] = {"order", "estimate", "plan", "pairs", "only", "limit",
		"levels", "blocking", "margin", "aligned", NULL};
	yamldoc_node n = yamldoc_get(map, "lab"), estimate = yamldoc_get(n, "estimate");
	const char *keys[KEYS_MOST];
	int order = WEIR_FAIR;

	if (!has_lab(r, map) || !policy_keys(r, n, policy_controller_lab_keys(own, keys)))
		return;
	policy_took(r, yamldoc_choice(n, "order", order_words, &order, &r->err));
	to->lab.order = (enum weir_order)order;
	to->lab.at = policy_place(r, n);
	read_plan(r, n, &to->lab);
	if (estimate.id && policy_took(r, read_estimate(estimate, &to->lab, &r->err)) == 0)
		to->lab.profile = policy_get_string(r, estimate, "profile");
	to->lab.estimates = estimate.id != 0;
}

/* Return the name of a key for experiments that has another value than its default, or NULL. */
static const char *lab_setting(const struct weir_resource *r)
{
	for (const struct key *k = r->controller->keys; k->name; k++) {
		const void *at = (const char *)r->settings + k->offset;

		if (k->lab && k->type == KEY_WORD && *(const int *)at != (int)k->otherwise)
			return k->name;
		if (k->lab && k->type == KEY_NUMBER && *(const double *)at != k->otherwise)
			return k->name;
	}
	return NULL;
}

int policy_lab_controls(const struct weir_resource *r, struct weir_err *err)
{
	const char *name = r->controller && r->controller->has_peers ? lab_setting(r) : NULL;

	return name ? weir_err_at(err, -EINVAL, r->lab.at,
			      "lab: the gateway cannot use '%s' of '%s'", name, r->controller->name)
		    : 0;
}

int policy_lab_served(const struct weir_policy *p, struct weir_err *err)
{
	for (size_t i = 0; i < p->n_resources; i++) {
		if (p->resources[i].depth < 1 && p->resources[i].depth != 0)
			return weir_err_at(err, -EINVAL, p->resources[i].at,
				"the gateway cannot use a 'depth' below 1");
		if (policy_lab_controls(&p->resources[i], err) < 0)
			return -EINVAL;
		if (p->resources[i].lab.plan)
			return weir_err_at(err, -EINVAL, p->resources[i].lab.at,
				"lab: the gateway cannot use 'plan'");
		if (p->resources[i].lab.estimates)
			return weir_err_at(err, -EINVAL, p->resources[i].lab.at,
				"lab: the gateway reads device times from 'profile' of the "
				"resource, and cannot use 'estimate'");
	}
	return 0;
}
