/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-hub: servers and a controller over a socket: links that connect and reconnect, and invalid
 * clients: with another key, of another cluster, with garbage, too large, or with replayed
 * messages. No test waits for time to pass: the loop runs until an event has happened.
 */
#include "test.h"
#include "serve/lease/lease-hub.h"
#include "serve/lease/lease-link.h"
#include "serve/loop/log.h"
#include "serve/loop/stream.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLUSTER 77
#define ENTRIES 100

static struct loop *loop;
static struct peer_key key, other_key;
static char at[64];

/* ---- the controller */

static struct lease_hub *hub;
static struct lease_hub_server *last; /* the last sender */
static unsigned heard, left;
static uint64_t heard_sequence;
static char heard_name[PEER_NAME_MAX + 1];
static bool drop_next;

static void hub_receive(void *arg, struct lease_hub_server *g, struct lease_message *m)
{
	heard++;
	heard_sequence = m->sequence;
	snprintf(heard_name, sizeof(heard_name), "%s", m->name);
	last = g;
	if (drop_next) {
		drop_next = false;
		last = NULL;
		lease_hub_drop(g, "a test");
	}
	loop_stop(loop);
}

static void hub_gone(void *arg, struct lease_hub_server *g)
{
	left++;
	if (last == g)
		last = NULL;
	loop_stop(loop);
}

static void hub_open(size_t most)
{
	const char *addresses[] = {at};
	struct lease_hub_config c = {.loop = loop,
		.addresses = addresses,
		.n_addresses = 1,
		.key = &key,
		.cluster = CLUSTER,
		.instance = 1,
		.name = "controller",
		.entries = ENTRIES,
		.most = most,
		.receive = hub_receive,
		.gone = hub_gone};
	struct weir_err err;

	if (lease_hub_new(&c, &hub, &err) < 0)
		FAIL("%s", err.text);
}

static struct lease_hub_stats stats(void)
{
	struct lease_hub_stats s;

	lease_hub_stats(hub, &s);
	return s;
}

static uint64_t verdict(enum peer_verdict v)
{
	return stats().conn.verdicts[v];
}

/* ---- the loop */

static void stop(struct loop_task *t)
{
	loop_stop(loop);
}

/* Run one round, which takes all pending input. */
static void turn(void)
{
	struct loop_task t = {.run = stop};

	loop_post(loop, &t);
	CHECK_INT(loop_run(loop), 0);
}

/* Run rounds until it is true; the test's own timeout ends it if it never is. */
#define UNTIL(so)                                                                                  \
	while (!(so))                                                                              \
	turn()

/* ---- messages */

static size_t make(uint8_t *frame, enum lease_kind kind, const char *name, uint64_t instance,
	uint64_t sequence, size_t entries)
{
	static struct lease_demand demands[4 * ENTRIES];
	struct lease_message m = {.kind = kind,
		.cluster = CLUSTER,
		.instance = instance,
		.sequence = sequence,
		.n = entries,
		.demands = demands};

	snprintf(m.name, sizeof(m.name), "%s", name);
	for (size_t i = 0; i < entries; i++)
		demands[i] = (struct lease_demand){
			.bucket = UINT64_MAX, .used = LEASE_TOKENS_MAX, .queue = LEASE_TOKENS_MAX};
	if (kind == LEASE_GRANT)
		m.grant = (struct lease_grant){.generation = 1,
			.period = 1,
			.length = 10,
			.interval = 5,
			.hold = 1,
			.gap = 1};
	return lease_write(frame, &m);
}

/* ---- a server */

struct server {
	struct lease_link *link;
	struct lease_conn_stats stats;
	struct lease_message message;
	unsigned heard, ups;
	uint64_t sequence;
};

static void link_receive(void *arg, struct lease_message *m)
{
	((struct server *)arg)->heard++;
	CHECK_INT(m->kind, LEASE_GRANT);
}

static void link_up(void *arg)
{
	((struct server *)arg)->ups++;
}

static void server_open(struct server *s, const char *name, uint64_t instance)
{
	struct lease_link_config c = {.address = at,
		.conn = {.loop = loop,
			.key = &key,
			.cluster = CLUSTER,
			.instance = instance,
			.name = name,
			.entries = ENTRIES,
			.stats = &s->stats,
			.message = &s->message},
		.receive = link_receive,
		.up = link_up,
		.arg = s};

	*s = (struct server){0};
	CHECK_INT(lease_link_new(&c, &s->link), 0);
}

static int server_say(struct server *s, const char *name, uint64_t instance)
{
	uint8_t frame[LEASE_FRAME(0)];
	size_t n = make(frame, LEASE_REPORT, name, instance, ++s->sequence, 0);

	return lease_link_send(s->link, frame, n);
}

