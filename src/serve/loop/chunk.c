/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk: blocks of 256 KiB, split into four, and those into four, as needed, and merged again.
 *
 * METHOD   A buddy system with four buddies. A block is a tree of nodes in one array, laid out as a
 *          4-ary heap: node i has the children 4i+1 … 4i+4; levels 0 … 3 are 256, 64, 16 and 4 KiB.
 *          Free nodes of a level are in one list, last in first out. A node is split when a smaller
 *          size is requested and none is free; when its fourth child is freed it is whole again. So
 *          memory used for small payloads an hour ago serves large ones now.
 *
 *          In front of that, a cache keeps some free chunks of each level (CACHE) as they are, so
 *          that frequently used chunks are not split and merged each time. When nothing else is
 *          left the caches are emptied and the request is retried.
 * COST     O(1): at most three splits or merges.
 * LIMITS   Held chunks stay within the budget. Small ones may fragment the memory so that no large
 *          block is whole; for that an eighth more than the budget may be taken from the system.
 */
#include "base/sanitize.h"
#include "serve/loop/chunk.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#if SANITIZE_ADDRESS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, len)   ((void)(at), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#endif

#define LEVELS 4
#define NODES  (1 + 4 + 16 + 64)
#define PIECE  16  /* blocks taken from the system at once: 4 MiB, the minimum budget */
#define CACHE  32u /* chunks of level 0 kept by the cache; twice as many for each next level */

struct node {
	struct chunk chunk; /* first: the part visible to the user */
	struct node *next, *prev;
	uint8_t index, level;
	uint8_t n_free; /* children that are free and whole */
};

struct piece { /* one allocation from the system */
	struct piece *next;
	uint8_t *memory;
	size_t n; /* blocks */
	struct node nodes[][NODES];
};

struct chunk_pool {
	size_t budget, held, taken; /* bytes; taken: from the system */
	size_t kept;                /* bytes: see chunk_kept */
	struct piece *pieces;
	struct node *free[LEVELS];
	struct node *cache[LEVELS]; /* linked by next */
	unsigned n_cache[LEVELS];
};

static uint32_t room_of(unsigned level)
{
	return CHUNK_MAX >> (2 * level);
}

static unsigned level_of(size_t bytes)
{
	unsigned level = 0;

	while (level < LEVELS - 1 && bytes <= room_of(level + 1))
		level++;
	return level;
}

static void push_free(struct chunk_pool *p, struct node *n)
{
	n->prev = NULL;
	n->next = p->free[n->level];
	if (n->next)
		n->next->prev = n;
	p->free[n->level] = n;
}

