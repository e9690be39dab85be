/* SPDX-License-Identifier: BSD-3-Clause */
/* lessee-look: leases in a snapshot. */
#include "port/gateway-version.h"
#include "port/lessee-impl.h"
#include "port/snapshot.h"

static void look_bucket(
	struct lessee *s, struct snapshot *snap, size_t i, struct snapshot_lease *to)
{
	const struct lessee_bucket *b = &s->buckets[i];
	struct weir_gate_stats st = {0};
	struct pshift_server_tokens t;

	pshift_server_tokens(s->server, i, &t);
	if (b->here)
		weir_gate_get_stats(
			s->resource->gate, resource_policy_now(s->resource), b->node, &st);
	*to = (struct snapshot_lease){.tenant = snapshot_path(snap, b->tenant),
		/* what passed since the last look is this period's, too */
		.used = t.used + (int64_t)(b->dispatched + st.dispatched - s->loads[i].served),
		.claim = t.claim,
		.cap = t.cap,
		.reserved = t.reserved,
		.limit = t.limit,
		.r = t.r,
		.l = t.l,
		.last = b->last,
		.closed = t.closed};
}

void lessee_look(struct resource *r, struct snapshot *snap, struct snapshot_resource *to)
{
	struct lessee *s = r->lessee;
	struct snapshot_pshift *p = snapshot_take(snap, 1, sizeof(*p));

	if (!p || !s->on)
		return;
	pshift_server_status(s->server, &p->status);
	p->capacity = lessee_capacity(r);
	p->last_period = s->last_period;
	p->looks = s->looks;
	p->busy = s->busy;
	to->pshift = p;
	p->leases = snapshot_take(snap, s->n + 1, sizeof(*p->leases));
	for (size_t i = 0; p->leases && r->policy == snap->of->policy && i < s->n; i++)
		if (s->buckets[i].here && s->buckets[i].tenant != LESSEE_NEXT)
			look_bucket(s, snap, i, &p->leases[p->n_leases++]);
}
