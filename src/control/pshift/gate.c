/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pshift/gate.h"
#include "base/array.h"
#include "control/pshift/facts.h"
#include "wire/peer.h"
#include <errno.h>
#include <stdlib.h>

/* A bucket that only grants fill holds any number of tokens (2^52, as a gate's bucket). */
#define BUCKET_MAX 4e15
/* Capacity until it is known: more than any resource has, so that it limits no reservation. */
#define CAPACITY_UNKNOWN 1e9 /* tokens a second */

/* ---- a look */

/* Give the gate the grants that were gathered. */
static void flush_grants(struct pshift_gate_server *s)
{
	if (s->n_knobs && weir_gate_set(s->site->gate, s->site->ops->now(s->site), s->knobs,
				  s->n_knobs, NULL) < 0)
		s->grant_failed = true;
	s->n_knobs = 0;
}

static void add_grant(
	struct pshift_gate_server *s, weir_node node, enum weir_knob_kind kind, int64_t tokens)
{
	if (s->n_knobs == PSHIFT_GATE_KNOBS)
		flush_grants(s);
	/* Exact: whole tokens, of which a double holds 2^53. */
	s->knobs[s->n_knobs++] =
		(struct weir_knob){.node = node, .kind = kind, .value = (double)tokens};
}

static void grant(void *arg, size_t index, int64_t r, int64_t l)
{
	struct pshift_gate_server *s = arg;
	const struct pshift_gate_bucket *b = &s->buckets[index];

	if (!b->here)
		return;
	if (r && !b->new_r)
		add_grant(s, b->node, WEIR_KNOB_RGRANT, r);
	if (l && b->limited && !b->new_l)
		add_grant(s, b->node, WEIR_KNOB_LGRANT, l);
}

static void send_message(void *arg, const struct lease_message *m)
{
	struct pshift_gate_server *s = arg;
	uint8_t *frame = malloc(LEASE_FRAME(m->n));

	if (frame)
		s->site->ops->send(s->site, frame, lease_write(frame, m));
}

/* Return how many requests came to the bucket since it was last counted. */
static uint64_t count_bucket(struct pshift_gate_server *s, weir_time now, size_t i)
{
	struct pshift_gate_bucket *b = &s->buckets[i];
	struct cluster_server_load *to = &s->loads[i];
	struct weir_gate_stats st = {0};
	uint64_t before = to->arrived;

	if (b->here)
		weir_gate_get_stats(s->site->gate, now, b->node, &st);
	b->previous = to->served;
	to->arrived = b->arrivals + st.arrivals;
	to->served = b->dispatched + st.dispatched;
	to->queued = st.queued;
	to->inside = st.in_flight;
	to->waited = b->waited;
	for (int k = 0; k < WEIR_CAUSES; k++)
		to->waited += st.wait_ns[k];
	return to->arrived - before;
}

/* A bucket that rests is counted, and woken, if requests came to the gate that came to none of the others. */
static void count(struct pshift_gate_server *s, weir_time now)
{
	const uint8_t *resting = pshift_server_resting(s->server);
	struct weir_gate_totals all;
	uint64_t came = 0;

	weir_gate_get_totals(s->site->gate, now, &all);
	for (size_t i = 0; i < s->n; i++)
		if (!resting || !resting[i])
			came += count_bucket(s, now, i);
	if (resting && (s->recount || came != all.submitted - s->submitted))
		for (size_t i = 0; i < s->n; i++)
			if (resting[i] && count_bucket(s, now, i))
				pshift_server_wake(s->server, i);
	s->submitted = all.submitted;
	s->recount = false;
}

/* Close a period: compute what was served in it. */
static void close_period(struct pshift_gate_server *s, uint64_t next)
{
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_gate_bucket *b = &s->buckets[i];

		b->last = s->loads[i].served - b->mark;
		b->mark = b->previous;
	}
	s->last_period = s->period;
	s->period = next;
}

static double capacity(const struct pshift_gate_server *s)
{
	double learned = s->site->ops->capacity(s->site, WEIR_UNIT_REQUESTS);

	return s->stated > 0 ? s->stated : learned > 0 ? learned : CAPACITY_UNKNOWN;
}

static void tell_error(struct pshift_gate_server *s, const char *why)
{
	s->site->ops->tell(
		s->site, SITE_ERROR, "pshift", (struct site_field[]){{"why", why, 0}, {0}});
}

