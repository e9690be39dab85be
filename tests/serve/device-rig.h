/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device-rig: resources before device models, and clients, in virtual time. Closed-loop clients
 * keep `depth` requests outstanding and think between two; open-loop clients send at a rate,
 * whatever comes back.
 */
#ifndef WEIR_TESTS_PORT_DEVICE_RIG_H
#define WEIR_TESTS_PORT_DEVICE_RIG_H

#include "base/heap.h"
#include "base/rng.h"
#include "model/device.h"
#include "serve/resource/impl.h"
#include "policy-parse.h"

enum { RIG_RESOURCES = 16, RIG_CLIENTS = 16 };

struct rig_back {
	struct back back;
	struct device *device; /* NULL: answers at once */
	struct rig *rig;
};

struct rig_client {
	struct client client;
	struct rig *rig;
	/* load: set these, then rig_join */
	unsigned depth;  /* closed loop: outstanding; 0: open loop */
	weir_time think; /* closed loop: mean time from a reply to the next request */
	double rate;     /* open loop: requests/s, Poisson */
	weir_time at; /* open loop: when the next request is due, however late the thread wakes */
	bool even;    /* thinks or waits equally long each time; else exponentially */
	uint32_t length;
	uint8_t op;
	uint64_t done, bytes;
	weir_time latency, busy; /* of all done; busy: by the model's account */
	uint32_t most;           /* outstanding at once */
	bool stopped, left;
};

struct rig {
	weir_time now;
	struct weir_policy *policy;
	struct resource *resource[RIG_RESOURCES];
	struct rig_back *back[RIG_RESOURCES];
	size_t n_resources;
	struct rig_client client[RIG_CLIENTS];
	size_t n_clients;
	struct heap sends; /* value: client */
	uint64_t serial;
	struct rng rng;
	weir_time late; /* mean time by which the gateway's thread wakes too late */
	/* mean time for which the thread does not run, mean time between two of these; 0: never */
	weir_time stall, stall_every, stalls_at;
	/* every `period`, if set */
	weir_time period, due;
	void (*tick)(struct rig *w);
	void *user;
};

struct rig_io {
	struct request request; /* first */
	struct device_io timed;
	weir_time sent;
};

/* ---- the back end */

static inline void rig_submit(struct back *b, struct back_io *ios)
{
	struct rig_back *m = (struct rig_back *)(void *)b;

	for (struct back_io *next; ios; ios = next) {
		struct rig_io *io = (struct rig_io *)(void *)((char *)(void *)ios -
							      offsetof(struct request, io));

		next = ios->next;
		if (!m->device) {
			b->done(b->done_arg, ios);
			continue;
		}
		io->timed = (struct device_io){.offset = ios->offset,
			.bytes = (uint32_t)ios->length,
			.op = ios->op,
			.user = ios};
		device_submit(m->device, m->rig->now, &io->timed);
	}
}

static inline void rig_back_free(struct back *b)
{
	device_free(((struct rig_back *)(void *)b)->device);
	free(b);
}

static const struct back_ops rig_ops = {.name = "rig", .submit = rig_submit, .free = rig_back_free};

/* ---- clients */

static inline void rig_schedule(struct rig_client *c, double mean)
{
	struct rig *w = c->rig;
	double after = c->even ? mean : rng_exp(&w->rng, mean);
	struct heap_item item = {.serial = w->serial++, .value = (uint64_t)(c - w->client)};

	c->at = (c->depth || !c->at ? w->now : c->at) + (weir_time)after;
	item.key = c->at;
	CHECK_INT(heap_push(&w->sends, item), 0);
}

static inline void rig_done(struct request *q)
{
	struct rig_io *io = (struct rig_io *)(void *)q;
	struct rig_client *c = q->owner;

	if (q->io.error == 0) {
		c->done++;
		c->bytes += q->io.length;
		c->busy += io->timed.busy;
		c->latency += c->rig->now - io->sent;
	}
	if (c->depth)
		rig_schedule(c, (double)c->think);
	free(io);
}

static inline void rig_send(struct rig_client *c)
{
	struct rig_io *io = calloc(1, sizeof(*io));

	CHECK(io != NULL);
	if (c->stopped) {
		free(io);
		return;
	}
	io->sent = c->rig->now;
	io->request.client = &c->client;
	io->request.done = rig_done;
	io->request.owner = c;
	io->request.io = (struct back_io){.op = c->op,
		.length = c->length,
		.offset = rng_below(&c->rig->rng, (UINT64_C(1) << 36) / c->length) * c->length};
	resource_submit(c->client.resource, &io->request);
	if (c->client.in_flight > c->most)
		c->most = c->client.in_flight;
	if (!c->depth)
		rig_schedule(c, 1e9 / c->rate);
}

static inline struct rig_client *rig_join(
	struct rig *w, size_t resource, const char *export_, struct rig_client how)
{
	struct rig_client *c = &w->client[w->n_clients++];

	*c = how;
	c->rig = w;
	strcpy(c->client.export_, export_);
	resource_join(w->resource[resource], &c->client);
	CHECK(c->client.tenant >= 0);
	for (unsigned i = 0; i < (c->depth ? c->depth : 1); i++)
		rig_schedule(c, c->depth ? 0 : 1e9 / c->rate);
	return c;
}

