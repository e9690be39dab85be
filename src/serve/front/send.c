/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send: replies out, many per send.
 *
 * METHOD  Finished jobs are in the connection's queue. A send gathers as many as fit: headers and
 *         data up to 16 KiB are copied one after the other into the worker's scratch buffer, larger
 *         data are referenced in place. A reply is derived from its job alone, so for a partly sent
 *         one only the number of bytes is kept, and it is gathered again: no connection has a
 *         buffer of its own.
 *         A socket that was full accepts about as much as the last time: no more is gathered for
 *         it, else a scratch buffer full of replies would be copied for every few that a slow
 *         client reads.
 *         Borrowed data are sent from the back end's memory; those not sent in the round are copied
 *         to the job's own chunk.
 * COST    One system call per round. Copying wins below 16 KiB, since each vector costs the kernel
 *         about as much as copying that; above it loses by a factor of three. For just received
 *         data a vector wins earlier: they are in the cache, and a copy would evict other data.
 */
#include "serve/front/impl.h"
#include <errno.h>
#include <string.h>

#define COPY    16384u     /* bytes */
#define BORROW  2048u      /* bytes: borrowed data are copied only below this */
#define EXTENT  16u        /* bytes of an extent in a reply, at most */
#define VECTORS 320        /* a read of 32 MiB, answered as one, has 129 */
#define ENOUGH  (1u << 20) /* bytes gathered at once: more than a socket's buffer */
#define LITTLE  16384u     /* bytes beyond what a full socket accepted the last time */

static bool is_copied(const struct front_job *j)
{
	return j->length <= (front_borrowed(j) && !j->conn->stream.tls ? BORROW : COPY);
}

void front_gather_data(struct gather *g, const struct front_job *j)
{
	if (j->is_head)
		for (const struct front_job *p = j->pieces; p; p = p->next_piece)
			gather_vector(g, p->req.io.data, p->length);
	else if (j->length && is_copied(j))
		gather_copy(g, j->req.io.data, j->length);
	else if (j->length)
		gather_behind(g, j->req.io.data, j->length, front_borrowed(j) ? j->req.io.room : 0);
}

/* Return true if there is room in the scratch buffer and the vectors. */
static bool fits(const struct gather *g, const struct front_job *j)
{
	const struct front_conn *c = j->conn;
	size_t room = c->ops->reply_max;
	int vectors = 2;

	if (j->req.io.op == BACK_STATUS && !j->req.io.error)
		room += EXTENT * (size_t)j->req.io.n_extents;
	else if ((j->req.io.op == BACK_READ || j->req.io.op >= BACK_CALL) && !j->is_head &&
		 is_copied(j))
		room += j->length;
	if (j->is_head && j->whole)
		vectors += (int)(j->length / CHUNK_MAX) + 1;
	return g->at + room <= FRONT_SCRATCH && g->n + vectors <= VECTORS;
}

/* ---- the queue */

/* Cut extents to the requested range, as the protocol requires. */
static void cut_extents(struct front_job *j)
{
	struct back_io *io = &j->req.io;
	uint64_t left = j->length;
	uint32_t n = 0;

	for (; n < io->n_extents && left; n++) {
		if (io->extents[n].length > left)
			io->extents[n].length = left;
		if (io->extents[n].length == 0)
			break;
		left -= io->extents[n].length;
	}
	io->n_extents = n;
	if (n == 0)
		io->error = -EIO;
}

void front_own(struct front_job *j)
{
	struct back_io *io = &j->req.io;

	if (!front_borrowed(j))
		return;
	if (!io->error)
		memcpy(io->chunk->data, io->data, io->length);
	io->data = io->chunk->data;
}

void front_own_all(struct front_conn *c)
{
	for (struct request *q = c->out.first; q; q = q->next)
		front_own(front_job_of(q));
	c->borrows = false;
}

void front_reply(struct front_job *j)
{
	struct front_conn *c = j->conn;

	if (c->blocked) /* it is not sent in this round */
		front_own(j);
	c->borrows |= front_borrowed(j);

	if (j->req.io.op == BACK_STATUS && !j->req.io.error)
		cut_extents(j);
	if (!c->out.first)
		c->progress = loop_now(c->front->loop);
	request_list_add(&c->out, &j->req);
	front_todo(c);
}

