/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-conn: a connection that carries requests: batched sending and receiving.
 *
 * METHOD  A request in `out` is not formatted in advance. A send walks `out`, writes headers and small
 *         data next to each other into the scratch buffer and references large data in place; what
 *         the socket did not accept is formatted again by the next send. So a connection needs no
 *         buffer of its own.
 *         A receive fills the scratch buffer; but the data of a large read, if next, are received in
 *         place, followed by the scratch buffer for the rest.
 *         Receives of one round are adjacent in the scratch buffer, so that the data can be lent until
 *         the round is over; when it is full, its last part is reused, and data are copied.
 */
#include "serve/back/nbd.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define VECTORS 128 /* per send */
#define RUN     16  /* requests (or 16 KiB of data) for one connection before the next one's turn */
#define READS   8   /* receives in a row before other work has its turn */
#define NEXT    4096 /* bytes to receive after data received in place */

/* ---- queues */

void slot_push(struct slot_queue *q, struct slot *s)
{
	s->next = NULL;
	s->prev = q->last;
	if (q->last)
		q->last->next = s;
	else
		q->first = s;
	q->last = s;
	q->n++;
}

void slot_push_front(struct slot_queue *q, struct slot *s)
{
	s->prev = NULL;
	s->next = q->first;
	if (q->first)
		q->first->prev = s;
	else
		q->last = s;
	q->first = s;
	q->n++;
}

void slot_remove(struct slot_queue *q, struct slot *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		q->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		q->last = s->prev;
	q->n--;
}

struct slot *slot_pop(struct slot_queue *q)
{
	struct slot *s = q->first;

	if (s)
		slot_remove(q, s);
	return s;
}

/* ---- choosing a connection */

static bool can_carry(const struct conn *c)
{
	return c->state == CONN_READY && c->joined && !c->broken;
}

static struct conn *least_busy(struct nbd *n)
{
	struct conn *best = NULL;

	for (uint32_t i = 0; i < n->wanted; i++) {
		struct conn *c = &n->conns[i];
		if (can_carry(c) &&
			(!best || c->out.n + c->flight.n < best->out.n + best->flight.n))
			best = c;
	}
	return best;
}

struct conn *back_nbd_conn_pick(struct nbd *n)
{
	struct conn *c = &n->conns[n->turn_of];

	if (n->run < RUN && can_carry(c))
		return c;
	n->run = 0;
	c = least_busy(n);
	if (!c) { /* all broke in this turn: the request is taken back when they are attended to */
		for (c = n->conns; c->state != CONN_READY || !c->joined; c++)
			;
		return c;
	}
	n->turn_of = (uint32_t)(c - n->conns);
	return c;
}

void back_nbd_conn_put(struct nbd *n, struct conn *c, struct slot *s)
{
	if (!c->out.n && !c->flight.n)
		c->heard = loop_now(n->loop);
	s->cookie = (uint64_t)++n->serial << 32 | (uint32_t)s->cookie;
	slot_push(&c->out, s);
	n->under_way++;
	n->syncs += back_nbd_way_is_sync(n, s);
	n->run += 1 + (s->op == BACK_READ || s->op == BACK_WRITE ? s->length / BACK_NBD_COPY : 0);
}

void back_nbd_conn_break(struct conn *c, const char *why)
{
	if (!c->broken)
		c->broken = why;
	c->nbd->attend = true;
}

void back_nbd_conn_fault(struct conn *c, int error)
{
	if (!c->broken) {
		strncpy(c->why, strerror(-error), sizeof(c->why) - 1);
		c->broken = c->why;
	}
	c->nbd->attend = true;
}

/* ---- send */

static size_t payload_of(const struct slot *s)
{
	return s->op == BACK_WRITE && !s->flushing ? s->length : 0;
}

