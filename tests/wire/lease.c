/* SPDX-License-Identifier: BSD-3-Clause */
/* lease: a written message reads back the same; truncated, altered and foreign frames are
 * refused. */
#include "wire/lease.h"
#include "wire/bytes.h"
#include "test.h"

#define CLUSTER 7

static uint8_t frame[1 << 16];

static struct lease_message head(enum lease_kind kind)
{
	struct lease_message m = {.kind = kind,
		.cluster = CLUSTER,
		.instance = 11,
		.sequence = 3,
		.sent = 5 * WEIR_SEC,
		.nonce = {1, 2, 3},
		.name = "s1"};

	return m;
}

static const struct lease_grant GRANT = {.generation = 4,
	.base = 2,
	.heard = 9,
	.echo = 77,
	.left = 4 * WEIR_SEC,
	.togo = 3 * WEIR_SEC,
	.period = 12,
	.length = 5 * WEIR_SEC,
	.interval = WEIR_SEC,
	.hold = 4,
	.gap = 2};

static enum peer_verdict again(const struct lease_message *m, struct lease_message *back)
{
	size_t n = lease_write(frame, m), length;

	CHECK(n + PEER_SEAL <= LEASE_FRAME(m->n));
	CHECK_INT(lease_look(frame, CLUSTER, &length), PEER_TAKEN);
	CHECK_INT(length, n);
	return lease_read(frame, n, back);
}

static void rack_goes_round(void)
{
	uint8_t words[16] = {1, 2, 3, [15] = 9};
	struct lease_message m = head(LEASE_USAGE), back = {0};

	m.rack = (struct lease_rack){"r4", 10 * WEIR_SEC};
	m.bytes = words;
	m.n = sizeof(words);
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK_STR(back.rack.name, "r4");
	CHECK(back.rack.span == m.rack.span && back.n == m.n && !memcmp(back.bytes, words, m.n));
	m.kind = LEASE_LIMITS;
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	m.n = 15; /* no whole word */
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m.n = 16;
	m.rack.span = 0;
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m.rack = (struct lease_rack){"", WEIR_SEC};
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	lease_message_free(&back);
}

static void report_goes_round(void)
{
	struct lease_demand d[] = {{.bucket = UINT64_MAX,
					   .used = 300,
					   .queue = 0,
					   .arriving = LEASE_TOKENS_MAX,
					   .serving = 127,
					   .closed = true,
					   .cap = LEASE_NO_LIMIT,
					   .limit = LEASE_NO_LIMIT},
		{.bucket = 1,
			.used = 128,
			.holds = true,
			.cap = 0,
			.reserved = 5,
			.limit = LEASE_NO_LIMIT,
			.static_part = 1},
		{.bucket = 2, .holds = true, .cap = LEASE_NO_LIMIT, .limit = 16384}};
	struct lease_message m = head(LEASE_REPORT), back = {0};

	m.report = (struct lease_report){1, 2, 3, 4, 5, 6, 7, 8, LEASE_HELD, 1, 9, 1};
	m.demands = d;
	m.n = 3;
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK_INT(back.kind, LEASE_REPORT);
	CHECK(back.instance == 11 && back.sequence == 3 && back.sent == 5 * WEIR_SEC);
	CHECK_STR(back.name, "s1");
	CHECK(memcmp(back.nonce, m.nonce, PEER_NONCE) == 0);
	CHECK(memcmp(&back.report, &m.report, sizeof(m.report)) == 0);
	CHECK_INT(back.n, 3);
	for (int i = 0; i < 3; i++) {
		CHECK(back.demands[i].bucket == d[i].bucket && back.demands[i].used == d[i].used);
		CHECK(back.demands[i].arriving == d[i].arriving &&
			back.demands[i].serving == d[i].serving &&
			back.demands[i].queue == d[i].queue);
		CHECK(back.demands[i].closed == d[i].closed && back.demands[i].holds == d[i].holds);
		CHECK(back.demands[i].cap == d[i].cap && back.demands[i].limit == d[i].limit);
		CHECK(back.demands[i].reserved == d[i].reserved);
		CHECK(back.demands[i].static_part == d[i].static_part);
	}
	lease_message_free(&back);
}

