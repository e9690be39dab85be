/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-conn: frames over a stream; lease-conn.h has the rules for the other side.
 *
 * METHOD  A frame is gathered in a buffer that grows with the received bytes, not with the length
 *         in the frame, until its seal is checked. Output goes straight to the socket; the rest is
 *         kept, and sent when the socket has room. The timer reports the end of a connection, never
 *         a call of the owner.
 */
#include "base/array.h"
#include "base/container.h"
#include "serve/lease/lease-conn.h"
#include "serve/loop/stream.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define PATIENCE (5 * WEIR_SEC) /* for a HELLO, and for some progress of waiting output */
#define CHUNK    ((size_t)64 << 10)
#define READS    16                /* chunks a round: others want their turn */
#define SMALL    (size_t)512       /* bytes of a buffer at first: a HELLO, or a beat */
#define KEPT     ((size_t)8 << 10) /* bytes of empty buffers that are kept */
#define WAITING  2                 /* most frames of the largest size that wait to be sent */

struct bytes {
	uint8_t *data;
	size_t n, room;
};

struct lease_conn {
	struct loop_fd fd; /* first */
	struct loop_timer timer;
	struct lease_conn_config config;
	struct stream stream;
	struct stream_peer peer;
	uint8_t wanted[PEER_NONCE], theirs[PEER_NONCE];
	bool greeted, proven;
	uint64_t instance; /* of its messages, and its name */
	char name[PEER_NAME_MAX + 1];
	bool busy, freed; /* inside a call of the owner; freed there */
	bool ended;
	enum peer_verdict verdict;
	char why[96];
	uint64_t sequence, told_sequence; /* of the last message; of the last that was told */
	uint64_t told;                    /* messages by lease_conn_tell */
	uint64_t revision;                /* of the other side, from its HELLO */
	struct bytes in;
	size_t whole; /* bytes of the frame in `in`, with its seal; 0: not yet known */
	struct bytes out;
	size_t out_at; /* sent of it */
};

/* ---- ends */

static void end(struct lease_conn *c, enum peer_verdict v, const char *why)
{
	if (c->ended)
		return;
	c->ended = true;
	c->verdict = v;
	strncpy(c->why, why, sizeof(c->why) - 1);
	loop_remove(c->config.loop, &c->fd);
	stream_close(&c->stream);
	/* cannot fail: the timer has its place since the start */
	loop_set(c->config.loop, &c->timer, loop_clock());
}

static void due(struct loop_timer *t, weir_time now)
{
	struct lease_conn *c = container_of(t, struct lease_conn, timer);

	if (c->ended) {
		c->config.over(c->config.arg, c, c->verdict, c->why);
		return; /* it may be freed */
	}
	if (!c->greeted) {
		end(c, PEER_NOISE, "no HELLO within 5 s");
	} else if (c->out.n) {
		c->config.stats->slow++;
		end(c, PEER_TAKEN, "it accepted no data for 5 s");
	}
}

/* ---- in */

static const char *fault(enum peer_verdict v)
{
	switch (v) {
	case PEER_VERSION:
		return "another version of the protocol";
	case PEER_CLUSTER:
		return "another cluster";
	case PEER_FORGED:
		return "not sealed with this cluster's key";
	case PEER_BROKEN:
		return "malformed, although its seal is right";
	case PEER_OLD:
		return "a replayed message";
	case PEER_OWN:
		return "our own message came back";
	case PEER_CROWD:
		return "out of memory";
	default:
		return "not this protocol";
	}
}

/* Check that the other side may send this message now. */
static enum peer_verdict judge(const struct lease_conn *c, const struct lease_message *m)
{
	bool from_server =
		m->kind == LEASE_REPORT || m->kind == LEASE_HAS || m->kind == LEASE_USAGE;
	bool told = lease_has_bytes(m->kind);

	if (m->instance == c->config.instance)
		return PEER_OWN;
	if (!c->greeted)
		return m->kind == LEASE_HELLO ? PEER_TAKEN : PEER_BROKEN;
	if (m->kind == LEASE_HELLO || c->config.fabric != (m->kind >= LEASE_USAGE) ||
		from_server != (c->config.side == LEASE_CONTROLLER) ||
		(!told && c->proven && m->instance != c->instance) ||
		strcmp(m->name, c->name) != 0 || m->n > c->config.entries)
		return PEER_BROKEN;
	if (memcmp(m->nonce, c->wanted, PEER_NONCE) != 0 ||
		m->sequence <= (told ? c->told_sequence : c->sequence))
		return PEER_OLD;
	return PEER_TAKEN;
}

static enum peer_verdict take_frame(struct lease_conn *c)
{
	size_t n = c->whole - PEER_SEAL;
	struct lease_message *m = c->config.message;
	enum peer_verdict v;

