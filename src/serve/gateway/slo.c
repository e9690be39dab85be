/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "policy/plan.h"
#include "serve/gateway/slo.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD WEIR_SEC
#define SOON   (10 * WEIR_MS)

struct entry { /* of one tenant that has an slo */
	char *path;
	struct slo *slo;
	weir_time longest; /* wait beyond the bound, as of this check; 0: none */
	int tenant;        /* index in g->policy */
};

struct gateway_slo {
	struct gateway *gateway;
	struct loop_timer timer;
	weir_time now;         /* of this check */
	struct entry *entries; /* by tenant */
	size_t n;
	size_t histograms; /* entries with histograms, as of the last second */
};

/* ---- the policy's tenants */

static void free_entries(struct entry *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].path);
		slo_free(list[i].slo);
	}
	free(list);
}

static int by_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Take the windows of the entry with that path from `old`, which is sorted by path; or make new
 * ones. */
static int fill(struct entry *e, const struct weir_tenant *t, struct entry *old, size_t n_old)
{
	struct entry *was;

	e->path = strdup(t->path);
	was = e->path && n_old ? bsearch(e, old, n_old, sizeof(*old), by_path) : NULL;
	if (!e->path)
		return -ENOMEM;
	if (!was || !was->slo)
		return slo_new(t->slo_percentile, t->slo_latency, &e->slo);
	e->slo = was->slo;
	was->slo = NULL;
	slo_set(e->slo, t->slo_percentile, t->slo_latency);
	return 0;
}

static bool has_slo(const struct weir_tenant *t)
{
	return t->slo_percentile > 0 && t->first_child < 0;
}

static int read_policy(struct gateway_slo *s, const struct weir_policy *p)
{
	struct entry *old = s->entries, *list;
	size_t n = 0, n_old = s->n;
	int rc = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		n += has_slo(&p->tenants[i]);
	list = calloc(n ? n : 1, sizeof(*list));
	s->entries = list;
	s->n = 0;
	if (n_old)
		qsort(old, n_old, sizeof(*old), by_path);
	for (size_t i = 0; rc == 0 && list && i < p->n_tenants; i++) {
		if (!has_slo(&p->tenants[i]))
			continue;
		list[s->n].tenant = (int)i;
		rc = fill(&list[s->n++], &p->tenants[i], old, n_old);
	}
	free_entries(old, n_old);
	if (rc == 0 && list)
		return 0;
	free_entries(list, list ? s->n : 0);
	s->entries = NULL;
	s->n = 0;
	return -ENOMEM;
}

void gateway_slo_policy(struct gateway *g)
{
	if (g->slo && read_policy(g->slo, g->policy) < 0)
		log_event(LOG_LEVEL_ERROR, "slo-not-measured", "why", "out of memory", NULL);
}

/* ---- what resources recorded */

static struct entry *entry_of(struct gateway_slo *s, int tenant)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->entries[middle].tenant < tenant)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && s->entries[low].tenant == tenant ? &s->entries[low] : NULL;
}

static void add_batch(
	void *arg, int tenant, const struct slo_batch *batch, const struct slo_batch *waits)
{
	struct gateway_slo *s = arg;
	struct entry *e = entry_of(s, tenant);
	bool had;

	if (!e)
		return;
	if (waits && waits->total)
		slo_waits(e->slo, waits);
	if (waits && waits->max > e->longest)
		e->longest = waits->max;
	had = slo_has_histograms(e->slo);
	if (batch)
		slo_add(e->slo, s->now, batch, had || s->histograms < GATEWAY_SLO_HISTOGRAMS);
	s->histograms += !had && slo_has_histograms(e->slo);
}

void gateway_slo_begin(struct gateway *g)
{
	struct gateway_slo *s = g->slo;

	if (!s)
		return;
	s->now = loop_clock();
	for (size_t i = 0; i < s->n; i++) {
		s->entries[i].longest = 0;
		slo_waits(s->entries[i].slo, NULL);
	}
}

