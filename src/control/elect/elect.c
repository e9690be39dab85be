/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/elect/elect.h"
#include <errno.h>

#define MARGIN 5  /* part of a lease's time that is not trusted */
#define RENEWS 4  /* in a lease's time */
#define RETRY  10 /* part of a lease's time before a request that failed is made again */

static uint64_t generation_of(const struct elect *e)
{
	return e->created + e->offset;
}

static enum elect_act choose(const struct elect *e, weir_time now, uint64_t highest)
{
	if (!e->lease)
		return ELECT_GRANT;
	if (now >= e->renew)
		return ELECT_KEEP;
	if (!e->looked)
		return ELECT_READ;
	if (!e->created)
		return e->other ? ELECT_WAIT : ELECT_CAMPAIGN;
	return generation_of(e) > highest ? ELECT_WAIT : ELECT_RAISE;
}

enum elect_act elect_next(struct elect *e, weir_time now, uint64_t highest, weir_time *ret_at)
{
	*ret_at = WEIR_NEVER;
	if (e->doing != ELECT_WAIT)
		return ELECT_WAIT;
	*ret_at = e->retry;
	if (now < e->retry)
		return ELECT_WAIT;
	*ret_at = e->renew;
	e->doing = choose(e, now, highest);
	e->sent = now;
	if (e->doing == ELECT_RAISE)
		e->raise = highest + 1 - e->created;
	return e->doing;
}

/* The lease counts from the moment at which the request was sent. */
static void renewed(struct elect *e, weir_time ttl)
{
	e->trusted = e->sent + ttl - ttl / MARGIN;
	e->renew = e->sent + ttl / RENEWS;
	e->looked = false;
}

static void lose(struct elect *e)
{
	e->lease = e->created = 0;
	e->trusted = 0;
	e->looked = false;
}

static void take_keys(struct elect *e, const struct elect_answer *a)
{
	bool ours = a->lease && a->lease == e->lease;

	e->created = ours ? a->created : 0;
	e->other = a->lease && !ours;
	e->offset = a->offset;
	e->offset_changed = a->offset_changed;
	e->looked = true;
}

static void take(struct elect *e, const struct elect_answer *a)
{
	switch (e->doing) {
	case ELECT_GRANT:
		e->lease = a->lease;
		renewed(e, a->ttl);
		break;
	case ELECT_KEEP:
		renewed(e, a->ttl);
		break;
	case ELECT_READ:
		take_keys(e, a);
		break;
	case ELECT_CAMPAIGN:
		e->created = a->held ? a->revision : 0;
		e->looked = a->held;
		break;
	case ELECT_RAISE:
		e->looked = a->held;
		if (a->held) {
			e->offset = e->raise;
			e->offset_changed = a->revision;
		}
		break;
	default:
		break;
	}
}

void elect_end(struct elect *e, weir_time now, int rc, const struct elect_answer *a)
{
	if (rc == 0) {
		take(e, a);
	} else {
		e->retry = now + e->ttl / RETRY;
		e->looked = false;
		if (rc == -ENOENT)
			lose(e);
	}
	e->doing = ELECT_WAIT;
}

uint64_t elect_generation(const struct elect *e, weir_time now, uint64_t highest)
{
	return elect_trusts(e, now) && generation_of(e) > highest ? generation_of(e) : 0;
}
