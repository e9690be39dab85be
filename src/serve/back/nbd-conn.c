/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-conn: a connection that carries requests: batched sending and receiving.
 *
 * METHOD  A request in `out` is not formatted in advance. A send walks `out`, writes headers and
 *         small data next to each other into the scratch buffer and references large data in place;
 *         what the socket did not accept is formatted again by the next send. So a connection needs
 *         no buffer of its own.
 *         A receive fills the scratch buffer; but the data of a large read, if next, are received
 *         in place, followed by the scratch buffer for the rest.
 *         Receives of one round are adjacent in the scratch buffer, so that the data can be lent
 *         until the round is over; when it is full, its last part is reused, and data are copied.
 */
#include "base/container.h"
#include "serve/back/nbd.h"
#include "serve/loop/gather.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define VECTORS 128 /* per send */
#define RUN     16  /* requests (or 16 KiB of data) for one connection before the next one's turn */
/* … and that come in one round. Their replies of 4 KiB should fit into one socket's buffer, so that the upstream sends them with one
 * call: Linux gives it 208 KiB and counts about 5 KiB for each, which is room for 42; the power of two below. */
#define TOGETHER 32
#define READS    8 /* receives in a row before other work has its turn */
/* Bytes received in a round. Each is in three places until the client has it: in the upstream's socket, here, and in the client's socket.
 * Three times this fits into the second cache of a core, of 512 KiB or more, beside requests and replies; and in one of 256 KiB
 * only the last copy does not. */
#define ENOUGH (96u << 10)
#define NEXT   4096 /* bytes to receive after data received in place */

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
	return c->link.state == NBD_LINK_READY && c->joined && !c->broken;
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

	if (n->run < (n->run_round == loop_round(n->loop) ? TOGETHER : RUN) && can_carry(c))
		return c;
	n->run = 0;
	n->run_round = loop_round(n->loop);
	c = least_busy(n);
	if (!c) { /* all broke in this turn: the request is taken back when they are attended to */
		for (c = n->conns; c->link.state != NBD_LINK_READY || !c->joined; c++)
			;
		return c;
	}
	n->turn_of = (uint32_t)(c - n->conns);
	return c;
}

static const uint8_t commands[] = {
	[BACK_READ] = NBD_READ,
	[BACK_WRITE] = NBD_WRITE,
	[BACK_FLUSH] = NBD_FLUSH,
	[BACK_TRIM] = NBD_TRIM,
	[BACK_ZERO] = NBD_WRITE_ZEROES,
	[BACK_CACHE] = NBD_CACHE,
	[BACK_STATUS] = NBD_BLOCK_STATUS,
};

void back_nbd_conn_put(struct nbd *n, struct conn *c, struct slot *s)
{
	if (!c->out.n && !c->flight.n)
		c->heard = loop_now(n->loop);
	s->call.cookie = (uint64_t)++n->serial << 32 | (uint32_t)s->call.cookie;
	s->call.command = s->flushing ? NBD_FLUSH : commands[s->op];
	slot_push(&c->out, s);
	n->under_way++;
	n->syncs += back_nbd_way_is_sync(n, s);
	n->run += 1 +
		  (s->op == BACK_READ || s->op == BACK_WRITE ? s->call.length / BACK_NBD_COPY : 0);
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
		snprintf(c->link.why, sizeof(c->link.why), "%s", strerror(-error));
		c->broken = c->link.why;
	}
	c->nbd->attend = true;
}

/* ---- send */

static size_t payload_of(const struct slot *s)
{
	return s->op == BACK_WRITE && !s->flushing ? s->call.length : 0;
}

