/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-shift: tokens from overloaded to underloaded servers; the law is at the top of pshift.c. */
#include "alg/pshift-impl.h"
#include <errno.h>
#include <string.h>

#define FAR    UINT32_MAX /* the level of a server that has none yet */
#define PHASES 24         /* then the general method: each phase may be worth a token only */
#define LEVELS 6          /* the same: each level is a pass over all buckets */
/* Times what is wanted: those to whom it is given first need not be those who can pass on most. */
#define SPREAD  2
#define REFRESH 32 /* buckets, or half the servers: then masks cost less than what they save */
#define AHEAD   8  /* of a list: what is fetched while others are worked on */

struct shift {
	struct pshift_flow *f;
	uint32_t *level; /* of each server: transfers to the nearest underloaded one, or FAR */
	int64_t *room; /* of each server with a level: tokens that it could pass on, or take at 0 */
	int64_t *may;  /* of each server in a stage: > 0 may give that many, < 0 may take */
	int64_t *was;  /* the same, before it */
	/* Buckets that have spare demand at an underloaded server: only these have, and ever will. */
	uint32_t *list;
	size_t listed;
	int64_t wanted; /* tokens: the spare demand of those, as far as the servers have room */
};

void pshift_masks(struct pshift_flow *f, size_t i)
{
	uint64_t has = 0, can = 0;

	for (size_t e = f->first[i]; e < f->first[i + 1]; e++) {
		has |= (uint64_t)(f->tokens[e] > 0) << (f->server[e] & 63);
		can |= (uint64_t)(f->demand[e] > f->tokens[e]) << (f->server[e] & 63);
	}
	f->has[i] = has;
	f->can[i] = can;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The next but AHEAD of a list will be read soon, and is not where the last was. */
static void fetch(const struct pshift_flow *f, const uint32_t *list, size_t x, size_t n)
{
	uint32_t i = list[x + AHEAD < n ? x + AHEAD : x];
	uint32_t e = f->first[i], last = f->first[i + 1] - (f->first[i + 1] > e);

	__builtin_prefetch(f->server + e);
	__builtin_prefetch(f->demand + e);
	__builtin_prefetch(f->demand + last);
	__builtin_prefetch(f->tokens + e);
	__builtin_prefetch(f->tokens + last);
}

/* ---- a stage: from those who may give to those who may take, within buckets */

struct stage {
	uint64_t givers, takers; /* masks */
	int64_t left;            /* tokens that can be moved at all, or are enough */
	size_t stale;            /* buckets since the masks were made: some servers may be done */
	int64_t moved;
};

static void stage_masks(const struct shift *s, struct stage *st)
{
	st->givers = st->takers = 0;
	st->stale = 0;
	for (size_t j = 0; j < s->f->servers; j++) {
		st->givers |= (uint64_t)(s->may[j] > 0) << (j & 63);
		st->takers |= (uint64_t)(s->may[j] < 0) << (j & 63);
	}
}

static int64_t least0(int64_t a, int64_t b) /* at least 0 */
{
	int64_t n = least(a, b);

	return n > 0 ? n : 0;
}

/* What entries of one bucket may give and take, BLOCK at a time: then no sum of them overflows, which
 * is 2⁶ × 2⁵³ at most. */
#define BLOCK 64
struct block {
	int64_t give[BLOCK], take[BLOCK];
	int64_t gives, takes; /* all of them */
};

static inline void look(const struct shift *s, uint32_t e, uint32_t n, struct block *b)
{
	const uint32_t *restrict server = s->f->server + e;
	const int64_t *restrict demand = s->f->demand + e, *restrict tokens = s->f->tokens + e;
	const int64_t *restrict may = s->may;

	b->gives = b->takes = 0;
	for (uint32_t k = 0; k < n; k++) {
		int64_t m = may[server[k]], t = tokens[k];

		b->gives += b->give[k] = least0(m, t);
		b->takes += b->take[k] = least0(-m, demand[k] - t);
	}
}

/* The first that may give do, *give in all, and the first that may take. */
static inline void move(struct shift *s, size_t i, uint32_t e, uint32_t n, const struct block *b,
	int64_t *give, int64_t *take)
{
	const uint32_t *restrict server = s->f->server + e;
	const int64_t *restrict demand = s->f->demand + e;
	int64_t *restrict tokens = s->f->tokens + e, *restrict may = s->may;
	int64_t left = *give, room = *take;
	uint64_t has = 0, can = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t j = server[k];
		int64_t x = least(b->give[k], left), y = least(b->take[k], room), t;

		left -= x;
		room -= y;
		may[j] += y - x;
		tokens[k] = t = tokens[k] + y - x;
		has |= (uint64_t)(t > 0) << (j & 63);
		can |= (uint64_t)(demand[k] > t) << (j & 63);
	}
	*give = left;
	*take = room;
	s->f->has[i] |= has;
	s->f->can[i] |= can;
}

