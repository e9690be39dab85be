/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource: the way of a request: arrived, the gate, the back end, finished, done.
 *
 * METHOD  Everything happens in the turn, in batches of 64: requests that the round's events
 *         brought are submitted to the gate in one call, requests that may pass are taken from it
 *         in one call and given to the back end as one list, and requests that the back end
 *         finished (perhaps at once) are reported to the gate in one call. That repeats until no
 *         more may pass, at most PASSES times, so that the sockets do not wait. Between turns only
 *         lists grow, so the front end and the back end may call at any time.
 *         A back end that does requests inside submit (memory, cached pages) never fills a window:
 *         the clients share the time of this thread. If there are several, a turn ends after SHARED
 *         such requests for each of them but one, so that the rest waits in the gate while the
 *         sockets bring more, and the weights act. With more, only clients with more outstanding
 *         would notice the weights; with fewer, a receive and a send serve fewer requests.
 *         The thread never idles to wait for a client that has just been answered: with 32 requests
 *         outstanding, which take it 40 us, the client may need longer than that to send the next,
 *         and that time is the other clients'.
 * COST    A request is linked into two lists and put into two arrays on its way; in addition the
 *         gate's cost, one division for the cost in requests, and one entry in the ring of
 *         latencies.
 */
#include "base/container.h"
#include "serve/back/volumes.h"
#include "serve/resource/impl.h"
#include "serve/resource/tap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH     64
#define PASSES    16 /* 1,024 requests in one turn, then the sockets have theirs */
#define SHARED    32 /* … or so many for each client but one, if they are done at once */
#define HOUSEKEEP (100 * WEIR_MS) /* interval of updates of histograms and capacity */
#define UNDRAINED 4096            /* … or after as many requests */
/* tenants with histograms at once: 9 KiB each, three per tenant */
#define HISTOGRAMS 4096

static enum weir_op gate_op(uint8_t op)
{
	/* A prefetch costs as much as the read. The device makes zeroes, like a trim. */
	static const uint8_t ops[] = {[BACK_READ] = WEIR_READ,
		[BACK_WRITE] = WEIR_WRITE,
		[BACK_FLUSH] = WEIR_FLUSH,
		[BACK_TRIM] = WEIR_TRIM,
		[BACK_ZERO] = WEIR_TRIM,
		[BACK_CACHE] = WEIR_READ,
		[BACK_STATUS] = WEIR_STATUS,
		[BACK_CALL] = WEIR_READ,
		[BACK_CALL_WRITE] = WEIR_WRITE};

	return (enum weir_op)ops[op];
}

/* ---- in */

static void note_place(struct resource *r, const struct back_io *io)
{
	uint64_t end = io->offset + io->length;

	if (r->high && io->offset / BACK_VOLUMES_SIZE != r->low / BACK_VOLUMES_SIZE)
		return; /* another volume */
	if (end > r->high) {
		r->low = r->high ? r->low : io->offset;
		r->high = end;
	}
	if (io->offset < r->low)
		r->low = io->offset;
}

void resource_submit(struct resource *r, struct request *q)
{
	struct client *c = q->client;
	struct resource_count *n = &r->counts[c->node];
	enum weir_op op = gate_op(q->io.op);

	q->gate.user = NULL;
	q->gate.offset = q->io.offset;
	q->gate.tenant = c->node;
	q->gate.op = (uint8_t)op;
	q->gate.requests = weir_policy_cost(&r->spec, op, q->io.length);
	q->gate.bytes = weir_policy_cost_bytes(op, q->io.length);
	q->gate.deadline = 0;
	q->gate.time = 0;
	q->inside = (struct shadow_work){0};
	if (r->estimate)
		q->gate.time = resource_estimate(r, &q->gate);
	else if (r->spec.cost == WEIR_UNIT_TIME)
		q->gate.time = resource_time(r, &q->gate);
	if (n->claim)
		resource_claim_note(r, n->claim, &q->gate);
	n->reads += q->io.op == BACK_READ;
	n->writes += q->io.op == BACK_WRITE;
	n->others += q->io.op > BACK_WRITE;
	n->cost += q->gate.requests;
	c->requests++;
	c->bytes += q->gate.bytes;
	c->in_flight++;
	r->submitted++;
	if (q->io.op <= BACK_WRITE)
		note_place(r, &q->io);
	resource_stir(r);
	request_list_add(&r->arrived, q);
}

