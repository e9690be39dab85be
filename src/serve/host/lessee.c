/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lessee: see lessee.h.
 *
 * METHOD  A bucket's tokens are two buckets of its leaf that only grants fill, one of R-tokens and, if it
 *         has a limit, one of L-tokens. A swap of the policy puts them into the gate with the new tree, and
 *         a leaf that stays keeps what it holds. The server is told of each leaf as soon as that has its knobs, and
 *         grants it what it lacks.
 *         While nothing comes and goes at the resource no token is spent: then it is looked at once an
 *         interval, and not every few milliseconds; and in the round in which something comes.
 */
#include "base/container.h"
#include "serve/host/lessee-impl.h"
#include "serve/loop/log.h"
#include "serve/host/peer-key.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a resource can do while nobody knows: more than any can, so that no reservation is kept from it. */
#define CAPACITY_UNKNOWN 1e9 /* tokens a second */

/* ---- a look */

/* Exact: whole tokens, of which a double holds 2^53. */
static void grant(void *arg, size_t index, int64_t r, int64_t l)
{
	struct lessee *s = arg;
	const struct lessee_bucket *b = &s->buckets[index];

	if (!b->here)
		return;
	if (r && !b->new_r)
		s->knobs[s->n_knobs++] = (struct weir_knob){
			.node = b->node, .kind = WEIR_KNOB_RGRANT, .value = (double)r};
	if (l && b->limited && !b->new_l)
		s->knobs[s->n_knobs++] = (struct weir_knob){
			.node = b->node, .kind = WEIR_KNOB_LGRANT, .value = (double)l};
}

static void send_message(void *arg, const struct lease_message *m)
{
	struct lessee *s = arg;
	uint8_t *frame = s->post ? malloc(LEASE_FRAME(m->n)) : NULL;

	if (frame)
		s->post(s->post_arg, frame, lease_write(frame, m));
}

static void count(struct lessee *s, weir_time now)
{
	for (size_t i = 0; i < s->n; i++) {
		struct lessee_bucket *b = &s->buckets[i];
		struct pshift_server_load *to = &s->loads[i];
		struct weir_gate_stats st = {0};

		if (b->here)
			weir_gate_get_stats(s->resource->gate, now, b->node, &st);
		b->previous = to->served;
		to->arrived = b->arrivals + st.arrivals;
		to->served = b->dispatched + st.dispatched;
		to->queued = st.queued;
		to->inside = st.in_flight;
		to->waited = b->waited;
		for (int k = 0; k < WEIR_CAUSES; k++)
			to->waited += st.wait_ns[k];
	}
}

/* What came to the period that is over. */
static void close_period(struct lessee *s, uint64_t next)
{
	for (size_t i = 0; i < s->n; i++) {
		struct lessee_bucket *b = &s->buckets[i];

		b->last = s->loads[i].served - b->mark;
		b->mark = b->previous;
	}
	s->last_period = s->period;
	s->period = next;
}

double lessee_capacity(const struct resource *r)
{
	double stated = r->spec.capacity[WEIR_UNIT_REQUESTS].per_second;
	double learned = r->capacity.rate[WEIR_UNIT_REQUESTS];

	return stated > 0 ? stated : learned > 0 ? learned : CAPACITY_UNKNOWN;
}

void lessee_look_at(struct lessee *s, weir_time now)
{
	struct resource *r = s->resource;
	weir_time before = loop_clock();
	struct pshift_server_status st;
	int rc;

	s->activity = resource_activity(r);
	s->looked = now;
	s->n_knobs = 0;
	count(s, now);
	rc = pshift_server_look(s->server, now, s->loads, lessee_capacity(r));
	if (s->n_knobs && weir_gate_set(r->gate, now, s->knobs, s->n_knobs, NULL) < 0)
		rc = -EINVAL;
	if (rc < 0)
		log_event(
			LOG_LEVEL_ERROR, "pshift", "resource", r->name, "why", strerror(-rc), NULL);
	pshift_server_status(s->server, &st);
	s->interval = st.interval;
	if (st.period != s->period)
		close_period(s, st.period);
	s->looks++;
	s->busy += loop_clock() - before;
}

