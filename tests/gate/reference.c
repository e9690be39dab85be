/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"
#include "test.h"

/* ---- one bucket */

int64_t ref_cost(const struct weir_req *r, enum weir_unit unit)
{
	if (unit == WEIR_UNIT_REQUESTS)
		return r->requests ? r->requests : 1;
	return unit == WEIR_UNIT_BYTES ? r->bytes : r->time;
}

void ref_bucket_init(struct ref_bucket *b, const struct weir_bucket_spec *spec, weir_time now)
{
	bool granted =
		spec->rate == 0 && (spec->kind == WEIR_RTOKENS || spec->kind == WEIR_LTOKENS);

	*b = (struct ref_bucket){
		.spec = *spec,
		.size = (ref_parts)spec->size * REF_UNIT,
		.rate = (uint64_t)llround(spec->rate * 1024),
		.stamp = now,
		.excess_stamp = now,
	};
	b->rate_most = b->rate;
	b->level = granted ? 0 : b->size;
	b->spec.ops = spec->ops ? spec->ops : WEIR_OPS_ALL;
}

static bool ref_counts(const struct ref_bucket *b, const struct weir_req *r)
{
	return (b->spec.ops >> r->op & 1) && ref_cost(r, b->spec.unit) > 0;
}

weir_time ref_bucket_due(const struct ref_bucket *b, const struct weir_req *r)
{
	ref_parts need = ref_cost(r, b->spec.unit) * REF_UNIT;

	if (need > b->size)
		need = b->size;
	if (!ref_counts(b, r) || b->level >= need)
		return b->stamp;
	if (b->rate == 0)
		return WEIR_NEVER;
	ref_parts span = (need - b->level + b->rate - 1) / b->rate;

	return span > WEIR_NEVER - b->stamp ? WEIR_NEVER : b->stamp + (weir_time)span;
}

bool ref_bucket_admits(
	const struct ref_bucket *b, const struct weir_req *r, weir_time now, weir_time lag)
{
	weir_time due = ref_bucket_due(b, r);

	if (due <= now - lag || lag == 0)
		return due <= now;
	if (due > b->stamp || !ref_counts(b, r))
		return due == b->stamp;
	/* The bucket admitted when its level last changed. If that was a charge, the gate may
	 * not know yet what came in during the last tick before it. */
	struct ref_bucket before = *b;

	before.level -= b->charged ? (ref_parts)b->rate * lag : 0;
	return ref_bucket_due(&before, r) == b->stamp;
}

void ref_bucket_fill(struct ref_bucket *b, weir_time now)
{
	if (b->level < b->size) {
		b->level += (ref_parts)b->rate * (now - b->stamp);
		if (b->level > b->size)
			b->level = b->size;
	}
	b->stamp = now;
}

/* Check law 4 over every interval that ends now, from any earlier moment since the restart. */
static void ref_bucket_excess(struct ref_bucket *b, weir_time now, ref_parts cost)
{
	b->excess -= (ref_parts)b->rate * (now - b->excess_stamp);
	b->excess_stamp = now;
	if (b->excess < b->excess_min)
		b->excess_min = b->excess;
	b->excess += cost;
	if (cost > b->largest)
		b->largest = cost;
	if (b->spec.kind == WEIR_HOLD &&
		b->excess - b->excess_min >
			b->size + b->largest + (ref_parts)b->rate_most * REF_LATE)
		FAIL("more than r·(t + 20 ms) + b + one largest cost passed a bucket of %g/s, size "
		     "%g",
			b->spec.rate, b->spec.size);
}

static void ref_charge(
	struct ref_bucket *b, const struct weir_req *r, weir_time as_of, weir_time now)
{
	if (!ref_counts(b, r))
		return;
	ref_parts cost = ref_cost(r, b->spec.unit) * REF_UNIT;

	ref_bucket_fill(b, as_of);
	b->charged = true;
	b->level -= cost;
	ref_bucket_excess(b, now, cost);
}

/* ---- a leaf against its own buckets */

enum ref_kind { REF_READ, REF_WRITE, REF_CONTROL };

static unsigned ref_kind(const struct weir_req *r)
{
	bool control = r->op == WEIR_FLUSH || r->op == WEIR_STATUS;

	return r->op == WEIR_READ ? REF_READ : control ? REF_CONTROL : REF_WRITE;
}

static bool ref_tells(const struct ref_node *n)
{
	const unsigned data = WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM);

	for (unsigned i = 0; i < n->n_buckets; i++)
		if ((n->b[i].spec.ops & data) && (n->b[i].spec.ops & data) != data)
			return true;
	return false;
}

