/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-udp: one datagram a period, to each host of a list or to a group.
 *
 * A received datagram is checked (cheaply), its seal verified, parsed, and judged by the guard
 * (wire/peer-guard.h), which may require a challenge; challenges and answers go to the address that
 * the datagram came from. A flood of any kind costs at most BATCH × ROUNDS checks per round of the
 * loop.
 */
#include "base/container.h"
#include "serve/peer/peer-impl.h"
#include "wire/peer-guard.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LATE   (4 * WEIR_SEC) /* ns: two periods */
#define MOST   4096           /* hosts, and instances of them, that are remembered */
#define BATCH  32             /* datagrams per system call */
#define ROUNDS 4              /* such calls per round: other work of the loop has its turn */

struct udp {
	struct peers peers; /* first */
	struct loop_fd own, group;
	struct peer_udp_sockets sockets;
	struct peer_guard *guard;
	struct sockaddr_storage from[BATCH];
	struct iovec iov[BATCH];
	struct mmsghdr headers[BATCH];
	uint8_t data[BATCH][PEER_SEALED_MAX + 1]; /* one more, to detect longer ones */
};

/* ---- out */

static size_t seal(struct udp *u, const struct peer_message *m, uint8_t out[PEER_SEALED_MAX])
{
	size_t n = peer_write(out, m);

	peer_key_seal(&u->peers.key, out, n);
	return n + PEER_SEAL;
}

/* A datagram for which the system has no room is lost, as any may be. */
static void send_one(struct udp *u, const uint8_t *data, size_t n, const void *to, socklen_t len)
{
	if (sendto(u->sockets.own, data, n, 0, to, len) < 0) {
		u->peers.stats.failed++;
		return;
	}
	u->peers.stats.sent++;
	u->peers.stats.sent_bytes += n;
}

static void send_all(struct udp *u, const uint8_t *data, size_t n)
{
	struct iovec iov = {.iov_base = (void *)data, .iov_len = n};
	struct mmsghdr out[BATCH];
	unsigned at = 0;

	while (at < u->sockets.n_to) {
		unsigned some = u->sockets.n_to - at < BATCH ? u->sockets.n_to - at : BATCH;
		int sent;

		for (unsigned i = 0; i < some; i++)
			out[i].msg_hdr = (struct msghdr){.msg_name = &u->sockets.to[at + i].at,
				.msg_namelen = u->sockets.to[at + i].len,
				.msg_iov = &iov,
				.msg_iovlen = 1};
		sent = sendmmsg(u->sockets.own, out, some, 0);
		if (sent <= 0) { /* the first of them; try the others */
			u->peers.stats.failed++;
			at++;
			continue;
		}
		u->peers.stats.sent += (unsigned)sent;
		u->peers.stats.sent_bytes += (uint64_t)sent * n;
		at += (unsigned)sent;
	}
}

static void say(struct udp *u, enum peer_kind kind)
{
	uint8_t data[PEER_SEALED_MAX];

	memset(u->peers.last.nonce, 0, PEER_NONCE);
	send_all(u, data, seal(u, peer_next(&u->peers, kind), data));
}

static void udp_send(struct peers *p)
{
	say((struct udp *)p, PEER_REPORT);
}

static void reply(struct udp *u, enum peer_kind kind, const uint8_t nonce[PEER_NONCE],
	const struct msghdr *to)
{
	uint8_t data[PEER_SEALED_MAX];
	struct peer_message m = *peer_next(&u->peers, kind);
	size_t n;

	memcpy(m.nonce, nonce, PEER_NONCE);
	if (kind == PEER_CHALLENGE)
		m.n_reports = 0;
	n = seal(u, &m, data);
	send_one(u, data, n, to->msg_name, to->msg_namelen);
}

static void udp_tell(struct peers *p, const struct sockaddr_storage *to, enum peer_kind kind,
	const uint64_t *words, unsigned n)
{
	struct udp *u = (struct udp *)p;
	const struct peer_message *next = peer_next(p, kind);
	uint8_t data[PEER_SEALED_MAX];
	struct peer_message m = {.kind = kind,
		.cluster = next->cluster,
		.instance = next->instance,
		.sequence = next->sequence,
		.sent = next->sent,
		.n_reports = n};
	size_t length;

	memcpy(m.name, next->name, sizeof(m.name));
	memcpy(m.words, words, n * sizeof(*words));
	length = seal(u, &m, data);
	if (to)
		send_one(u, data, length, to,
			to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in));
	else
		send_all(u, data, length);
}

/* ---- in */

static enum peer_verdict open_message(
	struct udp *u, const uint8_t *data, size_t n, struct peer_message *ret)
{
	size_t length;
	enum peer_verdict v = peer_look(data, n, u->peers.last.cluster, &length);

	if (v != PEER_TAKEN)
		return v;
	if (length + PEER_SEAL != n)
		return PEER_NOISE;
	if (!peer_key_sealed(&u->peers.key, data, length))
		return PEER_FORGED;
	return peer_read(data, length, ret);
}