static void write_head(const struct nbd *n, const struct slot *s, uint8_t *p)
{
	struct nbd_request r = {.cookie = s->call.cookie, .command = s->call.command};

	if (r.command != NBD_FLUSH) {
		r.offset = s->call.offset;
		r.length = s->call.length;
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

/* Return false if there is no room. */
static bool gather_slot(struct gather *g, const struct nbd *n, const struct slot *s)
{
	size_t data = payload_of(s), copied = data <= BACK_NBD_COPY ? data : 0;

	if (BACK_NBD_SCRATCH - g->at < NBD_REQUEST_SIZE + copied || g->n + 2 > VECTORS)
		return false;
	write_head(n, s, gather_room(g));
	gather_written(g, NBD_REQUEST_SIZE);
	if (copied)
		gather_copy(g, s->out, copied);
	else if (data)
		gather_vector(g, s->out, data);
	return true;
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
		if (s->op == BACK_READ && s->call.length > BACK_NBD_COPY)
			c->large++;
	}
}

static void watch_conn(struct nbd *n, struct conn *c)
{
	bool out = c->out.n || stream_pending(&c->link.stream);

	loop_change(n->loop, &c->fd, EPOLLIN | (out ? EPOLLOUT : 0));
}

/* Do one send. Return false if nothing more is to be sent, or not all was accepted. */
static bool send_once(struct nbd *n, struct conn *c)
{
	struct iovec iov[VECTORS];
	struct gather g = {.iov = iov, .scratch = n->scratch_out};
	ssize_t sent;
	int from;

	for (struct slot *s = c->out.first; s && gather_slot(&g, n, s); s = s->next)
		;
	from = gather_skip(&g, 0, c->sent);
	g.bytes -= c->sent;
	sent = stream_send(&c->link.stream, iov + from, g.n - from);
	if (sent < 0) {
		if (sent != -EAGAIN)
			back_nbd_conn_fault(c, (int)sent);
		return false;
	}
	advance_sent(c, (size_t)sent);
	return (size_t)sent == g.bytes && c->out.n;
}

void back_nbd_conn_send(struct nbd *n, struct conn *c)
{
	while (!c->broken && send_once(n, c))
		;
	if (!c->broken)
		watch_conn(n, c);
}

/* ---- replies */

static struct nbd_call *find_call(void *arg, uint64_t cookie)
{
	struct conn *c = arg;
	struct slot *s = back_nbd_find(c->nbd, cookie);

	return s && s->conn == c ? &s->call : NULL; /* else not sent, or on another connection */
}

static int add_extent(
	void *arg, struct nbd_call *call, uint32_t context, uint32_t length, uint32_t flags)
{
	struct conn *c = arg;
	const struct nbd_greet *g = &c->link.greet;
	struct slot *s = container_of(call, struct slot, call);
	bool held = g->held && context == g->held_id;

	if (!held && (!g->base_allocation || context != g->context_id))
		return -EPROTO;
	if (!s->io && held)
		c->nbd->back.held = (weir_time)flags * WEIR_US;
	if (s->io && !held && call->got < s->io->n_extents && length)
		s->io->extents[call->got++] =
			(struct back_extent){.length = length, .flags = flags};
	return 0;
}

static int end_reply(void *arg, struct nbd_call *call)
{
	struct conn *c = arg;
	struct nbd *n = c->nbd;
	struct slot *s = container_of(call, struct slot, call);

	if (!call->error && s->op == BACK_STATUS && s->io) {
		if (!call->got)
			return -EPROTO;
		s->io->n_extents = call->got;
	}
	if (s->io && call->lent) {
		s->io->data = call->lent;
		s->io->room = call->room;
	}
	slot_remove(&c->flight, s);
	s->conn = NULL;
	n->under_way--;
	n->syncs -= back_nbd_way_is_sync(n, s);
	if (s->op == BACK_READ && call->length > BACK_NBD_COPY)
		c->large--;
	if (call->error == -ESHUTDOWN) { /* a loss, not this request's error */
		back_nbd_conn_break(c, "the upstream shuts down");
		back_nbd_way_lost(n, s);
	} else {
		n->answered++;
		back_nbd_way_answer(n, s, call->error);
	}
	return c->broken ? 1 : 0;
}

int back_nbd_conn_input(struct conn *c, const uint8_t *p, size_t n)
{
	static const struct nbd_replies_ops ops = {
		.find = find_call, .done = end_reply, .extent = add_extent};
	int r;

	c->replies.structured = c->link.greet.structured;
	c->replies.lends = c->nbd->lends;
	r = nbd_replies_input(&c->replies, &ops, c, p, n);
	return r < 0 ? r : 0;
}

void back_nbd_conn_begin(struct nbd *n, struct conn *c, int fd)
{
	/* Structured replies are requested only because block status needs them; a server that has
	 * them may omit holes and report where an error is. */
	nbd_link_begin(&c->link, &n->uri, fd, true, true);
	c->link.greet.want_held = true;
	stream_watch(fd, n->timeout);
	c->nbd = n;
	c->joined = false;
	c->broken = NULL;
	c->out = c->flight = (struct slot_queue){0};
	c->replies = (struct nbd_replies){0};
	c->deadline = loop_clock() + (BACK_NBD_DIAL < n->timeout ? BACK_NBD_DIAL : n->timeout);
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

	if (c->link.stream.tls)
		return stream_recv(&c->link.stream, to, len);
	do
		got = recvmsg(c->link.stream.fd, &m, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Do one receive. Return > 0: there may be more; 0: there is not; else a negative errno. */
static int recv_once(struct nbd *n, struct conn *c)
{
	size_t straight = c->replies.to && c->replies.left > BACK_NBD_COPY ? c->replies.left : 0;
	/* If many large reads are in flight, leave the data after a header for receiving in
	 * place. */
	size_t room = c->large * 4 > c->flight.n ? NEXT : BACK_NBD_SCRATCH, behind = 0;
	uint8_t *scratch = recv_room(n);
	ssize_t got;
	int r = 0;

	if (straight)
		got = recv_into(c, c->replies.to, straight, scratch, room);
	else
		got = stream_recv(&c->link.stream, scratch, room);
	if (got == -EAGAIN)
		return 0;
	if (got <= 0)
		return got ? (int)got : -ECONNRESET;
	c->heard = loop_now(n->loop);
	if (straight) {
		size_t placed = (size_t)got < straight ? (size_t)got : straight;
		behind = (size_t)got - placed;
		r = back_nbd_conn_input(c, NULL, placed);
	} else {
		behind = (size_t)got;
	}
	if (n->lends)
		n->in_at += behind;
	if (n->in_at >= ENOUGH)
		loop_enough(n->loop);
	if (!r && behind)
		r = back_nbd_conn_input(c, scratch, behind);
	if (r)
		return r;
	return c->link.stream.tls || (size_t)got == straight + room ||
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
		c->more = r > 0 && c->link.stream.tls;
}

/* ---- the end */

void back_nbd_conn_close(struct nbd *n, struct conn *c)
{
	if (c->link.state == NBD_LINK_READY) {
		n->ready_conns--;
		if (!c->broken && !c->sent)
			nbd_link_farewell(&c->link.stream);
	}
	if (c->watched)
		loop_remove(n->loop, &c->fd);
	if (c->link.state != NBD_LINK_NONE)
		stream_close(&c->link.stream);
	c->link.state = NBD_LINK_NONE;
	c->watched = c->more = false;
	c->broken = NULL;
	c->sent = 0;
	c->large = 0;
	c->replies = (struct nbd_replies){0};
}