/* Return true if a bucket of the leaf, or above it, distinguishes reads from writes. */
static bool ref_told(const struct ref_gate *g, uint32_t leaf)
{
	for (uint32_t n = leaf;; n = g->nodes[n].parent) {
		if (ref_tells(&g->nodes[n]))
			return true;
		if (n == WEIR_ROOT)
			return false;
	}
}

/* The buckets of a leaf, if `sure`, or of a node above it have changed, or the leaf has been
 * idle. */
static void ref_split(struct ref_gate *g, uint32_t leaf, bool sure)
{
	struct ref_node *n = &g->nodes[leaf];
	int split = ref_told(g, leaf) ? REF_SPLIT : REF_WHOLE;

	n->split = sure || ref_queued(n) == 0 || (int)n->split == split ? split : REF_EITHER;
}

/* Return true if r, which waits, is the first of its kind. `split`: writes are apart from reads. */
static bool ref_is_head(const struct ref_node *n, const struct weir_req *r, bool split)
{
	for (size_t i = n->first; n->queue[i] != r; i++) {
		unsigned a = ref_kind(n->queue[i]), b = ref_kind(r);

		if (a == b || (!split && a != REF_CONTROL && b != REF_CONTROL))
			return false;
	}
	return true;
}

/* Return true if a came before b; both wait. */
static bool ref_is_older(
	const struct ref_node *n, const struct weir_req *a, const struct weir_req *b)
{
	size_t i = n->first;

	while (n->queue[i] != a && n->queue[i] != b)
		i++;
	return a != b && n->queue[i] == a;
}

/* Put the first of each kind, in the order of age, into *ret, and return their number. `split`: as in
 * ref_is_head. */
static unsigned ref_firsts(const struct ref_node *n, bool split, const struct weir_req **ret)
{
	unsigned heads = 0, seen = 0;

	for (size_t i = n->first; i < n->end && heads < 3; i++) {
		unsigned k = ref_kind(n->queue[i]);

		if ((seen >> k & 1) || !ref_is_head(n, n->queue[i], split))
			continue;
		seen |= 1u << k;
		ret[heads++] = n->queue[i];
	}
	return heads;
}

/* The same: only those that the gate must know to be first. */
static unsigned ref_heads(const struct ref_node *n, const struct weir_req **ret)
{
	return ref_firsts(n, n->split == REF_SPLIT, ret);
}

/* Return true if all of the node's buckets of a kind admit r, or with `any` if one does. Without
 * buckets: all do, none does. */
static bool ref_admits(const struct ref_node *n, enum weir_bucket_kind kind, bool any,
	const struct weir_req *r, weir_time now, weir_time lag)
{
	for (unsigned i = 0; i < n->n_buckets; i++) {
		const struct ref_bucket *b = &n->b[i];

		if (b->spec.kind != kind || (any && !ref_counts(b, r)))
			continue;
		if (ref_bucket_admits(b, r, now, lag) == any)
			return any;
	}
	return !any;
}

/* Return when r began or begins to fit all profiles: not before it came, and not before the
 * previous request of this class fitted. While it waits for its turn after that, nothing is
 * lost. A request larger than a profile never fits. */
static weir_time ref_fits(const struct ref_node *n, const struct weir_req *r)
{
	weir_time e = r->submitted > n->fitted ? r->submitted : n->fitted;

	for (unsigned i = 0; i < n->n_buckets; i++) {
		const struct ref_bucket *b = &n->b[i];

		if (b->spec.kind != WEIR_PROFILE || !ref_counts(b, r))
			continue;
		if (ref_cost(r, b->spec.unit) * REF_UNIT > b->size)
			return WEIR_NEVER;
		if (ref_bucket_due(b, r) > e)
			e = ref_bucket_due(b, r);
	}
	return e;
}

/* Return true if a bucket of this kind that counts r refuses an older head of data, so that r,
 * which is data, waits with it. (L-tokens are asked for only by a head that its hold buckets
 * admit.) With a lag return true also if that depends on whether reads and writes are apart: the gate may know a
 * write behind a read as a head. */
