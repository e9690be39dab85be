/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demand: measure the demand of a server's buckets, and decide which of it to report.
 *
 * SOURCE  pShift §III-D: demand from the queue and the arrivals of the last interval; nothing is
 *         sent without a significant change.
 * LAW     A report predicts, t later: used + serving·t, and queue + arriving·(the rest of the
 *         period). An entry is sent again when the present value differs from that by more than 1
 *         and tolerance·(the prediction); for demand by √ of it more, which is the noise of
 *         counting.
 * DIFFERS A closed loop (pshift.h) is distinguished from a queue that happens to stand: since the
 *         queue was last empty, or moved by more than that in one measurement, at least 16 requests
 *         arrived, in at least two measurements, and the queue has changed by at most 1 and 2 % of
 *         these. And each completed request is followed by another at once: the mean number missing
 *         from the most that were here is (Little) arrivals a second times the think time of a
 *         client. It stays a closed loop until the queue is empty or moves, so that a bucket that
 *         is not served at all does not count as idle. For the same reason arrivals at a standing
 *         queue lower no estimate.
 */
#include "control/pshift/server-impl.h"
#include <errno.h>
#include <math.h>

#define CLOSED_LEAST 16
/* measurements without a request: then the last report, however small, is void */
#define IDLE         4
#define CLOSED_MOVES 0.02
/* Measurements: a full server serves by chance as much as arrives for one of them, if a bucket's
 * share happens to be its demand; hardly for two. */
#define CLOSED_STEADY 2

/* The longest think time of a client of a closed loop: a round trip, and scheduling on a busy
 * machine. A client with 10 requests a second of its own sends 100 ms later. */
#define CLOSED_TURN (5 * WEIR_MS)
/* Requests that may be missing on average, as of a client that is slow now and then. */
#define CLOSED_MISSING 0.1
/* Requests after which the watch begins again: a client that has more outstanding than before is a
 * loop again. */
#define CLOSED_WATCH 256

static void watch_anew(struct pshift_spot *b)
{
	b->peak = b->queued + b->inside;
	b->missing = 0;
	b->watched = 0;
	b->arrived_w = b->arrived;
}

/* Record when requests begin to wait, after none has waited for as long as a turn takes: demand has moved here. */
static void look_for_waiting(const struct pshift_server *s, struct pshift_spot *b, weir_time now)
{
	if (!b->queued) {
		b->ready = now;
		return;
	}
	if (now - b->waited_at >= s->length / PSHIFT_WAITS)
		b->moved = now;
	b->waited_at = now;
}

void pshift_demand_watch(struct pshift_server *s, weir_time now)
{
	double span = (double)(now - s->now);

	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];
		uint64_t here;

		if (s->resting[i])
			continue;
		look_for_waiting(s, b, now);
		here = b->queued + b->inside;
		if (!here && !b->peak)
			continue;
		b->missing += (double)(b->peak - b->here) * span;
		b->watched += span;
		b->here = here;
		if (here <= b->peak)
			continue;
		/* so many more for the whole time */
		b->missing += (double)(here - b->peak) * b->watched;
		b->peak = here;
	}
}

static bool asks_again(const struct pshift_spot *b)
{
	return b->missing <= (double)(b->arrived - b->arrived_w) * (double)CLOSED_TURN +
				     CLOSED_MISSING * b->watched;
}

