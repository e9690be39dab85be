/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front-rig: a worker with one resource, or two, and a client that speaks NBD by hand, for tests.
 *
 * The worker is a real one, on its own thread; the test is the client, on a blocking socket. The
 * back end is either memory or `held`, which keeps requests until it is told to release them.
 */
#ifndef WEIR_TESTS_PORT_FRONT_RIG_H
#define WEIR_TESTS_PORT_FRONT_RIG_H

#include "serve/front/impl.h"
#include "serve/front/nbd/nbd.h"
#include "serve/gateway/impl.h"
#include "serve/resource/impl.h"
#include "serve/loop/log.h"
#include "test.h"
#include "wire/bytes.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIG_SIZE (64u << 20)

struct held { /* a back end that keeps its requests */
	struct back back;
	struct back_io *first, **end;
	uint32_t n, most;   /* inside now, and the peak */
	bool open;          /* lets everything through */
	uint64_t fail_at;   /* the request that has this offset fails with EIO; UINT64_MAX: none */
	uint64_t submitted; /* in all */
	uint8_t *lent;      /* not NULL: reads are borrowed from here, for a round */
	uint64_t n_lent;    /* reads so far */
};

struct rig {
	struct gateway gateway;
	struct worker worker;
	struct resource *resource;
	struct weir_policy *policy;
	struct held *held;
	struct resource *second; /* rig_second; else NULL */
	struct held *second_held;
};

/* ---- the back end that keeps its requests: byte at offset o is (o >> 9) & 0xff */

static void held_finish(struct held *h, struct back_io *io)
{
	h->n--;
	io->error = io->offset == h->fail_at ? -EIO : 0;
	if (io->op == BACK_READ && io->flags & BACK_BORROW && h->lent) {
		CHECK(io->offset + io->length <= RIG_SIZE);
		io->data = h->lent + io->offset;
		h->n_lent++;
	}
	if (io->op == BACK_READ)
		for (uint64_t i = 0; i < io->length; i++)
			io->data[i] = (uint8_t)((io->offset + i) >> 9);
	h->back.done(h->back.done_arg, io);
}

static void held_submit(struct back *b, struct back_io *ios)
{
	struct held *h = (struct held *)(void *)b;
	struct back_io *io, *next;

	for (io = ios; io; io = next) {
		next = io->next;
		h->submitted++;
		if (++h->n > h->most)
			h->most = h->n;
		if (h->open) {
			held_finish(h, io);
			continue;
		}
		io->next = NULL;
		*h->end = io;
		h->end = &io->next;
	}
}

static void held_free(struct back *b)
{
	struct held *h = (struct held *)(void *)b;

	CHECK_INT(h->n, 0);
	free(h->lent);
	free(h);
}

static const struct back_ops held_ops = {.name = "held", .submit = held_submit, .free = held_free};

static inline struct held *held_new(void)
{
	struct held *h = calloc(1, sizeof(*h));

	h->back.ops = &held_ops;
	h->back.info = (struct back_info){.size = RIG_SIZE,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.block_min = 1,
		.block_preferred = 4096,
		.depth = 100000};
	h->end = &h->first;
	h->fail_at = UINT64_MAX;
	return h;
}

/* On the worker's thread: return all requests inside, the newest first. */
static inline int held_release(void *arg, struct worker *w)
{
	struct held *h = arg;
	struct back_io *io = h->first, *next, *reversed = NULL;

	h->first = NULL;
	h->end = &h->first;
	if (h->lent)
		memset(h->lent, 0xee, RIG_SIZE); /* data lent before are gone */
	for (; io; io = next) {
		next = io->next;
		io->next = reversed;
		reversed = io;
	}
	for (io = reversed; io; io = next) {
		next = io->next;
		held_finish(h, io);
	}
	return 0;
}

/* On the worker's thread: return the newest. */
static inline int held_release_one(void *arg, struct worker *w)
{
	struct held *h = arg;
	struct back_io **last = &h->first, *io;

	while ((*last)->next)
		last = &(*last)->next;
	io = *last;
	*last = NULL;
	h->end = last;
	held_finish(h, io);
	return 0;
}

