/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receive: bytes in, requests out.
 *
 * METHOD  A receive goes into the worker's scratch buffer and brings as many requests as the client
 *         had sent. Processing depends on the connection's step, so it does not matter where a
 *         receive ends. Small payloads are copied to their chunks; while much of a payload is
 *         missing, the rest of its piece is received in place, and in the same call a little of
 *         what follows it into the scratch buffer: usually the next request.
 *         A piece of a write goes to the resource as soon as it is full: a write of 32 MiB needs no
 *         more memory at once than the connection may have.
 */
#include "serve/front/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define RECEIVES 4     /* per round; then the other connections have their turn */
#define DIRECT   16384 /* missing bytes from which a payload is received in place */
#define TRAIL    4096  /* bytes received after a payload: copied if they are a payload again */
#define REST_OF  8     /* unprocessed bytes: this part of the payload memory … */
#define REST_MIN 4096  /* … and beyond it so much per connection */

static bool can_read(const struct front_conn *c)
{
	return !c->stopping && !c->closed && !c->gone && !c->doomed && !c->paused &&
	       !c->front->frozen;
}

/* ---- requests */

void front_submit(struct front_conn *c, struct front_job *j, enum back_op op)
{
	struct back_io *io = &j->req.io;

	io->op = (uint8_t)op;
	io->offset = c->offset + j->offset;
	io->length = op == BACK_FLUSH ? c->size : j->length; /* a FLUSH covers the whole export */
	io->source = c->client.node;
	io->flags |= c->request.flags;
	if (op == BACK_READ && io->chunk)
		io->flags |= BACK_BORROW;
	j->received = c->received;
	if (j->head) {
		j->head->left++;
		j->head->received = c->received; /* in the end that of its last piece */
	}
	c->front->submitted = true;
	if (++c->front->n_submitted == c->info->batch)
		loop_enough(c->front->loop);
	c->gate->submit(c->client.resource, &j->req);
}

static struct front_job *make_job(struct front_conn *c, size_t memory, uint32_t at, uint32_t length)
{
	struct front_job *j = front_job_get(c, memory, c->head && c->head->whole);

	if (!j)
		return NULL;
	j->cookie = c->request.cookie;
	j->command = c->request.command;
	j->offset = c->request.offset + at;
	j->length = length;
	return j;
}

struct front_job *front_job_make(struct front_conn *c, size_t memory)
{
	return make_job(c, memory, 0, c->request.length);
}

/* Make the head of a request of several pieces. */
static struct front_job *make_head(struct front_conn *c)
{
	struct front_job *j = front_job_make(c, 0);

	if (!j)
		return NULL;
	j->is_head = true;
	j->left = 1;
	j->pieces = NULL;
	j->pieces_end = &j->pieces;
	c->done = 0;
	return j;
}

static struct front_job *make_piece(struct front_conn *c, bool memory)
{
	uint32_t left = c->request.length - c->done;
	uint32_t length = left < CHUNK_MAX ? left : CHUNK_MAX;
	struct front_job *j = make_job(c, memory ? length : 0, c->done, length);

	if (!j)
		return NULL;
	j->head = c->head;
	j->last = !c->head;
	if (c->head && c->head->whole) {
		j->next_piece = NULL;
		*c->head->pieces_end = j;
		c->head->pieces_end = &j->next_piece;
	}
	c->done += length;
	return j;
}

/* A read in several pieces that is answered as one needs all its memory at once: two that wait in
 * the middle might wait for each other. Return 0, -EAGAIN: not now, or -ENOMEM: never. */
static int check_whole(struct front_conn *c)
{
	size_t need = c->request.length, budget = chunk_budget(c->front->pool);
	size_t held = chunk_held(c->front->pool);

	if (c->jobs + need / CHUNK_MAX + 2 > FRONT_JOBS) {
		c->own = front_waits_for_own(c);
		return -EAGAIN;
	}
	if (c->info->lends || front_may(c, need))
		return 0;
	if (need > budget / 2)
		return -ENOMEM;
	if (c->own && (c->deaf || c->blocked))
		return -EAGAIN;
	c->own = c->held > 0;
	if (c->held || held + need + CHUNK_MAX > budget || !front_tenant_may(c, need))
		return -EAGAIN;
	return 0;
}

enum front_step front_begin_read(struct front_conn *c)
{
	struct front_job *j;
	bool whole = c->request.whole;
	int rc;