void resource_submit_own(struct resource *r, struct request *q)
{
	q->client = &r->own;
	q->gate = (struct weir_req){.user = r, .tenant = WEIR_ROOT};
	q->inside = (struct shadow_work){0};
	q->since = r->now;
	r->own.in_flight++;
	request_list_add(&r->again, q);
}

void resource_pass(struct resource *r, struct request *q)
{
	resource_queue_out(r, &q->gate);
	q->gate.user = r;
	q->since = q->gate.submitted;
	request_list_add(&r->again, q);
}

void resource_again(struct resource *r, struct request *q)
{
	resource_queue_out(r, &q->gate);
	q->gate.user = NULL;
	q->since = q->gate.submitted;
	request_list_add(&r->again, q);
}

static void fail(struct resource *r, struct request *q, int error)
{
	q->io.error = error;
	q->gate.user = r; /* the gate has not seen it */
	q->gate.submitted = q->gate.dispatched = r->now;
	request_list_add(&r->finished, q);
}

/* The gate accepted it. Its wait counts from its first submission, for whichever tenant. */
static void entered(struct resource *r, struct weir_req *q, bool again)
{
	resource_queue_in(r, q);
	if (again && !q->user)
		q->submitted = resource_request(q)->since;
}

/* Queue the requests that the gate accepts. If a node is no longer a leaf, only its requests
 * fail. */
static void submit_batch(
	struct resource *r, weir_time now, struct weir_req **reqs, size_t n, bool again)
{
	if (weir_gate_submit(r->gate, now, reqs, n) == 0) {
		for (size_t i = 0; i < n; i++)
			entered(r, reqs[i], again);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (weir_gate_submit(r->gate, now, &reqs[i], 1) == 0) {
			entered(r, reqs[i], again);
		} else if (reqs[i]->user) {
			resource_shadow_refused(r, reqs[i]);
		} else {
			fail(r, resource_request(reqs[i]), -EIO);
		}
	}
}

static void tap(struct resource *r, weir_time now, const struct request *q)
{
	struct tap_entry e = {.at = now,
		.offset = q->io.offset,
		/* a trim costs no bytes, but a trace has its length */
		.bytes = q->io.op == BACK_STATUS || q->io.op == BACK_FLUSH ? 0
									   : (uint32_t)q->io.length,
		.tenant = (uint16_t)q->client->tenant,
		.op = q->gate.op};

	tap_put(r->tap, &e);
}

/* Append a request to a list for the back end, or call its function. */
static void send_inside(struct resource *r, struct request *q, struct back_io ***end)
{
	r->inside++;
	if (r->stall)
		resource_stall_sent(r, q);
	if (q->io.op >= BACK_CALL) {
		q->call(q);
		return;
	}
	q->io.next = NULL;
	**end = &q->io;
	*end = &q->io.next;
}

/* Send a request past the gate; its shadow, if it has one, is submitted in its place. */
static struct weir_req *go_straight(
	struct resource *r, weir_time now, struct request *q, bool again, struct back_io ***end)
{
	bool counts = !q->gate.user && q->client->tenant >= 0;
	struct weir_req *shadow = NULL;

	q->gate.submitted = q->gate.dispatched = now;
	if (again)
		q->gate.submitted = q->since;
	q->gate.user = counts && !r->shadow && resource_bypasses(r) ? resource_bypass_mark(r) : r;
	if (r->shadow && counts) {
		resource_shadow_sent(r, q);
		shadow = resource_shadow_make(r, now, q);
	}
	r->dispatched += q->client != &r->own;
	send_inside(r, q, end);
	return shadow;
}

