/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-reply: parse the upstream's replies, in pieces of any size.
 *
 * METHOD  A small state machine per connection: HEAD, then by the kind of the reply SMALL (a few bytes
 *         that are needed whole, gathered in rx.small if they come in parts), DATA, EXTENTS or SKIP.
 *         Heads that are whole in the input, as most are, are parsed in place.
 * Any breach of the protocol is -EPROTO: the connection is closed and its requests are resent over a
 * new one.
 */
#include "serve/back/nbd.h"
#include "wire/bytes.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

enum { HEAD, SMALL, DATA, EXTENTS, SKIP };

struct input {
	const uint8_t *p; /* NULL: DATA already received in place */
	size_t n;
};

static void consume(struct input *in, size_t n)
{
	if (in->p)
		in->p += n;
	in->n -= n;
}

/* ---- the end of a reply, or of a chunk of one */

static int end_reply(struct nbd *n, struct conn *c)
{
	struct slot *s = c->rx.slot;

	if (!s->error && s->op == BACK_READ && s->got != s->length)
		return -EPROTO;
	if (!s->error && s->op == BACK_STATUS && s->io) {
		if (!s->got)
			return -EPROTO;
		s->io->n_extents = s->got;
	}
	slot_remove(&c->flight, s);
	s->conn = NULL;
	n->under_way--;
	n->syncs -= back_nbd_way_is_sync(n, s);
	if (s->op == BACK_READ && s->length > BACK_NBD_COPY)
		c->large--;
	c->rx.slot = NULL;
	if (s->error ==
		-ESHUTDOWN) { /* the upstream shuts down: a loss, not this request's error */
		back_nbd_conn_break(c, "the upstream shuts down");
		back_nbd_way_lost(n, s);
	} else {
		n->answered++;
		back_nbd_way_answer(n, s, s->error);
	}
	return 0;
}

static int end_chunk(struct nbd *n, struct conn *c)
{
	struct conn_rx *rx = &c->rx;

	rx->mode = HEAD;
	rx->have = 0;
	rx->to = NULL;
	if (!rx->head.structured || (rx->head.flags & NBD_CHUNK_DONE))
		return end_reply(n, c);
	return 0;
}

/* ---- the bodies */

static int begin_data(struct conn *c, uint64_t offset, uint32_t length)
{
	struct slot *s = c->rx.slot;
	int r;

	if (s->op != BACK_READ || !length || offset < s->offset || length > s->length - s->got ||
		offset - s->offset > s->length - length)
		return -EPROTO;
	/* A duplicate part would stand in for a missing one. */
	r = cover_add(&s->cover, s->length, (uint32_t)(offset - s->offset), length);
	if (r)
		return r == -EEXIST ? -EPROTO : r;
	c->rx.mode = DATA;
	c->rx.to = s->in + (offset - s->offset);
	c->rx.left = length;
	s->got += length;
	return 0;
}

static int add_hole(struct nbd *n, struct conn *c, uint64_t offset, uint32_t length)
{
	int r = begin_data(c, offset, length);

	if (r)
		return r;
	memset(c->rx.to, 0, length);
	return end_chunk(n, c);
}

/* Handle the whole of rx.small. */
static int parse_small(struct nbd *n, struct conn *c, const uint8_t *p)
{
	struct conn_rx *rx = &c->rx;

	rx->left -= rx->need;
	switch (rx->head.type) {
	case NBD_CHUNK_DATA:
		return begin_data(c, bytes_get64(p), rx->left);
	case NBD_CHUNK_HOLE:
		return add_hole(n, c, bytes_get64(p), bytes_get32(p + 8));
	case NBD_CHUNK_STATUS:
		rx->held = c->greet.held && bytes_get32(p) == c->greet.held_id;
		if (!rx->held &&
			(!c->greet.base_allocation || bytes_get32(p) != c->greet.context_id))
			return -EPROTO;
		rx->mode = EXTENTS;
		rx->have = 0;
		return 0;
	default: /* an error */
		if (!rx->slot->error)
			rx->slot->error = nbd_errno_of(bytes_get32(p));
		if (!rx->slot->error)
			return -EPROTO;
		rx->mode = SKIP;
		return rx->left ? 0 : end_chunk(n, c);
	}
}

static void add_extent(struct nbd *n, const struct conn_rx *rx, const uint8_t *p)
{
	uint32_t length = bytes_get32(p);
	struct slot *s = rx->slot;

	if (!s->io && rx->held)
		n->back.held = (weir_time)bytes_get32(p + 4) * WEIR_US;
	if (s->io && !rx->held && s->got < s->io->n_extents && length)
		s->io->extents[s->got++] =
			(struct back_extent){.length = length, .flags = bytes_get32(p + 4)};
}

/* ---- the heads */

static int begin_small(struct conn *c, uint8_t need, bool fits)
{
	c->rx.mode = SMALL;
	c->rx.need = need;
	c->rx.have = 0;
	return fits ? 0 : -EPROTO;
}