static bool ref_behind(const struct ref_node *n, enum weir_bucket_kind kind,
	const struct weir_req *r, weir_time now, weir_time lag)
{
	const struct weir_req *heads[3];
	unsigned n_heads =
		ref_firsts(n, n->split == REF_SPLIT || (lag && n->split == REF_EITHER), heads);

	if (ref_kind(r) == REF_CONTROL && lag == 0)
		return false; /* it is, if control went before such a head already (kind.c) */
	for (unsigned h = 0; h < n_heads && ref_is_older(n, heads[h], r); h++) {
		if (ref_kind(heads[h]) == REF_CONTROL ||
			(kind == WEIR_LTOKENS && !ref_admits(n, WEIR_HOLD, false, heads[h], now,
							 lag ? 0 : REF_TICK)))
			continue;
		for (unsigned i = 0; i < n->n_buckets; i++)
			if (n->b[i].spec.kind == kind && ref_counts(&n->b[i], r) &&
				ref_counts(&n->b[i], heads[h]) &&
				!ref_bucket_admits(&n->b[i], heads[h], now, lag))
				return true;
	}
	return false;
}

/* Return the best slot for which a head is eligible by the leaf's own buckets, exactly (lag 0)
 * or as the gate must know (lag REF_TICK). */
static unsigned ref_slot(
	const struct ref_gate *g, const struct weir_req *r, weir_time now, weir_time lag)
{
	const struct ref_node *n = &g->nodes[r->tenant];

	if (!ref_admits(n, WEIR_HOLD, false, r, now, lag) || ref_behind(n, WEIR_HOLD, r, now, lag))
		return REF_NO_SLOT;
	bool reserved = ref_admits(n, WEIR_RTOKENS, true, r, now, lag);
	/* A request that waits only for a better class learns of an R-token late. */
	bool promoted = ref_admits(n, WEIR_RTOKENS, true, r, now, lag ? REF_COARSE : 0);

	if (!reserved && (!ref_admits(n, WEIR_LTOKENS, false, r, now, lag) ||
				 ref_behind(n, WEIR_LTOKENS, r, now, lag)))
		return REF_NO_SLOT;
	weir_time fits = ref_fits(n, r);

	if (n->priority >= 0 && (fits == r->submitted || fits == n->fitted || fits <= now - lag))
		return (unsigned)n->priority;
	return promoted ? REF_RESERVED : REF_REST;
}

/* ---- ancestors */

static bool ref_above_admits(const struct ref_gate *g, uint32_t leaf, const struct weir_req *r,
	weir_time now, weir_time lag)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (!ref_admits(&g->nodes[n], WEIR_HOLD, false, r, now, lag))
			return false;
	}
	return true;
}

static bool ref_under(const struct ref_gate *g, uint32_t node, uint32_t ancestor)
{
	while (node != ancestor && node != WEIR_ROOT)
		node = g->nodes[node].parent;
	return node == ancestor;
}

/* Return true if a bucket of a refuses h, which waits under it, and thereby stops r. */
static bool ref_stops(const struct ref_gate *g, const struct ref_node *a, const struct weir_req *h,
	const struct weir_req *r, weir_time now)
{
	for (unsigned i = 0; i < a->n_buckets; i++) {
		unsigned ops = a->b[i].spec.ops;
		bool counts = ref_kind(r) == REF_READ
				      ? ops >> WEIR_READ & 1
				      : ops & (WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM));

		if (ref_bucket_admits(&a->b[i], h, now, REF_TICK))
			continue;
		if (g->order != WEIR_FAIR || ref_kind(h) == ref_kind(r) ||
			(counts && ref_kind(h) != REF_CONTROL && ref_kind(r) != REF_CONTROL))
			return true;
	}
	return false;
}

/* Return true if the turn of another request under one of r's ancestors, of this slot or a
 * better one, might be held up by that ancestor's buckets. Then r may have to wait with it, if
 * they count it. */
static bool ref_excused(
	const struct ref_gate *g, const struct weir_req *r, unsigned slot, weir_time now)
{
	for (uint32_t a = r->tenant; a != WEIR_ROOT;) {
		a = g->nodes[a].parent;
		if (g->nodes[a].n_buckets == 0)
			continue;
		for (uint32_t h = 1; h < g->n_nodes; h++) {
			const struct ref_node *n = &g->nodes[h];

			if (!n->used || !n->leaf || !ref_under(g, h, a))
				continue;
			for (size_t i = n->first; i < n->end; i++)
				if (n->queue[i] != r &&
					ref_is_head(n, n->queue[i], n->split != REF_WHOLE) &&
					ref_stops(g, &g->nodes[a], n->queue[i], r, now) &&
					ref_slot(g, n->queue[i], now, 0) <= slot)
					return true;
		}
	}
	return false;
}

static weir_time ref_key(const struct ref_gate *g, const struct weir_req *r)
{
	if (g->order == WEIR_FIFO)
		return r->submitted;
	return r->submitted +
	       (r->deadline ? (weir_time)r->deadline * WEIR_US : g->nodes[r->tenant].deadline);
}