	if (!peer_key_sealed(c->config.key, c->in.data, n))
		return PEER_FORGED;
	v = lease_read(c->in.data, n, m);
	if (v == PEER_TAKEN)
		v = judge(c, m);
	if (v != PEER_TAKEN)
		return v;
	c->config.stats->received_bytes += c->whole;
	if (m->kind == LEASE_HELLO) {
		c->greeted = true;
		c->revision = m->sequence;
		memcpy(c->theirs, m->nonce, PEER_NONCE);
		memcpy(c->name, m->name, sizeof(c->name));
		loop_set(c->config.loop, &c->timer, WEIR_NEVER);
		if (c->config.greeted)
			c->config.greeted(c->config.arg, c);
		return v;
	}
	if (lease_has_bytes(m->kind)) {
		c->told_sequence = m->sequence;
	} else {
		c->proven = true;
		c->instance = m->instance;
		c->sequence = m->sequence;
	}
	c->config.receive(c->config.arg, c, m);
	return v;
}

/* Get the length of the frame whose head was received. */
static enum peer_verdict look_at_frame(struct lease_conn *c)
{
	size_t n, most = c->greeted ? LEASE_FRAME(c->config.entries) : LEASE_FRAME(0);
	enum peer_verdict v = lease_look(c->in.data, c->config.cluster, &n);

	if (v != PEER_TAKEN)
		return v;
	if (n + PEER_SEAL > most)
		return PEER_NOISE;
	c->whole = n + PEER_SEAL;
	return v;
}

static bool grow(struct bytes *b, size_t need, size_t most)
{
	size_t room = b->room ? b->room : SMALL;

	if (need <= b->room)
		return true;
	while (room < need)
		room *= 2;
	if (room > most && need <= most)
		room = most;
	if (array_resize(&b->data, room) < 0)
		return false;
	b->room = room;
	return true;
}

static void shrink(struct bytes *b)
{
	b->n = 0;
	if (b->room <= KEPT)
		return;
	free(b->data);
	*b = (struct bytes){0};
}

/* Consume those of n received bytes that belong to the current frame; *v is the outcome. */
static size_t feed(struct lease_conn *c, const uint8_t *data, size_t n, enum peer_verdict *v)
{
	size_t want = c->whole ? c->whole : PEER_HEAD, part = want - c->in.n;

	if (part > n)
		part = n;
	*v = grow(&c->in, c->in.n + part, want) ? PEER_TAKEN : PEER_CROWD;
	if (*v != PEER_TAKEN)
		return 0;
	memcpy(c->in.data + c->in.n, data, part);
	c->in.n += part;
	if (c->in.n < want)
		return part;
	if (!c->whole) {
		*v = look_at_frame(c);
		return part;
	}
	*v = take_frame(c);
	c->config.stats->verdicts[*v]++;
	c->whole = 0;
	shrink(&c->in);
	return part;
}

/* Return false if nothing more should be read. */
static bool feed_all(struct lease_conn *c, const uint8_t *data, size_t n)
{
	enum peer_verdict v = PEER_TAKEN;

	for (size_t at = 0; at < n && !c->freed && !c->ended;) {
		at += feed(c, data + at, n - at, &v);
		if (v != PEER_TAKEN && !c->freed) {
			if (c->whole == 0 && c->in.n) /* the head was refused */
				c->config.stats->verdicts[v]++;
			end(c, v, fault(v));
		}
	}
	return !c->freed && !c->ended;
}

static void receive(struct lease_conn *c)
{
	static _Thread_local uint8_t chunk[CHUNK];

	for (int i = 0; i < READS; i++) {
		ssize_t got = stream_recv(&c->stream, chunk, sizeof(chunk));

		if (got == -EAGAIN)
			return;
		if (got <= 0) {
			end(c, PEER_TAKEN, got ? strerror((int)-got) : "the other side closed it");
			return;
		}
		if (!feed_all(c, chunk, (size_t)got) || (size_t)got < sizeof(chunk))
			return;
	}
}

/* ---- out */

/* Send as much as possible; an error is an end. */
static void flush(struct lease_conn *c)
{
	while (c->out_at < c->out.n) {
		struct iovec v = {c->out.data + c->out_at, c->out.n - c->out_at};
		ssize_t sent = stream_send(&c->stream, &v, 1);

		if (sent == -EAGAIN) {
			loop_change(c->config.loop, &c->fd, EPOLLIN | EPOLLOUT);
			return;
		}
		if (sent < 0) {
			end(c, PEER_TAKEN, strerror((int)-sent));
			return;
		}
		c->out_at += (size_t)sent;
		/* The other side accepts data: restart the timeout. */
		if (c->greeted && c->timer.set)
			loop_set(c->config.loop, &c->timer, loop_clock() + PATIENCE);
	}
	c->out_at = 0;
	shrink(&c->out);
	if (c->greeted)
		loop_set(c->config.loop, &c->timer, WEIR_NEVER);
	loop_change(c->config.loop, &c->fd, EPOLLIN);
}

