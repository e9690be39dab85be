/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read: bytes in, requests out.
 *
 * METHOD  A receive goes into the worker's scratch buffer and brings as many requests as the client
 *         had sent. Processing depends on the connection's step, so it does not matter where a receive
 *         ends. Small payloads are copied to their chunks; while much of a payload is missing, the
 *         rest of its piece is received in place, and in the same call a little of what follows it
 *         into the scratch buffer: usually the next request.
 *         A piece of a write goes to the resource as soon as it is full: a write of 32 MiB needs no
 *         more memory at once than the connection may have.
 */
#include "serve/front/nbd/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define RECEIVES 4     /* per round; then the other connections have their turn */
#define DIRECT   16384 /* missing bytes from which a payload is received in place */
#define TRAIL    4096  /* bytes received after a payload: copied if they are a payload again */
#define SKIP_MAX (64u << 20) /* bytes of a refused write; beyond, the client is disconnected */
#define REST_OF  8           /* unprocessed bytes: this part of the payload memory … */
#define REST_MIN 4096        /* … and beyond it so much per connection */
#define EXTENTS  256         /* of one block status: 4 KiB of them */

static bool can_read(const struct front_nbd_conn *c)
{
	return !c->stopping && !c->closed && !c->gone && !c->doomed && !c->paused;
}

/* ---- requests */

static void submit_job(struct front_nbd_conn *c, struct front_nbd_job *j, enum back_op op)
{
	struct back_io *io = &j->req.io;

	io->op = (uint8_t)op;
	io->offset = c->offset + j->offset;
	io->length = op == BACK_FLUSH ? c->size : j->length; /* a FLUSH covers the whole export */
	io->source = c->client.node;
	/* The protocol allows FUA on all commands; it has a meaning for writes. */
	if (c->request.flags & NBD_FUA && (op == BACK_WRITE || op == BACK_TRIM || op == BACK_ZERO))
		io->flags |= BACK_FUA;
	if (op == BACK_READ && io->chunk)
		io->flags |= BACK_BORROW;
	j->received = c->received;
	if (j->head) {
		j->head->left++;
		j->head->received = c->received; /* in the end that of its last piece */
	}
	c->front->submitted = true;
	c->front->n_submitted++;
	resource_submit(c->client.resource, &j->req);
}

static struct front_nbd_job *make_job(
	struct front_nbd_conn *c, size_t memory, uint32_t at, uint32_t length)
{
	struct front_nbd_job *j = front_nbd_job_get(c, memory, c->head && c->head->whole);

	if (!j)
		return NULL;
	j->cookie = c->request.cookie;
	j->command = (uint8_t)c->request.command;
	j->offset = c->request.offset + at;
	j->length = length;
	return j;
}

/* Make the head of a request of several pieces. */
static struct front_nbd_job *make_head(struct front_nbd_conn *c)
{
	struct front_nbd_job *j = make_job(c, 0, 0, c->request.length);

	if (!j)
		return NULL;
	j->is_head = true;
	j->left = 1;
	j->pieces = NULL;
	j->pieces_end = &j->pieces;
	c->done = 0;
	return j;
}

static struct front_nbd_job *make_piece(struct front_nbd_conn *c, bool memory)
{
	uint32_t left = c->request.length - c->done;
	uint32_t length = left < CHUNK_MAX ? left : CHUNK_MAX;
	struct front_nbd_job *j = make_job(c, memory ? length : 0, c->done, length);

	if (!j)
		return NULL;
	j->head = c->head;
	if (c->head && c->head->whole) {
		j->next_piece = NULL;
		*c->head->pieces_end = j;
		c->head->pieces_end = &j->next_piece;
	}
	c->done += length;
	return j;
}

static bool lends(const struct front_nbd_conn *c)
{
	return resource_info(c->client.resource)->lends;
}

/* A read in several pieces that is answered as one needs all its memory at once: two that wait in
 * the middle might wait for each other. Return 0, -EAGAIN: not now, or -ENOMEM: never. */
