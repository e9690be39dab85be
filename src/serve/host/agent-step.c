/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent-step: one period of the controllers.
 *
 * A task belongs to one thread at a time: the main thread sends it (away), the resource's thread does
 * what it says and posts it back. A resource that does not come back in time is left out of this
 * period's message, and asked again when it has.
 */
#include "base/container.h"
#include "control/parda/message.h"
#include "control/parda/tenant.h"
#include "serve/host/agent-impl.h"
#include <string.h>

/* Of a period: how long before a step upstreams are asked. A quarter of the shortest, 25 ms, is longer than
 * any network takes. */
#define ASK_PART  4
#define HELD_MOST 0.99 /* of a time inside */

/* ---- on the resource's thread */

void agent_seat_there(struct loop_task *t)
{
	struct agent_seat *s = container_of(t, struct agent_seat, there);
	struct resource *r = s->resource->resource;

	if (s->errand == AGENT_ASK) {
		resource_ask_upstream(r);
	} else if (s->errand == AGENT_MEASURE) {
		s->rc = resource_load(r, s->policy, s->now, s->n);
		s->held = resource_held_upstream(r);
		s->at = loop_now(s->resource->worker->loop);
	} else {
		resource_window(r, s->last.window);
	}
	loop_post(s->agent->gateway->loop, &s->back);
}

void agent_send(struct agent_seat *s, enum agent_errand errand)
{
	struct agent *a = s->agent;

	if (s->away)
		return;
	s->errand = errand;
	s->serial = a->serial;
	s->away = true;
	a->n_away++;
	loop_post(s->resource->worker->loop, &s->there);
}

/* ---- peers */

void agent_receive(void *arg, const struct peer_message *m, weir_time now)
{
	struct agent *a = arg;

	for (size_t i = 0; i < a->n_seats; i++) {
		struct agent_seat *s = &a->seats[i];

		for (unsigned k = 0; s->parda && m->kind == PEER_LEAVE && k < PEER_REPORTS_MAX; k++)
			parda_leave(s->parda, parda_message_id(m->name, k), m->instance);
		for (unsigned k = 0; s->parda && k < m->n_reports; k++) {
			struct parda_report heard = parda_message_read(m, &m->reports[k]);

			if (m->reports[k].resource != s->hash)
				continue;
			if (parda_hear(s->parda, &heard) == PARDA_FRESH)
				agent_probe_hear(s, &heard);
		}
	}
}

/* Resources of ours that are one array's are each other's peers, and no message comes back to us. */
static void tell_ours(struct agent *a, const struct agent_seat *from)
{
	for (size_t i = 0; i < a->n_seats; i++) {
		struct agent_seat *s = &a->seats[i];

		if (s != from && s->parda && s->hash == from->hash &&
			parda_hear(s->parda, &from->last.report) == PARDA_FRESH)
			agent_probe_hear(s, &from->last.report);
	}
}

void agent_tell_now(struct agent *a)
{
	struct peer_report reports[PEER_REPORTS_MAX];
	unsigned n = 0;

	for (size_t i = 0; i < a->n_seats; i++) {
		const struct agent_seat *s = &a->seats[i];

		if (!s->parda || !s->steps)
			continue;
		tell_ours(a, s);
		if (n < PEER_REPORTS_MAX)
			reports[n++] =
				parda_message_write(&s->last.report, s->hash, s->number, a->period);
	}
	if (a->peers)
		peer_send(a->peers, reports, n);
}

static void tell(struct agent *a)
{
	if (!a->told)
		agent_tell_now(a);
	a->told = true;
}

/* ---- a step */

static double grown(double now, double was)
{
	return now > was ? now - was : 0; /* a node that was made anew begins at 0 */
}

static uint64_t more(uint64_t now, uint64_t was)
{
	return now > was ? now - was : 0;
}

/* The part of a time inside the back end that limits upstream were the reason of: of as many requests as
 * came back, or of one where none did. It was asked a moment ago, and not of just these: never all of it. */
static double held_of(const struct agent_seat *s, double device_ns, uint64_t served)
{
	double held = s->held * (double)(served ? served : 1);

	return held < device_ns * HELD_MOST ? held : device_ns * HELD_MOST;
}

