/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-reply: parse the stream of replies, in pieces of any size.
 *
 * Data of reads are ignored unless verified; verified data are copied to the request's own buffer,
 * others stay in the receive buffer, which the next receive overwrites.
 */
#include "load/load-impl.h"
#include "wire/bytes.h"
#include <errno.h>
#include <string.h>

static struct load_slot *find_slot(struct load_conn *c, uint64_t cookie)
{
	uint32_t place = (uint32_t)cookie;

	return place < c->n_slots && c->slots[place].cookie == cookie ? &c->slots[place] : NULL;
}

static void finish_request(struct load_conn *c, weir_time now)
{
	struct load_slot *s = c->slot;

	c->rx = LOAD_RX_HEAD;
	c->slot = NULL;
	load_count_done(c->run, s, s->error, now);
	s->cookie = 0;
	s->free_at = now + c->run->job.think;
	c->ring[(c->ring_at + c->n_free++) % c->n_slots] = (uint32_t)(s - c->slots);
	load_conn_dirty(c);
}

/* End a chunk, and the reply if it was the last. */
static int end_chunk(struct load_conn *c, weir_time now)
{
	struct load_slot *s = c->slot;

	c->rx = LOAD_RX_HEAD;
	if (!(c->head.flags & NBD_CHUNK_DONE))
		return 0;
	if (s->r.command == NBD_READ && !s->error && s->got != s->r.length)
		return -EPROTO; /* parts are missing */
	finish_request(c, now);
	return 0;
}

static int on_chunk(struct load_conn *c, weir_time now)
{
	struct load_slot *s = c->slot;
	uint8_t need = 0;

	c->left = c->head.length;
	switch (c->head.type) {
	case NBD_CHUNK_NONE:
		return c->head.length == 0 && c->head.flags & NBD_CHUNK_DONE ? end_chunk(c, now)
									     : -EPROTO;
	case NBD_CHUNK_DATA:
		need = 8;
		break;
	case NBD_CHUNK_HOLE:
		need = 12;
		break;
	default:
		if (!(c->head.type & 0x8000)) /* neither an error nor requested */
			return -EPROTO;
		need = 6;
	}
	if (c->left < need || (need != 6 && s->r.command != NBD_READ))
		return -EPROTO;
	c->need = need;
	c->have = 0;
	c->rx = LOAD_RX_SMALL;
	return 0;
}

static int on_head(struct load_conn *c, weir_time now)
{
	struct load_slot *s = find_slot(c, c->head.cookie);

	if (!s)
		return -EPROTO;
	c->slot = s;
	if (c->head.structured)
		return c->run->job.structured ? on_chunk(c, now) : -EPROTO;
	s->error = c->head.error;
	c->head.flags = NBD_CHUNK_DONE;
	if (s->r.command != NBD_READ || s->error) {
		finish_request(c, now);
		return 0;
	}
	c->rx = LOAD_RX_DATA;
	c->left = s->r.length;
	c->to = s->data;
	s->got = s->r.length;
	return 0;
}

/* Add a chunk's range, which must be inside the request, and set where its data go. */
static int add_range(struct load_conn *c, uint64_t offset, uint64_t length)
{
	struct load_slot *s = c->slot;
	int r;

	if (!length || offset < s->r.offset || length > s->r.length ||
		offset - s->r.offset > s->r.length - length || s->got + length > s->r.length)
		return -EPROTO;
	r = cover_add(&s->cover, s->r.length, (uint32_t)(offset - s->r.offset), (uint32_t)length);
	if (r < 0)
		return r == -EEXIST ? -EPROTO : r;
	s->got += (uint32_t)length;
	c->to = s->data ? s->data + (offset - s->r.offset) : NULL;
	return 0;
}

/* Handle the first bytes of a chunk, in c->small. */
static int on_small(struct load_conn *c, weir_time now)
{
	struct load_slot *s = c->slot;
	int r = 0;

	c->left -= c->need;
	switch (c->head.type) {
	case NBD_CHUNK_DATA:
		r = add_range(c, bytes_get64(c->small), c->left);
		break;
	case NBD_CHUNK_HOLE:
		r = add_range(c, bytes_get64(c->small), bytes_get32(c->small + 8));
		if (r == 0 && c->to)
			memset(c->to, 0, bytes_get32(c->small + 8));
		if (c->left)
			return -EPROTO;
		break;
	default:
		if (!s->error)
			s->error = nbd_errno_of(bytes_get32(c->small));
		if (!s->error)
			return -EPROTO;
		c->to = NULL; /* the message is skipped */
	}
	if (r < 0)
		return r;
	c->rx = LOAD_RX_DATA;
	return c->left ? 0 : end_chunk(c, now);
}

/* Gather a head that arrives in parts. Return the bytes used, or -EPROTO. */
static int gather_head(struct load_conn *c, const uint8_t *p, size_t n, weir_time now)
{
	size_t at = 0;

	while (at < n) {
		int r;

		c->small[c->have++] = p[at++];
		r = nbd_reply_read(c->small, c->have, &c->head);
		if (r < 0)
			return r;
		if (r > 0) {
			c->have = 0;
			r = on_head(c, now);
			return r < 0 ? r : (int)at;
		}
	}
	return (int)at;
}

static int parse_head(struct load_conn *c, const uint8_t *p, size_t n, weir_time now)
{
	int size, r;

	if (c->have)
		return gather_head(c, p, n, now);
	size = nbd_reply_read(p, n, &c->head);
	if (size == 0)
		return gather_head(c, p, n, now);
	if (size < 0)
		return size;
	r = on_head(c, now);
	return r < 0 ? r : size;
}

static int parse_small(struct load_conn *c, const uint8_t *p, size_t n, weir_time now)
{
	size_t take = (size_t)(c->need - c->have);
	int r = 0;

	if (take > n)
		take = n;
	memcpy(c->small + c->have, p, take);
	c->have = (uint8_t)(c->have + take);
	if (c->have == c->need) {
		c->have = 0;
		r = on_small(c, now);
	}
	return r < 0 ? r : (int)take;
}

static int parse_data(struct load_conn *c, const uint8_t *p, size_t n, weir_time now)
{
	uint32_t take = c->left < n ? c->left : (uint32_t)n;
	int r = 0;

	if (c->to) {
		memcpy(c->to, p, take);
		c->to += take;
	}
	c->left -= take;
	if (c->left == 0)
		r = end_chunk(c, now);
	return r < 0 ? r : (int)take;
}

int load_reply(struct load_conn *c, const uint8_t *p, size_t n, weir_time now)
{
	while (n) {
		int used;

		if (c->rx == LOAD_RX_HEAD)
			used = parse_head(c, p, n, now);
		else if (c->rx == LOAD_RX_DATA)
			used = parse_data(c, p, n, now);
		else
			used = parse_small(c, p, n, now);
		if (used < 0)
			return used;
		p += used;
		n -= (size_t)used;
	}
	return 0;
}