static bool is_up(const struct server *s)
{
	struct lease_link_status st;

	lease_link_status(s->link, &st);
	return st.up;
}

static void server_close(struct server *s)
{
	lease_link_free(s->link);
	lease_message_free(&s->message);
}

static void grant(uint64_t sequence)
{
	uint8_t frame[LEASE_FRAME(0)];
	size_t n = make(frame, LEASE_GRANT, "controller", 1, sequence, 0);

	CHECK_INT(lease_hub_send(last, frame, n), 0);
}

/* ---- a client by hand */

static int knock(void)
{
	struct weir_err err;
	int fd;

	if (stream_connect(at, 5 * WEIR_SEC, &fd, &err) < 0)
		FAIL("%s", err.text);
	return fd;
}

static void say(int fd, const void *data, size_t n)
{
	CHECK(send(fd, data, n, MSG_NOSIGNAL) == (ssize_t)n);
}

/* Read the controller's HELLO, with the nonce that it expects. */
static void hear_hello(int fd, struct lease_message *m)
{
	uint8_t frame[LEASE_FRAME(0)];
	size_t have = 0;

	while (have < sizeof(frame)) {
		ssize_t n = recv(fd, frame + have, sizeof(frame) - have, 0);

		CHECK(n > 0 || (n < 0 && errno == EAGAIN));
		if (n < 0)
			turn();
		else
			have += (size_t)n;
	}
	CHECK(peer_key_sealed(&key, frame, sizeof(frame) - PEER_SEAL));
	CHECK_INT(lease_read(frame, sizeof(frame) - PEER_SEAL, m), PEER_TAKEN);
	CHECK_INT(m->kind, LEASE_HELLO);
}

static void say_sealed(int fd, const struct peer_key *k, uint8_t *frame, size_t n)
{
	peer_key_seal(k, frame, n);
	say(fd, frame, n + PEER_SEAL);
}

/* Send HELLO as a server of that revision would; *theirs is the other side's. */
static int greet_as(uint64_t revision, struct lease_message *theirs)
{
	uint8_t frame[LEASE_FRAME(0)];
	int fd = knock();

	say_sealed(fd, &key, frame, make(frame, LEASE_HELLO, "x", 9, revision, 0));
	hear_hello(fd, theirs);
	return fd;
}

static int greet(struct lease_message *theirs)
{
	return greet_as(1, theirs);
}

static void is_closed(int fd)
{
	char c;

	for (;;) {
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n < 0)
			turn();
	}
	close(fd);
}

/* Check that the client was refused for `v`, and for no other reason. */
static void refused(int fd, enum peer_verdict v)
{
	uint64_t before = verdict(v), all = stats().refused;

	UNTIL(verdict(v) > before);
	is_closed(fd);
	UNTIL(stats().refused > all);
	CHECK_INT(verdict(v), before + 1);
}

/* ---- tests */

static void there_and_back(void)
{
	struct server a;

	hub_open(0);
	server_open(&a, "a", 5);
	UNTIL(a.ups);
	CHECK_INT(server_say(&a, "a", 5), 0);
	UNTIL(heard == 1);
	CHECK_STR(heard_name, "a");
	CHECK(!is_up(&a)); /* a recorded HELLO can be replayed without the key */
	grant(1);
	UNTIL(a.heard == 1);
	CHECK(is_up(&a));
	CHECK_INT(stats().proven, 1);
	server_close(&a);
	UNTIL(left == 1);
	CHECK_INT(stats().servers, 0);
	lease_hub_free(hub);
}

static void comes_back(void)
{
	struct lease_link_status st;
	struct server a;

	heard = 0;
	hub_open(0);
	server_open(&a, "a", 5);
	UNTIL(a.ups);
	server_say(&a, "a", 5);
	UNTIL(heard == 1);
	grant(1);
	UNTIL(is_up(&a));
	lease_hub_free(hub);
	UNTIL(!is_up(&a));
	CHECK_INT(server_say(&a, "a", 5), -ENOTCONN); /* lost at once, without waiting */
	hub_open(0);
	UNTIL(a.ups == 2);
	server_say(&a, "a", 5);
	UNTIL(heard == 2);
	CHECK_INT(heard_sequence, 3);
	lease_link_status(a.link, &st);
	CHECK(st.downs >= 1);
	drop_next = true; /* from inside its own callback */
	server_say(&a, "a", 5);
	UNTIL(a.ups == 3);
	CHECK_INT(stats().refused, 1);
	server_close(&a);
	lease_hub_free(hub);
}

