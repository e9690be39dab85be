/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-meister: priorities for workloads with latency SLOs, or bounds of given ones. */
#include "base/array.h"
#include "cli/alloc.h"
#include "control/meister/system.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const top_keys[] = {
	"stages", "workloads", "search", "seed", "moves", "fixed", NULL};
static const char *const stage_keys[] = {"name", "rate", "blocking", "inside", "levels", NULL};
static const char *const workload_keys[] = {"name", "slo", "path", "buckets", NULL};
static const struct alloc_range at_least_0 = {.most = 1e300};
static const struct alloc_range above_0 = {.most = 1e300, .above = true};

struct input {
	json_t *stages, *workloads, *fixed;
	struct meister_stage *stage;
	struct meister_workload *workload;
	struct meister_hop *hop;
	size_t hop_room;
	struct meister_system s;
	struct meister_search how;
};

static const char *name_of(json_t *list, size_t i)
{
	return json_string_value(json_object_get(json_array_get(list, i), "name"));
}

/* Return the index of the stage of that name, or -1. */
static int find_stage(const struct input *in, const char *name)
{
	for (size_t i = 0; i < json_array_size(in->stages); i++)
		if (strcmp(name_of(in->stages, i), name) == 0)
			return (int)i;
	return -1;
}

/* ---- stages */

static int read_stage(const struct alloc_at *at, void *arg, size_t i)
{
	const struct alloc_range levels = {.least = 1, .most = UINT32_MAX};
	struct input *in = arg;
	struct meister_stage *to = &in->stage[i];
	const char *name;
	int64_t n = 0;
	int r = alloc_keys(at, stage_keys);

	if (r || (r = alloc_name(at, &name)) || (r = alloc_need(at, "rate", above_0, &to->rate)) ||
		(r = alloc_absent_ok(alloc_number(at, "blocking", at_least_0, &to->blocking))) ||
		(r = alloc_absent_ok(alloc_number(at, "inside", at_least_0, &to->inside))) ||
		(r = alloc_absent_ok(alloc_whole(at, "levels", levels, &n))))
		return r;
	to->levels = (unsigned)n;
	return 0;
}

/* ---- workloads */

static int read_pair(
	const struct alloc_at *at, const char *key, json_t *pair, struct meister_pair *ret)
{
	json_t *rate = json_array_get(pair, 0), *size = json_array_get(pair, 1);

	if (json_array_size(pair) != 2 || !json_is_number(rate) || !json_is_number(size))
		return alloc_fail(at, key, "each bucket must be [rate, size]");
	*ret = (struct meister_pair){json_number_value(rate), json_number_value(size)};
	if (!(ret->rate >= 0 && ret->rate <= 1e300))
		return alloc_fail(at, key, "a rate must be at least 0");
	if (!(ret->size > 0 && ret->size <= 1e300))
		return alloc_fail(at, key, "a size must be > 0");
	return 0;
}

static int read_buckets(
	const struct alloc_at *at, const char *stage, json_t *list, struct meister_curve *ret)
{
	struct meister_pair pairs[MEISTER_PAIRS];
	size_t n = json_array_size(list), i;
	json_t *pair;
	char key[200];
	int r;

	snprintf(key, sizeof(key), "buckets.%s", stage);
	if (!list || json_is_null(list))
		return alloc_fail(at, key, "is missing");
	if (!json_is_array(list) || n == 0 || n > MEISTER_PAIRS)
		return alloc_fail(at, key, "must be a list of 1 to %d buckets", MEISTER_PAIRS);
	json_array_foreach(list, i, pair)
	{
		r = read_pair(at, key, pair, &pairs[i]);
		if (r)
			return r;
	}
	ret->n = meister_pairs_reduce(pairs, n);
	ret->knee = calloc(ret->n, sizeof(*ret->knee));
	if (!ret->knee)
		return -ENOMEM;
	meister_curve_of(pairs, ret->n, ret->knee);
	return 0;
}

static int add_hop(
	struct input *in, const struct alloc_at *at, uint32_t workload, const char *stage)
{
	const struct meister_workload *w = &in->workload[workload];
	int found = stage ? find_stage(in, stage) : -1, r;
	struct meister_hop *h;

	if (found < 0)
		return alloc_fail(at, "path", "no stage '%s'", stage ? stage : "?");
	for (uint32_t i = w->hops; i < in->s.n_hops; i++)
		if (in->hop[i].stage == (uint32_t)found)
			return alloc_fail(at, "path", "'%s' stands twice", stage);
	if (array_grow(&in->hop, &in->hop_room, in->s.n_hops + 1) < 0)
		return -ENOMEM;
	h = &in->hop[in->s.n_hops];
	*h = (struct meister_hop){.workload = workload, .stage = (uint32_t)found};
	r = read_buckets(at, stage, json_object_get(json_object_get(at->object, "buckets"), stage),
		&h->curve);
	in->s.n_hops += r == 0;
	return r;
}

static int read_workload(const struct alloc_at *at, void *arg, size_t i)
{
	struct input *in = arg;
	struct meister_workload *w = &in->workload[i];
	json_t *path, *stage;
	const char *name;
	size_t k;
	int r = alloc_keys(at, workload_keys);

	w->hops = in->s.n_hops;
	if (r || (r = alloc_name(at, &name)) || (r = alloc_need(at, "slo", above_0, &w->slo)) ||
		(r = alloc_list(at, "path", &path)))
		return r;
	if (json_array_size(path) == 0)
		return alloc_fail(at, "path", "must name a stage");
	json_array_foreach(path, k, stage)
	{
		r = add_hop(in, at, (uint32_t)i, json_string_value(stage));
		if (r)
			return r;
	}
	w->n_hops = in->s.n_hops - w->hops;
	if (json_object_size(json_object_get(at->object, "buckets")) != w->n_hops)
		return alloc_fail(at, "buckets", "has a stage that is not in the path");
	return 0;
}