static void look_for_loop(struct pshift_spot *b, double came, weir_time span)
{
	/* A client with a fixed number outstanding has so many here, queued or inside. */
	uint64_t here = b->queued + b->inside;
	double moved = fabs((double)here - (double)b->queued0);
	double lately = fabs((double)here - (double)b->here0); /* larger if it leaves or comes */

	b->here0 = here;
	if (!here || (b->waited - b->waited0) / (double)span < 1) {
		b->closed = false;
		b->came = 0;
		b->queued0 = 0;
		b->steady = 0;
		watch_anew(b);
		return;
	}
	if (!b->queued0) { /* from here on */
		b->queued0 = here;
		return;
	}
	if (lately > 1 + CLOSED_MOVES * came) { /* it moves: start again */
		b->closed = false;
		b->queued0 = here;
		b->came = 0;
		b->steady = 0;
		watch_anew(b);
		return;
	}
	b->came += (uint64_t)came;
	b->steady += came > 0;
	if (b->came >= CLOSED_LEAST)
		b->closed = moved <= 1 + CLOSED_MOVES * (double)b->came &&
			    b->steady >= CLOSED_STEADY && (b->closed || asks_again(b));
	if (b->arrived - b->arrived_w >= CLOSED_WATCH)
		watch_anew(b);
}

/* ---- rates */

/* If a new measurement differs from the old by at most one request, which may have arrived a moment
 * sooner or later, both count: otherwise rates of few requests would never settle. */
#define MOMENT 1.5
/* Random arrivals vary by √n of n on average. A difference below three times this bucket's scatter
 * is no change, and the rate is the mean of all the time since the last change: few requests arrive
 * in an interval, too few to predict the rest of the period. */
#define SCATTER 3
#define MEMORY  8 /* measurements: the longest that counts, for rates and their scatter */
/* requests: if so many are expected, none arrives by chance once in twenty times */
#define NONE 3

static bool has_changed(const struct pshift_spot *b, double count, double expected)
{
	if (count < 1 && expected >= NONE)
		return true;
	return fabs(count - expected) > MOMENT + SCATTER * sqrt(b->scatter * expected);
}

static void measure_coming(struct pshift_spot *b, double count, double seconds, double longest)
{
	double expected = b->coming * seconds;
	double beyond = fmax(fabs(count - expected) - 1, 0);
	bool settled = b->known > 0, changed = settled && has_changed(b, count, expected);

	/* A bucket that comes or goes does not show its scatter. */
	if (settled && count >= 1 && expected > 0)
		b->scatter += (fmin(beyond * beyond / fmax(expected, 1), 1) - b->scatter) / MEMORY;
	if (changed)
		b->known = 0;
	b->coming = (b->coming * b->known + count) / (b->known + seconds);
	/* When in this time it changed is not known: the next measurement is the first to count. */
	b->known = changed ? 0 : fmin(b->known + seconds, longest);
}

/* Return true if requests always wait, and the queue stands: then arrivals equal completions. They
 * would be no fewer if the bucket were not held, by its limit or by others; how many more is known
 * from before. */
static bool stands(const struct pshift_spot *b, double came, weir_time span)
{
	double more = (double)(b->queued + b->inside) - (double)b->here0;

	return (b->waited - b->waited0) / (double)span >= 1 &&
	       fabs(more) <= 1 + CLOSED_MOVES * came;
}

/* Without a controller, the demand of a bucket that has used all its tokens while more requests
 * wait is not known. Assume so many times what was seen, up to its reservation. */
#define GUESS 8

static double assumed(const struct pshift_server *s, const struct pshift_spot *b)
{
	double rate = (double)WEIR_SEC / (double)s->length;
	double seen = (double)b->used + (double)b->queued;

	if (!b->is_short || b->r + b->l > 0)
		return 0;
	return fmin(GUESS * seen, (double)b->reservation) * rate;
}

static double smooth(double old, double count, double seconds)
{
	double new = count / seconds;

	return fabs(new - old) * seconds <= MOMENT ? old + (new - old) / 4 : new;
}

/* Measure a bucket whose queue stands: a decrease beyond the scatter of requests lowers no
 * estimate. (Taking the greater of the two each time would count, for a bucket with few requests,
 * the one interval with one more arrival than the others.) */
static void measure_standing(struct pshift_spot *b, double count, double seconds, double longest)
{
	double expected = b->coming * seconds;

	if (count >= expected || !has_changed(b, count, expected))
		measure_coming(b, count, seconds, longest);
}