static int check_whole(struct front_nbd_conn *c)
{
	size_t need = c->request.length, budget = chunk_budget(c->front->pool);
	size_t held = chunk_held(c->front->pool);

	if (c->jobs + need / CHUNK_MAX + 2 > FRONT_NBD_JOBS) {
		c->own = front_nbd_waits_for_own(c);
		return -EAGAIN;
	}
	if (lends(c) || front_nbd_may(c, need))
		return 0;
	if (need > budget / 2)
		return -ENOMEM;
	if (c->own && (c->deaf || c->blocked))
		return -EAGAIN;
	c->own = c->held > 0;
	if (c->held || held + need + CHUNK_MAX > budget || !front_nbd_tenant_may(c, need))
		return -EAGAIN;
	return 0;
}

/* Return the next step, or the same one if it has to wait. */
static enum front_nbd_step begin_read(struct front_nbd_conn *c)
{
	struct front_nbd_job *j;
	bool whole = !c->structured || c->request.flags & NBD_DF;
	int rc;

	if (c->request.length <= CHUNK_MAX) {
		j = make_job(c, lends(c) ? 0 : c->request.length, 0, c->request.length);
		if (!j)
			return FRONT_NBD_BEGIN;
		submit_job(c, j, BACK_READ);
		return FRONT_NBD_HEAD;
	}
	rc = whole ? check_whole(c) : 0;
	if (rc == -ENOMEM)
		return front_nbd_answer(c, &c->request, rc) ? FRONT_NBD_HEAD : FRONT_NBD_BEGIN;
	c->head = rc == 0 ? make_head(c) : NULL;
	if (!c->head)
		return FRONT_NBD_BEGIN;
	c->head->whole = whole;
	return FRONT_NBD_MORE;
}

static enum front_nbd_step more_pieces(struct front_nbd_conn *c)
{
	struct front_nbd_job *head = c->head;

	while (c->done < c->request.length) {
		struct front_nbd_job *j = make_piece(c, !lends(c));

		if (!j && !head->whole)
			return FRONT_NBD_MORE;
		if (!j) { /* there is memory, but no chunk of this size: release the rest */
			head->req.io.error = -ENOMEM;
			break;
		}
		submit_job(c, j, BACK_READ);
	}
	c->head = NULL;
	front_nbd_head_release(head);
	return FRONT_NBD_HEAD;
}

static enum front_nbd_step begin_write(struct front_nbd_conn *c, int error)
{
	if (error) {
		c->refusal = error;
		c->skip = c->request.length;
		return FRONT_NBD_SKIP;
	}
	c->done = 0;
	if (c->request.length > CHUNK_MAX && !(c->head = make_head(c)))
		return FRONT_NBD_BEGIN;
	return FRONT_NBD_PIECE;
}

static enum front_nbd_step begin_other(struct front_nbd_conn *c, enum back_op op)
{
	bool status = op == BACK_STATUS, at_once = false;
	struct front_nbd_job *j = make_job(
		c, status ? EXTENTS * sizeof(struct back_extent) : 0, 0, c->request.length);

	if (!j)
		return FRONT_NBD_BEGIN;
	if (c->request.flags & NBD_NO_HOLE)
		j->req.io.flags |= BACK_NO_HOLE;
	if (c->request.flags & NBD_FAST_ZERO)
		j->req.io.flags |= BACK_FAST_ZERO;
	if (op == BACK_FLUSH) /* its range has no meaning */
		j->offset = j->length = 0;
	if (status) {
		at_once = front_nbd_held(c) || !resource_info(c->client.resource)->can_status;
		j->held = c->told;
		j->req.io.extents = (struct back_extent *)(void *)j->req.io.data;
		j->req.io.n_extents = c->request.flags & NBD_REQ_ONE ? 1 : EXTENTS;
	}
	if (at_once) {
		j->req.io.extents[0] = (struct back_extent){.length = j->length}; /* all is data */
		j->req.io.n_extents = 1;
		front_nbd_reply(j);
		return FRONT_NBD_HEAD;
	}
	submit_job(c, j, op);
	return FRONT_NBD_HEAD;
}

