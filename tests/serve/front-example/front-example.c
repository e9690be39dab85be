/* SPDX-License-Identifier: BSD-3-Clause */
/* The example of a front end, line.c, in a gateway: found by its name, with the shared handshake,
 * TLS, identity, pieces, memory limits and slow clients, and with the weights of the gate kept. */
#include "serve/front-rig.h"
#include "base/container.h"
#include "serve/loop/tls.h"
#include "policy-parse.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

#define MIB (1u << 20)

extern const struct front_ops front_line_ops;

static char folder[] = "/tmp/weir-line-XXXXXX", line_at[80], nbd_at[80], keys[80];
static uint8_t big[8 * MIB], again[8 * MIB];

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
	const char *const addresses[] = {nbd_at, line_at};
	struct gateway_options o = {
		.memory = 32 * MIB, .listen = addresses, .n_listen = 2, .threads = 1};
	struct weir_err err;

	if (gateway_new(parse(text), text, "test", &o, &h->gateway, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(pthread_create(&h->thread, NULL, live, h), 0);
}

static void stop(struct loop_task *t)
{
	gateway_stop(container_of(t, struct house, stop)->gateway);
}

static void house_free(struct house *h)
{
	h->stop.run = stop;
	loop_post(gateway_loop(h->gateway), &h->stop);
	pthread_join(h->thread, NULL);
	gateway_free(h->gateway);
}

/* ---- a client, on a non-blocking stream */

static void wait_for(const struct stream *s, uint32_t want)
{
	struct pollfd p = {.fd = s->fd, .events = want == EPOLLOUT ? POLLOUT : POLLIN};

	if (poll(&p, 1, 30000) <= 0)
		FAIL("nothing comes");
}

static void say(struct stream *s, const void *data, size_t n)
{
	while (n || stream_pending(s)) {
		struct iovec v = {(void *)(uintptr_t)data, n};
		ssize_t sent = stream_send(s, &v, n > 0);

		if (sent == -EAGAIN || (sent == 0 && n == 0))
			wait_for(s, EPOLLOUT);
		else if (sent < 0)
			FAIL("send: %s", strerror((int)-sent));
		data = (const char *)data + (sent > 0 ? sent : 0);
		n -= sent > 0 ? (size_t)sent : 0;
	}
}

/* Return false at the end of the stream. */
static bool take(struct stream *s, void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t some = stream_recv(s, (char *)data + at, n - at);

		if (some == 0 || (some < 0 && some != -EAGAIN))
			return false;
		if (some < 0)
			wait_for(s, EPOLLIN);
		at += some > 0 ? (size_t)some : 0;
	}
	return true;
}

static void want_line(struct stream *s, const char *want)
{
	char line[400] = "";

	for (size_t n = 0; n < sizeof(line) - 1; n++)
		if (!take(s, line + n, 1) || line[n] == '\n') {
			line[n] = '\0';
			break;
		}
	CHECK_STR(line, want);
}

static void tell(struct stream *s, const char *text, const char *want)
{
	say(s, text, strlen(text));
	if (want)
		want_line(s, want);
}

static struct stream come_in(void)
{
	struct stream s = {0};
	struct weir_err err;

	if (stream_connect(line_at + strlen("line+"), 10 * WEIR_SEC, &s.fd, &err) < 0)
		FAIL("%s", err.text);
	want_line(&s, "weir line");
	return s;
}

/* ---- the tests */

static void test_names(void)
{
	const struct front_ops *ops;
	const char *rest;
	struct weir_err err;

	CHECK_INT(gateway_front("unix:/x", &ops, &rest, &err), 0);
	CHECK_STR(ops->name, "nbd");
	CHECK_STR(rest, "unix:/x");
	CHECK_INT(gateway_front("nbd+tcp:h:1", &ops, &rest, &err), 0);
	CHECK_STR(ops->name, "nbd");
	CHECK_STR(rest, "tcp:h:1");
	CHECK_INT(gateway_front("line+unix:/a+b", &ops, &rest, &err), 0);
	CHECK(ops == &front_line_ops);
	CHECK_STR(rest, "unix:/a+b");
	CHECK_INT(gateway_front("lin+unix:/x", &ops, &rest, &err), -EINVAL);
	CHECK_INT(gateway_front("liner+unix:/x", &ops, &rest, &err), -EINVAL);
	CHECK_INT(gateway_front("+unix:/x", &ops, &rest, &err), 0); /* refused as an address */
	CHECK_INT(stream_listen_check(rest, &err), -EINVAL);
}

