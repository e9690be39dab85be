/* SPDX-License-Identifier: BSD-3-Clause */
/* show: the table of a plan, and sentences about what is missed and what would help. */
#include "cli/plan/plan.h"
#include "cli/view/table.h"
#include <weir/units.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const char *const found_words[] = {"", "greedy", "anneal"};

#define SHOWN 5 /* tenants that another one waits for, one by one */

/* Write a time to three digits. */
static char *show(double seconds, char buf[32])
{
	double ns = fabs(seconds) * 1e9, unit = ns > 1000 ? pow(10, floor(log10(ns)) - 2) : 1;

	if (!(ns < 9e18)) {
		snprintf(buf, 32, "none");
		return buf;
	}
	buf[0] = '-';
	weir_units_show_time(
		(weir_time)(round(ns / unit) * unit), buf + (seconds < 0), 32 - (seconds < 0));
	return buf;
}

static void priority_cell(const struct planning *p, struct table *t, uint32_t i)
{
	char text[400] = "";
	size_t at = 0;

	for (uint32_t k = 0; k < p->tenants[i].n_hops && at < sizeof(text); k++) {
		const struct meister_hop *h = plan_hop(&p->plan, i, k);

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %u", k ? " " : "",
			p->stage[h->stage].name, h->priority);
	}
	table_cell(t, "%s", text);
}

/* The buckets at the storage; those of links are in --json. */
static void buckets_cell(const struct planning *p, struct table *t, uint32_t i)
{
	const struct plan_hop *h = p->tenants[i].hop;
	char text[MEISTER_PAIRS * 48] = "", size[32];
	size_t at = 0;

	while (p->stage[h->stage].link)
		h++;
	for (unsigned k = 0; k < h->n && at < sizeof(text); k++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*f%% %s", k ? ", " : "",
			h->pair[k].rate < 0.1, 100 * h->pair[k].rate, show(h->pair[k].size, size));
	table_cell(t, "%s", text);
}

/* The percentile of the slo as replayed, and half of its interval. */
static void replayed_cell(const struct planning *p, struct table *t, uint32_t i)
{
	const struct replay_result *r = p->replayed ? &p->replayed[i] : NULL;
	char at[32], half[32];

	if (!r || isnan(r->at))
		table_cell(t, "-");
	else if (isnan(r->high))
		table_cell(t, "%s", show(r->at, at));
	else
		table_cell(t, "%s ± %s", show(r->at, at), show(r->high - r->at, half));
}

static void show_table(const struct planning *p)
{
	static const char *const heads[] = {"tenant", "slo", "bound", "replayed", "margin",
		"priority", "buckets (rate size)", "found by", NULL};
	char slo[POLICY_SLO_TEXT], bound[32], margin[32];
	struct table t;

	table_begin(&t, heads, 0x1c);
	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		const struct weir_tenant *of = planning_tenant(p, i);
		double miss = planning_miss(p, i);

		table_cell(&t, "%s", of->path);
		table_cell(&t, "%s", policy_plan_show_slo(of, slo));
		table_cell(&t, "%s", show(meister_latency(&p->plan.system, i), bound));
		replayed_cell(p, &t, i);
		table_cell(&t, "%s", isinf(miss) ? "-" : show(-miss, margin));
		priority_cell(p, &t, i);
		buckets_cell(p, &t, i);
		table_cell(&t, "%s", found_words[p->plan.found]);
	}
	table_print(&t);
}

/* ---- what was assumed */