static void look_now(struct lessee *s)
{
	weir_time due;

	lessee_look_at(s, resource_policy_now(s->resource));
	due = pshift_server_due(s->server);
	if (!s->resource->started)
		return;
	loop_set(s->resource->loop, &s->timer, due);
	s->asleep = false;
	if (!s->turning)
		loop_turn_add(s->resource->loop, &s->turn);
	s->turning = true;
}

/* Nothing came or went since the last look, nothing waits, and an interval has not passed. */
static bool is_idle(const struct lessee *s, weir_time now)
{
	if (resource_activity(s->resource) != s->activity || resource_busy(s->resource))
		return false;
	return now - s->looked < s->interval;
}

static void due(struct loop_timer *t, weir_time now)
{
	struct lessee *s = container_of(t, struct lessee, timer);

	s->asleep = is_idle(s, now);
	if (s->asleep)
		loop_set(s->resource->loop, t, s->looked + s->interval);
	else
		look_now(s);
}

/* The first requests of a limit that was idle had tokens at the gate; those behind them want theirs. */
static bool wake(struct loop_turn *t, weir_time now)
{
	struct lessee *s = container_of(t, struct lessee, turn);

	if (s->asleep && !is_idle(s, now))
		look_now(s);
	return false;
}

void lessee_receive(struct resource *r, const struct lease_message *m)
{
	struct lessee *s = r->lessee;

	if (!s || !s->on)
		return;
	/* What passed since the last look must be counted before a cap falls: what is acknowledged with it
	 * as used is all that the others leave it. */
	lessee_look_at(s, resource_policy_now(r));
	if (pshift_server_receive(s->server, resource_policy_now(r), m) == PEER_TAKEN)
		look_now(s);
}

void lessee_met(struct resource *r)
{
	struct lessee *s = r->lessee;

	if (!s || !s->on)
		return;
	pshift_server_met(s->server);
	look_now(s);
}

void lessee_lost(struct resource *r, uint64_t controller)
{
	struct lessee *s = r->lessee;

	if (!s || !s->on)
		return;
	pshift_server_lost(s->server, controller);
	look_now(s);
}

void lessee_connect(struct resource *r, lessee_post *post, void *arg)
{
	struct lessee *s = r->lessee;

	if (!s)
		return;
	s->post = post;
	s->post_arg = arg;
}

/* ---- before a swap */

static void plan_free(struct lessee_plan *p)
{
	free(p->at);
	*p = (struct lessee_plan){0};
}

static int make_server(struct lessee *s, const struct weir_policy *p)
{
	struct pshift_server_config config = {.name = s->resource->name,
		.cluster = peer_hash(p->cluster.name),
		.length = p->cluster.period,
		.grant = grant,
		.send = send_message,
		.arg = s};

	while (!config.instance)
		peer_key_random(&config.instance, sizeof(config.instance));
	return pshift_server_new(&config, &s->server);
}

static int make(struct resource *r)
{
	struct lessee *s = r->lessee;

	if (s)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->resource = r;
	s->timer.due = due;
	s->turn.turn = wake;
	r->lessee = s;
	return 0;
}

static int plan_room(struct lessee *s, size_t n)
{
	size_t room = s->n + n + 1;
	void *buckets, *loads, *knobs;

	if (room <= s->room)
		return 0;
	buckets = realloc(s->buckets, room * sizeof(*s->buckets));
	if (buckets)
		s->buckets = buckets;
	loads = realloc(s->loads, room * sizeof(*s->loads));
	if (loads)
		s->loads = loads;
	knobs = realloc(s->knobs, 2 * room * sizeof(*s->knobs));
	if (knobs)
		s->knobs = knobs;
	if (!buckets || !loads || !knobs)
		return -ENOMEM;
	s->room = room;
	return 0;
}

struct want {
	uint64_t id;
	int64_t reserved, limit; /* static parts; LEASE_NO_LIMIT */
	int64_t reservation;
};

/* False: the tenant has no bucket here. */
static bool want_of(const struct control_version *v, size_t i, struct want *ret)
{
	const struct weir_policy *p = v->policy;
	int64_t parts = (int64_t)policy_cluster_parts(p, i);
	struct policy_cluster_tokens t;

	if (p->tenants[i].first_child >= 0 || !policy_cluster_at(p, i, v->spec->name))
		return false;
	policy_cluster_tokens(p, i, v->bounds, &t);
	*ret = (struct want){.id = peer_hash(p->tenants[i].path),
		.reserved = t.reservation / parts,
		.limit = t.limit == INT64_MAX ? LEASE_NO_LIMIT : t.limit / parts,
		.reservation = t.reservation};
	return true;
}

