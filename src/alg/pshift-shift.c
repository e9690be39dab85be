/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-shift: tokens from overloaded to underloaded servers; the law is at the top of pshift.c. */
#include "alg/pshift-impl.h"
#include <errno.h>
#include <string.h>

#define FAR    UINT32_MAX /* the level of a server that has none yet */
#define PHASES 24         /* then the general method: each phase may be worth a token only */
#define LEVELS 6          /* the same: each level is a pass over all buckets */

struct shift {
	struct pshift_flow *f;
	uint32_t *level; /* of each server: transfers to the nearest underloaded one, or FAR */
	int64_t *room; /* of each server with a level: tokens that it could pass on, or take at 0 */
	int64_t *give, *take;      /* of each server, in one stage */
	uint32_t *donors, *takers; /* entries of one bucket */
	/* Buckets that have spare demand at an underloaded server: list[0 … listed) of those before
	 * `unread`, and perhaps all from there on. One that is not among them will never be again. */
	uint32_t *list;
	size_t listed, unread;
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

static uint64_t mask_of(const int64_t *x, size_t n)
{
	uint64_t mask = 0;

	for (size_t j = 0; j < n; j++)
		mask |= (uint64_t)(x[j] > 0) << (j & 63);
	return mask;
}

/* ---- a stage: from those who give to those who take, within buckets */

struct stage {
	uint64_t givers, takers; /* masks */
	int64_t left;            /* tokens that can be moved at all */
	size_t spent;            /* servers that have given or taken all, and are still in a mask */
	int64_t moved;
};

/* Moves what it can inside bucket i. */
static void stage_bucket(struct shift *s, size_t i, struct stage *st)
{
	struct pshift_flow *f = s->f;
	size_t donors = 0, takers = 0, a = 0, b = 0;

	for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++) {
		uint32_t j = f->server[e];

		s->donors[donors] = s->takers[takers] = e;
		donors += (s->give[j] > 0) & (f->tokens[e] > 0);
		takers += (s->take[j] > 0) & (f->demand[e] > f->tokens[e]);
	}
	if (donors == 0 || takers == 0)
		return;
	while (a < donors && b < takers) {
		uint32_t from = s->donors[a], to = s->takers[b];
		uint32_t j = f->server[from], k = f->server[to];
		int64_t spare = f->demand[to] - f->tokens[to];
		int64_t n = least(least(s->give[j], f->tokens[from]), least(s->take[k], spare));

		f->tokens[from] -= n;
		f->tokens[to] += n;
		s->give[j] -= n;
		s->take[k] -= n;
		f->gap[j] -= n;
		f->gap[k] += n;
		st->moved += n;
		st->spent += (s->give[j] == 0) + (s->take[k] == 0);
		a += (s->give[j] == 0) | (f->tokens[from] == 0);
		b += (s->take[k] == 0) | (n == spare);
	}
	pshift_masks(f, i);
}

/* `give` and `take` are set; over `list`, or all buckets. Returns what was moved. */
static int64_t stage(struct shift *s, const uint32_t *list, size_t n)
{
	struct pshift_flow *f = s->f;
	struct stage st = {mask_of(s->give, f->servers), mask_of(s->take, f->servers), 0, 0, 0};
	int64_t give = 0, take = 0;

	for (size_t j = 0; j < f->servers; j++) {
		give += s->give[j];
		take = least(take + s->take[j], PSHIFT_SUM);
	}
	st.left = least(give, take);
	f->passes += !list;
	for (size_t x = 0; x < n && st.moved < st.left; x++) {
		size_t i = list ? list[x] : x;

		if (!(f->has[i] & st.givers) || !(f->can[i] & st.takers))
			continue;
		stage_bucket(s, i, &st);
		/* Masks are made again when that is worth what it costs: S each, 128 times at most. */
		if (st.spent > f->servers / 64) {
			st.givers = mask_of(s->give, f->servers);
			st.takers = mask_of(s->take, f->servers);
			st.spent = 0;
		}
	}
	return st.moved;
}

/* From level `from`, or where that is FAR from overloaded servers without a level, to level `to`. */
static int64_t stage_down(struct shift *s, uint32_t from, uint32_t to)
{
	struct pshift_flow *f = s->f;

	for (size_t j = 0; j < f->servers; j++) {
		int64_t over = f->gap[j] > 0 ? f->gap[j] : 0;
		int64_t room = to == 0 ? -f->gap[j] : s->room[j] - over;

		s->give[j] = s->level[j] == from ? over : 0;
		s->take[j] = s->level[j] == to && room > 0 ? room : 0;
	}
	return to == 0 && from != FAR ? stage(s, s->list, s->listed) : stage(s, NULL, f->buckets);
}

