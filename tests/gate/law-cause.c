/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 5: a waiting request is charged, moment by moment, to the first of these causes that holds
 * it: max (its own, then an ancestor's), tokens, window, turn; time in the device is counted
 * separately. Of the requests that only a full window holds, the one that passes next waits for the
 * window and all others for their turn.
 *
 * Small gates, called at every change. Between two events only buckets change, as they fill, so for
 * every leaf the naive buckets of reference.h tell until when each cause lasts; the gate's sums
 * must equal that, within a tick per change. To make the naive account unique: all requests cost 1,
 * and a bucket above admits all heads or none; leaves with tokens have no bucket above them; and
 * where there is one the window never fills, since behind a full window that bucket is not tried.
 */
#include "law.h"
#include "reference.h"

#define LEAVES 8
#define REQS   120

struct small {
	struct weir_gate *g;
	struct ref_gate *ref;
	weir_node leaves[LEAVES], inner;
	unsigned n;
	weir_time now, service;
	struct weir_req reqs[REQS], *idle[REQS], *inside[REQS];
	weir_time ends[REQS];
	unsigned n_idle, n_inside;
	double wait[LEAVES][WEIR_CAUSES], slack[LEAVES], device[LEAVES];
	double window, window_slack; /* time in which a request waited for the window */
	unsigned judged;             /* intervals in which that request's tenant is known */
	bool tokens;                 /* R-tokens that come in change which tenant is next */
	bool whole;                  /* next is always called for all requests */
};

static const enum weir_cause first_to_last[WEIR_CAUSES] = {
	WEIR_WAIT_MAX, WEIR_WAIT_ABOVE, WEIR_WAIT_TOKENS, WEIR_WAIT_WINDOW, WEIR_WAIT_TURN};

static void buckets(
	struct small *s, weir_node node, const struct weir_bucket_spec *specs, unsigned n)
{
	struct weir_knob k = {
		.node = node, .kind = WEIR_KNOB_BUCKETS, .buckets = specs, .n_buckets = n};

	law_set(s->g, s->now, &k, 1);
	ref_knob(s->ref, s->now, &k);
}

static struct weir_bucket_spec any_bucket(enum weir_bucket_kind kind, double scale)
{
	return (struct weir_bucket_spec){
		.kind = kind, .rate = law_log(200, 5000) * scale, .size = ceil(law_log(1, 5))};
}

static void limits(struct small *s, unsigned i, bool tokens)
{
	struct weir_bucket_spec specs[3];
	unsigned n = 0;

	if (law_chance(0.5))
		specs[n++] = any_bucket(WEIR_HOLD, 1);
	if (tokens && law_chance(0.7))
		specs[n++] = any_bucket(WEIR_LTOKENS, 1);
	if (tokens && s->tokens && law_chance(0.5))
		specs[n++] = any_bucket(WEIR_RTOKENS, 0.5);
	buckets(s, s->leaves[i], specs, n);
}

/* ---- the naive account */

static weir_time latest(
	const struct ref_node *n, enum weir_bucket_kind kind, const struct weir_req *r)
{
	weir_time due = 0;

	for (unsigned i = 0; i < n->n_buckets; i++)
		if (n->b[i].spec.kind == kind && ref_bucket_due(&n->b[i], r) > due)
			due = ref_bucket_due(&n->b[i], r);
	return due;
}

/* Set until when each cause holds the head of a leaf, if nothing happens; 0: it does not. */
static void until(const struct small *s, weir_node leaf, weir_time *ret)
{
	const struct ref_node *n = &s->ref->nodes[leaf];
	const struct weir_req *r = n->queue[n->first];

	memset(ret, 0, WEIR_CAUSES * sizeof *ret);
	ret[WEIR_WAIT_MAX] = latest(n, WEIR_HOLD, r);
	for (weir_node a = leaf; a != WEIR_ROOT;) {
		a = s->ref->nodes[a].parent;
		weir_time due = latest(&s->ref->nodes[a], WEIR_HOLD, r);

		if (due > ret[WEIR_WAIT_ABOVE])
			ret[WEIR_WAIT_ABOVE] = due;
	}
	ret[WEIR_WAIT_TOKENS] = latest(n, WEIR_LTOKENS, r);
	for (unsigned i = 0; i < n->n_buckets; i++)
		if (n->b[i].spec.kind == WEIR_RTOKENS &&
			ref_bucket_due(&n->b[i], r) < ret[WEIR_WAIT_TOKENS])
			ret[WEIR_WAIT_TOKENS] = ref_bucket_due(&n->b[i], r);
	ret[WEIR_WAIT_TURN] = WEIR_NEVER;
}

/* Return the number of leaves whose head only the window and its turn hold; `ret_near` of them
 * began or cease to be so within a tick. */
static unsigned free_heads(const struct small *s, weir_time now, unsigned *ret_near)
{
	unsigned n = 0;

	*ret_near = 0;
	for (unsigned i = 0; i < s->n; i++) {
		weir_time ends[WEIR_CAUSES], last = 0;

		if (!ref_queued(&s->ref->nodes[s->leaves[i]]))
			continue;
		until(s, s->leaves[i], ends);
		for (unsigned c = WEIR_WAIT_MAX; c < WEIR_WAIT_TURN; c++)
			last = ends[c] > last ? ends[c] : last;
		n += last <= now;
		*ret_near += last > now - REF_TICK && last <= now + REF_TICK;
	}
	return n;
}

/* Behind a full window one request waits for the window, if there is one that no other cause
 * holds. */
static void account_window(struct small *s, weir_time to)
{
	unsigned near, n = free_heads(s, s->now, &near);

	if (s->ref->in_flight < s->ref->window)
		return;
	if (n)
		s->window += (double)(to - s->now);
	if (near)
		s->window_slack += (double)(to - s->now);
}

/* Account for the time up to `to`, in which nothing happens. `late`: next is not called until
 * then, although more could pass, and the gate learns of changes only then. */
static void account(struct small *s, weir_time to, bool late)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct ref_node *n = &s->ref->nodes[s->leaves[i]];
		double queued = (double)ref_queued(n);
		weir_time ends[WEIR_CAUSES], at = s->now;

		s->device[i] += (double)n->in_flight * (double)(to - s->now);
		if (queued == 0)
			continue;
		until(s, s->leaves[i], ends);
		for (unsigned k = 0; k < WEIR_CAUSES; k++) {
			enum weir_cause c = first_to_last[k];
			weir_time end = ends[c] < to ? ends[c] : to;

			if (end <= at)
				continue;
			s->wait[i][c] += queued * (double)(end - at);
			at = end;
			if (end < to) /* the gate may learn of a change a tick later */
				s->slack[i] += queued * (late ? (double)(to - end) : REF_TICK);
		}
		for (unsigned c = WEIR_WAIT_MAX; c < WEIR_WAIT_TURN; c++)
			if (ends[c] > s->now - REF_TICK && ends[c] <= s->now)
				s->slack[i] += queued * (late ? (double)(to - s->now) : REF_TICK);
	}
	account_window(s, to);
	s->now = to;
}

