/* SPDX-License-Identifier: BSD-3-Clause */
/* front: memory, slow and broken clients, and the end of connections. */
#include "serve/front-rig.h"
#include "base/rng.h"

#define MIB (1u << 20)

static uint8_t big[34 * MIB], back_again[34 * MIB];

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 131 + seed * 7 + (i >> 9)) & 0xff);
}

static void want_data(int fd, uint64_t cookie, uint64_t offset, uint32_t length, bool last)
{
	struct nbd_reply reply = want_chunk(fd, cookie, NBD_CHUNK_DATA);
	uint8_t p[8];

	CHECK_INT(reply.flags, last ? NBD_CHUNK_DONE : 0);
	CHECK_INT(reply.length, length + 8);
	get_all(fd, p, 8);
	CHECK_INT(bytes_get64(p), offset);
	get_all(fd, back_again, length);
}

static void write_big(int fd, uint64_t cookie, uint64_t offset, uint32_t length)
{
	ask(fd, NBD_WRITE, 0, cookie, offset, length);
	put_all(fd, big, length);
	want_simple(fd, cookie, 0);
}

static void wait_inside(struct rig *r, uint32_t n)
{
	while (r->resource->inside < n)
		rig_settle(r);
	rig_settle(r);
}

/* A connection that wants more memory than its limit is read no further until it has less. */
static void test_paused(void)
{
	struct rig r;
	uint32_t inside;
	int a, b;

	rig_new(&r, NULL, held_new(), 4 * MIB);
	a = rig_connect(&r, (struct rig_options){0});
	for (uint64_t i = 0; i < 64; i++)
		ask(a, NBD_READ, 0, i, i * CHUNK_MAX, CHUNK_MAX);
	wait_inside(&r, 4);
	CHECK(r.worker.front->conns->paused);
	CHECK(chunk_held(r.worker.pool) <= 2 * MIB); /* a third, and one piece */
	/* Another one has its own part, and continues. */
	inside = r.resource->inside;
	b = rig_connect(&r, (struct rig_options){0});
	ask(b, NBD_READ, 0, 100, 512, 512);
	wait_inside(&r, inside + 1);
	worker_call(&r.worker, held_open, r.held);
	want_simple(b, 100, 0);
	get_all(b, back_again, 512);
	for (uint64_t i = 0; i < 64; i++) {
		uint8_t p[16];
		struct nbd_reply reply;

		get_all(a, p, 16);
		nbd_reply_read(p, 16, &reply);
		get_all(a, back_again, CHUNK_MAX);
		CHECK_INT(back_again[600], (reply.cookie * CHUNK_MAX + 600) >> 9 & 0xff);
	}
	CHECK(r.held->most <= 9);
	close(a);
	close(b);
	rig_free(&r);
}

/* A write larger than the memory passes in pieces. */
static void test_write_in_little_memory(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 4 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	fill(big, 16 * MIB, 9);
	write_big(fd, 1, 0, 16 * MIB);
	ask(fd, NBD_READ, 0, 2, 0, 16 * MIB);
	want_simple(fd, 2, 0);
	get_all(fd, back_again, 16 * MIB);
	CHECK(memcmp(big, back_again, 16 * MIB) == 0);
	close(fd);
	rig_free(&r);
	/* A read that must come as one and does not fit is refused; in parts it passes. */
	rig_new(&r, NULL, held_new(), 4 * MIB);
	worker_call(&r.worker, held_open, r.held);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	ask(fd, NBD_READ, NBD_DF, 3, 0, 16 * MIB);
	want_error(fd, 3, -ENOMEM);
	ask(fd, NBD_READ, 0, 4, 0, 16 * MIB);
	for (int i = 0; i < 64; i++)
		want_data(fd, 4, (uint64_t)i * CHUNK_MAX, CHUNK_MAX, i == 63);
	close(fd);
	rig_free(&r);
}

/* Many connections of one tenant that return nothing have half of the memory together, whether they
 * ask for little or for much at once, and another tenant gets what it wants of the rest. */
static void test_tenants(void)
{
	enum { N = 40 };
	struct rig r;
	uint32_t inside;
	int a[N], b;

	rig_new(&r, NULL, held_new(), 16 * MIB);
	for (int i = 0; i < N; i++) {
		a[i] = rig_connect(&r, (struct rig_options){0});
		for (uint64_t k = 0; k < 8; k++)
			ask(a[i], NBD_READ, 0, k, 0, i % 2 ? 2 * MIB : 16384);
	}
	while (chunk_held(r.worker.pool) < 4 * MIB)
		rig_settle(&r);
	for (int i = 0; i < 100; i++)
		rig_settle(&r);
	CHECK(chunk_held(r.worker.pool) <= 9 * MIB); /* half, and half of the last request */
	inside = r.resource->inside;
	b = rig_connect(&r, (struct rig_options){.tenant = 1});
	for (uint64_t k = 0; k < 8; k++)
		ask(b, NBD_READ, 0, k, 0, CHUNK_MAX);
	wait_inside(&r, inside + 8);
	worker_call(&r.worker, held_open, r.held);
	for (uint64_t k = 0; k < 8; k++) {
		uint8_t p[16];

		get_all(b, p, 16);
		get_all(b, back_again, CHUNK_MAX);
	}
	for (int i = 0; i < N; i++)
		close(a[i]);
	close(b);
	rig_free(&r);
}