static enum front_nbd_step begin_checked(struct front_nbd_conn *c)
{
	switch (c->request.command) {
	case NBD_READ:
		return begin_read(c);
	case NBD_FLUSH:
		return begin_other(c, BACK_FLUSH);
	case NBD_TRIM:
		return begin_other(c, BACK_TRIM);
	case NBD_WRITE_ZEROES:
		return begin_other(c, BACK_ZERO);
	case NBD_CACHE:
		return begin_other(c, BACK_CACHE);
	default:
		return begin_other(c, BACK_STATUS);
	}
}

static enum front_nbd_step begin_request(struct front_nbd_conn *c)
{
	const struct nbd_request *q = &c->request;
	struct front_nbd_rules rules = {c->size, c->flags, c->block_min, c->structured,
		c->base_allocation || c->tells_held};
	int error;

	if (q->command == NBD_DISC) {
		c->stopping = true;
		front_nbd_todo(c);
		return FRONT_NBD_HEAD;
	}
	error = front_nbd_check(&rules, q);
	if (q->command == NBD_WRITE && q->length > SKIP_MAX) {
		front_nbd_broken(c, "a write of more than 64 MiB");
		return FRONT_NBD_HEAD;
	}
	if (q->command == NBD_WRITE && q->length)
		return begin_write(c, error);
	if (error || (q->length == 0 && q->command != NBD_FLUSH))
		return front_nbd_answer(c, q, error) ? FRONT_NBD_HEAD : FRONT_NBD_BEGIN;
	return begin_checked(c);
}

/* ---- payloads */

static enum front_nbd_step submit_piece(struct front_nbd_conn *c)
{
	struct front_nbd_job *head = c->head, *piece = c->piece;

	c->piece = NULL;
	submit_job(c, piece, BACK_WRITE);
	if (c->done < c->request.length)
		return FRONT_NBD_PIECE;
	c->head = NULL;
	if (head)
		front_nbd_head_release(head);
	return FRONT_NBD_HEAD;
}

static enum front_nbd_step begin_piece(struct front_nbd_conn *c)
{
	c->piece = make_piece(c, true);
	if (!c->piece)
		return FRONT_NBD_PIECE;
	c->have = 0;
	c->piece_since = loop_now(c->front->loop);
	return FRONT_NBD_PAYLOAD;
}

static size_t fill_payload(struct front_nbd_conn *c, const uint8_t *p, size_t n)
{
	uint32_t missing = c->piece->length - c->have;
	size_t some = n < missing ? n : missing;

	memcpy(c->piece->req.io.data + c->have, p, some);
	c->have += (uint32_t)some;
	if (some == missing)
		c->step = submit_piece(c);
	return some;
}

static size_t skip_payload(struct front_nbd_conn *c, size_t n)
{
	size_t some = n < c->skip ? n : c->skip;

	c->skip -= (uint32_t)some;
	return some;
}

static size_t parse_head(struct front_nbd_conn *c, const uint8_t *p, size_t n)
{
	const uint8_t *whole = p;
	size_t some = NBD_REQUEST_SIZE;

	if (c->n_head || n < NBD_REQUEST_SIZE) {
		some = NBD_REQUEST_SIZE - c->n_head;
		some = n < some ? n : some;
		memcpy(c->head_bytes + c->n_head, p, some);
		c->n_head = (uint8_t)(c->n_head + some);
		if (c->n_head < NBD_REQUEST_SIZE)
			return some;
		whole = c->head_bytes;
	}
	c->n_head = 0;
	if (nbd_request_read(whole, &c->request) < 0)
		front_nbd_broken(c, "bad magic");
	else
		c->step = FRONT_NBD_BEGIN;
	return some;
}