/* ---- the search */

static int read_search(const struct alloc_at *top, struct meister_search *ret)
{
	const struct alloc_range any = {.most = 9007199254740992.0};
	const struct alloc_range moves = {.least = 1, .most = UINT32_MAX};
	json_t *value = json_object_get(top->object, "search");
	const char *name = !value || json_is_null(value) ? "auto" : json_string_value(value);
	int64_t seed = 1, n = 0;
	int r;

	*ret = (struct meister_search){0};
	if (name && strcmp(name, "auto") == 0)
		ret->greedy = ret->anneal = true;
	else if (name && strcmp(name, "greedy") == 0)
		ret->greedy = true;
	else if (name && strcmp(name, "anneal") == 0)
		ret->anneal = true;
	else
		return alloc_fail(top, "search", "must be \"greedy\", \"anneal\" or \"auto\"");
	if ((r = alloc_absent_ok(alloc_whole(top, "seed", any, &seed))) ||
		(r = alloc_absent_ok(alloc_whole(top, "moves", moves, &n))))
		return r;
	ret->seed = (uint64_t)seed;
	ret->moves = (uint32_t)n;
	return 0;
}

/* Read the priorities of `fixed`: of every workload at every stage. */
static int read_fixed(struct input *in, const struct alloc_at *top)
{
	for (uint32_t i = 0; i < in->s.n_hops; i++) {
		struct meister_hop *h = &in->hop[i];
		const char *workload = name_of(in->workloads, h->workload);
		const char *stage = name_of(in->stages, h->stage);
		json_t *value = json_object_get(json_object_get(in->fixed, workload), stage);
		json_int_t priority = json_integer_value(value);
		char key[400];

		snprintf(key, sizeof(key), "fixed.%s.%s", workload, stage);
		if (!json_is_integer(value) || priority < 0 || priority >= UINT32_MAX)
			return alloc_fail(top, key, "must be a whole number of at least 0");
		h->priority = (uint32_t)priority;
	}
	return 0;
}

/* ---- the answer */

static json_t *seconds(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *workload_out(const struct input *in, uint32_t i)
{
	const struct meister_workload *w = &in->workload[i];
	double latency = meister_latency(&in->s, i);
	json_t *priority = json_object(), *bounds = json_object(), *out;

	for (uint32_t k = w->hops; k < w->hops + w->n_hops; k++) {
		const struct meister_hop *h = &in->hop[k];
		const char *stage = name_of(in->stages, h->stage);

		json_object_set_new(priority, stage, json_integer(h->priority));
		json_object_set_new(bounds, stage, seconds(h->bound));
	}
	out = json_pack("{s:s, s:o, s:o, s:o}", "name", name_of(in->workloads, i), "priority",
		priority, "bound", seconds(latency), "bounds", bounds);
	if (out && !(latency <= w->slo))
		json_object_set_new(out, "violation", seconds(latency - w->slo));
	return out;
}

static int write_out(const struct input *in, enum meister_found found, json_t **ret_out)
{
	static const char *const names[] = {NULL, "greedy", "anneal"};
	json_t *list = json_array();
	json_t *out = json_pack("{s:b, s:s?, s:o}", "feasible", meister_violation(&in->s) == 0,
		"found", names[found], "workloads", list);

	for (uint32_t i = 0; out && i < in->s.n_workloads; i++)
		json_array_append_new(list, workload_out(in, i));
	if (!out || json_array_size(list) != in->s.n_workloads) {
		json_decref(out);
		return -ENOMEM;
	}
	*ret_out = out;
	return 0;
}

static int read_all(struct input *in, const struct alloc_at *top)
{
	int r = alloc_keys(top, top_keys);

	if (r || (r = alloc_list(top, "stages", &in->stages)) ||
		(r = alloc_list(top, "workloads", &in->workloads)) ||
		(r = read_search(top, &in->how)))
		return r;
	in->fixed = json_object_get(top->object, "fixed");
	in->s.n_stages = (uint32_t)json_array_size(in->stages);
	in->s.n_workloads = (uint32_t)json_array_size(in->workloads);
	in->stage = calloc(in->s.n_stages + 1, sizeof(*in->stage));
	in->workload = calloc(in->s.n_workloads + 1, sizeof(*in->workload));
	if (!in->stage || !in->workload)
		return -ENOMEM;
	if ((r = alloc_each(top, "stages", in->stages, read_stage, in)) ||
		(r = alloc_each(top, "workloads", in->workloads, read_workload, in)))
		return r;
	in->s.stages = in->stage;
	in->s.workloads = in->workload;
	in->s.hops = in->hop;
	return in->fixed ? read_fixed(in, top) : 0;
}

int alloc_meister(json_t *json, json_t **ret_out, struct weir_err *err)
{
	struct alloc_at top = {"", json, err};
	enum meister_found found = MEISTER_NOT;
	struct input in = {0};
	int r = read_all(&in, &top);

	if (r == 0)
		r = in.fixed ? meister_bounds(&in.s) : meister_search(&in.s, &in.how, &found);
	if (r == 0)
		r = write_out(&in, found, ret_out);
	for (uint32_t i = 0; i < in.s.n_hops; i++)
		free(in.hop[i].curve.knee);
	free(in.hop);
	free(in.stage);
	free(in.workload);
	return r;
}
