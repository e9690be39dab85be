/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-conn: one connection: many requests per send, many replies per receive.
 *
 * SEND   Requests are appended to `out`; a payload up to LOAD_COPY follows its header there, a longer
 *        one gets an iovec of its own. One send per round submits all of it; the rest waits until the
 *        socket has room. Both buffers are reset when all is sent.
 * LOSS   A lost connection closes all connections of its job: replies of a server that died must not
 *        mix with replies of its successor. Requests stay in their slots and are resent when all are
 *        connected, before any new one.
 */
#include "base/container.h"
#include "load/load-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define OUT_MAX      (1u << 20)      /* bytes of requests and small payloads waiting to be sent */
#define BACK_OFF     (20 * WEIR_MS)  /* before the first attempt to reconnect; then doubled */
#define BACK_OFF_MAX (500 * WEIR_MS) /* a server that is back is found within this time */

static void on_ready(struct loop_fd *f, uint32_t events);

static size_t room_for_one(const struct load_run *r)
{
	return NBD_REQUEST_SIZE + (r->most < LOAD_COPY ? r->most : LOAD_COPY);
}

int load_conn_new(struct load_run *r, struct load_conn *c)
{
	uint32_t depth = r->job.depth;
	size_t out = depth * room_for_one(r);

	*c = (struct load_conn){.run = r, .n_slots = depth, .n_free = depth, .stream.fd = -1};
	c->room_out = out < OUT_MAX ? out : OUT_MAX;
	c->room_iov = 2 * depth < LOAD_IOV ? 2 * (int)depth : LOAD_IOV;
	c->slots = calloc(depth, sizeof(*c->slots));
	c->ring = calloc(depth, sizeof(*c->ring));
	c->out.scratch = malloc(c->room_out);
	c->out.iov = calloc((size_t)c->room_iov, sizeof(*c->out.iov));
	if (!c->slots || !c->ring || !c->out.scratch || !c->out.iov)
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++) {
		c->ring[i] = i;
		if (!r->verify)
			continue;
		c->slots[i].data = aligned_alloc(4096, (r->most + 4095u) & ~4095u);
		if (!c->slots[i].data)
			return -ENOMEM;
	}
	c->resend_at = depth;
	return 0;
}

static void close_conn(struct load_conn *c)
{
	if (c->watched)
		loop_remove(c->run->loop, &c->fd);
	c->watched = false;
	if (c->stream.fd >= 0)
		stream_close(&c->stream);
}

void load_conn_free(struct load_conn *c)
{
	close_conn(c);
	for (uint32_t i = 0; c->slots && i < c->n_slots; i++) {
		cover_clear(&c->slots[i].call.cover);
		free(c->slots[i].data);
	}
	free(c->slots);
	free(c->ring);
	free(c->out.scratch);
	free(c->out.iov);
}

/* All requests were sent: the buffers are free. */
static void reset_out(struct load_conn *c)
{
	c->out.n = c->iov_at = 0;
	c->out.at = 0;
}

int load_conn_open(struct load_conn *c, struct stream s)
{
	int r;

	c->stream = s;
	c->fd = (struct loop_fd){.fd = s.fd, .ready = on_ready};
	r = loop_add(c->run->loop, &c->fd, EPOLLIN);
	if (r < 0) {
		stream_close(&c->stream);
		return r;
	}
	c->watched = true;
	c->replies = (struct nbd_replies){.structured = c->run->job.structured};
	reset_out(c);
	c->blocked = false;
	return 0;
}

void load_conn_dirty(struct load_conn *c)
{
	if (c->dirty)
		return;
	c->dirty = true;
	c->next_dirty = c->run->dirty;
	c->run->dirty = c;
}

/* ---- sending */

bool load_conn_room(const struct load_conn *c)
{
	return c->room_out - c->out.at >= room_for_one(c->run) && c->room_iov - c->out.n >= 2;
}

