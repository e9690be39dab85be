/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc: distribute the tokens of buckets over many servers so that as much as possible of the
 * reservations is consumed.
 *
 * pShift (Peng, Liu, Varman: "Scalable QoS for Distributed Storage Clusters using Dynamic Token
 * Allocation", MSST 2019). A server can serve `capacity` requests until the end of the QoS period;
 * a bucket has `reservation` left and `demand` at each server at which it is active. One call
 * places the R-tokens of all buckets so that consumption is maximal, and then, in the same way and
 * on the remaining capacity, the L-tokens of buckets with a limit.
 *
 * Invariants of the result, with D_i the sum of a bucket's demand:
 *   R-tokens: 0 ≤ r ≤ demand at each entry; Σ over the bucket's servers = min(reservation, limit,
 *   D_i); Σ over servers of min(capacity, Σ r) = phi. Without `top` phi is the optimum.
 *   L-tokens: 0 without a limit; else 0 ≤ l ≤ max(demand − r, floor), and Σ over the bucket's
 *   servers = min(limit − Σ r, Σ max(demand − r, floor)).
 *   So r + l, summed over the bucket's servers, never exceeds the limit.
 * The same input gives the same tokens, with any number of threads.
 *
 * All numbers are whole, in requests (or any one unit), from 0 to PSHIFT_MOST. A call allocates
 * memory only if its input is larger than any before. An instance belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PSHIFT_MOST     ((int64_t)1 << 53) /* largest number: JSON and a double keep it exactly */
#define PSHIFT_SUM      ((int64_t)1 << 61) /* of Σ min(reservation, D_i), and the same of limits */
#define PSHIFT_NO_LIMIT INT64_MAX
#define PSHIFT_SERVERS  ((size_t)1 << 20)
#define PSHIFT_ENTRIES  ((size_t)1 << 31)

/* The input; all arrays are the caller's. An entry says that a bucket may be served at a server;
 * the entries of bucket i are first[i] … first[i + 1] − 1, in any order, no server twice. An entry
 * without demand is valid: it gets no R-tokens, and the floor of L-tokens. */
struct pshift_input {
	size_t servers, buckets;
	const int64_t *capacity;    /* of each server */
	const int64_t *reservation; /* of each bucket */
	/* of each bucket, or PSHIFT_NO_LIMIT; NULL: no bucket has a limit */
	const int64_t *limit;
	const uint32_t *first;  /* buckets + 1; first[0] = 0 */
	const uint32_t *server; /* of each entry */
	const int64_t *demand;  /* of each entry */
	/* L-tokens that a bucket with a limit has at each entry, whatever its demand there, so that
	 * a first request need not wait; fewer, in equal parts, if the limit has not that much
	 * left. */
	int64_t floor;
};

/* Parallel work: run() calls part(arg, i) for each i < parts, in any order, on any threads, and
 * returns when all are done. A part depends only on i. NULL instead: one after the other. */
struct pshift_parallel {
	void (*run)(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);
	void *pool;
};

struct pshift_options {
	const struct pshift_parallel *parallel; /* NULL: one thread */
	/* The approximation of §III-C2: move only the `top` buckets with the most tokens and the
	 * `top` with the most spare demand at each server. 0: all, and phi is the optimum. */
	size_t top;
	/* rtokens and ltokens hold the last allocation, and few demands, reservations or capacities
	 * have changed since: start from it. A bucket whose tokens are no longer valid (more than
	 * demand, wrong sum) is split again, so any content is safe. */
	bool warm;
	/* With `warm`: the only buckets that may have changed, ascending; the tokens of the others
	 * must be valid. NULL: check all, which costs a little more. */
	const uint32_t *changed;
	size_t n_changed;
};

struct pshift_result {
	int64_t phi;     /* R-tokens that will be consumed */
	int64_t asked;   /* Σ min(reservation, limit, D_i): asked − phi is the intrinsic error */
	int64_t unasked; /* Σ of the parts of reservations that exceed their buckets' demand */
	int64_t lphi;    /* L-tokens that can be consumed in addition, without the floor's */
	int64_t before;  /* R-tokens over capacity when nothing had been shifted yet */
	/* By server: R-tokens over its capacity (weak excess). Owned by the instance, until the
	 * next call. */
	const int64_t *excess;
	unsigned passes; /* over all entries, to shift R-tokens: for measurements */
	bool general;    /* the general max-flow had to finish it */
};

struct pshift;
/* 0 or -ENOMEM. */
int pshift_new(struct pshift **ret);
void pshift_free(struct pshift *p);
/* Return the bytes that it has allocated. */
size_t pshift_memory(const struct pshift *p);

/* Check the input. 0, or -EINVAL: a number out of range, first[] that does not ascend, an unknown
 * server or one twice in a bucket; -ERANGE: a sum over PSHIFT_SUM, or too many entries; -ENOMEM.
 * ret_entry: the wrong entry (server, demand); ret_bucket: its bucket; SIZE_MAX if not known;
 * either may be NULL. O(entries). */
int pshift_check(
	struct pshift *p, const struct pshift_input *in, size_t *ret_bucket, size_t *ret_entry);

/* Place all tokens; the input must be valid. rtokens, ltokens: one for each entry; ltokens may be
 * NULL, then none are placed. `options` NULL: all 0. 0 or -ENOMEM, and then the tokens are
 * undefined. A few passes over the entries; see alloc.c. */
int pshift_allocate(struct pshift *p, const struct pshift_input *in,
	const struct pshift_options *options, int64_t *rtokens, int64_t *ltokens,
	struct pshift_result *ret);

/* ---- why reservations are not met: a minimum cut (control/pshift/alloc-cut.c)
 *
 * A group is a set of servers that are all full, and the buckets that have tokens there and cannot
 * have them anywhere else: what these ask for, less all their demand at other servers, is more than
 * the group's servers can do. No allocation can meet all reservations of a group; how the scheduler
 * shares what is short among its buckets is its own choice. */
struct pshift_group {
	int64_t needed;   /* by the buckets, at these servers, at least */
	int64_t capacity; /* of these servers; needed − capacity > 0 is missing */
	size_t servers, buckets;
};

struct pshift_cut {
	size_t n; /* groups; their missing tokens sum to asked − phi */
	const struct pshift_group *groups;
	/* By server and by bucket: its group, or n: in no group. */
	const uint32_t *server, *bucket;
};

/* Explain a shortage, after pshift_allocate() without `top`, with the same input and the resulting
 * tokens. *ret is owned by the instance, until the next call. 0 or -ENOMEM. O(entries). */
int pshift_explain(struct pshift *p, const struct pshift_input *in, const int64_t *rtokens,
	struct pshift_cut *ret);

/* Return the name of server or bucket i. */
typedef const char *pshift_name(void *arg, size_t i);

/* Write group g as text: "red, blue and 3 more need 250 at s1 and s2, which can do 200: 50 short".
 * Cut to len, and terminated. Return buf. */
char *pshift_words(const struct pshift_input *in, const struct pshift_cut *cut, size_t g,
	pshift_name *server_name, pshift_name *bucket_name, void *arg, char *buf, size_t len);
