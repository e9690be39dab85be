/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent-probe: reads of the gateway's own, by which PARDA finds its threshold (control/parda/parda.h, PROBING).
 *
 * The host that decides asks its peers, by a report that says so, whether they have requests inside. Each looks on the
 * resource's thread and answers at once; one that had none tells as soon as a client does something while the burst
 * may last. With all answers the burst begins on the resource's thread, where it ends when a client comes.
 * Where peers share a file no answer comes in time, and nobody reads.
 *
 *   who decides   every LOOK: nothing happened since the last look → ask → all are quiet → read → learn
 *   a peer        asked → looks, twice → answers; every LOOK until the burst is over: something happened → says so
 */
#include "base/container.h"
#include "serve/host/agent-impl.h"
#include "serve/loop/log.h"

#define LOOK    (5 * WEIR_MS)
#define SELDOM  (100 * WEIR_MS)             /* where nobody may read */
#define PATIENT (50 * WEIR_MS)              /* for answers */
#define WATCH   (PROBE_BURST + 2 * PATIENT) /* from an answer until the burst is over */

/* ---- on the resource's thread */

static void over(struct resource_probe *r)
{
	struct agent_seat *s = container_of(r, struct agent_seat, probe.reads);

	loop_post(s->agent->gateway->loop, &s->probe.back);
}

static void there(struct loop_task *t)
{
	struct agent_seat *s = container_of(t, struct agent_seat, probe.there);
	struct agent_probe *p = &s->probe;

	p->rc = 0;
	if (p->reads_now)
		p->rc = resource_probe_start(s->resource->resource, &p->reads);
	else
		p->quiet = resource_probe_quiet(s->resource->resource);
	if (!p->reads_now || p->rc < 0)
		loop_post(s->agent->gateway->loop, &p->back);
}

/* ---- on the main thread */

static void send(struct agent_seat *s, bool reads_now)
{
	s->probe.away = true;
	s->probe.reads_now = reads_now;
	s->agent->n_probing++;
	loop_post(s->resource->worker->loop, &s->probe.there);
}

static void answer(struct agent_seat *s, bool quiet)
{
	s->last.report.quiet = quiet;
	agent_tell_now(s->agent);
	s->last.report.quiet = false;
}

static void learn(struct agent_seat *s)
{
	const struct resource_probe *r = &s->probe.reads;
	char reads[24], ms[24];

	if (s->probe.rc < 0 || !s->parda)
		return;
	parda_probe_learn(s->parda, &r->burst, r->reads, r->ended);
	log_event(LOG_LEVEL_DEBUG, "parda-probe", "resource", s->resource->name, "reads",
		log_number(reads, (double)r->reads), "ms",
		log_number(ms, (double)(r->ended - r->burst.started) / WEIR_MS), NULL);
}

static void back(struct loop_task *t)
{
	struct agent_seat *s = container_of(t, struct agent_seat, probe.back);
	struct agent_probe *p = &s->probe;

	p->away = false;
	s->agent->n_probing--;
	if (p->reads_now) {
		p->state = AGENT_PROBE_NONE;
		learn(s);
	} else if (s->parda) {
		p->confirming = p->quiet;
		p->watch = p->quiet ? loop_now(s->agent->gateway->loop) + WATCH : 0;
		if (!p->quiet)
			answer(s, false);
		agent_probe_wake(s->agent);
	}
}

void agent_probe_init(struct agent_seat *s)
{
	s->probe.there.run = there;
	s->probe.back.run = back;
	s->probe.reads.over = over;
}

void agent_probe_hear(struct agent_seat *s, const struct parda_report *heard)
{
	struct agent_probe *p = &s->probe;

	if (heard->asks && !p->away && s->steps) {
		p->activity = resource_activity(s->resource->resource);
		send(s, false);
	}
	if (p->state == AGENT_PROBE_READING && !heard->quiet)
		atomic_store(&p->reads.stop, true);
}

static void ask(struct agent_seat *s, weir_time now)
{
	parda_probe_ask(s->parda);
	s->probe.state = AGENT_PROBE_ASKED;
	s->probe.since = now;
	s->last.report.asks = true;
	agent_tell_now(s->agent);
	s->last.report.asks = false;
}

/* true: it goes on. */
static bool step(struct agent_seat *s, weir_time now)
{
	struct agent_probe *p = &s->probe;
	uint64_t activity = resource_activity(s->resource->resource);
	bool still = activity == p->activity;

	p->activity = activity;
	if (p->state == AGENT_PROBE_READING)
		return true;
	if (p->state == AGENT_PROBE_ASKED && (now - p->since > PATIENT || !still))
		p->state = AGENT_PROBE_NONE;
	if (!parda_probe_plan(s->parda, now, &p->reads.burst, &p->reads.bytes))
		return false;
	if (!still || p->away)
		return true;
	if (p->state == AGENT_PROBE_NONE)
		ask(s, now); /* and where there is nobody to ask, below */
	if (parda_probe_agreed(s->parda)) {
		p->state = AGENT_PROBE_READING;
		atomic_store(&p->reads.stop, false);
		send(s, true);
	}
	return true;
}

/* It had nothing inside when it was asked: says so, if it was no pause between two requests, and when that has changed. */
static void watch(struct agent_seat *s, weir_time now)
{
	struct agent_probe *p = &s->probe;

	if (resource_activity(s->resource->resource) != p->activity) {
		p->watch = 0;
		answer(s, false);
	} else if (p->confirming) {
		p->confirming = false;
		answer(s, true);
	} else if (now >= p->watch) {
		p->watch = 0;
	}
}

void agent_probe_tick(struct loop_timer *t, weir_time now)
{
	struct agent *a = container_of(t, struct agent, probe_timer);
	weir_time next = WEIR_NEVER;

	for (size_t i = 0; i < a->n_seats && !a->gateway->stopping; i++) {
		struct agent_seat *s = &a->seats[i];

		if (s->parda && s->probe.watch) {
			watch(s, now);
			next = now + LOOK;
		}
		if (!s->parda || !s->config.probe)
			continue;
		if (next == WEIR_NEVER)
			next = now + SELDOM;
		if (s->steps && s->policy == a->gateway->policy && step(s, now))
			next = now + LOOK;
	}
	loop_set(a->gateway->loop, t, next);
}

void agent_probe_wake(struct agent *a)
{
	loop_set(a->gateway->loop, &a->probe_timer, loop_now(a->gateway->loop) + LOOK);
}
