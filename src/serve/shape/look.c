/* SPDX-License-Identifier: BSD-3-Clause */
/* look: the counters of services, from the classes of devices and from the classifier. */
#include "serve/shape/impl.h"

static void on_class(void *arg, const struct tc_class_state *c)
{
	struct shaper *s = arg;
	uint32_t minor = c->id & 0xffff, slot = minor % SHAPE_SLOTS,
		 node = s->now.tree->by_slot[slot];
	const struct leaf *f = minor >= SHAPE_LEAF ? leaves_look(&s->leaves, c) : NULL;
	struct shaper_queue *q;

	if ((c->id & 0xffff0000) != SHAPE_MAJOR) /* of a service's buckets */
		return;

	if (minor >= SHAPE_LEAF)
		node = f ? f->to.node : UINT32_MAX;
	else if (slot && !node) /* of a service that is gone */
		node = UINT32_MAX;
	if (minor < SHAPE_DEFAULT || node >= s->now.tree->n)
		return;
	q = &s->now.queue[node];
	q->sent += c->bytes;
	q->dropped += c->dropped;
	q->queued += c->queued;
	q->told += f ? c->queued : 0;
	q->leaves += f && f->state == LEAF_LIVES;
	q->many += minor < SHAPE_STATIC || f ? c->queued > 0 : 0;
}

/* The class of a leaf is gone, but its service's counters never fall. */
static void on_gone(void *arg, const struct leaf *f)
{
	struct shaper_version *v = arg;

	if (f->to.node >= v->tree->n)
		return;
	v->queue[f->to.node].gone_sent += f->sent;
	v->queue[f->to.node].gone_dropped += f->dropped;
}

void shaper_look_queues(struct shaper *s, weir_time now)
{
	struct leaves_on on = shaper_leaves_on(s);
	struct weir_err err;

	leaves_look_again(&s->leaves);
	for (size_t i = 0; i < s->now.tree->n; i++) {
		struct shaper_queue *q = &s->now.queue[i];

		*q = (struct shaper_queue){.before = q->dropped,
			.many_before = q->many,
			.sent = q->gone_sent,
			.dropped = q->gone_dropped,
			.gone_sent = q->gone_sent,
			.gone_dropped = q->gone_dropped};
	}
	for (size_t i = 0; i < s->n_devices; i++)
		if (!s->devices[i].lost)
			tc_classes(&s->tc, &s->devices[i].link, on_class, s, &err);
	leaves_sweep(&s->leaves, &on, now, on_gone, &s->now);
}

void shaper_look_counts(struct shaper *s, weir_time now)
{
	struct shaper_version *v = &s->now;
	double span = (double)(now - s->looked) / 1e9;

	for (size_t i = 0; i < v->tree->n; i++)
		for (int d = 0; v->tree->nodes[i].leaf && d < SHAPE_DIRS; d++) {
			struct shaper_use *u = &v->use[i][d];
			uint64_t bytes = d == SHAPE_OUT
						 ? v->queue[i].sent
						 : program_count(v->program, i, SHAPE_IN).bytes;

			u->rate =
				v->seen && bytes > u->bytes ? (double)(bytes - u->bytes) / span : 0;
			u->bytes = bytes;
		}
	s->looked = now;
	v->seen = true;
}