void pshift_gate_look(struct pshift_gate_server *s, weir_time now)
{
	struct site *site = s->site;
	weir_time before = site->ops->cpu(site);
	struct pshift_server_status st;
	int r;

	s->activity = site->ops->activity(site);
	s->looked = now;
	s->grant_failed = false;
	count(s, now);
	r = pshift_server_look(s->server, now, s->loads, capacity(s));
	flush_grants(s);
	if (s->grant_failed)
		r = -EINVAL;
	if (r < 0)
		tell_error(s, r == -ENOMEM ? "out of memory" : "the gate refused a grant");
	pshift_server_status(s->server, &st);
	s->interval = st.interval;
	if (st.period != s->period)
		close_period(s, st.period);
	s->looks++;
	s->busy += site->ops->cpu(site) - before;
	site->sleeps = false;
}

static void look_now(struct pshift_gate_server *s)
{
	pshift_gate_look(s, s->site->ops->now(s->site));
	s->site->ops->wake(s->site, pshift_server_due(s->server));
}

/* Return true if no request arrived or completed since the last look, none waits, and an interval
 * has not passed. */
static bool is_idle(const struct pshift_gate_server *s, weir_time now)
{
	const struct site *site = s->site;

	if (site->ops->activity(site) != s->activity || site->ops->busy(site))
		return false;
	return now - s->looked < s->interval;
}

/* The first requests after an idle time found tokens at the gate; those behind them need more at
 * once. */
static weir_time step(void *c, weir_time now)
{
	struct pshift_gate_server *s = c;

	if (!s->on)
		return WEIR_NEVER;
	if (is_idle(s, now)) {
		s->site->sleeps = true;
		return s->looked + s->interval;
	}
	pshift_gate_look(s, s->site->ops->now(s->site));
	return pshift_server_due(s->server);
}

static void hear(void *c, const struct controller_news *news)
{
	struct pshift_gate_server *s = c;

	if (!s->on)
		return;
	pshift_server_obeyed(s->server, news->obeyed);
	if (news->kind == CONTROLLER_MESSAGE) {
		/* Count requests since the last look before a cap falls: the use that is
		 * acknowledged with it is all that others leave to this server. */
		pshift_gate_look(s, s->site->ops->now(s->site));
		if (pshift_server_receive(s->server, s->site->ops->now(s->site), news->message) !=
			PEER_TAKEN)
			return;
	} else if (news->kind == CONTROLLER_MET) {
		pshift_server_met(s->server);
	} else {
		pshift_server_lost(s->server, news->from);
	}
	look_now(s);
}

/* ---- before a swap */

static void plan_free(struct pshift_plan *p)
{
	free(p->at);
	*p = (struct pshift_plan){0};
}

static int make_server(struct pshift_gate_server *s, const struct controller_version *v)
{
	struct cluster_server_config config = {.name = s->site->name,
		.cluster = peer_hash(v->cluster.name),
		.length = v->cluster.period,
		.rests = true,
		.grant = grant,
		.send = send_message,
		.arg = s};

	while (!config.instance)
		s->site->ops->random(s->site, &config.instance, sizeof(config.instance));
	return pshift_server_new(&config, &s->server);
}

static int make(struct site *site, void **ret)
{
	struct pshift_gate_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->site = site;
	*ret = s;
	return 0;
}

static int plan_room(struct pshift_gate_server *s, size_t n)
{
	size_t room = s->n + n + 1;

	if (room <= s->room)
		return 0;
	if (array_resize(&s->buckets, room) < 0 || array_resize(&s->loads, room) < 0)
		return -ENOMEM;
	s->room = room;
	return 0;
}

struct want {
	uint64_t id;
	int64_t reserved, limit; /* static parts; LEASE_NO_LIMIT */
	int64_t reservation;
};

/* Return false if the tenant has no bucket here. */
static bool want_of(const struct controller_version *v, size_t i, struct want *ret)
{
	struct controller_tenant t = v->tenant(v, i);
	struct controller_tokens all;

	if (!t.is_leaf)
		return false;
	all = v->tokens(v, i);
	if (!all.here)
		return false;
	*ret = (struct want){.id = peer_hash(t.path),
		.reserved = all.reservation / (int64_t)all.parts,
		.limit = all.limit == INT64_MAX ? LEASE_NO_LIMIT : all.limit / (int64_t)all.parts,
		.reservation = all.reservation};
	return true;
}

