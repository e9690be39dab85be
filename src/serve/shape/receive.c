/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/receive.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DIVISION 25 /* T */
/* The least rate told: a sender at it is sampled some times in the life of its leaf, or it would not hear of a higher one. */
#define LEAST      125e3 /* bytes/s; of slow lines: */
#define LEAST_PART 0.005

/* ---- making it */

static const struct policy_net_share *share_of(
	const struct weir_policy *p, const struct tree *t, size_t node)
{
	static const struct policy_net_share none = {.max = INFINITY, .weight = 1};
	const struct policy_net *net = node ? p->tenants[t->nodes[node].tenant].net : NULL;

	return net ? &net->share[POLICY_NET_MACHINE][POLICY_NET_IN] : &none;
}

/* A broker of one member: this machine. Its service 0 is of packets without a service. */
static int make_own(struct receive *r, const struct weir_policy *p, const struct tree *t)
{
	struct parley_service *s = calloc(t->n, sizeof(*s));
	int rc = -ENOMEM;

	for (size_t i = 0; s && i < t->n; i++) {
		const struct policy_net_share *share = share_of(p, t, i);
		uint16_t parent = t->nodes[i].parent;

		s[i] = (struct parley_service){.min = share->min,
			.max = share->max,
			.weight = share->weight,
			.leaf_max = INFINITY,
			.leaf_weight = 1,
			.parent = parent ? parent : -1};
	}
	for (size_t i = t->n; s && i-- > 1;) { /* a parent's min holds its children's */
		s[i].min = fmax(s[i].min, r->usage[i]);
		if (s[i].parent >= 0)
			r->usage[s[i].parent] += s[i].min;
		r->usage[i] = 0;
	}
	if (s)
		rc = parley_broker_new(s, t->n, 1, WEIR_NEVER, &r->own);
	free(s);
	return rc;
}

int receive_new(const struct weir_policy *p, const struct tree *t, double line, weir_time period,
	weir_time now, struct receive **ret)
{
	struct receive *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	*r = (struct receive){.n = t->n,
		.line = line,
		.period = period ? period : parley_period(line * PARLEY_LINE, PARLEY_MTU),
		.began = now};
	r->services = calloc(t->n, sizeof(*r->services));
	r->usage = calloc(t->n, sizeof(*r->usage));
	rc = r->services && r->usage ? make_own(r, p, t) : -ENOMEM;
	if (rc) {
		receive_free(r);
		return rc;
	}
	for (size_t i = 0; i < t->n; i++) {
		struct receive_service *s = &r->services[i];

		parley_meter_init(&s->meter, line, true);
		s->meter.rcp.least = fmin(LEAST, LEAST_PART * line);
		s->meter.began = now;
		s->cap = (struct parley_cap){INFINITY, share_of(p, t, i)->max, 0};
		s->share = INFINITY;
	}
	*ret = r;
	return 0;
}

void receive_free(struct receive *r)
{
	if (!r)
		return;
	parley_broker_free(r->own);
	free(r->services);
	free(r->usage);
	free(r);
}

/* ---- each T */

/* A packet may be counted for one service and then moved to another: a difference below 0 is none. */
static uint64_t moved_on(uint64_t now, uint64_t before)
{
	return (int64_t)(now - before) > 0 ? now - before : 0;
}

void receive_count(struct receive *r, size_t node, const struct shape_count *total)
{
	struct receive_service *s = &r->services[node];

	s->meter.bytes += moved_on(total->bytes, s->seen.bytes);
	s->meter.packets += moved_on(total->packets, s->seen.packets);
	s->meter.marked += moved_on(total->marked, s->seen.marked);
	s->seen = *total;
}

double receive_capacity(const struct receive *r, size_t node, weir_time now)
{
	const struct receive_service *s = &r->services[node];

	return fmin(fmin(parley_cap_now(&s->cap, now), s->share), PARLEY_LINE * r->line);
}

static void divide(struct receive *r, const struct tree *t, weir_time now)
{
	double span = (double)(now - r->began) / 1e9;

	for (size_t i = 0; i < t->n; i++) {
		struct receive_service *s = &r->services[i];

		if (t->nodes[i].leaf)
			s->rate = (double)moved_on(s->seen.bytes, s->divided) / span;
		s->divided = s->seen.bytes;
		r->usage[i] = s->rate;
	}
	parley_broker_hear(r->own, 0, r->usage, now);
	parley_broker_step(r->own, PARLEY_LINE * r->line, now);
	for (size_t i = 0; i < t->n; i++)
		r->services[i].share = parley_broker_cap(r->own, 0, i);
	r->began = now;
}

void receive_step(struct receive *r, const struct tree *t, weir_time now)
{
	for (size_t i = 0; i < t->n; i++) {
		struct parley_meter *m = &r->services[i].meter;
		double capacity = receive_capacity(r, i, now);

		if (t->nodes[i].leaf && (m->packets || m->rcp.rate < m->rcp.line))
			parley_meter_turn(m, capacity, r->period / 2,
				parley_period(capacity, PARLEY_MTU) - r->period / 2, now);
		else
			m->began = now;
		if (m->rcp.rate < m->rcp.line)
			r->services[i].limited = now;
	}
	if (now - r->began >= DIVISION * r->period)
		divide(r, t, now);
}

double receive_told(const struct receive *r, size_t node)
{
	const struct rcp *rcp = &r->services[node].meter.rcp;

	return rcp->rate < rcp->line ? rcp->rate : INFINITY;
}

double receive_telling(const struct receive *r, size_t node, weir_time now)
{
	const struct receive_service *s = &r->services[node];

	return s->limited && now - s->limited < PARLEY_LEAF ? s->meter.rcp.rate : INFINITY;
}
