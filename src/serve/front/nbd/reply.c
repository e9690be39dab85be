/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply: replies out, many per send.
 *
 * METHOD  Finished jobs are in the connection's queue. A send gathers as many as fit: headers and data
 *         up to 16 KiB are copied one after the other into the worker's scratch buffer, larger data
 *         are referenced in place. A reply is derived from its job alone, so for a partly sent one
 *         only the number of bytes is kept, and it is gathered again: no connection has a buffer of
 *         its own.
 *         A socket that was full accepts about as much as the last time: no more is gathered for it,
 *         else a scratch buffer full of replies would be copied for every few that a slow client
 *         reads.
 *         Borrowed data are sent from the back end's memory; those not sent in the round are copied
 *         to the job's own chunk.
 * COST    One system call per round. Copying wins below 16 KiB, since each vector costs the kernel
 *         about as much as copying that; above it loses by a factor of three. For just received data
 *         a vector wins earlier: they are in the cache, and a copy would evict other data.
 */
#include "serve/front/nbd/impl.h"
#include "wire/bytes.h"
#include <errno.h>
#include <string.h>

#define COPY    16384u     /* bytes */
#define BORROW  2048u      /* bytes: borrowed data are copied only below this */
#define HEADER  64u        /* bytes: no header is longer, except for a block status' extents */
#define VECTORS 320        /* a read of 32 MiB, answered as one, has 129 */
#define ENOUGH  (1u << 20) /* bytes gathered at once: more than a socket's buffer */
#define LITTLE  16384u     /* bytes beyond what a full socket accepted the last time */

struct gathering {
	uint8_t *scratch;
	size_t at, room; /* of the scratch buffer */
	size_t bytes;    /* in total */
	int n;
	struct iovec iov[VECTORS];
};

/* ---- the parts of a reply */

static void add_vector(struct gathering *g, const void *data, size_t n)
{
	struct iovec *last = g->n ? &g->iov[g->n - 1] : NULL;

	if (last && (const uint8_t *)last->iov_base + last->iov_len == data)
		last->iov_len += n;
	else
		g->iov[g->n++] = (struct iovec){(void *)(uintptr_t)data, n};
	g->bytes += n;
}

/* Add n bytes that were written at g->scratch + g->at. */
static void add_written(struct gathering *g, size_t n)
{
	add_vector(g, g->scratch + g->at, n);
	g->at += n;
}

static bool is_copied(const struct front_nbd_job *j)
{
	return j->length <= (front_nbd_borrowed(j) && !j->conn->stream.tls ? BORROW : COPY);
}

static void add_data(struct gathering *g, const struct front_nbd_job *j)
{
	if (!is_copied(j)) {
		add_vector(g, j->req.io.data, j->length);
		return;
	}
	memcpy(g->scratch + g->at, j->req.io.data, j->length);
	add_written(g, j->length);
}

static size_t read_head(const struct front_nbd_job *j, uint8_t *p)
{
	if (!j->conn->structured)
		return nbd_simple_write(p, j->cookie, 0);
	if (j->length == 0)
		return nbd_chunk_write(p, j->cookie, NBD_CHUNK_NONE, NBD_CHUNK_DONE, 0);
	if (j->last)
		return nbd_data_write(p, j->cookie, j->offset, j->length);
	nbd_chunk_write(p, j->cookie, NBD_CHUNK_DATA, 0, j->length + 8);
	bytes_put64(p + NBD_CHUNK_SIZE, j->offset);
	return NBD_DATA_SIZE;
}

static void add_read(struct gathering *g, const struct front_nbd_job *j)
{
	add_written(g, read_head(j, g->scratch + g->at));
	if (!j->is_head && j->length) {
		add_data(g, j);
		return;
	}
	if (j->is_head)
		for (const struct front_nbd_job *p = j->pieces; p; p = p->next_piece)
			add_vector(g, p->req.io.data, p->length);
}

/* Write the head of a chunk for one negotiated context. */
static size_t status_head(
	uint8_t *p, const struct front_nbd_job *j, uint32_t context, uint32_t extents, bool last)
{
	size_t n = nbd_chunk_write(
		p, j->cookie, NBD_CHUNK_STATUS, last ? NBD_CHUNK_DONE : 0, 4 + 8 * extents);

	bytes_put32(p + n, context);
	return n + 4;
}

static size_t put_extent(uint8_t *p, uint64_t length, uint32_t flags)
{
	bytes_put32(p, (uint32_t)length);
	bytes_put32(p + 4, flags);
	return 8;
}

static void add_status(struct gathering *g, const struct front_nbd_job *j)
{
	const struct front_nbd_conn *c = j->conn;
	const struct back_io *io = &j->req.io;
	uint8_t *p = g->scratch + g->at;
	size_t n = 0;

	if (c->base_allocation) {
		n = status_head(p, j, c->context_id, io->n_extents, !c->tells_held);
		for (uint32_t i = 0; i < io->n_extents; i++)
			n += put_extent(p + n, io->extents[i].length, io->extents[i].flags);
	}
	if (c->tells_held) {
		n += status_head(p + n, j, c->held_id, 1, true);
		n += put_extent(p + n, j->length, j->held);
	}
	add_written(g, n);
}

static void add_reply(struct gathering *g, struct front_nbd_job *j)
{
	bool chunks =
		j->conn->structured && (j->command == NBD_READ || j->command == NBD_BLOCK_STATUS);
	size_t before = g->bytes;
	int error = j->req.io.error;

	if (!error && j->command == NBD_READ)
		add_read(g, j);
	else if (!error && j->command == NBD_BLOCK_STATUS)
		add_status(g, j);
	else if (chunks)
		add_written(g, nbd_error_write(g->scratch + g->at, j->cookie, error));
	else
		add_written(g, nbd_simple_write(g->scratch + g->at, j->cookie, error));
	j->size = (uint32_t)(g->bytes - before);
}

