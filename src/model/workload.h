/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workload: the IOs of one client and their times.
 *
 * A workload generates IOs one by one: their shape (offset, bytes, operation) and, if it is open,
 * their arrival times. A closed workload keeps N IOs outstanding: its driver requests the first N
 * at the start and one more at each completion (after `think`).
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include "base/rng.h"
#include "model/trace/trace.h"
#include <stdbool.h>
#include <stddef.h>

enum workload_arrivals {
	WORKLOAD_CLOSED,  /* `outstanding` IOs at a time, `think` between */
	WORKLOAD_POISSON, /* open, `rate` */
	WORKLOAD_HYPER,   /* open, hyper-exponential (two branches, balanced means), given ca2 */
	WORKLOAD_UNIFORM, /* open, evenly spaced: deterministic; the first at `start` */
	WORKLOAD_BURSTS,  /* open, bursts at `peak` with quiet times between, given ca2 */
	WORKLOAD_TRACE,   /* open, as recorded, at `speed`; repeats if `loop` */
};

struct workload_size { /* one entry of a size mix */
	uint32_t bytes;
	double share; /* relative */
};

struct workload_config {
	enum workload_arrivals arrivals;

	/* CLOSED. The first `outstanding` IOs start at once, without a pause. */
	uint32_t outstanding; /* ≥ 1 */
	weir_time think;      /* mean of an exponential pause before the next IO; 0: none */

	/* Open, except traces. A ramp needs `stop`; it may begin at 0. */
	double rate;     /* IOs per second at time `start` */
	double rate_end; /* > 0: a linear ramp from rate to this from start to stop */
	double ca2;  /* HYPER, BURSTS: squared coefficient of variation of inter-arrivals, ≥ 1;
	                    BURSTS: > 1 */
	double peak; /* BURSTS: IOs per second in a burst, > rate */
	weir_time burst; /* BURSTS: length of a burst, > 0 */

	/* On-off: the phases alternate from `start` on, beginning with on; no new IO while off. An
	 * open process pauses while off (its ramp does not); an IO of a closed one that falls into
	 * an off-phase waits for the next on-phase. */
	weir_time on, off;  /* both > 0, or both 0: always on */
	bool on_off_random; /* phases exponential with these means instead of fixed */

	weir_time start, stop; /* no IO before start, nor at stop or later; stop 0: never */

	/* Shape. A trace has its own sizes and operations, and offsets if its format has them. */
	struct workload_size sizes[8];
	unsigned n_sizes;  /* ≥ 1; not needed for a trace */
	double reads;      /* share 0…1; the rest are writes */
	double sequential; /* share 0…1 of IOs that start where the previous one ended */
	double zipf;       /* > 0: exponent over `region` in blocks of the first size; 0: uniform */

	/* IOs are entirely in [base, base + region): random ones at multiples of their size
	 * (rounded up to 512) from base (rounded up to 512) on; a sequential run wraps at the end;
	 * a trace's offsets are folded into the region. Hot blocks are scattered over the region,
	 * and are the same for all workloads that share it. */
	uint64_t base, region; /* bytes */

	const struct trace *trace; /* TRACE; borrowed for the lifetime of the workload */
	double speed;              /* TRACE: 2 = twice as fast; 0 counts as 1 */
	bool loop;                 /* TRACE: restart one mean gap after its last record */
};

struct workload_io {
	weir_time at; /* open: arrival; closed: earliest time to issue */
	uint64_t offset;
	uint32_t bytes;
	uint8_t op; /* enum weir_op's values */
};

struct workload;
/* Create a workload; the config is copied (the trace is borrowed). Return 0, -ENOMEM, or -EINVAL
 * with a message that names the field, or the conflicting fields: "stop, rate_end: …". */
int workload_new(const struct workload_config *config, uint64_t seed, const char *name,
	struct workload **ret, struct weir_err *err);
void workload_free(struct workload *w);
bool workload_closed(const struct workload *w);

/* Generate the next IO. Open: `now` is ignored, arrivals are those of the process, in order; false:
 * no more IOs. Closed: `now` is the time when a slot became free (start of run, or a completion),
 * never earlier than in the call before; `at` may be later, and need not be in order; false: that
 * slot has nothing more to do before `stop` (others may). */
bool workload_next(struct workload *w, weir_time now, struct workload_io *ret);