/* Reads that must come as one, each half of the memory: one after the other, and each whole. */
static void test_whole_in_little_memory(void)
{
	struct rig r;
	int fd[3];

	rig_new(&r, NULL, held_new(), 16 * MIB);
	for (int i = 0; i < 3; i++) {
		fd[i] = rig_connect(&r, (struct rig_options){0});
		ask(fd[i], NBD_READ, 0, 1, 0, 8 * MIB);
	}
	wait_inside(&r, 32);
	CHECK_INT(r.resource->inside, 32);
	worker_call(&r.worker, held_open, r.held);
	for (int i = 0; i < 3; i++) {
		want_simple(fd[i], 1, 0);
		get_all(fd[i], back_again, 8 * MIB);
		for (uint32_t k = 0; k < 8 * MIB; k += 1023)
			CHECK_INT(back_again[k], k >> 9 & 0xff);
		close(fd[i]);
	}
	CHECK_INT(r.held->most, 32);
	rig_free(&r);
}

/* 1,000 inside, 1,000 more sent, and the client leaves: over and over. */
static void test_closed_in_the_middle(void)
{
	struct rig r;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	for (int round = 0; round < 20; round++) {
		int fd = rig_connect(&r, (struct rig_options){.structured = round & 1});

		for (uint64_t i = 0; i < 1000; i++)
			ask(fd, NBD_READ, 0, i, i * 512, round & 2 ? 512 : 8192);
		wait_inside(&r, round & 4 ? 1 : 1000);
		ask(fd, NBD_WRITE, 0, 1, 0, 8192); /* and a payload that never arrives */
		close(fd);
		while (r.resource->n_clients)
			rig_settle(&r);
		CHECK_INT(front_count(r.worker.front), 1);
		CHECK(r.resource->inside <= 1000);
		worker_call(&r.worker, held_release, r.held);
		rig_settle(&r);
		CHECK_INT(front_count(r.worker.front), 0);
		CHECK_INT(chunk_held(r.worker.pool), 0);
	}
	rig_free(&r);
}

/* NBD_DISC: requests inside are answered, then the connection ends. */
static void test_disconnect(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	for (uint64_t i = 0; i < 3; i++)
		ask(fd, NBD_FLUSH, 0, i, 0, 0);
	ask(fd, NBD_DISC, 0, 9, 0, 0);
	ask(fd, NBD_FLUSH, 0, 10, 0, 0);
	wait_inside(&r, 3);
	worker_call(&r.worker, held_release, r.held);
	for (int i = 2; i >= 0; i--)
		want_simple(fd, (uint64_t)i, 0);
	want_end(fd);
	close(fd);
	/* The client does not wait for the replies: the requests are done all the same. */
	fd = rig_connect(&r, (struct rig_options){0});
	for (uint64_t i = 0; i < 3; i++) {
		ask(fd, NBD_WRITE, 0, i, 0, 1);
		put_all(fd, "x", 1);
	}
	ask(fd, NBD_DISC, 0, 9, 0, 0);
	wait_inside(&r, 3);
	close(fd);
	rig_settle(&r);
	CHECK_INT(r.resource->inside, 3);
	worker_call(&r.worker, held_release, r.held);
	while (front_count(r.worker.front))
		rig_settle(&r);
	rig_free(&r);
}

static int finish_softly(void *arg, struct worker *w)
{
	front_finish(w->front, false);
	return 0;
}

/* The gateway ends: requests inside are answered, incomplete ones are not. */
static void test_finish(void)
{
	struct rig r;
	int fd, other;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	other = rig_connect(&r, (struct rig_options){0});
	ask(fd, NBD_FLUSH, 0, 1, 0, 0);
	ask(fd, NBD_WRITE, 0, 2, 0, MIB);
	put_all(fd, big, CHUNK_MAX + 1000);
	wait_inside(&r, 2);
	worker_call(&r.worker, finish_softly, NULL);
	want_end(other);
	worker_call(&r.worker, held_release, r.held);
	want_simple(fd, 2, -ESHUTDOWN);
	want_simple(fd, 1, 0);
	want_end(fd);
	close(fd);
	fd = rig_connect(&r, (struct rig_options){0});
	want_end(fd);
	close(fd);
	close(other);
	rig_free(&r);
}