static void grant_goes_round(void)
{
	struct lease_tokens t[] = {{1, 100, 200, 300, 400, true},
		{2, 0, LEASE_NO_LIMIT, 7, LEASE_NO_LIMIT, false},
		{3, 5, 6, 7, LEASE_NO_LIMIT, true}};
	struct lease_message m = head(LEASE_GRANT), back = {0};

	m.grant = GRANT;
	m.tokens = t;
	m.n = 3;
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK(memcmp(&back.grant, &GRANT, sizeof(GRANT)) == 0);
	CHECK_INT(back.n, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct lease_tokens *b = &back.tokens[i];

		CHECK(b->bucket == t[i].bucket && b->claim == t[i].claim && b->cap == t[i].cap);
		CHECK(b->reserved == t[i].reserved && b->limit == t[i].limit &&
			b->moved == t[i].moved);
	}
	m.n = 0; /* a renewal */
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK_INT(back.n, 0);
	lease_message_free(&back);
}

static void others_go_round(void)
{
	struct lease_message m = head(LEASE_ASK), back = {0};

	m.grant.generation = 9;
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK(back.kind == LEASE_ASK && back.grant.generation == 9);
	m = head(LEASE_HELLO);
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK_INT(back.kind, LEASE_HELLO);
	lease_message_free(&back);
}

/* A frame cut anywhere is refused, and so is one with extra bytes. */
static void cut_or_longer_is_refused(void)
{
	struct lease_tokens t[] = {
		{1, 100, 200, 300, 400, false}, {2, 0, LEASE_NO_LIMIT, 7, LEASE_NO_LIMIT, false}};
	struct lease_message m = head(LEASE_GRANT), back = {0};
	size_t n;

	m.grant = GRANT;
	m.tokens = t;
	m.n = 2;
	n = lease_write(frame, &m);
	for (size_t i = PEER_HEAD; i < n; i++)
		CHECK_INT(lease_read(frame, i, &back), PEER_BROKEN);
	frame[n] = 0;
	CHECK_INT(lease_read(frame, n + 1, &back), PEER_BROKEN);
	CHECK_INT(lease_read(frame, n, &back), PEER_TAKEN);
	lease_message_free(&back);
}

static void refuse_field(const struct lease_grant *g)
{
	struct lease_message m = head(LEASE_GRANT), back = {0};

	m.grant = *g;
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	lease_message_free(&back);
}

#define REFUSE(field, value)                                                                       \
	do {                                                                                       \
		struct lease_grant g_ = GRANT;                                                     \
		g_.field = (value);                                                                \
		refuse_field(&g_);                                                                 \
	} while (0)

static void nonsense_is_refused(void)
{
	struct lease_message m = head(LEASE_REPORT), back = {0};
	size_t n, length;

	REFUSE(generation, 0);
	REFUSE(period, 0);
	REFUSE(length, 0);
	REFUSE(length, INT64_MAX);
	REFUSE(interval, 0);
	REFUSE(interval, 6 * WEIR_SEC);
	REFUSE(left, 11 * WEIR_SEC);
	REFUSE(togo, -1);
	REFUSE(echo, -1);
	REFUSE(hold, 0);
	REFUSE(gap, 1 << 16);
	m.report.state = LEASE_STATES;
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m.report.state = 0;
	n = lease_write(frame, &m);
	frame[5] = LEASE_KINDS;
	CHECK_INT(lease_read(frame, n, &back), PEER_BROKEN);
	frame[5] = PEER_REPORT; /* a datagram's kind is invalid here */
	CHECK_INT(lease_read(frame, n, &back), PEER_BROKEN);
	bytes_put32(frame + 124, UINT32_MAX);
	CHECK_INT(lease_look(frame, CLUSTER, &length), PEER_NOISE);
	bytes_put32(frame + 124, 8);
	CHECK_INT(lease_look(frame, CLUSTER, &length), PEER_NOISE);
	CHECK_INT(lease_look(frame, CLUSTER + 1, &length), PEER_CLUSTER);
	frame[4]++;
	CHECK_INT(lease_look(frame, CLUSTER, &length), PEER_VERSION);
	lease_message_free(&back);
}

