/* SPDX-License-Identifier: BSD-3-Clause */
/* replay-impl: shared by the parts of a replay. */
#ifndef WEIR_PLAN_REPLAY_IMPL_H
#define WEIR_PLAN_REPLAY_IMPL_H

#include "plan/replay.h"

struct replay_course { /* of a tenant: how its trace goes round */
	weir_time period;
};

struct replay_sample { /* latencies of a tenant, in s */
	double *latency;
	size_t n, room;
};

/* replay-alignment.c: run one alignment; shift: by tenant; the last request arrives before `horizon`. 0 or a negative errno. */
int replay_align(const struct replay_input *in, const struct replay_course *course,
	const weir_time *shift, weir_time horizon, uint64_t seed, struct replay_sample *ret);

#endif