static void admit(struct resource *r, weir_time now, struct request_list *l)
{
	struct weir_req *reqs[BATCH], *to_gate;
	struct back_io *straight = NULL, **end = &straight;
	struct request *q, *next;
	bool again = l == &r->again;
	size_t n = 0;

	for (q = l->first, request_list_clear(l); q; q = next) {
		next = q->next;
		if (r->frozen && q->client != &r->own) {
			request_list_add(l, q);
			continue;
		}
		if (r->tap && !again && q->io.op < BACK_CALL) /* a trace has block I/O only */
			tap(r, now, q);
		/* A client that the policy now refuses has no node: its earlier requests are still
		 * done. */
		if (r->gate && !r->shadow && !r->bypass && !q->gate.user &&
			q->client->tenant >= 0) {
			if (r->stall && resource_stall_holds(r, q, again))
				continue;
			q->gate.tenant = q->client->node;
			to_gate = &q->gate;
		} else {
			to_gate = go_straight(r, now, q, again, &end);
		}
		if (to_gate)
			reqs[n++] = to_gate;
		if (n == BATCH) {
			submit_batch(r, now, reqs, n, again);
			n = 0;
		}
	}
	if (n)
		submit_batch(r, now, reqs, n, again);
	if (straight)
		back_submit(r->back, straight);
}

/* ---- out */

void resource_finish(struct resource *r, struct request *q)
{
	r->inside--;
	if (r->stall)
		resource_stall_back(r, q);
	request_list_add(&r->finished, q);
}

static void back_done(void *arg, struct back_io *io)
{
	resource_finish(arg, container_of(io, struct request, io));
}

static void count_done(struct resource *r, weir_time now, struct request *q)
{
	if (q->client == &r->own) {
		r->errors += q->io.error != 0;
		return;
	}
	bool ignored = resource_stall_ignores(r, q);

	r->served++;
	r->served_cost += ignored ? 0 : q->gate.requests;
	r->served_bytes += ignored ? 0 : q->gate.bytes;
	r->undrained++;
	if (q->io.error && q->io.error != -ECANCELED) {
		r->errors++;
		r->counts[q->gate.tenant].errors++;
	}
	if (r->estimate && !q->gate.user)
		r->served_work += q->gate.time;
	else if (r->spec.cost == WEIR_UNIT_TIME && !ignored)
		resource_time_learn(r, now, q);
	if (q->gate.user == resource_bypass_mark(r))
		resource_bypass_done(r, now, q);
	else if (r->gate && q->gate.user && q->inside.requests > 0)
		resource_shadow_back(r, now, q);
}

static void finish_batch(struct resource *r, weir_time now, struct request **done, size_t n)
{
	struct weir_req *reqs[BATCH];
	size_t passed = 0;

	for (size_t i = 0; i < n; i++) {
		if (!done[i]->gate.user)
			reqs[passed++] = &done[i]->gate;
		count_done(r, now, done[i]);
	}
	if (passed)
		weir_gate_done(r->gate, now, reqs, passed);
	for (size_t i = 0; i < n; i++) {
		resource_returned(done[i]->client);
		done[i]->done(done[i]);
	}
}

static void finish(struct resource *r, weir_time now)
{
	struct request *done[BATCH], *q;

	while ((q = r->finished.first)) {
		size_t n = 0;

		for (; q && n < BATCH; q = q->next)
			done[n++] = q;
		r->finished.first = q;
		if (!q)
			r->finished.end = &r->finished.first;
		finish_batch(r, now, done, n);
	}
}

/* ---- through */

static void dispatch(struct resource *r, struct weir_req **reqs, size_t n)
{
	struct back_io *first = NULL, **end = &first;

	for (size_t i = 0; i < n; i++) {
		struct request *q = resource_request(reqs[i]);

		resource_queue_out(r, reqs[i]);
		if (reqs[i]->submitted < r->began) {
			r->counts[reqs[i]->tenant].waited++;
			r->waited++;
		}
		if (reqs[i]->user) {
			resource_shadow_passed(r, reqs[i]);
			continue;
		}
		r->dispatched++;
		send_inside(r, q, &end);
	}
	if (first)
		back_submit(r->back, first);
}