/* A count of entries that exceeds the bytes allocates no memory. */
static void count_is_bounded(void)
{
	struct lease_message m = head(LEASE_REPORT), back = {0};
	size_t n = lease_write(frame, &m);

	bytes_put64(frame + PEER_HEAD + LEASE_BODY - 8, LEASE_ENTRIES_MAX);
	CHECK_INT(lease_read(frame, n, &back), PEER_BROKEN);
	CHECK_INT(back.room, 0);
}

/* Numbers take seven bits a byte, and each has one encoding. */
static void numbers_have_one_form(void)
{
	struct lease_tokens t = {1, 1, LEASE_NO_LIMIT, 0, LEASE_NO_LIMIT, false};
	struct lease_message m = head(LEASE_GRANT), back = {0};
	size_t n, claim = PEER_HEAD + LEASE_BODY + 9;

	m.grant = GRANT;
	m.tokens = &t;
	m.n = 1;
	n = lease_write(frame, &m);
	CHECK_INT(n, claim + 2);
	frame[claim] = 0x81; /* 1 again, with a zero byte */
	frame[claim + 1] = 0;
	frame[claim + 2] = 0;
	CHECK_INT(lease_read(frame, n + 1, &back), PEER_BROKEN);
	frame[claim + 1] = 1; /* 129 */
	CHECK_INT(lease_read(frame, n + 1, &back), PEER_TAKEN);
	CHECK_INT(back.tokens[0].claim, 129);
	lease_message_free(&back);
}

static void plan_goes_round(void)
{
	uint8_t text[] = "{\"version\": 1}";
	struct lease_message m = head(LEASE_PLAN), back = {0};
	size_t n;

	m.plan = (struct lease_plan){3, 100, 20, {1, 2, 255}, {4, [31] = 5}};
	m.bytes = text;
	m.n = sizeof(text);
	n = lease_write(frame, &m);
	CHECK(n + PEER_SEAL == LEASE_BYTES_FRAME(m.n));
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK(back.kind == LEASE_PLAN && back.n == m.n && memcmp(back.bytes, text, m.n) == 0);
	CHECK(memcmp(&back.plan, &m.plan, sizeof(m.plan)) == 0);
	CHECK_INT(lease_read(frame, n - 1, &back), PEER_BROKEN);
	CHECK_INT(lease_read(frame, n + 1, &back), PEER_BROKEN);
	m.plan.offset = 90; /* beyond the end */
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m.plan.offset = 0;
	m.plan.length = LEASE_PLAN_MAX + 1;
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m.plan.length = 100;
	m.plan.number = 0; /* no plan has bytes */
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	m = head(LEASE_HAS);
	m.has = (struct lease_has){3, {9, [31] = 1}, 4, 65536, 2};
	m.bytes = text;
	m.n = 5;
	CHECK_INT(again(&m, &back), PEER_TAKEN);
	CHECK(memcmp(&back.has, &m.has, sizeof(m.has)) == 0 && memcmp(back.bytes, text, 5) == 0);
	m.has.offset = LEASE_PLAN_MAX + 1;
	CHECK_INT(again(&m, &back), PEER_BROKEN);
	lease_message_free(&back);
}

int main(void)
{
	RUN(rack_goes_round);
	RUN(report_goes_round);
	RUN(grant_goes_round);
	RUN(others_go_round);
	RUN(cut_or_longer_is_refused);
	RUN(nonsense_is_refused);
	RUN(count_is_bounded);
	RUN(numbers_have_one_form);
	RUN(plan_goes_round);
	return 0;
}