static int begin_chunk(struct nbd *n, struct conn *c)
{
	struct conn_rx *rx = &c->rx;
	uint8_t op = rx->slot->op;

	rx->left = rx->head.length;
	switch (rx->head.type) {
	case NBD_CHUNK_NONE:
		if (rx->left || !(rx->head.flags & NBD_CHUNK_DONE))
			return -EPROTO;
		return end_chunk(n, c);
	case NBD_CHUNK_DATA:
		return begin_small(c, 8, op == BACK_READ && rx->left > 8);
	case NBD_CHUNK_HOLE:
		return begin_small(c, 12, op == BACK_READ && rx->left == 12);
	case NBD_CHUNK_STATUS:
		return begin_small(c, 4, op == BACK_STATUS && rx->left >= 12 && rx->left % 8 == 4);
	default:
		return begin_small(c, 6, (rx->head.type & 0x8000) && rx->left >= 6);
	}
}

static int begin_simple(struct nbd *n, struct conn *c)
{
	struct slot *s = c->rx.slot;

	s->error = c->rx.head.error;
	if (!s->error && s->op == BACK_READ)
		return begin_data(c, s->offset, s->length);
	return end_chunk(n, c);
}

/* Lend the data of a read if they are all in the input after the head and complete the reply, as
 * for most reads. Return false to continue with the parser. */
static bool lend(const struct nbd *n, const struct conn *c, struct input *in)
{
	const struct nbd_reply *h = &c->rx.head;
	struct slot *s = c->rx.slot;
	size_t offset = h->structured ? 8 : 0; /* bytes before the data */

	if (!n->lends || s->op != BACK_READ || !s->io || !(s->io->flags & BACK_BORROW) ||
		in->n < offset + s->length || s->got || s->error)
		return false;
	if (h->structured
			? h->type != NBD_CHUNK_DATA || !(h->flags & NBD_CHUNK_DONE) ||
				  h->length != offset + s->length || bytes_get64(in->p) != s->offset
			: h->error != 0)
		return false;
	s->io->data = (uint8_t *)(uintptr_t)in->p + offset;
	s->got = s->length;
	consume(in, offset + s->length);
	return true;
}

static int begin_reply(struct nbd *n, struct conn *c, struct input *in)
{
	struct slot *s = back_nbd_find(n, c->rx.head.cookie);

	if (!s || s->conn != c)
		return -EPROTO; /* not sent, or on another connection */
	if (c->rx.head.structured && !c->greet.structured)
		return -EPROTO;
	c->rx.slot = s;
	if (lend(n, c, in))
		return end_reply(n, c);
	return c->rx.head.structured ? begin_chunk(n, c) : begin_simple(n, c);
}

static int parse_head(struct nbd *n, struct conn *c, struct input *in)
{
	struct conn_rx *rx = &c->rx;
	size_t have = rx->have, add;
	int r;

	if (!have) {
		r = nbd_reply_read(in->p, in->n, &rx->head);
		if (r > 0) {
			consume(in, (size_t)r);
			return begin_reply(n, c, in);
		}
		if (r < 0)
			return r;
	}
	add = NBD_CHUNK_SIZE - have < in->n ? NBD_CHUNK_SIZE - have : in->n;
	memcpy(rx->small + have, in->p, add);
	r = nbd_reply_read(rx->small, have + add, &rx->head);
	if (r < 0)
		return r;
	if (!r) {
		rx->have = (uint8_t)(have + add);
		consume(in, add);
		return 0;
	}
	consume(in, (size_t)r - have); /* a simple reply is shorter than the gathered bytes */
	rx->have = 0;
	return begin_reply(n, c, in);
}

/* ---- the machine */

/* Return the next `need` bytes in one piece, or NULL if there are not enough yet. */
static const uint8_t *gather(struct conn_rx *rx, struct input *in, uint8_t need)
{
	const uint8_t *p = in->p;
	size_t add = need - rx->have;

	if (!rx->have && in->n >= need) {
		consume(in, need);
		return p;
	}
	add = add < in->n ? add : in->n;
	memcpy(rx->small + rx->have, in->p, add);
	rx->have = (uint8_t)(rx->have + add);
	consume(in, add);
	return rx->have == need ? rx->small : NULL;
}

static int parse_body(struct nbd *n, struct conn *c, struct input *in)
{
	struct conn_rx *rx = &c->rx;
	size_t len = rx->left < in->n ? rx->left : in->n;

	if (rx->mode == DATA) {
		if (in->p)
			memcpy(rx->to, in->p, len);
		rx->to += len;
	}
	consume(in, len);
	rx->left -= (uint32_t)len;
	return rx->left ? 0 : end_chunk(n, c);
}

int back_nbd_reply(struct nbd *n, struct conn *c, const uint8_t *p, size_t len)
{
	struct conn_rx *rx = &c->rx;
	struct input in = {p, len};
	int r = 0;

	while (in.n && !r && !c->broken) {
		const uint8_t *whole;

		assert(rx->mode == HEAD || rx->slot); /* data after a head belong to a request */
		switch (rx->mode) {
		case HEAD:
			r = parse_head(n, c, &in);
			break;
		case SMALL:
			whole = gather(rx, &in, rx->need);
			if (whole)
				r = parse_small(n, c, whole);
			break;
		case EXTENTS:
			whole = gather(rx, &in, 8);
			if (!whole)
				break;
			add_extent(n, rx, whole);
			rx->have = 0;
			rx->left -= 8;
			r = rx->left ? 0 : end_chunk(n, c);
			break;
		default:
			r = parse_body(n, c, &in);
			break;
		}
	}
	return r;
}