/* Requests that the back end finished inside submit took it some time. A resource that was not
 * started has no clock: in tests, with their own time. Return true if there were such requests. */
static bool finish_at_once(struct resource *r)
{
	if (!r->finished.first)
		return false;
	if (r->started)
		r->now = loop_refresh(r->loop);
	finish(r, r->now);
	return true;
}

/* Return true if more may pass. */
static bool pass(struct resource *r)
{
	struct weir_req *reqs[BATCH];
	size_t budget =
		r->at_once && r->n_clients > 1 ? (size_t)(r->n_clients - 1) * SHARED : SIZE_MAX;

	for (unsigned i = 0; i < PASSES; i++) {
		size_t n = 0;

		if (r->joints)
			resource_joint_turn(r, r->now);
		if (r->queued || (r->shadows && resource_shadow_waiting(r)))
			n = weir_gate_next(r->gate, r->now, reqs, budget < BATCH ? budget : BATCH);
		if (n == 0)
			return false;
		dispatch(r, reqs, n);
		r->at_once = finish_at_once(r);
		if (r->shadows)
			resource_shadow_turn(r, r->now);
		budget -= n;
		if (!budget)
			break;
	}
	return true;
}

/* ---- the turn */

static void learn(struct resource *r, weir_time now)
{
	if (!r->gate || r->shadow || !r->spec.capacity_auto)
		return;
	if (capacity_watch(&r->capacity, now, &r->gate, 1, r->served_cost, r->served_bytes))
		resource_load_mins(r, now);
}

static void housekeep(struct resource *r, weir_time now)
{
	if (now - r->drained < HOUSEKEEP && r->undrained < UNDRAINED)
		return;
	r->drained = now;
	resource_drain(r);
	learn(r, now);
	if (r->estimate && r->gate && !r->shadow && !r->bypass)
		resource_drift_look(r, now);
}

/* Return true if a request may pass right now. */
static bool set_timer(struct resource *r, weir_time now)
{
	weir_time at = WEIR_NEVER;

	if (r->queued || (r->shadows && resource_shadow_waiting(r)))
		at = weir_gate_wakeup(r->gate, now);
	if (r->shadows && resource_shadow_next(r) < at)
		at = resource_shadow_next(r);
	if (r->stall && resource_stall_next(r) < at)
		at = resource_stall_next(r);
	if (r->joints && resource_joint_next(r) < at)
		at = resource_joint_next(r);
	if (r->left && r->left_at < at)
		at = r->left_at;
	if (!r->queued && !r->late)
		r->late_at = WEIR_NEVER;
	else if (r->late_at == WEIR_NEVER)
		resource_late_set(r);
	if (r->late_at < at)
		at = r->late_at;
	if (at <= now)
		return true;
	if (at != r->timer_at && r->loop)
		loop_set(r->loop, &r->timer, at);
	r->timer_at = at;
	return false;
}

bool resource_turn(struct resource *r, weir_time now)
{
	bool more = false;

	r->now = r->began = now;
	if (r->late_at <= now)
		resource_late_look(r);
	if (!r->finished.first && !r->arrived.first && !r->again.first && !r->queued &&
		!r->undrained && !(r->shadows && resource_shadow_busy(r)) &&
		!(r->stall && resource_stall_next(r) <= now) &&
		!(r->joints && resource_joint_next(r) <= now))
		return false;
	finish(r, now);
	if (r->stall)
		resource_stall_look(r, now);
	if (r->shadows)
		resource_shadow_turn(r, now);
	if (r->left && r->left_at <= now)
		resource_drop_left(r);
	if (r->again.first)
		admit(r, now, &r->again);
	if (r->arrived.first)
		admit(r, now, &r->arrived);
	finish_at_once(r);
	if (r->gate)
		more = pass(r);
	if (r->undrained)
		housekeep(r, r->now);
	if (r->gate && !more)
		more = set_timer(r, r->now);
	/* `done` may have submitted again. */
	return more || (r->arrived.first && !r->frozen) || r->finished.first;
}

