/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/place.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct placing {
	const struct plan_stage *server;
	const struct place_workload *w;
	uint32_t n, servers;
	uint32_t *on;                /* by workload */
	double *load;                /* by server, in the long run */
	struct plan_tenant *tenants; /* of one server */
	struct by_load {
		double load;
		uint32_t workload;
	} * order;
};

static int heavier(const void *a, const void *b)
{
	const struct by_load *x = a, *y = b;

	if (x->load != y->load)
		return x->load < y->load ? 1 : -1;
	return x->workload < y->workload ? -1 : x->workload > y->workload;
}

static double rate_of(const struct place_workload *w)
{
	return w->hop.pair[w->hop.n - 1].rate;
}

/* Return 1 if a workload and those of a server meet their slos together, 0 if not, or -ENOMEM. */
static int fits(struct placing *p, uint32_t server, uint32_t workload)
{
	struct plan_stage stage = *p->server;
	struct plan_input in = {
		.stages = &stage, .tenants = p->tenants, .n_stages = 1, .how = {.greedy = true}};
	struct plan plan;
	int rc;

	if (p->load[server] + rate_of(&p->w[workload]) > stage.rate)
		return 0;
	stage.largest = 0;
	for (uint32_t i = 0; i < p->n; i++)
		if (i == workload || p->on[i] == server) {
			p->tenants[in.n_tenants++] = (struct plan_tenant){
				p->w[i].slo, (struct plan_hop *)&p->w[i].hop, 1};
			stage.largest = fmax(stage.largest, p->w[i].hop.largest);
		}
	rc = plan_make(&in, &plan);
	if (rc < 0)
		return rc;
	rc = plan.feasible;
	plan_free(&plan);
	return rc;
}

static int place_one(struct placing *p, uint32_t workload)
{
	uint32_t s = 0;
	int rc = 0;

	while (s <= p->servers && (rc = fits(p, s, workload)) == 0)
		s++;
	if (rc <= 0) /* not even on a new one */
		return rc;
	p->on[workload] = s;
	p->load[s] += rate_of(&p->w[workload]);
	p->servers += s == p->servers;
	return 0;
}

int place_first_fit(const struct plan_stage *server, const struct place_workload *w, uint32_t n,
	uint32_t *ret_server, uint32_t *ret_servers)
{
	struct placing p = {.server = server,
		.w = w,
		.n = n,
		.on = ret_server,
		.load = calloc(n + 1, sizeof(*p.load)),
		.tenants = calloc(n + 1, sizeof(*p.tenants)),
		.order = calloc(n + 1, sizeof(*p.order))};
	int rc = p.load && p.tenants && p.order ? 0 : -ENOMEM;

	memset(ret_server, 0xff, n * sizeof(*ret_server)); /* PLACE_NONE */
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		p.order[i] = (struct by_load){w[i].hop.load, i};
	if (rc == 0)
		qsort(p.order, n, sizeof(*p.order), heavier);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = place_one(&p, p.order[i].workload);
	*ret_servers = p.servers;
	free(p.load);
	free(p.tenants);
	free(p.order);
	return rc;
}
