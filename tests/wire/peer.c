/* SPDX-License-Identifier: BSD-3-Clause */
/* peer: messages read back as written, the layout is fixed, and each kind of invalid message gets
 * its verdict. */
#include "test.h"
#include "wire/peer.h"
#include "wire/bytes.h"
#include <errno.h>

static uint8_t bytes[PEER_MAX + PEER_REPORT_SIZE + PEER_SEAL];

static struct peer_message example(unsigned reports)
{
	struct peer_message m = {.kind = PEER_REPORT,
		.cluster = peer_hash("prod"),
		.instance = 0x1122334455667788,
		.sequence = 42,
		.sent = 7 * WEIR_SEC,
		.name = "host-1",
		.n_reports = reports};

	for (unsigned i = 0; i < reports; i++)
		m.reports[i] = (struct peer_report){.resource = peer_hash("array1") + i,
			.shares = 6,
			.beta = 0.75,
			.window = 12.5,
			.inside = 11.25,
			.latency = 25e6,
			.ios = 1600,
			.bytes = 2.5e7,
			.threshold = 24e6,
			.period = 2 * WEIR_SEC,
			.flags = 5};
	return m;
}

/* Look and read, as if a seal followed the message. */
static enum peer_verdict look_and_read(size_t n, struct peer_message *ret)
{
	size_t length;
	enum peer_verdict v = peer_look(bytes, n + PEER_SEAL, peer_hash("prod"), &length);

	if (v != PEER_TAKEN)
		return v;
	CHECK_INT(length, n);
	return peer_read(bytes, length, ret);
}

static void comes_back(void)
{
	for (unsigned n = 0; n <= PEER_REPORTS_MAX; n++) {
		struct peer_message m = example(n), got;
		size_t length = peer_write(bytes, &m);

		CHECK_INT(length, PEER_HEAD + n * PEER_REPORT_SIZE);
		CHECK_INT(look_and_read(length, &got), PEER_TAKEN);
		CHECK_INT(got.kind, m.kind);
		CHECK(got.instance == m.instance && got.sequence == m.sequence);
		CHECK(got.cluster == m.cluster && got.sent == m.sent);
		CHECK_STR(got.name, m.name);
		CHECK_INT(got.n_reports, n);
		for (unsigned i = 0; i < n; i++)
			CHECK(memcmp(&got.reports[i], &m.reports[i], sizeof(m.reports[i])) == 0);
	}
}

static void longest_fits_everywhere(void)
{
	struct peer_message m = example(PEER_REPORTS_MAX), got;

	memset(m.name, 'x', PEER_NAME_MAX);
	CHECK_INT(peer_write(bytes, &m), PEER_HEAD + PEER_REPORTS_MAX * PEER_REPORT_SIZE);
	/* IPv6's least MTU without its headers */
	CHECK(PEER_HEAD + PEER_REPORTS_MAX * PEER_REPORT_SIZE + PEER_SEAL <= 1232);
	CHECK_INT(look_and_read(PEER_HEAD + PEER_REPORTS_MAX * PEER_REPORT_SIZE, &got), PEER_TAKEN);
	CHECK_INT(strlen(got.name), PEER_NAME_MAX);
}

static void words(void)
{
	struct peer_message m = example(0), got;

	for (unsigned n = 0; n <= PEER_WORDS_MAX; n++) {
		m.kind = n % 2 ? PEER_USAGE : PEER_FEEDBACK;
		m.n_reports = n;
		for (unsigned i = 0; i < n; i++)
			m.words[i] = UINT64_C(0x123456789abcdef) * (i + 1);
		CHECK_INT(peer_write(bytes, &m), PEER_HEAD + 8 * n);
		CHECK_INT(look_and_read(PEER_HEAD + 8 * n, &got), PEER_TAKEN);
		CHECK(got.kind == m.kind && got.n_reports == n);
		CHECK(memcmp(got.words, m.words, n * 8) == 0);
	}
	CHECK(PEER_MAX + PEER_SEAL <= 1500 - 40 - 8); /* Ethernet's MTU without IPv6 and UDP */
	bytes_put16(bytes + 122, 16);                 /* words of another size */
	CHECK_INT(look_and_read(PEER_MAX, &got), PEER_BROKEN);
	bytes_put16(bytes + 122, 8);
	bytes_put16(bytes + 120, PEER_WORDS_MAX - 1);
	CHECK_INT(look_and_read(PEER_MAX, &got), PEER_BROKEN);
	bytes_put16(bytes + 120, PEER_WORDS_MAX);
	bytes[5] = PEER_REPORT; /* as reports they are too many */
	CHECK_INT(look_and_read(PEER_MAX, &got), PEER_BROKEN);
}

