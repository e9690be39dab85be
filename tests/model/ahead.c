/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead: detection of streams, contents of chunks, waiters. */
#include "model/ahead.h"
#include "test.h"

static void a_run_makes_a_stream(void)
{
	struct ahead a;

	CHECK_INT(ahead_init(&a, 4, 3), 0);
	CHECK(!ahead_follow(&a, 1000, 100));
	CHECK(!ahead_follow(&a, 1100, 100));
	CHECK(!ahead_follow(&a, 1200, 50));
	CHECK(ahead_follow(&a, 1250, 100));  /* after three in a row */
	CHECK(!ahead_follow(&a, 1300, 100)); /* not where it ended */
	CHECK(ahead_follow(&a, 1350, 100));
	ahead_free(&a);
}

/* Random IOs in between evict each other, not the stream. */
static void random_ios_do_not_displace_it(void)
{
	struct ahead_stream *s = NULL;
	uint64_t at = 0;
	struct ahead a;
	struct rng r;
	int lost = 0;

	CHECK_INT(ahead_init(&a, 8, 2), 0);
	rng_init(&r, 1, "random");
	for (int i = 0; i < 1000; i++, at += 4096) {
		struct ahead_stream *now = ahead_follow(&a, at, 4096);

		lost += i > 2 && now != s;
		s = now;
		for (int j = 0; j < (i < 3 ? 1 : 20); j++)
			CHECK(!ahead_follow(&a, rng_u64(&r) | 1, 512));
	}
	CHECK_INT(lost, 0);
	ahead_free(&a);
}

static void chunks_come_and_wake(void)
{
	struct device_io waiters[3];
	struct ahead_stream *s;
	struct ahead_chunk *c;
	struct ahead a;

	CHECK_INT(ahead_init(&a, 1, 1), 0);
	CHECK(!ahead_follow(&a, 0, 100));
	s = ahead_follow(&a, 100, 100);
	CHECK(s != NULL);
	CHECK(!ahead_find(s, 0, 200));
	c = ahead_ask(s, 0, 200);
	CHECK(c && c->pending);
	CHECK_INT(s->through, 1);
	CHECK(ahead_find(s, 0, 200) == c && ahead_find(s, 0, 300) == c);
	CHECK(!ahead_find(s, 0, 199)); /* before its first byte */
	CHECK(!ahead_find(s, AHEAD_CHUNKS, 200));
	CHECK(!ahead_ask(s, AHEAD_CHUNKS, 0)); /* its slot is being read */
	CHECK(!ahead_follow(&a, 5000, 1));     /* and the stream may not be evicted */
	CHECK(ahead_follow(&a, 200, 100) == s);
	for (int i = 0; i < 3; i++)
		ahead_wait(c, &waiters[i]);
	CHECK(ahead_come(&a, c) == &waiters[0]);
	CHECK(waiters[0].next == &waiters[1] && waiters[1].next == &waiters[2]);
	CHECK(!waiters[2].next);
	CHECK(!c->pending && ahead_find(s, 0, 250) == c);
	CHECK(ahead_ask(s, AHEAD_CHUNKS, 0) == c);
	CHECK(!ahead_find(s, 0, 250));
	CHECK(ahead_come(&a, c) == NULL);
	/* Now the stream may be evicted, with its chunks. */
	CHECK(!ahead_follow(&a, 5000, 1));
	CHECK(ahead_follow(&a, 5001, 1) == s);
	CHECK(!ahead_find(s, AHEAD_CHUNKS, 10));
	ahead_free(&a);
}

int main(void)
{
	RUN(a_run_makes_a_stream);
	RUN(random_ios_do_not_displace_it);
	RUN(chunks_come_and_wake);
	return 0;
}
