/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If a gate has leaves only, requests take short paths (stand.h, turn.h), and if it has very many,
 * memory is prefetched (ahead.h). Neither may change which requests pass. Two gates get the same
 * leaves, knobs, times and requests; one also has an inner node without any requests, so that all
 * requests take the general path for trees there, which reference.h judges in law-random. The
 * requests that pass, their order and class, and all counters must be the same to the end.
 *
 * Most leaves have a max and a min, which the short paths are for, and most are idle most of the
 * time, so that they wake: held or not, with an R-token, or with one to come. Requests are freed as
 * soon as they are done or cancelled: the gate must not read them any more.
 */
#include "law.h"
#include <errno.h>

#define LEAVES 24000
#define BATCH  256
#define INSIDE 256 /* the largest window */

struct twins {
	struct weir_gate *g[2];           /* with only leaves; with an inner node */
	weir_node leaves[LEAVES], latest; /* latest: leaf of the last request */
	unsigned n;
	weir_time now;
	uintptr_t serial; /* number of the last request */
	struct weir_req *inside[2][INSIDE];
	unsigned n_inside;
	double pace; /* how fast buckets fill */
	bool flooded, priorities;
};

static void both_set(struct twins *t, const struct weir_knob *k, size_t n)
{
	for (unsigned who = 0; who < 2; who++)
		law_set(t->g[who], t->now, k, n);
	law_operations += 2 * n;
}

static weir_node both_add(struct twins *t)
{
	weir_node a, b;

	CHECK_INT(weir_gate_add(t->g[0], WEIR_ROOT, &a), 0);
	CHECK_INT(weir_gate_add(t->g[1], WEIR_ROOT, &b), 0);
	CHECK_INT(b, a);
	return a;
}

/* ---- knobs */

static struct weir_bucket_spec any_bucket(const struct twins *t, enum weir_bucket_kind kind)
{
	struct weir_bucket_spec s = {.kind = kind, .rate = t->pace * law_log(0.1, 10)};

	s.size = ceil(law_log(1, t->flooded ? 2 : 8));
	if (law_chance(0.2)) {
		s.unit = WEIR_UNIT_BYTES;
		s.rate *= 4096;
		s.size *= 4096;
	}
	return s;
}

static void any_limits(struct twins *t, weir_node leaf)
{
	struct weir_bucket_spec specs[8];
	struct weir_knob k[2] = {{.node = leaf, .kind = WEIR_KNOB_BUCKETS, .buckets = specs},
		{.node = leaf, .kind = WEIR_KNOB_PRIORITY, .value = -1}};
	unsigned what = (unsigned)law_below(10), n = 0;

	if (what != 0 && what != 1) /* else a min alone, or no limit */
		specs[n++] = any_bucket(t, WEIR_HOLD);
	if (what != 0 && what != 2)
		specs[n++] = any_bucket(t, WEIR_RTOKENS);
	if (what == 3)
		specs[n++] = any_bucket(t, WEIR_LTOKENS);
	if (t->priorities && law_chance(0.3)) {
		for (unsigned i = (unsigned)law_below(5); i; i--)
			specs[n++] = any_bucket(t, WEIR_PROFILE);
		k[1].value = (double)law_below(3);
	}
	k[0].n_buckets = n;
	both_set(t, k, 2);
}

/* One of these knobs is refused, so none takes effect: only one gate gets them. */
static void refused(struct twins *t, weir_node leaf)
{
	const struct weir_bucket_spec bucket = any_bucket(t, WEIR_RTOKENS);
	const struct weir_knob k[] = {{.kind = WEIR_KNOB_WINDOW, .value = 1},
		{.kind = WEIR_KNOB_CREDIT, .value = 1e6}, {.kind = WEIR_KNOB_RUN, .value = 9},
		{.node = leaf, .kind = WEIR_KNOB_WEIGHT, .value = 1000},
		{.node = leaf, .kind = WEIR_KNOB_PRIORITY, .value = 0},
		{.node = leaf, .kind = WEIR_KNOB_BUCKETS, .buckets = &bucket, .n_buckets = 1},
		{.node = leaf, .kind = WEIR_KNOB_RGRANT, .value = 1000},
		{.node = leaf, .kind = WEIR_KNOB_WEIGHT, .value = 0}};

	CHECK_INT(weir_gate_set(t->g[0], t->now, k, sizeof k / sizeof k[0], NULL), -EINVAL);
	law_operations++;
}