static double window_wait(const struct small *s, unsigned i)
{
	struct weir_gate_stats st;

	CHECK_INT(weir_gate_get_stats(s->g, s->now, s->leaves[i], &st), 0);
	return st.wait_ns[WEIR_WAIT_WINDOW];
}

static void check(struct small *s)
{
	double window = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct weir_gate_stats st;
		double got = 0, due = 0;

		CHECK_INT(weir_gate_get_stats(s->g, s->now, s->leaves[i], &st), 0);
		window += st.wait_ns[WEIR_WAIT_WINDOW];
		st.wait_ns[WEIR_WAIT_TURN] += st.wait_ns[WEIR_WAIT_WINDOW];
		st.wait_ns[WEIR_WAIT_WINDOW] = 0;
		for (unsigned c = 0; c < WEIR_CAUSES; c++) {
			if (fabs(st.wait_ns[c] - s->wait[i][c]) > s->slack[i] + 1)
				FAIL("leaf %u, cause %u: %g ns, not %g ± %g", s->leaves[i], c,
					st.wait_ns[c], s->wait[i][c], s->slack[i]);
			got += st.wait_ns[c];
			due += s->wait[i][c];
		}
		CHECK(fabs(got - due) <= 1e-6 * due + 1);
		CHECK(fabs(st.device_ns - s->device[i]) <= 1e-6 * s->device[i] + 1);
	}
	if (fabs(window - s->window) > s->window_slack + 1e-6 * s->window + 1)
		FAIL("%g ns waited for the window, not %g ± %g", window, s->window,
			s->window_slack);
}