/* Return the slot in which r must be known to be eligible and not held up, or REF_NO_SLOT. */
static unsigned ref_must(const struct ref_gate *g, const struct weir_req *r, weir_time now)
{
	unsigned s = ref_slot(g, r, now, REF_TICK);

	if (s == REF_NO_SLOT || !ref_above_admits(g, r->tenant, r, now, REF_TICK) ||
		ref_excused(g, r, s, now))
		return REF_NO_SLOT;
	return s;
}

/* Return true if an older head of r's tenant may be eligible in this slot. Then the leaf stands
 * there with that one's key. */
static bool ref_second(
	const struct ref_gate *g, const struct weir_req *r, unsigned slot, weir_time now)
{
	const struct ref_node *n = &g->nodes[r->tenant];

	for (size_t i = n->first; n->queue[i] != r; i++)
		if (ref_is_head(n, n->queue[i], n->split != REF_WHOLE) &&
			ref_slot(g, n->queue[i], now, 0) <= slot &&
			ref_above_admits(g, r->tenant, n->queue[i], now, 0))
			return true;
	return false;
}

/* Fail if a request that must be known to be eligible comes before `slot` and, if keyed, `key`. */
static void ref_none_before(
	struct ref_gate *g, weir_time now, uint32_t but, unsigned slot, bool keyed, weir_time key)
{
	for (uint32_t h = 1; h < g->n_nodes; h++) {
		const struct weir_req *heads[3];

		if (h == but || !g->nodes[h].used || !g->nodes[h].leaf)
			continue;
		for (unsigned i = ref_heads(&g->nodes[h], heads); i-- > 0;) {
			const struct weir_req *r = heads[i];
			unsigned s = ref_slot(g, r, now, REF_TICK);

			if (s > slot || s == REF_NO_SLOT ||
				(s == slot && !(keyed && ref_key(g, r) < key &&
						      !ref_second(g, r, s, now))))
				continue;
			if (ref_must(g, r, now) != REF_NO_SLOT)
				FAIL("node %u (op %u, slot %u, key %lld) should go before node %u "
				     "(slot %u, key %lld) at %lld",
					h, r->op, s, (long long)ref_key(g, r), but, slot,
					(long long)key, (long long)now);
		}
	}
}

/* Fail if an older head of r's tenant has to go before r, in its slot or a better one. */
static void ref_older(struct ref_gate *g, weir_time now, const struct weir_req *r, unsigned slot)
{
	const struct weir_req *heads[3];
	unsigned n = ref_heads(&g->nodes[r->tenant], heads);

	if (ref_kind(r) == REF_CONTROL)
		return; /* data may have been held since it arrived (kind.c) */
	for (unsigned i = 0; i < n && ref_is_older(&g->nodes[r->tenant], heads[i], r); i++)
		if (ref_must(g, heads[i], now) <= slot)
			FAIL("node %u: a request of op %u passed before an older one of op %u",
				r->tenant, r->op, heads[i]->op);
}

/* ---- requests */

void ref_submit(struct ref_gate *g, weir_time now, struct weir_req *r)
{
	struct ref_node *n = &g->nodes[r->tenant];

	CHECK(n->used && n->leaf);
	CHECK_INT(r->submitted, now);
	if (n->first == n->end) {
		n->first = n->end = 0;
		ref_split(g, r->tenant, true);
	}
	if (n->end == n->room) {
		n->room = n->room ? 2 * n->room : 16;
		n->queue = realloc(n->queue, n->room * sizeof *n->queue);
		CHECK(n->queue);
	}
	n->queue[n->end++] = r;
	n->arrivals++;
	g->queued++;
	g->submitted++;
}

/* The second sentence of law 1. */
static bool ref_fits_bytes(const struct ref_gate *g, const struct weir_req *r)
{
	return g->window_bytes == 0 || g->in_flight == 0 || r->bytes == 0 ||
	       g->in_flight_bytes + r->bytes <= g->window_bytes;
}

static void ref_window_open(const struct ref_gate *g, const struct weir_req *r)
{
	if (g->in_flight >= ceil(g->window))
		FAIL("%u are inside a window of %g, and one more passed", g->in_flight, g->window);
	if (!ref_fits_bytes(g, r))
		FAIL("%llu bytes are inside a window of %llu, and %u more passed",
			(unsigned long long)g->in_flight_bytes, (unsigned long long)g->window_bytes,
			r->bytes);
}

/* Return the first slot in which the next head may be one that does not fit into the window in
 * bytes, and the smallest key of such heads there. REF_NO_SLOT: there is none. */
