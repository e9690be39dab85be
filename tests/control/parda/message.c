/* SPDX-License-Identifier: BSD-3-Clause */
/* message: a controller's report reaches its peers' controllers unchanged, through the codec
 * too. */
#include "control/parda/message.h"
#include "test.h"
#include <stddef.h>

static const struct parda_report told = {.id = 0,
	.instance = 77,
	.sequence = 5,
	.steps = 7654321,
	.shares = 1.5,
	.beta = 2.5,
	.window = 3.5,
	.inside = 4.5,
	.latency = 5.5,
	.ios = 6.5,
	.bytes = 7.5,
	.threshold = 8.5,
	.floor = 9.5};

static void check(const struct parda_report *heard)
{
	CHECK_INT(heard->id, peer_hash("h1"));
	CHECK_INT(heard->instance, told.instance);
	CHECK_INT(heard->sequence, told.sequence);
	CHECK_INT(heard->steps, told.steps);
	CHECK(heard->shares == told.shares);
	CHECK(heard->beta == told.beta);
	CHECK(heard->window == told.window);
	CHECK(heard->inside == told.inside);
	CHECK(heard->latency == told.latency);
	CHECK(heard->ios == told.ios);
	CHECK(heard->bytes == told.bytes);
	CHECK(heard->threshold == told.threshold);
	CHECK(heard->floor == told.floor);
}

static void test_through_the_codec(void)
{
	struct peer_message m = {
		.kind = PEER_REPORT, .instance = 77, .sequence = 5, .name = "h1", .n_reports = 1};
	struct peer_message read;
	uint8_t bytes[PEER_MAX];
	struct parda_report heard;

	m.reports[0] = parda_message_write(&told, 42, 0, 2 * WEIR_SEC);
	CHECK_INT(peer_read(bytes, peer_write(bytes, &m), &read), PEER_TAKEN);
	CHECK_INT(read.reports[0].resource, 42);
	CHECK_INT(read.reports[0].period, 2 * WEIR_SEC);
	heard = parda_message_read(&read, &read.reports[0]);
	check(&heard);
}

/* Two resources of a host have two ids, and each has the same id in every message. */
static void test_several_of_a_host(void)
{
	struct peer_message m = {.instance = 77, .sequence = 5, .name = "h1"};
	struct peer_report first = parda_message_write(&told, 42, 0, WEIR_SEC),
			   second = parda_message_write(&told, 42, 1, WEIR_SEC);

	CHECK_INT(parda_message_read(&m, &first).id, parda_message_id(peer_hash("h1"), 0));
	CHECK_INT(parda_message_read(&m, &second).id, parda_message_id(peer_hash("h1"), 1));
	CHECK_INT(parda_message_read(&m, &second).steps, told.steps);
	CHECK(parda_message_id(peer_hash("h1"), 0) != parda_message_id(peer_hash("h1"), 1));
	CHECK(parda_message_id(peer_hash("h1"), 1) != parda_message_id(peer_hash("h2"), 1));
	CHECK_INT(parda_message_id(peer_hash("h1"), 0), peer_hash("h1"));
}

/* Every byte of a report is carried, but for the sender's local ones and the id: this finds a
 * new field that is not encoded. */
static void test_nothing_is_forgotten(void)
{
	struct parda_report in, out;
	struct peer_message m = {.name = "h1"};
	struct peer_report wire;

	memset(&in, 0, sizeof(in));
	for (size_t i = offsetof(struct parda_report, shares); i < sizeof(in);
		i += sizeof(double)) {
		double value = (double)i;

		memcpy((char *)&in + i, &value, sizeof(value));
	}
	wire = parda_message_write(&in, 1, 0, 1);
	out = parda_message_read(&m, &wire);
	CHECK(memcmp((char *)&in + offsetof(struct parda_report, shares),
		      (char *)&out + offsetof(struct parda_report, shares),
		      sizeof(in) - offsetof(struct parda_report, shares)) == 0);
}

/* A question and its answer do not overlap with other fields. */
static void test_asks(void)
{
	struct peer_message m = {.name = "h1"};

	for (int k = 0; k < 8; k++) {
		struct parda_report r = told, out;
		struct peer_report wire;

		r.asks = k & 1;
		r.quiet = k & 2;
		r.bursts = k & 4;
		wire = parda_message_write(&r, 1, 11, 1);
		out = parda_message_read(&m, &wire);
		CHECK(out.asks == r.asks && out.quiet == r.quiet && out.bursts == r.bursts);
		CHECK_INT(out.id, parda_message_id(peer_hash("h1"), 11));
		CHECK_INT(out.steps, told.steps);
	}
}

/* Four digits of a floor are kept; an invalid floor is refused by the receiver. */
static void test_floor(void)
{
	struct peer_message m = {.name = "h1"};
	struct parda_report r = told;
	struct peer_report wire;

	for (double floor = 1e-3; floor < 1e6; floor *= 7) {
		r.floor = floor;
		wire = parda_message_write(&r, 1, 15, 1);
		CHECK_NEAR(parda_message_read(&m, &wire).floor, floor, 2e-5);
		CHECK_INT(parda_message_read(&m, &wire).steps, told.steps);
		CHECK_INT(parda_message_read(&m, &wire).id, parda_message_id(peer_hash("h1"), 15));
	}
	wire.flags = UINT64_MAX;
	CHECK(!(parda_message_read(&m, &wire).floor < 1e15));
}

int main(void)
{
	RUN(test_asks);
	RUN(test_floor);
	RUN(test_through_the_codec);
	RUN(test_several_of_a_host);
	RUN(test_nothing_is_forgotten);
	return 0;
}
