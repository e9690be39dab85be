/* SPDX-License-Identifier: BSD-3-Clause */
/* Run a whole connection between a server and its controller: HELLO, then frames. We are one
 * side and the input is the other. The input is a list of steps, each one byte and its
 * arguments, so that it gets past the seal, which random bytes would not: frames may be sealed
 * correctly or not, with the expected nonce or another, cut, doubled, or in pieces. For every
 * input, only frames that are sealed, fresh, newer than the last one and of a kind that the
 * other side sends are delivered, none is delivered after the end, and the end is reported once. */
#include "fuzz.h"
#include "serve/lease/lease-conn.h"
#include "serve/loop/log.h"
#include "wire/bytes.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRIES 8
#define US      7
#define THEM    9

static struct loop *loop;
static struct peer_key key;

static struct run {
	struct lease_conn *conn;
	int fd; /* the input's side */
	bool controller;
	bool over, hello;
	uint64_t sequence, instance; /* of the last frame that was delivered */
	uint8_t wanted[PEER_NONCE];
	struct loop_timer stop;
} run;

static void over(void *arg, struct lease_conn *c, enum peer_verdict v, const char *why)
{
	MUST(!run.over && *why);
	run.over = true;
	lease_conn_free(c);
	run.conn = NULL;
}

static void receive(void *arg, struct lease_conn *c, struct lease_message *m)
{
	MUST(!run.over && lease_conn_proven(c) && run.hello);
	MUST((m->kind == LEASE_REPORT) == run.controller && m->kind != LEASE_HELLO);
	/* A changed byte may have given the input another instance, but all frames have the same
	 * one, and the name of its HELLO. */
	MUST(m->instance != US && (!run.instance || m->instance == run.instance));
	MUST(m->sequence > run.sequence && m->n <= ENTRIES);
	MUST(strcmp(m->name, lease_conn_name(c)) == 0);
	run.instance = m->instance;
	MUST(memcmp(m->nonce, run.wanted, PEER_NONCE) == 0);
	run.sequence = m->sequence;
}

static void stop(struct loop_timer *t, weir_time now)
{
	loop_stop(loop);
}

static void turn(void)
{
	loop_set(loop, &run.stop, loop_clock());
	MUST(loop_run(loop) == 0);
}

/* Read the HELLO that we were sent, with the nonce that our frames must have. */
static void read_hello(void)
{
	uint8_t bytes[4096];
	ssize_t n = recv(run.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct lease_message m = {0};
	size_t length;

	MUST(n >= PEER_HEAD && lease_look(bytes, 1, &length) == PEER_TAKEN);
	MUST(lease_read(bytes, length, &m) == PEER_TAKEN && m.kind == LEASE_HELLO);
	memcpy(run.wanted, m.nonce, PEER_NONCE);
	lease_message_free(&m);
}

struct input {
	const uint8_t *p, *end;
};

static uint8_t byte(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

/* Bits of how: 1 another nonce, 2 a wrong seal, 4 another instance, 8 another cluster, 16 one
 * byte changed before sealing, 32 cut, 64 sent twice, 128 sent in two pieces. */
static void send_frame(struct input *in, enum lease_kind kind, uint8_t how)
{
	struct lease_demand demands[ENTRIES + 4] = {
		{.bucket = 1, .cap = 5, .limit = LEASE_NO_LIMIT}};
	struct lease_message m = {.kind = kind,
		.cluster = how & 8 ? 2 : 1,
		.instance = how & 4 ? US : THEM,
		.sequence = byte(in),
		.sent = 1,
		.name = "them",
		.demands = demands,
		.n = kind == LEASE_REPORT || kind == LEASE_GRANT ? byte(in) % (ENTRIES + 4) : 0};
	uint8_t frame[LEASE_FRAME(ENTRIES + 4)];
	size_t n, part;

	if (kind == LEASE_REPORT)
		m.report = (struct lease_report){.length = 1000, .capacity = 10};
	else if (kind != LEASE_HELLO)
		m.grant.generation = 1;
	if (kind == LEASE_GRANT)
		m.grant = (struct lease_grant){1, 0, 0, 0, 0, 0, 1, 1000, 10, 1, 1};
	memcpy(m.nonce, run.wanted, PEER_NONCE);
	m.nonce[0] ^= how & 1;
	n = lease_write(frame, &m);
	if (how & 16) {
		size_t at = (byte(in) | (size_t)byte(in) << 8) % n;

		frame[at] ^= byte(in);
	}
	peer_key_seal(&key, frame, n);
	n += PEER_SEAL;
	frame[n - 1] ^= (how & 2) / 2;
	part = how & 32 ? byte(in) % n : n;
	if (how & 128) {
		size_t first = byte(in) % (part + 1);

		(void)!send(run.fd, frame, first, MSG_NOSIGNAL | MSG_DONTWAIT);
		turn();
		(void)!send(run.fd, frame + first, part - first, MSG_NOSIGNAL | MSG_DONTWAIT);
	} else {
		(void)!send(run.fd, frame, part, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (how & 64)
		(void)!send(run.fd, frame, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	run.hello |= kind == LEASE_HELLO;
}

/* Send a frame of our own, as the owner may at any time. */
static void say_something(void)
{
	struct lease_message m = {.kind = run.controller ? LEASE_ASK : LEASE_REPORT,
		.cluster = 1,
		.instance = US,
		.sequence = 2,
		.name = "us"};
	uint8_t frame[LEASE_FRAME(0)];

	if (run.conn)
		lease_conn_send(run.conn, frame, lease_write(frame, &m));
}

static void steps(struct input *in)
{
	while (in->p < in->end) {
		uint8_t step = byte(in), how = byte(in);

		switch (step % 8) {
		case 0:
			send_frame(in, LEASE_HELLO, how);
			break;
		case 1:
			send_frame(in, LEASE_REPORT, how);
			break;
		case 2:
			send_frame(in, LEASE_GRANT, how);
			break;
		case 3:
			send_frame(in, LEASE_ASK, how);
			break;
		case 4:
			say_something();
			break;
		case 5: { /* raw bytes */
			size_t left = (size_t)(in->end - in->p), n = how < left ? how : left;

			(void)!send(run.fd, in->p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
			in->p += n;
			break;
		}
		case 6:
			shutdown(run.fd, SHUT_WR);
			break;
		default:
			break;
		}
		turn();
	}
}

static void prepare(void)
{
	struct weir_err err;

	if (loop)
		return;
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	MUST(loop_new(&loop) == 0);
	MUST(peer_key_read(NULL, "fuzz", &key, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	struct lease_conn_stats stats = {.sent = 0};
	struct lease_message message = {0};
	int fds[2];

	prepare();
	run = (struct run){.controller = byte(&in) & 1, .stop.due = stop};
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	run.fd = fds[1];
	MUST(lease_conn_new(&(struct lease_conn_config){.loop = loop,
				    .key = &key,
				    .side = run.controller ? LEASE_CONTROLLER : LEASE_SERVER,
				    .cluster = 1,
				    .instance = US,
				    .name = "us",
				    .entries = ENTRIES,
				    .stats = &stats,
				    .message = &message,
				    .receive = receive,
				    .over = over},
		     fds[0], &run.conn) == 0);
	read_hello();
	steps(&in);
	turn();
	loop_set(loop, &run.stop, WEIR_NEVER);
	lease_conn_free(run.conn);
	close(run.fd);
	lease_message_free(&message);
	return 0;
}