static unsigned ref_kept(const struct ref_gate *g, weir_time now, weir_time *ret_key)
{
	unsigned kept = REF_NO_SLOT;

	for (uint32_t h = 1; h < g->n_nodes; h++) {
		const struct ref_node *n = &g->nodes[h];

		for (size_t i = n->first; n->used && n->leaf && i < n->end; i++) {
			const struct weir_req *r = n->queue[i];

			if (!ref_is_head(n, r, n->split != REF_WHOLE) || ref_fits_bytes(g, r) ||
				!ref_above_admits(g, h, r, now, 0))
				continue;
			unsigned slot = ref_slot(g, r, now, 0);

			if (slot < kept ||
				(slot == kept && slot < REF_NO_SLOT && ref_key(g, r) < *ret_key)) {
				kept = slot;
				*ret_key = ref_key(g, r);
			}
		}
	}
	return kept;
}

static unsigned ref_check_class(const struct ref_gate *g, weir_time now, const struct weir_req *r)
{
	const struct ref_node *n = &g->nodes[r->tenant];
	unsigned best = ref_slot(g, r, now, 0), known = ref_slot(g, r, now, REF_TICK);
	unsigned slot = r->class_ == WEIR_CLASS_PRIORITY   ? (unsigned)n->priority
			: r->class_ == WEIR_CLASS_RESERVED ? REF_RESERVED
							   : REF_REST;

	if (best == REF_NO_SLOT)
		FAIL("node %u passed at %lld though its own buckets do not admit it", r->tenant,
			(long long)now);
	if (r->class_ == WEIR_CLASS_PRIORITY && n->priority < 0)
		FAIL("node %u passed with a priority it does not have", r->tenant);
	if (slot < best || slot > known)
		FAIL("node %u passed in slot %u at %lld, not in %u … %u", r->tenant, slot,
			(long long)now, best, known);
	if (r->class_ == WEIR_CLASS_RESERVED && !ref_admits(n, WEIR_RTOKENS, true, r, now, 0))
		FAIL("node %u passed as reserved without an R-token", r->tenant);
	return slot;
}

/* Return the time as of which the limits of node n are charged for r. */
static weir_time ref_as_of(struct ref_node *n, const struct weir_req *r, weir_time now)
{
	weir_time as_of = now - REF_LATE;

	if (r->submitted > as_of)
		as_of = r->submitted;
	if (n->as_of > as_of)
		as_of = n->as_of;
	return n->as_of = as_of;
}

static void ref_charge_all(struct ref_gate *g, weir_time now, const struct weir_req *r)
{
	struct ref_node *n = &g->nodes[r->tenant];
	weir_time as_of = ref_as_of(n, r, now);
	bool reserved = ref_admits(n, WEIR_RTOKENS, true, r, now, 0);
	weir_time fits = ref_fits(n, r);

	for (unsigned i = 0; i < n->n_buckets; i++) {
		struct ref_bucket *b = &n->b[i];

		switch (b->spec.kind) {
		case WEIR_HOLD:
			ref_charge(b, r, as_of, now);
			break;
		case WEIR_PROFILE:
			if (r->class_ == WEIR_CLASS_PRIORITY)
				ref_charge(b, r, fits, now);
			break;
		case WEIR_RTOKENS:
			/* If one bucket guarantees the request all are charged, so that several
			 * are worth the largest and not their sum; but a debt never exceeds the
			 * size. */
			if (reserved)
				ref_charge(b, r, now, now);
			if (reserved && ref_counts(b, r) && b->level < -b->size) /* whole tokens */
				b->level = -b->size + (b->level % REF_UNIT + REF_UNIT) % REF_UNIT;
			break;
		case WEIR_LTOKENS:
			if (!reserved)
				ref_charge(b, r, as_of, now);
			break;
		}
	}
	if (r->class_ == WEIR_CLASS_PRIORITY)
		n->fitted = fits;
	for (uint32_t a = r->tenant; a != WEIR_ROOT;) {
		a = g->nodes[a].parent;
		if (g->nodes[a].n_buckets == 0)
			continue;
		as_of = ref_as_of(&g->nodes[a], r, now);
		for (unsigned i = 0; i < g->nodes[a].n_buckets; i++)
			ref_charge(&g->nodes[a].b[i], r, as_of, now);
	}
}

static void ref_unqueue(struct ref_node *n, const struct weir_req *r)
{
	size_t i = n->first;

	while (i < n->end && n->queue[i] != r)
		i++;
	if (i == n->end)
		FAIL("node %u: a request that does not wait", r->tenant);
	memmove(&n->queue[i], &n->queue[i + 1], (n->end - i - 1) * sizeof *n->queue);
	n->end--;
}

