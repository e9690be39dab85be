/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/kind.h"
#include "gate/above.h"

#define KIND_QUEUES 3 /* the node's own, writes, control: as enum kind */

/* ---- queues. The separate ones are rings: a tail's next is the head. */

static struct weir_req *kind_front(const struct weir_gate *g, uint32_t n, unsigned q)
{
	if (q == 0)
		return g->nodes[n].head;
	const struct weir_req *tail = g->apart[n].tail[q - 1];

	return tail ? tail->next : NULL;
}

/* Return the kinds that a queue may hold. */
static unsigned kind_bits(const struct node *node, unsigned q)
{
	return q == 0 && !(node->flags & NODE_SPLIT) ? KIND_DATA : 1u << q;
}

static bool kind_older(const struct weir_req *a, const struct weir_req *b)
{
	return !b || a->dispatched < b->dispatched;
}

/* Return the data queue whose head is the older one. */
static unsigned kind_first(const struct weir_gate *g, uint32_t n)
{
	const struct weir_req *read = kind_front(g, n, KIND_READ);

	return read && kind_older(read, kind_front(g, n, KIND_WRITE)) ? KIND_READ : KIND_WRITE;
}

/* Note that control is about to go before the heads of data that are held and older: they are next, once each. */
static void kind_pass(struct weir_gate *g, uint32_t n, const struct weir_req *control)
{
	struct node_apart *a = &g->apart[n];

	for (unsigned q = 0; q < KIND_CONTROL && g->order == WEIR_FAIR; q++) {
		const struct weir_req *r = kind_front(g, n, q);

		if (r && (a->held >> q & 1) && kind_older(r, control))
			a->passed |= (uint8_t)(1u << q);
	}
}

void kind_refused(struct weir_gate *g, uint32_t n, const struct weir_req *r)
{
	struct node_apart *apart = &g->apart[n];

	if (kind_of(r) != KIND_CONTROL && apart->n[KIND_CONTROL - 1])
		apart->held |= r == g->nodes[n].head ? 1u << KIND_READ : 1u << KIND_WRITE;
}

/* Return the data queues of a leaf that are held now, by its own buckets or above: a bit each. */
static unsigned kind_held(struct weir_gate *g, uint32_t n, weir_time now);

bool kind_append(struct weir_gate *g, struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[r->tenant];
	unsigned q = kind_of(r);
	struct weir_req **tail = &g->apart[r->tenant].tail[q - 1], *last = *tail;

	r->next = last ? last->next : r;
	if (last)
		last->next = r;
	*tail = r;
	g->apart[r->tenant].n[q - 1]++;
	if (!(node->flags & NODE_KINDS))
		for (unsigned c = 0; c < 3; c++) /* until all heads are checked together */
			g->apart[r->tenant].may[c] = node->may >> c & 1;
	node->flags |= NODE_KINDS;
	if (q == KIND_CONTROL)
		g->apart[r->tenant].held |= (uint8_t)kind_held(g, r->tenant, now);
	node->queued++;
	stats_wait(g, r->tenant, q, now, -1);
	return !last;
}

void kind_take(struct weir_gate *g, uint32_t n, struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct node_apart *a = &g->apart[n];

	if (r == node->head) {
		stats_wait(g, n, 0, now, 1);
		node->head = r->next;
		node->tail = node->head ? node->tail : NULL;
		a->passed &= (uint8_t)~1u;
	} else {
		unsigned q = kind_of(r);
		struct weir_req **tail = &a->tail[q - 1];

		stats_wait(g, n, q, now, 1);
		if (q == KIND_CONTROL)
			kind_pass(g, n, r);
		a->passed &= (uint8_t) ~(1u << q);
		if (*tail == r)
			*tail = NULL;
		else /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): r is in this queue */
			(*tail)->next = r->next;
		a->n[q - 1]--;
		a->held = a->n[KIND_CONTROL - 1] ? a->held : 0;
	}
	node->queued--;
	r->next = NULL;
	if (a->n[0] || a->n[1] || a->passed)
		return;
	stats_state(g, n, KIND_WRITE, 0, now);
	stats_state(g, n, KIND_CONTROL, 0, now);
	node->flags &= (uint8_t)~NODE_KINDS;
}

struct weir_req *kind_gather(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct weir_req *list = NULL, **end = &list;

	for (;;) {
		struct weir_req *oldest = NULL;

		for (unsigned q = 0; q < KIND_QUEUES; q++) {
			struct weir_req *r = kind_front(g, n, q);

			if (r && kind_older(r, oldest))
				oldest = r;
		}
		if (!oldest)
			break;
		kind_take(g, n, oldest, now);
		*end = oldest;
		end = &oldest->next;
	}
	for (unsigned q = 0; q < KIND_QUEUES; q++)
		stats_state(g, n, q, 0, now);
	return list;
}

void kind_spread(struct weir_gate *g, uint32_t n, struct weir_req *list, weir_time now)
{
	struct node *node = &g->nodes[n];

	while (list) {
		struct weir_req *r = list;

		list = r->next;
		if (kind_is_apart(node, r)) {
			(void)kind_append(g, r, now);
			continue;
		}
		*(node->tail ? &node->tail->next : &node->head) = r;
		r->next = NULL;
		node->tail = r;
		node->queued++;
		stats_wait(g, n, 0, now, -1);
	}
}