/* A bucket of more than BLOCK entries: first all are looked at, then all again. */
static bool stage_long(struct shift *s, size_t i, struct stage *st)
{
	uint32_t first = s->f->first[i], end = s->f->first[i + 1];
	int64_t gives = 0, takes = 0, n, give, take;
	struct block b;

	for (uint32_t e = first; e < end; e += BLOCK) {
		look(s, e, end - e < BLOCK ? end - e : BLOCK, &b);
		gives += b.gives;
		takes = least(takes + b.takes, PSHIFT_SUM);
	}
	n = give = take = least(gives, takes);
	st->moved += n;
	s->f->has[i] = s->f->can[i] = 0;
	for (uint32_t e = first; e < end; e += BLOCK) {
		uint32_t some = end - e < BLOCK ? end - e : BLOCK;

		look(s, e, some, &b);
		move(s, i, e, some, &b, &give, &take);
	}
	return takes > n;
}

/* Moves what it can inside bucket i. Can somebody take more of it? */
static inline bool stage_bucket(struct shift *s, size_t i, struct stage *st)
{
	uint32_t first = s->f->first[i], entries = s->f->first[i + 1] - first;
	int64_t n, give, take;
	struct block b;

	st->stale++;
	if (entries > BLOCK)
		return stage_long(s, i, st);
	look(s, first, entries, &b);
	n = give = take = least(b.gives, b.takes);
	st->moved += n;
	if (n > 0) {
		s->f->has[i] = s->f->can[i] = 0;
		move(s, i, first, entries, &b, &give, &take);
	}
	return b.takes > n;
}

/* `may` is set. It ends when `enough` was moved. */
static struct stage stage_begin(struct shift *s, int64_t enough)
{
	struct stage st = {.moved = 0};
	int64_t give = 0, take = 0;

	stage_masks(s, &st);
	for (size_t j = 0; j < s->f->servers; j++) {
		s->was[j] = s->may[j];
		give += s->may[j] > 0 ? s->may[j] : 0;
		take = least(take - (s->may[j] < 0 ? s->may[j] : 0), PSHIFT_SUM);
	}
	st.left = least(least(give, take), enough);
	return st;
}

static inline bool stage_look(struct shift *s, size_t i, struct stage *st)
{
	bool more = s->f->can[i] & st->takers;

	if (more && (s->f->has[i] & st->givers))
		more = stage_bucket(s, i, st);
	if (st->stale > REFRESH && st->stale > s->f->servers / 2)
		stage_masks(s, st);
	return more;
}

static int64_t stage_end(struct shift *s, const struct stage *st)
{
	for (size_t j = 0; j < s->f->servers; j++)
		s->f->gap[j] += s->may[j] - s->was[j];
	return st->moved;
}

/* Over all buckets; `listing`: those are listed of which somebody can take more. Returns what was
 * moved. */
static int64_t stage_all(struct shift *s, bool listing, int64_t enough)
{
	struct stage st = stage_begin(s, enough);

	s->f->passes++;
	for (size_t i = 0; i < s->f->buckets && st.moved < st.left; i++) {
		bool more = stage_look(s, i, &st);

		if (listing) {
			s->list[s->listed] = (uint32_t)i;
			s->listed += more;
		}
	}
	return stage_end(s, &st);
}

/* Over the list, in which those stay of which somebody can take more. */
static int64_t stage_list(struct shift *s)
{
	struct stage st = stage_begin(s, PSHIFT_SUM);
	size_t kept = 0, x = 0;

	for (; x < s->listed && st.moved < st.left; x++) {
		fetch(s->f, s->list, x, s->listed);
		s->list[kept] = s->list[x];
		kept += stage_look(s, s->list[x], &st);
	}
	for (; x < s->listed; x++)
		s->list[kept++] = s->list[x];
	s->listed = kept;
	return stage_end(s, &st);
}

/* From level `from`, or where that is FAR from overloaded servers without a level, to level `to`. */
static int64_t stage_down(struct shift *s, uint32_t from, uint32_t to)
{
	struct pshift_flow *f = s->f;

	for (size_t j = 0; j < f->servers; j++) {
		int64_t over = f->gap[j] > 0 ? f->gap[j] : 0;

		s->may[j] = 0;
		if (s->level[j] == from)
			s->may[j] = over;
		else if (s->level[j] == to && to == 0)
			s->may[j] = f->gap[j];
		else if (s->level[j] == to && s->room[j] > over)
			s->may[j] = over - s->room[j];
	}
	if (to == 0 && from != FAR)
		return stage_list(s);
	return stage_all(s, to == 0, to == 0 ? PSHIFT_SUM : SPREAD * s->wanted);
}

/* ---- levels */

struct label {
	uint32_t level;
	int64_t spare;        /* demand at the level, of all buckets */
	uint64_t below, free; /* masks: servers at the level; without one */
	bool found;
};

/* Who has tokens of bucket i can pass them on to the level where that has spare demand and room. Is
 * there any spare demand? What several can pass on counts for each of them: what one of them cannot
 * get rid of then is no worse where it is than where it was. */