#define DISKS                                                                                      \
	"resources:\n"                                                                             \
	"  - {name: disk, back: \"memory:16M\"}\n"                                                 \
	"  - {name: other, back: \"memory:16M\"}\n"                                                \
	"exports:\n"                                                                               \
	"  - {name: open, resource: disk, offset: 1 MiB}\n"                                        \
	"  - {name: fixed, resource: disk, size: 1 MiB, read_only: true}\n"                        \
	"  - {name: hers, resource: other, size: 8 MiB}\n"                                         \
	"  - {name: theirs, resource: other, offset: 8 MiB}\n"

static void start_tls(struct stream *s, struct tls *tls)
{
	struct weir_err err;
	uint32_t want = EPOLLIN;
	int rc;

	tell(s, "STARTTLS\n", "ok");
	CHECK_INT(tls_start(tls, s, NULL), 0);
	while ((rc = tls_handshake(s, &want, &err)) == -EAGAIN)
		wait_for(s, want);
	if (rc < 0)
		FAIL("%s", err.text);
}

/* Which exports a client may use follows from its name, uid and key. */
static void test_identity(void)
{
	char text[2000];
	struct house h;
	struct stream s;
	struct weir_err err;
	struct tls *tls;
	FILE *f = fopen(keys, "w");

	CHECK(f);
	fprintf(f, "alice:00112233445566778899aabbccddeeff\n");
	fclose(f);
	snprintf(text, sizeof(text),
		DISKS "tls: {psk: \"%s\"}\n"
		      "tenants:\n"
		      "  - {name: us, match: [{export: open, uid: %u}, {export: fixed}]}\n"
		      "  - {name: her, match: {export: hers, tls: alice}}\n"
		      "  - {name: them, match: {export: theirs, uid: %u}}\n",
		keys, (unsigned)getuid(), (unsigned)getuid() + 1);
	if (tls_new(&(struct tls_config){.psk = keys}, false, &tls, &err) < 0)
		FAIL("%s", err.text);
	house_new(&h, text);
	s = come_in();
	tell(&s, "LIST\n", "open");
	want_line(&s, "fixed");
	want_line(&s, "ok");
	tell(&s, "USE theirs\n", "error 13");
	tell(&s, "USE hers\n", "error 13");
	tell(&s, "USE nowhere\n", "error 2");
	tell(&s, "HELLO\n", "error 22");
	tell(&s, "USE open\n", "ok 15728640");
	tell(&s, "QUIT\n", "");
	stream_close(&s);
	s = come_in();
	start_tls(&s, tls);
	tell(&s, "STARTTLS\n", "error 22");
	tell(&s, "USE theirs\n", "error 13");
	tell(&s, "USE hers\nECHO 5 over tls\n", "ok 8388608"); /* the request comes early */
	want_line(&s, "5 ok 8");
	tell(&s, "QUIT\n", "over tls");
	stream_close(&s);
	CHECK_INT(atomic_load(&h.gateway->broken), 0);
	CHECK_INT(atomic_load(&h.gateway->refused), 2);
	house_free(&h);
	tls_free(tls);
}

static const char anyone[] = DISKS "tenants: [{name: all, match: {export: \"*\"}}]\n";

/* Requests and replies, small and in pieces, and requests that are none. */
static void try_requests(const char *text)
{
	static const char *const faults[] = {
		"READ\n", "READ 1 2\n", "SEEK 1 2 3\n", "\n", "ECHO\n"};
	struct house h;
	struct stream s;

	house_new(&h, text);
	s = come_in();
	tell(&s, "USE open\n", "ok 15728640");
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 131 + (i >> 12));
	tell(&s, "WRITE 1 512 8388608\n", NULL);
	say(&s, big, sizeof(big));
	want_line(&s, "1 ok 0");
	tell(&s, "READ 2 512 8388608\n", "2 ok 8388608");
	CHECK(take(&s, again, sizeof(again)));
	CHECK(memcmp(big, again, sizeof(big)) == 0);
	tell(&s, "READ 3 1000 3\n", "3 ok 3");
	CHECK(take(&s, again, 3));
	CHECK(memcmp(again, big + 488, 3) == 0);
	tell(&s, "READ 4 15728640 1\n", "4 error 22");
	tell(&s, "READ 5 18446744073709551615 2\n", "5 error 22");
	tell(&s, "READ 6 0 0\n", "6 ok 0");
	tell(&s, "WRITE 7 15728639 2\nxyECHO 8 a text\n", "7 error 22");
	want_line(&s, "8 ok 6");
	tell(&s, "QUIT\n", "a text");
	stream_close(&s);
	s = come_in();
	tell(&s, "USE fixed\n", "ok 1048576");
	tell(&s, "WRITE 1 0 2\nxyREAD 2 0 1\n", "1 error 1");
	want_line(&s, "2 ok 1");
	CHECK(take(&s, again, 1) && again[0] == 0);
	stream_close(&s);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		s = come_in();
		tell(&s, "USE open\n", "ok 15728640");
		tell(&s, faults[i], NULL);
		CHECK(!take(&s, again, 1));
		stream_close(&s);
		CHECK_INT(atomic_load(&h.gateway->broken), i + 1);
	}
	/* A line that never ends is cut off, wherever receives end. */
	for (int before = 0; before < 2; before++) {
		s = come_in();
		if (!before)
			tell(&s, "USE open\n", "ok 15728640");
		memset(again, 'x', 1000);
		say(&s, again, 200);
		say(&s, again, 200);
		CHECK(!take(&s, again, 1));
		stream_close(&s);
	}
	house_free(&h);
}

