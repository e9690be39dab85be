/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-shift: move tokens from overloaded to underloaded servers; the law is at the top of
 * alloc.c. */
#include "control/pshift/alloc-two.h"
#include <errno.h>
#include <string.h>

#define FAR UINT32_MAX /* the level of a server without one */
/* Phases continue while each leaves at most 1/LESS of the list, or the list is at most 1/FEW of all
 * buckets; they stop if tokens have to go further than LEVELS, since each level is a pass over all
 * buckets. */
#define PHASES 8
#define LEVELS 3
#define LESS   4
#define FEW    100
#define LEFT   8 /* a part of the servers */
#define NARROW 5 /* entries of a row, on the mean */
/* Times the wanted tokens: the servers that get them first may not be those that can pass on
 * most. */
#define SPREAD 2

struct shift {
	struct pshift_flow *f;
	const struct pshift_eight *eight; /* or NULL */
	uint32_t *level; /* by server: transfers to the nearest underloaded one, or FAR */
	int64_t *room;   /* by server with a level: tokens that it could pass on, or take at 0 */
	/* By server; in a stage: > 0 may give that many, < 0 may take, and the same before it. For
	 * a level: tokens that servers at the level below could take, and that others could pass
	 * on. */
	int64_t *may, *was;
	/* Buckets that have spare demand at an underloaded server: no other bucket ever will. */
	uint32_t *list;
	size_t listed;
	int64_t wanted; /* tokens: the spare demand of those, as far as the servers have room */
};

/* Return true if the numbers are small enough for rows of eight. */
static bool fits(const int64_t *v, size_t n)
{
	bool all = true;

	for (size_t j = 0; j < n; j++)
		all &= v[j] <= PSHIFT_EIGHT_MAY && v[j] >= -PSHIFT_EIGHT_MAY;
	return all;
}

/* ---- a stage: from entries that may give to entries that may take, within buckets */

/* Tokens that entries of one bucket may give and take, BLOCK at a time: then no sum overflows; it
 * is 2⁶ × 2⁵³ at most. */
#define BLOCK 64
struct block {
	int64_t give[BLOCK], take[BLOCK];
	int64_t gives, takes; /* all of them */
};

static inline void look_at_entry(
	const struct pshift_stage *st, uint32_t e, uint32_t n, struct block *b)
{
	const uint32_t *restrict server = st->f->server + e;
	const int64_t *restrict demand = st->f->demand + e, *restrict tokens = st->f->tokens + e;
	const int64_t *restrict may = st->may;

	b->gives = b->takes = 0;
	for (uint32_t k = 0; k < n; k++) {
		int64_t m = may[server[k]], t = tokens[k];

		b->gives += b->give[k] = pshift_least0(m, t);
		b->takes += b->take[k] = pshift_least0(-m, demand[k] - t);
	}
}

/* Move *give in all, from the first that may give to the first that may take. */
static inline void move(struct pshift_stage *st, uint32_t e, uint32_t n, const struct block *b,
	int64_t *give, int64_t *take)
{
	const uint32_t *restrict server = st->f->server + e;
	int64_t *restrict tokens = st->f->tokens + e, *restrict may = st->may;
	int64_t left = *give, room = *take;

	for (uint32_t k = 0; k < n; k++) {
		int64_t x = pshift_least(b->give[k], left), y = pshift_least(b->take[k], room);

		left -= x;
		room -= y;
		may[server[k]] += y - x;
		tokens[k] += y - x;
	}
	*give = left;
	*take = room;
}

/* A bucket of more than BLOCK entries: one pass to sum, one to move. */
static bool stage_long(struct pshift_stage *st, size_t i)
{
	uint32_t first = st->f->first[i], end = st->f->first[i + 1];
	int64_t gives = 0, takes = 0, n, give, take;
	struct block b;

	for (uint32_t e = first; e < end; e += BLOCK) {
		look_at_entry(st, e, end - e < BLOCK ? end - e : BLOCK, &b);
		gives += b.gives;
		takes = pshift_least(takes + b.takes, PSHIFT_SUM);
	}
	n = give = take = pshift_least(gives, takes);
	st->moved += n;
	for (uint32_t e = first; e < end; e += BLOCK) {
		uint32_t some = end - e < BLOCK ? end - e : BLOCK;

		look_at_entry(st, e, some, &b);
		move(st, e, some, &b, &give, &take);
	}
	return takes > n;
}