static void append_request(struct load_conn *c, struct load_slot *s)
{
	const struct nbd_request q = {.cookie = s->call.cookie,
		.offset = s->r.offset,
		.length = s->r.length,
		.flags = s->r.flags,
		.command = s->r.command};
	const uint8_t *payload = s->data ? s->data : c->run->payload;

	nbd_request_write(gather_room(&c->out), &q);
	gather_written(&c->out, NBD_REQUEST_SIZE);
	if (s->r.command == NBD_WRITE && s->r.length <= LOAD_COPY)
		gather_copy(&c->out, payload, s->r.length);
	else if (s->r.command == NBD_WRITE)
		gather_vector(&c->out, payload, s->r.length);
	cover_clear(&s->call.cover);
	s->call = (struct nbd_call){.cookie = q.cookie,
		.offset = q.offset,
		.length = q.length,
		.command = s->r.command,
		.in = s->data};
	if (s->r.command == NBD_FLUSH && c->run->verify)
		s->mark = load_verify_mark(c->run->verify);
}

void load_conn_issue(struct load_conn *c, const struct load_request *r, weir_time now)
{
	uint32_t place = c->ring[c->ring_at];
	struct load_slot *s = &c->slots[place];

	c->ring_at = c->ring_at + 1 == c->n_slots ? 0 : c->ring_at + 1;
	c->n_free--;
	c->serial = c->serial == UINT32_MAX ? 1 : c->serial + 1;
	s->call.cookie = (uint64_t)c->serial << 32 | place;
	s->r = *r;
	if (c->run->in_flight++ == 0)
		c->run->heard = now;
	if (c->run->verify && r->command == NBD_WRITE)
		load_verify_fill(c->run->verify, r->offset, r->length, s->data);
	append_request(c, s);
}

/* Resend the requests that were in flight at the loss, as far as there is room. */
bool load_conn_resend(struct load_conn *c)
{
	while (c->resend_at < c->n_slots) {
		struct load_slot *s = &c->slots[c->resend_at];

		if (s->call.cookie) {
			if (!load_conn_room(c))
				return false;
			append_request(c, s);
			c->run->result.resent++;
		}
		c->resend_at++;
	}
	return true;
}

