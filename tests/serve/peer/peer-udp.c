/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-udp: hosts that talk over loopback, with an attacker in between that loses, doubles,
 * reorders, forges and replays messages. No test waits for time to pass: the test reads what a host
 * sent, decides what becomes of it, and runs the loop until it has been received.
 */
#include "test.h"
#include "serve/loop/log.h"
#include "serve/peer/peer.h"
#include "wire/bytes.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATAGRAM 2000 /* bytes; more than any message has */

static struct loop *loop;
static char folder[] = "/tmp/weir-peer-udp-XXXXXX", key[64], other_key[64];

struct host {
	struct peers *peers;
	struct sockaddr_in at; /* its address, as others see it */
	unsigned heard;
	struct peer_message got;
};

static void receive(void *arg, const struct peer_message *m, weir_time now)
{
	struct host *h = arg;

	h->heard++;
	h->got = *m;
}

static void write_key(char path[64], const char *name, const char *text, size_t n, mode_t mode)
{
	int fd;

	snprintf(path, 64, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n && fchmod(fd, mode) == 0);
	close(fd);
}

/* ---- the attacker in between */

static int between = -1;
static char between_address[64];

static void open_between(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	between = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(between >= 0 && bind(between, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(getsockname(between, (struct sockaddr *)&at, &len) == 0);
	snprintf(between_address, sizeof(between_address), "udp:127.0.0.1:%d", ntohs(at.sin_port));
}

/* Read the next datagram of a host, if there is one: loopback delivers before sendto returns. */
static size_t intercept(uint8_t data[DATAGRAM], struct sockaddr_in *ret_from)
{
	socklen_t len = sizeof(*ret_from);
	ssize_t n =
		recvfrom(between, data, DATAGRAM, MSG_DONTWAIT, (struct sockaddr *)ret_from, &len);

	return n < 0 ? 0 : (size_t)n;
}

static void stop(struct loop_task *t)
{
	loop_stop(loop);
}

/* Run until every host has received all datagrams, which are already in the sockets. */
static void settle(void)
{
	struct loop_task t = {.run = stop};

	for (int i = 0; i < 2; i++) {
		loop_post(loop, &t);
		CHECK_INT(loop_run(loop), 0);
	}
}

static void give(struct host *to, const uint8_t *data, size_t n)
{
	CHECK(sendto(between, data, n, 0, (struct sockaddr *)&to->at, sizeof(to->at)) ==
		(ssize_t)n);
	settle();
}

/* ---- hosts */

static int try_host(struct host *h, const char *name, const char *const *addresses,
	const char *listen, const char *with_key, struct weir_err *err)
{
	struct peer_config c = {.loop = loop,
		.addresses = addresses,
		.listen = listen,
		.name = name,
		.cluster = "test",
		.key = with_key,
		.receive = receive,
		.arg = h};

	*h = (struct host){0};
	return peer_open(&c, &h->peers, err);
}

/* Open a host that talks to the attacker. */
static void open_host(struct host *h, const char *name, const char *with_key)
{
	const char *addresses[] = {between_address, NULL};
	uint8_t data[DATAGRAM];
	struct weir_err err;

	if (try_host(h, name, addresses, "udp:127.0.0.1:0", with_key, &err) < 0)
		FAIL("%s", err.text);
	peer_send(h->peers, NULL, 0); /* reveals its address */
	CHECK(intercept(data, &h->at) > 0);
}

static void say(struct host *h, double window)
{
	struct peer_report r = {.resource = 1, .window = window, .beta = 1, .latency = 25e6};

	peer_send(h->peers, &r, 1);
}

static struct peer_stats stats(struct host *h)
{
	struct peer_stats s;

	peer_stats(h->peers, &s);
	return s;
}

static uint64_t verdict(struct host *h, enum peer_verdict v)
{
	return stats(h).verdicts[v];
}

static void close_host(struct host *h)
{
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];

	peer_close(h->peers, NULL, NULL);
	while (intercept(data, &from))
		; /* its leave message */
}

/* Forward all intercepted datagrams to the other host. Return their number. */
static unsigned relay(struct host *a, struct host *b)
{
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	unsigned n = 0;
	size_t len;

	for (; (len = intercept(data, &from)) > 0; n++)
		give(from.sin_port == a->at.sin_port ? b : a, data, len);
	return n;
}

static void introduce(struct host *a, struct host *b)
{
	say(a, 1);
	say(b, 1);
	relay(a, b);
	CHECK(a->heard >= 1 && b->heard >= 1);
}

/* ---- tests */

static void two_hosts(void)
{
	struct host a, b;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	say(&a, 12.5);
	CHECK_INT(relay(&a, &b), 3); /* the report, a question, an answer */
	CHECK_INT(b.heard, 1);
	CHECK_STR(b.got.name, "a");
	CHECK(b.got.n_reports == 1 && b.got.reports[0].window == 12.5);
	CHECK(b.got.instance == peer_instance(a.peers));
	say(&a, 13);
	CHECK_INT(relay(&a, &b), 1); /* from now on reports only */
	CHECK_INT(b.heard, 2);
	CHECK(b.got.reports[0].window == 13);
	CHECK_INT(stats(&b).heard, 1);
	CHECK_INT(stats(&a).heard, 0);
	CHECK_INT(verdict(&b, PEER_UNPROVEN), 1);
	close_host(&a);
	close_host(&b);
}

static void lost_and_doubled(void)
{
	struct sockaddr_in from;
	uint8_t data[DATAGRAM], later[DATAGRAM];
	struct host a, b;
	size_t n, n_later;
	unsigned before;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	before = b.heard;
	say(&a, 2);
	CHECK(intercept(data, &from) > 0); /* lost */
	say(&a, 3);
	n = intercept(data, &from);
	say(&a, 4);
	n_later = intercept(later, &from);
	give(&b, later, n_later);
	CHECK_INT(b.heard, before + 1);
	CHECK(b.got.reports[0].window == 4);
	give(&b, later, n_later); /* doubled */
	give(&b, data, n);        /* reordered */
	CHECK_INT(b.heard, before + 1);
	CHECK(b.got.reports[0].window == 4);
	CHECK_INT(verdict(&b, PEER_OLD), 2);
	CHECK_INT(intercept(data, &from), 0); /* and no message about it */
	close_host(&a);
	close_host(&b);
}

static void forged(void)
{
	struct host a, b, stranger;
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	unsigned before;
	size_t n;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	before = b.heard;
	for (unsigned bit = 0; bit < 8; bit++) { /* every byte, one bit of each */
		say(&a, 2);
		n = intercept(data, &from);
		CHECK_INT(n, PEER_HEAD + PEER_REPORT_SIZE + PEER_SEAL);
		for (size_t i = bit; i < n; i += 8) {
			data[i] ^= (uint8_t)(1 << bit);
			give(&b, data, n);
			data[i] ^= (uint8_t)(1 << bit);
		}
	}
	CHECK_INT(b.heard, before);
	CHECK_INT(verdict(&b, PEER_FORGED) + verdict(&b, PEER_NOISE) + verdict(&b, PEER_VERSION) +
			  verdict(&b, PEER_CLUSTER),
		n);
	CHECK(verdict(&b, PEER_FORGED) > 200);
	CHECK_INT(intercept(data + 0, &from), 0);
	open_host(&stranger, "a", other_key); /* has the name, but not the key */
	say(&stranger, 99);
	n = intercept(data, &from);
	give(&b, data, n);
	CHECK_INT(b.heard, before);
	say(&a, 5);
	relay(&a, &b);
	CHECK_INT(b.heard, before + 1);
	close_host(&a);
	close_host(&b);
	close_host(&stranger);
}

static void noise(void)
{
	uint8_t data[DATAGRAM];
	struct host a, b;
	struct sockaddr_in from;
	size_t n;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	memset(data, 0xa5, sizeof(data));
	for (size_t len = 0; len <= 1400; len += 7)
		give(&b, data, len);
	CHECK_INT(verdict(&b, PEER_NOISE), 201);
	say(&a, 2);
	n = intercept(data, &from);
	give(&b, data, n - 1);
	give(&b, data, n + 1);
	CHECK_INT(verdict(&b, PEER_NOISE), 203);
	bytes_put64(data + 8, 1);
	give(&b, data, n);
	CHECK_INT(verdict(&b, PEER_CLUSTER), 1);
	CHECK_INT(b.heard, 0);
	close_host(&a);
	close_host(&b);
}

/* All messages of a host are recorded and replayed after it restarted, and to a host that is
 * new: none is accepted. */
static void played_again(void)
{
	static uint8_t kept[12][DATAGRAM];
	size_t len[12];
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	struct host a, b, c;
	unsigned before;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	for (int i = 0; i < 12; i++) {
		say(&a, i);
		len[i] = intercept(kept[i], &from);
		give(&b, kept[i], len[i]);
	}
	close_host(&a);
	open_host(&a, "a", key);
	introduce(&a, &b);
	open_host(&c, "c", key);
	before = b.heard;
	for (int i = 0; i < 12; i++) {
		give(&b, kept[i], len[i]);
		give(&c, kept[i], len[i]);
	}
	CHECK_INT(b.heard, before);
	CHECK_INT(verdict(&b, PEER_OLD), 12);
	CHECK_INT(c.heard, 0);
	CHECK_INT(verdict(&c, PEER_UNPROVEN), 12);
	CHECK(intercept(data, &from) >
		0); /* c sent a challenge, and the attacker cannot answer, … */
	CHECK_INT(data[5], PEER_CHALLENGE);
	CHECK_INT(intercept(data, &from), 0); /* … and it sent only one */
	CHECK_INT(stats(&b).same, 0); /* nor is this reported as a second host of that name */
	close_host(&a);
	close_host(&b);
	close_host(&c);
}

static void two_of_one_name(void)
{
	struct host a, twin, b;
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	size_t n;

	open_host(&a, "a", key);
	open_host(&twin, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	introduce(&twin, &b);
	for (int i = 0; i < 4; i++) {
		say(&a, i);
		relay(&a, &b);
		say(&twin, i);
		relay(&twin, &b);
	}
	CHECK(stats(&b).same > 0);
	CHECK_STR(stats(&b).same_name, "a");
	CHECK_INT(stats(&b).heard, 2); /* they are distinguished */
	say(&a, 7);                    /* and they find out themselves */
	n = intercept(data, &from);
	give(&twin, data, n);
	relay(&a, &twin);
	CHECK_INT(stats(&twin).same, 1);
	close_host(&a);
	close_host(&twin);
	close_host(&b);
}

static void own_words(void)
{
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	struct host a;
	size_t n;

	open_host(&a, "a", key);
	say(&a, 1);
	n = intercept(data, &from);
	give(&a, data, n);
	CHECK_INT(verdict(&a, PEER_OWN), 1);
	CHECK_INT(a.heard, 0);
	close_host(&a);
}

static void farewell(void)
{
	struct host a, b;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	CHECK_INT(stats(&b).heard, 1);
	peer_close(a.peers, NULL, NULL);
	relay(&a, &b);
	CHECK_INT(b.got.kind, PEER_LEAVE);
	CHECK_INT(stats(&b).heard, 0);
	close_host(&b);
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

/* Many datagrams at once, as from a cluster; more than one round receives. */
static void flood(void)
{
	struct loop_task t = {.run = stop};
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	struct host a, b;
	bool done = false;
	size_t n;

	open_host(&a, "a", key);
	open_host(&b, "b", key);
	introduce(&a, &b);
	say(&a, 2);
	n = intercept(data, &from);
	for (int i = 0; i < 150; i++)
		CHECK(sendto(between, data, n, 0, (struct sockaddr *)&b.at, sizeof(b.at)) > 0);
	while (verdict(&b, PEER_OLD) < 149) {
		loop_post(loop, &t);
		CHECK_INT(loop_run(loop), 0);
	}
	CHECK_INT(b.got.reports[0].window, 2);
	peer_close(b.peers, closed, &done);
	CHECK(done);
	CHECK(intercept(data, &from) > 0);
	close_host(&a);
}

/* A multicast group on this machine: each host hears the others, and challenges reach their
 * host. */
static void group(const char *address)
{
	const char *addresses[] = {address, NULL};
	struct host h[3];
	struct weir_err err;
	unsigned all = 0;

	for (int i = 0; i < 3; i++) {
		char name[] = {'h', (char)('0' + i), 0};
		int r = try_host(&h[i], name, addresses, "udp:127.0.0.1:0", key, &err);

		if (r < 0)
			FAIL("%s", err.text);
	}
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 3; i++)
			say(&h[i], i);
		for (int i = 0; i < 6; i++) /* reports, challenges, answers */
			settle();
	}
	for (int i = 0; i < 3; i++) {
		CHECK_INT(stats(&h[i]).failed, 0);
		CHECK_INT(verdict(&h[i], PEER_FORGED), 0);
		all += stats(&h[i]).heard;
	}
	CHECK_INT(all, 6);
	for (int i = 0; i < 3; i++)
		peer_close(h[i].peers, NULL, NULL);
}

static unsigned free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void broadcast(void)
{
	char address[64];

	snprintf(address, sizeof(address), "udp-broadcast:127.255.255.255:%u", free_port());
	group(address);
}

static void multicast(void)
{
	char address[64];

	snprintf(address, sizeof(address), "udp-multicast:239.255.7.7:%u%%lo", free_port());
	group(address);
}

/* Without `listen` a host uses the port of its list, on every address. */
static void list_port(void)
{
	char address[64];
	const char *addresses[] = {address, between_address, NULL};
	struct host a, b;
	struct weir_err err;
	struct sockaddr_in from;
	uint8_t data[DATAGRAM];
	unsigned port = free_port();

	snprintf(address, sizeof(address), "udp:127.0.0.1:%u", port);
	CHECK_INT(try_host(&a, "a", addresses, NULL, key, &err), 0);
	say(&a, 1);
	CHECK(intercept(data, &from) > 0);
	CHECK_INT(ntohs(from.sin_port), port);
	settle();
	CHECK_INT(verdict(&a, PEER_OWN), 1); /* it is in its own list, which is harmless */
	CHECK_INT(try_host(&b, "b", addresses, NULL, key, &err), -EADDRINUSE);
	close_host(&a);
}

static void refused(const char *const *addresses, const char *why)
{
	struct weir_err err = {""};

	CHECK_INT(peer_check(addresses, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

static void addresses(void)
{
	static const char *const good[][3] = {{"udp:10.0.0.1:7000", "udp:host:1", NULL},
		{"udp:[::1]:7000", NULL}, {"udp-broadcast:10.0.0.255:7000", NULL},
		{"udp-multicast:239.1.2.3:7000", NULL}, {"udp-multicast:239.1.2.3:7000%eth0", NULL},
		{"udp-multicast:[ff02::7]:7000%eth0", NULL}, {"file:/shared/peers", NULL},
		{"file:/shared/peers?slots=128", NULL}, {"nbd://array/peers", NULL}};
	struct weir_err err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (peer_check(good[i], &err) < 0)
			FAIL("%s", err.text);
	refused((const char *[]){NULL}, "no address");
	refused((const char *[]){"tcp:a:1", NULL}, "peers are");
	refused((const char *[]){"udpx:a:1", NULL}, "peers are");
	refused((const char *[]){"udp:a", NULL}, "port");
	refused((const char *[]){"udp:a:", NULL}, "port");
	refused((const char *[]){"udp:a:65536", NULL}, "port");
	refused((const char *[]){"udp:a:0", NULL}, "port");
	refused((const char *[]){"udp:a:7x", NULL}, "port");
	refused((const char *[]){"udp::7000", NULL}, "the host or the port is missing");
	refused((const char *[]){"udp:::1:7000", NULL}, "brackets");
	refused((const char *[]){"udp:[::1:7000", NULL}, "']'");
	refused((const char *[]){"udp:a:7000%eth0", NULL}, "interface");
	refused((const char *[]){"udp-multicast:239.1.2.3:7%", NULL}, "interface");
	refused((const char *[]){"udp:a:1", "udp-broadcast:b:1", NULL}, "combined");
	refused((const char *[]){"udp-broadcast:b:1", "udp:a:1", NULL}, "combined");
	refused((const char *[]){"file:/x", "udp:a:1", NULL}, "combined");
	refused((const char *[]){"udp:a:1", "file:/x", NULL}, "peers are");
	refused((const char *[]){"file:", NULL}, "path");
	refused((const char *[]){"file:/x?slots=5000", NULL}, "at most");
	refused((const char *[]){"file:/x?slot=5", NULL}, "slot");
	refused((const char *[]){"memory:1G", NULL}, "peers are");
}

static void not_opened(const char *name, const char *with_key, int code, const char *why)
{
	const char *list[] = {between_address, NULL};
	struct weir_err err = {""};
	struct host h;

	CHECK_INT(try_host(&h, name, list, "udp:127.0.0.1:0", with_key, &err), code);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

static void keys_and_names(void)
{
	char text[5000] = "", path[64], longest[80] = "";

	not_opened("a", NULL, -EINVAL, "needs a key");
	not_opened("a", "/nonexistent/key", -ENOENT, "/nonexistent/key");
	write_key(path, "short", text, 31, 0600);
	not_opened("a", path, -EINVAL, "31 bytes");
	write_key(path, "long", text, 4097, 0600);
	not_opened("a", path, -EINVAL, "4096");
	write_key(path, "open", text, 32, 0604);
	not_opened("a", path, -EPERM, "by all users");
	not_opened("a", folder, -EINVAL, "not a file");
	not_opened("", key, -EINVAL, "name");
	not_opened("a b", key, -EINVAL, "name");
	memset(longest, 'x', 64);
	not_opened(longest, key, -EINVAL, "name");
}

int main(void)
{
	char command[100];

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder));
	write_key(key, "key", "0123456789abcdef0123456789abcdef\n", 33, 0600);
	write_key(other_key, "other", "0123456789abcdef0123456789abcdeF\n", 33, 0640);
	CHECK_INT(loop_new(&loop), 0);
	open_between();
	RUN(two_hosts);
	RUN(lost_and_doubled);
	RUN(forged);
	RUN(noise);
	RUN(played_again);
	RUN(two_of_one_name);
	RUN(own_words);
	RUN(farewell);
	RUN(flood);
	RUN(broadcast);
	RUN(multicast);
	RUN(list_port);
	RUN(addresses);
	RUN(keys_and_names);
	close(between);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}