static void any_knob(struct twins *t, weir_node leaf)
{
	struct weir_knob k = {.node = leaf, .kind = WEIR_KNOB_WEIGHT, .value = law_log(1, 100)};
	struct weir_bucket_spec pair[2] = {any_bucket(t, WEIR_HOLD), any_bucket(t, WEIR_RTOKENS)};

	if (law_chance(0.4)) {
		any_limits(t, leaf);
		return;
	}
	if (law_chance(0.3)) /* more than its room, or debt: no longer narrow */
		both_set(t,
			(struct weir_knob[]){{.node = leaf,
						     .kind = WEIR_KNOB_BUCKETS,
						     .buckets = pair,
						     .n_buckets = 2},
				{.node = leaf,
					.kind = WEIR_KNOB_RGRANT,
					.value = (double)law_between(0, 40) - 20}},
			2);
	else
		both_set(t, &k, 1);
}

/* ---- requests */

static struct weir_req any_request(weir_node leaf, uintptr_t serial)
{
	struct weir_req r = {.tenant = leaf,
		.user = (void *)serial,
		.requests = serial % 4 == 0 ? 2 : 0,
		.bytes = (uint32_t)law_log(1, 1e5)};
	if (law_chance(0.04)) /* too large for a narrow bucket */
		r.bytes = law_chance(0.5) ? 0 : (uint32_t)law_log(1 << 21, 1 << 23);
	return r;
}

static void arrive_at(struct twins *t, const weir_node *leaves, unsigned n)
{
	struct weir_req *batch[2][BATCH];

	for (unsigned i = 0; i < n; i++) {
		const struct weir_req r = any_request(leaves[i], ++t->serial);

		for (unsigned who = 0; who < 2; who++) {
			batch[who][i] = malloc(sizeof r);
			CHECK(batch[who][i]);
			*batch[who][i] = r;
		}
	}
	for (unsigned who = 0; who < 2; who++)
		CHECK_INT(weir_gate_submit(t->g[who], t->now, batch[who], n), 0);
	law_operations += 2 * (uint64_t)n;
}

static void arrive(struct twins *t, unsigned n)
{
	weir_node leaves[BATCH];

	for (unsigned i = 0; i < n; i++)
		leaves[i] = t->latest = t->leaves[law_below(t->n)];
	arrive_at(t, leaves, n);
}

static size_t pass(struct twins *t, size_t most)
{
	struct weir_req **of[2] = {&t->inside[0][t->n_inside], &t->inside[1][t->n_inside]};
	size_t n[2];

	for (unsigned who = 0; who < 2; who++)
		n[who] = weir_gate_next(t->g[who], t->now, of[who], most);
	for (size_t i = 0; i < n[0] && i < n[1]; i++) {
		const struct weir_req *a = of[0][i], *b = of[1][i];

		if (a->user != b->user || a->class_ != b->class_)
			FAIL("at %lld the %zu. of %zu is %llu of node %u in class %u; the long way "
			     "%llu of node %u in class %u",
				(long long)t->now, i, n[0], (unsigned long long)(uintptr_t)a->user,
				a->tenant, a->class_, (unsigned long long)(uintptr_t)b->user,
				b->tenant, b->class_);
	}
	if (n[0] != n[1])
		FAIL("at %lld %zu pass, but %zu by the long way", (long long)t->now, n[0], n[1]);
	t->n_inside += (unsigned)n[0];
	law_operations += 2 * n[0];
	return n[0];
}