/* Move tokens inside bucket i. Return true if more of it could be taken. */
static bool stage_bucket(struct pshift_stage *st, size_t i)
{
	uint32_t first = st->f->first[i], entries = st->f->first[i + 1] - first;
	int64_t n, give, take;
	struct block b;

	if (entries == 2)
		return pshift_two_stage(st, first);
	if (entries > BLOCK)
		return stage_long(st, i);
	look_at_entry(st, first, entries, &b);
	n = give = take = pshift_least(b.gives, b.takes);
	st->moved += n;
	if (n > 0)
		move(st, first, entries, &b, &give, &take);
	return b.takes > n;
}

/* Begin a stage; `may` is set. It ends when `enough` was moved. */
static struct pshift_stage stage_begin(struct shift *s, int64_t enough)
{
	struct pshift_stage st = {.f = s->f, .may = s->may};
	int64_t give = 0, take = 0;

	for (size_t j = 0; j < s->f->servers; j++) {
		s->was[j] = s->may[j];
		give += s->may[j] > 0 ? s->may[j] : 0;
		take = pshift_least(take - (s->may[j] < 0 ? s->may[j] : 0), PSHIFT_SUM);
	}
	st.left = pshift_least(pshift_least(give, take), enough);
	return st;
}

/* Run over `rows` buckets, all or those of a list. Return the row at which it had moved enough. */
static size_t stage_run(struct shift *s, struct pshift_stage *st, size_t rows)
{
	const struct pshift_eight *eight = fits(s->may, s->f->servers) ? s->eight : NULL;
	size_t x = 0;

	for (; x < rows && st->moved < st->left; x++) {
		uint32_t i;
		bool more;

		if (eight)
			x = eight->stage(st, x, rows);
		if (x == rows || st->moved >= st->left)
			break;
		if (st->rows)
			pshift_fetch(st->f, st->rows, x, rows);
		i = st->rows ? st->rows[x] : (uint32_t)x;
		more = stage_bucket(st, i);
		if (st->list) {
			st->list[st->listed] = i;
			st->listed += more;
		}
	}
	for (size_t j = 0; j < s->f->servers; j++)
		s->f->gap[j] += s->may[j] - s->was[j];
	return x;
}

/* Run over all buckets; `listing`: list those of which more could be taken. Return the tokens
 * moved. */
static int64_t stage_all(struct shift *s, bool listing, int64_t enough)
{
	struct pshift_stage st = stage_begin(s, enough);

	s->f->passes++;
	if (listing)
		st.list = s->list;
	stage_run(s, &st, s->f->buckets);
	if (listing)
		s->listed = st.listed;
	return st.moved;
}

/* Run over the list, and keep the buckets of which more could be taken. */
static int64_t stage_list(struct shift *s)
{
	struct pshift_stage st = stage_begin(s, PSHIFT_SUM);
	size_t done;

	st.rows = st.list = s->list;
	done = stage_run(s, &st, s->listed);
	memmove(s->list + st.listed, s->list + done, (s->listed - done) * sizeof(*s->list));
	s->listed -= done - st.listed;
	return st.moved;
}

/* Move tokens from level `from`, or, if that is FAR, from overloaded servers without a level, to
 * level `to`. */
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

/* Servers with tokens of bucket i can pass them on to the level if the bucket has spare demand and
 * room there. Return true if there is any spare demand. Demand that several could fill counts for
 * each of them: tokens that one then cannot pass on are no worse there than before. */
static bool label_bucket(struct pshift_label *l, size_t i)
{
	const uint32_t *restrict server = l->f->server;
	const int64_t *restrict demand = l->f->demand, *restrict tokens = l->f->tokens;
	const int64_t *restrict room = l->room;
	int64_t *restrict pass = l->pass;
	uint32_t first = l->f->first[i], end = l->f->first[i + 1];
	int64_t spare = end - first == 2 ? pshift_two_label(l, first) : 0;

	if (end - first == 2) {
		l->spare = pshift_least(l->spare + spare, PSHIFT_SUM);
		return spare > 0;
	}
	for (uint32_t e = first; e < end; e++)
		spare = pshift_least(
			spare + pshift_least(demand[e] - tokens[e], room[server[e]]), PSHIFT_SUM);
	if (spare == 0)
		return false;
	l->spare = pshift_least(l->spare + spare, PSHIFT_SUM);
	for (uint32_t e = first; e < end; e++)
		pass[server[e]] =
			pshift_least(pass[server[e]] + pshift_least(spare, tokens[e]), PSHIFT_SUM);
	return true;
}

/* Label servers above `level`, by the buckets of the list, of which those with spare demand there
 * stay; or by all. Return true if any server got a level. */