/* Check the head's current cause, unless it is about to change. */
static void check_now(struct small *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct weir_gate_stats st;
		weir_time ends[WEIR_CAUSES];
		enum weir_cause c;
		unsigned first = 0;
		bool near = false;

		CHECK_INT(weir_gate_get_stats(s->g, s->now, s->leaves[i], &st), 0);
		if (!ref_queued(&s->ref->nodes[s->leaves[i]])) {
			CHECK_INT(st.cause, WEIR_WAIT_TURN);
			continue;
		}
		until(s, s->leaves[i], ends);
		while (ends[first_to_last[first]] <= s->now)
			first++;
		c = first_to_last[first];
		for (unsigned k = 0; k < WEIR_CAUSES; k++)
			near |= ends[k] > s->now - REF_TICK && ends[k] <= s->now;
		if (c == WEIR_WAIT_TURN && st.cause == WEIR_WAIT_WINDOW) {
			CHECK(s->ref->in_flight >= s->ref->window);
			continue;
		}
		if (!near && st.cause != c)
			FAIL("leaf %u waits for cause %d, not %d", s->leaves[i], st.cause, c);
		if (!near && c == WEIR_WAIT_MAX)
			CHECK_INT(st.blocker, s->leaves[i]);
		if (!near && c == WEIR_WAIT_ABOVE && s->inner != WEIR_ROOT)
			CHECK_INT(st.blocker, s->inner);
	}
}

/* ---- driving */

static uint32_t pass(
	struct small *s) /* returns the tenant of the first that passed; WEIR_ROOT: none */
{
	struct weir_req *out[REQS];
	size_t n = weir_gate_next(s->g, s->now, out, s->whole ? REQS : law_between(1, 2));

	for (size_t i = 0; i < n; i++) {
		ref_pass(s->ref, s->now, out[i]);
		s->inside[s->n_inside] = out[i];
		s->ends[s->n_inside++] = s->now + (weir_time)law_between(1, (uint64_t)s->service);
	}
	law_operations += n;
	return n ? out[0]->tenant : WEIR_ROOT;
}

static void arrive(struct small *s)
{
	for (unsigned i = (unsigned)law_between(1, 6); i && s->n_idle; i--) {
		struct weir_req *r = s->idle[--s->n_idle];

		*r = (struct weir_req){.tenant = s->leaves[law_below(s->n)]};
		CHECK_INT(weir_gate_submit(s->g, s->now, &r, 1), 0);
		ref_submit(s->ref, s->now, r);
		law_operations++;
	}
}

static void finish(struct small *s)
{
	for (unsigned i = 0; i < s->n_inside;) {
		if (s->ends[i] > s->now) {
			i++;
			continue;
		}
		struct weir_req *r = s->inside[i];

		weir_gate_done(s->g, s->now, &r, 1);
		ref_done(s->ref, r);
		s->idle[s->n_idle++] = r;
		s->inside[i] = s->inside[--s->n_inside];
		s->ends[i] = s->ends[s->n_inside];
		law_operations++;
	}
}

/* Return the first tick at which a bucket admits a head: with a full window there is no wakeup
 * for that. */
static weir_time change(const struct small *s)
{
	weir_time first = WEIR_NEVER;

	for (unsigned i = 0; i < s->n; i++) {
		weir_time ends[WEIR_CAUSES];

		if (!ref_queued(&s->ref->nodes[s->leaves[i]]))
			continue;
		until(s, s->leaves[i], ends);
		for (unsigned c = WEIR_WAIT_MAX; c < WEIR_WAIT_TURN; c++) {
			weir_time tick = (ends[c] + REF_TICK - 1) / REF_TICK * REF_TICK;

			if (tick > s->now && tick < first)
				first = tick;
		}
	}
	return first;
}