static void finish(struct twins *t, unsigned n)
{
	t->n_inside -= n;
	for (unsigned who = 0; who < 2; who++) {
		struct weir_req **done = &t->inside[who][t->n_inside];

		weir_gate_done(t->g[who], t->now, done, n);
		for (unsigned i = 0; i < n; i++)
			free(done[i]);
	}
	law_operations += 2 * (uint64_t)n;
}

/* ---- cancels and departures */

static bool all_or_third(const struct weir_req *r, void *arg)
{
	return *(bool *)arg || (uintptr_t)r->user % 3 == 0;
}

static void drop(struct weir_req *r, void *arg)
{
	free(r);
}

static void cancel(struct twins *t, weir_node leaf, bool all)
{
	size_t n = weir_gate_cancel(t->g[0], t->now, leaf, all_or_third, drop, &all);

	CHECK_INT(weir_gate_cancel(t->g[1], t->now, leaf, all_or_third, drop, &all), n);
	law_operations += 2;
}

/* Remove a leaf, if none of its requests is inside, and add another one with the same number. */
static void replace(struct twins *t, unsigned i)
{
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(t->g[0], t->now, t->leaves[i], &s), 0);
	if (s.in_flight)
		return;
	cancel(t, t->leaves[i], true);
	for (unsigned who = 0; who < 2; who++)
		CHECK_INT(weir_gate_remove(t->g[who], t->leaves[i]), 0);
	if (law_chance(0.5))
		pass(t, 1); /* the leaf to be prefetched may be gone */
	t->leaves[i] = both_add(t);
	any_limits(t, t->leaves[i]);
}

/* ---- counters */

static void compare(struct twins *t, weir_node leaf)
{
	struct weir_gate_stats s[2];
	struct weir_gate_totals all[2];

	for (unsigned who = 0; who < 2; who++) {
		CHECK_INT(weir_gate_get_stats(t->g[who], t->now, leaf, &s[who]), 0);
		weir_gate_get_totals(t->g[who], t->now, &all[who]);
	}
	for (unsigned c = 0; c < 3; c++)
		CHECK_INT(s[0].by_class[c], s[1].by_class[c]);
	for (unsigned c = 0; c < WEIR_CAUSES; c++)
		if (s[0].wait_ns[c] != s[1].wait_ns[c])
			FAIL("node %u waited %g ns for cause %u, by the long way %g", leaf,
				s[0].wait_ns[c], c, s[1].wait_ns[c]);
	CHECK_INT(s[0].cause, s[1].cause);
	CHECK_INT(s[0].queued, s[1].queued);
	CHECK(s[0].device_ns == s[1].device_ns);
	CHECK_INT(all[0].queued, all[1].queued);
	CHECK_INT(all[0].submitted, all[1].submitted);
	CHECK_INT(all[0].served, all[1].served);
	CHECK_INT(all[0].full, all[1].full);
}

/* ---- a case */

static void start(struct twins *t, unsigned n)
{
	struct weir_gate_config config = {.cost = (enum weir_unit)law_below(2),
		.window = t->flooded        ? INSIDE
			  : law_chance(0.2) ? law_log(0.5, 10)
					    : (double)law_between(1, INSIDE),
		.credit = law_chance(0.7) ? 0 : 50};
	weir_node apart[2], below;

	t->now = law_chance(0.5) ? 0 : INT64_C(3155760000) * WEIR_SEC; /* a hundred years */
	for (unsigned who = 0; who < 2; who++)
		CHECK_INT(weir_gate_new(&config, &t->g[who]), 0);
	for (t->n = 0; t->n < n; t->n++) {
		t->leaves[t->n] = both_add(t);
		both_set(t,
			&(struct weir_knob){.node = t->leaves[t->n],
				.kind = WEIR_KNOB_WEIGHT,
				.value = 1 + t->n % 5},
			1);
		any_limits(t, t->leaves[t->n]);
	}
	/* As many children of both roots, so that their lanes are alike. */
	for (unsigned who = 0; who < 2; who++)
		CHECK_INT(weir_gate_add(t->g[who], WEIR_ROOT, &apart[who]), 0);
	CHECK_INT(weir_gate_add(t->g[1], apart[1], &below), 0);
	CHECK_INT(weir_gate_add(t->g[0], WEIR_ROOT, &below), 0); /* the next numbers are the same */
	CHECK_INT(weir_gate_remove(t->g[0], below), 0);
}

