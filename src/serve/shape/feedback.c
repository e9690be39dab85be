/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feedback: each period of the meters, tell the senders of sampled packets the rate of the service that received them; and as a
 * sender, keep to what was told.
 *
 * METHOD  A sender finds the service of a told flow as its classifier does, by port, address and DSCP; where a rule has a
 *         cgroup, the classifier has kept the service of heavy flows. A sender of weight w takes w·R: that of its service, for
 *         what goes out.
 */
#include "serve/shape/impl.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024 /* samples of a period that are answered */
#define SAY  (60 * WEIR_SEC)

struct leaves_on shaper_leaves_on(struct shaper *s)
{
	return (struct leaves_on){&s->tc, s->devices, s->n_devices, s->now.tree, s->now.program};
}

/* ---- the receiver */

static void on_sample(void *arg, const struct shape_sample *p)
{
	struct shaper *s = arg;
	double rate = p->node < s->now.tree->n
			      ? receive_telling(s->now.receive, p->node, loop_now(s->loop))
			      : INFINITY;
	struct feedback_to *to = &s->feedback.pending[s->feedback.n];

	if (!(rate < INFINITY))
		return;
	if (s->feedback.n == MOST) {
		s->feedback.crowded++;
		return;
	}
	memset(to, 0, sizeof(*to)); /* it is compared bytewise */
	to->told.rate = rate;
	to->told.mine = p->flow.mine;
	to->told.theirs = p->flow.theirs;
	to->told.protocol = p->flow.protocol;
	to->told.dscp = p->flow.dscp;
	memcpy(to->to, p->from, sizeof(to->to));
	memcpy(to->told.address, p->flow.address, sizeof(to->told.address));
	s->feedback.n++;
}

static int by_sender(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct feedback_to));
}

/* Send rates to all senders, those of one in as few messages as hold them. */
static void tell(struct shaper *s)
{
	struct feedback *f = &s->feedback;
	uint64_t words[TALK_WORDS];
	unsigned n = 0;

	if (f->n > 1)
		qsort(f->pending, f->n, sizeof(*f->pending), by_sender);
	for (size_t i = 0; i < f->n; i++) {
		const struct feedback_to *t = &f->pending[i], *next = i + 1 < f->n ? t + 1 : NULL;

		if (next && by_sender(t, next) == 0)
			continue;
		told_write(words + n, &t->told);
		n += TOLD_WORDS;
		f->sent++;
		if (next && memcmp(t->to, next->to, sizeof(t->to)) == 0 &&
			n + TOLD_WORDS <= TALK_WORDS)
			continue;
		talk_feedback(s->talk, t->to, words, n);
		n = 0;
	}
	f->n = 0;
}

static void on_meter(struct loop_timer *t, weir_time now)
{
	struct shaper *s = container_of(t, struct shaper, meter);
	const struct shaper_version *v = &s->now;

	for (size_t i = 0; i < v->tree->n; i++)
		if (v->tree->nodes[i].leaf) {
			struct shape_count c = program_count(v->program, i, SHAPE_IN);

			receive_count(v->receive, i, &c);
		}
	receive_step(v->receive, v->tree, now);
	program_samples(v->program, on_sample, s);
	tell(s);
	loop_set(s->loop, t, now + v->receive->period);
}

/* ---- the sender */

static uint32_t node_of(const struct shaper_version *v, const struct told *t)
{
	struct shape_flow flow = {
		.mine = t->mine, .theirs = t->theirs, .protocol = t->protocol, .dscp = t->dscp};
	struct rules_packet p = {.cgroup = v->rules->any[SHAPE_CGROUP],
		.interface = v->rules->any[SHAPE_INTERFACE],
		.port = t->mine,
		.dscp = t->dscp};
	uint32_t node;

	memcpy(flow.address, t->address, sizeof(flow.address));
	memcpy(p.address, t->address, sizeof(p.address));
	if ((v->rules->cgroups || v->rules->interfaces) &&
		program_flow(v->program, &flow, &node) == 0 && node < v->tree->n)
		return node;
	return rules_find(v->rules, &p);
}

void shaper_feedback_hear(
	void *arg, const uint8_t address[16], const uint64_t *words, unsigned n, weir_time now)
{
	struct shaper *s = arg;
	struct leaves_on on = shaper_leaves_on(s);
	struct weir_err err;

	for (unsigned i = 0; i + TOLD_WORDS <= n; i += TOLD_WORDS) {
		struct shape_to to = {0};
		struct told t;

		s->feedback.heard++;
		if (!told_read(words + i, &t)) {
			s->feedback.nonsense++;
			continue;
		}
		to.node = node_of(&s->now, &t);
		memcpy(to.address, t.address, sizeof(to.address));
		if (leaves_tell(&s->leaves, &on, &to, t.rate * s->now.tree->nodes[to.node].weight,
			    now, &err) < 0 &&
			(!s->feedback.said || now - s->feedback.said >= SAY)) {
			s->feedback.said = now;
			log_event(LOG_LEVEL_ERROR, "leaf", "why", err.text, NULL);
		}
	}
}

/* ---- begin and end */

int shaper_feedback_new(struct shaper *s, struct weir_err *err)
{
	s->feedback.pending = calloc(MOST + 1, sizeof(*s->feedback.pending));
	return s->feedback.pending && leaves_new(&s->leaves) == 0 ? 0 : no_memory(err);
}

int shaper_feedback_start(struct shaper *s, weir_time now)
{
	s->meter.due = on_meter;
	return s->talk ? loop_set(s->loop, &s->meter, now + s->now.receive->period) : 0;
}

void shaper_feedback_free(struct shaper *s)
{
	leaves_free(&s->leaves);
	free(s->feedback.pending);
}
