/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow: `enforce: false`: nothing is delayed, and the gate shows what it would have done.
 *
 * LAW     Requests go to the back end at once. Their shadows go to the gate, which holds them as it
 *         would hold the requests; a shadow that passes is done after the time that the device
 *         would take beside the other shadows (control/shadow-device.h), learned from the requests.
 *         A client in an open loop has a shadow for each request. One in a closed loop
 *         (control/shadow-sender.h) has as many as it has requests outstanding: when one is done
 *         the client thinks, and then the same shadow is submitted again, with the properties of
 *         one of its last requests. So its shadows wait for each other as its requests would, and
 *         neither the requests' real rate nor their real time matters.
 *         The device's time ends before this thread notices, which it does late on a busy machine.
 *         A place in the window is taken until then, for a shadow as for a request: the thread's
 *         lateness is measured by the shadows' due times, subtracted from the requests' times, and
 *         delays the shadows by itself. Otherwise it would count twice where few requests are
 *         inside, and not at all where it is hidden by a long queue.
 * METHOD  Shadows are in one array. Those inside and those whose client thinks wait in a heap.
 * LIMITS  At most SHADOWS at once, at most TENANT of one tenant and kind (reads, writes, requests
 *         without data: a max may hold one kind while the others pass), and no more than are free.
 *         A request without a free shadow is skipped; the queue is then long enough to keep the
 *         tenant busy.
 * EXAMPLE max 100 iops, a client with 8 outstanding and no think time: all its requests are served
 *         at once; 8 shadows wait for `max`, and 100 a second pass.
 */
#include "serve/resource/impl.h"
#include "base/heap.h"
#include "control/shadow-device.h"
#include "control/shadow-sender.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SHADOWS 65536 /* 7 MiB, of which only used pages take memory */
#define TENANT  1024
#define PAGE    16384
#define LAST    8 /* last requests of a client, which its shadows imitate */
/* The error of the figures even if all is known: measured against enforcement. */
#define OFF   0.08
#define NEWER (1.0 / 256)  /* weight of a shadow in moving averages */
#define LATER (1.0 / 1024) /* the same, for how late the thread is */
/* A thread that is late may be later, or less late, by that factor once the policy is enforced. */
#define LATE_OFF 1.5
#define BACKLOG  4.0  /* times in the device: a shadow that waited longer found a backlog */
#define LEAST    0.05 /* low end of a range */

enum shadow_state { SHADOW_FREE, SHADOW_QUEUED, SHADOW_INSIDE, SHADOW_THINKING };

struct resource_sender { /* of a client; lives until its last shadow is done */
	struct shadow_sender guess;
	struct weir_req last[LAST];
	uint32_t n_last, next;
	uint32_t shadows;
	weir_node node;
	bool limited; /* its tenant, or a group above it, has a max */
	double share; /* of the resource, if all tenants were busy; of those that are limited */
	bool takes;   /* it would take more, or less, if the device were faster or slower */
	bool gone;    /* the client has left */
};

struct shadow {
	struct weir_req gate; /* user: this shadow */
	struct resource_sender *sender;
	struct shadow *next; /* of the free ones */
	uint8_t state;
};

struct resource_shadows {
	struct shadow *all;
	struct shadow *free; /* used before, free now */
	uint32_t fresh;      /* all[fresh] and later ones were never used */
	uint32_t n_free, waiting;
	struct heap due; /* when a shadow is done, or its client has thought; value: its index */
	uint64_t serial;
	struct shadow_device device;
	double late; /* by which this thread notices late that a shadow is done: ns, a moving average */
	struct shadow_work real, finished; /* of requests: in the back end; that came back so far */
	struct shadow_work inside;         /* of shadows in the device */
	double slower, faster; /* relative error of the device in recent shadows' times */
	/* averages over recent shadows: whose senders would take more or less (see there); whose
	 * senders also think; error of the rates of those that think */
	double takes, think, unsure;
};

