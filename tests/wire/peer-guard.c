/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-guard: fresh messages are taken; late, duplicate, recorded and replayed ones change
 * nothing. */
#include "test.h"
#include "wire/peer-guard.h"
#include "base/rng.h"

#define SEC WEIR_SEC

static struct peer_guard *g;
static struct peer_guard_advice advice;
static uint8_t nonce[PEER_NONCE];

static void begin(unsigned most)
{
	struct peer_guard_config c = {.name = "us", .instance = 1, .late = 4 * SEC, .most = most};

	peer_guard_free(g);
	CHECK_INT(peer_guard_new(&c, &g), 0);
	memset(nonce, 0, sizeof(nonce));
}

static struct peer_message from(
	const char *name, uint64_t instance, uint64_t sequence, weir_time sent)
{
	struct peer_message m = {
		.kind = PEER_REPORT, .instance = instance, .sequence = sequence, .sent = sent};

	strncpy(m.name, name, PEER_NAME_MAX);
	return m;
}

static enum peer_verdict judge(const struct peer_message *m, weir_time now)
{
	nonce[0]++; /* never reused */
	if (!nonce[0])
		nonce[1]++;
	return peer_guard_judge(g, m, now, nonce, &advice);
}

/* A report at `now`, sent at the same moment by a clock that is `ahead` of ours. */
static enum peer_verdict report(
	const char *name, uint64_t instance, uint64_t sequence, weir_time now, weir_time ahead)
{
	struct peer_message m = from(name, instance, sequence, now + ahead);

	return judge(&m, now);
}

/* The answer to the last challenge. */
static enum peer_verdict answer(
	const char *name, uint64_t instance, uint64_t sequence, weir_time now, weir_time ahead)
{
	struct peer_message m = from(name, instance, sequence, now + ahead);

	m.kind = PEER_ANSWER;
	memcpy(m.nonce, nonce, PEER_NONCE);
	return judge(&m, now);
}

/* A host reports and answers the challenge; both use a sequence number. */
static void introduce(const char *name, uint64_t instance, weir_time now, weir_time ahead)
{
	CHECK_INT(report(name, instance, 1, now, ahead), PEER_UNPROVEN);
	CHECK(advice.ask);
	CHECK_INT(answer(name, instance, 2, now, ahead), PEER_TAKEN);
	CHECK(!advice.ask);
}

static void proves_first(void)
{
	begin(8);
	CHECK_INT(report("a", 7, 1, SEC, 100 * SEC), PEER_UNPROVEN);
	CHECK(advice.ask);
	CHECK_INT(peer_guard_heard(g, SEC, 10 * SEC), 0);
	CHECK_INT(answer("a", 7, 2, SEC, 100 * SEC), PEER_TAKEN);
	CHECK_INT(peer_guard_heard(g, SEC, 10 * SEC), 1);
	for (uint64_t i = 3; i < 100; i++) {
		CHECK_INT(report("a", 7, i, (weir_time)i * 2 * SEC, 100 * SEC), PEER_TAKEN);
		CHECK(!advice.ask && !advice.same);
	}
}

static void one_question_at_a_time(void)
{
	begin(8);
	CHECK_INT(report("a", 7, 1, 10 * SEC, 0), PEER_UNPROVEN);
	CHECK(advice.ask);
	CHECK_INT(report("a", 7, 2, 11 * SEC, 0), PEER_UNPROVEN);
	CHECK(!advice.ask);
	CHECK_INT(report("a", 7, 3, 12 * SEC, 0), PEER_UNPROVEN);
	CHECK(advice.ask);
}

static void answers_must_fit(void)
{
	struct peer_message m;

	begin(8);
	CHECK_INT(answer("a", 7, 1, SEC, 0), PEER_OLD); /* without a challenge */
	CHECK(!advice.ask);
	CHECK_INT(report("a", 7, 2, SEC, 0), PEER_UNPROVEN);
	m = from("a", 7, 3, SEC);
	m.kind = PEER_ANSWER;
	m.nonce[0] = 99;
	CHECK_INT(judge(&m, SEC), PEER_OLD); /* to another challenge */
	m.kind = PEER_REPORT;                /* the right nonce in the wrong kind */
	m.nonce[0] = 2;
	CHECK_INT(judge(&m, SEC), PEER_UNPROVEN);
	m.kind = PEER_ANSWER;
	CHECK_INT(judge(&m, SEC + PEER_GUARD_ANSWER), PEER_OLD); /* too late */
	CHECK_INT(judge(&m, SEC + PEER_GUARD_ANSWER - 1), PEER_TAKEN);
	m.sequence++;
	CHECK_INT(judge(&m, SEC + PEER_GUARD_ANSWER - 1),
		PEER_OLD); /* a challenge takes one answer */
}

