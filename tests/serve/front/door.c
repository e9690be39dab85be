/* SPDX-License-Identifier: BSD-3-Clause */
/* door: handshakes with a real gateway, over a unix socket, correct and incorrect. */
#include "base/container.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include "serve/loop/tls.h"
#include "policy-parse.h"
#include "wire/bytes.h"
#include "wire/nbd-options.h"
#include "wire/nbd.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-door-XXXXXX", address[64];

/* ---- a gateway on a thread */

struct house {
	struct gateway *gateway;
	pthread_t thread;
	struct loop_task stop;
};

static void *live(void *arg)
{
	CHECK_INT(gateway_run(((struct house *)arg)->gateway), 0);
	return NULL;
}

static void house_new(struct house *h, const char *text)
{
	static const char *const addresses[] = {address};
	struct gateway_options o = {
		.memory = 64 << 20, .listen = addresses, .n_listen = 1, .threads = 1};
	struct weir_err err;

	if (gateway_new(parse(text), text, "test", &o, &h->gateway, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(pthread_create(&h->thread, NULL, live, h), 0);
}

static void stop(struct loop_task *t)
{
	gateway_stop((container_of(t, struct house, stop))->gateway);
}

static void house_free(struct house *h)
{
	h->stop.run = stop;
	loop_post(gateway_loop(h->gateway), &h->stop);
	pthread_join(h->thread, NULL);
	gateway_free(h->gateway);
}

/* ---- a client */

static struct stream come_in(void)
{
	struct stream s = {0};
	struct weir_err err;
	int rc;

	/* A full backlog refuses: the gateway is slower than a loop of connects. */
	while ((rc = stream_connect(address, WEIR_SEC, &s.fd, &err)) == -ECONNREFUSED)
		sched_yield();
	if (rc < 0)
		FAIL("%s", err.text);
	return s;
}

static void wait_for(struct stream *s, short events)
{
	struct pollfd p = {.fd = s->fd, .events = events};

	if (poll(&p, 1, 10000) != 1)
		FAIL("nothing came for 10 s");
}

static ssize_t get_some(struct stream *s, void *data, size_t n)
{
	ssize_t some;

	while ((some = stream_recv(s, data, n)) == -EAGAIN)
		wait_for(s, POLLIN);
	return some;
}

static void get_all(struct stream *s, void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t some = get_some(s, (char *)data + at, n - at);

		if (some <= 0)
			FAIL("the end after %zu of %zu bytes: %zd", at, n, some);
		at += (size_t)some;
	}
}

static void put_all(struct stream *s, const void *data, size_t n)
{
	for (size_t at = 0; at < n || stream_pending(s);) {
		struct iovec iov = {(char *)(uintptr_t)data + at, n - at};
		ssize_t some = stream_send(s, &iov, at < n);

		if (some == -EAGAIN)
			wait_for(s, POLLOUT);
		else if (some < 0)
			FAIL("send: %s", strerror((int)-some));
		else
			at += (size_t)some;
	}
}

static void want_end(struct stream *s)
{
	char bytes[4096];
	ssize_t n;

	while ((n = get_some(s, bytes, sizeof(bytes))) > 0)
		;
	CHECK(n == 0 || n == -ECONNRESET);
	stream_close(s);
}

static void shake(struct stream *s, const char *keys)
{
	struct tls_config c = {.psk = keys};
	struct weir_err err;
	struct tls *tls;
	uint32_t want;
	int rc;

	CHECK_INT(tls_new(&c, false, &tls, &err), 0);
	CHECK_INT(tls_start(tls, s, NULL), 0);
	while ((rc = tls_handshake(s, &want, &err)) == -EAGAIN)
		wait_for(s, want == EPOLLIN ? POLLIN : POLLOUT);
	if (rc < 0)
		FAIL("%s", err.text);
	tls_free(tls);
}

/* Do the whole handshake, `step` bytes at a time. Return 0 or its error. */
static int greet(
	struct stream *s, struct nbd_greet *g, const char *name, const char *keys, size_t step)
{
	uint8_t in[4096], out[NBD_NAME_MAX + 256];
	size_t n = 0, used, made;

	nbd_greet_init(g, name, keys != NULL, true, true);
	for (;;) {
		enum nbd_greet_state state =
			nbd_greet_input(g, in, n, &used, out, sizeof(out), &made);

		for (size_t at = 0; at < made; at += step)
			put_all(s, out + at, made - at < step ? made - at : step);
		n -= used;
		memmove(in, in + used, n);
		if (state == NBD_GREET_TLS) {
			shake(s, keys);
			nbd_greet_secure(g, out, sizeof(out), &made);
			put_all(s, out, made);
		}
		if (state == NBD_GREET_READY)
			return 0;
		if (state == NBD_GREET_FAILED)
			return g->error;
		if (used == 0 && made == 0) {
			ssize_t some = get_some(s, in + n, sizeof(in) - n);

			if (some <= 0)
				return -EPIPE;
			n += (size_t)some;
		}
	}
}

static void read_works(struct stream *s, uint64_t cookie)
{
	struct nbd_request q = {cookie, 0, 512, 0, NBD_READ};
	struct nbd_reply reply;
	uint8_t p[NBD_DATA_SIZE + 512];

	nbd_request_write(p, &q);
	put_all(s, p, NBD_REQUEST_SIZE);
	get_all(s, p, sizeof(p));
	CHECK_INT(nbd_reply_read(p, sizeof(p), &reply), NBD_CHUNK_SIZE);
	CHECK_INT(reply.cookie, cookie);
	CHECK_INT(reply.type, NBD_CHUNK_DATA);
}

#define DISKS                                                                                      \
	"resources:\n"                                                                             \
	"  - {name: one, back: \"memory:16M\"}\n"                                                  \
	"exports:\n"                                                                               \
	"  - {name: a, resource: one, size: 4 MiB, description: the first}\n"                      \
	"  - {name: b, resource: one, offset: 4 MiB, size: 4 MiB, read_only: true}\n"              \
	"  - {name: c, resource: one, offset: 8 MiB, size: 8 MiB}\n"

static void test_exports(void)
{
	struct nbd_greet g;
	struct stream s;
	struct house h;

	house_new(&h, DISKS "tenants: [{name: x, match: {export: \"[ab]\"}}]\n");
	for (size_t step = 1; step < 100; step += 33) {
		s = come_in();
		CHECK_INT(greet(&s, &g, "a", NULL, step), 0);
		CHECK(g.structured && g.base_allocation);
		CHECK_INT(g.export_.size, 4 << 20);
		CHECK_INT(g.export_.block_max, NBD_PAYLOAD_MAX);
		CHECK(!(g.export_.flags & NBD_READ_ONLY));
		CHECK(g.export_.flags & NBD_SEND_FLUSH && g.export_.flags & NBD_MULTI_CONN);
		read_works(&s, 7);
		stream_close(&s);
	}
	s = come_in();
	CHECK_INT(greet(&s, &g, "b", NULL, 1000), 0);
	CHECK(g.export_.flags & NBD_READ_ONLY && !(g.export_.flags & NBD_SEND_TRIM));
	read_works(&s, 8);
	stream_close(&s);
	s = come_in();
	CHECK_INT(greet(&s, &g, "nothing", NULL, 1000), -ENOENT);
	stream_close(&s);
	CHECK_INT(atomic_load(&h.gateway->refused), 0);
	s = come_in();
	CHECK_INT(greet(&s, &g, "c", NULL, 1000), -EACCES);
	stream_close(&s);
	CHECK_INT(atomic_load(&h.gateway->refused), 1);
	s = come_in();
	CHECK_INT(greet(&s, &g, "", NULL, 1000), -ENOENT); /* there are two candidates */
	stream_close(&s);
	CHECK_INT(atomic_load(&h.gateway->broken), 0);
	house_free(&h);
}

static size_t option(uint8_t *p, uint32_t number, const void *data, uint32_t n)
{
	bytes_put64(p, NBD_OPTION_MAGIC);
	bytes_put32(p + 8, number);
	bytes_put32(p + 12, n);
	if (n)
		memcpy(p + NBD_OPTION_SIZE, data, n);
	return NBD_OPTION_SIZE + n;
}

/* The list has the exports for this client; the default is the only one. */
static void test_list(void)
{
	uint8_t p[200];
	struct nbd_greet g;
	struct stream s;
	struct house h;
	size_t n;

	house_new(&h, DISKS "tenants: [{name: x, match: {export: b}}]\n");
	s = come_in();
	get_all(&s, p, NBD_GREETING_SIZE);
	bytes_put32(p, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
	n = 4 + option(p + 4, NBD_OPT_LIST, NULL, 0);
	n += option(p + n, NBD_OPT_ABORT, NULL, 0);
	put_all(&s, p, n);
	get_all(&s, p, NBD_ANSWER_SIZE + 4 + 1);
	CHECK_INT(bytes_get32(p + 12), NBD_REP_SERVER);
	CHECK_INT(p[NBD_ANSWER_SIZE + 4], 'b');
	get_all(&s, p, NBD_ANSWER_SIZE);
	CHECK_INT(bytes_get32(p + 12), NBD_REP_ACK);
	want_end(&s);
	s = come_in();
	CHECK_INT(greet(&s, &g, "", NULL, 1000), 0);
	CHECK_INT(g.export_.size, 4 << 20);
	CHECK(g.export_.flags & NBD_READ_ONLY);
	stream_close(&s);
	house_free(&h);
}

/* Everything in one piece: the handshake, and the first requests after it. */
static void test_early(void)
{
	uint8_t p[800];
	struct nbd_request q = {5, 0, 600, 0, NBD_WRITE}, disc = {6, 0, 0, 0, NBD_DISC};
	struct stream s;
	struct house h;
	size_t n;

	house_new(&h, DISKS "tenants: [{name: x, match: {export: \"*\"}}]\n");
	s = come_in();
	memset(p, 0, sizeof(p));
	bytes_put32(p, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
	n = 4 + option(p + 4, NBD_OPT_EXPORT_NAME, "a", 1);
	nbd_request_write(p + n, &q);
	n += NBD_REQUEST_SIZE + 600;
	nbd_request_write(p + n, &disc);
	put_all(&s, p, n + NBD_REQUEST_SIZE);
	get_all(&s, p, NBD_GREETING_SIZE + 10 + NBD_SIMPLE_SIZE);
	CHECK_INT(bytes_get64(p + NBD_GREETING_SIZE), 4 << 20);
	CHECK_INT(bytes_get64(p + NBD_GREETING_SIZE + 10 + 8), 5);
	want_end(&s);
	house_free(&h);
}

static void test_garbage(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: weir\r\n\r\n";
	struct nbd_greet g;
	struct stream s, idle;
	struct house h;

	house_new(&h, DISKS "tenants: [{name: x, match: {export: \"*\"}}]\n");
	idle = come_in();
	for (int i = 0; i < 20; i++) {
		s = come_in();
		put_all(&s, request, sizeof(request));
		want_end(&s);
	}
	CHECK_INT(atomic_load(&h.gateway->broken), 20);
	/* A client that leaves without a word is no fault. */
	s = come_in();
	stream_close(&s);
	s = come_in();
	CHECK_INT(greet(&s, &g, "a", NULL, 1000), 0);
	read_works(&s, 1);
	CHECK_INT(atomic_load(&h.gateway->broken), 20);
	stream_close(&s);
	house_free(&h);
	want_end(&idle);
}

/* Silent clients do not lock out others: the oldest is disconnected. */
static void test_crowd(void)
{
	enum { CROWD = 4200 };
	static struct stream crowd[CROWD];
	struct rlimit files;
	struct nbd_greet g;
	struct stream s;
	struct house h;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 2 * CROWD + 100) {
		printf("too few files for test_crowd\n");
		return;
	}
	house_new(&h, DISKS "tenants: [{name: x, match: {export: \"*\"}}]\n");
	for (int i = 0; i < CROWD; i++)
		crowd[i] = come_in();
	s = come_in();
	CHECK_INT(greet(&s, &g, "a", NULL, 1000), 0);
	read_works(&s, 1);
	CHECK_INT(atomic_load(&h.gateway->broken), CROWD + 1 - 4096);
	want_end(&crowd[0]);
	for (int i = 1; i < CROWD; i++)
		stream_close(&crowd[i]);
	stream_close(&s);
	house_free(&h);
}

static int nothing(void *arg, struct worker *w)
{
	return 0;
}

/* Replies of any size, some of which fit the buffers on the way and some do not, with nothing read
 * before the worker has done all it can. */
static void read_much(struct house *h, struct stream *s)
{
	static uint8_t p[1 << 20];

	for (uint32_t length = 4096; length <= 256 << 10; length += 4096) {
		struct nbd_request q = {length, 0, length, 0, NBD_READ};
		struct nbd_reply reply;

		nbd_request_write(p, &q);
		put_all(s, p, NBD_REQUEST_SIZE);
		for (int i = 0; i < 4; i++)
			worker_call(&h->gateway->workers[0], nothing, NULL);
		get_all(s, p, NBD_DATA_SIZE + length);
		CHECK_INT(nbd_reply_read(p, NBD_DATA_SIZE, &reply), NBD_CHUNK_SIZE);
		CHECK_INT(reply.cookie, length);
	}
}

#define SECRET                                                                                     \
	DISKS "tls: {psk: keys, required: true}\n"                                                 \
	      "tenants: [{name: x, match: {export: \"*\", tls: alice}}]\n"

static void test_tls(void)
{
	uint8_t p[100];
	struct nbd_greet g;
	struct stream s;
	struct house h;
	size_t n;

	house_new(&h, SECRET);
	s = come_in();
	CHECK(greet(&s, &g, "a", NULL, 1000) < 0);
	stream_close(&s);
	s = come_in();
	CHECK_INT(greet(&s, &g, "a", "alice", 1000), 0);
	for (uint64_t i = 0; i < 100; i++)
		read_works(&s, i);
	read_much(&h, &s);
	stream_close(&s);
	s = come_in();
	CHECK_INT(greet(&s, &g, "a", "bob", 1000), -EACCES); /* known key, but without a tenant */
	stream_close(&s);
	/* Plain text after STARTTLS is not processed. */
	s = come_in();
	get_all(&s, p, NBD_GREETING_SIZE);
	bytes_put32(p, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
	n = 4 + option(p + 4, NBD_OPT_STARTTLS, NULL, 0);
	n += option(p + n, NBD_OPT_LIST, NULL, 0);
	put_all(&s, p, n);
	want_end(&s);
	CHECK_INT(atomic_load(&h.gateway->broken), 1);
	house_free(&h);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	CHECK(f != NULL);
	fputs(text, f);
	CHECK_INT(fclose(f), 0);
}

int main(void)
{
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder) != NULL);
	CHECK_INT(chdir(folder), 0);
	snprintf(address, sizeof(address), "unix:%s/nbd.sock", folder);
	write_file("keys", "alice:0123456789abcdef0123456789abcdef\n"
			   "bob:fedcba9876543210fedcba9876543210\n");
	write_file("alice", "alice:0123456789abcdef0123456789abcdef\n");
	write_file("bob", "bob:fedcba9876543210fedcba9876543210\n");
	RUN(test_exports);
	RUN(test_list);
	RUN(test_early);
	RUN(test_garbage);
	RUN(test_crowd);
	RUN(test_tls);
	unlink("keys");
	unlink("alice");
	unlink("bob");
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