/* Random bytes: the client is disconnected, and others are not affected. */
static void test_garbage(void)
{
	struct rng rng;
	struct rig r;
	int good;

	rng_init(&rng, 1, "garbage");
	rig_new(&r, NULL, NULL, 64 * MIB);
	good = rig_connect(&r, (struct rig_options){.structured = true});
	for (int i = 0; i < 200; i++) {
		int fd = rig_connect(&r, (struct rig_options){.structured = i & 1});
		uint8_t bytes[300];
		size_t n = 28 + rng_below(&rng, 270);

		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)rng_below(&rng, 256);
		if (i % 4) /* a valid magic, so that more is parsed */
			memcpy(bytes, "\x25\x60\x95\x13\0\0\0", i % 4 == 1 ? 4 : 7);
		put_all(fd, bytes, n);
		shutdown(fd, SHUT_WR);
		while (recv(fd, back_again, sizeof(back_again), 0) > 0)
			;
		close(fd);
	}
	ask(good, NBD_READ, 0, 2, 0, 512);
	want_data(good, 2, 0, 512, true);
	CHECK(atomic_load(&r.gateway.broken) >= 50);
	close(good);
	rig_free(&r);
}

/* Replies to a client that reads a byte at a time, through a small socket buffer. */
static void test_slow_reader(void)
{
	static uint8_t one[64 * (28 + 40000)], other[64 * (28 + 40000)];
	size_t n = 0;
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	for (int pass = 0; pass < 2; pass++) {
		uint8_t *p = pass ? other : one;

		fd = rig_connect(
			&r, (struct rig_options){.structured = true, .sndbuf = pass ? 4096 : 0});
		fill(big, 40000, 4);
		write_big(fd, 99, 0, 40000);
		for (uint64_t i = 0; i < 64; i++)
			ask(fd, NBD_READ, 0, i, 0, i % 3 ? 40000 : 700);
		n = 22 * 728 + 42 * 40028;
		for (size_t at = 0; at < n;) {
			/* Many small reads, and a large one now and then, so that it ends. */
			size_t want = at % 5000 < 500 ? 1 : at % 7 * 1000 + 1;
			ssize_t some = recv(fd, p + at, n - at < want ? n - at : want, 0);

			CHECK(some > 0);
			at += (size_t)some;
		}
		close(fd);
	}
	CHECK(memcmp(one, other, n) == 0);
	rig_free(&r);
}

/* A client that never reads a reply is read no further after some time. */
static void test_no_reader(void)
{
	struct rig r;
	struct front_conn *c;
	int fd, n = 0;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.sndbuf = 4096});
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (int idle = 0; idle < 3;) {
		uint8_t p[NBD_REQUEST_SIZE];
		struct nbd_request q = {(uint64_t)n, 0, 4096, 0, NBD_READ};

		nbd_request_write(p, &q);
		if (send(fd, p, sizeof(p), MSG_NOSIGNAL) == sizeof(p)) {
			idle = 0;
			n++;
			continue;
		}
		rig_settle(&r);
		idle++;
	}
	c = r.worker.front->conns;
	CHECK(c->blocked);
	CHECK_INT(c->jobs, 1024);
	CHECK(c->paused);
	CHECK(r.worker.front->rest_bytes < 512 << 10);
	/* And when it does read, everything arrives. */
	fcntl(fd, F_SETFL, 0);
	for (int i = 0; i < 1000; i++) {
		want_simple(fd, (uint64_t)i, 0);
		get_all(fd, back_again, 4096);
	}
	close(fd);
	rig_free(&r);
}

/* Let time pass for the front end only. */
static int pass_31_s(void *arg, struct worker *w)
{
	struct front *f = w->front;

	f->tick.due(&f->tick, loop_now(f->loop) + 31 * WEIR_SEC);
	return 0;
}

/* A client that reads no reply for 30 s, or needs as long for a payload, is disconnected; an idle
 * one is not. */
static void test_too_slow(void)
{
	struct rig r;
	int idle, deaf, slow;
	char c;

	rig_new(&r, NULL, NULL, 64 * MIB);
	idle = rig_connect(&r, (struct rig_options){0});
	ask(idle, NBD_READ, 0, 1, 0, 512);
	want_simple(idle, 1, 0);
	get_all(idle, back_again, 512);
	put_all(idle, "\x25\x60", 2); /* in the middle of a request, which costs nothing */
	deaf = rig_connect(&r, (struct rig_options){.sndbuf = 4096});
	ask(deaf, NBD_READ, 0, 2, 0, 16 * MIB);
	slow = rig_connect(&r, (struct rig_options){0});
	ask(slow, NBD_WRITE, 0, 3, 0, 4096);
	put_all(slow, big, 4000);
	rig_settle(&r);
	worker_call(&r.worker, pass_31_s, NULL);
	want_end(slow);
	while (recv(deaf, &c, 1, 0) > 0)
		;
	rig_settle(&r);
	CHECK_INT(front_count(r.worker.front), 1);
	CHECK_INT(atomic_load(&r.gateway.broken), 2);
	put_all(idle, "x", 1);
	close(idle);
	close(deaf);
	close(slow);
	rig_free(&r);
}

int main(void)
{
	RUN(test_paused);
	RUN(test_tenants);
	RUN(test_write_in_little_memory);
	RUN(test_whole_in_little_memory);
	RUN(test_closed_in_the_middle);
	RUN(test_disconnect);
	RUN(test_finish);
	RUN(test_garbage);
	RUN(test_slow_reader);
	RUN(test_no_reader);
	RUN(test_too_slow);
	return 0;
}