static void strangers(void)
{
	uint8_t frame[LEASE_FRAME(4 * ENTRIES)];
	struct lease_message m = {0}, head;
	size_t n;
	int fd;

	hub_open(0);
	fd = knock(); /* not this protocol */
	memset(frame, 'x', PEER_HEAD);
	say(fd, frame, PEER_HEAD);
	refused(fd, PEER_NOISE);
	fd = knock(); /* another key */
	say_sealed(fd, &other_key, frame, make(frame, LEASE_HELLO, "x", 9, 1, 0));
	refused(fd, PEER_FORGED);
	fd = knock(); /* another cluster, refused before its seal is checked */
	head = (struct lease_message){
		.kind = LEASE_HELLO, .cluster = 1, .instance = 9, .sequence = 1, .name = "x"};
	say_sealed(fd, &key, frame, lease_write(frame, &head));
	refused(fd, PEER_CLUSTER);
	fd = knock(); /* a later version */
	n = make(frame, LEASE_HELLO, "x", 9, 1, 0);
	frame[4]++;
	say_sealed(fd, &key, frame, n);
	refused(fd, PEER_VERSION);
	fd = knock(); /* without a HELLO */
	say_sealed(fd, &key, frame, make(frame, LEASE_REPORT, "x", 9, 1, 0));
	refused(fd, PEER_BROKEN);
	fd = knock(); /* a HELLO that is too long */
	say_sealed(fd, &key, frame, make(frame, LEASE_REPORT, "x", 9, 1, 1));
	refused(fd, PEER_NOISE);
	fd = knock(); /* our own HELLO, replayed */
	hear_hello(fd, &m);
	head.cluster = CLUSTER;
	head.instance = m.instance;
	say_sealed(fd, &key, frame, lease_write(frame, &head));
	refused(fd, PEER_OWN);
	CHECK_INT(stats().proven, 0);
	lease_hub_free(hub);
}

/* Send a report that is valid but for one thing. */
static void spoilt(enum lease_kind kind, uint64_t instance, size_t entries, bool nonce,
	uint64_t sequence, enum peer_verdict v)
{
	static uint8_t frame[LEASE_FRAME(4 * ENTRIES)];
	struct lease_message theirs = {0};
	int fd = greet(&theirs);
	unsigned before = heard;
	size_t n = make(frame, LEASE_REPORT, "x", 9, 5, 1);

	peer_write_nonce(frame, theirs.nonce);
	say_sealed(fd, &key, frame, n);
	UNTIL(heard == before + 1);
	n = make(frame, kind, "x", instance, sequence, entries);
	if (nonce)
		peer_write_nonce(frame, theirs.nonce);
	say_sealed(fd, &key, frame, n);
	if (v != PEER_TAKEN) {
		refused(fd, v);
		return;
	}
	UNTIL(heard == before + 2);
	close(fd);
	before = left;
	UNTIL(left > before);
}

static void played_again(void)
{
	hub_open(0);
	spoilt(LEASE_REPORT, 9, 0, true, 6, PEER_TAKEN);
	spoilt(LEASE_REPORT, 9, 0, false, 6, PEER_OLD);  /* of another connection */
	spoilt(LEASE_REPORT, 9, 0, true, 5, PEER_OLD);   /* of this one */
	spoilt(LEASE_GRANT, 9, 0, true, 6, PEER_BROKEN); /* a kind that servers do not send */
	spoilt(LEASE_HELLO, 9, 0, true, 6, PEER_BROKEN);
	spoilt(LEASE_REPORT, 8, 0, true, 6, PEER_BROKEN);          /* another sender */
	spoilt(LEASE_REPORT, 9, 4 * ENTRIES, true, 6, PEER_NOISE); /* too much */
	spoilt(LEASE_REPORT, 9, ENTRIES, true, 6, PEER_TAKEN);
	lease_hub_allow(hub, 4 * ENTRIES, 0);
	spoilt(LEASE_REPORT, 9, 4 * ENTRIES, true, 6, PEER_TAKEN);
	lease_hub_free(hub);
}

/* Plans go only to servers that know them, and have a sequence of their own. */
static void revisions(void)
{
	uint8_t frame[LEASE_FRAME(0)];

	hub_open(0);
	for (uint64_t revision = 1; revision <= LEASE_REVISION; revision++) {
		struct lease_message theirs = {0}, plan = {.kind = LEASE_PLAN};
		int fd = greet_as(revision, &theirs);
		size_t n = make(frame, LEASE_REPORT, "x", 9, 7, 0);

		CHECK_INT(theirs.sequence, LEASE_REVISION);
		heard = 0;
		peer_write_nonce(frame, theirs.nonce);
		say_sealed(fd, &key, frame, n);
		UNTIL(heard == 1);
		CHECK_INT(lease_hub_plans(last), revision == LEASE_REVISION);
		CHECK_INT(lease_hub_tell(last, &plan),
			revision == LEASE_REVISION ? 0 : -EPROTONOSUPPORT);
		for (uint64_t i = 1; i < 3; i++) {
			n = make(frame, LEASE_HAS, "x", 10, i,
				0); /* another instance: of its gateway */
			peer_write_nonce(frame, theirs.nonce);
			say_sealed(fd, &key, frame, n);
			UNTIL(heard == 1 + i);
		}
		say_sealed(fd, &key, frame, n); /* once more */
		refused(fd, PEER_OLD);
	}
	lease_hub_free(hub);
}