void pshift_demand_measure(struct pshift_server *s, weir_time now)
{
	weir_time span = now - s->measured;
	double seconds = (double)span / (double)WEIR_SEC;
	double longest = MEMORY * (double)s->usual / (double)WEIR_SEC;

	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];
		double came;

		if (s->resting[i])
			continue;
		came = (double)(b->arrived - b->arrived0);
		if (stands(b, came, span))
			measure_standing(b, came, seconds, longest);
		else
			measure_coming(b, came, seconds, longest);
		b->going = smooth(b->going, (double)(b->served - b->served0), seconds);
		b->arriving = (int64_t)fmin(
			rint(fmax(b->coming, assumed(s, b))), (double)LEASE_TOKENS_MAX);
		b->serving = (int64_t)fmin(rint(b->going), (double)LEASE_TOKENS_MAX);
		look_for_loop(b, came, span);
		b->idle = came > 0 || b->queued ? 0 : b->idle < IDLE ? b->idle + 1 : IDLE;
		b->arrived0 = b->arrived;
		b->served0 = b->served;
		b->waited0 = b->waited;
	}
	s->measured = now;
}

static bool is_led(const struct pshift_server *s)
{
	return pshift_followed(s) && s->state == LEASE_LEASED;
}

/* Return true if some of its requests wait that would be served if other servers gave up tokens. */
static bool is_short(const struct pshift_server *s, const struct pshift_spot *b, weir_time now)
{
	int64_t has = pshift_limited(b) ? b->limit : b->reserved;

	return now - b->ready >= s->length / PSHIFT_WAITS &&
	       (has < b->reservation || (s->state == LEASE_BLIND && b->reservation));
}

/* Return true if no request is here where one was expected. */
static bool has_left(const struct pshift_server *s, const struct pshift_spot *b, weir_time now)
{
	double expected = b->coming * (double)(now - s->measured) / (double)WEIR_SEC;

	if (b->queued || b->inside)
		return false;
	return b->closed || (is_led(s) && b->arrived == b->arrived0 && expected >= NONE);
}

void pshift_demand_look_for_want(struct pshift_server *s, weir_time now)
{
	/* With a controller demand is measured as in the paper, or at once if it has moved. */
	bool alone = !is_led(s) || pshift_stands_in(s->controller), wants = false;
	weir_time soon = s->measured + s->length / PSHIFT_WAITS;

	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];
		bool lacks, moved;

		if (s->resting[i])
			continue;
		lacks = alone && is_short(s, b, now);
		wants |= lacks && !is_led(s);
		moved = lacks != b->is_short ||
			((alone || pshift_limited(b)) && has_left(s, b, now));
		if (moved && s->measure > soon)
			s->measure = soon;
		b->is_short = lacks;
	}
	s->answer |= wants && !s->wants;
	s->wants = wants;
}

static bool differs(double now, double expected, double tolerance)
{
	return fabs(now - expected) > tolerance + 1;
}

static bool worth_saying(const struct pshift_server *s, const struct pshift_spot *b, weir_time now)
{
	const struct lease_demand *d = &b->said;
	double since = (double)(now - b->said_at) / (double)WEIR_SEC;
	double left = s->period && s->end > now ? (double)(s->end - now) / (double)WEIR_SEC
						: (double)s->length / (double)WEIR_SEC;
	double served = (double)d->used + (double)d->serving * since;
	double wanted = (double)d->queue + (double)d->arriving * left;
	double wants = (double)b->queued + (double)b->arriving * left;
	double tolerance = s->config.tolerance;

	if (!d->bucket && !b->said_in)
		return b->queued || b->arriving || b->used || b->reserved;
	if (d->closed != b->closed || (b->idle == IDLE && (d->queue || d->arriving)))
		return true;
	if (b->said_period != s->period)
		served = (double)d->serving *
			 ((double)s->length / (double)WEIR_SEC - left); /* since its start */
	if (tolerance < 0)
		return (double)b->used != served || wants != wanted;
	return differs((double)b->used, served, tolerance * fmax(served, (double)b->reserved)) ||
	       (!b->closed && differs(wants, wanted, tolerance * wanted + sqrt(wanted)));
}

