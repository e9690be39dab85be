/* SPDX-License-Identifier: BSD-3-Clause */
/* lessee-look: leases in a snapshot. */
#include "serve/gateway/version.h"
#include "serve/host/lessee-impl.h"
#include "serve/gateway/snapshot.h"

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
		/* requests that passed since the last look belong to this period, too */
		.used = t.used + (int64_t)(b->dispatched + st.dispatched - s->loads[i].served),
		.claim = t.claim,
		.cap = t.cap,
		.reserved = t.reserved,
		.limit = t.limit,
		.r = t.r,
		.l = t.l,
		.last = b->last,
		.closed = t.closed,
		.index = (uint32_t)b->tenant};
}

static bool is_listed(const struct lessee *s, size_t i, bool active)
{
	const struct lessee_bucket *b = &s->buckets[i];

	return b->here && b->tenant != LESSEE_NEXT && (!active || s->loads[i].arrived > 0);
}

/* Those that had a request, or all. */
static size_t count_leases(const struct lessee *s, bool active)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += is_listed(s, i, active);
	return n;
}

void lessee_look(struct resource *r, struct snapshot *snap, struct snapshot_resource *to)
{
	struct lessee *s = r->lessee;
	struct snapshot_pshift *p = snapshot_take(snap, 1, sizeof(*p));
	bool active;

	if (!p || !s->on)
		return;
	pshift_server_status(s->server, &p->status);
	p->capacity = lessee_capacity(r);
	p->last_period = s->last_period;
	p->looks = s->looks;
	p->busy = s->busy;
	to->pshift = p;
	p->n_all = count_leases(s, false);
	active = p->n_all > SNAPSHOT_LEASES;
	p->leases = snapshot_take(snap, count_leases(s, active) + 1, sizeof(*p->leases));
	for (size_t i = 0; p->leases && r->policy == snap->of->policy && i < s->n; i++)
		if (is_listed(s, i, active))
			look_bucket(s, snap, i, &p->leases[p->n_leases++]);
}