/* The same for the oldest. */
static inline int held_release_oldest(void *arg, struct worker *w)
{
	struct held *h = arg;
	struct back_io *io = h->first;

	h->first = io->next;
	if (!h->first)
		h->end = &h->first;
	held_finish(h, io);
	return 0;
}

static inline int held_count(void *arg, struct worker *w)
{
	return (int)((struct held *)arg)->n;
}

static inline int held_open(void *arg, struct worker *w)
{
	((struct held *)arg)->open = true;
	return held_release(arg, w);
}

/* ---- the worker */

static inline int rig_nothing(void *arg, struct worker *w)
{
	return 0;
}

static inline int rig_begin(void *arg, struct worker *w)
{
	struct rig *r = arg;
	struct resource *resource = r->second ? r->second : r->resource;
	struct weir_err err;

	if (resource_swap(resource, r->policy, &err) < 0)
		FAIL("%s", err.text);
	return resource_start(resource);
}

static inline int rig_finish(void *arg, struct worker *w)
{
	front_finish(w->front, true);
	return 0;
}

static inline int rig_end(void *arg, struct worker *w)
{
	struct rig *r = arg;

	resource_free(r->resource);
	resource_free(r->second);
	return 0;
}

/* Run rounds of the worker's loop, until everything sent before is processed. */
static inline void rig_settle(struct rig *r)
{
	for (int i = 0; i < 4; i++)
		worker_call(&r->worker, rig_nothing, NULL);
}

/* A rig with a policy of its own, and a window if there is a held back end. */
static inline void rig_new_with(struct rig *r, struct back *back, struct held *held, size_t memory,
	const char *text, uint32_t depth)
{
	struct weir_resource spec;
	struct resource_config config = {.spec = &spec};
	struct weir_err err;

	memset(r, 0, sizeof(*r));
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK_INT(worker_init(&r->worker, &r->gateway, 0, memory, -1), 0);
	if (!back && !held &&
		back_open("memory:64M", &(struct back_config){.loop = r->worker.loop}, &back,
			&err) < 0)
		FAIL("%s", err.text);
	if (weir_policy_parse(text, strlen(text), "rig", &r->policy, &err) < 0)
		FAIL("%s", err.text);
	policy_resource_default("disk", &spec);
	r->held = held;
	config.back = held ? &held->back : back;
	config.loop = r->worker.loop;
	if (held)
		spec.depth = depth;
	CHECK_INT(resource_new(&config, &r->resource), 0);
	CHECK_INT(worker_run(&r->worker), 0);
	CHECK_INT(worker_call(&r->worker, rig_begin, r), 0);
}

static inline void rig_new(struct rig *r, struct back *back, struct held *held, size_t memory)
{
	rig_new_with(r, back, held, memory,
		"tenants: [{name: a, match: {export: \"*\"}}, {name: b, match: {export: b}}]\n",
		100000); /* the gate holds nothing back */
}

/* Add another resource on the same thread. */
static inline void rig_second(struct rig *r)
{
	struct weir_resource spec;
	struct resource_config config = {.spec = &spec, .loop = r->worker.loop};

	policy_resource_default("second", &spec);
	spec.depth = 100000;
	r->second_held = held_new();
	config.back = &r->second_held->back;
	CHECK_INT(resource_new(&config, &r->second), 0);
	CHECK_INT(worker_call(&r->worker, rig_begin, r), 0);
}

static inline void rig_free(struct rig *r)
{
	worker_call(&r->worker, rig_finish, NULL);
	if (r->held)
		worker_call(&r->worker, held_open, r->held);
	if (r->second_held)
		worker_call(&r->worker, held_open, r->second_held);
	while (front_count(r->worker.front))
		rig_settle(r);
	CHECK(!resource_busy(r->resource));
	CHECK_INT(chunk_held(r->worker.pool), 0);
	worker_call(&r->worker, rig_end, r);
	worker_stop(&r->worker);
	worker_free(&r->worker);
	weir_policy_free(r->policy);
}

/* ---- the client */