	if (c->request.length <= CHUNK_MAX) {
		j = front_job_make(c, c->info->lends ? 0 : c->request.length);
		if (!j)
			return FRONT_BEGIN;
		front_submit(c, j, BACK_READ);
		return FRONT_HEAD;
	}
	rc = whole ? check_whole(c) : 0;
	if (rc == -ENOMEM)
		return front_answer(c, rc);
	c->head = rc == 0 ? make_head(c) : NULL;
	if (!c->head)
		return FRONT_BEGIN;
	c->head->whole = whole;
	c->head->parts = !whole;
	return FRONT_MORE;
}

static enum front_step more_pieces(struct front_conn *c)
{
	struct front_job *head = c->head;

	while (c->done < c->request.length) {
		struct front_job *j = make_piece(c, !c->info->lends);

		if (!j && !head->whole)
			return FRONT_MORE;
		if (!j) { /* there is memory, but no chunk of this size: release the rest */
			head->req.io.error = -ENOMEM;
			break;
		}
		front_submit(c, j, BACK_READ);
	}
	c->head = NULL;
	front_head_release(head);
	return FRONT_HEAD;
}

enum front_step front_begin_write(struct front_conn *c, int error)
{
	if (error) {
		c->refusal = error;
		c->skip = c->request.length;
		return FRONT_SKIP;
	}
	c->done = 0;
	if (c->request.length > CHUNK_MAX && !(c->head = make_head(c)))
		return FRONT_BEGIN;
	return FRONT_PIECE;
}

/* ---- payloads */

static enum front_step submit_piece(struct front_conn *c)
{
	struct front_job *head = c->head, *piece = c->piece;

	c->piece = NULL;
	front_submit(c, piece, BACK_WRITE);
	if (c->done < c->request.length)
		return FRONT_PIECE;
	c->head = NULL;
	if (head)
		front_head_release(head);
	return FRONT_HEAD;
}

static enum front_step begin_piece(struct front_conn *c)
{
	c->piece = make_piece(c, true);
	if (!c->piece)
		return FRONT_PIECE;
	c->have = 0;
	c->piece_since = loop_now(c->front->loop);
	return FRONT_PAYLOAD;
}

static size_t fill_payload(struct front_conn *c, const uint8_t *p, size_t n)
{
	uint32_t missing = c->piece->length - c->have;
	size_t some = n < missing ? n : missing;

	memcpy(c->piece->req.io.data + c->have, p, some);
	c->have += (uint32_t)some;
	if (some == missing)
		c->step = submit_piece(c);
	return some;
}

static size_t skip_payload(struct front_conn *c, size_t n)
{
	size_t some = n < c->skip ? n : c->skip;

	c->skip -= (uint32_t)some;
	return some;
}

/* Parse a request whose first bytes came before. */
static size_t parse_parts(struct front_conn *c, const uint8_t *p, size_t n)
{
	size_t room = c->ops->head_max - c->n_part, some = n < room ? n : room, used;

	memcpy(c->part + c->n_part, p, some);
	used = c->ops->parse(c, c->part, c->n_part + some);
	if (used) {
		some = used - c->n_part;
		c->n_part = 0;
		return some;
	}
	c->n_part += (uint32_t)some;
	if (c->n_part == c->ops->head_max)
		front_broken(c, "a request is too long");
	return some;
}

static size_t parse_head(struct front_conn *c, const uint8_t *p, size_t n)
{
	size_t used = c->n_part ? 0 : c->ops->parse(c, p, n);

	return used ? used : parse_parts(c, p, n);
}

/* Do the steps that need no bytes. Return false if the connection has to wait. */
static bool do_steps(struct front_conn *c)
{
	while (can_read(c)) {
		uint8_t step = c->step;

		switch (step) {
		case FRONT_BEGIN:
			c->step = c->ops->begin(c);
			break;
		case FRONT_MORE:
			c->step = more_pieces(c);
			break;
		case FRONT_PIECE:
			c->step = begin_piece(c);
			break;
		case FRONT_SKIP:
			if (c->skip)
				return true;
			if (front_answer(c, c->refusal) == FRONT_HEAD)
				c->step = FRONT_HEAD;
			break;
		default:
			return true;
		}
		if (c->step == step)
			return false;
	}
	return true;
}

