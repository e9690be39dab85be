/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk: memory for payloads, within a budget.
 *
 * A chunk holds up to 256 KiB in one piece, aligned to 4096 bytes (for direct I/O). A pool belongs
 * to one thread. Chunks have four sizes and come from free lists; the lists grow from the system in
 * large pieces until the budget is used, and after a while no memory is allocated any more.
 *
 * Chunks are reference-counted: code that needs a payload longer (the log of unflushed writes)
 * takes a reference.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHUNK_MAX (256u << 10) /* bytes; also the largest piece of a request at a gate */

struct chunk {
	uint8_t *data;
	struct chunk *next; /* free for the holder's use */
	uint32_t room;      /* bytes: 4, 16, 64 or 256 KiB */
	uint32_t refs;
};

struct chunk_pool;
int chunk_pool_new(size_t budget, struct chunk_pool **ret_pool); /* budget: bytes, ≥ 4 MiB */
void chunk_pool_free(struct chunk_pool *p);                      /* all chunks must be back */

/* Get a chunk for `bytes` ≤ CHUNK_MAX, with one reference; NULL: the budget is used up. */
struct chunk *chunk_get(struct chunk_pool *p, size_t bytes);
static inline struct chunk *chunk_keep(struct chunk *c)
{
	c->refs++;
	return c;
}
void chunk_put(struct chunk_pool *p, struct chunk *c); /* drop a reference; NULL is fine */

size_t chunk_held(const struct chunk_pool *p); /* bytes in use, by room */
size_t chunk_budget(const struct chunk_pool *p);
/* Chunks beyond a smaller budget stay until they are put; memory of the system is kept. bytes ≥ 4 MiB. */
void chunk_set_budget(struct chunk_pool *p, size_t budget);

/* Account for bytes that logs (unflushed.h) hold for as long as they cannot be flushed: all logs of
 * the pool together, as reported by them. */
void chunk_keeps(struct chunk_pool *p, size_t bytes);
void chunk_keeps_no_more(struct chunk_pool *p, size_t bytes);
size_t chunk_kept(const struct chunk_pool *p);