/* Queue a whole frame with its seal. -ENOBUFS: no room. */
static int post(struct lease_conn *c, const uint8_t *frame, size_t n)
{
	size_t waiting = c->out.n - c->out_at;

	if (waiting && waiting + n > WAITING * LEASE_FRAME(c->config.entries))
		return -ENOBUFS;
	if (c->out_at) { /* drop the bytes that were sent */
		memmove(c->out.data, c->out.data + c->out_at, waiting);
		c->out.n = waiting;
		c->out_at = 0;
	}
	if (!grow(&c->out, c->out.n + n, SIZE_MAX))
		return -ENOBUFS;
	memcpy(c->out.data + c->out.n, frame, n);
	c->out.n += n;
	c->config.stats->sent++;
	c->config.stats->sent_bytes += n;
	if (waiting)
		return 0; /* wait until the socket has room */
	flush(c);
	if (c->out.n && c->greeted && !c->ended)
		loop_set(c->config.loop, &c->timer, loop_clock() + PATIENCE);
	return 0;
}

int lease_conn_send(struct lease_conn *c, uint8_t *frame, size_t n)
{
	int r;

	if (!c->greeted || c->ended)
		return -ENOTCONN;
	peer_write_nonce(frame, c->theirs);
	peer_key_seal(c->config.key, frame, n);
	r = post(c, frame, n + PEER_SEAL);
	if (r < 0)
		c->config.stats->lost++;
	return r;
}

/* ---- from start to end */

static void ready(struct loop_fd *f, uint32_t events)
{
	struct lease_conn *c = (struct lease_conn *)(void *)f;

	c->busy = true;
	if (events & EPOLLOUT)
		flush(c);
	if (!c->ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		receive(c);
	c->busy = false;
	if (c->freed)
		lease_conn_free(c);
}

static int say_hello(struct lease_conn *c)
{
	uint8_t frame[LEASE_FRAME(0)];
	struct lease_message m = {.kind = LEASE_HELLO,
		.cluster = c->config.cluster,
		.instance = c->config.instance,
		.sequence = LEASE_REVISION};
	size_t n;

	randombytes_buf(c->wanted, sizeof(c->wanted));
	memcpy(m.nonce, c->wanted, PEER_NONCE);
	strncpy(m.name, c->config.name, PEER_NAME_MAX);
	n = lease_write(frame, &m);
	peer_key_seal(c->config.key, frame, n);
	return post(c, frame, n + PEER_SEAL);
}

int lease_conn_new(const struct lease_conn_config *config, int fd, struct lease_conn **ret)
{
	struct lease_conn *c = calloc(1, sizeof(*c));
	struct stream stream = {.fd = fd};
	int r;

	if (!c) {
		stream_close(&stream);
		return -ENOMEM;
	}
	c->config = *config;
	c->stream = stream;
	c->fd = (struct loop_fd){.fd = fd, .ready = ready};
	c->timer.due = due;
	stream_watch(fd, PATIENCE);
	stream_peer(fd, &c->peer);
	r = loop_add(config->loop, &c->fd, EPOLLIN);
	if (r == 0)
		r = loop_set(config->loop, &c->timer, loop_clock() + PATIENCE);
	if (r == 0)
		r = say_hello(c);
	if (r < 0) {
		lease_conn_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void lease_conn_free(struct lease_conn *c)
{
	if (!c)
		return;
	if (c->busy) {
		c->freed = true;
		return;
	}
	loop_set(c->config.loop, &c->timer, WEIR_NEVER);
	if (!c->ended) {
		loop_remove(c->config.loop, &c->fd);
		stream_close(&c->stream);
	}
	free(c->in.data);
	free(c->out.data);
	free(c);
}

bool lease_conn_proven(const struct lease_conn *c)
{
	return c->proven;
}

int lease_conn_tell(struct lease_conn *c, struct lease_message *m)
{
	uint8_t *frame;
	int r;

	if (!c->greeted || c->ended)
		return -ENOTCONN;
	if (c->revision < LEASE_REVISION)
		return -EPROTONOSUPPORT;
	frame = malloc(LEASE_BYTES_FRAME(m->n));
	if (!frame)
		return -ENOMEM;
	m->cluster = c->config.cluster;
	m->instance = c->config.instance;
	m->sequence = ++c->told;
	m->sent = loop_clock();
	strncpy(m->name, c->config.name, PEER_NAME_MAX);
	r = lease_conn_send(c, frame, lease_write(frame, m));
	free(frame);
	return r;
}

bool lease_conn_plans(const struct lease_conn *c)
{
	return c->revision >= LEASE_REVISION;
}

const char *lease_conn_peer(const struct lease_conn *c)
{
	return c->peer.name;
}

void *lease_conn_user(const struct lease_conn *c)
{
	return c->config.user;
}

const char *lease_conn_name(const struct lease_conn *c)
{
	return c->name;
}

void lease_conn_allow(struct lease_conn *c, size_t entries)
{
	c->config.entries = entries;
}
