/* SPDX-License-Identifier: BSD-3-Clause */
/* load-server: a small threaded NBD server for the tests of load: it can stall, fail, lose data and
 * lie. */
#ifndef WEIR_TESTS_PORT_LOAD_SERVER_H
#define WEIR_TESTS_PORT_LOAD_SERVER_H

#include "serve/loop/stream.h"
#include "test.h"
#include "wire/nbd.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SERVER_SIZE (1u << 20)

static struct server {
	char dir[64], address[128], uri[160];
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t left; /* signalled when a client leaves */
	int alive;           /* clients */
	uint8_t disk[SERVER_SIZE], durable[SERVER_SIZE];
	/* its behaviour */
	uint16_t flags;
	int error;       /* returned for every read */
	int lose_write;  /* this one (1, 2, …) is acknowledged but not done */
	int drop_after;  /* close each connection after so many requests … */
	int drops;       /* … this many times */
	bool forgets;    /* then restore the disk to the flushed state */
	bool vanishes;   /* then serve no more clients */
	bool flush_lies; /* a flush makes nothing durable */
	bool garbage;    /* send invalid replies */
	bool hangs;      /* never reply */
	int stall_at;    /* delay this request by stall_ms */
	int stall_ms;
	bool fragments; /* structured reads in three chunks, the last first */
	bool doubles;   /* … with the first chunk in place of the middle one */
	/* its observations */
	uint64_t requests, reads, writes, flushes, trims, fuas, bytes, digest, highest;
	int connections;
	int life; /* each loss ends one life, with all its connections */
	bool gone;
} server;

static int server_find(void *arg, const char *name, struct nbd_export *ret)
{
	*ret = (struct nbd_export){.size = SERVER_SIZE, .flags = server.flags};
	return 0;
}

static const char *server_list(void *arg, size_t i)
{
	return NULL;
}

