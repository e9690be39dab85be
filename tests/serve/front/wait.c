/* SPDX-License-Identifier: BSD-3-Clause */
/* front: which connections wait for memory, and which do not have to. */
#include "serve/front-rig.h"
#include <sys/time.h>

#define MIB (1u << 20)
#define KIB (1u << 10)

static uint8_t sink[MIB];

static void settle_long(struct rig *r)
{
	for (int i = 0; i < 15; i++) /* 60 rounds: a connection needs a few */
		rig_settle(r);
}

static void take_reply(int fd, uint32_t length)
{
	uint8_t head[NBD_SIMPLE_SIZE];

	get_all(fd, head, sizeof(head));
	get_all(fd, sink, length);
}

/* Send n reads of `length` each. */
static void ask_reads(int fd, uint32_t n, uint32_t length)
{
	for (uint32_t i = 0; i < n; i++)
		ask(fd, NBD_READ, 0, i, 0, length);
}

static void take_all(int fd, size_t n)
{
	for (size_t some; n; n -= some) {
		some = n < sizeof(sink) ? n : sizeof(sink);
		get_all(fd, sink, some);
	}
}

static int release_and_open(void *arg, struct worker *w)
{
	struct held *h = arg;

	h->open = true; /* but requests inside stay */
	return held_release_one(h, w);
}

static int held_close(void *arg, struct worker *w)
{
	((struct held *)arg)->open = false;
	return 0;
}

/* The memory that a tenant holds at a resource that returns nothing does not affect another
 * resource of the same thread; nor do several tenants. */
static void test_lost_resource(void)
{
	enum { N = 40 };
	struct rig r;
	int a[N], b;

	for (int tenants = 1; tenants <= 2; tenants++) {
		rig_new(&r, NULL, held_new(), 16 * MIB);
		rig_second(&r);
		b = rig_connect(&r, (struct rig_options){.second = true});
		ask_reads(b, 1, 512);
		for (int i = 0; i < N; i++) {
			a[i] = rig_connect(&r, (struct rig_options){.tenant = i % tenants});
			ask_reads(a[i], 16, 64 * KIB);
		}
		settle_long(&r);
		CHECK(chunk_held(r.worker.pool) > 5 * MIB);
		CHECK(chunk_held(r.worker.pool) < 11 * MIB);
		ask_reads(b, 8, CHUNK_MAX);
		settle_long(&r);
		CHECK(r.second->inside >= 1 + 4);
		worker_call(&r.worker, held_open, r.second_held);
		take_all(b, 9 * NBD_SIMPLE_SIZE + 512 + 8 * CHUNK_MAX);
		for (int i = 0; i < N; i++)
			close(a[i]);
		close(b);
		rig_free(&r);
	}
}

static int pass_1_s(void *arg, struct worker *w)
{
	struct front *f = w->front;

	f->tick.due(&f->tick, loop_now(f->loop) + 1100 * WEIR_MS);
	return 0;
}

static int pass_6_s(void *arg, struct worker *w)
{
	struct front *f = w->front;

	f->tick.due(&f->tick, loop_now(f->loop) + 6 * WEIR_SEC);
	return 0;
}

static void go_deaf(struct rig *r, int *fd, int n)
{
	for (int i = 0; i < n; i++) {
		fd[i] = rig_connect(r, (struct rig_options){.sndbuf = 4096});
		ask_reads(fd[i], 16, 64 * KIB);
	}
	settle_long(r);
}

/* A connection that reads no replies does not delay others of its tenant: neither with what it
 * holds, nor when there are more of its kind than memory. */
static void test_deaf(void)
{
	enum { N = 40 };
	struct rig r;
	int deaf[N], more[N], good, known, fresh;

	rig_new(&r, NULL, held_new(), 16 * MIB);
	worker_call(&r.worker, held_open, r.held);
	known = rig_connect(&r, (struct rig_options){0});
	ask_reads(known, 1, 512);
	take_reply(known, 512);
	go_deaf(&r, deaf, N);
	CHECK(chunk_held(r.worker.pool) > 5 * MIB); /* the limit of doubtful connections */
	ask_reads(known, 4, CHUNK_MAX); /* one that read a reply before is not affected */
	for (int i = 0; i < 4; i++)
		take_reply(known, CHUNK_MAX);
	good = rig_connect(&r, (struct rig_options){0});
	ask_reads(good, 4, CHUNK_MAX);
	settle_long(&r);
	CHECK(recv(good, sink, 1, MSG_DONTWAIT) < 0);
	worker_call(&r.worker, pass_1_s, NULL);
	for (int i = 0; i < 4; i++)
		take_reply(good, CHUNK_MAX);
	CHECK_INT(atomic_load(&r.gateway.broken), 0);
	/* As many again: some of them are disconnected, but not the first ones. */
	go_deaf(&r, more, N);
	fresh = rig_connect(&r, (struct rig_options){0});
	ask_reads(fresh, 4, CHUNK_MAX);
	settle_long(&r);
	CHECK(recv(fresh, sink, 1, MSG_DONTWAIT) < 0);
	worker_call(&r.worker, pass_6_s, NULL);
	for (int i = 0; i < 4; i++)
		take_reply(fresh, CHUNK_MAX);
	CHECK(atomic_load(&r.gateway.broken) > 0);
	CHECK(atomic_load(&r.gateway.broken) <= N);
	/* A connection that reads again gets all its replies. */
	for (int i = 0; i < 16; i++)
		take_reply(deaf[0], 64 * KIB);
	for (int i = 0; i < N; i++) {
		close(deaf[i]);
		close(more[i]);
	}
	close(good);
	close(known);
	close(fresh);
	rig_free(&r);
}

