/* SPDX-License-Identifier: BSD-3-Clause */
/* front: client.waiting counts each request without a reply once, however many pieces it has. */
#include "serve/front-rig.h"

#define MIB   (1u << 20)
#define PIECE (256u << 10)

static uint8_t buffer[2 * MIB];

static void count_one(void *arg, weir_time received)
{
	CHECK(received > 0);
	++*(int *)arg;
}

static int count_waiting(void *arg, struct worker *w)
{
	int n = 0;

	for (const struct client *c = ((struct rig *)arg)->resource->clients; c; c = c->next)
		c->waiting(c, count_one, &n);
	return n;
}

static int waiting(struct rig *r)
{
	return worker_call(&r->worker, count_waiting, r);
}

static void wait_inside(struct rig *r, int n)
{
	while (worker_call(&r->worker, held_count, r->held) < n)
		rig_settle(r);
}

/* Finish the request of n pieces that waits; its reply has `bytes`. */
static void finish(struct rig *r, int fd, int n, size_t bytes)
{
	wait_inside(r, n);
	CHECK_INT(waiting(r), 1);
	for (; n > 1; n--) {
		worker_call(&r->worker, held_release_one, r->held);
		rig_settle(r);
		CHECK_INT(waiting(r), 1);
	}
	worker_call(&r->worker, held_release_one, r->held);
	get_all(fd, buffer, bytes);
	rig_settle(r);
	CHECK_INT(waiting(r), 0);
}

static void test_once(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	CHECK_INT(waiting(&r), 0);
	ask(fd, NBD_READ, 0, 1, 0, 4096);
	finish(&r, fd, 1, NBD_DATA_SIZE + 4096);
	ask(fd, NBD_READ, 0, 2, 0, MIB); /* answered piece by piece */
	finish(&r, fd, 4, 4 * (NBD_DATA_SIZE + PIECE));
	ask(fd, NBD_READ, NBD_DF, 3, 0, MIB);
	finish(&r, fd, 4, NBD_DATA_SIZE + MIB);
	ask(fd, NBD_FLUSH, 0, 4, 0, 0);
	finish(&r, fd, 1, NBD_SIMPLE_SIZE);
	/* A write counts when it has arrived. */
	ask(fd, NBD_WRITE, 0, 5, 0, MIB);
	put_all(fd, buffer, 3 * PIECE);
	wait_inside(&r, 3);
	CHECK_INT(waiting(&r), 0);
	put_all(fd, buffer, PIECE);
	finish(&r, fd, 4, NBD_SIMPLE_SIZE);
	for (uint64_t i = 0; i < 20; i++)
		ask(fd, NBD_READ, 0, i, 0, 4096);
	wait_inside(&r, 20);
	CHECK_INT(waiting(&r), 20);
	close(fd);
	rig_free(&r);
}

/* A reply that the client does not read still waits. */
static void test_unread(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	worker_call(&r.worker, held_open, r.held);
	fd = rig_connect(&r, (struct rig_options){.sndbuf = 4096});
	ask(fd, NBD_READ, 0, 1, 0, 2 * MIB);
	while (r.resource->served < 8)
		rig_settle(&r);
	CHECK_INT(waiting(&r), 1);
	want_simple(fd, 1, 0);
	get_all(fd, buffer, 2 * MIB);
	rig_settle(&r);
	CHECK_INT(waiting(&r), 0);
	close(fd);
	rig_free(&r);
}

int main(void)
{
	RUN(test_once);
	RUN(test_unread);
	return 0;
}
