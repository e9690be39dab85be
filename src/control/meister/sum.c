/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/sum.h"
#include <stdlib.h>

void meister_sum_add(struct meister_sum *s, const struct meister_curve *c, uint32_t owner)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct meister_knee *k = &c->knee[i];

		s->turn[s->n++] = (struct meister_turn){k->t, i ? 0 : k->value,
			i ? k->slope - c->knee[i - 1].slope : k->slope, owner};
	}
}

/* Add a turn to the curve whose last knee is at most as late. */
static inline void put_turn(struct meister_curve *c, const struct meister_turn *e)
{
	struct meister_knee *last = c->n ? &c->knee[c->n - 1] : NULL;

	if (!last) {
		c->knee[c->n++] = (struct meister_knee){e->t, e->value, e->slope};
	} else if (last->t == e->t) {
		last->value += e->value;
		last->slope += e->slope;
	} else {
		c->knee[c->n++] = (struct meister_knee){
			e->t, meister_knee_value(last, e->t), last->slope + e->slope};
	}
}

static int by_time(const void *a, const void *b)
{
	const struct meister_turn *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner; /* the same sum on every machine */
}

void meister_sum_sort(struct meister_sum *s)
{
	qsort(s->turn, s->n, sizeof(*s->turn), by_time);
}

void meister_sum_of(const struct meister_sum *s, const uint32_t *place, uint32_t from, uint32_t to,
	struct meister_curve *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint32_t at = place[s->turn[i].owner];

		if (from <= at && at < to)
			put_turn(ret, &s->turn[i]);
	}
}