/* Among many connections that ask for little, one that asks for much has its turn. */
static void test_large_among_small(void)
{
	enum { N = 20, ASKED = 64 };
	const struct front_conn *large;
	struct rig r;
	int small[N], fd, releases = 0;

	rig_new(&r, NULL, held_new(), 16 * MIB);
	for (int i = 0; i < N; i++) {
		small[i] = rig_connect(&r, (struct rig_options){0});
		ask_reads(small[i], ASKED, 64 * KIB);
	}
	settle_long(&r);
	fd = rig_connect(&r, (struct rig_options){0});
	ask_reads(fd, 1, CHUNK_MAX);
	settle_long(&r);
	large = r.worker.front->conns;
	CHECK_INT(large->jobs, 0);
	/* Each freed piece is too small for it, and the others want it, too. */
	for (; large->jobs == 0 && releases < 8 * N; releases++) {
		CHECK(r.held->n > 0);
		worker_call(&r.worker, held_release_one, r.held);
		rig_settle(&r);
		for (int i = 0; i < N; i++) /* they do read their replies */
			while (recv(small[i], sink, sizeof(sink), MSG_DONTWAIT) > 0)
				rig_settle(&r);
	}
	CHECK_INT(large->jobs, 1);
	/* Those that waited before it, and then four for itself: 26 mostly. Until the gateway has
	 * seen that replies are read, the tenant may hold half as much, and has to come down to
	 * that first: up to 50. */
	CHECK(releases <= 3 * N);
	worker_call(&r.worker, held_open, r.held);
	take_reply(fd, CHUNK_MAX);
	for (int i = 0; i < N; i++)
		close(small[i]);
	close(fd);
	rig_free(&r);
}

/* After many that still may not, the one that may continues at once, without another event. */
static void test_behind_many(void)
{
	enum { N = 40 };
	struct timeval patience = {.tv_sec = 4}; /* before the next tick, which checks all */
	struct rig r;
	int other[4], whole[N], fd;

	rig_new(&r, NULL, held_new(), 16 * MIB);
	worker_call(&r.worker, held_open, r.held);
	for (int i = 0; i < 4; i++) { /* another tenant, entitled to half of everything */
		other[i] = rig_connect(&r, (struct rig_options){.tenant = 1});
		ask_reads(other[i], 1, 512);
		take_reply(other[i], 512);
	}
	worker_call(&r.worker, held_close, r.held);
	for (int i = 0; i < 4; i++)
		ask_reads(other[i], 64, CHUNK_MAX);
	settle_long(&r);
	for (int i = 0; i < N; i++) { /* they need the other half, and will not get it */
		whole[i] = rig_connect(&r, (struct rig_options){0});
		ask_reads(whole[i], 1, 8 * MIB);
	}
	settle_long(&r);
	fd = rig_connect(&r, (struct rig_options){0});
	ask_reads(fd, 100, 64 * KIB); /* more than its limit, so that it waits */
	settle_long(&r);
	CHECK(r.worker.front->conns->paused && r.worker.front->conns->jobs > 4);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	worker_call(&r.worker, release_and_open, r.held);
	take_reply(fd, 64 * KIB); /* makes room for the next */
	take_reply(fd, 64 * KIB);
	for (int i = 0; i < N; i++)
		close(whole[i]);
	for (int i = 0; i < 4; i++)
		close(other[i]);
	close(fd);
	rig_free(&r);
}

int main(void)
{
	RUN(test_lost_resource);
	RUN(test_deaf);
	RUN(test_large_among_small);
	RUN(test_behind_many);
	return 0;
}
