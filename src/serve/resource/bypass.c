/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bypass: the emergency exit: requests bypass the gate and go straight to the back end.
 *
 * METHOD  Requests that wait in the gate are taken back and put before all later arrivals
 *         (resource_again), each tenant's in order; the next turn sends them on. Nothing of the
 *         gate is used meanwhile, so it helps whatever keeps requests waiting there. The gate
 *         counts only requests that pass it, so the others are counted here, when they are done.
 * COST    To turn it on: O(clients + waiting requests). Off: O(1).
 * DIFFERS Shadow mode delays no request anyway: there it only shows.
 */
#include "serve/resource/impl.h"

static bool is_real(const struct weir_req *q, void *arg)
{
	return q->user == NULL;
}

static void let_go(struct weir_req *q, void *arg)
{
	resource_again(arg, resource_request(q));
}

uint32_t resource_bypass(struct resource *r, bool on)
{
	uint32_t waited;

	if (r->bypass == on)
		return 0;
	r->bypass = on;
	r->bypass_since = on ? resource_policy_now(r) : 0;
	if (!on || !r->gate)
		return 0;
	resource_drop_left(r);
	waited = r->queued;
	for (const struct client *c = r->clients; c && r->queued; c = c->next)
		weir_gate_cancel(r->gate, r->now, c->node, is_real, let_go, r);
	return waited - r->queued;
}

void resource_bypass_done(struct resource *r, weir_time now, const struct request *q)
{
	const struct client *c = q->client;
	struct resource_bypassed *n = &r->counts[c->node].bypassed;

	if (c->tenant < 0)
		return;
	n->served++;
	n->bytes += q->gate.bytes;
	n->device_ns += (uint64_t)(now - q->gate.dispatched);
}