int resource_shadow_on(struct resource *r)
{
	struct resource_shadows *s = r->shadows;

	if (s) {
		r->shadow = true;
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	heap_init(&s->due, NULL);
	s->all = calloc(SHADOWS, sizeof(*s->all));
	s->n_free = SHADOWS;
	if (!s->all || heap_reserve(&s->due, SHADOWS) < 0) {
		free(s->all);
		heap_free(&s->due);
		free(s);
		return -ENOMEM;
	}
	r->shadows = s;
	r->shadow = true;
	return 0;
}

/* ---- requests on their way through the back end */

static unsigned class_of(const struct weir_req *q)
{
	unsigned size = 0;

	while (size < 7 && q->bytes > 4096u << size)
		size++;
	return q->op * 8u + size;
}

static struct shadow_work work_of(const struct weir_req *q)
{
	return (struct shadow_work){1, q->bytes > PAGE ? ceil((double)q->bytes / PAGE) : 1};
}

/* Add work; sign: 1, or -1 to subtract. */
static void add(struct shadow_work *to, double sign, struct shadow_work what)
{
	to->requests += sign * what.requests;
	to->pages += sign * what.pages;
}

void resource_shadow_sent(struct resource *r, struct request *q)
{
	struct resource_shadows *all = r->shadows;

	all->device.order.disks = r->back->info.rotational; /* known once an upstream was reached */
	add(&all->real, 1, work_of(&q->gate));
	q->inside = all->real;
	q->before = all->finished;
}

void resource_shadow_back(struct resource *r, weir_time now, struct request *q)
{
	struct resource_shadows *all = r->shadows;
	struct resource_sender *s = q->client->sender;
	struct shadow_sample sample = {.class_ = class_of(&q->gate),
		.own = work_of(&q->gate),
		.inside = q->inside,
		.now = now,
		.ns = now - q->gate.dispatched,
		.late = all->late};

	add(&all->real, -1, sample.own);
	add(&all->finished, 1, sample.own);
	sample.finished = all->finished;
	add(&sample.finished, -1, q->before);
	if (!q->io.error)
		shadow_device_learn(&all->device, &sample);
	q->inside.requests = 0;
	if (s)
		shadow_sender_returns(&s->guess, now, q->client->in_flight - 1);
}

/* ---- senders */

/* Return true if the tenant, or a group above it, has a max; some: one that counts reads or writes
 * only. */
static bool has_max(const struct weir_policy *p, int tenant, bool some)
{
	for (; tenant >= 0; tenant = p->tenants[tenant].parent)
		for (size_t i = 0; i < p->tenants[tenant].n_max; i++)
			if (!some || p->tenants[tenant].max[i].ops != WEIR_OPS_ALL)
				return true;
	return false;
}

/* Return the part of a tenant by weight if all others are busy. */
static double share_of(const struct weir_policy *p, int tenant)
{
	double share = 1;

	for (; tenant >= 0; tenant = p->tenants[tenant].parent) {
		double all = 0;

		for (size_t i = 0; i < p->n_tenants; i++)
			if (p->tenants[i].parent == p->tenants[tenant].parent)
				all += p->tenants[i].weight;
		share *= p->tenants[tenant].weight / all;
	}
	return share;
}

static struct resource_sender *sender_of(struct client *c)
{
	if (!c->sender)
		c->sender = calloc(1, sizeof(*c->sender));
	return c->sender;
}

static void sender_release(struct resource_sender *s)
{
	if (s->gone && !s->shadows)
		free(s);
}

void resource_shadow_leave(struct client *c)
{
	struct resource_sender *s = c->sender;

	c->sender = NULL;
	if (!s)
		return;
	s->gone = true;
	sender_release(s);
}

/* Return the most shadows that it may have. */
static uint32_t room_of(const struct resource_sender *s)
{
	if (!s->guess.closed || s->guess.outstanding > TENANT)
		return TENANT;
	return s->guess.outstanding;
}

/* ---- shadows */

/* Return the counter of this tenant's shadows of the request's kind. */
static uint32_t *count_of(struct resource *r, weir_node tenant, const struct weir_req *q)
{
	unsigned kind = q->op == WEIR_READ ? 0 : q->op == WEIR_WRITE || q->op == WEIR_TRIM ? 1 : 2;

	return &r->counts[tenant].shadows[kind];
}

static void release_shadow(struct resource *r, struct shadow *s)
{
	struct resource_sender *sender = s->sender;

	sender->shadows--;
	sender_release(sender);
	s->sender = NULL;
	s->state = SHADOW_FREE;
	s->next = r->shadows->free;
	r->shadows->free = s;
	r->shadows->n_free++;
	--*count_of(r, s->gate.tenant, &s->gate);
}

/* Return a slot for a request like this, of the sender's tenant. */
static struct shadow *claim_shadow(
	struct resource *r, const struct weir_req *like, struct resource_sender *sender)
{
	struct resource_shadows *all = r->shadows;
	uint32_t *n = count_of(r, sender->node, like);
	struct shadow *s = all->free;

	if (*n >= all->n_free || *n >= TENANT || sender->shadows >= room_of(sender))
		return NULL;
	if (s)
		all->free = s->next;
	else
		s = &all->all[all->fresh++];
	all->n_free--;
	++*n;
	sender->shadows++;
	s->sender = sender;
	return s;
}

/* Prepare the shadow for the gate. */
static struct weir_req *queue(struct resource *r, struct shadow *s, const struct weir_req *like)
{
	s->gate = *like;
	s->gate.tenant = s->sender->node;
	s->gate.user = s;
	s->state = SHADOW_QUEUED;
	r->shadows->waiting++;
	return &s->gate;
}

void resource_shadow_refused(struct resource *r, struct weir_req *req)
{
	r->shadows->waiting--;
	release_shadow(r, req->user);
}

static void drop(struct weir_req *q, void *arg)
{
	resource_queue_out(arg, q);
	resource_shadow_refused(arg, q);
}

struct trim {
	struct resource *resource;
	const struct resource_sender *sender;
	uint32_t many; /* shadows too many */
};

static bool is_excess(const struct weir_req *q, void *arg)
{
	struct trim *t = arg;
	const struct shadow *s = q->user;

	return s && s->sender == t->sender && t->many && t->many--;
}

static void drop_excess(struct weir_req *q, void *arg)
{
	drop(q, ((struct trim *)arg)->resource);
}

/* A client in a closed loop would not have sent all requests that wait: drop some shadows. */
static void trim(struct resource *r, weir_time now, struct resource_sender *sender)
{
	struct trim t = {r, sender, 0};

	if (sender->shadows <= room_of(sender))
		return;
	t.many = sender->shadows - room_of(sender);
	weir_gate_cancel(r->gate, now, sender->node, is_excess, drop_excess, &t);
}

struct weir_req *resource_shadow_make(struct resource *r, weir_time now, struct request *q)
{
	struct resource_sender *sender = sender_of(q->client);
	struct shadow *s;

	if (!sender)
		return NULL;
	if (!sender->n_last || sender->node != q->client->node) {
		sender->limited = has_max(r->policy, q->client->tenant, false);
		sender->share = sender->limited ? share_of(r->policy, q->client->tenant) : 1;
	}
	sender->node = q->client->node;
	sender->last[sender->n_last++ % LAST] = q->gate;
	shadow_sender_arrives(&sender->guess, now, q->client->in_flight);
	trim(r, now, sender);
	s = claim_shadow(r, &q->gate, sender);
	if (!s) {
		r->counts[sender->node].skipped++;
		return NULL;
	}
	return queue(r, s, &q->gate);
}

static void await(struct resource_shadows *all, struct shadow *s, weir_time at)
{
	struct heap_item item = {
		.key = at, .serial = all->serial++, .value = (uint64_t)(s - all->all)};

	heap_push(&all->due, item); /* cannot fail: there is room for all */
}

/* An error of the device's rate changes the rates of those that wait for a turn and of closed loops,
 * not of those that send at their own pace and have it all, nor of those that a max holds. */
static void note_taker(struct resource_shadows *all, struct shadow *s, double time)
{
	struct resource_sender *from = s->sender;
	double waited = (double)(s->gate.dispatched - s->gate.submitted);
	double error = shadow_sender_error(&from->guess);

	from->takes = !from->limited && (from->guess.closed || waited > BACKLOG * time);
	all->takes += NEWER * (from->takes - all->takes);
	all->think += NEWER * ((error > 0) - all->think);
	all->unsure += NEWER * (error - all->unsure);
}

/* A place in the window is taken until the thread notices that the request is done. */
static void note_errors(struct resource_shadows *all, const struct shadow_time *time)
{
	double mean = time->mean + all->late;
	double high = time->high + all->late * LATE_OFF, low = time->low + all->late / LATE_OFF;

	all->slower += NEWER * (high / mean - 1 - all->slower);
	all->faster += NEWER * (mean / low - 1 - all->faster);
}

void resource_shadow_passed(struct resource *r, struct weir_req *req)
{
	struct resource_shadows *all = r->shadows;
	struct shadow *s = req->user;
	struct shadow_time time = {.mean = 0, .low = 0, .high = 0};
	struct shadow_work own;

	all->waiting--;
	s->state = SHADOW_INSIDE;
	own = work_of(req);
	add(&all->inside, 1, own);
	if (shadow_device_expect(&all->device, class_of(req), &own, &all->inside, &time)) {
		note_errors(all, &time);
		note_taker(all, s, time.mean);
	}
	await(all, s, req->dispatched + shadow_device_draw(&all->device, time.mean));
}

/* The client has thought: submit its next request. */
static void send_again(struct resource *r, weir_time now, struct shadow *s)
{
	struct resource_sender *sender = s->sender;
	uint32_t n = sender->n_last < LAST ? sender->n_last : LAST;
	uint32_t *was = count_of(r, s->gate.tenant, &s->gate);
	struct weir_req *req = queue(r, s, &sender->last[sender->next++ % n]);

	--*was;
	++*count_of(r, req->tenant, req);
	if (weir_gate_submit(r->gate, now, &req, 1) == 0)
		resource_queue_in(r, req);
	else
		resource_shadow_refused(r, req);
}

static void done(struct resource *r, weir_time now, struct shadow *s, weir_time at)
{
	struct resource_shadows *all = r->shadows;
	const struct shadow_sender *guess = &s->sender->guess;
	struct weir_req *req = &s->gate;

	add(&all->inside, -1, work_of(req));
	all->late += LATER * ((double)(now - at) - all->late);
	resource_total(r, s->gate.tenant, now - s->gate.submitted);
	weir_gate_done(r->gate, now, &req, 1);
	if (s->sender->gone || !guess->closed || now > guess->active ||
		s->sender->shadows > room_of(s->sender)) {
		release_shadow(r, s);
		return;
	}
	s->state = SHADOW_THINKING;
	await(all, s, at + guess->think);
}

void resource_shadow_turn(struct resource *r, weir_time now)
{
	struct resource_shadows *all = r->shadows;
	uint64_t begun = all->serial;

	/* Even a client without think time sends its next request after the gate has filled the
	 * place of its last: requests that become due in this turn are for the next one. */
	while (all->due.n && heap_min(&all->due)->key <= now &&
		heap_min(&all->due)->serial < begun) {
		struct heap_item item = heap_pop(&all->due);
		struct shadow *s = &all->all[item.value];

		if (s->state == SHADOW_INSIDE)
			done(r, now, s, item.key);
		else if (s->sender->gone)
			release_shadow(r, s);
		else
			send_again(r, now, s);
	}
}

weir_time resource_shadow_next(const struct resource *r)
{
	return r->shadows->due.n ? heap_min(&r->shadows->due)->key : WEIR_NEVER;
}

uint32_t resource_shadow_waiting(const struct resource *r)
{
	return r->shadows->waiting;
}

bool resource_shadow_busy(const struct resource *r)
{
	return r->shadows->waiting || r->shadows->due.n;
}

/* ---- what is shown */

/* Return the tenant's part of all that passed. */
static double part_of(const struct resource *r, const struct weir_gate_stats *st)
{
	struct weir_gate_totals all;

	weir_gate_get_totals(r->gate, r->now, &all);
	return fmax((double)st->dispatched / fmax((double)all.dispatched, 1), 1e-9);
}

/* Return the low end for a tenant that its max holds while others wait for the device. If the device
 * is slower than it seems, the tenant still has its share, which may be less than the max. */
static double held_low(
	const struct resource *r, const struct resource_sender *s, const struct weir_gate_stats *st)
{
	double slow = 1 / (1 + r->shadows->slower);

	return fmin(fmax(slow * s->share / part_of(r, st), slow), 1);
}

void resource_shadow_estimate(const struct resource *r, const struct client *c,
	const struct weir_gate_stats *st, struct shadow_estimate *ret)
{
	const struct resource_shadows *all = r->shadows;
	const struct resource_sender *s = c->sender;
	double low = 1 / (1 + OFF), high = 1 + OFF, more = 1, error;
	bool waits;
	/* (If a max counts only some requests, the others depend on the device.) */
	bool held = st->queued && !has_max(r->policy, c->tenant, true) &&
		    (st->cause == WEIR_WAIT_MAX || st->cause == WEIR_WAIT_ABOVE);

	if (!s || !all)
		return;
	waits = st->queued && (s->takes || (s->limited && !held));
	if (held && all->takes > NEWER) {
		low *= held_low(r, s, st);
	} else if (!held) {
		if (waits) /* at most all of the device's error is this tenant's */
			more = 1 / fmax(fmax(all->takes, NEWER), part_of(r, st));
		low *= fmax(1 - more * all->slower / (1 + all->slower), LEAST);
		high *= 1 + more * all->faster;
	}
	/* Clients that wait get what clients that think leave. */
	error = shadow_sender_error(&s->guess);
	if (waits && !(error > 0))
		error = all->unsure / fmax(all->takes - all->think, all->unsure + NEWER);
	low /= 1 + error;
	high *= 1 + error;
	if (s->guess.closed) {
		ret->closed += 1;
		ret->outstanding += s->guess.outstanding;
		ret->think += s->guess.think;
	} else {
		ret->open += 1;
	}
	ret->low = ret->low > 0 ? fmin(ret->low, low) : low;
	ret->high = fmax(ret->high, high);
}

/* ---- off */

static bool is_shadow(const struct weir_req *q, void *arg)
{
	return q->user != NULL;
}

void resource_shadow_off(struct resource *r)
{
	struct resource_shadows *all = r->shadows;

	r->shadow = false;
	if (!all)
		return;
	while (all->due.n)
		heap_pop(&all->due);
	for (uint32_t i = 0; i < all->fresh; i++) {
		struct shadow *s = &all->all[i];
		struct weir_req *req = &s->gate;

		if (s->state == SHADOW_QUEUED)
			weir_gate_cancel(r->gate, r->now, s->gate.tenant, is_shadow, drop, r);
		if (s->state == SHADOW_INSIDE)
			weir_gate_done(r->gate, r->now, &req, 1);
		if (s->state != SHADOW_FREE)
			release_shadow(r, s);
	}
	all->inside = (struct shadow_work){0};
	for (struct client *c = r->clients; c; c = c->next)
		resource_shadow_leave(c);
}

void resource_shadow_free(struct resource *r)
{
	struct resource_shadows *all = r->shadows;

	if (!all)
		return;
	for (uint32_t i = 0; i < all->fresh; i++) {
		struct resource_sender *s = all->all[i].sender;

		all->all[i].sender = NULL;
		if (s && --s->shadows == 0)
			sender_release(s);
	}
	heap_free(&all->due);
	free(all->all);
	free(all);
	r->shadows = NULL;
}
