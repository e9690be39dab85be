/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather: the vectors of one send: small parts next to each other in a scratch buffer, large ones
 * where they are.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct gather {
	struct iovec
		*iov; /* the caller's, as the scratch buffer; their room is the caller's concern */
	int n;        /* vectors so far */
	uint8_t *scratch;
	size_t at;    /* bytes used of the scratch buffer */
	size_t bytes; /* in total */
	size_t begun; /* bytes before the current message, if gather_behind is used */
};

/* Add n bytes where they are. */
static inline void gather_vector(struct gather *g, const void *data, size_t n)
{
	struct iovec *last = g->iov + g->n - 1;

	if (g->n && (const uint8_t *)last->iov_base + last->iov_len == data)
		last->iov_len += n;
	else
		g->iov[g->n++] = (struct iovec){(void *)(uintptr_t)data, n};
	g->bytes += n;
}

/* Return where the next bytes may be written; add n of them. */
static inline uint8_t *gather_room(const struct gather *g)
{
	return g->scratch + g->at;
}
static inline void gather_written(struct gather *g, size_t n)
{
	gather_vector(g, g->scratch + g->at, n);
	g->at += n;
}

static inline void gather_copy(struct gather *g, const void *data, size_t n)
{
	memcpy(g->scratch + g->at, data, n);
	gather_written(g, n);
}

/* Add n bytes where they are, behind the head of the current message, which is all in the scratch
 * buffer. If the head is no longer than `room`, it moves to the place before the data: one vector
 * instead of two. */
static inline void gather_behind(struct gather *g, uint8_t *data, size_t n, size_t room)
{
	size_t head = g->bytes - g->begun;

	if (head <= room) {
		g->at -= head;
		g->bytes -= head;
		g->iov[g->n - 1].iov_len -= head;
		g->n -= !g->iov[g->n - 1].iov_len;
		data -= head;
		n += head;
		memcpy(data, g->scratch + g->at, head);
	}
	gather_vector(g, data, n);
}

/* Skip the first n bytes, already sent, from vector `from` on. Return the first one that
 * remains. */
static inline int gather_skip(struct gather *g, int from, uint64_t n)
{
	int i = from;

	for (; i < g->n && n && n >= g->iov[i].iov_len; i++)
		n -= g->iov[i].iov_len;
	if (i < g->n && n) {
		g->iov[i].iov_base = (uint8_t *)g->iov[i].iov_base + n;
		g->iov[i].iov_len -= n;
	}
	return i;
}