/* Do the steps that need no bytes. Return false if the connection has to wait. */
static bool do_steps(struct front_nbd_conn *c)
{
	while (can_read(c)) {
		uint8_t step = c->step;

		switch (step) {
		case FRONT_NBD_BEGIN:
			c->step = begin_request(c);
			break;
		case FRONT_NBD_MORE:
			c->step = more_pieces(c);
			break;
		case FRONT_NBD_PIECE:
			c->step = begin_piece(c);
			break;
		case FRONT_NBD_SKIP:
			if (c->skip)
				return true;
			c->step = front_nbd_answer(c, &c->request, c->refusal) ? FRONT_NBD_HEAD
									       : step;
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
static size_t process(struct front_nbd_conn *c, const uint8_t *p, size_t n)
{
	size_t at = 0;

	for (;;) {
		if (!do_steps(c))
			front_nbd_pause(c);
		if (at == n || !can_read(c))
			return at;
		if (c->step == FRONT_NBD_PAYLOAD)
			at += fill_payload(c, p + at, n - at);
		else if (c->step == FRONT_NBD_SKIP)
			at += skip_payload(c, n - at);
		else
			at += parse_head(c, p + at, n - at);
	}
}

/* ---- receiving */

void front_nbd_keep(struct front_nbd_conn *c, const uint8_t *p, size_t n)
{
	c->rest = malloc(n);
	if (!c->rest) {
		front_nbd_lost(c, -ENOMEM);
		return;
	}
	memcpy(c->rest, p, n);
	c->rest_at = 0;
	c->rest_n = n;
	c->front->rest_bytes += n;
}

static void rest_free(struct front_nbd_conn *c)
{
	c->front->rest_bytes -= c->rest_n;
	free(c->rest);
	c->rest = NULL;
	c->rest_n = c->rest_at = 0;
}

static void process_and_keep(struct front_nbd_conn *c, const uint8_t *p, size_t n)
{
	size_t used = process(c, p, n);

	if (used < n && c->paused)
		front_nbd_keep(c, p + used, n - used);
}

/* Receive the rest of a piece in place, and a little of what follows. */
static ssize_t receive_direct(struct front_nbd_conn *c, size_t *ret_asked)
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

static ssize_t receive(struct front_nbd_conn *c, size_t *ret_asked)
{
	struct front_nbd *f = c->front;
	ssize_t n;

	if (c->step == FRONT_NBD_PAYLOAD && c->piece->length - c->have >= DIRECT)
		return receive_direct(c, ret_asked);
	*ret_asked = f->scratch_room;
	if (f->rest_bytes > chunk_budget(f->pool) / REST_OF)
		*ret_asked = REST_MIN;
	n = stream_recv(&c->stream, f->scratch, *ret_asked);
	if (n > 0) {
		c->received = loop_refresh(f->loop);
		process_and_keep(c, f->scratch, (size_t)n);
	}
	return n;
}

void front_nbd_read(struct front_nbd_conn *c)
{
	c->unread = false;
	for (unsigned i = 0; i < RECEIVES && can_read(c) && !c->rest; i++) {
		size_t asked;
		ssize_t n = receive(c, &asked);

		if (n == -EAGAIN)
			return;
		if (n == 0) {
			front_nbd_ended(c);
			return;
		}
		if (n < 0) {
			front_nbd_lost(c, (int)n);
			return;
		}
		if ((size_t)n < asked && !c->stream.tls)
			return; /* the socket is empty */
	}
	/* Data that TLS has already decrypted make no socket readable. */
	if (c->stream.tls && can_read(c) && !c->rest) {
		c->unread = true;
		front_nbd_todo(c);
	}
}

void front_nbd_resume(struct front_nbd_conn *c)
{
	static const uint8_t nothing[1];

	c->rest_at += process(c, c->rest ? c->rest + c->rest_at : nothing, c->rest_n - c->rest_at);
	if (c->rest && c->rest_at == c->rest_n)
		rest_free(c);
	/* TLS may have decrypted more than was read. */
	if (c->stream.tls && can_read(c)) {
		c->unread = true;
		front_nbd_todo(c);
	}
}

void front_nbd_read_end(struct front_nbd_conn *c)
{
	struct front_nbd_job *head = c->head, *piece = c->piece;

	c->head = c->piece = NULL;
	if (piece)
		front_nbd_job_put(piece);
	if (head)
		front_nbd_head_release(head);
	if (c->rest)
		rest_free(c);
}