static void show_notes(const struct planning *p)
{
	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		const struct weir_tenant *of = planning_tenant(p, i);

		if (p->tenant[i].too_short)
			printf("%s: the trace is too short for p%.12g: of %zu %s fewer than "
			       "%d lie beyond it.\n",
				of->path, of->slo_percentile, p->tenant[i].of_kind,
				of->slo_ops == WEIR_OPS_READS    ? "reads"
				: of->slo_ops == WEIR_OPS_WRITES ? "writes"
								 : "requests",
				PLAN_BEYOND);
	}
	for (uint32_t i = 0; i < p->policy->n_resources; i++)
		if (p->stage[i].used && p->stages[i].rate < 1)
			printf("%s: requests may take %.2g %% longer than estimated%s.\n",
				p->stage[i].name, 100 * (1 / p->stages[i].rate - 1),
				p->error < 0 ? ", as its profile says" : "");
	for (size_t i = 0; i < p->n_unknown; i++)
		printf("%s: the slo is not planned, since there is no trace.\n",
			p->policy->tenants[p->unknown[i]].path);
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (p->stage[i].used && p->stage[i].assumed)
			printf("%s: requests of %s, which has no trace, are taken to be of %s.\n",
				p->stage[i].name, p->stage[i].largest_of,
				p->stage[i].link ? "32 MiB" : "256 KiB");
}

/* ---- why an slo is missed */

static void show_load(const struct planning *p, uint32_t stage)
{
	const char *between = "";

	printf("%s is asked for %.0f %% of its rate in the long run:", p->stage[stage].name,
		100 * plan_load(&p->in, stage));
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		for (uint32_t k = 0; k < p->tenants[i].n_hops; k++) {
			const struct plan_hop *h = &p->tenants[i].hop[k];

			if (h->stage == stage)
				printf("%s %s %.3g %%", between, planning_tenant(p, i)->path,
					100 * h->pair[h->n - 1].rate / p->stages[stage].rate);
			between = h->stage == stage ? "," : between;
		}
	printf(".\n");
}

/* Return the tenant with the greatest part, and clear it; n: none is left. */
static uint32_t take_greatest(double *parts, uint32_t n, double *ret)
{
	uint32_t best = n;

	*ret = 0;
	for (uint32_t i = 0; i < n; i++)
		if (parts[i] > *ret) {
			*ret = parts[i];
			best = i;
		}
	if (best < n)
		parts[best] = 0;
	return best;
}

static void show_blocking(const struct planning *p, uint32_t i, double seconds)
{
	const char *between = " for ";
	char text[32];

	for (uint32_t k = 0; k < p->tenants[i].n_hops; k++) {
		uint32_t stage = p->tenants[i].hop[k].stage;
		const struct planning_stage *s = &p->stage[stage];

		printf("%s%.0f request%s of %s", between, s->depth, s->depth == 1 ? "" : "s",
			s->largest_of);
		between = " and ";
	}
	printf(" %s", show(seconds, text));
}

static int show_parts(const struct planning *p, uint32_t i)
{
	struct plan_parts parts = {.others = calloc(p->in.n_tenants + 1, sizeof(*parts.others))};
	int rc = parts.others ? plan_explain(&p->plan, i, &parts) : -ENOMEM;
	double part, rest = 0;
	char text[32];

	if (rc == 0) {
		printf(" It waits");
		for (int n = 0; n < SHOWN; n++) {
			uint32_t k = take_greatest(parts.others, p->in.n_tenants, &part);

			if (k < p->in.n_tenants)
				printf(" for %s %s,", planning_tenant(p, k)->path,
					show(part, text));
		}
		for (uint32_t k = 0; k < p->in.n_tenants; k++)
			rest += parts.others[k];
		if (rest > 0)
			printf(" for others %s,", show(rest, text));
		printf(" for itself %s,", show(parts.own, text));
		show_blocking(p, i, parts.blocking);
		if (parts.inside > 0)
			printf(", inside %s", show(parts.inside, text));
		printf(".\n");
	}
	free(parts.others);
	return rc;
}