/* ---- levels */

struct label {
	uint32_t level;
	uint64_t below, free; /* masks: servers at the level; without one */
	int64_t *left;        /* of each server at the level: room that nobody above was promised */
	size_t open;          /* servers that have such room */
	bool found;
};

/* The tokens that bucket i has elsewhere are promised the spare demand that it has at the level, each
 * of it once; but who finds a way at all has room for one. Is there spare demand? */
static bool label_bucket(struct shift *s, size_t i, struct label *l)
{
	struct pshift_flow *f = s->f;
	uint32_t first = f->first[i], end = f->first[i + 1],
		 e = first + (uint32_t)i % (end - first);
	int64_t spare = 0, used = 0;
	bool here = false;

	for (uint32_t x = first; x < end; x++) {
		uint32_t j = f->server[x];
		int64_t n = s->level[j] == l->level ? f->demand[x] - f->tokens[x] : 0;

		here |= n > 0;
		spare = least(spare + least(n, l->left[j]), PSHIFT_SUM);
	}
	if (!here)
		return false;
	for (uint32_t x = first; x < end; x++, e++) {
		e = e == end ? first : e;
		uint32_t j = f->server[e];
		int64_t n = least(spare - used, f->tokens[e]);

		if (s->level[j] <= l->level || f->tokens[e] == 0)
			continue;
		if (s->level[j] == FAR) {
			s->level[j] = l->level + 1;
			s->room[j] = 1;
			l->found = true;
		}
		s->room[j] += n;
		used += n;
	}
	for (uint32_t x = first; x < end && used > 0; x++) {
		uint32_t j = f->server[x];
		int64_t n = least(least(f->demand[x] - f->tokens[x], l->left[j]), used);

		if (s->level[j] != l->level)
			continue;
		l->left[j] -= n;
		l->open -= n > 0 && l->left[j] == 0;
		used -= n;
	}
	return true;
}

static struct label label_begin(struct shift *s, uint32_t level)
{
	struct label l = {.level = level, .left = s->give};

	for (size_t j = 0; j < s->f->servers; j++) {
		bool here = s->level[j] == level;

		l.left[j] = here ? s->room[j] : 0;
		l.open += l.left[j] > 0;
		l.below |= (uint64_t)here << (j & 63);
		l.free |= (uint64_t)(s->level[j] == FAR) << (j & 63);
	}
	return l;
}

/* Level 1: those who can give to an underloaded server; unless `all`, only until all that underloaded
 * servers can take is promised. */
static bool label_first(struct shift *s, bool all)
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
		s->list[kept] = s->list[x];
		kept += label_bucket(s, s->list[x], &l);
	}
	f->passes += s->unread == 0;
	for (; s->unread < f->buckets && (all || l.open > 0); s->unread++) {
		if (!(f->can[s->unread] & l.below))
			continue;
		s->list[kept] = (uint32_t)s->unread;
		kept += label_bucket(s, s->unread, &l);
	}
	s->listed = kept;
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
	bool found = label_first(s, false);

	if (found && cascade(s, 1))
		return 1;
	if (s->unread < s->f->buckets) {
		found = label_first(s, true);
		if (found && cascade(s, 1))
			return 1;
	}
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
	size_t longest = 1;

	for (size_t i = 0; i < f->buckets; i++) {
		size_t n = f->first[i + 1] - f->first[i];

		longest = n > longest ? n : longest;
	}
	*s = (struct shift){.f = f};
	s->level = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(*s->level));
	s->room = pshift_array(p, PSHIFT_ROOM, f->servers, sizeof(*s->room));
	s->give = pshift_array(p, PSHIFT_GIVE, f->servers, sizeof(*s->give));
	s->take = pshift_array(p, PSHIFT_TAKE, f->servers, sizeof(*s->take));
	s->list = pshift_array(p, PSHIFT_LIST, f->buckets + 1, sizeof(*s->list));
	s->donors = pshift_array(p, PSHIFT_DONORS, longest + 1, sizeof(*s->donors));
	s->takers = pshift_array(p, PSHIFT_TAKERS, longest + 1, sizeof(*s->takers));
	if (!s->level || !s->room || !s->give || !s->take || !s->list || !s->donors || !s->takers)
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
