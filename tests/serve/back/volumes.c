/* SPDX-License-Identifier: BSD-3-Clause */
/* Several back ends behind one gate: each request reaches the volume of its slot, and volumes come and go. */
#include "serve/back-rig.h"
#include "serve/back/volumes.h"

#define K 1024
#define M (1024 * K)

/* ---- a volume that keeps its requests until they are released */

struct slow {
	struct back back; /* first */
	struct back_io *inside[16];
	unsigned n, flushes;
	int flush_error;
	bool freed;
};

static int slow_start(struct back *b)
{
	return 0;
}

static void slow_submit(struct back *b, struct back_io *ios)
{
	struct slow *s = (struct slow *)b;
	struct back_io *next;

	for (struct back_io *io = ios; io; io = next) {
		next = io->next;
		if (io->op != BACK_FLUSH) {
			s->inside[s->n++] = io;
			continue;
		}
		s->flushes++;
		io->error = s->flush_error;
		b->done(b->done_arg, io);
	}
}

static void slow_free(struct back *b)
{
	((struct slow *)b)->freed = true;
}

static const struct back_ops slow_ops = {
	.name = "slow", .start = slow_start, .submit = slow_submit, .free = slow_free};

static void slow_release(struct slow *s)
{
	while (s->n) {
		struct back_io *io = s->inside[--s->n];

		io->error = 0;
		s->back.done(s->back.done_arg, io);
	}
}

/* ---- the whole */

struct gone {
	int n, error;
	struct loop *loop;
};

static void gone(void *arg, int error)
{
	struct gone *g = arg;

	g->n++;
	g->error = error;
	loop_stop(g->loop);
}

static void open_all(struct rig *r)
{
	*r = (struct rig){0};
	CHECK_INT(loop_new(&r->loop), 0);
	CHECK_INT(back_volumes_new(r->loop, &r->back), 0);
	r->back->done = rig_done;
	r->back->done_arg = r;
	CHECK_INT(r->back->ops->start(r->back), 0);
}

static uint32_t put(struct rig *r, struct back *volume, struct gone *g)
{
	struct back_volume_calls calls = {.gone = g ? gone : NULL, .arg = g};
	uint32_t slot;

	if (g)
		g->loop = r->loop;
	CHECK_INT(back_volumes_reserve(r->back, &slot), 0);
	CHECK_INT(back_volumes_add(r->back, slot, volume, &calls), 0);
	return slot;
}

static uint32_t put_memory(struct rig *r, const char *name, struct gone *g)
{
	struct back_config config = {.loop = r->loop};
	struct back *volume;
	struct weir_err err;

	CHECK_INT(back_open(name, &config, &volume, &err), 0);
	return put(r, volume, g);
}

static void test_each_request_reaches_its_volume(void)
{
	struct rig r;
	uint32_t a, b;

	open_all(&r);
	a = put_memory(&r, "memory:1M", NULL);
	b = put_memory(&r, "memory:2M", NULL);
	CHECK(a != b);
	CHECK_INT(back_at(r.back, back_volumes_offset(b) + 5)->info.size, 2 * M);
	CHECK_INT(rig_fill(&r, 0, back_volumes_offset(a) + 4096, 8192, 1), 0);
	CHECK_INT(rig_fill(&r, 0, back_volumes_offset(b) + 4096, 8192, 2), 0);
	rig_is(&r, back_volumes_offset(a) + 4096, 8192, 1);
	rig_is(&r, back_volumes_offset(b) + 4096, 8192, 2);
	rig_is(&r, back_volumes_offset(b), 4096, 0);
	CHECK_INT(rig_fill(&r, 0, back_volumes_offset(b + 1), 512, 3), -EIO);
	CHECK_INT(rig_fill(&r, 0, UINT64_MAX - 511, 512, 3), -EIO);
	CHECK(!back_at(r.back, back_volumes_offset(b + 1)));
	rig_close(&r);
}

static void test_a_batch_keeps_the_order_of_each_volume(void)
{
	uint8_t data[2][512] = {{1}, {2}}, seen[512];
	struct back_io io[8];
	struct rig r;
	uint32_t slot[2];

	open_all(&r);
	slot[0] = put_memory(&r, "memory:1M", NULL);
	slot[1] = put_memory(&r, "memory:1M", NULL);
	for (int i = 0; i < 8; i++) /* writes of 1 and 2 to each, by turns: the later write stays */
		io[i] = (struct back_io){.op = BACK_WRITE,
			.offset = back_volumes_offset(slot[i % 2]),
			.length = 512,
			.data = data[i / 2 % 2],
			.next = i < 7 ? &io[i + 1] : NULL};
	rig_run(&r, io);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(rig_do(&r, BACK_READ, 0, back_volumes_offset(slot[i]), 512, seen), 0);
		CHECK_INT(seen[0], 2);
	}
	rig_close(&r);
}