static void write_head(const struct nbd *n, const struct slot *s, uint8_t *p)
{
	static const uint8_t commands[] = {
		[BACK_READ] = NBD_READ,
		[BACK_WRITE] = NBD_WRITE,
		[BACK_FLUSH] = NBD_FLUSH,
		[BACK_TRIM] = NBD_TRIM,
		[BACK_ZERO] = NBD_WRITE_ZEROES,
		[BACK_CACHE] = NBD_CACHE,
		[BACK_STATUS] = NBD_BLOCK_STATUS,
	};
	struct nbd_request r = {.cookie = s->cookie};

	r.command = s->flushing ? NBD_FLUSH : commands[s->op];
	if (r.command != NBD_FLUSH) {
		r.offset = s->offset;
		r.length = s->length;
		if ((s->flags & BACK_FUA) && n->fua)
			r.flags |= NBD_FUA;
		if (s->flags & BACK_NO_HOLE)
			r.flags |= NBD_NO_HOLE;
		if (s->flags & BACK_FAST_ZERO)
			r.flags |= NBD_FAST_ZERO;
		if (s->op == BACK_STATUS && (!s->io || s->io->n_extents == 1))
			r.flags |= NBD_REQ_ONE;
	}
	nbd_request_write(p, &r);
}

struct gather {
	struct iovec v[VECTORS];
	int n;
	uint8_t *p, *end; /* of the scratch buffer */
	bool open;        /* the last vector ends at p */
};

static uint8_t *gather_room(struct gather *g, size_t len)
{
	uint8_t *p = g->p;

	if (g->open) {
		g->v[g->n - 1].iov_len += len;
	} else {
		g->v[g->n++] = (struct iovec){p, len};
		g->open = true;
	}
	g->p += len;
	return p;
}

/* Return false if there is no room. */
static bool gather_slot(struct gather *g, const struct nbd *n, const struct slot *s)
{
	size_t data = payload_of(s), copied = data <= BACK_NBD_COPY ? data : 0;
	uint8_t *p;

	if ((size_t)(g->end - g->p) < NBD_REQUEST_SIZE + copied || g->n + 2 > VECTORS)
		return false;
	p = gather_room(g, NBD_REQUEST_SIZE + copied);
	write_head(n, s, p);
	if (copied) {
		memcpy(p + NBD_REQUEST_SIZE, s->out, copied);
	} else if (data) {
		g->v[g->n++] = (struct iovec){(void *)(uintptr_t)s->out, data};
		g->open = false;
	}
	return true;
}

/* Skip the first bytes, which were already sent. */
static struct iovec *gather_skip(struct gather *g, size_t skip, int *ret_n)
{
	struct iovec *v = g->v;

	for (; skip >= v->iov_len && skip; v++)
		skip -= v->iov_len;
	v->iov_base = (uint8_t *)v->iov_base + skip;
	v->iov_len -= skip;
	*ret_n = g->n - (int)(v - g->v);
	return v;
}

static void advance_sent(struct conn *c, size_t bytes)
{
	c->sent += bytes;
	while (c->out.n) {
		struct slot *s = c->out.first;
		size_t whole = NBD_REQUEST_SIZE + payload_of(s);

		if (c->sent < whole)
			return;
		c->sent -= whole;
		slot_remove(&c->out, s);
		slot_push(&c->flight, s);
		s->conn = c;
		if (s->op == BACK_READ && s->length > BACK_NBD_COPY)
			c->large++;
	}
}

static void watch_conn(struct nbd *n, struct conn *c)
{
	bool out = c->out.n || stream_pending(&c->stream);

	loop_change(n->loop, &c->fd, EPOLLIN | (out ? EPOLLOUT : 0));
}

/* Do one send. Return false if nothing more is to be sent, or not all was accepted. */
static bool send_once(struct nbd *n, struct conn *c)
{
	struct gather g = {.p = n->scratch_out, .end = n->scratch_out + BACK_NBD_SCRATCH};
	struct iovec *v = g.v;
	size_t whole = 0;
	ssize_t sent;
	int n_v = 0;

	for (struct slot *s = c->out.first; s && gather_slot(&g, n, s); s = s->next)
		;
	if (g.n)
		v = gather_skip(&g, c->sent, &n_v);
	for (int i = 0; i < n_v; i++)
		whole += v[i].iov_len;
	sent = stream_send(&c->stream, v, n_v);
	if (sent < 0) {
		if (sent != -EAGAIN)
			back_nbd_conn_fault(c, (int)sent);
		return false;
	}
	advance_sent(c, (size_t)sent);
	return (size_t)sent == whole && c->out.n;
}

