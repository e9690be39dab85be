/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/leaves.h"
#include "control/parley/machine.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASHED 65536 /* heads */
#define FREE   1e12  /* bytes/s: no limit */
#define DEAD                                                                                       \
	(200 * WEIR_MS) /* a packet that was classified before a leaf died is in its queue by then */

int leaves_new(struct leaves *l)
{
	*l = (struct leaves){.all = calloc(LEAVES, sizeof(*l->all)),
		.hashed = calloc(HASHED, sizeof(*l->hashed))};
	return l->all && l->hashed ? 0 : -ENOMEM;
}

void leaves_free(struct leaves *l)
{
	free(l->all);
	free(l->hashed);
}

/* ---- the table */

static uint16_t *head_of(struct leaves *l, const struct shape_to *to)
{
	uint64_t h = to->node, word;

	for (int i = 0; i < 16; i += 8) {
		memcpy(&word, to->address + i, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return &l->hashed[h % HASHED];
}

static struct leaf *find(struct leaves *l, const struct shape_to *to)
{
	for (uint16_t at = *head_of(l, to); at; at = l->all[at - 1].next)
		if (memcmp(&l->all[at - 1].to, to, sizeof(*to)) == 0)
			return &l->all[at - 1];
	return NULL;
}

static uint32_t number(const struct leaves *l, const struct leaf *f)
{
	return (uint32_t)(f - l->all);
}

static struct leaf *add(struct leaves *l, const struct shape_to *to)
{
	uint16_t *head = head_of(l, to);
	struct leaf *f = NULL;

	if (l->free) {
		f = &l->all[l->free - 1];
		l->free = f->next;
	} else if (l->used < LEAVES) {
		f = &l->all[l->used++];
	}
	if (f) {
		*f = (struct leaf){.to = *to, .next = *head};
		*head = (uint16_t)(number(l, f) + 1);
	}
	return f;
}

static void unhash(struct leaves *l, const struct leaf *f)
{
	uint16_t *at = head_of(l, &f->to);

	while (*at && *at != number(l, f) + 1)
		at = &l->all[*at - 1].next;
	if (*at)
		*at = f->next;
}

static void give_back(struct leaves *l, struct leaf *f)
{
	*f = (struct leaf){.state = LEAF_FREE, .next = l->free};
	l->free = (uint16_t)(number(l, f) + 1);
}

/* ---- life */

static void die(struct leaves *l, struct leaf *f)
{
	l->stats.live -= f->state == LEAF_LIVES;
	f->state = LEAF_DEAD;
}

static int set_class(struct leaves *l, const struct leaves_on *on, struct leaf *f, double rate,
	weir_time now, struct weir_err *err)
{
	bool resize = !(fmax(rate, f->queue) <= 2 * fmin(rate, f->queue));
	int r = 0;

	for (size_t i = 0; r == 0 && i < on->n_devices; i++)
		r = device_leaf(&on->devices[i], on->tc, on->tree, f->to.node,
			(uint16_t)(SHAPE_LEAF + number(l, f)), rate, resize, err);
	if (r) {
		l->stats.failed++;
		return r;
	}
	f->rate = rate;
	f->quantum = on->devices[0].quanta[f->to.node];
	f->queue = resize ? rate : f->queue;
	f->set = now;
	l->stats.set++;
	return 0;
}

static bool is_due(const struct leaf *f, const struct leaves_on *on, double rate, weir_time now)
{
	double by = fabs(rate - f->rate), gap = LEAVES_PACKETS * PARLEY_MTU * 1e9 / f->rate;
	weir_time since = now - f->set;

	if (f->quantum != on->devices[0].quanta[f->to.node] && since >= LEAVES_OLD)
		return true;
	if (by > LEAVES_BAND * f->rate)
		return (double)since >= fmin(gap, (double)LEAVES_OLD);
	return by > 0 && since >= LEAVES_OLD;
}

/* Tell the classifier how long a leaf lives. */
static int lengthen(struct leaves *l, const struct leaves_on *on, struct leaf *f, weir_time now,
	struct weir_err *err)
{
	struct shape_leaf entry = {.until = (uint64_t)(now + PARLEY_LEAF + LEAVES_AHEAD),
		.minor = (uint32_t)SHAPE_LEAF + number(l, f)};
	int r;

	if (f->state == LEAF_LIVES && now - f->known < LEAVES_AHEAD)
		return 0;
	r = program_leaf(on->program, &f->to, &entry);
	f->known = now;
	return r ? weir_err_set(err, r, "the classifier: %s", strerror(-r)) : 0;
}

int leaves_tell(struct leaves *l, const struct leaves_on *on, const struct shape_to *to,
	double rate, weir_time now, struct weir_err *err)
{
	struct leaf *f = find(l, to);
	int r = 0;

	l->stats.told++;
	rate = fmax(rate, LEAVES_LEAST);
	if (!f && !(f = add(l, to))) {
		l->stats.full++;
		return weir_err_set(err, -ENOSPC, "more than %d destinations are limited", LEAVES);
	}
	if (f->state != LEAF_LIVES || is_due(f, on, rate, now))
		r = set_class(l, on, f, rate, now, err);
	if (r == 0)
		r = lengthen(l, on, f, now, err);
	if (r) {
		die(l, f);
		return r;
	}
	l->stats.live += f->state != LEAF_LIVES;
	f->state = LEAF_LIVES;
	f->heard = now;
	return 0;
}

/* Take a leaf's name, so that nothing finds it. Its number stays in use until its class is gone. */
static void forget(struct leaves *l, const struct leaves_on *on, struct leaf *f)
{
	program_leaf_gone(on->program, &f->to);
	unhash(l, f);
	die(l, f);
	f->to = (struct shape_to){.node = UINT32_MAX - number(l, f)};
}

static bool is_made(const struct leaves_on *on, uint32_t minor)
{
	for (size_t i = 0; i < on->n_devices; i++)
		if (on->devices[i].classes[minor].made)
			return true;
	return false;
}

void leaves_adopt(struct leaves *l, const struct leaves_on *on)
{
	for (uint32_t i = 0; i < l->used; i++)
		if (l->all[i].state != LEAF_FREE)
			forget(l, on, &l->all[i]);
	for (uint32_t i = l->used; i < LEAVES; i++) {
		if (!is_made(on, SHAPE_LEAF + i))
			continue;
		while (l->used < i)
			give_back(l, &l->all[l->used++]);
		l->all[l->used++] =
			(struct leaf){.to = {.node = UINT32_MAX - i}, .state = LEAF_DEAD};
	}
}

void leaves_look_again(struct leaves *l)
{
	for (uint32_t i = 0; i < l->used; i++) {
		struct leaf *f = &l->all[i];

		f->sent = f->dropped = f->queued = 0;
	}
}

const struct leaf *leaves_look(struct leaves *l, const struct tc_class_state *c)
{
	uint32_t at = (c->id & 0xffff) - SHAPE_LEAF;
	struct leaf *f = &l->all[at];

	if (at >= l->used || f->state == LEAF_FREE)
		return NULL;
	f->sent += c->bytes;
	f->dropped += c->dropped;
	f->queued += c->queued;
	return f;
}

static int bury(struct leaves *l, const struct leaves_on *on, struct leaf *f)
{
	int r = 0;

	for (size_t i = 0; i < on->n_devices; i++) {
		int e = device_leaf_gone(
			&on->devices[i], on->tc, (uint16_t)(SHAPE_LEAF + number(l, f)));

		r = r ? r : e;
	}
	return r;
}

void leaves_sweep(struct leaves *l, const struct leaves_on *on, weir_time now,
	void (*gone)(void *arg, const struct leaf *leaf), void *arg)
{
	for (uint32_t i = 0; i < l->used; i++) {
		struct leaf *f = &l->all[i];

		if (f->state == LEAF_LIVES && now - f->heard >= PARLEY_LEAF + LEAVES_AHEAD) {
			die(l, f);
			set_class(l, on, f, FREE, now, NULL); /* its queue empties at once */
		}
		if (f->state == LEAF_DEAD && !f->queued &&
			now - f->heard >= PARLEY_LEAF + LEAVES_AHEAD + DEAD) {
			program_leaf_gone(on->program, &f->to);
			if (bury(l, on, f) == 0) {
				gone(arg, f);
				unhash(l, f);
				give_back(l, f);
			}
		}
	}
}