static void test_a_removed_volume_leaves_after_its_last_request(void)
{
	struct slow s = {.back = {.ops = &slow_ops, .info = {.size = M, .can_flush = true}}};
	struct gone g = {0};
	struct back_io io = {.op = BACK_READ, .length = 512}, late = io;
	struct rig r;
	uint32_t slot;

	open_all(&r);
	slot = put(&r, &s.back, &g);
	io.offset = late.offset = back_volumes_offset(slot);
	r.inside = 1;
	back_submit(r.back, &io);
	back_volumes_remove(r.back, slot);
	CHECK(!s.freed && !s.flushes && !g.n);
	r.inside = 2; /* a request that comes later is refused */
	back_submit(r.back, &late);
	CHECK_INT(late.error, -EIO);
	CHECK_INT(r.inside, 1);
	slow_release(&s);
	CHECK_INT(r.inside, 0);
	CHECK_INT(s.flushes, 1);
	CHECK(!s.freed); /* it is freed in the turn, not inside its own call */
	CHECK_INT(loop_run(r.loop), 0);
	CHECK(s.freed);
	CHECK_INT(g.n, 1);
	CHECK_INT(g.error, 0);
	rig_close(&r);
}

static void test_a_failed_last_flush_is_reported(void)
{
	struct slow s = {.back = {.ops = &slow_ops, .info = {.size = M, .can_flush = true}},
		.flush_error = -EIO};
	struct gone g = {0};
	struct rig r;

	open_all(&r);
	back_volumes_remove(r.back, put(&r, &s.back, &g));
	CHECK_INT(loop_run(r.loop), 0);
	CHECK_INT(g.error, -EIO);
	rig_close(&r);
}

static void test_a_flush_of_everything_reaches_every_volume(void)
{
	struct slow s[3] = {{.flushes = 0}};
	struct rig r;
	uint32_t slot = 0;

	open_all(&r);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0); /* there is none */
	for (int i = 0; i < 3; i++) {
		s[i].back =
			(struct back){.ops = &slow_ops, .info = {.size = M, .can_flush = i != 1}};
		slot = put(&r, &s[i].back, NULL);
	}
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK_INT(s[0].flushes, 1);
	CHECK_INT(s[1].flushes, 0);
	CHECK_INT(s[2].flushes, 1);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, back_volumes_offset(slot), M, NULL), 0);
	CHECK_INT(s[0].flushes, 1);
	CHECK_INT(s[2].flushes, 2);
	s[0].flush_error = -ENOSPC;
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), -ENOSPC);
	rig_close(&r);
}

/* A client in its handshake may have the offset of a volume that was removed a moment ago. */
static void test_slots_are_reused_late(void)
{
	uint32_t first, slot = 0;
	struct rig r;

	open_all(&r);
	CHECK_INT(back_volumes_reserve(r.back, &first), 0);
	back_volumes_remove(r.back, first);
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(back_volumes_reserve(r.back, &slot), 0);
		CHECK(slot != first);
		back_volumes_remove(r.back, slot);
	}
	rig_close(&r);
}

static void test_there_is_room_for_65536(void)
{
	struct rig r;
	uint32_t slot;

	open_all(&r);
	for (unsigned i = 0; i < BACK_VOLUMES_MOST; i++)
		CHECK_INT(back_volumes_reserve(r.back, &slot), 0);
	CHECK_INT(back_volumes_reserve(r.back, &slot), -ENOSPC);
	back_volumes_remove(r.back, 4711);
	CHECK_INT(back_volumes_reserve(r.back, &slot), 0);
	CHECK_INT(slot, 4711);
	rig_close(&r);
}

static void test_the_worst_state_counts(void)
{
	struct slow s[2] = {
		{.back = {.ops = &slow_ops, .lost = 2}}, {.back = {.ops = &slow_ops, .lost = 3}}};
	struct rig r;

	open_all(&r);
	put(&r, &s[0].back, NULL);
	put(&r, &s[1].back, NULL);
	back_look(r.back);
	CHECK_INT(r.back->state, BACK_UP);
	CHECK_INT(r.back->lost, 5);
	s[1].back.state = BACK_LOST;
	s[1].back.trouble = "a FLUSH failed";
	back_look(r.back);
	CHECK_INT(r.back->state, BACK_LOST);
	CHECK_STR(r.back->trouble, "a FLUSH failed");
	rig_close(&r);
}

int main(void)
{
	RUN(test_each_request_reaches_its_volume);
	RUN(test_a_batch_keeps_the_order_of_each_volume);
	RUN(test_a_removed_volume_leaves_after_its_last_request);
	RUN(test_a_failed_last_flush_is_reported);
	RUN(test_a_flush_of_everything_reaches_every_volume);
	RUN(test_slots_are_reused_late);
	RUN(test_there_is_room_for_65536);
	RUN(test_the_worst_state_counts);
	return 0;
}