/* With gates that hold back, and in shadow mode. */
static void test_requests(void)
{
	char shadow[sizeof(anyone) + 40];

	try_requests(anyone);
	snprintf(shadow, sizeof(shadow), "enforce: false\n%s", anyone);
	try_requests(shadow);
}

/* A client that reads no replies is paused when it has its part of the memory. Others go on; and
 * when it does read, everything is there. */
static void test_slow(void)
{
	enum { N = 64 };
	struct house h;
	struct stream slow, s;
	char text[64], seen[N] = "";

	house_new(&h, anyone);
	slow = come_in();
	tell(&slow, "USE open\n", "ok 15728640");
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "READ %d %d 1048576\n", i, i);
		tell(&slow, text, NULL);
	}
	for (int k = 0; k < 20; k++) {
		s = come_in();
		tell(&s, "USE open\n", "ok 15728640");
		tell(&s, "READ 1 0 1048576\n", "1 ok 1048576");
		CHECK(take(&s, again, MIB));
		stream_close(&s);
	}
	for (int i = 0; i < N; i++) {
		size_t n = 0;
		int tag, length;

		do
			CHECK(take(&slow, text + n, 1) && n < sizeof(text));
		while (text[n++] != '\n');
		CHECK_INT(sscanf(text, "%d ok %d", &tag, &length), 2);
		CHECK(length == (int)MIB && tag >= 0 && tag < N && !seen[tag]++);
		CHECK(take(&slow, again, MIB));
	}
	stream_close(&slow);
	CHECK_INT(atomic_load(&h.gateway->broken), 0);
	house_free(&h);
}

static int first_offset(void *arg, struct worker *w)
{
	return (int)((struct held *)arg)->first->offset;
}

/* Weights of 1 and 2, both busy, in front of a back end that takes 4 at a time: what passes does
 * not depend on time. A call waits for its turn as well. */
static void test_weights(void)
{
	enum { N = 900, SERVED = 600 };
	static char replies[N * 600];
	size_t n = 0;
	char text[64];
	struct rig r;
	int fd[2], served[2] = {0, 0};

	rig_new_with(&r, NULL, held_new(), 64 * MIB,
		"tenants:\n"
		"  - {name: a, weight: 1, match: {export: disk}}\n"
		"  - {name: b, weight: 2, match: {export: b}}\n",
		4);
	for (int i = 0; i < 2; i++) {
		fd[i] = rig_connect(&r, (struct rig_options){.ops = &front_line_ops, .tenant = i});
		for (int k = 0; k < N; k++) {
			snprintf(text, sizeof(text), "READ %d %d 512\n", k, i * 4096);
			put_all(fd[i], text, strlen(text));
		}
	}
	put_all(fd[0], "ECHO 1000 called\n", 17);
	while (r.worker.front->n_used < 2 * N + 1)
		rig_settle(&r);
	for (int i = 0; i < SERVED; i++) {
		served[worker_call(&r.worker, first_offset, r.held) != 0]++;
		worker_call(&r.worker, held_release_oldest, r.held);
		rig_settle(&r);
		CHECK_INT(worker_call(&r.worker, held_count, r.held), 4);
	}
	printf("served: %d and %d\n", served[0], served[1]);
	CHECK(served[1] > 0 && abs(served[1] - 2 * served[0]) * 100 <= 5 * 2 * served[0]);
	CHECK_INT(r.resource->served, SERVED); /* the call is not: its turn is after the reads */
	worker_call(&r.worker, held_open, r.held);
	while (!memmem(replies, n, "1000 ok 6\ncalled", 16)) {
		ssize_t some = recv(fd[0], replies + n, sizeof(replies) - n, 0);

		CHECK(some > 0);
		n += (size_t)some;
	}
	close(fd[0]);
	close(fd[1]);
	rig_free(&r);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(line_at, sizeof(line_at), "line+unix:%s/line", folder);
	snprintf(nbd_at, sizeof(nbd_at), "unix:%s/nbd", folder);
	snprintf(keys, sizeof(keys), "%s/keys", folder);
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	RUN(test_names);
	RUN(test_identity);
	RUN(test_requests);
	RUN(test_slow);
	RUN(test_weights);
	unlink(keys);
	rmdir(folder);
	return 0;
}
