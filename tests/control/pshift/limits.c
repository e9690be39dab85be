/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: the parts of a bucket's limit that a controller grants while it does not know what some
 * servers hold. The servers are played by the test: unless silent, they take every grant, and
 * answer.
 */
#include "control/pshift/control.h"
#include "control/pshift/pshift.h"
#include "test.h"

#define LENGTH WEIR_SEC
#define STEP   (5 * WEIR_MS)
#define MOST   5 /* servers */
#define LIMIT  300

static struct world {
	struct pshift_control *control;
	weir_time now;
	size_t n; /* servers */
	struct server {
		bool silent, answers, idle, partial; /* partial: it reports no holdings */
		bool deaf;                           /* it reports, and takes nothing */
		uint64_t instance, generation, sequence, accepted, asked, period, granted, hold;
		enum lease_state state;
		int64_t cap, limit, static_part;
	} servers[MOST];
} w;

static void sent(void *arg, size_t server, const struct lease_message *m)
{
	struct server *s = &w.servers[server];

	if (s->silent)
		return;
	s->answers = true;
	if (s->deaf)
		return;
	if (m->kind == LEASE_ASK) {
		s->generation = m->grant.generation;
		s->asked = m->sequence;
		return;
	}
	if (m->grant.period > s->period) {
		s->period = m->grant.period;
		s->cap = s->limit;
	}
	s->granted = m->grant.period;
	s->hold = m->grant.hold;
	s->accepted = m->sequence;
	for (size_t i = 0; i < m->n; i++) {
		s->cap = m->tokens[i].cap;
		s->limit = m->tokens[i].limit;
	}
}

/* Report all holdings, and a long queue unless idle. */
static void report(size_t server)
{
	struct server *s = &w.servers[server];
	struct lease_demand demand = {.bucket = 1,
		.queue = s->idle ? 0 : LIMIT,
		.holds = true,
		.cap = s->cap,
		.limit = s->limit,
		.static_part = s->static_part};
	struct lease_message m = {.kind = LEASE_REPORT,
		.cluster = 1,
		.instance = s->instance,
		.sequence = ++s->sequence,
		.sent = w.now,
		.name = {'s', (char)('1' + server)},
		.demands = &demand,
		.n = !s->partial,
		.report = {.generation = s->generation,
			.controller = s->generation ? pshift_control_instance(w.control) : 0,
			.accepted = s->accepted,
			.asked = s->asked,
			.period = s->period,
			.granted = s->granted,
			.left = LENGTH / 2,
			.length = LENGTH,
			.capacity = 10 * LIMIT,
			.state = s->state,
			.full = !s->partial}};

	s->answers = false;
	pshift_control_receive(w.control, w.now, &m);
}

static void run(weir_time span)
{
	for (weir_time until = w.now + span; w.now < until;) {
		w.now += STEP;
		CHECK(pshift_control_step(w.control, w.now) == 0);
		for (size_t j = 0; j < w.n; j++)
			if (w.servers[j].answers)
				report(j);
	}
}

static uint64_t period(void)
{
	struct cluster_status s;

	pshift_control_status(w.control, &s);
	CHECK(s.started);
	return s.period;
}

static void set_limit(int64_t limit)
{
	struct cluster_bucket b = {
		.id = 1, .reservation = LIMIT / 3, .limit = limit, .parts = (uint32_t)w.n};

	CHECK_INT(pshift_control_bucket(w.control, &b), 0);
}

/* Return the tokens of this period, or of each that follows, that the servers hold which answer. */
static int64_t all_of(bool entitled)
{
	int64_t sum = 0;

	for (size_t j = 0; j < w.n; j++)
		if (!w.servers[j].silent)
			sum += entitled ? w.servers[j].limit : w.servers[j].cap;
	return sum;
}

/* Server j starts anew: no more is known of it than that it serves nothing. */
static void restart(size_t j)
{
	w.servers[j] = (struct server){.instance = MOST + 1,
		.answers = true,
		.state = LEASE_BLIND,
		.static_part = LIMIT / (int64_t)w.n};
}

/* A controller takes over in period 5 from one that granted these parts, and does not hear from the
 * server `silent`. */
static void begin(const int64_t *parts, size_t n, size_t silent)
{
	struct cluster_lead_config c = {
		.name = "control", .cluster = 1, .instance = 10, .length = LENGTH, .send = sent};

	w = (struct world){.now = LENGTH, .n = n};
	CHECK(pshift_control_new(&c, &w.control) == 0);
	set_limit(LIMIT);
	for (size_t j = 0; j < w.n; j++) {
		char name[] = {'s', (char)('1' + j), 0};

		CHECK_INT(pshift_control_server(w.control, name), j);
		w.servers[j] = (struct server){.instance = j + 1,
			.silent = j == silent,
			.answers = j != silent,
			.period = 5,
			.granted = 5,
			.hold = PSHIFT_HOLD,
			.state = LEASE_LEASED,
			.cap = parts[j],
			.limit = parts[j],
			.static_part = LIMIT / (int64_t)n};
	}
}

/* A part of the limit that no server reports may be held until two periods after the takeover, by a
 * grant of the previous controller, and then for as long as that is held. */
static void unknown_parts_are_held(void)
{
	const uint64_t until = 5 + 2 + PSHIFT_HOLD;

	begin((const int64_t[]){20, 30, LIMIT - 50}, 3, 2);
	run(LENGTH / 4);
	for (; period() <= until; run(STEP))
		CHECK_INT(all_of(false), 50);
	run(LENGTH);
	CHECK(all_of(false) > 50 && all_of(false) <= LIMIT - LIMIT / 3);
	pshift_control_free(w.control);
}