/* Hosts of two releases must interoperate: the offsets never change. */
static void layout_stays(void)
{
	struct peer_message m = example(2);

	memset(m.nonce, 0xab, PEER_NONCE);
	peer_write(bytes, &m);
	CHECK(memcmp(bytes, "WEIR\x01\x01\x01\x30", 8) == 0); /* 128 + 2 × 88 = 0x130 */
	CHECK(bytes_get64(bytes + 8) == peer_hash("prod"));
	CHECK(bytes_get64(bytes + 16) == 0x1122334455667788);
	CHECK_INT(bytes_get64(bytes + 24), 42);
	CHECK_INT(bytes_get64(bytes + 32), 7 * WEIR_SEC);
	CHECK(bytes[40] == 0xab && bytes[55] == 0xab);
	CHECK_STR((char *)bytes + 56, "host-1");
	CHECK(memcmp(bytes + 120, "\0\2\0\x58\0\0\0\0", 8) == 0);
	CHECK(bytes_get64(bytes + 128 + 88) == peer_hash("array1") + 1);
	CHECK(bytes_get64(bytes + 128 + 8) == 0x4018000000000000);  /* 6.0 */
	CHECK(bytes_get64(bytes + 128 + 16) == 0x3fe8000000000000); /* 0.75 */
	CHECK_INT(bytes_get64(bytes + 128 + 80), 5);
	CHECK(peer_hash("prod") == UINT64_C(0xed7742f22c07041c));
}

/* A reader skips fields that a later release appends to a report. */
static void longer_reports(void)
{
	struct peer_message m = example(2), got;
	size_t stride = PEER_REPORT_SIZE + 16, n = PEER_HEAD + 2 * stride;

	peer_write(bytes, &m);
	memmove(bytes + PEER_HEAD + stride, bytes + PEER_HEAD + PEER_REPORT_SIZE, PEER_REPORT_SIZE);
	memset(bytes + PEER_HEAD + PEER_REPORT_SIZE, 0xff, 16);
	memset(bytes + PEER_HEAD + stride + PEER_REPORT_SIZE, 0xff, 16);
	bytes_put16(bytes + 6, (uint16_t)n);
	bytes_put16(bytes + 122, (uint16_t)stride);
	bytes_put32(bytes + 124, 0xffffffff);
	CHECK_INT(look_and_read(n, &got), PEER_TAKEN);
	CHECK(memcmp(got.reports, m.reports, 2 * sizeof(m.reports[0])) == 0);
}

static void looked_at_first(void)
{
	struct peer_message m = example(1);
	size_t n = peer_write(bytes, &m), length = 99;
	uint64_t c = m.cluster;

	for (size_t cut = 0; cut < n + PEER_SEAL; cut++)
		CHECK_INT(peer_look(bytes, cut, c, &length), PEER_NOISE);
	CHECK_INT(length, 99); /* set only when taken */
	CHECK_INT(peer_look(bytes, n + PEER_SEAL, c + 1, &length), PEER_CLUSTER);
	bytes[4] = 2;
	CHECK_INT(peer_look(bytes, n + PEER_SEAL, c, &length), PEER_VERSION);
	bytes[0] = 'w';
	CHECK_INT(peer_look(bytes, n + PEER_SEAL, c, &length), PEER_NOISE);
	peer_write(bytes, &m);
	bytes_put16(bytes + 6, PEER_HEAD - 1);
	CHECK_INT(peer_look(bytes, n + PEER_SEAL, c, &length), PEER_NOISE);
	CHECK_INT(length, 99);
}

/* Replace one byte or number of a valid message, and read it. */
static enum peer_verdict with(size_t at, const char *what, size_t n_what)
{
	struct peer_message m = example(1), got;
	size_t n = peer_write(bytes, &m);

	memcpy(bytes + at, what, n_what);
	return peer_read(bytes, n, &got);
}

