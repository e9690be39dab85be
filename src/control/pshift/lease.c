/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease: which period a server is in, by its own clock, and the tokens of each bucket in it.
 *
 * METHOD  pshift.h, LEASES. `end` is no later than the period's end by the controller's clock,
 *         `next` no earlier; both advance by a period's length, each with its margin, until a grant
 *         corrects them.
 */
#include "control/pshift/server-impl.h"
#include "base/lesser.h"
#include <math.h>

weir_time pshift_lease_blind(const struct pshift_server *s)
{
	return s->began + pshift_longer(s->length) * (weir_time)(s->hold + 2);
}

/* STATIC: return the most tokens at the gate. */
static int64_t burst_of(const struct pshift_server *s, const struct pshift_spot *b)
{
	double part = fmin(1.0 / 50, (double)PSHIFT_AHEAD / (double)s->length);

	return lesser(b->static_l, greater(PSHIFT_READY, (int64_t)((double)b->static_l * part)));
}

void pshift_lease_start(struct pshift_server *s, weir_time now)
{
	s->started = true;
	s->now = s->began = s->turned = s->measured = s->sent = now;
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		b->arrived0 = b->arrived;
		b->served0 = b->served_at[0] = b->served_at[1] = b->served;
		b->waited0 = b->waited;
		b->used = b->recent = 0;
		b->paced = s->state == LEASE_STATIC ? (double)burst_of(s, b) : 0;
	}
}

/* ---- periods */

static enum lease_state state_in(const struct pshift_server *s, uint64_t k)
{
	if (!s->granted)
		return s->state == LEASE_BLIND ? LEASE_BLIND : LEASE_STATIC;
	if (k <= s->granted + 1)
		return LEASE_LEASED;
	return k <= s->granted + s->hold + s->gap ? LEASE_HELD : LEASE_STATIC;
}

static void go_static(struct pshift_server *s)
{
	pshift_server_wake_all(s);
	s->state = LEASE_STATIC;
	s->full = true;
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		b->reserved = b->static_r;
		b->limit = b->cap = b->static_l;
		b->paced = (double)burst_of(s, b);
	}
}

/* Return true if the server holds no more than static parts. */
static bool is_late(const struct pshift_server *s)
{
	return s->granted && s->period > s->granted + s->hold;
}

/* Compute the server's tokens in the period that begins now without a new grant. */
static void entitle(struct pshift_server *s)
{
	enum lease_state state = state_in(s, s->period);
	bool late = is_late(s);

	/* The controller no longer knows the true holdings: it must ask again. */
	if (late && s->controller && !s->left) {
		s->left = true;
		s->accepted = 0;
		s->full = true;
	}
	if (state == LEASE_STATIC) {
		if (s->state != LEASE_STATIC)
			go_static(s);
		return;
	}
	s->state = state;
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		if (late && pshift_limited(b))
			b->limit = lesser(b->limit, b->static_l);
		b->claim = b->reserved;
		b->cap = b->limit;
	}
}

static void begin(struct pshift_server *s, uint64_t period)
{
	pshift_server_wake_all(s);
	s->period = period;
	for (size_t i = 0; i < s->n; i++) {
		s->spots[i].used = s->spots[i].recent;
		s->spots[i].over = false;
	}
	entitle(s);
}

/* Advance served_at: at least one length, at most two ago. */
static void remember(struct pshift_server *s, weir_time now)
{
	if (now - s->turned < s->length)
		return;
	s->turned = now;
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		b->served_at[1] = b->served_at[0];
		b->served_at[0] = b->served;
	}
}

void pshift_lease_turn(struct pshift_server *s, weir_time now)
{
	remember(s, now);
	if (s->state == LEASE_BLIND && now >= pshift_lease_blind(s))
		go_static(s);
	while (s->period && now >= s->next) {
		begin(s, s->period + 1);
		s->end += pshift_shorter(s->length);
		s->next += pshift_longer(s->length);
	}
}

/* ---- grants */

/* STATIC: pacing limits every span of a length to the static part, so at most that was used of the
 * present period; less if less was served since before the span. BLIND: buckets with a limit were
 * not served. Buckets that the controller does not know have their static part in the periods that
 * follow. */
static void leave_local(struct pshift_server *s)
{
	pshift_server_wake_all(s);
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		b->used = (int64_t)(b->served - b->served_at[1]);
		if (pshift_limited(b))
			b->used = lesser(b->used, b->static_l);
		b->limit = b->static_l;
		b->claim = b->reserved;
		b->over = pshift_limited(b) && b->used > b->cap;
	}
}

/* Return true if a period is over here. Without a controller this server may have counted too far,
 * by the time that messages take; if by more, the controller counts differently altogether. */
static bool is_over(const struct pshift_server *s, uint64_t period)
{
	return period < s->period && (s->state != LEASE_STATIC || period + 1 == s->period);
}

static bool acceptable(
	const struct pshift_server *s, weir_time now, const struct lease_message *m, weir_time end)
{
	const struct lease_grant *g = &m->grant;

	return s->started && g->generation == s->generation && m->instance == s->controller &&
	       !s->left && m->sequence > s->accepted && g->base <= s->accepted &&
	       !is_over(s, g->period) && g->echo >= s->began && g->echo <= s->sent && now < end;
}