void ref_pass(struct ref_gate *g, weir_time now, struct weir_req *r)
{
	struct ref_node *n = &g->nodes[r->tenant];

	CHECK(n->used && n->leaf);
	if (!ref_is_head(n, r, n->split != REF_WHOLE))
		FAIL("node %u: what passed is not its head", r->tenant);
	CHECK_INT(r->dispatched, now);
	ref_window_open(g, r);
	unsigned slot = ref_check_class(g, now, r);

	if (!ref_above_admits(g, r->tenant, r, now, 0))
		FAIL("node %u passed though a bucket above does not admit it", r->tenant);
	ref_older(g, now, r, slot);
	ref_none_before(
		g, now, r->tenant, slot, g->order != WEIR_FAIR && g->run < 2, ref_key(g, r));
	ref_charge_all(g, now, r);
	ref_unqueue(n, r);
	n->dispatched++;
	n->in_flight++;
	n->bytes += r->bytes;
	n->by_class[r->class_]++;
	n->waited += (double)(now - r->submitted);
	g->queued--;
	g->in_flight++;
	g->in_flight_bytes += r->bytes;
	g->dispatched++;
}

void ref_nothing(struct ref_gate *g, weir_time now)
{
	weir_time key = 0;
	unsigned slot = ref_kept(g, now, &key);

	if (g->in_flight < floor(g->window))
		ref_none_before(g, now, WEIR_ROOT, slot,
			slot < REF_NO_SLOT && g->order != WEIR_FAIR && g->run < 2, key);
}

void ref_cancelled(struct ref_gate *g, weir_time now, struct weir_req *r)
{
	struct ref_node *n = &g->nodes[r->tenant];

	ref_unqueue(n, r);
	n->arrivals--;
	n->waited += (double)(now - r->submitted);
	g->queued--;
	g->submitted--;
}

void ref_done(struct ref_gate *g, struct weir_req *r)
{
	g->nodes[r->tenant].in_flight--;
	g->nodes[r->tenant].served++;
	g->in_flight--;
	g->in_flight_bytes -= r->bytes;
	g->served++;
}

/* ---- wakeup */

static weir_time ref_due(const struct ref_gate *g, const struct weir_req *r, bool *ret_shared)
{
	const struct ref_node *n = &g->nodes[r->tenant];
	weir_time hold = 0, l = 0, reserved = WEIR_NEVER;

	for (unsigned i = 0; i < n->n_buckets; i++) {
		weir_time due = ref_bucket_due(&n->b[i], r);

		if (n->b[i].spec.kind == WEIR_HOLD && due > hold)
			hold = due;
		if (n->b[i].spec.kind == WEIR_LTOKENS && due > l)
			l = due;
		if (n->b[i].spec.kind == WEIR_RTOKENS && ref_counts(&n->b[i], r) && due < reserved)
			reserved = due;
	}
	if (l > reserved)
		l = reserved;
	for (uint32_t a = r->tenant; a != WEIR_ROOT;) {
		a = g->nodes[a].parent;
		for (unsigned i = 0; i < g->nodes[a].n_buckets; i++) {
			weir_time due = ref_bucket_due(&g->nodes[a].b[i], r);

			*ret_shared = true;
			if (due > hold)
				hold = due;
		}
	}
	return hold > l ? hold : l;
}

void ref_wakeup(struct ref_gate *g, weir_time now, weir_time at)
{
	if (at < now)
		FAIL("to wake up at %lld, before now, %lld", (long long)at, (long long)now);
	weir_time key;

	if (g->in_flight >= floor(g->window) || ref_kept(g, now, &key) < REF_NO_SLOT)
		return;
	for (uint32_t h = 1; h < g->n_nodes; h++) {
		const struct weir_req *heads[3];

		if (!g->nodes[h].used || !g->nodes[h].leaf)
			continue;
		for (unsigned i = ref_heads(&g->nodes[h], heads); i-- > 0;) {
			bool shared = false;
			weir_time due = ref_due(g, heads[i], &shared);

			/* Under a shared bucket, or one that refuses an older head, another
			 * request may be next first, and later. */
			shared |= ref_behind(&g->nodes[h], WEIR_HOLD, heads[i], now, REF_TICK) ||
				  ref_behind(&g->nodes[h], WEIR_LTOKENS, heads[i], now, REF_TICK);
			if (due != WEIR_NEVER && at > due + REF_TICK && at > now + REF_TICK &&
				!shared)
				FAIL("to wake up at %lld, but node %u is due at %lld",
					(long long)at, h, (long long)due);
		}
	}
}

