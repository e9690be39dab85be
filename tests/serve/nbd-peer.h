/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-peer: an NBD server inside a test, on its own thread, that can be told to misbehave and to
 * die. It carries out requests in random order, and when it dies it loses unflushed data: of each
 * block of 4 KiB, by chance, the current or the durable content is left.
 */
#ifndef WEIR_TESTS_NBD_PEER_H
#define WEIR_TESTS_NBD_PEER_H

#include "base/rng.h"
#include "wire/bytes.h"
#include "wire/nbd.h"
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PEER_CONNS 8
#define PEER_LATE  10         /* rounds of the server, of 1 ms without other events */
#define PEER_ROOM  (4u << 20) /* bytes of requests waiting on a connection; the same for replies */

enum peer_mode {
	PEER_WELL,
	PEER_MUTE,       /* accepts but sends nothing */
	PEER_HANGS_UP,   /* closes in the middle of the handshake */
	PEER_IGNORES,    /* never replies */
	PEER_GARBAGE,    /* replies with garbage */
	PEER_STRANGER,   /* replies to requests that were not sent */
	PEER_LEAVES,     /* replies ESHUTDOWN to everything, once */
	PEER_SHORT_READ, /* ends a read before all of it was sent */
	PEER_TWICE,      /* sends a part of a read twice, and another never */
	PEER_ENDLESS,    /* announces an error's message of 4 GiB */
	PEER_CORRUPT,    /* corrupts a byte of the reply now and then */
};

struct peer_conn {
	int fd; /* -1: none */
	bool ready;
	struct rng *corrupt; /* NULL: not corrupting */
	struct nbd_hello hello;
	uint8_t *in, *out;
	size_t have, n_out;
	unsigned requests; /* answered */
};

struct peer {
	char path[100];
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below */
	bool stop, away;      /* away: not listening */
	enum peer_mode mode;
	uint64_t size;
	uint16_t flags;
	uint8_t *is, *sure;
	int fail_writes, fail_flush; /* negative errno, for the next n requests */
	int n_fail_writes, n_fail_flushes;
	unsigned fail_percent; /* of FLUSHes, by chance, with EIO */
	bool forgets;          /* a failed FLUSH loses the unflushed data */
	bool late; /* … and is answered only after some other requests; so is a FUA write */
	struct peer_conn *late_conn; /* its connection; NULL: none */
	uint64_t late_cookie;
	int late_rounds;
	unsigned fail_fua_percent; /* of FUA writes, by chance, with EIO */
	int fail_fua; /* negative errno of every FUA write, which is then not written */
	unsigned accepted, writes, flushes, reads;
	unsigned most; /* connections; 0: any number. Further ones are closed at once */
	int ghosts[PEER_CONNS], n_ghosts; /* connections of a dead host: never closed */
	int listener, wake;
	struct rng rng;
	struct peer_conn conns[PEER_CONNS];
};

static inline int peer_find(void *arg, const char *name, struct nbd_export *ret)
{
	struct peer *p = arg;

	if (strcmp(name, "disk") != 0)
		return -ENOENT;
	*ret = (struct nbd_export){.size = p->size,
		.flags = p->flags,
		.block_min = 1,
		.block_preferred = 4096,
		.block_max = NBD_PAYLOAD_MAX};
	return 0;
}

static inline const char *peer_list(void *arg, size_t i)
{
	(void)arg;
	return i ? NULL : "disk";
}

/* Never blocks: the other side may wait for this thread. */
static inline void peer_send(struct peer_conn *c, const void *data, size_t n)
{
	CHECK(c->n_out + n <= PEER_ROOM);
	memcpy(c->out + c->n_out, data, n);
	if (c->corrupt && n <= 64 && rng_below(c->corrupt, 50) == 0)
		c->out[c->n_out + rng_below(c->corrupt, n)] ^=
			(uint8_t)(1 << rng_below(c->corrupt, 8));
	c->n_out += n;
}