enum front_step front_answer(struct front_conn *c, int error)
{
	struct front_job *j = front_job_get(c, 0, false);

	if (!j)
		return FRONT_BEGIN;
	j->cookie = c->request.cookie;
	j->command = c->request.command;
	j->offset = c->request.offset;
	j->length = 0;
	j->req.io.error = error;
	front_reply(j);
	return FRONT_HEAD;
}

static void put_job(struct front_job *j)
{
	if (j->is_head)
		front_head_drop(j);
	else
		front_job_put(j);
}

static struct front_job *take_first(struct front_conn *c)
{
	struct request *q = c->out.first;

	c->out.first = q->next;
	if (!q->next)
		c->out.end = &c->out.first;
	return front_job_of(q);
}

void front_drop(struct front_conn *c)
{
	while (c->out.first)
		put_job(take_first(c));
	c->sent = 0;
}

/* ---- sending */

static void gather_one(struct gather *g, struct front_job *j)
{
	if (j->raw)
		gather_vector(g, j->req.io.data, j->length);
	else
		j->conn->ops->reply(g, j);
}

static void gather_replies(struct front_conn *c, struct gather *g)
{
	size_t most = c->takes ? c->takes + LITTLE : ENOUGH;

	for (struct request *q = c->out.first; q && g->bytes < most + c->sent; q = q->next) {
		struct front_job *j = front_job_of(q);

		g->begun = g->bytes;
		if (!fits(g, j))
			break;
		if (q->next)
			__builtin_prefetch(front_job_of(q->next)->req.io.data);
		gather_one(g, j);
		j->size = (uint32_t)(g->bytes - g->begun);
	}
}

void front_unsent(
	struct front_conn *c, void (*put)(void *arg, const struct iovec *iov, int n), void *arg)
{
	struct iovec iov[VECTORS];
	uint64_t sent = c->sent;

	for (struct request *q = c->out.first; q; q = q->next) {
		struct gather g = {.iov = iov, .scratch = c->front->scratch};
		uint64_t skip;
		int from;

		gather_one(&g, front_job_of(q));
		skip = sent < g.bytes ? sent : g.bytes;
		sent -= skip;
		from = gather_skip(&g, 0, skip);
		put(arg, g.iov + from, g.n - from);
	}
}

/* Release replies whose last byte the socket has accepted. */
static void release_sent(struct front_conn *c, weir_time finished)
{
	while (c->out.first && c->sent >= front_job_of(c->out.first)->size) {
		struct front_job *j = take_first(c);

		c->sent -= j->size;
		c->heard = true;
		if (j->received && j->last)
			c->gate->answered(&c->client, j->received, finished);
		put_job(j);
		if (c->sent == 0)
			break; /* the next one's size may be stale */
	}
}

static void advance_sent(struct front_conn *c, size_t n)
{
	c->sent += n;
	if (stream_pending(&c->stream)) { /* unknown which of them are still in TLS's buffer */
		if (n)
			c->progress = loop_now(c->front->loop);
		return;
	}
	c->progress = loop_refresh(c->front->loop);
	release_sent(c, c->progress);
}

bool front_send(struct front_conn *c)
{
	struct iovec iov[VECTORS]; /* not zeroed: 5 KiB of that would be noticeable */
	struct gather g = {.iov = iov, .scratch = c->front->scratch};
	size_t whole;
	ssize_t n;
	int from;

	gather_replies(c, &g);
	whole = g.bytes - c->sent;
	from = gather_skip(&g, 0, c->sent);
	n = stream_send(&c->stream, g.iov + from, g.n - from);
	if (n < 0 && n != -EAGAIN) {
		front_lost(c, (int)n);
		return false;
	}
	if (n >= 0)
		advance_sent(c, (size_t)n);
	c->blocked = n == -EAGAIN || (size_t)n < whole || stream_pending(&c->stream);
	if (c->blocked)
		c->takes = n > 0 ? (size_t)n : c->takes ? c->takes : LITTLE;
	else if (c->takes)
		c->takes = c->out.first ? 2 * (c->takes + LITTLE) : 0;
	if (n > 0 || !c->blocked)
		front_job_hears(c);
	if (c->blocked)
		front_blocked(c);
	return !c->blocked && c->out.first;
}
