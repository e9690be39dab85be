/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-replies: see nbd-replies.h.
 *
 * METHOD  A small state machine: HEAD, then by the kind of the reply SMALL (a few bytes that are
 *         needed whole, gathered in r->small if they come in parts), DATA, EXTENTS or SKIP. Heads
 *         that are whole in the input, as most are, are parsed in place.
 */
#include "serve/back/nbd-replies.h"
#include "wire/bytes.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

enum { HEAD, SMALL, DATA, EXTENTS, SKIP };

#define ERROR_MAX (6 + 4096 + 8) /* bytes of an error: the number, the longest message, an offset */

struct input {
	struct nbd_replies *r;
	const struct nbd_replies_ops *ops;
	void *arg;
	const uint8_t *p; /* NULL: DATA already received in place */
	size_t n;
	const uint8_t *start; /* of the input */
};

static void consume(struct input *in, size_t n)
{
	if (in->p)
		in->p += n;
	in->n -= n;
}

/* ---- the end of a reply, or of a chunk of one */

static int end_reply(struct input *in)
{
	struct nbd_call *c = in->r->call;

	if (!c->error && c->command == NBD_READ && c->got != c->length)
		return -EPROTO;
	in->r->call = NULL;
	return in->ops->done(in->arg, c);
}

static int end_chunk(struct input *in)
{
	struct nbd_replies *r = in->r;

	r->mode = HEAD;
	r->have = 0;
	r->to = NULL;
	return !r->head.structured || r->head.flags & NBD_CHUNK_DONE ? end_reply(in) : 0;
}

/* ---- the bodies */

static int begin_data(struct nbd_replies *r, uint64_t offset, uint32_t length)
{
	struct nbd_call *c = r->call;
	int rc;

	if (c->command != NBD_READ || !length || offset < c->offset ||
		length > c->length - c->got || offset - c->offset > c->length - length)
		return -EPROTO;
	/* A duplicate part would stand in for a missing one. */
	rc = cover_add(&c->cover, c->length, (uint32_t)(offset - c->offset), length);
	if (rc)
		return rc == -EEXIST ? -EPROTO : rc;
	r->mode = DATA;
	r->to = c->in ? c->in + (offset - c->offset) : NULL;
	r->left = length;
	c->got += length;
	return 0;
}

static int add_hole(struct input *in, uint64_t offset, uint32_t length)
{
	int rc = begin_data(in->r, offset, length);

	if (rc)
		return rc;
	if (in->r->to)
		memset(in->r->to, 0, length);
	return end_chunk(in);
}

/* Handle the first bytes of a chunk. */
static int parse_small(struct input *in, const uint8_t *p)
{
	struct nbd_replies *r = in->r;

	r->left -= r->need;
	switch (r->head.type) {
	case NBD_CHUNK_DATA:
		return begin_data(r, bytes_get64(p), r->left);
	case NBD_CHUNK_HOLE:
		return add_hole(in, bytes_get64(p), bytes_get32(p + 8));
	case NBD_CHUNK_STATUS:
		r->context = bytes_get32(p);
		r->mode = EXTENTS;
		r->have = 0;
		return 0;
	default: /* an error */
		if (!r->call->error)
			r->call->error = nbd_errno_of(bytes_get32(p));
		if (!r->call->error)
			return -EPROTO;
		r->mode = SKIP;
		return r->left ? 0 : end_chunk(in);
	}
}

static int parse_extent(struct input *in, const uint8_t *p)
{
	struct nbd_replies *r = in->r;
	int rc = in->ops->extent(in->arg, r->call, r->context, bytes_get32(p), bytes_get32(p + 4));

	r->have = 0;
	r->left -= 8;
	return rc || r->left ? rc : end_chunk(in);
}

static int parse_body(struct input *in)
{
	struct nbd_replies *r = in->r;
	size_t len = r->left < in->n ? r->left : in->n;

	if (r->mode == DATA && r->to) {
		if (in->p)
			memcpy(r->to, in->p, len);
		r->to += len;
	}
	consume(in, len);
	r->left -= (uint32_t)len;
	return r->left ? 0 : end_chunk(in);
}

/* ---- the heads */

static int begin_small(struct nbd_replies *r, uint8_t need, bool fits)
{
	r->mode = SMALL;
	r->need = need;
	r->have = 0;
	return fits ? 0 : -EPROTO;
}