static void say(struct pshift_server *s, struct pshift_spot *b, weir_time now, bool full)
{
	struct lease_demand *d = &s->out.demands[s->out.n++];

	full |= b->new;
	*d = (struct lease_demand){.bucket = b->id,
		.used = b->used < LEASE_TOKENS_MAX ? b->used : LEASE_TOKENS_MAX,
		.queue = (int64_t)b->queued,
		.arriving = b->arriving,
		.serving = b->serving,
		.closed = b->closed,
		.holds = full,
		.cap = LEASE_NO_LIMIT,
		.limit = LEASE_NO_LIMIT};
	if (full) {
		bool none = s->state == LEASE_BLIND && pshift_limited(b);

		d->cap = none ? 0 : b->cap > b->used ? b->cap : b->used;
		d->reserved = b->reserved;
		d->limit = none ? 0 : b->limit;
		d->static_part = pshift_limited(b) ? b->static_l : 0;
	}
	b->said = *d;
	b->said_at = now;
	b->said_period = s->period;
	b->said_in = s->sequence;
	b->unheard = true;
}

static void send(struct pshift_server *s, weir_time now)
{
	struct lease_message *m = &s->out;
	weir_time left = s->period && s->end > now ? s->end - now : 0;
	bool young = !s->config.fresh && now - s->began < PSHIFT_YOUNG * pshift_longer(s->length);
	bool blind = young || (s->blind && s->period <= s->blind);
	enum lease_state state = blind ? LEASE_BLIND : s->state;

	m->kind = LEASE_REPORT;
	m->cluster = s->config.cluster;
	m->instance = s->config.instance;
	m->sequence = s->sequence;
	m->sent = s->sent = now;
	for (size_t i = 0; i < sizeof(m->name); i++)
		m->name[i] = s->name[i];
	m->report = (struct lease_report){s->generation, pshift_followed(s), s->accepted, s->period,
		s->granted, left, s->length,
		(uint64_t)fmin(rint(s->capacity), (double)LEASE_TOKENS_MAX), state, s->full,
		s->asked, s->wants};
	s->reports++;
	s->entries += m->n;
	s->said_capacity = s->capacity;
	s->full = s->answer = s->acknowledge = false;
	s->config.send(s->config.arg, m);
}

int pshift_demand_report(struct pshift_server *s, weir_time now)
{
	bool measured = s->measured == now,
	     due = s->full || s->answer || (measured && s->acknowledge);

	/* Send a beat, so that silence is meaningful. */
	due |= now - s->sent >= s->length / 2;
	if (!due && !measured)
		return 0;
	if (lease_message_room(&s->out, s->n))
		return -ENOMEM;
	s->out.n = 0;
	s->sequence++;
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		/* A report has everything that may not have been received: the newest alone
		 * suffices. */
		if (s->full || b->over || b->unheard || b->new ||
			(measured && worth_saying(s, b, now)))
			say(s, b, now, s->full);
	}
	due |= s->out.n || fabs(s->capacity - s->said_capacity) > 0.05 * s->said_capacity;
	if (due)
		send(s, now);
	else
		s->sequence--;
	return 0;
}

/* ---- rest */

/* A look would find nothing that is new, nor grant tokens, but for R-tokens that come due: the first look after a
 * request came makes up for these. */
static bool may_rest(const struct pshift_spot *b)
{
	bool idle = b->idle == IDLE || !b->arrived;

	return b->settled && idle && !b->arriving && !b->serving && !b->recent && !b->queued &&
	       !b->inside && !b->peak && !b->closed && !b->is_short && !b->over;
}

void pshift_demand_rest(struct pshift_server *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->resting[i] || !may_rest(&s->spots[i]))
			continue;
		s->resting[i] = 1;
		s->n_resting++;
	}
}