static void doubled_and_overtaken(void)
{
	begin(8);
	introduce("a", 7, SEC, 0);
	CHECK_INT(report("a", 7, 5, 3 * SEC, 0), PEER_TAKEN);
	CHECK_INT(report("a", 7, 5, 3 * SEC, 0), PEER_OLD);
	CHECK_INT(report("a", 7, 4, 3 * SEC, 0), PEER_OLD);
	CHECK_INT(report("a", 7, 1, 3 * SEC, 0), PEER_OLD);
	CHECK(!advice.ask); /* a replay triggers no challenge */
	CHECK_INT(report("a", 7, 6, 5 * SEC, 0), PEER_TAKEN);
}

/* Messages recorded before a restart of the host, or of this one. */
static void played_again(void)
{
	struct peer_message kept[10];

	begin(8);
	for (unsigned i = 0; i < 10; i++)
		kept[i] = from("a", 7, i + 1, (weir_time)i * 2 * SEC);
	introduce("a", 8, 100 * SEC, 0);
	for (unsigned i = 0; i < 10; i++) {
		CHECK_INT(judge(&kept[i], 101 * SEC), PEER_UNPROVEN);
		CHECK(!advice.same);
	}
	CHECK_INT(peer_guard_heard(g, 101 * SEC, 10 * SEC), 1);
	CHECK_INT(report("a", 8, 3, 102 * SEC, 0), PEER_TAKEN);
}

/* A delayed message must not make a dead sender seem alive. */
static void held_up(void)
{
	struct peer_message m;

	begin(8);
	introduce("a", 7, 10 * SEC, 55 * SEC);
	m = from("a", 7, 3, (12 + 55) * SEC);
	CHECK_INT(judge(&m, 12 * SEC + 4 * SEC + SEC), PEER_LATE);
	CHECK(advice.ask);
	m = from("a", 7, 4, (14 + 55) * SEC);
	CHECK_INT(judge(&m, 14 * SEC + 3 * SEC), PEER_TAKEN); /* a short delay */
}

/* A sender whose clock stood still is late until it answers a challenge. */
static void clock_stood_still(void)
{
	begin(8);
	introduce("a", 7, 10 * SEC, 0);
	CHECK_INT(report("a", 7, 3, 60 * SEC, -40 * SEC), PEER_LATE);
	CHECK(advice.ask);
	CHECK_INT(answer("a", 7, 4, 60 * SEC, -40 * SEC), PEER_TAKEN);
	CHECK_INT(report("a", 7, 5, 62 * SEC, -40 * SEC), PEER_TAKEN);
}

/* Clocks slower and faster than ours by 500 ppm, for a day. */
static void clocks_drift(void)
{
	begin(8);
	introduce("slow", 7, 0, 0);
	introduce("fast", 8, 0, 0);
	for (int64_t i = 1; i < 43200; i++) {
		weir_time now = i * 2 * SEC;

		CHECK_INT(report("slow", 7, (uint64_t)i + 2, now, -now / 2000), PEER_TAKEN);
		CHECK_INT(report("fast", 8, (uint64_t)i + 2, now, now / 2000), PEER_TAKEN);
	}
}

static void two_of_one_name(void)
{
	unsigned said = 0;

	begin(8);
	introduce("a", 7, SEC, 0);
	introduce("a", 8, SEC, 0);
	for (uint64_t i = 3; i < 20; i++) {
		CHECK_INT(report("a", 7, i, (weir_time)i * 2 * SEC, 0), PEER_TAKEN);
		said += advice.same;
		CHECK_INT(report("a", 8, i, (weir_time)i * 2 * SEC + 1, 0), PEER_TAKEN);
		said += advice.same;
	}
	CHECK(said >= 20);
}

/* Even if the last message of the old instance arrives after the first of the new one. */
static void restart_is_not_two(void)
{
	begin(8);
	introduce("a", 7, SEC, 0);
	introduce("a", 8, 2 * SEC, 0);
	CHECK_INT(report("a", 7, 3, 2 * SEC + 1, 0), PEER_TAKEN);
	CHECK(!advice.same);
	for (uint64_t i = 3; i < 20; i++) {
		CHECK_INT(report("a", 8, i, (weir_time)i * 2 * SEC, 0), PEER_TAKEN);
		CHECK(!advice.same);
	}
}

static void another_host_has_our_name(void)
{
	begin(8);
	CHECK_INT(report("us", 1, 5, SEC, 0), PEER_OWN);
	CHECK_INT(report("us", 2, 1, SEC, 0), PEER_UNPROVEN);
	CHECK(!advice.same); /* perhaps our own previous instance */
	CHECK_INT(answer("us", 2, 2, SEC, 0), PEER_TAKEN);
	CHECK(advice.same);
}

static void leaving(void)
{
	struct peer_message m;

	begin(8);
	introduce("a", 7, SEC, 0);
	m = from("a", 7, 3, 2 * SEC);
	m.kind = PEER_LEAVE;
	CHECK_INT(judge(&m, 2 * SEC), PEER_TAKEN);
	CHECK_INT(peer_guard_heard(g, 2 * SEC, 10 * SEC), 0);
	CHECK_INT(judge(&m, 2 * SEC), PEER_OLD);
	m = from("b", 9, 3, 2 * SEC); /* a stranger that leaves is not challenged */
	m.kind = PEER_LEAVE;
	CHECK_INT(judge(&m, 2 * SEC), PEER_UNPROVEN);
	CHECK(!advice.ask);
}