/* ---- nodes and knobs */

void ref_init(struct ref_gate *g, const struct weir_gate_config *config)
{
	memset(g, 0, sizeof *g);
	g->nodes[WEIR_ROOT] = (struct ref_node){.used = true, .priority = -1};
	g->n_nodes = 1;
	g->window = config->window > 0 ? config->window : 32;
	g->window_bytes = config->window_bytes;
	g->order = config->order;
	g->run = config->run;
}

void ref_free(struct ref_gate *g)
{
	for (uint32_t n = 0; n < REF_NODES; n++)
		free(g->nodes[n].queue);
}

void ref_add(struct ref_gate *g, uint32_t parent, uint32_t node)
{
	CHECK(node < REF_NODES && !g->nodes[node].used);
	free(g->nodes[node].queue);
	g->nodes[node] =
		(struct ref_node){.used = true, .leaf = true, .parent = parent, .priority = -1};
	g->nodes[parent].leaf = false;
	g->nodes[parent].children++;
	if (node >= g->n_nodes)
		g->n_nodes = node + 1;
}

void ref_remove(struct ref_gate *g, uint32_t node)
{
	struct ref_node *parent = &g->nodes[g->nodes[node].parent];

	g->nodes[node].used = false;
	if (--parent->children == 0 && parent != &g->nodes[WEIR_ROOT])
		parent->leaf = true;
}

/* Return true if the bucket is charged as of an earlier time (law 4), also after a knob: hold
 * and L-buckets. */
static bool ref_waits_for(enum weir_bucket_kind kind)
{
	return kind == WEIR_HOLD || kind == WEIR_LTOKENS;
}

static weir_time ref_late(const struct ref_node *n, weir_time now)
{
	unsigned has = 0;

	for (unsigned i = 0; i < n->n_buckets; i++)
		has += n->b[i].spec.kind != WEIR_PROFILE;
	return !has ? now : n->as_of > now - REF_LATE ? n->as_of : now - REF_LATE;
}

/* Round the rates of a profile with large or fast buckets to multiples of 2^shift/1024 a second, such that each size
 * is at most 2^(21 + shift) and 2^30, and each rate less than 2^(31 + shift)/1024; and levels down to as many parts of
 * a unit. But if some rate would be less than 2^16 such multiples, the law's 2^-17, round none. */
static void ref_round_profile(struct ref_node *n)
{
	unsigned shift = 0;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < n->n_buckets; i++) {
		const struct ref_bucket *b = &n->b[i];

		if (b->spec.kind != WEIR_PROFILE)
			continue;
		while (shift <= 19 &&
			(b->spec.size > exp2(21 + shift) ||
				floor((double)b->rate / exp2(shift) + 0.5) >= exp2(31)))
			shift++;
		if (b->spec.size > exp2(30))
			return;
		least = b->rate < least ? b->rate : least;
	}
	if (shift > 19 || floor((double)least / exp2(shift) + 0.5) < exp2(16))
		return;
	for (unsigned i = 0; i < n->n_buckets; i++) {
		struct ref_bucket *b = &n->b[i];
		ref_parts part = (ref_parts)1 << shift;

		if (b->spec.kind != WEIR_PROFILE)
			continue;
		b->rate = (uint64_t)floor((double)b->rate / exp2(shift) + 0.5) << shift;
		b->level -= (b->level % part + part) % part;
	}
}

static void ref_knob_buckets(struct ref_node *n, weir_time now, const struct weir_knob *k)
{
	struct ref_bucket old[REF_BUCKETS];
	bool taken[REF_BUCKETS] = {false};
	unsigned n_old = n->n_buckets;
	weir_time late = ref_late(n, now);

	CHECK(k->n_buckets <= REF_BUCKETS);
	n->fitted = now;
	n->as_of = late;
	memcpy(old, n->b, sizeof old);
	n->n_buckets = k->n_buckets;
	for (unsigned i = 0; i < k->n_buckets; i++) {
		struct ref_bucket *b = &n->b[i];

		weir_time from = ref_waits_for(k->buckets[i].kind) ? late : now;

		ref_bucket_init(b, &k->buckets[i], from);
		b->excess_stamp = now;
		if (b->spec.kind == WEIR_PROFILE && n->priority < 0)
			n->priority = 63;
		for (unsigned j = 0; j < n_old; j++) {
			if (taken[j] || old[j].spec.kind != b->spec.kind ||
				old[j].spec.unit != b->spec.unit || old[j].spec.ops != b->spec.ops)
				continue;
			taken[j] = true;
			ref_bucket_fill(&old[j], from);
			/* Until now it filled at the old rate. */
			b->level = old[j].level +
				   ((ref_parts)old[j].rate - (ref_parts)b->rate) * (now - from);
			b->level = b->level < b->size ? b->level : b->size;
			if (old[j].size != b->size)
				break; /* intervals start again */
			ref_bucket_excess(&old[j], now, 0);
			b->excess = old[j].excess;
			b->excess_min = old[j].excess_min;
			b->largest = old[j].largest;
			if (old[j].rate_most > b->rate)
				b->rate_most = old[j].rate_most;
			break;
		}
	}
	ref_round_profile(n);
}