void back_nbd_conn_send(struct nbd *n, struct conn *c)
{
	while (!c->broken && send_once(n, c))
		;
	if (!c->broken)
		watch_conn(n, c);
}

/* ---- receive */

/* Return room for one receive of BACK_NBD_SCRATCH bytes. */
static uint8_t *recv_room(struct nbd *n)
{
	if (n->in_round != loop_round(n->loop)) {
		n->in_round = loop_round(n->loop);
		n->in_at = 0;
	}
	n->lends = !n->in_turn && n->in_at + 2 * BACK_NBD_SCRATCH <= BACK_NBD_IN;
	return n->scratch_in + (n->lends ? n->in_at : BACK_NBD_IN - BACK_NBD_SCRATCH);
}

/* Receive into the data's place first, then into the scratch buffer. */
static ssize_t recv_into(struct conn *c, uint8_t *to, size_t len, uint8_t *scratch, size_t room)
{
	struct iovec v[2] = {{to, len}, {scratch, room}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	ssize_t got;

	if (c->stream.tls)
		return stream_recv(&c->stream, to, len);
	do
		got = recvmsg(c->stream.fd, &m, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Do one receive. Return > 0: there may be more; 0: there is not; else a negative errno. */
static int recv_once(struct nbd *n, struct conn *c)
{
	size_t straight = c->rx.to && c->rx.left > BACK_NBD_COPY ? c->rx.left : 0;
	/* If many large reads are in flight, leave the data after a header for receiving in place. */
	size_t room = c->large * 4 > c->flight.n ? NEXT : BACK_NBD_SCRATCH, behind = 0;
	uint8_t *scratch = recv_room(n);
	ssize_t got;
	int r = 0;

	if (straight)
		got = recv_into(c, c->rx.to, straight, scratch, room);
	else
		got = stream_recv(&c->stream, scratch, room);
	if (got == -EAGAIN)
		return 0;
	if (got <= 0)
		return got ? (int)got : -ECONNRESET;
	c->heard = loop_now(n->loop);
	if (straight) {
		size_t placed = (size_t)got < straight ? (size_t)got : straight;
		behind = (size_t)got - placed;
		r = back_nbd_reply(n, c, NULL, placed);
	} else {
		behind = (size_t)got;
	}
	if (n->lends)
		n->in_at += behind;
	if (!r && behind)
		r = back_nbd_reply(n, c, scratch, behind);
	if (r)
		return r;
	return c->stream.tls || (size_t)got == straight + room ||
	       (straight && (size_t)got == straight);
}

void back_nbd_conn_recv(struct nbd *n, struct conn *c)
{
	int r = 1;

	c->more = false;
	for (int i = 0; i < READS && r > 0 && !c->broken; i++)
		r = recv_once(n, c);
	if (r == -EPROTO)
		back_nbd_conn_break(c, "the reply is not valid NBD");
	else if (r == -ECONNRESET)
		back_nbd_conn_break(c, "the connection was closed");
	else if (r < 0)
		back_nbd_conn_fault(c, r);
	else
		c->more = r > 0 && c->stream.tls;
}

/* ---- the end */

void back_nbd_conn_close(struct nbd *n, struct conn *c)
{
	uint8_t bye[NBD_REQUEST_SIZE];
	struct iovec v = {bye, sizeof(bye)};

	if (c->state == CONN_READY) {
		n->ready_conns--;
		if (!c->broken && !c->sent) {
			nbd_request_write(bye, &(struct nbd_request){.command = NBD_DISC});
			(void)!stream_send(&c->stream, &v, 1);
		}
	}
	if (c->watched)
		loop_remove(n->loop, &c->fd);
	if (c->state != CONN_NONE)
		stream_close(&c->stream);
	c->state = CONN_NONE;
	c->watched = c->more = false;
	c->broken = NULL;
	c->sent = 0;
	c->large = 0;
	c->rx = (struct conn_rx){0};
}