static void broken_ones(void)
{
	static const char not_a_number[] = "\x7f\xf8\0\0\0\0\0\0",
			  infinite[] = "\x7f\xf0\0\0\0\0\0\0", negative[] = "\xbf\xf0\0\0\0\0\0\0";

	CHECK_INT(with(0, "", 0), PEER_TAKEN);
	CHECK_INT(with(5, "\0", 1), PEER_BROKEN);                /* kind */
	CHECK_INT(with(5, "\x07", 1), PEER_BROKEN);              /* … */
	CHECK_INT(with(16, "\0\0\0\0\0\0\0\0", 8), PEER_BROKEN); /* instance */
	CHECK_INT(with(24, "\0\0\0\0\0\0\0\0", 8), PEER_BROKEN); /* sequence */
	CHECK_INT(with(32, "\x80", 1), PEER_BROKEN);             /* sent */
	CHECK_INT(with(56, "\0", 1), PEER_BROKEN);               /* no name */
	CHECK_INT(with(57, "\n", 1), PEER_BROKEN);               /* would spoil a log */
	CHECK_INT(with(57, "\x7f", 1), PEER_BROKEN);
	CHECK_INT(with(70, "x", 1), PEER_BROKEN);     /* bytes after the name */
	CHECK_INT(with(119, "x", 1), PEER_BROKEN);    /* an unterminated name */
	CHECK_INT(with(120, "\0\2", 2), PEER_BROKEN); /* a count beyond the data */
	CHECK_INT(with(120, "\0\0", 2), PEER_BROKEN); /* fewer */
	CHECK_INT(with(120, "\xff\xff", 2), PEER_BROKEN);
	CHECK_INT(with(122, "\0\x57", 2), PEER_BROKEN); /* too short */
	CHECK_INT(with(122, "\0\0", 2), PEER_BROKEN);
	for (size_t at = 8; at <= 64; at += 8) {
		CHECK_INT(with(128 + at, not_a_number, 8), PEER_BROKEN);
		CHECK_INT(with(128 + at, infinite, 8), PEER_BROKEN);
		CHECK_INT(with(128 + at, negative, 8), PEER_BROKEN);
	}
	CHECK_INT(with(128 + 72, "\xff", 1), PEER_BROKEN); /* period */
	CHECK_INT(with(128, "\xff", 1), PEER_TAKEN);       /* any resource, … */
	CHECK_INT(with(128 + 80, "\xff", 1), PEER_TAKEN);  /* … any flags */
}

static void many_reports(void)
{
	struct peer_message m = example(PEER_REPORTS_MAX), got;
	size_t n = peer_write(bytes, &m);

	bytes_put16(bytes + 120, PEER_REPORTS_MAX + 1);
	bytes_put16(bytes + 6, (uint16_t)(n + PEER_REPORT_SIZE));
	CHECK_INT(peer_read(bytes, n + PEER_REPORT_SIZE, &got), PEER_BROKEN);
}

static void names(void)
{
	char longest[PEER_NAME_MAX + 2];

	memset(longest, 'a', sizeof(longest));
	longest[PEER_NAME_MAX] = 0;
	CHECK_INT(peer_name_check(longest), 0);
	longest[PEER_NAME_MAX] = 'a';
	longest[PEER_NAME_MAX + 1] = 0;
	CHECK_INT(peer_name_check(longest), -EINVAL);
	CHECK_INT(peer_name_check(""), -EINVAL);
	CHECK_INT(peer_name_check("a b"), -EINVAL);
	CHECK_INT(peer_name_check("h\xc3\xb6st"), 0); /* UTF-8 is fine */
	for (int v = 0; v < PEER_VERDICTS; v++)
		CHECK(strlen(peer_verdict_name((enum peer_verdict)v)) > 2);
	CHECK_STR(peer_verdict_name(PEER_FORGED), "forged");
	CHECK_STR(peer_verdict_name(PEER_CROWD), "crowd");
}

int main(void)
{
	RUN(comes_back);
	RUN(longest_fits_everywhere);
	RUN(words);
	RUN(layout_stays);
	RUN(longer_reports);
	RUN(looked_at_first);
	RUN(broken_ones);
	RUN(many_reports);
	RUN(names);
	return 0;
}