/* Return true if the cap fell by more than 1/8: report at once, since another server may wait for
 * it. */
static bool gives_up(int64_t had, int64_t has)
{
	return had > has && had - has > had / 8;
}

static void told(struct pshift_server *s, const struct lease_tokens *t)
{
	size_t at = ids_find(&s->ids, t->bucket);
	struct pshift_spot *b = &s->spots[at];

	if (at == SIZE_MAX)
		return;
	pshift_server_wake(s, at);
	b->claim = t->claim;
	b->makes_up = t->moved;
	b->reserved = t->reserved;
	/* A limit needs both policies: do not hold a bucket without one here, nor release one
	 * because the controller has none. */
	if (!pshift_limited(b) || t->cap == LEASE_NO_LIMIT || t->limit == LEASE_NO_LIMIT)
		return;
	s->answer |= gives_up(b->cap - b->used, t->cap - b->used) || gives_up(b->limit, t->limit);
	b->cap = t->cap;
	b->limit = t->limit;
	b->over = b->used > b->cap;
}

/* Requests that waited before this server was granted anything again have not moved here. */
static void forget_moves(struct pshift_server *s, weir_time now)
{
	s->joined = s->period;
	for (size_t i = 0; i < s->n; i++) {
		s->spots[i].moved = s->spots[i].delayed = now - s->length;
		s->spots[i].waited_at = now;
	}
}

/* Return the later of two bounds that a period's end has from below; `next` is one from above. A bound beyond that is
 * of the time before this server's clock stood still, as that of a machine that was suspended. */
static weir_time later_end(weir_time known, weir_time told, weir_time next)
{
	weir_time end = greater(known, told);

	return end <= next ? end : lesser(told, next);
}

/* Return true if the hold of its last grant has ended, which it has not noticed: its clock stood still. The controller
 * may have told others since that they have its holdings. */
static bool slept(const struct pshift_server *s, uint64_t period)
{
	bool holds = s->state == LEASE_LEASED || s->state == LEASE_HELD;

	return holds && period > s->period + 1 && period > s->granted + s->hold;
}

bool pshift_lease_take(struct pshift_server *s, weir_time now, const struct lease_message *m)
{
	const struct lease_grant *g = &m->grant;
	weir_time end = g->echo + pshift_shorter(g->left), next = now + pshift_longer(g->togo);

	bool same = s->by == m->instance && s->by_generation == g->generation, had_less;

	if (!acceptable(s, now, m, end))
		return false;
	if (slept(s, g->period)) {
		begin(s, g->period);
		s->end = end;
		s->next = next;
		return false;
	}
	s->answer |= s->state != LEASE_LEASED || g->period > s->granted; /* a lease, renewed */
	had_less = s->state == LEASE_STATIC || s->state == LEASE_BLIND || is_late(s);
	s->hold = g->hold;
	s->gap = g->gap;
	s->length = g->length;
	s->interval = s->usual = g->interval;
	if (s->state == LEASE_STATIC || s->state == LEASE_BLIND) {
		if (s->state == LEASE_BLIND)
			s->blind = g->period + 1;
		leave_local(s);
		s->period = g->period;
		s->end = end;
		s->next = next;
	} else if (g->period > s->period) {
		s->granted = g->period; /* holdings are as the controller assumes */
		if (g->period == s->period + 1 && same)
			end = later_end(s->end + pshift_shorter(g->length), end, next);
		begin(s, g->period);
		s->end = end;
		s->next = next;
	} else if (!same) { /* another controller's periods */
		s->end = end;
		s->next = next;
	} else { /* both are bounds of one moment: keep the tighter one */
		s->end = later_end(s->end, end, next);
		s->next = lesser(s->next, next);
	}
	if (had_less)
		forget_moves(s, now);
	s->granted = g->period;
	s->by = m->instance;
	s->by_generation = g->generation;
	s->spoke = now;
	s->lost = false;
	s->acknowledge = true;
	s->state = LEASE_LEASED;
	s->accepted = m->sequence;
	for (size_t i = 0; i < m->n; i++)
		told(s, &m->tokens[i]);
	for (size_t i = 0; i < s->n; i++)
		if (s->spots[i].unheard && s->spots[i].said_in <= g->heard)
			s->spots[i].unheard = s->spots[i].new = false;
	return true;
}

/* ---- tokens */

/* The rate, in tokens a ns, at which tokens of a bucket with a limit come in: that of its cap over the period, as if it
 * were the max of a gateway of its own, and a little more, which makes up for looks that came late, and in short periods
 * for the pause between two. Caps add up to no more than the limit over all servers, at any time, and so do these rates.
 * Faster only where the claim would otherwise be missed, if the controller says so, or if demand has moved here, or had
 * to wait for its turn with tokens at the gate; slower where the cap would be used up before the period ends. */