/* ---- split or not */

static bool kind_tells_any(const struct bucket *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (kind_tells(b[i].ops))
			return true;
	return false;
}

/* Return true if a bucket of an ancestor distinguishes reads from writes. */
static bool kind_told_above(const struct weir_gate *g, uint32_t n)
{
	while (g->tells && n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		if (kind_tells_any(g->nodes[n].limits.b, g->nodes[n].limits.n_hold))
			return true;
	}
	return false;
}

static void kind_split(struct weir_gate *g, uint32_t n, bool split, weir_time now)
{
	struct node *node = &g->nodes[n];

	if (!(node->flags & NODE_SPLIT) == !split)
		return;
	struct weir_req *list = kind_gather(g, n, now);

	node->flags ^= NODE_SPLIT;
	kind_spread(g, n, list, now);
}

void kind_sort(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node *node = &g->nodes[n];
	bool tells = kind_tells_any(node->limits.b, node->limits.n) ||
		     (node->profile && kind_tells_any(node->profile->b, node->profile->n));

	kind_split(g, n, tells || kind_told_above(g, n), now);
}

/* ---- heads */

struct weir_req *kind_head(const struct weir_gate *g, uint32_t n, unsigned class, unsigned kinds)
{
	const struct node *node = &g->nodes[n];
	struct weir_req *oldest = NULL;

	if (!(node->flags & NODE_KINDS))
		return node->head && kinds >> kind_of(node->head) & 1 ? node->head : NULL;
	unsigned of = 0;

	for (unsigned q = 0; q < KIND_QUEUES; q++) {
		struct weir_req *r = g->apart[n].may[class] >> q & 1 ? kind_front(g, n, q) : NULL;
		/* (The orders FIFO and EDF keep the order.) */
		bool before = q == KIND_CONTROL && (g->apart[n].held >> of & 1) &&
			      !(g->apart[n].passed >> of & 1) && g->order == WEIR_FAIR;

		if (!r || !(kinds >> kind_of(r) & 1) || !(before || kind_older(r, oldest)))
			continue;
		oldest = r;
		of = q;
	}
	return oldest;
}

const struct weir_req *kind_oldest(const struct weir_gate *g, uint32_t n, uint8_t *ret_state)
{
	const struct weir_req *oldest = NULL;

	for (unsigned q = 0; q < KIND_QUEUES; q++) {
		const struct weir_req *r = kind_front(g, n, q);

		if (!r || !kind_older(r, oldest))
			continue;
		oldest = r;
		*ret_state = node_state(g, n, q);
	}
	return oldest;
}

unsigned kind_without(const struct weir_gate *g, uint32_t n, unsigned class)
{
	const struct node *node = &g->nodes[n];
	unsigned has = 0;

	if (!g->above || g->order != WEIR_FAIR)
		return 0;
	if (!(node->flags & NODE_KINDS))
		return KIND_ALL & ~kind_bits(node, 0);
	for (unsigned q = 0; q < KIND_QUEUES; q++)
		if (g->apart[n].may[class] >> q & 1)
			has |= kind_bits(node, q);
	return KIND_ALL & ~has;
}

void kind_before(struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot)
{
	struct node *node = &g->nodes[n];

	node->reserved = limits_reserved(&node->limits, r);
	if (slot < NODE_PRIORITIES && node->profile)
		profile_look(node->profile, r);
}

/* ---- check the heads */

struct kind_look {
	struct stand s;
	struct node *node;
	struct node_apart *apart;
	uint64_t refused; /* buckets that have refused a head of data: they refuse younger ones,
	                     too */
	uint64_t passed;  /* those of them that refuse a head which control has gone before already:
	                     they refuse younger control, too */
	bool before;      /* the head that is checked is such a one */
	weir_time seen;
	weir_time wake; /* earliest time at which the result of the check changes */
};

static void kind_wake(struct kind_look *look, weir_time at)
{
	if (at < look->wake)
		look->wake = at;
}

/* Return true if n buckets from `from` on all admit r. If not *ret_when is when they do, or WEIR_NEVER if an older
 * head has to pass first. */
static bool kind_admits(struct kind_look *look, unsigned from, unsigned n, const struct weir_req *r,
	weir_time *ret_when)
{
	const struct limits *l = &look->node->limits;
	bool data = kind_of(r) != KIND_CONTROL, older = false;
	weir_time when = 0;

	for (unsigned i = from; i < from + n; i++) {
		const struct bucket *b = &l->b[i];
		int64_t cost = limits_cost(r, b->unit);

		if (!limits_counts(b, r) || cost == 0)
			continue;
		weir_time at = limits_later(l->stamp, bucket_wait(b, cost));

		older |= (data ? look->refused : look->passed) >> i & 1;
		if (at > look->s.at && data) {
			look->refused |= UINT64_C(1) << i;
			look->passed |= (uint64_t)look->before << i;
			kind_wake(look, at); /* from then on it does not refuse the others */
		}
		when = at > when ? at : when;
	}
	*ret_when = older ? WEIR_NEVER : when;
	return !older && when <= look->s.at;
}

