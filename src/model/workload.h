/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workload: what one client asks for, and when.
 *
 * A workload gives IOs one by one: their shape (offset, bytes, operation) and, if it is an open
 * one, the time at which each arrives. A closed one keeps N outstanding: its driver asks for the
 * first N at the start and for one more at each completion (after `think`).
 */
#ifndef WEIR_MODEL_WORKLOAD_H
#define WEIR_MODEL_WORKLOAD_H

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "model/trace.h"
#include <stdbool.h>
#include <stddef.h>

enum workload_arrivals {
	WORKLOAD_CLOSED,  /* `outstanding` at a time, `think` between */
	WORKLOAD_POISSON, /* open, `rate` */
	WORKLOAD_HYPER,   /* open, two-phase hyper-exponential with balanced means and the given ca2 */
	WORKLOAD_UNIFORM, /* open, evenly spaced: deterministic */
	WORKLOAD_TRACE,   /* open, as recorded, at `speed`; repeats if `loop` */
};

struct workload_size { /* one entry of a size mix */
	uint32_t bytes;
	double share; /* relative */
};

struct workload_config {
	enum workload_arrivals arrivals;
	uint32_t outstanding;  /* CLOSED: ≥ 1 */
	weir_time think;       /* CLOSED: mean of an exponential pause before the next; 0: none */
	double rate;           /* open: IOs per second at time `start` */
	double rate_end;       /* open: > 0: a linear ramp from rate to this from start to stop */
	double ca2;            /* HYPER: squared coefficient of variation of inter-arrivals, ≥ 1 */
	weir_time on, off;     /* > 0: on-off; the phases alternate, starting on; no new IO when off */
	bool on_off_random;    /* phases exponential with these means instead of fixed */
	weir_time start, stop; /* stop 0: never */
	struct workload_size sizes[8];
	unsigned n_sizes;      /* ≥ 1 */
	double reads;          /* share 0…1 */
	double sequential;     /* share 0…1 of IOs that follow the one before */
	double zipf;           /* > 0: exponent over `region` in blocks of the first size; 0: uniform */
	uint64_t base, region; /* bytes: offsets lie in [base, base + region) */
	const struct trace *trace;
	double speed;          /* TRACE: 2 = twice as fast; 0 counts as 1 */
	bool loop;
};

struct workload_io {
	weir_time at; /* open: arrival; closed: earliest time to issue */
	uint64_t offset;
	uint32_t bytes;
	uint8_t op; /* enum weir_op's values */
};

struct workload;
/* Copies the config (the trace is borrowed). -EINVAL with a message that names the field. */
int workload_new(const struct workload_config *config, uint64_t seed, const char *name,
	struct workload **ret, struct weir_err *err);
void workload_free(struct workload *w);
bool workload_closed(const struct workload *w);

/* The next IO. Open: `now` is ignored, arrivals are the process's own. Closed: the time when a
 * slot became free (start of run, or a completion). false: no more, ever. */
bool workload_next(struct workload *w, weir_time now, struct workload_io *ret);

#endif