/* The first report of server 3 is lost, so that the controller knows only that it follows: no part of
 * the limit is taken from the others because of that. */
static void holdings_are_reported_again(void)
{
	begin((const int64_t[]){125, 125, 50}, 3, PSHIFT_NONE);
	w.servers[2].partial = w.servers[2].idle = true;
	run(LENGTH * 3 / 16);
	w.servers[2].partial = false;
	report(2);
	for (unsigned n = 0; n < 100; n++) {
		run(STEP);
		CHECK(w.servers[0].limit + w.servers[1].limit >= 240);
	}
	period();
	pshift_control_free(w.control);
}

/* Server 1 used up to 10 tokens of period 5 and then restarted, which the new controller learns
 * after its takeover: no server may have these in that period. */
static void a_restarted_server_is_heard_late(void)
{
	const int64_t used = 10;

	begin((const int64_t[]){used, 10, LIMIT - used - 10}, 3, 0);
	run(LENGTH / 4);
	restart(0);
	for (; period() == 5; run(STEP))
		CHECK(used + all_of(false) <= LIMIT);
	CHECK_INT(w.servers[0].granted, 5);
	/* From then on it has its part again. */
	w.servers[0].state = LEASE_LEASED;
	run(4 * LENGTH);
	CHECK(w.servers[0].limit > used && all_of(true) <= LIMIT);
	pshift_control_free(w.control);
}

/* Server 1 has fallen back to its static part, and server 5 has used its own when it restarts: both
 * count. */
static void a_server_restarts_beside_a_static_one(void)
{
	const int64_t part = LIMIT / 5;
	uint64_t now;

	begin((const int64_t[]){10, 50, 50, 50, LIMIT - 160}, 5, 4);
	run(LENGTH / 2);
	w.servers[0].silent = true;
	run(12 * LENGTH + LENGTH / 4);
	now = period();
	CHECK(all_of(false) <= LIMIT - 2 * part);
	restart(4);
	for (; period() == now; run(STEP))
		CHECK(all_of(false) <= LIMIT - 2 * part);
	CHECK_INT(w.servers[4].granted, now);
	run(LENGTH);
	CHECK(all_of(true) > LIMIT - 2 * part && all_of(true) <= LIMIT - part);
	pshift_control_free(w.control);
}

/* Server 3 is silent, and has fallen back to its static part. The limit grows, and the server may
 * have its part of the new one before the controller hears of it. */
static void a_limit_grows_beside_a_static_server(void)
{
	const int64_t more = 2 * LIMIT;

	begin((const int64_t[]){LIMIT / 3, LIMIT / 3, LIMIT / 3}, 3, PSHIFT_NONE);
	run(LENGTH);
	w.servers[2].silent = true;
	run((PSHIFT_HOLD + PSHIFT_GAP + 2) * LENGTH);
	CHECK(all_of(true) <= LIMIT - LIMIT / 3);
	set_limit(more);
	run(LENGTH / 4);
	CHECK(all_of(false) > LIMIT && all_of(false) <= more - more / 3);
	run(2 * LENGTH);
	CHECK(all_of(true) > LIMIT && all_of(true) <= more - more / 3);
	pshift_control_free(w.control);
}

/* Return what all servers may have in a period without another grant, by their own law. */
static int64_t potential(uint64_t k)
{
	int64_t sum = 0;

	for (size_t j = 0; j < w.n; j++) {
		const struct server *s = &w.servers[j];

		if (k > s->granted + PSHIFT_HOLD + PSHIFT_GAP ||
			(k > s->granted + s->hold && s->limit > s->static_part))
			sum += s->static_part;
		else
			sum += s->limit;
	}
	return sum;
}

/* Server 5 is no longer reached: it will fall back to its static part, which is more than it holds.
 * Another server, which may be the one to give up as much, ends after that. No grant is held until
 * server 5 falls back before the others have given up as much instead; they keep their leases. */
static void one_ends_that_may_have_to_give_up(size_t other, weir_time after, bool silent)
{
	const struct server *s = &w.servers[other == 0];

	begin((const int64_t[]){70, 70, 70, 70, 20}, 5, PSHIFT_NONE);
	w.servers[4].idle = true;
	run(LENGTH / 4);
	CHECK(w.servers[4].limit < w.servers[4].static_part);
	w.servers[4].deaf = true;
	run(after);
	w.servers[other].silent = true;
	w.servers[4].silent = silent;
	for (uint64_t until = period() + 12; period() < until;) {
		run(STEP);
		CHECK(s->granted + 1 >= period());
		for (uint64_t k = period(); k <= s->granted + s->hold; k++)
			CHECK(potential(k) <= LIMIT);
	}
	CHECK_INT(s->hold, PSHIFT_HOLD);
	pshift_control_free(w.control);
}

static void a_server_ends_that_should_give_up(void)
{
	for (size_t other = 0; other < 4; other++)
		for (weir_time after = 0; after < 4 * LENGTH; after += LENGTH / 16) {
			one_ends_that_may_have_to_give_up(other, after, false);
			one_ends_that_may_have_to_give_up(other, after, true);
		}
}

int main(void)
{
	RUN(unknown_parts_are_held);
	RUN(holdings_are_reported_again);
	RUN(a_restarted_server_is_heard_late);
	RUN(a_server_restarts_beside_a_static_one);
	RUN(a_limit_grows_beside_a_static_server);
	RUN(a_server_ends_that_should_give_up);
	return 0;
}