static void crowded(void)
{
	begin(3);
	introduce("a", 1, SEC, 0);
	introduce("b", 2, SEC, 0);
	CHECK_INT(report("c", 3, 1, SEC, 0), PEER_UNPROVEN);
	CHECK_INT(report("d", 4, 1, 2 * SEC, 0), PEER_UNPROVEN); /* replaces c */
	CHECK_INT(answer("d", 4, 2, 2 * SEC, 0), PEER_TAKEN);
	CHECK_INT(report("e", 5, 1, 3 * SEC, 0), PEER_CROWD); /* all are alive */
	CHECK(!advice.ask);
	CHECK_INT(report("a", 1, 3, 50 * SEC, 0), PEER_TAKEN);
	CHECK_INT(report("e", 5, 2, 70 * SEC, 0), PEER_UNPROVEN); /* b is long silent */
	CHECK(advice.ask);
	CHECK_INT(report("a", 1, 4, 71 * SEC, 0), PEER_TAKEN);
	CHECK_INT(report("d", 4, 3, 71 * SEC, 0), PEER_TAKEN);
	/* A dropped sender is new again: its replays are not taken either. */
	CHECK_INT(report("b", 2, 2, 71 * SEC, 0), PEER_UNPROVEN);
}

/* The number of challenges and answers per second is bounded. */
static void talk_is_bounded(void)
{
	struct peer_message m = from("a", 7, 1, 0);
	unsigned answered = 0, asked = 0;

	begin(4096);
	m.kind = PEER_CHALLENGE;
	for (int i = 0; i < 3 * PEER_GUARD_TALK; i++)
		answered += judge(&m, 10 * SEC) == PEER_TAKEN;
	CHECK_INT(answered, PEER_GUARD_TALK);
	for (int i = 0; i < 2000; i++) {
		report("a", 100 + (uint64_t)i, 1, 10 * SEC, 0);
		asked += advice.ask;
	}
	CHECK_INT(asked, 0);
	CHECK_INT(judge(&m, 11 * SEC), PEER_TAKEN);
	m.instance = 1; /* our own message, replayed to us */
	strcpy(m.name, "us");
	CHECK_INT(judge(&m, 11 * SEC), PEER_OWN);
}

static void other_kinds(void)
{
	struct peer_message m = from("a", 7, 1, 0);

	begin(8);
	m.kind = PEER_BLOCK;
	CHECK_INT(judge(&m, SEC), PEER_BROKEN);
	m.kind = PEER_HEADER;
	CHECK_INT(judge(&m, SEC), PEER_BROKEN);
}

/* 50 hosts over a network that loses, duplicates and reorders messages, and a forger that replays
 * all of them: no message is taken twice or after a newer one, and every host is heard. */
static void rough_network(void)
{
	enum { HOSTS = 50, ROUNDS = 200, KEPT = 4096 };
	static struct peer_message kept[KEPT];
	static uint64_t last[HOSTS], taken[HOSTS], sequence[HOSTS];
	struct rng r;
	unsigned n = 0;

	rng_init(&r, 1, "rough");
	begin(HOSTS);
	for (int round = 1; round <= ROUNDS; round++) {
		weir_time now = round * 2 * SEC;

		for (int h = 0; h < HOSTS; h++) {
			char name[16];

			snprintf(name, sizeof(name), "h%d", h);
			kept[n++ % KEPT] = from(name, (uint64_t)h + 10, ++sequence[h], now + h);
		}
		for (int i = 0; i < 3 * HOSTS; i++) {
			struct peer_message m = kept[rng_below(&r, n < KEPT ? n : KEPT)];
			unsigned h = (unsigned)m.instance - 10;

			if (judge(&m, now) == PEER_TAKEN) {
				CHECK(m.sequence > last[h]);
				CHECK(now - m.sent <= 5 * SEC);
				last[h] = m.sequence;
				taken[h]++;
			}
			if (!advice.ask || rng_below(&r, 5) == 0)
				continue;
			m.sequence = ++sequence[h];
			m.kind = PEER_ANSWER;
			m.sent = now + h;
			memcpy(m.nonce, nonce, PEER_NONCE);
			CHECK_INT(judge(&m, now), PEER_TAKEN);
			last[h] = m.sequence;
		}
	}
	for (int h = 0; h < HOSTS; h++)
		CHECK(taken[h] > 5);
}

int main(void)
{
	RUN(proves_first);
	RUN(one_question_at_a_time);
	RUN(answers_must_fit);
	RUN(doubled_and_overtaken);
	RUN(played_again);
	RUN(held_up);
	RUN(clock_stood_still);
	RUN(clocks_drift);
	RUN(two_of_one_name);
	RUN(restart_is_not_two);
	RUN(another_host_has_our_name);
	RUN(leaving);
	RUN(crowded);
	RUN(talk_is_bounded);
	RUN(other_kinds);
	RUN(rough_network);
	peer_guard_free(g);
	return 0;
}