/* Return true if the leaf's own hold buckets and tokens admit r, else false and in *ret_when until when not, and in
 * *ret_state what it waits for. */
static bool kind_passes(
	struct kind_look *look, const struct weir_req *r, weir_time *ret_when, uint8_t *ret_state)
{
	const struct limits *l = &look->node->limits;

	*ret_state = NODE_HELD;
	if (!kind_admits(look, 0, l->n_hold, r, ret_when))
		return false;
	*ret_state = 0;
	if (!l->n_l || kind_admits(look, l->l, l->n_l, r, ret_when))
		return true;
	weir_time reserved = limits_reserved(l, r);

	*ret_when = reserved < *ret_when ? reserved : *ret_when;
	if (*ret_when <= look->s.at)
		return true;
	*ret_state = NODE_TOKENS;
	return false;
}

/* (By the buckets themselves: when the leaf was checked last must not change what passes.) */
static unsigned kind_held(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct kind_look look = {.s = stand_at(g, now, false),
		.node = &g->nodes[n],
		.apart = &g->apart[n],
		.wake = WEIR_NEVER};
	unsigned stopped = 0, held = 0, first = kind_first(g, n);

	for (uint32_t p = n; g->above && p != WEIR_ROOT;) {
		p = g->nodes[p].parent;
		stopped |= above_stopped(g, p, NODE_REST, now);
	}
	for (unsigned i = 0; i < KIND_CONTROL; i++) {
		unsigned q = first ^ i;
		const struct weir_req *r = kind_front(g, n, q);
		weir_time when;
		uint8_t state;

		if (r && (!kind_passes(&look, r, &when, &state) ||
				 (stopped & kind_bits(look.node, q))))
			held |= 1u << q;
	}
	return held;
}

/* Note that the head of queue q may pass in the class REST, and in which better classes, now or later. */
static void kind_better(struct kind_look *look, unsigned q, const struct weir_req *r)
{
	const struct node *node = look->node;
	weir_time reserved = limits_reserved(&node->limits, r), fits = 0;

	look->apart->may[WEIR_CLASS_REST] |= (uint8_t)(1u << q);
	if (reserved <= look->seen)
		look->apart->may[WEIR_CLASS_RESERVED] |= (uint8_t)(1u << q);
	else if (reserved < WEIR_NEVER)
		kind_wake(look, limits_later(reserved, TIMER_COARSE * TIMER_TICK - 1) &
					-(weir_time)(TIMER_COARSE * TIMER_TICK));
	if (node->priority == NODE_NO_PRIORITY)
		return;
	if (node->profile) {
		profile_look(node->profile, r);
		fits = node->profile->fits;
	}
	if (fits <= look->s.at)
		look->apart->may[WEIR_CLASS_PRIORITY] |= (uint8_t)(1u << q);
	else
		kind_wake(look, fits);
}

static void kind_look_one(struct kind_look *look, uint32_t n, unsigned q)
{
	const struct weir_req *r = kind_front(look->s.g, n, q);
	const struct weir_req *control = kind_front(look->s.g, n, KIND_CONTROL);
	weir_time when;
	uint8_t state;

	if (!r) {
		stats_state(look->s.g, n, q, 0, look->s.now);
		return;
	}
	look->before =
		q != KIND_CONTROL && (look->apart->passed >> q & 1) && kind_older(r, control);
	(void)kind_passes(look, r, &when, &state);
	stats_state(look->s.g, n, q, state, look->s.now);
	if (state && q != KIND_CONTROL && control && control->submitted <= look->s.at)
		look->apart->held |= (uint8_t)(1u << q);
	if (state)
		kind_wake(look, when);
	else
		kind_better(look, q, r);
}

/* Let the leaf wait in the lane of a slot if it has a head that may pass there. */
static void kind_stand(const struct kind_look *look, uint32_t n, unsigned slot)
{
	unsigned class = node_class(slot);
	const struct weir_req *head = kind_head(look->s.g, n, class, KIND_ALL);

	if (head)
		stand_enter_as(&look->s, n, look->node, slot, head);
}

void kind_look(struct stand s, uint32_t n, struct node *node, weir_time seen)
{
	struct kind_look look = {
		.s = s, .node = node, .apart = &s.g->apart[n], .seen = seen, .wake = WEIR_NEVER};
	unsigned first = kind_first(s.g, n);

	for (unsigned c = 0; c < 3; c++)
		look.apart->may[c] = 0;
	kind_look_one(&look, n, first);
	kind_look_one(&look, n, first ^ KIND_WRITE);
	kind_look_one(&look, n, KIND_CONTROL);
	timer_set(&s.g->timer, n, look.wake);
	kind_stand(&look, n, NODE_REST);
	if (node_lane(s.g, node->parent, NODE_RESERVED))
		kind_stand(&look, n, NODE_RESERVED);
	if (node->priority != NODE_NO_PRIORITY)
		kind_stand(&look, n, node->priority);
}