static inline void peer_push(struct peer_conn *c)
{
	ssize_t r = send(c->fd, c->out, c->n_out, MSG_NOSIGNAL);

	if (r <= 0)
		return; /* recv will report the error */
	c->n_out -= (size_t)r;
	memmove(c->out, c->out + r, c->n_out);
}

static inline void peer_hang_up(struct peer_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->have = c->n_out = 0;
	c->corrupt = NULL;
	c->ready = false;
}

static inline void peer_listen(struct peer *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	unlink(p->path);
	memcpy(a.sun_path, p->path, strlen(p->path) + 1);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(p->listener >= 0);
	CHECK_INT(bind(p->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_INT(listen(p->listener, 16), 0);
}

static inline void peer_accept(struct peer *p)
{
	static const struct nbd_hello_ops ops = {.find = peer_find, .list = peer_list};
	static struct nbd_hello_ops mine;
	int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	uint8_t out[64];

	if (fd < 0)
		return;
	p->accepted++;
	mine = ops;
	mine.arg = p;
	for (unsigned i = 0; i < (p->most ? p->most : PEER_CONNS); i++) {
		struct peer_conn *c = &p->conns[i];
		if (c->fd >= 0)
			continue;
		c->fd = fd;
		c->requests = 0;
		nbd_hello_init(&c->hello, &mine, false, false);
		if (p->mode != PEER_MUTE)
			peer_send(c, out, nbd_hello_start(&c->hello, out));
		return;
	}
	close(fd);
}

/* ---- requests */

static inline size_t peer_length(const struct nbd_request *r)
{
	return NBD_REQUEST_SIZE + (r->command == NBD_WRITE ? r->length : 0);
}

/* Lose unflushed data, as a cache that could not be written drops its pages. */
static inline void peer_forget(struct peer *p)
{
	if (p->forgets)
		memcpy(p->is, p->sure, p->size);
}

static inline int peer_write(struct peer *p, const struct nbd_request *r, const uint8_t *data)
{
	p->writes++;
	if (p->n_fail_writes > 0) {
		p->n_fail_writes--;
		return p->fail_writes;
	}
	if (r->offset + r->length > p->size)
		return -ENOSPC;
	if (r->flags & NBD_FUA && (p->fail_fua || rng_below(&p->rng, 100) < p->fail_fua_percent)) {
		peer_forget(p);
		return p->fail_fua ? p->fail_fua : -EIO;
	}
	if (r->command == NBD_WRITE)
		memcpy(p->is + r->offset, data, r->length);
	else
		memset(p->is + r->offset, 0, r->length);
	if (r->flags & NBD_FUA)
		memcpy(p->sure + r->offset, p->is + r->offset, r->length);
	return 0;
}

static inline int peer_flush(struct peer *p)
{
	p->flushes++;
	if (p->n_fail_flushes > 0) {
		p->n_fail_flushes--;
		peer_forget(p);
		return p->fail_flush;
	}
	if (p->fail_percent && rng_below(&p->rng, 100) < p->fail_percent) {
		peer_forget(p);
		return -EIO;
	}
	memcpy(p->sure, p->is, p->size);
	return 0;
}

static inline void peer_chunk(
	struct peer *p, struct peer_conn *c, const struct nbd_request *r, size_t at, size_t n)
{
	uint8_t head[32];

	nbd_data_write(head, r->cookie, r->offset + at, (uint32_t)n);
	head[5] = 0; /* not the last */
	peer_send(c, head, NBD_DATA_SIZE);
	peer_send(c, p->is + r->offset + at, n);
}

static inline void peer_read(struct peer *p, struct peer_conn *c, const struct nbd_request *r)
{
	uint8_t head[32];
	size_t n = r->length, at = 0;

	p->reads++;
	if (p->mode == PEER_TWICE && n > 1024) {
		n /= 2;
		peer_chunk(p, c, r, 0, n);
	}
	if (p->mode == PEER_SHORT_READ && n > 512)
		n -= 512;
	if (!c->hello.structured) {
		peer_send(c, head, nbd_simple_write(head, r->cookie, 0));
	} else if (p->mode != PEER_SHORT_READ && p->mode != PEER_TWICE && n > 1024 &&
		   rng_below(&p->rng, 4) == 0) {
		/* In three chunks, the middle last. */
		size_t part = n / 3;

		peer_chunk(p, c, r, n - part, part);
		peer_chunk(p, c, r, 0, part);
		n -= 2 * part;
		at = part;
		peer_send(c, head, nbd_data_write(head, r->cookie, r->offset + at, (uint32_t)n));
	} else {
		peer_send(c, head, nbd_data_write(head, r->cookie, r->offset, (uint32_t)n));
	}
	peer_send(c, p->is + r->offset + at, n);
}

#define PEER_HELD 123 /* µs: its value of weir:held */
static inline void peer_held(struct peer_conn *c, const struct nbd_request *r)
{
	uint8_t out[64];
	uint8_t *p = out + nbd_chunk_write(out, r->cookie, NBD_CHUNK_STATUS, NBD_CHUNK_DONE, 12);

	bytes_put32(p, c->hello.held_id);
	bytes_put32(p + 4, r->length);
	bytes_put32(p + 8, PEER_HELD);
	peer_send(c, out, NBD_CHUNK_SIZE + 12);
}

/* Reply with two extents: 512 bytes of hole, then data; or, if requested, only one. */
static inline void peer_status(struct peer_conn *c, const struct nbd_request *r)
{
	const uint32_t n = r->flags & NBD_REQ_ONE ? 1 : 2;
	uint8_t out[64];
	uint8_t *p = out + nbd_chunk_write(out, r->cookie, NBD_CHUNK_STATUS,
				   c->hello.held ? 0 : NBD_CHUNK_DONE, 4 + 8 * n);

	bytes_put32(p, c->hello.context_id);
	bytes_put32(p + 4, 512);
	bytes_put32(p + 8, 3);
	bytes_put32(p + 12, r->length - 512);
	bytes_put32(p + 16, 0);
	peer_send(c, out, NBD_CHUNK_SIZE + 4 + 8 * n);
	if (c->hello.held)
		peer_held(c, r);
}

static inline void peer_answer(
	struct peer *p, struct peer_conn *c, const struct nbd_request *r, const uint8_t *data)
{
	uint8_t out[64];
	int error = 0;

	c->requests++;
	if (p->mode == PEER_GARBAGE) {
		memset(out, 0x5a, sizeof(out));
		peer_send(c, out, sizeof(out));
		return;
	}
	if (p->mode == PEER_STRANGER) {
		peer_send(c, out, nbd_simple_write(out, r->cookie + 1, 0));
		return;
	}
	if (p->mode == PEER_ENDLESS) {
		nbd_error_write(out, r->cookie, -EIO);
		bytes_put32(out + NBD_CHUNK_SIZE - 4, UINT32_MAX - 15);
		peer_send(c, out, NBD_CHUNK_SIZE + 6);
		return;
	}
	if (p->mode == PEER_LEAVES) {
		error = -ESHUTDOWN;
	} else if (r->command == NBD_READ) {
		peer_read(p, c, r);
		return;
	} else if (r->command == NBD_BLOCK_STATUS) {
		peer_status(c, r);
		return;
	} else if (r->command == NBD_FLUSH) {
		error = peer_flush(p);
	} else if (r->command != NBD_CACHE) {
		error = peer_write(p, r, data);
	}
	if (p->late && error == -EIO && !p->late_conn) {
		p->late_conn = c;
		p->late_cookie = r->cookie;
		p->late_rounds = PEER_LATE;
		return;
	}
	if (c->hello.structured && error && rng_below(&p->rng, 2))
		peer_send(c, out, nbd_error_write(out, r->cookie, error));
	else
		peer_send(c, out, nbd_simple_write(out, r->cookie, error));
}

/* Carry out one of the complete waiting requests. Return false if there is none. */
static inline bool peer_one(struct peer *p, struct peer_conn *c, bool answer)
{
	struct {
		size_t at, len;
	} all[512];
	struct nbd_request r;
	size_t n = 0, at = 0, which;

	while (n < 512 && c->have - at >= NBD_REQUEST_SIZE) {
		CHECK_INT(nbd_request_read(c->in + at, &r), 0);
		if (r.command == NBD_DISC || c->have - at < peer_length(&r))
			break;
		all[n].at = at;
		all[n++].len = peer_length(&r);
		at += peer_length(&r);
	}
	if (!n)
		return false;
	which = rng_below(&p->rng, n);
	nbd_request_read(c->in + all[which].at, &r);
	if (answer)
		peer_answer(p, c, &r, c->in + all[which].at + NBD_REQUEST_SIZE);
	else if (r.command == NBD_WRITE || r.command == NBD_WRITE_ZEROES)
		peer_write(p, &r, c->in + all[which].at + NBD_REQUEST_SIZE);
	c->have -= all[which].len;
	memmove(c->in + all[which].at, c->in + all[which].at + all[which].len,
		c->have - all[which].at);
	return true;
}

static inline void peer_greet(struct peer *p, struct peer_conn *c)
{
	static uint8_t out[NBD_HELLO_OUT];
	size_t used = 0, made = 0;
	enum nbd_hello_state s;

	if (p->mode == PEER_MUTE)
		return;
	if (p->mode == PEER_HANGS_UP) {
		peer_hang_up(c);
		return;
	}
	do {
		s = nbd_hello_input(&c->hello, c->in, c->have, &used, out, sizeof(out), &made);
		peer_send(c, out, made);
		c->have -= used;
		memmove(c->in, c->in + used, c->have);
	} while (s == NBD_HELLO_MORE && (used || made));
	c->ready = s == NBD_HELLO_READY;
	if (s == NBD_HELLO_END)
		peer_hang_up(c);
}

static inline void peer_hear(struct peer *p, struct peer_conn *c)
{
	ssize_t r = recv(c->fd, c->in + c->have, PEER_ROOM - c->have, 0);

	if (r == 0 || (r < 0 && errno != EAGAIN)) {
		/* Pending requests may take effect, by chance. */
		while (c->ready && p->mode == PEER_WELL && rng_below(&p->rng, 4) &&
			peer_one(p, c, false))
			;
		peer_hang_up(c);
		return;
	}
	c->have += r > 0 ? (size_t)r : 0;
	if (!c->ready)
		peer_greet(p, c);
}

static inline void peer_serve(struct peer *p, struct peer_conn *c)
{
	peer_hear(p, c);
	if (c->n_out && c->fd >= 0)
		peer_push(c);
	if (!c->ready || p->mode == PEER_IGNORES)
		return;
	c->corrupt = p->mode == PEER_CORRUPT ? &p->rng : NULL;
	/* Do some now, the rest later: so the order varies. */
	for (int i = 0; i < 4 && c->n_out < PEER_ROOM / 2; i++)
		if (!peer_one(p, c, true))
			break;
	peer_push(c);
}

/* Send the reply to a failed FLUSH or FUA write. */
static inline void peer_answer_late(struct peer *p)
{
	uint8_t out[64];

	if (!p->late_conn || --p->late_rounds > 0)
		return;
	if (p->late_conn->ready) {
		peer_send(p->late_conn, out, nbd_simple_write(out, p->late_cookie, -EIO));
		peer_push(p->late_conn);
	}
	p->late_conn = NULL;
}

static inline bool peer_busy(const struct peer *p)
{
	for (int i = 0; i < PEER_CONNS; i++)
		if (p->conns[i].ready && p->conns[i].have && !p->conns[i].n_out &&
			p->mode != PEER_IGNORES)
			return true;
	return false;
}

static inline void *peer_run(void *arg)
{
	struct peer *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct pollfd f[PEER_CONNS + 2] = {{p->wake, POLLIN, 0}, {p->listener, POLLIN, 0}};
		bool busy = peer_busy(p);
		eventfd_t ignored;

		for (int i = 0; i < PEER_CONNS; i++)
			f[i + 2] = (struct pollfd){
				p->conns[i].fd, POLLIN | (p->conns[i].n_out ? POLLOUT : 0), 0};
		pthread_mutex_unlock(&p->lock);
		poll(f, PEER_CONNS + 2, busy ? 0 : p->late_conn ? 1 : -1);
		pthread_mutex_lock(&p->lock);
		eventfd_read(p->wake, &ignored);
		if (f[1].revents && p->listener >= 0)
			peer_accept(p);
		for (int i = 0; i < PEER_CONNS; i++)
			if (p->conns[i].fd >= 0)
				peer_serve(p, &p->conns[i]);
		peer_answer_late(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- for tests */

static inline void peer_start(struct peer *p, const char *path, uint64_t size, uint16_t flags)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->path, sizeof(p->path), "%s", path);
	p->size = size;
	p->flags = flags;
	p->is = calloc(1, size);
	p->sure = calloc(1, size);
	p->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (int i = 0; i < PEER_CONNS; i++) {
		p->conns[i].fd = -1;
		p->conns[i].in = malloc(PEER_ROOM);
		p->conns[i].out = malloc(PEER_ROOM);
	}
	rng_init(&p->rng, 1, "peer");
	pthread_mutex_init(&p->lock, NULL);
	peer_listen(p);
	CHECK_INT(pthread_create(&p->thread, NULL, peer_run, p), 0);
}

static inline void peer_lock(struct peer *p)
{
	pthread_mutex_lock(&p->lock);
}

static inline void peer_unlock(struct peer *p)
{
	eventfd_write(p->wake, 1);
	pthread_mutex_unlock(&p->lock);
}

/* Die and lose data. stay_away: do not listen until peer_return. The caller holds the lock. */
static inline void peer_die(struct peer *p, bool stay_away)
{
	for (int i = 0; i < PEER_CONNS; i++) {
		while (p->conns[i].fd >= 0 && p->conns[i].ready && rng_below(&p->rng, 4) &&
			peer_one(p, &p->conns[i], false))
			;
		peer_hang_up(&p->conns[i]);
	}
	for (uint64_t at = 0; at < p->size; at += 4096) {
		if (rng_below(&p->rng, 3))
			memcpy(p->is + at, p->sure + at, 4096);
		else
			memcpy(p->sure + at, p->is + at, 4096);
	}
	if (stay_away && p->listener >= 0) {
		close(p->listener);
		unlink(p->path);
		p->listener = -1;
	}
}

/* Its host loses power and is back at once: connections stay open, but are dead. */
static inline void peer_power_cut(struct peer *p)
{
	for (int i = 0; i < PEER_CONNS; i++) {
		if (p->conns[i].fd < 0)
			continue;
		p->ghosts[p->n_ghosts++] = dup(p->conns[i].fd);
		peer_hang_up(&p->conns[i]);
	}
	memcpy(p->is, p->sure, p->size);
}

static inline void peer_return(struct peer *p)
{
	if (p->listener < 0)
		peer_listen(p);
}

static inline void peer_stop(struct peer *p)
{
	peer_lock(p);
	p->stop = true;
	peer_unlock(p);
	pthread_join(p->thread, NULL);
	for (int i = 0; i < PEER_CONNS; i++) {
		peer_hang_up(&p->conns[i]);
		free(p->conns[i].in);
		free(p->conns[i].out);
	}
	while (p->n_ghosts > 0)
		close(p->ghosts[--p->n_ghosts]);
	if (p->listener >= 0)
		close(p->listener);
	close(p->wake);
	unlink(p->path);
	free(p->is);
	free(p->sure);
}

#endif