static struct parda_vm vm_of(const struct agent_seat *s, size_t i, double span)
{
	const struct resource_load *now = &s->now[i], *was = &s->was[i];
	double device_ns = grown(now->device_ns, was->device_ns);
	struct parda_tenant t = {.shares = weir_policy_shares(s->policy, i),
		.ios = (double)more(now->served, was->served),
		.bytes = (double)more(now->bytes, was->bytes),
		.wanting_ns = grown(now->wanting_ns, was->wanting_ns) -
			      held_of(s, device_ns, more(now->served, was->served)),
		.min_ios = now->min_ios,
		.min_bytes = now->min_bytes};

	return parda_tenant_vm(&t, span, (double)s->config.slot);
}

static void measure(struct agent_seat *s, struct parda_measured *ret)
{
	double span = (double)(s->at - s->then);
	size_t n = 0;

	*ret = (struct parda_measured){.vms = s->vms};
	for (size_t i = 0; i < s->n; i++) {
		const struct resource_load *now = &s->now[i], *was = &s->was[i];
		uint64_t served = more(now->served, was->served);
		double device_ns = grown(now->device_ns, was->device_ns);

		ret->ios += served;
		ret->bytes += (double)more(now->bytes, was->bytes);
		ret->latency_ns += device_ns - held_of(s, device_ns, served);
		s->vms[n] = vm_of(s, i, span);
		s->vms[n].number = (uint32_t)i;
		n += now->clients || s->vms[n].outstanding > 0;
	}
	ret->inside = ret->latency_ns / span;
	ret->n_vms = n;
}

/* Other resources of ours are peers as well; but of other hosts only is it said who is heard. */
static void others_only(struct agent_seat *s)
{
	const struct agent *a = s->agent;

	for (size_t i = 0; i < a->n_seats; i++) {
		const struct agent_seat *o = &a->seats[i];

		if (o != s && o->parda && o->steps && o->hash == s->hash && s->last.peers > 0)
			s->last.peers--;
	}
	s->last.alone = s->config.estimate != 1 && s->last.peers == 0;
}

/* What was measured has come. true: there is a window to be set. */
static bool step(struct agent_seat *s)
{
	struct resource_load *kept = s->was;
	struct parda_measured m;
	bool first = !s->fresh;

	if (s->rc < 0 || s->policy != s->agent->gateway->policy)
		return false;
	if (!first && s->at > s->then) {
		measure(s, &m);
		parda_step(s->parda, s->at, &m, &s->last);
		others_only(s);
		s->held_then = s->held;
		s->steps++;
		agent_say(s);
	}
	s->was = s->now;
	s->now = kept;
	s->then = s->at;
	s->fresh = true;
	return !first && s->policy->enforce;
}

void agent_seat_back(struct loop_task *t)
{
	struct agent_seat *s = container_of(t, struct agent_seat, back);
	struct agent *a = s->agent;

	s->away = false;
	a->n_away--;
	if (s->serial == a->serial && s->errand == AGENT_MEASURE && s->parda && step(s))
		agent_send(s, AGENT_SET);
	if (a->n_away == 0 && s->errand != AGENT_ASK)
		tell(a);
}

static void send_all(struct agent *a, enum agent_errand errand)
{
	for (size_t i = 0; i < a->n_seats; i++)
		if (a->seats[i].parda)
			agent_send(&a->seats[i], errand);
}

/* Twice a period: upstreams are asked a little before their answers are used. */
void agent_tick(struct loop_timer *t, weir_time now)
{
	struct agent *a = container_of(t, struct agent, timer);
	weir_time lead = a->period / ASK_PART;

	if (!a->asked) {
		a->asked = true;
		send_all(a, AGENT_ASK);
		loop_set(a->gateway->loop, &a->timer, now + lead);
		return;
	}
	a->asked = false;
	tell(a); /* somebody was late the last time */
	a->told = false;
	send_all(a, AGENT_MEASURE);
	loop_set(a->gateway->loop, &a->timer, now + a->period - lead);
}
