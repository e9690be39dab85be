/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-impl: shared by the files of pshift's allocator; internal. */
#pragma once

#include "control/pshift/alloc.h"

/* Arrays that an instance keeps from call to call; each is grown when it must be. */
enum pshift_array {
	PSHIFT_GAP,          /* servers: int64_t */
	PSHIFT_ROOM,         /* servers: int64_t */
	PSHIFT_MAY,          /* servers: int64_t */
	PSHIFT_LEVEL,        /* servers: uint32_t */
	PSHIFT_PARTS,        /* parts × servers: int64_t */
	PSHIFT_REST,         /* parts × longest row × 2: int64_t */
	PSHIFT_EXCESS,       /* servers: int64_t */
	PSHIFT_LIST,         /* buckets: uint32_t */
	PSHIFT_WANT,         /* buckets: int64_t */
	PSHIFT_WAS,          /* servers: int64_t */
	PSHIFT_CAPACITY,     /* servers: int64_t; for L-tokens */
	PSHIFT_DEMAND,       /* entries: int64_t; for L-tokens */
	PSHIFT_OF_FIRST,     /* servers + 1: uint32_t; entries by server */
	PSHIFT_OF,           /* entries: struct pshift_own */
	PSHIFT_ROWS,         /* buckets: those of control/pshift/alloc-general.c */
	PSHIFT_CELLS,        /* entries: the same */
	PSHIFT_NEXT,         /* servers: uint32_t */
	PSHIFT_PAIR_FIRST,   /* buckets + 1: uint32_t */
	PSHIFT_PAIR_SERVER,  /* entries: uint32_t */
	PSHIFT_PAIR_DEMAND,  /* entries: int64_t */
	PSHIFT_PAIR_TOKENS,  /* entries: int64_t */
	PSHIFT_PAIR_WAS,     /* buckets: int64_t */
	PSHIFT_PAIR_OF,      /* buckets: uint32_t */
	PSHIFT_PAIR_TABLE,   /* 4 × buckets: uint32_t */
	PSHIFT_QUEUE,        /* servers: uint32_t */
	PSHIFT_RINGS,        /* 4 × servers: uint32_t */
	PSHIFT_TOP_FIRST,    /* buckets + 1: uint32_t */
	PSHIFT_TOP,          /* entries: uint32_t */
	PSHIFT_TOP_SERVER,   /* entries: uint32_t */
	PSHIFT_TOP_TOKENS,   /* entries: int64_t */
	PSHIFT_TOP_DEMAND,   /* entries: int64_t */
	PSHIFT_TOP_VALUE,    /* 2 × buckets: int64_t */
	PSHIFT_MARK,         /* entries: bool; also servers, buckets */
	PSHIFT_PARENT,       /* servers: uint32_t */
	PSHIFT_GROUP_SERVER, /* servers: uint32_t */
	PSHIFT_GROUP_BUCKET, /* buckets: uint32_t */
	PSHIFT_GROUPS,       /* servers: struct pshift_group */
	PSHIFT_ARRAYS
};

struct pshift_eight;

struct pshift {
	const struct pshift_eight *eight; /* for rows of few entries; NULL: none */
	struct {
		void *at;
		size_t bytes;
	} arrays[PSHIFT_ARRAYS];
};

/* Return the array, with room for n × size bytes of undefined content. NULL: no memory. */
void *pshift_array(struct pshift *p, enum pshift_array which, size_t n, size_t size);

/* Return the most R-tokens of each bucket, if it has the demand: the input's reservations, or
 * PSHIFT_WANT if there are limits. NULL: no memory, or no buckets. */
const int64_t *pshift_wanted(struct pshift *p, const struct pshift_input *in);

/* One problem: the tokens of buckets at servers, and where they can be consumed. */
struct pshift_flow {
	size_t servers, buckets;
	const uint32_t *first, *server; /* as in pshift_input */
	const int64_t *demand;
	int64_t *tokens; /* of each entry; 0 … demand */
	int64_t *gap;    /* of each server: Σ tokens − capacity; > 0 overloaded */
	int64_t before;  /* as in pshift_result */
	unsigned passes; /* the same */
	bool general;
};

#define PSHIFT_PREFETCH 8 /* rows of a list that are prefetched into the cache */

/* Prefetch later rows of a list; they are not adjacent in memory. */
static inline void pshift_fetch(
	const struct pshift_flow *f, const uint32_t *list, size_t x, size_t n)
{
	uint32_t far = list[x + 2 * PSHIFT_PREFETCH < n ? x + 2 * PSHIFT_PREFETCH : x];
	uint32_t i = list[x + PSHIFT_PREFETCH < n ? x + PSHIFT_PREFETCH : x];
	uint32_t e = f->first[i], last = f->first[i + 1] - (f->first[i + 1] > e);

	__builtin_prefetch(f->first + far);
	__builtin_prefetch(f->server + e);
	__builtin_prefetch(f->demand + e);
	__builtin_prefetch(f->demand + last);
	__builtin_prefetch(f->tokens + e);
	__builtin_prefetch(f->tokens + last);
}

/* An entry and its bucket. */
struct pshift_own {
	uint32_t e, i;
};
/* Sort entries by server, into PSHIFT_OF_FIRST and PSHIFT_OF; PSHIFT_PREFETCH more, of no server,
 * follow the last and may be read. 0 or -ENOMEM. */
int pshift_by_server(struct pshift *p, const struct pshift_flow *f);

/* ---- control/pshift/alloc-split.c */

struct pshift_split {
	struct pshift_flow *flow;
	const int64_t *want; /* by bucket: tokens, if it has the demand */
	bool warm;           /* tokens hold an earlier allocation */
	const uint32_t *changed;
	size_t n_changed;
};
/* Split tokens in proportion to demand, and set gap (in: −capacity) of all servers. 0 or
 * -ENOMEM. */
int pshift_split(
	struct pshift *p, const struct pshift_split *s, const struct pshift_parallel *parallel);
/* Return the value of rank k, 1 … n, among v, which is reordered. O(n) on average. */
int64_t pshift_largest(int64_t *v, size_t n, size_t k);

/* ---- control/pshift/alloc-shift.c */

/* Move tokens until the optimum. 0 or -ENOMEM. */
int pshift_shift(struct pshift *p, struct pshift_flow *f);

/* ---- control/pshift/alloc-paths.c: the same from where the tokens are, of few servers. -EAGAIN:
 * they are not so few, and some tokens have yet to be moved */
int pshift_paths(struct pshift *p, struct pshift_flow *f);

/* ---- control/pshift/alloc-general.c: the same for any shape of input, from where the tokens
 * are */
int pshift_general(struct pshift *p, struct pshift_flow *f);

/* ---- control/pshift/alloc-pairs.c: buckets of the same two servers as one */

/* Join buckets of the same two servers. 1: *ret is the same problem with fewer buckets, over the
 * same gaps; 0: nothing to join; -ENOMEM. */
int pshift_join(struct pshift *p, const struct pshift_flow *f, struct pshift_flow *ret);
/* Apply the moves of tokens in the joint problem to `f`. */
void pshift_part(struct pshift *p, const struct pshift_flow *joint, struct pshift_flow *f);

/* ---- control/pshift/alloc-top.c: the same with the `top` of each server only */
int pshift_top(struct pshift *p, struct pshift_flow *f, size_t top);
