/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-relay: a network between hosts that delays reports, or loses them.
 *
 * METHOD  Host i knows host j by the address of a socket of the relay, and j knows i by another.
 *         Datagrams that arrive at one are sent from the other, so that each host sees the other's
 *         datagrams come from the address to which it sends its own. Reports wait until they are
 *         due; other messages (challenges and their answers) pass at once, since a scenario's delay
 *         and loss apply to reports. The relay runs on its own thread.
 * COST    n (n − 1) sockets, a few datagrams a second.
 */
#include "base/no-memory.h"
#include "base/rng.h"
#include "serve/loop/loop.h"
#include "cli/live/live-impl.h"
#include "wire/peer.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT 1024 /* datagrams under way: more than a minute's of 8 hosts; further ones are lost */

struct datagram {
	weir_time due;
	size_t from, to; /* hosts */
	size_t len;      /* 0: free */
	uint8_t data[PEER_MAX + PEER_SEAL];
};

struct live_relay {
	size_t n;
	uint16_t *hosts; /* their own ports */
	uint16_t *ports; /* of the socket by which i knows j: [i × n + j] */
	struct pollfd
		*fds; /* in the same order, −1 where i = j; then the one that ends the thread */
	struct datagram *kept; /* KEPT */
	weir_time delay;
	double loss;
	struct rng rng;
	pthread_t thread;
	bool started;
};

uint16_t live_relay_port(const struct live_relay *r, size_t host, size_t other)
{
	return r->ports[host * r->n + other];
}

/* ---- on the thread */

/* Send a datagram. If the system has no room for it, it is lost, as any may be. */
static void pass_on(struct live_relay *r, const struct datagram *d)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(r->hosts[d->to])};

	(void)!sendto(r->fds[d->to * r->n + d->from].fd, d->data, d->len, 0, (struct sockaddr *)&to,
		sizeof(to));
}

static void keep_datagram(struct live_relay *r, const struct datagram *d)
{
	for (size_t i = 0; i < KEPT; i++) {
		if (r->kept[i].len)
			continue;
		r->kept[i] = *d;
		return;
	}
}

/* Receive all datagrams from one host for another. */
static void receive_all(struct live_relay *r, size_t from, size_t to, weir_time now)
{
	struct datagram d = {.due = now + r->delay, .from = from, .to = to};
	ssize_t n;

	while ((n = recv(r->fds[from * r->n + to].fd, d.data, sizeof(d.data), 0)) > 0) {
		bool report = n > 5 && d.data[5] == PEER_REPORT; /* the kind, see wire/peer.h */

		d.len = (size_t)n;
		if (report && rng_double(&r->rng) < r->loss)
			continue;
		if (report && r->delay > 0)
			keep_datagram(r, &d);
		else
			pass_on(r, &d);
	}
}

/* Send datagrams that are due; return the time until the next is due, in ms. */
static int send_due(struct live_relay *r, weir_time now)
{
	weir_time next = now + 3600 * WEIR_SEC;

	for (size_t i = 0; i < KEPT; i++) {
		struct datagram *d = &r->kept[i];

		if (d->len && d->due <= now) {
			pass_on(r, d);
			d->len = 0;
		} else if (d->len && d->due < next) {
			next = d->due;
		}
	}
	return (int)((next - now + WEIR_MS - 1) / WEIR_MS);
}

static void *relay_thread(void *arg)
{
	struct live_relay *r = arg;
	size_t n = r->n * r->n;

	while (!r->fds[n].revents) {
		int wait = send_due(r, loop_clock());

		if (poll(r->fds, n + 1, wait) <= 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (r->fds[i].revents)
				receive_all(r, i / r->n, i % r->n, loop_clock());
	}
	return NULL;
}

/* ---- start and end */

void live_relay_free(struct live_relay *r)
{
	size_t n = r ? r->n * r->n : 0;

	if (!r)
		return;
	if (r->fds && r->started) {
		(void)!eventfd_write(r->fds[n].fd, 1);
		pthread_join(r->thread, NULL);
	}
	for (size_t i = 0; r->fds && i <= n; i++)
		if (r->fds[i].fd >= 0)
			close(r->fds[i].fd);
	free(r->hosts);
	free(r->ports);
	free(r->fds);
	free(r->kept);
	free(r);
}

static int open_all(struct live_relay *r)
{
	size_t n = r->n * r->n;
	int code = 0;

	for (size_t i = 0; i <= n; i++)
		r->fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	r->fds[n].fd = eventfd(0, EFD_CLOEXEC);
	if (r->fds[n].fd < 0)
		return -errno;
	for (size_t i = 0; code == 0 && i < n; i++)
		if (i / r->n != i % r->n)
			code = process_bind_udp(&r->ports[i], &r->fds[i].fd);
	if (code == 0)
		code = -pthread_create(&r->thread, NULL, relay_thread, r);
	r->started = code == 0;
	return code;
}

int live_relay_new(const struct live_relay_config *c, struct live_relay **ret, struct weir_err *err)
{
	struct live_relay *r = calloc(1, sizeof(*r));
	int code = -ENOMEM;

	if (!r)
		return no_memory(err);
	r->n = c->n;
	r->delay = c->delay;
	r->loss = c->loss;
	rng_init(&r->rng, c->seed, "relay");
	r->hosts = calloc(c->n, sizeof(*r->hosts));
	r->ports = calloc(c->n * c->n, sizeof(*r->ports));
	r->fds = calloc(c->n * c->n + 1, sizeof(*r->fds));
	r->kept = calloc(KEPT, sizeof(*r->kept));
	if (r->hosts && r->ports && r->fds && r->kept) {
		memcpy(r->hosts, c->ports, c->n * sizeof(*r->hosts));
		code = open_all(r);
	}
	if (code < 0) {
		live_relay_free(r);
		return weir_err_set(err, code, "the relay of reports: %s", strerror(-code));
	}
	*ret = r;
	return 0;
}