static bool turn(struct loop_turn *t, weir_time now)
{
	return resource_turn(container_of(t, struct resource, turn), now);
}

/* The turn of the same round does the work. */
static void due(struct loop_timer *t, weir_time now)
{
	struct resource *r = container_of(t, struct resource, timer);

	r->timer_at = WEIR_NEVER;
}

/* ---- from start to end */

static int make_gate(struct resource *r)
{
	struct weir_gate_config config;

	weir_policy_gate(&r->spec, &config);
	config.histograms = HISTOGRAMS;
	if (config.window <= 0 && r->back->info.depth)
		config.window = r->back->info.depth;
	return weir_gate_new(&config, &r->gate);
}

static int fill(struct resource *r, const struct resource_config *c)
{
	int rc;

	r->spec = *c->spec;
	r->name = strdup(c->spec->name);
	r->back_name = strdup(c->spec->back ? c->spec->back : "");
	if (!r->name || !r->back_name)
		return -ENOMEM;
	r->spec.name = r->name;
	r->spec.back = c->spec->back ? r->back_name : NULL;
	rc = resource_room(r, 64);
	r->back = c->back; /* before the gate, which takes its depth; not owned on failure */
	if (rc == 0 && !c->bare)
		rc = make_gate(r);
	if (rc == 0)
		rc = resource_stall_new(r);
	if (rc < 0)
		r->back = NULL;
	return rc;
}

static void back_known(void *arg)
{
	struct resource *r = arg;

	resource_policy_window(r);
	if (r->known)
		r->known(r->known_arg);
}

int resource_new(const struct resource_config *c, struct resource **ret_resource)
{
	struct resource *r = calloc(1, sizeof(*r));
	int rc = r ? fill(r, c) : -ENOMEM;

	if (rc < 0) {
		resource_free(r);
		return rc;
	}
	r->loop = c->loop;
	request_list_clear(&r->again);
	request_list_clear(&r->arrived);
	request_list_clear(&r->finished);
	capacity_init(&r->capacity, NULL);
	r->timer_at = r->late_at = WEIR_NEVER;
	r->timer.due = due;
	r->turn.turn = turn;
	r->back->done = back_done;
	r->back->done_arg = r;
	r->back->known = back_known;
	r->back->known_arg = r;
	r->known = c->known;
	r->known_arg = c->known_arg;
	*ret_resource = r;
	return 0;
}

int resource_start(struct resource *r)
{
	int rc = 0;

	/* Before the back end's own turn, which sends the requests that this one submitted. */
	loop_turn_add(r->loop, &r->turn);
	if (r->back->ops->start)
		rc = r->back->ops->start(r->back);
	if (rc < 0)
		loop_turn_remove(r->loop, &r->turn);
	r->started = rc == 0;
	return rc;
}

void resource_free(struct resource *r)
{
	if (!r)
		return;
	if (r->started) {
		loop_turn_remove(r->loop, &r->turn);
		loop_set(r->loop, &r->timer, WEIR_NEVER);
	}
	back_free(r->back);
	resource_shadow_free(r);
	resource_control_free(r);
	resource_joint_clear(r);
	resource_loads_free(r);
	resource_reads_free(r);
	resource_policy_free(r);
	weir_gate_free(r->gate);
	for (size_t i = 0; i < r->n_counts; i++)
		free(r->totals[i]);
	free(r->totals);
	free(r->counts);
	free(r->pasts);
	resource_claims_free(r->claims);
	free(r->ring);
	resource_slo_free(r);
	resource_stall_free(r);
	free(r->name);
	free(r->back_name);
	free(r);
}

void resource_tap(struct resource *r, struct tap *t)
{
	r->tap = t;
}