static bool label_bucket(struct shift *s, size_t i, struct label *l)
{
	const uint32_t *restrict server = s->f->server;
	const int64_t *restrict demand = s->f->demand, *restrict tokens = s->f->tokens;
	uint32_t *restrict levels = s->level, level = l->level;
	int64_t *restrict room = s->room;
	uint32_t first = s->f->first[i], end = s->f->first[i + 1];
	int64_t spare = 0;

	for (uint32_t e = first; e < end; e++) {
		uint32_t j = server[e];
		int64_t n = least(demand[e] - tokens[e], room[j]);

		spare = least(spare + (levels[j] == level ? n : 0), PSHIFT_SUM);
	}
	if (spare == 0)
		return false;
	l->spare = least(l->spare + spare, PSHIFT_SUM);
	for (uint32_t e = first; e < end; e++) {
		uint32_t j = server[e];
		int64_t n = least(spare, tokens[e]);

		if (levels[j] <= level || n == 0)
			continue;
		l->found |= levels[j] == FAR;
		levels[j] = level + 1;
		room[j] = least(room[j] + n, PSHIFT_SUM);
	}
	return true;
}

static struct label label_begin(struct shift *s, uint32_t level)
{
	struct label l = {.level = level};

	for (size_t j = 0; j < s->f->servers; j++) {
		l.below |= (uint64_t)(s->level[j] == level) << (j & 63);
		l.free |= (uint64_t)(s->level[j] == FAR) << (j & 63);
	}
	return l;
}

/* Level 1: those who can give to an underloaded server. */
static bool label_first(struct shift *s)
{
	struct pshift_flow *f = s->f;
	struct label l;
	size_t kept = 0;

	for (size_t j = 0; j < f->servers; j++) {
		s->level[j] = f->gap[j] < 0 ? 0 : FAR;
		s->room[j] = f->gap[j] < 0 ? -f->gap[j] : 0;
	}
	l = label_begin(s, 0);
	for (size_t x = 0; x < s->listed; x++) {
		fetch(f, s->list, x, s->listed);
		s->list[kept] = s->list[x];
		kept += (f->can[s->list[x]] & l.below) && label_bucket(s, s->list[x], &l);
	}
	s->listed = kept;
	s->wanted = l.spare;
	return l.found;
}

static bool label_next(struct shift *s, uint32_t level)
{
	struct pshift_flow *f = s->f;
	struct label l = label_begin(s, level);

	f->passes++;
	for (size_t i = 0; i < f->buckets; i++) {
		if ((f->can[i] & l.below) && (f->has[i] & l.free))
			label_bucket(s, i, &l);
	}
	return l.found;
}

/* ---- phases */

/* Is there an overloaded server at this level? */
static bool waiting(const struct shift *s, uint32_t level)
{
	for (size_t j = 0; j < s->f->servers; j++) {
		if (s->level[j] == level && s->f->gap[j] > 0)
			return true;
	}
	return false;
}

/* Tokens from servers that have no level yet to this one, and all that is above it down to
 * underloaded servers. Had any to go? */
static bool cascade(struct shift *s, uint32_t level)
{
	bool some = waiting(s, level);

	if (waiting(s, FAR))
		some |= stage_down(s, FAR, level) > 0;
	for (uint32_t l = level; some && l > 0; l--)
		stage_down(s, l, l - 1);
	return some;
}

/* 1: tokens have reached underloaded servers; 0: none can; -EAGAIN: it is too far. */
static int phase(struct shift *s)
{
	bool found = label_first(s);

	if (found && cascade(s, 1))
		return 1;
	for (uint32_t level = 1; found; level++) {
		if (level == LEVELS)
			return -EAGAIN;
		found = waiting(s, FAR) && label_next(s, level);
		if (found && cascade(s, level + 1))
			return 1;
	}
	return 0;
}

static int shift_begin(struct pshift *p, struct pshift_flow *f, struct shift *s)
{
	*s = (struct shift){.f = f};
	s->level = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(*s->level));
	s->room = pshift_array(p, PSHIFT_ROOM, f->servers, sizeof(*s->room));
	s->may = pshift_array(p, PSHIFT_MAY, f->servers, sizeof(*s->may));
	s->list = pshift_array(p, PSHIFT_LIST, f->buckets + 1, sizeof(*s->list));
	s->was = pshift_array(p, PSHIFT_WAS, f->servers, sizeof(*s->was));
	if (!s->level || !s->room || !s->may || !s->was || !s->list)
		return -ENOMEM;
	return 0;
}

int pshift_shift(struct pshift *p, struct pshift_flow *f)
{
	struct shift s;
	int r = shift_begin(p, f, &s);

	if (r)
		return r;
	/* Paths of length 1: after one pass there are none, for no server is overloaded or underloaded
	 * that was not before. */
	for (size_t j = 0; j < f->servers; j++)
		s.level[j] = f->gap[j] < 0 ? 0 : FAR;
	stage_down(&s, FAR, 0);
	for (int i = 0, more = 1; more == 1; i++) {
		if (!waiting(&s, FAR) && i == 0)
			return 0;
		more = i < PHASES ? phase(&s) : -EAGAIN;
		if (more == 0)
			return 0;
	}
	f->general = true;
	return pshift_general(p, f);
}
