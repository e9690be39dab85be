/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place: on which of several equal servers workloads fit so that each meets its slo.
 *
 * METHOD   First fit by falling load: a workload goes to the first server on which an order of priorities meets every slo, or to a
 *          new one. A server is one stage, for which the greedy search finds an order if there is one.
 *          For comparison a workload may have one pair instead of several, as WorkloadCompactor (Zhu et al., SoCC'17) has: of all
 *          pairs that its trace fits the one with the least r + b / slo, the part of a server that it takes for its slo.
 */
#ifndef WEIR_PLAN_PLACE_H
#define WEIR_PLAN_PLACE_H

#include "control/meister/plan.h"

struct place_workload {
	double slo;          /* s */
	struct plan_hop hop; /* stage 0 */
};

#define PLACE_NONE UINT32_MAX

/* Place n workloads on servers without limit. ret_server: by workload, from 0 up; PLACE_NONE: the slo is missed even alone.
 * ret_servers: the number of servers. Fewer servers hold those of their own numbers and no more. 0 or -ENOMEM. */
int place_first_fit(const struct plan_stage *server, const struct place_workload *w, uint32_t n,
	uint32_t *ret_server, uint32_t *ret_servers);

#endif