/* Process bytes. Return how many were used: all, unless the connection has to wait, or ends. */
static size_t process(struct front_conn *c, const uint8_t *p, size_t n)
{
	size_t at = 0;

	for (;;) {
		if (!do_steps(c))
			front_pause(c);
		if (at == n || !can_read(c))
			return at;
		if (c->step == FRONT_PAYLOAD)
			at += fill_payload(c, p + at, n - at);
		else if (c->step == FRONT_SKIP)
			at += skip_payload(c, n - at);
		else
			at += parse_head(c, p + at, n - at);
	}
}

/* ---- receiving */

static void keep_rest(struct front_conn *c, const uint8_t *p, size_t n)
{
	c->rest = malloc(n);
	if (!c->rest) {
		front_lost(c, -ENOMEM);
		return;
	}
	memcpy(c->rest, p, n);
	c->rest_at = 0;
	c->rest_n = n;
	c->front->rest_bytes += n;
}

static void rest_free(struct front_conn *c)
{
	c->front->rest_bytes -= c->rest_n;
	free(c->rest);
	c->rest = NULL;
	c->rest_n = c->rest_at = 0;
}

static void process_and_keep(struct front_conn *c, const uint8_t *p, size_t n)
{
	size_t used = process(c, p, n);

	if (used < n && c->paused)
		keep_rest(c, p + used, n - used);
}

/* Receive the rest of a piece in place, and a little of what follows. */
static ssize_t receive_direct(struct front_conn *c, size_t *ret_asked)
{
	uint32_t missing = c->piece->length - c->have;
	struct iovec iov[2] = {
		{c->piece->req.io.data + c->have, missing}, {c->front->scratch, TRAIL}};
	ssize_t n, behind;

	if (c->stream.tls)
		n = stream_recv(&c->stream, iov[0].iov_base, missing);
	else
		n = readv(c->stream.fd, iov, 2);
	*ret_asked = missing + (c->stream.tls ? 0 : TRAIL);
	if (n < 0 && !c->stream.tls)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n <= 0)
		return n;
	c->received = loop_refresh(c->front->loop);
	behind = n - (ssize_t)missing;
	c->have += behind >= 0 ? missing : (uint32_t)n;
	if (behind >= 0) {
		c->step = submit_piece(c);
		process_and_keep(c, c->front->scratch, (size_t)behind);
	}
	return n;
}

static ssize_t receive(struct front_conn *c, size_t *ret_asked)
{
	struct front *f = c->front;
	ssize_t n;

	if (c->step == FRONT_PAYLOAD && c->piece->length - c->have >= DIRECT)
		return receive_direct(c, ret_asked);
	*ret_asked = FRONT_SCRATCH;
	if (f->rest_bytes > chunk_budget(f->pool) / REST_OF)
		*ret_asked = REST_MIN;
	n = stream_recv(&c->stream, f->scratch, *ret_asked);
	if (n > 0) {
		c->received = loop_refresh(f->loop);
		process_and_keep(c, f->scratch, (size_t)n);
	}
	return n;
}

void front_read(struct front_conn *c)
{
	c->unread = false;
	for (unsigned i = 0; i < RECEIVES && can_read(c) && !c->rest; i++) {
		size_t asked;
		ssize_t n = receive(c, &asked);

		if (n == -EAGAIN)
			return;
		if (n == 0) {
			front_ended(c);
			return;
		}
		if (n < 0) {
			front_lost(c, (int)n);
			return;
		}
		if ((size_t)n < asked && !c->stream.tls)
			return; /* the socket is empty */
	}
	/* Data that TLS has already decrypted make no socket readable. */
	if (c->stream.tls && can_read(c) && !c->rest) {
		c->unread = true;
		front_todo(c);
	}
}

void front_resume(struct front_conn *c)
{
	static const uint8_t nothing[1];

	c->rest_at += process(c, c->rest ? c->rest + c->rest_at : nothing, c->rest_n - c->rest_at);
	if (c->rest && c->rest_at == c->rest_n)
		rest_free(c);
	/* TLS may have decrypted more than was read. */
	if (c->stream.tls && can_read(c)) {
		c->unread = true;
		front_todo(c);
	}
}

void front_read_end(struct front_conn *c)
{
	struct front_job *head = c->head, *piece = c->piece;

	c->head = c->piece = NULL;
	if (piece)
		front_job_put(piece);
	if (head)
		front_head_release(head);
	if (c->rest)
		rest_free(c);
}