/* Record whether the socket is full, and watch for EPOLLOUT if it is. */
static void set_blocked(struct load_conn *c, bool blocked)
{
	c->blocked = blocked;
	loop_change(c->run->loop, &c->fd, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void load_conn_send(struct load_conn *c)
{
	while (c->iov_at < c->out.n || stream_pending(&c->stream)) {
		ssize_t sent =
			stream_send(&c->stream, c->out.iov + c->iov_at, c->out.n - c->iov_at);

		if (sent == -EAGAIN || (sent == 0 && stream_pending(&c->stream))) {
			set_blocked(c, true);
			return;
		}
		if (sent < 0) {
			load_conn_lost(c->run, strerror((int)-sent));
			return;
		}
		c->iov_at = gather_skip(&c->out, c->iov_at, (size_t)sent);
		if (c->iov_at == c->out.n)
			reset_out(c);
	}
	if (c->blocked) {
		set_blocked(c, false);
		load_conn_dirty(c); /* requests that had no room may go now */
	}
}

/* ---- receiving */

static struct nbd_call *find_call(void *arg, uint64_t cookie)
{
	struct load_conn *c = arg;
	uint32_t place = (uint32_t)cookie;

	return cookie && place < c->n_slots && c->slots[place].call.cookie == cookie
		       ? &c->slots[place].call
		       : NULL;
}

static int end_reply(void *arg, struct nbd_call *call)
{
	struct load_conn *c = arg;
	struct load_slot *s = container_of(call, struct load_slot, call);

	load_count_done(c->run, s, call->error, c->received);
	call->cookie = 0;
	s->free_at = c->received + c->run->job.think;
	c->ring[(c->ring_at + c->n_free++) % c->n_slots] = (uint32_t)(s - c->slots);
	load_conn_dirty(c);
	return 0;
}

static const struct nbd_replies_ops replies_ops = {.find = find_call, .done = end_reply};

static void receive_replies(struct load_conn *c)
{
	struct load_run *r = c->run;
	ssize_t n;

	do {
		weir_time now;

		n = stream_recv(&c->stream, r->thread->scratch, LOAD_RECV);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			load_conn_lost(
				r, n ? strerror((int)-n) : "the server closed the connection");
			return;
		}
		now = r->heard = loop_clock();
		c->received = now;
		if (nbd_replies_input(&c->replies, &replies_ops, c, r->thread->scratch, (size_t)n) <
			0) {
			load_conn_lost(r, "the server sent an invalid reply");
			return;
		}
		/* Plain sockets are read once per round, so that all get their turn; TLS buffers
		 * decrypted data where the loop does not see it. */
	} while (c->stream.tls && c->watched);
}

static void on_ready(struct loop_fd *f, uint32_t events)
{
	struct load_conn *c = container_of(f, struct load_conn, fd);

	if (events & EPOLLOUT)
		load_conn_dirty(c);
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		receive_replies(c);
}

/* ---- loss */

static void drop_requests(struct load_conn *c)
{
	struct load_run *r = c->run;

	for (uint32_t i = 0; i < c->n_slots; i++) {
		struct load_slot *s = &c->slots[i];

		if (!s->call.cookie)
			continue;
		s->call.cookie = 0;
		r->in_flight--;
		r->result.errors[LOAD_UNANSWERED]++;
		r->result.n_errors++;
		if (r->verify && s->r.command == NBD_WRITE)
			load_verify_abandon(r->verify, s->r.offset, s->r.length);
	}
}

static void give_up(struct load_run *r, const char *why)
{
	for (uint32_t i = 0; i < r->job.connections; i++)
		drop_requests(&r->conns[i]);
	load_fail(r, "%s: %s", r->job.uri, why);
}

void load_conn_lost(struct load_run *r, const char *why)
{
	if (r->lost || r->phase == LOAD_DONE)
		return;
	for (uint32_t i = 0; i < r->job.connections; i++)
		close_conn(&r->conns[i]);
	if (r->verify)
		load_verify_lost(r->verify);
	r->lost = true;
	r->lost_at = loop_clock();
	r->back_off = BACK_OFF;
	r->retry_at = r->lost_at + r->back_off;
	if (r->job.reconnect == 0)
		give_up(r, why);
	else
		load_say(r, "connection lost (%s); trying again", why);
}

void load_conn_retry(struct load_run *r, weir_time now)
{
	int e;

	if (!r->lost || r->dial || now < r->retry_at)
		return;
	r->back_off = r->back_off * 2 < BACK_OFF_MAX ? r->back_off * 2 : BACK_OFF_MAX;
	r->retry_at = now + r->back_off;
	e = load_dial_start(r);
	if (e < 0)
		give_up(r, strerror(-e));
}

/* Return true if the reconnected export looks like the same one. */
static bool same_export(const struct load_run *r, const struct nbd_export *e)
{
	uint16_t needed = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_MULTI_CONN;

	return e->size >= r->export_.size && !(r->export_.flags & needed & ~e->flags);
}

static int open_all(struct load_run *r, struct load_dial *d)
{
	int e = 0;

	for (uint32_t i = 0; i < r->job.connections; i++) {
		if (e == 0)
			e = load_conn_open(&r->conns[i], d->streams[i]);
		else
			stream_close(&d->streams[i]);
		r->conns[i].resend_at = 0;
		load_conn_dirty(&r->conns[i]);
	}
	return e;
}

void load_conn_dialled(struct load_run *r, struct load_dial *d)
{
	weir_time now = loop_clock();
	bool over = r->phase == LOAD_DONE;
	int e;

	if (d->result == 0 && (over || !same_export(r, &d->export_))) {
		for (uint32_t i = 0; i < r->job.connections; i++)
			stream_close(&d->streams[i]);
		if (!over)
			give_up(r, "after reconnecting, the export is a different one");
		return;
	}
	if (over)
		return;
	if (d->result < 0) {
		if (now - r->lost_at >= r->job.reconnect)
			give_up(r, d->err.text);
		return; /* the next tick retries */
	}
	e = open_all(r, d);
	if (e < 0) {
		give_up(r, strerror(-e));
		return;
	}
	r->lost = false;
	r->heard = now;
	r->result.reconnects++;
	load_say(r, "connected again after %.1f s", (double)(now - r->lost_at) / 1e9);
}

void load_conn_end(struct load_run *r)
{
	for (uint32_t i = 0; i < r->job.connections; i++) {
		struct load_conn *c = &r->conns[i];

		if (c->watched && c->iov_at == c->out.n)
			nbd_link_farewell(&c->stream);
		close_conn(c);
	}
}
