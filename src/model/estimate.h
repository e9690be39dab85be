/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimate: the work of a request, from a table that was measured once.
 *
 * SOURCE   PriorityMeister (Zhu et al., SoCC'14), §4.2: work = size ÷ bandwidth + base time, by operation and by the distance
 *          from the request before; a base time of 0 where the request continues one of the last ones.
 * LAW      work(op, size, distance): a line between the measured sizes on either side, of the row of the least distance that
 *          is not below the request's. The paper's form is such a line.
 * SYMBOLS  work  ns of the device while it is full: 1 ÷ its throughput with `depth` requests inside
 *          inside  ns from the dispatch to the reply at that depth
 * METHOD   At the start the measured sizes are turned into a value for each power of two from 512 B to 4 MiB, so that a look-up is
 *          two reads and one multiplication; larger requests continue the last line. Distances are compared one by one: there
 *          are at most ESTIMATE_ROWS.
 * EXAMPLE  Rows of a disk: sequential 4 KiB 40 us, 1 MiB 10 ms; within 1 GiB 4 KiB 5 ms. A read of 4 KiB that begins where the
 *          last one ended: 40 us; one 10 MiB further: 5 ms.
 */
#pragma once

#include <weir/err.h>
#include <stddef.h>

#define ESTIMATE_OPS   2 /* reads, writes; other operations cost as a write of 0 bytes */
#define ESTIMATE_ROWS  8
#define ESTIMATE_SIZES 14 /* 512 B << i */
#define ESTIMATE_LEAST 512u

struct estimate_row {
	uint64_t distance; /* bytes: at most so far from the last offset; 0: continues a request */
	double work[ESTIMATE_SIZES];     /* ns */
	double per_byte[ESTIMATE_SIZES]; /* the slope from each size on */
};

struct estimate {
	unsigned depth;       /* requests inside, at which it was measured */
	uint64_t device_size; /* bytes */
	double error; /* part by which a mix of all kinds took longer than estimated; 0: not more, or not known */
	unsigned n_rows[ESTIMATE_OPS];
	struct estimate_row
		row[ESTIMATE_OPS]
		   [ESTIMATE_ROWS]; /* by growing distance; the last one has UINT64_MAX */
	struct estimate_inside {
		double p50, p99, p999, max; /* ns, over all kinds measured; 0: not known */
	} inside[ESTIMATE_OPS];
};

/* Ends of the last requests of one sender or device, by which a request is seen to continue one. */
#define ESTIMATE_PAST 4
struct estimate_past {
	uint64_t end[ESTIMATE_PAST];
	uint64_t last;
	unsigned next;
};

/* Return a request's work in ns, at least 1, and note it in `past` if the table distinguishes distances. NULL: its distance is not known, and counts as the farthest.
 * op: 0 read, 1 write, others cost as a write of no bytes. */
double estimate_work(const struct estimate *e, struct estimate_past *past, unsigned op,
	uint64_t offset, uint32_t bytes);

/* Return the most work of a request of up to so many bytes, at any distance. A smaller request may take longer than a larger one. */
double estimate_most(const struct estimate *e, unsigned op, uint32_t bytes);

/* Make one that needs the same time for each request and a time for each byte: the constant estimator of §6.5. */
void estimate_constant(struct estimate *e, double request_ns, double byte_ns);

/* Read a profile as `weir profile` writes it (weir-profile(5)). 0, -EINVAL with a place, or -ENOMEM. */
int estimate_read(
	const char *text, size_t len, const char *name, struct estimate *ret, struct weir_err *err);

/* A measured row: the work at some sizes, which grow. */
struct estimate_measured {
	uint64_t distance;
	size_t n;
	uint32_t size[ESTIMATE_SIZES]; /* bytes */
	double work[ESTIMATE_SIZES];   /* ns */
};
/* Turn it into a row. n ≥ 1. */
void estimate_fill(const struct estimate_measured *m, struct estimate_row *ret);