/* Its requests are cancelled, or answered without a client. */
static inline void rig_leave(struct rig_client *c)
{
	if (!c->left)
		resource_leave(c->client.resource, &c->client);
	c->left = c->stopped = true;
}

/* ---- the world */

/* devices: one for each of the policy's resources; NULL: it answers at once. */
static inline void rig_new(struct rig *w, const char *text, struct device *const *devices)
{
	struct weir_err err;

	memset(w, 0, sizeof(*w));
	w->policy = parse(text);
	w->now = WEIR_SEC;
	heap_init(&w->sends, NULL);
	rng_init(&w->rng, 1, "rig");
	for (size_t i = 0; i < w->policy->n_resources; i++) {
		struct rig_back *b = calloc(1, sizeof(*b));
		struct resource_config config = {
			.spec = &w->policy->resources[i], .back = &b->back};

		b->back.ops = &rig_ops;
		b->back.info = (struct back_info){.size = UINT64_C(1) << 40, .depth = 32};
		b->device = devices ? devices[i] : NULL;
		b->back.info.tells_device = b->device && b->device->ops->tells_busy;
		b->rig = w;
		w->back[i] = b;
		CHECK_INT(resource_new(&config, &w->resource[i]), 0);
		w->n_resources++;
		if (resource_swap(w->resource[i], w->policy, &err) < 0)
			FAIL("%s", err.text);
	}
}

static inline void rig_drain(struct rig *w); /* see below */

static inline void rig_free(struct rig *w)
{
	rig_drain(w);
	for (size_t i = 0; i < w->n_resources; i++)
		resource_free(w->resource[i]);
	weir_policy_free(w->policy);
	heap_free(&w->sends);
}

static inline void rig_step_device(struct rig_back *b)
{
	struct device_io *io, *next;

	if (!b->device || device_next(b->device) > b->rig->now)
		return;
	for (io = device_step(b->device, b->rig->now); io; io = next) {
		struct back_io *of = io->user;

		next = io->next;
		of->device = io->busy;
		b->back.done(b->back.done_arg, of);
	}
}

static inline weir_time rig_next(const struct rig *w)
{
	weir_time at = w->sends.n ? heap_min(&w->sends)->key : WEIR_NEVER;

	if (w->tick && w->due < at)
		at = w->due;
	for (size_t i = 0; i < w->n_resources; i++) {
		weir_time d = w->back[i]->device ? device_next(w->back[i]->device) : WEIR_NEVER;

		at = d < at ? d : at;
		at = w->resource[i]->timer_at < at ? w->resource[i]->timer_at : at;
	}
	return at;
}

static inline void rig_turn(struct rig *w)
{
	for (size_t i = 0; i < w->n_resources; i++)
		rig_step_device(w->back[i]);
	while (w->sends.n && heap_min(&w->sends)->key <= w->now)
		rig_send(&w->client[heap_pop(&w->sends).value]);
	for (size_t i = 0; i < w->n_resources; i++) {
		w->resource[i]->timer_at =
			w->resource[i]->timer_at <= w->now ? WEIR_NEVER : w->resource[i]->timer_at;
		for (unsigned k = 0; resource_turn(w->resource[i], w->now); k++)
			CHECK(k < 100000);
	}
	if (w->tick && w->now >= w->due) {
		w->tick(w);
		w->due += w->period;
	}
}

/* Delay a turn that is due while the thread does not run. */
static inline void rig_stall(struct rig *w, weir_time *at)
{
	weir_time end;

	if (!w->stall || *at < w->stalls_at)
		return;
	end = w->stalls_at + (weir_time)rng_exp(&w->rng, (double)w->stall);
	if (w->stalls_at && *at < end)
		*at = end;
	w->stalls_at = *at + (weir_time)rng_exp(&w->rng, (double)w->stall_every);
}

static inline void rig_run(struct rig *w, weir_time span)
{
	weir_time end = w->now + span;

	for (weir_time at = rig_next(w); at <= end; at = rig_next(w)) {
		if (w->late)
			at += (weir_time)rng_exp(&w->rng, (double)w->late);
		rig_stall(w, &at);
		if (at > w->now)
			w->now = at;
		rig_turn(w);
	}
	if (end > w->now)
		w->now = end;
	rig_turn(w);
}

/* Reset the counts of all clients. */
static inline void rig_clear(struct rig *w)
{
	for (size_t i = 0; i < w->n_clients; i++) {
		w->client[i].done = w->client[i].bytes = 0;
		w->client[i].latency = w->client[i].busy = 0;
	}
}

static inline void rig_drain(struct rig *w)
{
	bool busy = true;

	w->tick = NULL;
	for (size_t i = 0; i < w->n_clients; i++)
		rig_leave(&w->client[i]);
	for (unsigned k = 0; busy; k++) {
		CHECK(k < 10000);
		rig_run(w, 100 * WEIR_MS);
		busy = false;
		for (size_t i = 0; i < w->n_clients; i++)
			busy |= w->client[i].client.in_flight > 0;
	}
}

#endif