static double rate_of(const struct pshift_server *s, const struct pshift_spot *b, weir_time now)
{
	/* Early enough to be used. */
	double left = fmax((double)(s->end - now - PSHIFT_AHEAD), PSHIFT_PACE);
	double length = (double)s->length, spread = length / (1 + 1.0 / PSHIFT_CATCH_UP);
	double rate = (double)b->cap / fmax(fmin(spread, length - PSHIFT_AHEAD), PSHIFT_PACE);
	bool moved = now - greater(b->moved, b->delayed) < s->length;
	double early = fmax(left - length / (moved ? 8 : PSHIFT_LATE), PSHIFT_PACE);

	if ((b->makes_up && s->joined != s->period) || moved)
		rate = fmax(rate, (double)(b->claim - b->used) / early);
	return fmax(0, fmin(rate, (double)(b->cap - b->used) / left));
}

/* Return how many tokens of a bucket with a limit should be at the gate: the present ones and those
 * that became due since the last look, at most as many as arrive while the gate's thread or a
 * client may be late; and at most `room`, beyond which the rest is kept. */
static int64_t paced(
	const struct pshift_server *s, struct pshift_spot *b, weir_time now, int64_t room)
{
	double rate = rate_of(s, b, now), burst = fmax(rate * PSHIFT_AHEAD, PSHIFT_READY);
	double has = (double)(b->r + b->l) + b->paced; /* below 0: served beyond it */
	int64_t all;

	has += rate * (double)(now - s->now);
	if (has > burst && b->queued)
		b->delayed = now;
	has = fmin(has, burst);
	all = lesser((int64_t)floor(has), room);
	b->paced = has - (double)all;
	return all;
}

/* Return the R-tokens at the gate: the part of the open claim that is due now, and a little ahead, so that a late look
 * or a short pause of the server loses none. Otherwise a server whose capacity is all claimed would serve all in turn
 * until the small claims are met, and the largest alone at the end: a client that then thinks for a moment
 * loses its turn for good. Without limits looks are rare: then all of it. */
static int64_t due_claim(const struct pshift_server *s, const struct pshift_spot *b, weir_time now)
{
	int64_t open = greater(0, b->claim - b->used), due;
	int64_t has = s->state == LEASE_HELD ? b->r - b->borrowed : b->r; /* of its own */
	weir_time head = lesser(s->length / 8, greater(s->length / PSHIFT_LATE, PSHIFT_HEAD));
	weir_time later = s->end - now - head;

	if (!s->limits || later <= 0)
		return open;
	due = greater(0, open - (int64_t)((double)b->claim * (double)later / (double)s->length));
	/* Not for every single token, as below. */
	return has > due - due / 4 && has <= open ? has : due;
}

static void set(struct pshift_server *s, size_t i, int64_t r, int64_t l)
{
	struct pshift_spot *b = &s->spots[i];

	b->put = r;
	if (r == b->r && l == b->l)
		return;
	s->config.grant(s->config.arg, i, r - b->r, l - b->l);
	b->r = r;
	b->l = l;
}

static void tokens_leased(struct pshift_server *s, weir_time now, size_t i)
{
	struct pshift_spot *b = &s->spots[i];
	int64_t r = due_claim(s, b, now), room, all;

	if (s->state == LEASE_HELD)
		r += b->borrowed;
	if (!pshift_limited(b)) {
		set(s, i, r, 0);
		return;
	}
	room = now < s->end ? greater(0, b->cap - b->used) : 0;
	all = paced(s, b, now, room);
	/* A claim that is not yet due may also be served now, if no other is. */
	r = lesser(r, greater(0, all));
	set(s, i, r, all - r);
}

/* At most the burst at the gate, and more at a rate of (part − burst) per length: together the
 * part, over any span of a length. Tokens of a look were due over the time since the last one, of
 * which at most two paces count: hence so much longer than a length. */
static void tokens_static(struct pshift_server *s, weir_time now, size_t i)
{
	struct pshift_spot *b = &s->spots[i];
	int64_t burst = burst_of(s, b), more, all, r;
	weir_time span = lesser(now - s->now, 2 * PSHIFT_PACE);

	if (!pshift_limited(b)) {
		set(s, i, b->borrowed, 0);
		return;
	}
	if (b->r + b->l > burst) { /* of another state: begin from nothing */
		set(s, i, 0, 0);
		return;
	}
	b->paced += (double)(b->static_l - burst) * (double)span /
		    (double)(s->length + 2 * PSHIFT_PACE);
	more = lesser((int64_t)b->paced, burst - b->r - b->l);
	all = b->r + b->l + more;
	b->paced = all >= burst ? 0 : b->paced - (double)more;
	/* As a first claim, if it has one: the kind of a token changes no sum. */
	r = lesser(all, b->borrowed);
	set(s, i, r, all - r);
}

void pshift_lease_tokens(struct pshift_server *s, weir_time now)
{
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];
		double before;
		int64_t had;

		if (s->resting[i])
			continue;
		before = b->paced;
		had = b->l;
		switch (s->state) {
		case LEASE_BLIND:
			set(s, i, 0, 0);
			break;
		case LEASE_STATIC:
			tokens_static(s, now, i);
			break;
		default:
			tokens_leased(s, now, i);
		}
		b->settled = b->l == had && fabs(b->paced - before) < 1e-6;
	}
}