static bool server_get(int fd, void *p, size_t n)
{
	for (uint8_t *at = p; n;) {
		ssize_t got = read(fd, at, n);

		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static bool server_put(int fd, const void *p, size_t n)
{
	return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n; /* blocking: all or an error */
}

static bool server_hello(int fd, bool *structured)
{
	static const struct nbd_hello_ops ops = {.find = server_find, .list = server_list};
	struct nbd_hello *h = malloc(sizeof(*h));
	enum nbd_hello_state state = NBD_HELLO_MORE;
	uint8_t *out = malloc(NBD_HELLO_OUT), in;
	size_t used, made;

	CHECK(h && out);
	nbd_hello_init(h, &ops, false, false);
	if (!server_put(fd, out, nbd_hello_start(h, out)))
		state = NBD_HELLO_END;
	while (state == NBD_HELLO_MORE && server_get(fd, &in, 1)) { /* leave nothing over */
		state = nbd_hello_input(h, &in, 1, &used, out, NBD_HELLO_OUT, &made);
		if (!server_put(fd, out, made))
			break;
	}
	*structured = h->structured;
	free(out);
	free(h);
	return state == NBD_HELLO_READY;
}

static bool server_chunk(int fd, const struct nbd_request *q, uint32_t at, uint32_t n, bool last)
{
	uint8_t head[NBD_DATA_SIZE];

	nbd_data_write(head, q->cookie, q->offset + at, n);
	head[5] = last;
	return server_put(fd, head, sizeof(head)) &&
	       server_put(fd, server.disk + q->offset + at, n);
}

static bool server_read(int fd, const struct nbd_request *q, bool structured)
{
	uint8_t head[NBD_ERROR_SIZE];
	uint32_t third = q->length / 3;

	if (structured && server.error)
		return server_put(fd, head, nbd_error_write(head, q->cookie, server.error));
	if (structured && !server.fragments)
		return server_chunk(fd, q, 0, q->length, true);
	if (structured)
		return server_chunk(fd, q, 2 * third, q->length - 2 * third, false) &&
		       server_chunk(fd, q, 0, third, false) &&
		       server_chunk(fd, q, server.doubles ? 0 : third, third, true);
	return server_put(fd, head, nbd_simple_write(head, q->cookie, server.error)) &&
	       (server.error || server_put(fd, server.disk + q->offset, q->length));
}

static void server_note(const struct nbd_request *q)
{
	server.requests++;
	server.digest = (server.digest * 31 + q->command) * 31 + q->offset * 7 + q->length;
	server.reads += q->command == NBD_READ;
	server.writes += q->command == NBD_WRITE;
	server.flushes += q->command == NBD_FLUSH;
	server.trims += q->command == NBD_TRIM;
	server.fuas += q->flags & NBD_FUA;
	server.bytes += q->length;
	if (q->offset + q->length > server.highest)
		server.highest = q->offset + q->length;
}

static bool server_write(int fd, const struct nbd_request *q, bool structured)
{
	static uint8_t data[SERVER_SIZE], head[NBD_CHUNK_SIZE];

	if (!server_get(fd, data, q->length))
		return false;
	if (server.lose_write != (int)server.writes)
		memcpy(server.disk + q->offset, data, q->length);
	if (q->flags & NBD_FUA)
		memcpy(server.durable + q->offset, data, q->length);
	if (structured)
		return server_put(fd, head,
			nbd_chunk_write(head, q->cookie, NBD_CHUNK_NONE, NBD_CHUNK_DONE, 0));
	return server_put(fd, head, nbd_simple_write(head, q->cookie, 0));
}

static bool server_answer(int fd, const struct nbd_request *q, bool structured)
{
	uint8_t head[NBD_CHUNK_SIZE] = {0};
	struct timespec nap = {server.stall_ms / 1000, server.stall_ms % 1000 * 1000000};

	if (q->offset + q->length > SERVER_SIZE || q->command == NBD_DISC)
		return false;
	server_note(q);
	if ((int)server.requests == server.stall_at)
		nanosleep(&nap, NULL);
	if (server.garbage)
		return server_put(fd, head, sizeof(head));
	if (q->command == NBD_READ)
		return server_read(fd, q, structured);
	if (q->command == NBD_WRITE)
		return server_write(fd, q, structured);
	if (q->command == NBD_FLUSH && !server.flush_lies)
		memcpy(server.durable, server.disk, SERVER_SIZE);
	return server_put(fd, head, nbd_simple_write(head, q->cookie, 0));
}

static void server_drop(void)
{
	server.drops--;
	server.life++;
	server.gone = server.vanishes;
	if (server.forgets)
		memcpy(server.disk, server.durable, SERVER_SIZE);
}

/* Serve one request after the other, until the client leaves or is dropped. */
static void server_serve(int fd, int life)
{
	int served = 0;
	uint8_t head[NBD_REQUEST_SIZE];
	struct nbd_request q;
	bool structured, more = server_hello(fd, &structured);

	while (more && server_get(fd, head, sizeof(head))) {
		CHECK_INT(nbd_request_read(head, &q), 0);
		pthread_mutex_lock(&server.lock);
		if (!server.hangs) /* else only read */
			more = life == server.life && server_answer(fd, &q, structured);
		if (more && ++served == server.drop_after && server.drops > 0) {
			server_drop();
			more = false;
		}
		pthread_mutex_unlock(&server.lock);
	}
}

static void *server_client(void *arg)
{
	int fd = (int)(intptr_t)arg, life;

	pthread_mutex_lock(&server.lock);
	life = server.life;
	pthread_mutex_unlock(&server.lock);
	server_serve(fd, life);
	close(fd);
	pthread_mutex_lock(&server.lock);
	server.alive--;
	pthread_cond_signal(&server.left);
	pthread_mutex_unlock(&server.lock);
	return NULL;
}

static void *server_main(void *arg)
{
	pthread_t thread;
	int fd;

	fcntl(server.fd, F_SETFL, 0); /* blocking */
	while ((fd = accept(server.fd, NULL, NULL)) >= 0) {
		bool gone;

		fcntl(fd, F_SETFL, 0);
		pthread_mutex_lock(&server.lock);
		gone = server.gone;
		server.alive += !gone;
		server.connections++;
		pthread_mutex_unlock(&server.lock);
		if (gone) {
			close(fd);
			continue;
		}
		CHECK_INT(pthread_create(&thread, NULL, server_client, (void *)(intptr_t)fd), 0);
		pthread_detach(thread);
	}
	return NULL;
}

static void server_start(void)
{
	struct weir_err err;

	snprintf(server.dir, sizeof(server.dir), "/tmp/weir-load-XXXXXX");
	CHECK(mkdtemp(server.dir));
	snprintf(server.address, sizeof(server.address), "unix:%s/s", server.dir);
	snprintf(server.uri, sizeof(server.uri), "nbd+unix:///x?socket=%s/s", server.dir);
	CHECK_INT(stream_listen(server.address, &server.fd, &err), 0);
	pthread_mutex_init(&server.lock, NULL);
	pthread_cond_init(&server.left, NULL);
	CHECK_INT(pthread_create(&server.thread, NULL, server_main, NULL), 0);
}

/* Restore the default behaviour, and clear the observations. */
static void server_reset(void)
{
	pthread_mutex_lock(&server.lock);
	while (server.alive) /* clients of the previous test may still be leaving */
		pthread_cond_wait(&server.left, &server.lock);
	memset(server.disk, 0, SERVER_SIZE);
	memset(server.durable, 0, SERVER_SIZE);
	server.flags = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_MULTI_CONN;
	server.error = server.lose_write = server.drop_after = server.drops = 0;
	server.stall_at = server.stall_ms = server.connections = 0;
	server.forgets = server.flush_lies = server.garbage = server.hangs = false;
	server.fragments = server.doubles = server.vanishes = server.gone = false;
	server.requests = server.reads = server.writes = server.flushes = server.trims = 0;
	server.fuas = server.bytes = server.digest = server.highest = 0;
	pthread_mutex_unlock(&server.lock);
}

static void server_end(void)
{
	char path[128];

	shutdown(server.fd, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.fd);
	snprintf(path, sizeof(path), "%s/s", server.dir);
	unlink(path);
	rmdir(server.dir);
}

#endif