static int begin_chunk(struct input *in)
{
	struct nbd_replies *r = in->r;
	bool read = r->call->command == NBD_READ, status = r->call->command == NBD_BLOCK_STATUS;

	r->left = r->head.length;
	switch (r->head.type) {
	case NBD_CHUNK_NONE:
		if (r->left || !(r->head.flags & NBD_CHUNK_DONE))
			return -EPROTO;
		return end_chunk(in);
	case NBD_CHUNK_DATA:
		return begin_small(r, 8, read && r->left > 8);
	case NBD_CHUNK_HOLE:
		return begin_small(r, 12, read && r->left == 12);
	case NBD_CHUNK_STATUS:
		return begin_small(r, 4, status && r->left >= 12 && r->left % 8 == 4);
	default:
		return begin_small(
			r, 6, r->head.type & 0x8000 && r->left >= 6 && r->left <= ERROR_MAX);
	}
}

static int begin_simple(struct input *in)
{
	struct nbd_call *c = in->r->call;

	c->error = in->r->head.error;
	if (!c->error && c->command == NBD_READ)
		return begin_data(in->r, c->offset, c->length);
	return end_chunk(in);
}

/* Lend the data of a read if they are all in the input after the head and complete the reply, as
 * for most reads. Return false to continue with the parser. */
static bool lend(struct input *in)
{
	const struct nbd_reply *h = &in->r->head;
	struct nbd_call *c = in->r->call;
	size_t offset = h->structured ? 8 : 0; /* bytes before the data */

	if (!in->r->lends || !c->borrows || in->n < offset + c->length || c->got || c->error)
		return false;
	if (h->structured
			? h->type != NBD_CHUNK_DATA || !(h->flags & NBD_CHUNK_DONE) ||
				  h->length != offset + c->length || bytes_get64(in->p) != c->offset
			: h->error != 0)
		return false;
	c->lent = (uint8_t *)(uintptr_t)in->p + offset;
	c->room = h->structured ? NBD_DATA_SIZE : NBD_SIMPLE_SIZE;
	if (c->lent - in->start < c->room)
		c->room = 0; /* a part of the head came before */
	c->got = c->length;
	consume(in, offset + c->length);
	return true;
}

static int begin_reply(struct input *in)
{
	struct nbd_replies *r = in->r;

	r->call = in->ops->find(in->arg, r->head.cookie);
	if (!r->call || (r->head.structured && !r->structured))
		return -EPROTO;
	if (lend(in))
		return end_reply(in);
	return r->head.structured ? begin_chunk(in) : begin_simple(in);
}

static int parse_head(struct input *in)
{
	struct nbd_replies *r = in->r;
	size_t have = r->have, add;
	int rc;

	if (!have) {
		rc = nbd_reply_read(in->p, in->n, &r->head);
		if (rc > 0) {
			consume(in, (size_t)rc);
			return begin_reply(in);
		}
		if (rc < 0)
			return rc;
	}
	add = NBD_CHUNK_SIZE - have < in->n ? NBD_CHUNK_SIZE - have : in->n;
	memcpy(r->small + have, in->p, add);
	rc = nbd_reply_read(r->small, have + add, &r->head);
	if (rc < 0)
		return rc;
	if (!rc) {
		r->have = (uint8_t)(have + add);
		consume(in, add);
		return 0;
	}
	consume(in, (size_t)rc - have); /* a simple reply is shorter than the gathered bytes */
	r->have = 0;
	return begin_reply(in);
}

/* ---- the machine */

/* Return the next `need` bytes in one piece, or NULL if there are not enough yet. */
static const uint8_t *gather(struct input *in, uint8_t need)
{
	struct nbd_replies *r = in->r;
	const uint8_t *p = in->p;
	size_t add = need - r->have;

	if (!r->have && in->n >= need) {
		consume(in, need);
		return p;
	}
	add = add < in->n ? add : in->n;
	memcpy(r->small + r->have, in->p, add);
	r->have = (uint8_t)(r->have + add);
	consume(in, add);
	return r->have == need ? r->small : NULL;
}

int nbd_replies_input(struct nbd_replies *r, const struct nbd_replies_ops *ops, void *arg,
	const uint8_t *p, size_t n)
{
	struct input in = {r, ops, arg, p, n, p};
	int rc = 0;

	while (in.n && !rc) {
		const uint8_t *whole;

		assert(r->mode == HEAD || r->call); /* data after a head belong to a request */
		switch (r->mode) {
		case HEAD:
			rc = parse_head(&in);
			break;
		case SMALL:
			whole = gather(&in, r->need);
			rc = whole ? parse_small(&in, whole) : 0;
			break;
		case EXTENTS:
			whole = gather(&in, 8);
			rc = whole ? parse_extent(&in, whole) : 0;
			break;
		default:
			rc = parse_body(&in);
			break;
		}
	}
	return rc;
}