static void step(struct small *s, weir_time arrival)
{
	weir_time to = weir_gate_wakeup(s->g, s->now);

	for (unsigned i = 0; i < s->n_inside; i++)
		to = s->ends[i] < to ? s->ends[i] : to;
	to = arrival < to ? arrival : to;
	if (to > change(s))
		to = change(s);
	bool late = to <= s->now; /* not all requests were asked for */

	if (late)
		to = s->now + (weir_time)law_between(1, 50000);
	bool full = s->ref->in_flight >= s->ref->window;
	weir_time from = s->now;
	double waited[LEAVES];
	unsigned before, near;

	for (unsigned i = 0; i < s->n; i++)
		waited[i] = window_wait(s, i);
	(void)free_heads(s, s->now, &before);
	account(s, to, late);
	for (unsigned i = 0; i < s->n; i++)
		waited[i] = window_wait(s, i) - waited[i];
	(void)free_heads(s, s->now, &near);
	finish(s);
	if (s->now >= arrival)
		arrive(s);
	uint32_t next = pass(s);

	/* Only a slot became free: the request that passes now is the one that waited for it. */
	if (full && next != WEIR_ROOT && s->now < arrival && !before && !near && !s->tokens) {
		for (unsigned i = 0; i < s->n; i++)
			if (waited[i] != (s->leaves[i] == next ? (double)(to - from) : 0))
				FAIL("leaf %u waited %g ns for the window of %lld, and %u passed",
					s->leaves[i], waited[i], (long long)(to - from), next);
		s->judged++;
	}
	law_operations++;
}

static void start(struct small *s, unsigned number)
{
	bool above = number % 3 == 0;
	struct weir_gate_config config = {.window = above ? REQS + 1 : (double)law_between(1, 12)};

	CHECK_INT(weir_gate_new(&config, &s->g), 0);
	ref_init(s->ref, &config);
	s->whole = above || law_chance(0.5);
	s->tokens = law_chance(0.6);
	s->inner = WEIR_ROOT;
	if (above && law_chance(0.7)) {
		CHECK_INT(weir_gate_add(s->g, WEIR_ROOT, &s->inner), 0);
		ref_add(s->ref, WEIR_ROOT, s->inner);
	}
	s->n = (unsigned)law_between(1, LEAVES);
	for (unsigned i = 0; i < s->n; i++) {
		CHECK_INT(weir_gate_add(s->g, s->inner, &s->leaves[i]), 0);
		ref_add(s->ref, s->inner, s->leaves[i]);
		limits(s, i, !above);
	}
	if (above)
		buckets(s, s->inner, (struct weir_bucket_spec[]){any_bucket(WEIR_HOLD, 2)}, 1);
	s->service = (weir_time)law_log(1e4, 1e7);
	for (unsigned i = 0; i < REQS; i++)
		s->idle[s->n_idle++] = &s->reqs[i];
}

static unsigned judged;

static void run_case(unsigned number, unsigned steps)
{
	static struct ref_gate ref;
	struct small *s = calloc(1, sizeof *s);
	double gap = law_log(1e5, 3e6);
	weir_time arrival = 0;

	CHECK(s);
	s->ref = &ref;
	start(s, number);
	for (unsigned i = 0; i < steps; i++) {
		if (arrival <= s->now)
			arrival = s->now + 1 + (weir_time)rng_exp(&law_rng, gap);
		step(s, arrival);
		if (s->whole && i % 16 == 0)
			check_now(s);
		if (i % 64 == 0)
			check(s);
		if (law_chance(0.005)) {
			limits(s, (unsigned)law_below(s->n), number % 3 != 0);
			pass(s);
		}
	}
	check(s);
	judged += s->judged;
	weir_gate_free(s->g);
	ref_free(&ref);
	free(s);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-cause");
	/* (How many intervals a case adds differs much: most come from cases with few tenants.) */
	for (unsigned i = 0; i < 400 || judged <= 20000; i++) {
		CHECK(i < 800);
		law_case("cause", i);
		run_case(i, 2000);
	}
	return law_end(1300000);
}