static void remove_free(struct chunk_pool *p, struct node *n)
{
	if (n->prev)
		n->prev->next = n->next;
	else
		p->free[n->level] = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

static struct node *parent_of(struct node *n)
{
	return n->index ? n - n->index + (n->index - 1) / 4 : NULL;
}

static struct node *children_of(struct node *n)
{
	return n - n->index + 4 * n->index + 1;
}

/* ---- from the system */

static void block_init(struct node *nodes, uint8_t *memory)
{
	unsigned first = 0, count = 1;

	for (unsigned level = 0; level < LEVELS; first += count, count *= 4, level++)
		for (unsigned i = 0; i < count; i++) {
			struct node *n = &nodes[first + i];
			n->index = (uint8_t)(first + i);
			n->level = (uint8_t)level;
			n->chunk.room = room_of(level);
			n->chunk.data = memory + (size_t)i * room_of(level);
		}
}

static int grow(struct chunk_pool *p)
{
	size_t most = p->budget + p->budget / 8;
	size_t n = most > p->taken ? (most - p->taken) / CHUNK_MAX : 0;
	struct piece *piece;

	n = n < PIECE ? n : PIECE;
	if (!n)
		return -ENOMEM;
	piece = calloc(1, sizeof(*piece) + n * sizeof(piece->nodes[0]));
	if (!piece)
		return -ENOMEM;
	piece->memory = mmap(
		NULL, n * CHUNK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (piece->memory == MAP_FAILED) {
		free(piece);
		return -ENOMEM;
	}
	ASAN_POISON_MEMORY_REGION(piece->memory, n * CHUNK_MAX);
	piece->n = n;
	piece->next = p->pieces;
	p->pieces = piece;
	p->taken += n * CHUNK_MAX;
	for (size_t i = n; i-- > 0;) { /* the lowest address first */
		block_init(piece->nodes[i], piece->memory + i * CHUNK_MAX);
		push_free(p, &piece->nodes[i][0]);
	}
	return 0;
}

int chunk_pool_new(size_t budget, struct chunk_pool **ret_pool)
{
	struct chunk_pool *p;

	if (budget < (size_t)PIECE * CHUNK_MAX || budget > SIZE_MAX / 2)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->budget = budget;
	*ret_pool = p;
	return 0;
}

void chunk_pool_free(struct chunk_pool *p)
{
	if (!p)
		return;
	for (struct piece *piece = p->pieces, *next; piece; piece = next) {
		next = piece->next;
		ASAN_UNPOISON_MEMORY_REGION(piece->memory, piece->n * CHUNK_MAX);
		munmap(piece->memory, piece->n * CHUNK_MAX);
		free(piece);
	}
	free(p);
}

/* ---- splitting and merging */

/* Take a free node of the level off its list, and update its parent's count. NULL: none. */
static struct node *split(struct chunk_pool *p, unsigned level)
{
	unsigned from = level;
	struct node *n;

	while (from > 0 && !p->free[from])
		from--;
	n = p->free[from];
	if (!n)
		return NULL;
	remove_free(p, n);
	if (from > 0)
		parent_of(n)->n_free--;
	for (; from < level; from++) {
		struct node *children = children_of(n);
		for (unsigned i = 3; i > 0; i--)
			push_free(p, &children[i]);
		n->n_free = 3;
		n = &children[0];
	}
	return n;
}

static void merge(struct chunk_pool *p, struct node *n)
{
	struct node *parent;

	while ((parent = parent_of(n)) && parent->n_free == 3) {
		struct node *children = children_of(parent);
		for (unsigned i = 0; i < 4; i++)
			if (&children[i] != n)
				remove_free(p, &children[i]);
		parent->n_free = 0;
		n = parent;
	}
	if (parent)
		parent->n_free++;
	push_free(p, n);
}

static bool empty_caches(struct chunk_pool *p)
{
	bool any = false;

	for (unsigned level = 0; level < LEVELS; level++) {
		struct node *n;
		while ((n = p->cache[level])) {
			p->cache[level] = n->next;
			merge(p, n);
			any = true;
		}
		p->n_cache[level] = 0;
	}
	return any;
}

static struct node *split_or_grow(struct chunk_pool *p, unsigned level)
{
	struct node *n = split(p, level);

	if (!n && empty_caches(p))
		n = split(p, level);
	if (!n && grow(p) == 0)
		n = split(p, level);
	return n;
}

/* ---- public functions */

struct chunk *chunk_get(struct chunk_pool *p, size_t bytes)
{
	unsigned level = level_of(bytes);
	struct node *n;

	if (bytes > CHUNK_MAX || p->held + room_of(level) > p->budget)
		return NULL;
	n = p->cache[level];
	if (n) {
		p->cache[level] = n->next;
		p->n_cache[level]--;
	} else {
		n = split_or_grow(p, level);
		if (!n)
			return NULL;
	}
	p->held += n->chunk.room;
	n->chunk.refs = 1;
	n->chunk.next = NULL;
	ASAN_UNPOISON_MEMORY_REGION(n->chunk.data, n->chunk.room);
	return &n->chunk;
}

void chunk_put(struct chunk_pool *p, struct chunk *c)
{
	struct node *n = (struct node *)c;

	if (!c || --c->refs)
		return;
	p->held -= c->room;
	ASAN_POISON_MEMORY_REGION(c->data, c->room);
	if (p->n_cache[n->level] < CACHE << n->level) {
		n->next = p->cache[n->level];
		p->cache[n->level] = n;
		p->n_cache[n->level]++;
	} else {
		merge(p, n);
	}
}

size_t chunk_held(const struct chunk_pool *p)
{
	return p->held;
}

size_t chunk_budget(const struct chunk_pool *p)
{
	return p->budget;
}

void chunk_set_budget(struct chunk_pool *p, size_t budget)
{
	p->budget = budget;
}

void chunk_keeps(struct chunk_pool *p, size_t bytes)
{
	p->kept += bytes;
}

void chunk_keeps_no_more(struct chunk_pool *p, size_t bytes)
{
	p->kept -= bytes;
}

size_t chunk_kept(const struct chunk_pool *p)
{
	return p->kept;
}
