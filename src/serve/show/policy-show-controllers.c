/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-show-controllers: which controllers run under a policy, and why, in words. */
#include "control/controller.h"
#include "policy/net.h"
#include "serve/show/policy-show.h"
#include <weir/units.h>
#include <string.h>

/* "min 5k iops, max 10k iops"; nothing: there is neither. */
static void put_limits(const struct weir_tenant *t, FILE *to)
{
	const struct {
		const char *name;
		const struct weir_limit *all;
		unsigned n;
	} kinds[] = {{"min", t->min, t->n_min}, {"max", t->max, t->n_max}};
	bool first = true;
	char rate[48];

	for (size_t k = 0; k < 2; k++)
		for (unsigned i = 0; i < kinds[k].n; i++) {
			const struct weir_limit *l = &kinds[k].all[i];

			fprintf(to, "%s%s %s", first ? "" : ", ", kinds[k].name,
				weir_units_show_rate(
					(struct weir_rate){l->rate, l->unit}, rate, sizeof(rate)));
			first = false;
		}
}

/* Tenants whose bounds span the servers of a cluster. */
static void put_cluster(const struct weir_policy *p, FILE *to)
{

	for (size_t i = 0; p->cluster.n_servers && i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];
		size_t parts = t->n_servers ? t->n_servers : p->cluster.n_servers;

		if (!t->n_min && !t->n_max)
			continue;
		fprintf(to, "%s: ", t->path);
		put_limits(t, to);
		fprintf(to, " over %zu server%s → %s\n", parts, parts == 1 ? "" : "s",
			controller_in_cluster()->name);
	}
}

static void put_slos(const struct weir_policy *p, FILE *to)
{
	char span[32];

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		if (t->slo_percentile <= 0)
			continue;
		fprintf(to,
			"%s: slo p%g < %s → meister: weir plan makes its priority and buckets\n",
			t->path, t->slo_percentile,
			weir_units_show_time(t->slo_latency, span, sizeof(span)));
	}
}

static void put_resource(const struct weir_policy *p, const struct weir_resource *r, FILE *to)
{
	const struct controller *c = r->controller;
	const char *how = !c ? "" : r->implied ? "" : " (named)";

	if (c && c->in_cluster)
		fprintf(to, "%s is a server of cluster %s → %s%s\n", r->name, p->cluster.name,
			c->name, how);
	else if (c && c->has_peers && p->peers.n_to)
		fprintf(to, "%s is shared by %zu hosts → %s%s%s\n", r->name, p->peers.n_to + 1,
			c->name, r->implied ? ", threshold found" : "", how);
	else if (c)
		fprintf(to, "%s → %s%s\n", r->name, c->name, how);
	else
		fprintf(to,
			"%s is this gateway's alone: its gate keeps weights, min and max → none\n",
			r->name);
}

void policy_show_controllers(const struct weir_policy *p, FILE *to)
{
	put_cluster(p, to);
	put_slos(p, to);
	for (size_t i = 0; i < p->n_resources; i++)
		put_resource(p, &p->resources[i], to);
	for (size_t i = 0; p->network && i < p->network->n_devices; i++)
		fprintf(to, "link %s → parley, %s\n", p->network->devices[i].name,
			p->network->fabric ? "of the rack and the fabric"
			: p->network->rack ? "of the rack"
					   : "of this machine");
}
