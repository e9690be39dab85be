/* SPDX-License-Identifier: BSD-3-Clause */
/* step: from the plan in force to one that holds for new traces, with few changes. */
#include "plan/planning.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct stepping {
	struct planning *p;
	struct plan_hop *
		kept; /* by hop of the plan: as in force; then the new one, if they were exchanged */
	uint32_t *priority; /* by hop */
	bool *changed;      /* by tenant */
};

/* ---- the plan in force */

/* Return the object of a list with that name, or NULL. */
static const json_t *named(const json_t *list, const char *name)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	{
		const char *has = json_string_value(json_object_get(v, "name"));

		if (has && strcmp(has, name) == 0)
			return v;
	}
	return NULL;
}

static bool read_buckets(const json_t *list, struct plan_hop *h)
{
	size_t n = json_array_size(list);

	if (!n || n > MEISTER_PAIRS)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(list, i);

		h->pair[i] = (struct meister_pair){json_number_value(json_array_get(pair, 0)),
			json_number_value(json_array_get(pair, 1))};
		if (!(h->pair[i].rate > 0 && h->pair[i].size > 0))
			return false;
	}
	h->n = (unsigned)meister_pairs_reduce(h->pair, n);
	return true;
}

static bool read_tenant(struct stepping *s, const json_t *force, uint32_t i)
{
	const struct planning *p = s->p;
	const json_t *of = named(json_object_get(force, "tenants"), planning_tenant(p, i)->path);

	for (uint32_t k = 0; k < p->tenants[i].n_hops; k++) {
		const struct plan_hop *h = &p->tenants[i].hop[k];
		uint32_t at = p->plan.workloads[i].hops + k;
		const json_t *stage = named(json_object_get(of, "stages"), p->stage[h->stage].name);

		s->kept[at] = *h;
		s->priority[at] = (uint32_t)json_integer_value(json_object_get(stage, "priority"));
		if (!read_buckets(json_object_get(stage, "buckets"), &s->kept[at]))
			return false;
	}
	return true;
}

/* Return false if it has other tenants or stages. */
static bool read_force(struct stepping *s, const json_t *force)
{
	bool all = json_array_size(json_object_get(force, "tenants")) == s->p->in.n_tenants;

	for (uint32_t i = 0; all && i < s->p->in.n_tenants; i++)
		all = read_tenant(s, force, i);
	return all;
}

/* ---- changes */

static double most_at(const struct plan_hop *h, double t)
{
	double least = INFINITY;

	for (unsigned i = 0; i < h->n; i++)
		least = fmin(least, h->pair[i].rate * t + h->pair[i].size);
	return least;
}

/* Return true if the curve of `now` is above that of `kept`: between its knees it is straight, so that the knees and the last slope
 * decide. */
static bool exceeds(const struct plan_hop *now, const struct plan_hop *kept)
{
	struct meister_knee knee[MEISTER_PAIRS];
	bool above = now->pair[now->n - 1].rate > (1 + PLAN_DRIFT) * kept->pair[kept->n - 1].rate;

	meister_curve_of(now->pair, now->n, knee);
	for (unsigned i = 0; i < now->n; i++)
		above = above || knee[i].value > (1 + PLAN_DRIFT) * most_at(kept, knee[i].t);
	return above;
}

/* Exchange the hops of tenants that keep their buckets. */
static void exchange(struct stepping *s)
{
	for (uint32_t i = 0; i < s->p->in.n_tenants; i++)
		for (uint32_t k = 0; !s->changed[i] && k < s->p->tenants[i].n_hops; k++) {
			struct plan_hop *a = &s->p->tenants[i].hop[k],
					*b = &s->kept[s->p->plan.workloads[i].hops + k], was = *a;

			*a = *b;
			*b = was;
		}
}

/* Plan with the priorities; return 1 and replace the plan if every slo holds, 0 if not, or -ENOMEM. */
static int try_it(struct stepping *s)
{
	struct plan plan;
	int rc = plan_keep(&s->p->in, s->priority, &plan);

	if (rc < 0)
		return rc;
	if (!plan.feasible) {
		plan_free(&plan);
		return 0;
	}
	plan_free(&s->p->plan);
	s->p->plan = plan;
	return 1;
}

/* Try other priorities of one tenant, the same at each of its stages. */
static int try_tenant(struct stepping *s, uint32_t i)
{
	uint32_t *mine = s->priority + s->p->plan.workloads[i].hops, n = s->p->tenants[i].n_hops,
		 level = 0;
	uint32_t *was = malloc((n + 1) * sizeof(*was));
	int rc = was ? 0 : -ENOMEM;

	if (was)
		memcpy(was, mine, n * sizeof(*was));
	for (; rc == 0 && level <= s->p->in.n_tenants; level++) {
		for (uint32_t k = 0; k < n; k++) {
			unsigned levels = s->p->stages[s->p->tenants[i].hop[k].stage].levels;

			mine[k] = levels && level >= levels ? levels - 1 : level;
		}
		rc = try_it(s);
	}
	if (rc == 0)
		memcpy(mine, was, n * sizeof(*was));
	free(was);
	return rc;
}

static int step(struct stepping *s, enum planning_step *ret)
{
	uint32_t n = s->p->in.n_tenants, changes = 0;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		s->changed[i] = false;
		for (uint32_t k = 0; k < s->p->tenants[i].n_hops; k++)
			s->changed[i] |= exceeds(&s->p->tenants[i].hop[k],
				&s->kept[s->p->plan.workloads[i].hops + k]);
		changes += s->changed[i];
	}
	exchange(s);
	*ret = changes ? PLANNING_FEW : PLANNING_SAME;
	rc = try_it(s);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		if (s->changed[i])
			rc = try_tenant(s, i);
	if (rc == 0) {
		exchange(s);
		*ret = PLANNING_ALL;
	}
	return rc < 0 ? rc : 0;
}

int planning_step(
	struct planning *p, const json_t *force, bool *ret_changed, enum planning_step *ret_step)
{
	size_t hops = p->plan.system.n_hops;
	struct stepping s = {p, calloc(hops + 1, sizeof(*s.kept)),
		calloc(hops + 1, sizeof(*s.priority)), ret_changed};
	int rc = s.kept && s.priority ? 0 : -ENOMEM;

	*ret_step = PLANNING_ALL;
	if (rc == 0 && read_force(&s, force))
		rc = step(&s, ret_step);
	for (uint32_t i = 0; *ret_step == PLANNING_ALL && i < p->in.n_tenants; i++)
		ret_changed[i] = true;
	free(s.kept);
	free(s.priority);
	return rc;
}
