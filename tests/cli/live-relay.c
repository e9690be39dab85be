/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-relay: hosts behind the relay see each other at addresses that they can answer to; reports
 * are delayed or lost, and no other message is. A loss is recognised by the message that follows
 * it, so that no test waits for a timeout.
 */
#include "serve/loop/loop.h"
#include "cli/live/live-impl.h"
#include "test.h"
#include "wire/peer.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS 3

struct net {
	int fd[HOSTS];
	uint16_t port[HOSTS];
	struct live_relay *relay;
};

static void net_new(struct net *n, weir_time delay, double loss)
{
	struct live_relay_config c = {
		.ports = n->port, .n = HOSTS, .delay = delay, .loss = loss, .seed = 1};
	struct weir_err err;

	for (size_t i = 0; i < HOSTS; i++)
		CHECK_INT(process_bind_udp(&n->port[i], &n->fd[i]), 0);
	CHECK_INT(live_relay_new(&c, &n->relay, &err), 0);
}

static void net_free(struct net *n)
{
	live_relay_free(n->relay);
	for (size_t i = 0; i < HOSTS; i++)
		close(n->fd[i]);
}

/* Send a datagram of this kind with a number in it. */
static void say(const struct net *n, size_t from, size_t to, enum peer_kind kind, uint8_t number)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(live_relay_port(n->relay, from, to))};
	uint8_t data[PEER_HEAD] = {'W', 'E', 'I', 'R', 1, (uint8_t)kind, number};

	CHECK_INT(sendto(n->fd[from], data, sizeof(data), 0, (struct sockaddr *)&at, sizeof(at)),
		sizeof(data));
}

/* Return the number in the next datagram that `host` receives, and its source port. */
static uint8_t hear(const struct net *n, size_t host, uint16_t *ret_port)
{
	struct pollfd p = {.fd = n->fd[host], .events = POLLIN};
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	uint8_t data[PEER_HEAD];

	CHECK_INT(poll(&p, 1, 10000), 1);
	CHECK_INT(
		recvfrom(p.fd, data, sizeof(data), 0, (struct sockaddr *)&at, &len), sizeof(data));
	*ret_port = ntohs(at.sin_port);
	return data[6];
}

/* A host receives a peer's messages from the address at which it reaches the peer, so that it
 * can answer. */
static void test_addresses(void)
{
	struct net n;
	uint16_t port;

	net_new(&n, 0, 0);
	for (size_t from = 0; from < HOSTS; from++)
		for (size_t to = 0; to < HOSTS; to++) {
			if (from == to)
				continue;
			say(&n, from, to, PEER_CHALLENGE, (uint8_t)(10 * from + to));
			CHECK_INT(hear(&n, to, &port), 10 * from + to);
			CHECK_INT(port, live_relay_port(n.relay, to, from));
			say(&n, from, to, PEER_REPORT, (uint8_t)(100 + to));
			CHECK_INT(hear(&n, to, &port), 100 + to);
			CHECK_INT(port, live_relay_port(n.relay, to, from));
		}
	net_free(&n);
}

static void test_lost(void)
{
	struct net n;
	uint16_t port;

	net_new(&n, 0, 1);
	for (uint8_t i = 1; i < 20; i++)
		say(&n, 0, 1, PEER_REPORT, i);
	say(&n, 0, 1, PEER_ANSWER, 77);
	CHECK_INT(hear(&n, 1, &port), 77);
	net_free(&n);
}

/* Receive at `host` until `number` comes; return how many datagrams came before it. */
static int hear_until(const struct net *n, size_t host, uint8_t number)
{
	uint16_t port;
	int heard = 0;

	while (hear(n, host, &port) != number)
		heard++;
	return heard;
}

/* A fifth of many reports is lost, within four standard deviations; the seed is fixed. */
static void test_some_lost(void)
{
	int heard = 0;
	struct net n;

	net_new(&n, 0, 0.2);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 30; k++)
			say(&n, 2, 0, PEER_REPORT, 1);
		say(&n, 2, 0, PEER_ANSWER, 2); /* overtakes no report that has no delay */
		heard += hear_until(&n, 0, 2);
	}
	CHECK(heard >= 960 - 4 * 14 && heard <= 960 + 4 * 14);
	net_free(&n);
}

static void test_late(void)
{
	weir_time sent = loop_clock(), delay = 50 * WEIR_MS;
	struct net n;
	uint16_t port;

	net_new(&n, delay, 0);
	say(&n, 0, 2, PEER_REPORT, 1);
	say(&n, 1, 2, PEER_CHALLENGE, 2);
	CHECK_INT(hear(&n, 2, &port), 2); /* the answer does not wait for the report */
	CHECK_INT(hear(&n, 2, &port), 1);
	CHECK(loop_clock() - sent >= delay);
	CHECK_INT(port, live_relay_port(n.relay, 2, 0));
	net_free(&n);
}

int main(void)
{
	RUN(test_addresses);
	RUN(test_lost);
	RUN(test_some_lost);
	RUN(test_late);
	return 0;
}