static int plan_begin(struct resource *r, const struct control_version *v)
{
	int rc = make(r);
	struct lessee *s = r->lessee;

	if (rc < 0)
		return rc;
	plan_free(&s->plan);
	s->plan.n = v->policy->n_tenants;
	s->plan.at = calloc(s->plan.n + 1, sizeof(*s->plan.at));
	if (!s->plan.at)
		return -ENOMEM;
	return s->server ? 0 : make_server(s, v->policy);
}

static int lessee_prepare(
	struct resource *r, const struct control_version *v, size_t from, size_t to)
{
	static const struct weir_bucket_spec claims = {
		WEIR_RTOKENS, WEIR_UNIT_REQUESTS, 0, 0, POLICY_BUCKET_MAX};
	static const struct weir_bucket_spec rights = {
		WEIR_LTOKENS, WEIR_UNIT_REQUESTS, 0, 0, POLICY_BUCKET_MAX};
	int rc = from == 0 ? plan_begin(r, v) : 0;
	struct lessee *s = r->lessee;
	struct want w;

	for (size_t i = from; rc == 0 && i < to; i++) {
		s->plan.at[i] = -1;
		if (!want_of(v, i, &w))
			continue;
		s->plan.new += pshift_server_find(s->server, w.id) < 0;
		v->rules[i].bucket = claims;
		if (w.limit != LEASE_NO_LIMIT)
			v->rules[i].second = rights;
	}
	if (rc == 0 && to == v->policy->n_tenants)
		rc = plan_room(s, s->plan.new);
	return rc;
}

/* ---- tenant by tenant */

static void stats_of(struct lessee *s, const struct lessee_bucket *b, struct weir_gate_stats *ret)
{
	*ret = (struct weir_gate_stats){0};
	if (b->here)
		weir_gate_get_stats(s->resource->gate, s->resource->now, b->node, ret);
}

/* Counters go on where those of its last node, which is still there, ended. */
static void leave_node(struct lessee *s, struct lessee_bucket *b)
{
	struct weir_gate_stats st;

	stats_of(s, b, &st);
	b->arrivals += st.arrivals;
	b->dispatched += st.dispatched;
	for (int k = 0; k < WEIR_CAUSES; k++)
		b->waited += st.wait_ns[k];
	b->here = b->limited = false;
}

/* The other way round: what the node counted before is not this bucket's. */
static void enter_node(struct lessee *s, struct lessee_bucket *b, weir_node node)
{
	struct weir_gate_stats st;

	b->here = true;
	b->node = node;
	b->new_r = b->new_l = true;
	stats_of(s, b, &st);
	b->arrivals -= st.arrivals;
	b->dispatched -= st.dispatched;
	for (int k = 0; k < WEIR_CAUSES; k++)
		b->waited -= st.wait_ns[k];
}

/* Its index, or -ENOMEM. */
static int64_t add_bucket(struct lessee *s, const struct want *w, weir_node node)
{
	struct pshift_server_bucket add = {w->id, w->reserved, w->limit, w->reservation};
	struct lessee_bucket new = {
		.here = true, .node = node, .new_r = true, .new_l = true, .tenant = LESSEE_NEXT};
	struct weir_gate_stats st;
	int64_t at;

	stats_of(s, &new, &st);
	new.mark = st.dispatched;
	at = pshift_server_add(s->server, &add, st.dispatched);
	if (at < 0 || (size_t)at < s->n)
		return at;
	s->buckets[at] = new;
	s->loads[at] = (struct pshift_server_load){.arrived = st.arrivals, .served = st.dispatched};
	s->n = (size_t)at + 1;
	return at;
}

/* What the server knows the gate to hold, less what was spent of it since the last look. */
static void unspent(struct lessee *s, size_t at, struct pshift_server_tokens *ret)
{
	const struct lessee_bucket *b = &s->buckets[at];
	struct weir_gate_stats st;
	int64_t spent;

	stats_of(s, b, &st);
	spent = (int64_t)(b->dispatched + st.dispatched - s->loads[at].served);
	pshift_server_tokens(s->server, at, ret);
	ret->l -= spent > ret->r ? spent - ret->r : 0;
	ret->r -= spent < ret->r ? spent : ret->r;
}