static int plan_begin(struct pshift_gate_server *s, const struct controller_version *v)
{
	plan_free(&s->plan);
	s->plan.n = v->n;
	s->plan.at = calloc(v->n + 1, sizeof(*s->plan.at));
	if (!s->plan.at)
		return -ENOMEM;
	return s->server ? 0 : make_server(s, v);
}

static int prepare(void *c, const struct controller_version *v, size_t from, size_t to)
{
	static const struct weir_bucket_spec claims = {
		WEIR_RTOKENS, WEIR_UNIT_REQUESTS, 0, 0, BUCKET_MAX};
	static const struct weir_bucket_spec rights = {
		WEIR_LTOKENS, WEIR_UNIT_REQUESTS, 0, 0, BUCKET_MAX};
	struct pshift_gate_server *s = c;
	int r = from == 0 ? plan_begin(s, v) : 0;
	struct want w;

	for (size_t i = from; r == 0 && i < to; i++) {
		s->plan.at[i] = -1;
		if (!want_of(v, i, &w))
			continue;
		s->plan.new += pshift_server_find(s->server, w.id) < 0;
		v->rules[i].bucket = claims;
		if (w.limit != LEASE_NO_LIMIT)
			v->rules[i].second = rights;
	}
	if (r == 0 && to == v->n)
		r = plan_room(s, s->plan.new);
	return r;
}

/* ---- tenant by tenant */

static void stats_of(struct pshift_gate_server *s, const struct pshift_gate_bucket *b,
	struct weir_gate_stats *ret)
{
	*ret = (struct weir_gate_stats){0};
	if (b->here)
		weir_gate_get_stats(s->site->gate, s->site->ops->now(s->site), b->node, ret);
}

/* Carry the counters of its old node, which still exists, over to the next. */
static void leave_node(struct pshift_gate_server *s, struct pshift_gate_bucket *b)
{
	struct weir_gate_stats st;

	s->recount = true;
	stats_of(s, b, &st);
	b->arrivals += st.arrivals;
	b->dispatched += st.dispatched;
	for (int k = 0; k < WEIR_CAUSES; k++)
		b->waited += st.wait_ns[k];
	b->here = b->limited = false;
}

/* Subtract what the node counted before this bucket had it. */
static void enter_node(struct pshift_gate_server *s, struct pshift_gate_bucket *b, weir_node node)
{
	struct weir_gate_stats st;

	s->recount = true;
	b->here = true;
	b->node = node;
	b->new_r = b->new_l = true;
	stats_of(s, b, &st);
	b->arrivals -= st.arrivals;
	b->dispatched -= st.dispatched;
	for (int k = 0; k < WEIR_CAUSES; k++)
		b->waited -= st.wait_ns[k];
}

/* Add a bucket. Return its index, or -ENOMEM. */
static int64_t add_bucket(struct pshift_gate_server *s, const struct want *w, weir_node node)
{
	struct cluster_server_bucket add = {w->id, w->reserved, w->limit, w->reservation};
	struct pshift_gate_bucket new = {
		.here = true, .node = node, .new_r = true, .new_l = true, .tenant = PSHIFT_NEXT};
	struct weir_gate_stats st;
	int64_t at;

	stats_of(s, &new, &st);
	new.mark = st.dispatched;
	at = pshift_server_add(s->server, &add, st.dispatched);
	if (at < 0 || (size_t)at < s->n)
		return at;
	s->buckets[at] = new;
	s->loads[at] =
		(struct cluster_server_load){.arrived = st.arrivals, .served = st.dispatched};
	s->n = (size_t)at + 1;
	return at;
}

/* Get the tokens at the gate as the server knows them, less those spent since the last look. */
static void unspent(struct pshift_gate_server *s, size_t at, struct pshift_server_tokens *ret)
{
	const struct pshift_gate_bucket *b = &s->buckets[at];
	struct weir_gate_stats st;
	int64_t spent;

	stats_of(s, b, &st);
	spent = (int64_t)(b->dispatched + st.dispatched - s->loads[at].served);
	pshift_server_tokens(s->server, at, ret);
	ret->l -= spent > ret->r ? spent - ret->r : 0;
	ret->r -= spent < ret->r ? spent : ret->r;
}