static void show_held(const struct planning *p, uint32_t i)
{
	const struct planning_tenant *t = &p->tenant[i];
	struct weir_rate rate = {t->held_max.rate, t->held_max.unit};
	char text[64];

	printf("%s: ", planning_tenant(p, i)->path);
	if (t->held_by == t->tenant)
		printf("its max");
	else
		printf("the max of %s,", p->policy->tenants[t->held_by].path);
	printf(" of %s holds back requests of its trace: the bound does not count that.\n",
		weir_units_show_rate(rate, text, sizeof(text)));
}

/* Buckets and mins that do not fit together. */
static void show_crowded(const struct planning *p, uint32_t stage)
{
	const struct planning_stage *s = &p->stage[stage];

	printf("%s: the buckets of the plan take %.0f %% of its time in the long run, and with the "
	       "mins it is asked for %.0f %% or more: %s's min, of %.0f %% or more, is not kept "
	       "while the planned tenants send what their buckets allow.\n",
		s->name, 100 * plan_load(&p->in, stage), 100 * s->taken, s->min_of,
		100 * s->min_most);
}

static int show_late(const struct planning *p, uint32_t i)
{
	const char *name = planning_tenant(p, i)->path;
	double miss = planning_miss(p, i);
	char text[32], most[32];

	if (p->tenant[i].held)
		show_held(p, i);
	if (p->tenant[i].held || planning_holds(p, i))
		return 0;
	if (p->by_replay) {
		printf("%s: p%.12g is %s when replayed, and may be %s at most: the slo less %.0f "
		       "%%.\n",
			name, planning_tenant(p, i)->slo_percentile, show(p->replayed[i].at, text),
			show(p->tenants[i].slo * (1 - p->margin), most), 100 * p->margin);
		return 0;
	}
	if (isinf(miss)) {
		printf("%s has no bound.\n", name);
		return 0;
	}
	printf("%s misses its slo by %s in the worst case%s.", name, show(miss, text),
		p->replayed && p->replayed[i].high <= p->tenants[i].slo ? " (not when replayed)"
									: "");
	return show_parts(p, i);
}

/* ---- what would help */

/* Round up to three digits. */
static double round_up(double ns)
{
	double unit = pow(10, fmax(0, floor(log10(ns)) - 2));

	return ceil(ns / unit) * unit;
}

static void show_remedies(const struct planning *p, const struct planning_remedies *r)
{
	const char *between = "Any one of these would do: ", *and = "";
	char slo[POLICY_SLO_TEXT];

	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		struct weir_tenant t = *planning_tenant(p, i);

		if (r->slo[i] > 0) {
			t.slo_latency = (weir_time)round_up(r->slo[i] * 1e9);
			printf("%s%s%s %s", and[0] ? "" : between, and, t.path,
				policy_plan_show_slo(&t, slo));
			and = " and ";
		}
	}
	between = and[0] ? "; " : between;
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		if (r->rate[i] > 0) {
			printf("%s%s at %.0f %% of its trace's rate", between,
				planning_tenant(p, i)->path, floor(100 * r->rate[i]));
			between = "; ";
		}
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (r->depth[i] > 0) {
			printf("%sdepth %.0f on %s", between, r->depth[i], p->stage[i].name);
			between = "; ";
		}
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		if (r->without[i]) {
			printf("%swithout %s", between, planning_tenant(p, i)->path);
			between = "; ";
		}
	puts(between[0] == ';' ? "." : "No change of one number would do.");
}

int planning_show(const struct planning *p, const struct planning_remedies *r)
{
	int rc = 0;

	if (p->in.n_tenants)
		show_table(p);
	else
		puts("No tenant has an slo and a trace: there is nothing to plan.");
	show_notes(p);
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (p->stage[i].used && plan_load(&p->in, i) > 1)
			show_load(p, i);
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (planning_crowded(p, i))
			show_crowded(p, i);
	for (uint32_t i = 0; rc == 0 && i < p->in.n_tenants; i++)
		rc = show_late(p, i);
	if (rc == 0 && r)
		show_remedies(p, r);
	return rc;
}