/* Return true if there is room in the scratch buffer and the vectors. */
static bool fits(const struct gathering *g, const struct front_nbd_job *j)
{
	size_t room = HEADER;
	int vectors = 2;

	if (j->command == NBD_BLOCK_STATUS && !j->req.io.error)
		room += 8 * (size_t)j->req.io.n_extents;
	else if (j->command == NBD_READ && !j->is_head && is_copied(j))
		room += j->length;
	if (j->is_head && j->whole)
		vectors += (int)(j->length / CHUNK_MAX) + 1;
	return g->at + room <= g->room && g->n + vectors <= VECTORS;
}

/* ---- the queue */

/* Cut extents to the requested range, as the protocol requires. */
static void cut_extents(struct front_nbd_job *j)
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

void front_nbd_own(struct front_nbd_job *j)
{
	struct back_io *io = &j->req.io;

	if (!front_nbd_borrowed(j))
		return;
	if (!io->error)
		memcpy(io->chunk->data, io->data, io->length);
	io->data = io->chunk->data;
}

void front_nbd_own_all(struct front_nbd_conn *c)
{
	for (struct request *q = c->out.first; q; q = q->next)
		front_nbd_own(front_nbd_job_of(q));
	c->borrows = false;
}

void front_nbd_reply(struct front_nbd_job *j)
{
	struct front_nbd_conn *c = j->conn;

	if (c->blocked) /* it is not sent in this round */
		front_nbd_own(j);
	c->borrows |= front_nbd_borrowed(j);

	if (j->command == NBD_BLOCK_STATUS && !j->req.io.error)
		cut_extents(j);
	if (!c->out.first)
		c->progress = loop_now(c->front->loop);
	request_list_add(&c->out, &j->req);
	front_nbd_todo(c);
}

bool front_nbd_answer(struct front_nbd_conn *c, const struct nbd_request *q, int error)
{
	struct front_nbd_job *j = front_nbd_job_get(c, 0, false);

	if (!j)
		return false;
	j->cookie = q->cookie;
	/* The number of an unknown command, cut to 8 bits, may be a known one: it gets a simple
	 * reply. */
	j->command = q->command <= NBD_BLOCK_STATUS ? (uint8_t)q->command : NBD_DISC;
	j->offset = q->offset;
	j->length = 0;
	j->req.io.error = error;
	front_nbd_reply(j);
	return true;
}

static void put_job(struct front_nbd_job *j)
{
	if (j->is_head)
		front_nbd_head_drop(j);
	else
		front_nbd_job_put(j);
}

static struct front_nbd_job *take_first(struct front_nbd_conn *c)
{
	struct request *q = c->out.first;

	c->out.first = q->next;
	if (!q->next)
		c->out.end = &c->out.first;
	return front_nbd_job_of(q);
}

void front_nbd_drop(struct front_nbd_conn *c)
{
	while (c->out.first)
		put_job(take_first(c));
	c->sent = 0;
}

/* ---- sending */

static void gather(struct front_nbd_conn *c, struct gathering *g)
{
	size_t most = c->takes ? c->takes + LITTLE : ENOUGH;

	/* Field by field: the vectors need no zeroing, and 5 KiB of it would be noticeable. */
	g->scratch = c->front->scratch;
	g->room = c->front->scratch_room;
	g->at = g->bytes = 0;
	g->n = 0;
	for (struct request *q = c->out.first; q && g->bytes < most + c->sent; q = q->next) {
		struct front_nbd_job *j = front_nbd_job_of(q);

		if (!fits(g, j))
			break;
		if (q->next)
			__builtin_prefetch(front_nbd_job_of(q->next)->req.io.data);
		add_reply(g, j);
	}
}

/* Skip the first `n` bytes, already sent. Return the first remaining vector. */
static int skip(struct gathering *g, uint64_t n)
{
	int i = 0;

	for (; i < g->n && n && n >= g->iov[i].iov_len; i++)
		n -= g->iov[i].iov_len;
	if (i < g->n && n) {
		g->iov[i].iov_base = (uint8_t *)g->iov[i].iov_base + n;
		g->iov[i].iov_len -= n;
	}
	return i;
}

/* Release replies whose last byte the socket has accepted. */
static void release_sent(struct front_nbd_conn *c, weir_time finished)
{
	while (c->out.first && c->sent >= front_nbd_job_of(c->out.first)->size) {
		struct front_nbd_job *j = take_first(c);

		c->sent -= j->size;
		c->heard = true;
		if (j->received && j->last)
			resource_answered(&c->client, j->received, finished);
		put_job(j);
		if (c->sent == 0)
			break; /* the next one's size may be stale */
	}
}

static void advance_sent(struct front_nbd_conn *c, size_t n)
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

bool front_nbd_send(struct front_nbd_conn *c)
{
	struct gathering g;
	size_t whole;
	ssize_t n;
	int from;

	gather(c, &g);
	whole = g.bytes - c->sent;
	from = skip(&g, c->sent);
	n = stream_send(&c->stream, g.iov + from, g.n - from);
	if (n < 0 && n != -EAGAIN) {
		front_nbd_lost(c, (int)n);
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
		front_nbd_job_hears(c);
	if (c->blocked)
		front_nbd_blocked(c);
	return !c->blocked && c->out.first;
}
