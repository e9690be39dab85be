/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * byslo: strict priorities in the order of the tenants' slos, without limits (PriorityMeister §5.3). For comparison: a tenant
 * with a small slo and a high load delays all others.
 *
 * LAW     A leaf with an slo has the rank of its slo among the distinct ones as its priority, 63 at most. Others have none.
 */
#include "control/controller.h"
#include <errno.h>
#include <stdlib.h>

#define PRIORITY_MOST 63

struct ranks {           /* of one version */
	weir_time *slos; /* in order, equal ones once */
	size_t n;
};

struct byslo {
	struct site *site;
	struct ranks now, next;
};

static int make(struct site *site, void **ret)
{
	struct byslo *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->site = site;
	*ret = c;
	return 0;
}

static void destroy(void *arg)
{
	struct byslo *c = arg;

	free(c->now.slos);
	free(c->next.slos);
	free(c);
}

static int compare(const void *a, const void *b)
{
	weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

	return (x > y) - (x < y);
}

static void sort_once(struct ranks *r)
{
	size_t n = 0;

	qsort(r->slos, r->n, sizeof(*r->slos), compare);
	for (size_t i = 0; i < r->n; i++)
		if (!n || r->slos[n - 1] != r->slos[i])
			r->slos[n++] = r->slos[i];
	r->n = n;
}

static bool has_slo(struct controller_tenant t)
{
	return t.is_leaf && t.slo_percentile > 0;
}

static int prepare(void *arg, const struct controller_version *v, size_t from, size_t to)
{
	struct ranks *r = &((struct byslo *)arg)->next;

	if (from == 0) {
		free(r->slos);
		*r = (struct ranks){.slos = calloc(v->n + 1, sizeof(*r->slos))};
	}
	if (!r->slos)
		return -ENOMEM;
	for (size_t i = from; i < to; i++)
		if (has_slo(v->tenant(v, i)))
			r->slos[r->n++] = v->tenant(v, i).slo_latency;
	if (to == v->n)
		sort_once(r);
	return 0;
}

static void set(struct byslo *c, weir_node node, double priority)
{
	struct weir_knob knob = {.node = node, .kind = WEIR_KNOB_PRIORITY, .value = priority};

	weir_gate_set(c->site->gate, c->site->ops->now(c->site), &knob, 1, NULL);
}

static void take_tenant(void *arg, const struct controller_version *v, size_t i, weir_node node)
{
	struct byslo *c = arg;
	const struct ranks *r = v->next ? &c->next : &c->now;
	struct controller_tenant t = v->tenant(v, i);
	const weir_time *at;

	if (!t.is_leaf)
		return;
	at = has_slo(t) ? bsearch(&t.slo_latency, r->slos, r->n, sizeof(*r->slos), compare) : NULL;
	set(c, node,
		!at                            ? -1
		: at - r->slos < PRIORITY_MOST ? (double)(at - r->slos)
					       : PRIORITY_MOST);
}

static void leave(void *arg, const struct controller_version *v, size_t i)
{
	struct byslo *c = arg;

	if (has_slo(v->tenant(v, i)) && c->site->nodes)
		set(c, c->site->nodes[i], -1);
}

static void begin(void *arg, const struct controller_version *v)
{
	struct byslo *c = arg;

	free(c->now.slos);
	c->now = c->next;
	c->next = (struct ranks){0};
}

const struct controller byslo_controller = {
	.name = "bySLO",
	.summary = "gives strict priorities in the order of the tenants' slos, without limits",
	.keys = (const struct key[]){{0}},
	.settings_size = 1,
	.new = make,
	.free = destroy,
	.prepare = prepare,
	.take = take_tenant,
	.leave = leave,
	.begin = begin,
};