static void drain(struct twins *t)
{
	for (unsigned i = 0; i < t->n; i++)
		cancel(t, t->leaves[i], true);
	finish(t, t->n_inside);
	CHECK_INT(pass(t, 1), 0);
	for (unsigned who = 0; who < 2; who++) {
		CHECK_INT(weir_gate_wakeup(t->g[who], t->now), WEIR_NEVER);
		weir_gate_free(t->g[who]);
	}
}

/* Submit so many requests to each leaf that every leaf with a limit is held by it in the end. */
static void flood(struct twins *t, unsigned times)
{
	for (unsigned i = 0; i < t->n * times; i++)
		arrive_at(t, &t->leaves[i % t->n], 1);
	do
		finish(t, t->n_inside);
	while (pass(t, INSIDE));
}

/* Do something random to a leaf. */
static void disturb(struct twins *t, weir_node leaf)
{
	if (law_chance(0.5))
		any_knob(t, leaf);
	if (law_chance(0.1))
		refused(t, leaf);
	if (law_chance(0.15))
		cancel(t, leaf, law_chance(0.5));
}

/* Play a round with up to `most` new requests. */
static void play(struct twins *t, unsigned most, weir_time step)
{
	arrive(t, (unsigned)law_between(1, most));
	if (law_chance(0.05)) /* a leaf with a new request that is not examined yet */
		disturb(t, t->latest);
	if (law_chance(0.2))
		t->now += (weir_time)law_below(2 * (uint64_t)step);
	pass(t, law_between(1, 64));
	if (law_chance(0.9))
		finish(t, (unsigned)law_between(0, t->n_inside));
	if (law_chance(0.2))
		disturb(t, t->leaves[law_below(t->n)]);
	if (law_chance(0.02))
		replace(t, (unsigned)law_below(t->n));
	compare(t, t->leaves[law_below(t->n)]);
	weir_time wake = weir_gate_wakeup(t->g[0], t->now);

	if (wake > t->now && law_chance(0.5)) /* it is never late */
		CHECK_INT(pass(t, 1), 0);
	t->now = law_chance(0.3) && wake < t->now + WEIR_SEC
			 ? wake
			 : t->now + (weir_time)law_below(2 * (uint64_t)step);
}

/* Run n leaves, with up to `most` new requests per round. */
static void run_case(unsigned n, unsigned rounds, unsigned most, bool flooded)
{
	static struct twins twins;
	struct twins *t = &twins;
	weir_time step = (weir_time)law_log(1e3, 1e5); /* ns per round, about */

	memset(t, 0, sizeof *t);
	/* The limits admit about as much as arrives, so that all cases occur. */
	t->pace = (double)most / 2 / (double)step * 1e9 / n * law_log(0.3, 3);
	t->pace = fmin(fmax(t->pace, 1), 1e7);
	t->flooded = flooded;
	t->priorities = law_chance(0.6);
	start(t, n);
	if (flooded)
		flood(t, 4);
	for (unsigned i = 0; i < rounds; i++)
		play(t, most, step);
	drain(t);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-flat");
	for (unsigned i = 0; i < 60; i++) {
		law_case("flat", i);
		run_case((unsigned)(i % 3 ? law_between(1, 60) : law_between(70, 300)), 1500,
			i % 2 ? 8 : 24, false);
	}
	/* So many leaves that memory is prefetched: for lanes, then for timers, too. */
	for (unsigned i = 0; i < 2; i++) {
		law_case("many", i);
		run_case(4000, 500, BATCH, i);
		law_case("very many", i);
		run_case(LEAVES, 400, BATCH, true);
	}
	return law_end(1000000);
}