struct rig_options {
	bool structured, status, read_only;
	bool tells_held;             /* weir:held is negotiated */
	uint64_t size;               /* 0: RIG_SIZE */
	int sndbuf;                  /* of the server's end; 0: default */
	int tenant;                  /* 0: a, 1: b */
	const struct front_ops *ops; /* NULL: NBD */
	bool second;                 /* of the second resource */
	const void *early;
	size_t n_early;
};

static inline int rig_connect(struct rig *r, struct rig_options o)
{
	static struct nbd_hello hello;
	struct front_start s = {
		.ops = o.ops ? o.ops : &front_nbd_ops, .early = o.early, .n_early = o.n_early};
	struct resource *resource = o.second ? r->second : r->resource;
	struct front_conn *c;
	int fd[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	if (o.sndbuf)
		setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &o.sndbuf, sizeof(o.sndbuf));
	s.stream.fd = fd[0];
	s.place = (struct front_place){.front = r->worker.front,
		.gate = &resource_gate,
		.resource = resource,
		.info = resource_info(resource),
		.size = o.size ? o.size : RIG_SIZE,
		.read_only = o.read_only};
	s.client.tenant = o.tenant;
	strcpy(s.client.export_, o.tenant ? "b" : "disk");
	strcpy(s.client.name, "test");
	c = front_conn_new(&s);
	CHECK(c);
	hello.structured = o.structured;
	hello.base_allocation = o.status;
	hello.held = o.tells_held;
	hello.held_id = 8;
	hello.context_id = 7;
	if (s.ops == &front_nbd_ops)
		front_nbd_agree(c, &hello);
	front_conn_start(c);
	return fd[1];
}

static inline void put_all(int fd, const void *data, size_t n)
{
	while (n) {
		ssize_t some = send(fd, data, n, MSG_NOSIGNAL);

		if (some <= 0)
			FAIL("send: %s", strerror(errno));
		data = (const char *)data + some;
		n -= (size_t)some;
	}
}

static inline void get_all(int fd, void *data, size_t n)
{
	ssize_t some = recv(fd, data, n, MSG_WAITALL);

	if (some != (ssize_t)n)
		FAIL("%zd of %zu bytes came", some, n);
}

static inline void ask(
	int fd, uint16_t command, uint16_t flags, uint64_t cookie, uint64_t offset, uint32_t length)
{
	uint8_t p[NBD_REQUEST_SIZE];
	struct nbd_request q = {cookie, offset, length, flags, command};

	nbd_request_write(p, &q);
	put_all(fd, p, sizeof(p));
}

static inline void want_simple(int fd, uint64_t cookie, int error)
{
	uint8_t p[NBD_SIMPLE_SIZE];
	struct nbd_reply reply;

	get_all(fd, p, sizeof(p));
	CHECK_INT(nbd_reply_read(p, sizeof(p), &reply), NBD_SIMPLE_SIZE);
	CHECK(!reply.structured);
	CHECK_INT(reply.cookie, cookie);
	CHECK_INT(reply.error, error);
}

/* Read the head of a chunk of that type. */
static inline struct nbd_reply want_chunk(int fd, uint64_t cookie, uint16_t type)
{
	uint8_t p[NBD_CHUNK_SIZE];
	struct nbd_reply reply;

	get_all(fd, p, sizeof(p));
	CHECK_INT(nbd_reply_read(p, sizeof(p), &reply), NBD_CHUNK_SIZE);
	CHECK(reply.structured);
	CHECK_INT(reply.cookie, cookie);
	CHECK_INT(reply.type, type);
	return reply;
}

static inline void want_error(int fd, uint64_t cookie, int error)
{
	struct nbd_reply reply = want_chunk(fd, cookie, NBD_CHUNK_ERROR);
	uint8_t p[6];

	CHECK_INT(reply.length, 6);
	CHECK_INT(reply.flags, NBD_CHUNK_DONE);
	get_all(fd, p, sizeof(p));
	CHECK_INT(nbd_errno_of(bytes_get32(p)), error);
	CHECK_INT(bytes_get16(p + 4), 0);
}

static inline void want_end(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	/* A reset if the other side closed with unread data of ours. */
	CHECK(n == 0 || (n < 0 && errno == ECONNRESET));
}

#endif