/* Byte by byte, and two messages in one piece. */
static void in_pieces(void)
{
	uint8_t frame[2 * LEASE_FRAME(ENTRIES)];
	struct lease_message theirs = {0};
	int fd;
	size_t n, m;

	hub_open(0);
	fd = greet(&theirs);
	heard = 0;
	n = make(frame, LEASE_REPORT, "x", 9, 1, ENTRIES);
	peer_write_nonce(frame, theirs.nonce);
	peer_key_seal(&key, frame, n);
	n += PEER_SEAL;
	for (size_t i = 0; i < n; i++) {
		say(fd, frame + i, 1);
		if (i % 100 == 0)
			turn();
	}
	UNTIL(heard == 1);
	n = make(frame, LEASE_REPORT, "x", 9, 2, 3);
	peer_write_nonce(frame, theirs.nonce);
	peer_key_seal(&key, frame, n);
	n += PEER_SEAL;
	m = make(frame + n, LEASE_REPORT, "x", 9, 3, 0);
	peer_write_nonce(frame + n, theirs.nonce);
	peer_key_seal(&key, frame + n, m);
	say(fd, frame, n + m + PEER_SEAL);
	UNTIL(heard == 3);
	CHECK_INT(heard_sequence, 3);
	close(fd);
	lease_hub_free(hub);
}

/* A client that does not read is not waited for: messages to it are dropped beyond a limit. */
static void slow(void)
{
	static uint8_t frame[LEASE_FRAME(ENTRIES)];
	struct lease_message theirs = {0};
	int fd, r = 0;
	size_t n;

	hub_open(0);
	fd = greet(&theirs);
	heard = 0;
	n = make(frame, LEASE_REPORT, "x", 9, 1, 0);
	peer_write_nonce(frame, theirs.nonce);
	say_sealed(fd, &key, frame, n);
	UNTIL(heard == 1);
	for (uint64_t i = 1; r == 0 && i < 100000; i++) {
		n = make(frame, LEASE_GRANT, "controller", 1, i, ENTRIES);
		r = lease_hub_send(last, frame, n);
	}
	CHECK_INT(r, -ENOBUFS);
	CHECK_INT(stats().conn.lost, 1);
	CHECK_INT(stats().servers, 1);
	close(fd);
	lease_hub_free(hub);
}

/* Clients without a proof make room for others. */
static void crowd(void)
{
	struct lease_message theirs = {0};
	uint8_t frame[LEASE_FRAME(0)];
	int a, b, c;
	size_t n;

	hub_open(2);
	heard = 0;
	a = greet(&theirs);
	n = make(frame, LEASE_REPORT, "x", 9, 1, 0);
	peer_write_nonce(frame, theirs.nonce);
	say_sealed(a, &key, frame, n);
	UNTIL(heard == 1);
	b = knock();
	UNTIL(stats().servers == 2);
	c = greet(&theirs);
	is_closed(b);
	CHECK_INT(stats().servers, 2);
	n = make(frame, LEASE_REPORT, "x", 9, 2, 0);
	peer_write_nonce(frame, theirs.nonce);
	say_sealed(c, &key, frame, n);
	UNTIL(heard == 2);
	b = knock();
	is_closed(b); /* all are proven: no place is left */
	CHECK_INT(stats().servers, 2);
	lease_hub_allow(hub, ENTRIES, 3);
	b = greet(&theirs);
	CHECK_INT(stats().servers, 3);
	close(b);
	close(a);
	close(c);
	lease_hub_free(hub);
}

int main(void)
{
	struct weir_err err;

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	snprintf(at, sizeof(at), "unix:@weir-lease-%ld", (long)getpid());
	CHECK_INT(loop_new(&loop), 0);
	CHECK_INT(peer_key_read(NULL, "test", &key, &err), 0);
	CHECK_INT(peer_key_read(NULL, "other", &other_key, &err), 0);
	RUN(there_and_back);
	RUN(comes_back);
	RUN(strangers);
	RUN(played_again);
	RUN(revisions);
	RUN(in_pieces);
	RUN(slow);
	RUN(crowd);
	loop_free(loop);
	return 0;
}