static bool label(struct shift *s, uint32_t level, bool listed)
{
	struct pshift_label l = {.f = s->f, .room = s->may, .pass = s->was};
	size_t rows = listed ? s->listed : s->f->buckets;
	const struct pshift_eight *eight;
	bool found = false;

	l.rows = l.list = listed ? s->list : NULL;
	for (size_t j = 0; j < s->f->servers; j++) {
		s->may[j] = s->level[j] == level ? s->room[j] : 0;
		s->was[j] = 0;
	}
	eight = fits(s->may, s->f->servers) ? s->eight : NULL;
	for (size_t x = 0; x < rows; x++) {
		uint32_t i;
		bool some;

		if (eight)
			x = eight->label(&l, x, rows);
		if (x == rows)
			break;
		if (listed)
			pshift_fetch(l.f, l.rows, x, rows);
		i = listed ? s->list[x] : (uint32_t)x;
		some = label_bucket(&l, i);
		if (listed) {
			s->list[l.listed] = i;
			l.listed += some;
		}
	}
	for (size_t j = 0; j < s->f->servers; j++) {
		if (s->level[j] != FAR || s->was[j] == 0)
			continue;
		found = true;
		s->level[j] = level + 1;
		s->room[j] = pshift_least(s->was[j], PSHIFT_SUM);
	}
	if (listed)
		s->listed = l.listed;
	if (level == 0)
		s->wanted = pshift_least(l.spare, PSHIFT_SUM);
	return found;
}

/* Label level 1: servers that can give to an underloaded one. */
static bool label_first(struct shift *s)
{
	for (size_t j = 0; j < s->f->servers; j++) {
		s->level[j] = s->f->gap[j] < 0 ? 0 : FAR;
		s->room[j] = s->f->gap[j] < 0 ? -s->f->gap[j] : 0;
	}
	return label(s, 0, true);
}

static bool label_next(struct shift *s, uint32_t level)
{
	s->f->passes++;
	return label(s, level, false);
}

/* ---- phases */

/* Return true if an overloaded server is at this level. */
static bool waiting(const struct shift *s, uint32_t level)
{
	for (size_t j = 0; j < s->f->servers; j++) {
		if (s->level[j] == level && s->f->gap[j] > 0)
			return true;
	}
	return false;
}

/* Move tokens from servers without a level to this one, and on down to underloaded servers. Return
 * true if any moved. */
static bool cascade(struct shift *s, uint32_t level)
{
	bool some = waiting(s, level);

	if (waiting(s, FAR))
		some |= stage_down(s, FAR, level) > 0;
	for (uint32_t l = level; some && l > 0; l--)
		stage_down(s, l, l - 1);
	return some;
}

/* Run a phase; servers at level 1 are known. 1: tokens have reached underloaded servers; 0: none
 * can; -EAGAIN: too far. */
static int phase(struct shift *s)
{
	bool found = true;

	if (cascade(s, 1))
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
	*s = (struct shift){.f = f, .eight = p->eight};
	s->level = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(*s->level));
	s->room = pshift_array(p, PSHIFT_ROOM, f->servers, sizeof(*s->room));
	s->may = pshift_array(p, PSHIFT_MAY, f->servers, sizeof(*s->may));
	s->list = pshift_array(p, PSHIFT_LIST, f->buckets + 1, sizeof(*s->list));
	s->was = pshift_array(p, PSHIFT_WAS, f->servers, sizeof(*s->was));
	if (!s->level || !s->room || !s->may || !s->was || !s->list)
		return -ENOMEM;
	return 0;
}

/* Return true if so few servers are overloaded that paths from each cost less than a pass over all
 * buckets. Not with long rows, of which a pass reads many entries at once. */
static bool few_left(const struct pshift_flow *f)
{
	size_t n = 0;

	if (f->first[f->buckets] > NARROW * f->buckets)
		return false;

	for (size_t j = 0; j < f->servers; j++)
		n += f->gap[j] > 0;
	return n > 0 && n <= f->servers / LEFT;
}

int pshift_shift(struct pshift *p, struct pshift_flow *f)
{
	struct shift s;
	size_t last;
	bool few;
	int r = shift_begin(p, f, &s);

	if (r)
		return r;
	/* Paths of length 1: after one pass there are none, because no server becomes overloaded or
	 * underloaded. */
	for (size_t j = 0; j < f->servers; j++)
		s.level[j] = f->gap[j] < 0 ? 0 : FAR;
	stage_down(&s, FAR, 0);
	few = few_left(f);
	r = few ? pshift_paths(p, f) : -EAGAIN;
	if (r != -EAGAIN)
		return r;
	last = LESS * s.listed;
	for (int i = 0, more = few ? -EAGAIN : waiting(&s, FAR); i < PHASES && more >= 0; i++) {
		if (more == 0 || !label_first(&s))
			return 0;
		if (s.listed > last / LESS && s.listed > f->buckets / FEW)
			break;
		last = s.listed;
		more = phase(&s);
	}
	f->general = true;
	return pshift_general(p, f);
}
