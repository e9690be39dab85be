/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/host/cluster-plan.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/plan.h"
#include "serve/snapshot/version.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define STALE WEIR_SEC /* after so long without a part another connection may go on */

struct cluster_plan {
	struct cluster_plan_config config;
	struct lease_plan next; /* that is fetched; number 0: none */
	char *text;
	uint64_t got;
	void *from;
	weir_time at; /* of the last part */
	bool entering;
	uint64_t refused;
	char why[LEASE_WHY_MAX + 1];
};

int cluster_plan_new(const struct cluster_plan_config *config, struct cluster_plan **ret)
{
	struct cluster_plan *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->config = *config;
	*ret = p;
	return 0;
}

static void forget(struct cluster_plan *p)
{
	free(p->text);
	p->text = NULL;
	p->next = (struct lease_plan){0};
	p->got = 0;
}

void cluster_plan_free(struct cluster_plan *p)
{
	if (!p)
		return;
	free(p->text);
	free(p);
}

/* ---- answers */

static void answer(struct cluster_plan *p, void *to, uint64_t wanted)
{
	const struct gateway *g = p->config.gateway;
	const struct gateway_plan *plan = g->in_force->plan;
	struct lease_message m = {.kind = LEASE_HAS,
		.has = {.number = g->plan_number,
			.wanted = wanted,
			.offset = wanted ? p->got : 0,
			.refused = p->refused}};

	if (plan)
		sodium_hex2bin(m.has.digest, LEASE_DIGEST, plan->digest, strlen(plan->digest), NULL,
			NULL, NULL);
	if (p->refused) {
		m.bytes = (uint8_t *)p->why;
		m.n = strlen(p->why);
	}
	p->config.tell(p->config.arg, to, &m);
}

static void refuse(struct cluster_plan *p, const char *why)
{
	char number[24];

	p->refused = p->next.number;
	strncpy(p->why, why, LEASE_WHY_MAX);
	log_event(LOG_LEVEL_WARNING, "plan-refused", "number",
		log_number(number, (double)p->next.number), "why", p->why, NULL);
}

/* ---- a whole plan */

static void entered(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	struct cluster_plan *p = arg;

	p->entering = false;
	if (rc < 0 && rc != -ESHUTDOWN)
		refuse(p, err->text);
	forget(p);
	answer(p, NULL, 0);
}

static void enter(struct cluster_plan *p)
{
	char tenants[GATEWAY_DIGEST], is[GATEWAY_DIGEST], should[GATEWAY_DIGEST];
	struct gateway_change *c;
	char *text = p->text;

	sodium_bin2hex(tenants, sizeof(tenants), p->next.tenants, LEASE_DIGEST);
	sodium_bin2hex(should, sizeof(should), p->next.digest, LEASE_DIGEST);
	gateway_digest(text ? text : "", p->next.length, is);
	if (p->next.length && strcmp(is, should) != 0) {
		refuse(p, "its digest is not that of what arrived");
		forget(p);
		answer(p, NULL, 0);
		return;
	}
	p->text = NULL;
	c = gateway_change_plan_of_cluster(text, p->next.length, p->next.number, tenants);
	if (!c) {
		forget(p); /* it is announced again */
		return;
	}
	p->entering = true;
	gateway_change_start(p->config.gateway, c, entered, p);
}

/* ---- parts */

static bool is_next(const struct cluster_plan *p, const struct lease_plan *m)
{
	return p->next.number == m->number && p->next.length == m->length &&
	       memcmp(p->next.digest, m->digest, LEASE_DIGEST) == 0 &&
	       memcmp(p->next.tenants, m->tenants, LEASE_DIGEST) == 0;
}

/* Begin to fetch a plan. Return false without memory. */
static bool begin(struct cluster_plan *p, const struct lease_plan *m)
{
	forget(p);
	p->text = m->length ? malloc(m->length + 1) : NULL;
	if (m->length && !p->text)
		return false;
	if (p->text)
		p->text[m->length] = 0;
	p->next = *m;
	p->next.offset = 0;
	p->refused = 0;
	p->from = NULL;
	return true;
}

void cluster_plan_hear(struct cluster_plan *p, void *from, const struct lease_message *m)
{
	const struct lease_plan *of = &m->plan;
	weir_time now = loop_clock();

	if (p->entering)
		return; /* the answer follows */
	if (of->number <= p->config.gateway->plan_number || of->number == p->refused ||
		of->number < p->next.number) {
		answer(p, from, 0);
		return;
	}
	if (!is_next(p, of) && !begin(p, of))
		return;
	if (p->from && p->from != from && now - p->at < STALE)
		return; /* another connection brings it */
	if (m->n && of->offset != p->got)
		return;
	if (m->n && p->text)
		memcpy(p->text + p->got, m->bytes, m->n);
	p->got += m->n;
	p->from = from;
	p->at = now;
	if (p->got == p->next.length)
		enter(p);
	else
		answer(p, from, p->next.number);
}

void cluster_plan_lost(struct cluster_plan *p, const void *from)
{
	if (p->from == from)
		p->from = NULL;
}

void cluster_plan_policy(struct cluster_plan *p)
{
	if (p->entering)
		return;
	p->refused = 0;
	answer(p, NULL, 0);
}