void gateway_slo_take(struct gateway *g, struct gateway_resource *r)
{
	struct gateway_slo *s = g->slo;

	if (!s)
		return;
	r->slo.activity = resource_activity(r->resource);
	r->slo.again = resource_watch(r->resource, add_batch, s);
}

/* ---- every second */

static void say(const struct gateway_slo *s, const struct entry *e, enum slo_window w, bool missed)
{
	const struct weir_tenant *t = &s->gateway->policy->tenants[e->tenant];
	char want[POLICY_SLO_TEXT], value[32] = "", good[24], total[24], wait[32];
	struct slo_view v;

	slo_look(e->slo, s->now, w, &v);
	policy_plan_show_slo(t, want);
	if (v.value >= 0)
		weir_units_show_time(v.value, value, sizeof(value));
	log_event(missed ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, missed ? "slo-missed" : "slo-met",
		"tenant", e->path, "slo", want, "over", w == SLO_MINUTE ? "1m" : "1h", "was",
		*value ? value : NULL, "good", log_number(good, (double)v.good), "of",
		log_number(total, (double)v.total), "oldest-wait",
		e->longest ? weir_units_show_time(e->longest, wait, sizeof(wait)) : NULL, NULL);
}

static void judge(struct gateway_slo *s)
{
	s->histograms = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];
		bool missed;

		for (int w = 0; w < SLO_WINDOWS; w++)
			if (slo_changed(e->slo, s->now, (enum slo_window)w, &missed))
				say(s, e, (enum slo_window)w, missed);
		s->histograms += slo_has_histograms(e->slo);
	}
}

static int take_one(void *arg, struct worker *w)
{
	gateway_slo_take(w->gateway, arg);
	return 0;
}

static void due(struct loop_timer *t, weir_time now)
{
	struct gateway_slo *s = container_of(t, struct gateway_slo, timer);
	struct gateway *g = s->gateway;

	if (g->switching) { /* resources have other tenants than the gateway, for a moment */
		loop_set(g->loop, t, now + SOON);
		return;
	}
	gateway_slo_begin(g);
	for (size_t i = 0; i < g->n_resources; i++) {
		struct gateway_resource *r = g->resources[i];

		if (r->slo.again || r->slo.activity != resource_activity(r->resource))
			worker_call(r->worker, take_one, r);
	}
	judge(s);
	loop_set(g->loop, t, now + PERIOD);
}

/* ---- looking */

void gateway_slo_look(struct gateway *g, struct snapshot *to)
{
	struct gateway_slo *s = g->slo;

	if (!s || to->of->policy != g->policy)
		return; /* of a version that was replaced while the snapshot was gathered */
	to->slos = snapshot_take(to, s->n, sizeof(*to->slos));
	for (size_t i = 0; to->slos && i < s->n; i++) {
		struct entry *e = &s->entries[i];
		struct snapshot_slo *v = &to->slos[to->n_slos++];

		v->path = snapshot_path(to, (size_t)e->tenant);
		v->tenant = (uint32_t)e->tenant;
		v->percentile = g->policy->tenants[e->tenant].slo_percentile;
		v->bound = g->policy->tenants[e->tenant].slo_latency;
		slo_totals(e->slo, &v->good, &v->total);
		for (int w = 0; w < SLO_WINDOWS; w++)
			slo_look(e->slo, s->now, (enum slo_window)w, &v->window[w]);
		if (to->tenants[e->tenant])
			to->tenants[e->tenant]->slo = v;
	}
}

/* ---- from start to end */

int gateway_slo_start(struct gateway *g)
{
	struct gateway_slo *s = calloc(1, sizeof(*s));

	g->slo = s;
	if (!s || read_policy(s, g->policy) < 0)
		return -ENOMEM; /* gateway_slo_stop frees it */
	s->gateway = g;
	s->timer.due = due;
	return loop_set(g->loop, &s->timer, loop_clock() + PERIOD);
}

void gateway_slo_stop(struct gateway *g)
{
	struct gateway_slo *s = g->slo;

	if (!s)
		return;
	if (s->timer.due)
		loop_set(g->loop, &s->timer, WEIR_NEVER);
	free_entries(s->entries, s->n);
	free(s);
	g->slo = NULL;
}