/* Grant a new node all tokens that the server assumes at the gate. */
static void grant_new(struct pshift_gate_server *s, size_t at)
{
	struct pshift_gate_bucket *b = &s->buckets[at];
	struct pshift_server_tokens t;
	bool r = b->new_r, l = b->new_l;

	if (!r && !l)
		return;
	unspent(s, at, &t);
	b->new_r = b->new_l = false;
	grant(s, at, r ? t.r : 0, l ? t.l : 0);
	flush_grants(s);
	if (s->on) /* a limit that is new may want tokens soon */
		s->site->ops->wake(s->site, pshift_server_due(s->server));
}

static void leave_id(struct pshift_gate_server *s, uint64_t id)
{
	int64_t at = pshift_server_find(s->server, id);

	if (at >= 0 && s->buckets[at].here)
		leave_node(s, &s->buckets[at]);
}

static void take_tenant(void *c, const struct controller_version *v, size_t i, weir_node node)
{
	struct pshift_gate_server *s = c;
	struct pshift_gate_bucket *b;
	struct want w;
	int64_t at;

	if (!want_of(v, i, &w)) {
		if (v->tenant(v, i).is_leaf)
			leave_id(s, peer_hash(v->tenant(v, i).path));
		return;
	}
	at = add_bucket(s, &w, node);
	if (at < 0) {
		tell_error(s, "out of memory: a tenant has no tokens");
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

static void leave(void *c, const struct controller_version *v, size_t i)
{
	struct pshift_gate_server *s = c;

	if (s->server)
		leave_id(s, peer_hash(v->tenant(v, i).path));
}

/* ---- after it */

static void begin(void *c, const struct controller_version *v)
{
	struct pshift_gate_server *s = c;

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
	s->recount = true;
	s->stated = v->capacity[WEIR_UNIT_REQUESTS];
	s->on = true;
	look_now(s);
}

/* The server restarts when it is switched on again: it does not know the requests served
 * meanwhile. */
static void end(void *c)
{
	struct pshift_gate_server *s = c;

	pshift_server_free(s->server);
	s->server = NULL;
	s->on = s->site->sleeps = false;
	s->n = 0;
}

static void destroy(void *c)
{
	struct pshift_gate_server *s = c;

	plan_free(&s->plan);
	pshift_server_free(s->server);
	free(s->buckets);
	free(s->loads);
	free(s);
}

/* ---- facts */

static void look_bucket(void *arg, size_t i, bool more, struct pshift_facts_bucket *ret)
{
	const struct pshift_gate_server *s = arg;
	const struct pshift_gate_bucket *b = &s->buckets[i];
	struct weir_gate_stats st = {0};

	*ret = (struct pshift_facts_bucket){.here = b->here && b->tenant != PSHIFT_NEXT,
		.active = s->loads[i].arrived > 0,
		.tenant = (uint32_t)b->tenant,
		.last = b->last};
	if (!more)
		return;
	weir_gate_get_stats(s->site->gate, s->site->ops->now(s->site), b->node, &st);
	/* requests that passed since the last look belong to this period, too */
	ret->more = (int64_t)(b->dispatched + st.dispatched - s->loads[i].served);
}

static void look_at_gate(
	const void *c, const struct facts_site *site, bool tenants, bool state, struct facts *ret)
{
	const struct pshift_gate_server *s = c;
	struct pshift_facts_of of = {.server = s->server,
		.capacity = capacity(s),
		.last_period = s->last_period,
		.looks = s->looks,
		.busy = s->busy,
		.bucket = look_bucket,
		.arg = (void *)s,
		.n = s->n,
		.unlisted = !tenants};

	if (s->on)
		pshift_facts.fill(&of, site, ret);
}

const struct controller pshift_controller = {
	.name = "pshift",
	.summary = "keeps a tenant's min and max over all servers of a cluster, with tokens that "
		   "move with demand",
	.keys = pshift_keys,
	.in_cluster = true,
	.lead = &pshift_lead,
	.server = &pshift_server,
	.check = pshift_keys_check,
	.new = make,
	.free = destroy,
	.prepare = prepare,
	.take = take_tenant,
	.leave = leave,
	.begin = begin,
	.end = end,
	.step = step,
	.hear = hear,
	.facts = &pshift_facts,
	.look = look_at_gate,
};