static void take_datagram(
	struct udp *u, const uint8_t *data, size_t n, const struct msghdr *from, weir_time now)
{
	struct peer_guard_advice advice = {0};
	uint8_t nonce[PEER_NONCE];
	struct peer_message m;
	enum peer_verdict v = open_message(u, data, n, &m);
	char name[80];

	u->peers.stats.received_bytes += n;
	if (v == PEER_TAKEN && peer_has_words(m.kind) && !u->peers.config.hear)
		v = PEER_BROKEN;
	if (v == PEER_TAKEN) {
		randombytes_buf(nonce, sizeof(nonce));
		v = peer_guard_judge(u->guard, &m, now, nonce, &advice);
	}
	peer_count(&u->peers, v, v == PEER_TAKEN ? NULL : peer_udp_name(from->msg_name, name));
	if (advice.ask)
		reply(u, PEER_CHALLENGE, nonce, from);
	if (v != PEER_TAKEN)
		return;
	if (m.kind == PEER_CHALLENGE)
		reply(u, PEER_ANSWER, m.nonce, from);
	else
		peer_deliver(&u->peers, &m, from->msg_name, advice.same, now);
}

static int receive(struct udp *u, int fd)
{
	int n;

	for (int i = 0; i < BATCH; i++) {
		u->iov[i] = (struct iovec){u->data[i], sizeof(u->data[i])};
		u->headers[i].msg_hdr = (struct msghdr){.msg_name = &u->from[i],
			.msg_namelen = sizeof(u->from[i]),
			.msg_iov = &u->iov[i],
			.msg_iovlen = 1};
	}
	n = recvmmsg(fd, u->headers, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take_datagram(
			u, u->data[i], u->headers[i].msg_len, &u->headers[i].msg_hdr, loop_clock());
	return n;
}

static void ready(struct udp *u, int fd)
{
	for (int i = 0; i < ROUNDS && receive(u, fd) == BATCH; i++)
		;
}

static void own_ready(struct loop_fd *f, uint32_t events)
{
	ready(container_of(f, struct udp, own), f->fd);
}

static void group_ready(struct loop_fd *f, uint32_t events)
{
	ready(container_of(f, struct udp, group), f->fd);
}

static void udp_stats(const struct peers *p, struct peer_stats *s)
{
	s->heard = peer_guard_heard(((const struct udp *)p)->guard, loop_clock(), PEER_HEARD);
}

/* ---- begin and end */

static void udp_free(struct udp *u)
{
	if (u->own.ready)
		loop_remove(u->peers.config.loop, &u->own);
	if (u->group.ready)
		loop_remove(u->peers.config.loop, &u->group);
	if (u->sockets.own >= 0)
		close(u->sockets.own);
	if (u->sockets.group >= 0)
		close(u->sockets.group);
	free(u->sockets.to);
	peer_guard_free(u->guard);
	peer_closed(&u->peers);
	free(u);
}

static void udp_close(struct peers *p)
{
	struct udp *u = (struct udp *)p;

	p->last.n_reports = 0;
	say(u, PEER_LEAVE);
	udp_free(u);
}

static const struct peers_ops udp_ops = {
	.send = udp_send, .tell = udp_tell, .stats = udp_stats, .close = udp_close};

/* Watch a socket; a set `ready` marks it as watched. */
static int watch(
	struct udp *u, struct loop_fd *f, int fd, void (*ready_fn)(struct loop_fd *, uint32_t))
{
	int r;

	*f = (struct loop_fd){.fd = fd, .ready = ready_fn};
	r = loop_add(u->peers.config.loop, f, EPOLLIN);
	if (r < 0)
		f->ready = NULL;
	return r;
}

static int udp_start(struct udp *u, const struct peer_config *config, struct weir_err *err)
{
	struct peer_guard_config guard = {
		.name = config->name, .late = config->late ? config->late : LATE, .most = MOST};
	int r = peer_init(&u->peers, &udp_ops, config, err);

	if (r == 0)
		r = peer_udp_sockets(config, &u->sockets, err);
	if (r < 0)
		return r;
	guard.instance = u->peers.last.instance;
	r = peer_guard_new(&guard, &u->guard);
	if (r == 0)
		r = watch(u, &u->own, u->sockets.own, own_ready);
	if (r == 0 && u->sockets.group >= 0)
		r = watch(u, &u->group, u->sockets.group, group_ready);
	return r < 0 ? weir_err_set(err, r, "peers: %s", strerror(-r)) : 0;
}

int peer_udp_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err)
{
	struct udp *u;
	int r;

	if (!config->key)
		return weir_err_set(err, -EINVAL,
			"peers: %s needs a key, else any machine could forge reports",
			config->addresses[0]);
	u = calloc(1, sizeof(*u));
	if (!u)
		return weir_err_set(err, -ENOMEM, "peers: out of memory");
	u->sockets.own = u->sockets.group = -1;
	r = udp_start(u, config, err);
	if (r < 0) {
		udp_free(u);
		return r;
	}
	*ret_peers = &u->peers;
	return 0;
}