static void ref_grant(struct ref_node *n, enum weir_bucket_kind kind, double value, weir_time now)
{
	for (unsigned i = 0; i < n->n_buckets; i++) {
		if (n->b[i].spec.kind != kind)
			continue;
		ref_bucket_fill(&n->b[i], ref_waits_for(kind) ? ref_late(n, now) : now);
		n->b[i].charged = false;
		n->b[i].level += (ref_parts)llround(value) * REF_UNIT;
	}
}

void ref_knob(struct ref_gate *g, weir_time now, const struct weir_knob *k)
{
	struct ref_node *n = &g->nodes[k->node];

	switch (k->kind) {
	case WEIR_KNOB_WINDOW:
		g->window = k->value;
		break;
	case WEIR_KNOB_WINDOW_BYTES:
		g->window_bytes = (uint64_t)k->value;
		break;
	case WEIR_KNOB_PRIORITY:
		n->priority = (int)k->value;
		break;
	case WEIR_KNOB_DEADLINE:
		n->deadline = (weir_time)k->value;
		break;
	case WEIR_KNOB_BUCKETS:
		ref_knob_buckets(n, now, k);
		for (uint32_t l = 1; l < g->n_nodes; l++)
			if (g->nodes[l].used && g->nodes[l].leaf && ref_under(g, l, k->node))
				ref_split(g, l, l == k->node);
		break;
	case WEIR_KNOB_RGRANT:
		ref_grant(n, WEIR_RTOKENS, k->value, now);
		break;
	case WEIR_KNOB_LGRANT:
		ref_grant(n, WEIR_LTOKENS, k->value, now);
		break;
	case WEIR_KNOB_RUN:
		g->run = (uint32_t)k->value;
		break;
	default: /* only the order inside a class */
		break;
	}
}

/* ---- counters */

static void ref_stats_leaf(
	const struct ref_gate *g, struct weir_gate *real, weir_time now, uint32_t leaf)
{
	const struct ref_node *n = &g->nodes[leaf];
	struct weir_gate_stats s;
	double waited = n->waited, sum = 0;

	CHECK_INT(weir_gate_get_stats(real, now, leaf, &s), 0);
	CHECK_INT(s.arrivals, n->arrivals);
	CHECK_INT(s.dispatched, n->dispatched);
	CHECK_INT(s.served, n->served);
	CHECK_INT(s.bytes, n->bytes);
	CHECK_INT(s.queued, ref_queued(n));
	CHECK_INT(s.in_flight, n->in_flight);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(s.by_class[i], n->by_class[i]);
	for (size_t i = n->first; i < n->end; i++)
		waited += (double)(now - n->queue[i]->submitted);
	for (unsigned i = 0; i < WEIR_CAUSES; i++) {
		sum += s.wait_ns[i];
		if (s.wait_ns[i] < -1e-6 * waited - 1)
			FAIL("node %u waited %g ns for cause %u", leaf, s.wait_ns[i], i);
	}
	if (fabs(sum - waited) > 1e-6 * waited + 1)
		FAIL("node %u waited %g ns, but by cause %g", leaf, waited, sum);
}

void ref_stats(struct ref_gate *g, struct weir_gate *real, weir_time now)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(real, now, &t);
	CHECK_INT(t.submitted, g->submitted);
	CHECK_INT(t.dispatched, g->dispatched);
	CHECK_INT(t.served, g->served);
	CHECK_INT(t.queued, g->queued);
	CHECK_INT(t.in_flight, g->in_flight);
	CHECK_INT(t.in_flight_bytes, g->in_flight_bytes);
	CHECK_INT(t.window_bytes, g->window_bytes);
	for (uint32_t n = 1; n < g->n_nodes; n++)
		if (g->nodes[n].used && g->nodes[n].leaf)
			ref_stats_leaf(g, real, now, n);
}
