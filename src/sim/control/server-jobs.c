/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "sim/control/server-jobs.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weights are whole numbers to the law: 1024 keeps ten binary digits of a fractional one. */
#define UNIT 1024.0

int server_jobs_check(const struct scenario *s, yamldoc_node map, struct weir_err *err)
{
	const struct scenario_gate *g;
	uint32_t device;
	int r = scenario_device_of(s, map, &device, err);

	if (r)
		return r;
	g = s->stations[device].gate;
	if (!g || !g->policy)
		return yamldoc_error(map, err, "the device '%s' needs a 'gate' with 'tenants'",
			s->stations[device].name);
	return 0;
}

static void add(struct server_jobs *j, size_t tenant)
{
	const struct weir_tenant *t = &j->gate->policy.tenants[tenant];
	double w = weir_policy_shares(&j->gate->policy, tenant) * UNIT;

	j->names[j->n] = t->path;
	j->leaves[j->n] = (struct adaptbf_gate_leaf){
		.node = j->gate->nodes[tenant],
		.id = j->n + 1,
		.weight = (uint32_t)fmin(fmax(rint(w), 1), UINT32_MAX),
		.share = t->weight,
	};
	j->n++;
}

int server_jobs_init(struct server_jobs *j, struct world *w, yamldoc_node map, struct weir_err *err)
{
	uint32_t device;
	size_t n;
	int r = scenario_device_of(w->scenario, map, &device, err);

	if (r)
		return r;
	j->station = &w->stations[device];
	j->gate = j->station->gate;
	n = j->gate->policy.n_tenants;
	j->leaves = calloc(n + 1, sizeof(*j->leaves));
	j->names = calloc(n + 1, sizeof(*j->names));
	if (!j->leaves || !j->names)
		return no_memory(err);
	for (size_t i = 0; i < n; i++)
		if (j->gate->policy.tenants[i].first_child < 0)
			add(j, i);
	return 0;
}

void server_jobs_free(struct server_jobs *j)
{
	free(j->leaves);
	free(j->names);
}