/* The gate has none of what the server knows it to hold. */
static void grant_new(struct lessee *s, size_t at)
{
	struct lessee_bucket *b = &s->buckets[at];
	struct pshift_server_tokens t;
	bool r = b->new_r, l = b->new_l;

	if (!r && !l)
		return;
	unspent(s, at, &t);
	b->new_r = b->new_l = false;
	s->n_knobs = 0;
	grant(s, at, r ? t.r : 0, l ? t.l : 0);
	if (s->n_knobs)
		weir_gate_set(s->resource->gate, s->resource->now, s->knobs, s->n_knobs, NULL);
	if (s->on && s->timer.set) /* a limit that is new may want tokens soon */
		loop_set(s->resource->loop, &s->timer, pshift_server_due(s->server));
}

static void leave_id(struct lessee *s, uint64_t id)
{
	int64_t at = pshift_server_find(s->server, id);

	if (at >= 0 && s->buckets[at].here)
		leave_node(s, &s->buckets[at]);
}

static void lessee_take(
	struct resource *r, const struct control_version *v, size_t i, weir_node node)
{
	struct lessee *s = r->lessee;
	struct lessee_bucket *b;
	struct want w;
	int64_t at;

	if (!want_of(v, i, &w)) {
		if (v->policy->tenants[i].first_child < 0)
			leave_id(s, peer_hash(v->policy->tenants[i].path));
		return;
	}
	at = add_bucket(s, &w, node);
	if (at < 0) {
		log_event(LOG_LEVEL_ERROR, "pshift", "resource", r->name, "why",
			"out of memory: a tenant has no tokens", NULL);
		return;
	}
	b = &s->buckets[at];
	if (b->here && b->node != node)
		leave_node(s, b);
	if (!b->here)
		enter_node(s, b, node);
	if (w.limit != LEASE_NO_LIMIT && !b->limited)
		b->new_l = true;
	b->limited = w.limit != LEASE_NO_LIMIT;
	if (v->next)
		s->plan.at[i] = at;
	else
		b->tenant = i;
	grant_new(s, (size_t)at);
}

static void lessee_leave(struct resource *r, const struct control_version *v, size_t i)
{
	if (r->lessee->server)
		leave_id(r->lessee, peer_hash(v->policy->tenants[i].path));
}

/* ---- after it */

static void lessee_begin(struct resource *r, const struct weir_resource *spec)
{
	struct lessee *s = r->lessee;

	for (size_t i = 0; i < s->n; i++)
		s->buckets[i].wanted = false;
	for (size_t i = 0; i < s->plan.n; i++) {
		if (s->plan.at[i] < 0)
			continue;
		s->buckets[s->plan.at[i]].wanted = true;
		s->buckets[s->plan.at[i]].tenant = i;
	}
	for (size_t i = 0; i < s->n; i++)
		if (s->buckets[i].here && !s->buckets[i].wanted)
			leave_node(s, &s->buckets[i]);
	plan_free(&s->plan);
	s->on = true;
	look_now(s);
}

static void rest(struct lessee *s)
{
	if (s->timer.set)
		loop_set(s->resource->loop, &s->timer, WEIR_NEVER);
	if (s->turning)
		loop_turn_remove(s->resource->loop, &s->turn);
	s->turning = s->asleep = false;
}

/* It starts anew when it is switched on again: then it knows nothing of what was served meanwhile. */
static void lessee_end(struct resource *r)
{
	struct lessee *s = r->lessee;

	rest(s);
	pshift_server_free(s->server);
	s->server = NULL;
	s->on = false;
	s->n = 0;
}

static void lessee_free(struct resource *r)
{
	struct lessee *s = r->lessee;

	if (!s)
		return;
	rest(s);
	plan_free(&s->plan);
	pshift_server_free(s->server);
	free(s->buckets);
	free(s->loads);
	free(s->knobs);
	free(s);
	r->lessee = NULL;
}

/* ---- the table */

const struct control_ops lessee_ops = {
	.name = "pshift",
	.prepare = lessee_prepare,
	.take = lessee_take,
	.leave = lessee_leave,
	.begin = lessee_begin,
	.end = lessee_end,
	.look = lessee_look,
	.free = lessee_free,
};
