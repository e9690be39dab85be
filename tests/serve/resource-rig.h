/* SPDX-License-Identifier: BSD-3-Clause */
/* resource-rig: for tests of a resource in virtual time, over a back end with a given service
 * time, with clients that submit again as soon as they are answered. */
#ifndef WEIR_TESTS_PORT_RESOURCE_RIG_H
#define WEIR_TESTS_PORT_RESOURCE_RIG_H

#include "serve/resource/impl.h"
#include "policy-parse.h"
#include <errno.h>

/* ---- a back end: every request takes `time` */

struct fake {
	struct back back;
	weir_time now, time;
	struct back_io *first, **end; /* in the order of their ends; scratch[0]: the end */
	uint32_t n;
	int error;
	bool at_once; /* inside submit, as a file whose pages are cached */
};

static inline void fake_submit(struct back *b, struct back_io *ios)
{
	struct fake *f = (struct fake *)(void *)b;

	for (struct back_io *io = ios, *next; io; io = next) {
		next = io->next;
		if (f->at_once) {
			f->back.done(f->back.done_arg, io);
			continue;
		}
		io->next = NULL;
		io->scratch[0] = (uint64_t)(f->now + f->time);
		*f->end = io;
		f->end = &io->next;
		f->n++;
	}
}

static inline void fake_free(struct back *b)
{
	free(b);
}

static const struct back_ops fake_ops = {.name = "fake", .submit = fake_submit, .free = fake_free};

static inline weir_time fake_next(const struct fake *f)
{
	return f->first ? (weir_time)f->first->scratch[0] : WEIR_NEVER;
}

static inline void fake_step(struct fake *f, weir_time now)
{
	f->now = now;
	while (f->first && fake_next(f) <= now) {
		struct back_io *io = f->first;

		f->first = io->next;
		if (!f->first)
			f->end = &f->first;
		f->n--;
		io->error = f->error;
		f->back.done(f->back.done_arg, io);
	}
}

/* ---- a resource and clients that submit again as soon as they are answered */

#define ASKS 64
struct asker {
	struct client client;
	struct request asks[ASKS];
	uint32_t length;
	uint8_t op;
	uint64_t done, errors, cancelled;
	bool again; /* closed loop */
};

struct world {
	struct fake *fake;
	struct resource *resource;
	struct weir_policy *policy;
	weir_time now;
};

static inline void answered(struct request *q)
{
	struct asker *a = q->owner;

	a->done++;
	q->user = 0;
	a->errors += q->io.error != 0;
	a->cancelled += q->io.error == -ECANCELED;
	resource_answered(&a->client, q->gate.submitted, a->client.resource->now);
	if (!a->again)
		return;
	q->user = 1;
	resource_submit(a->client.resource, q);
}

/* client.waiting; request.user: it has no reply yet. */
static inline void waiting(
	const struct client *c, void (*fn)(void *arg, weir_time received), void *arg)
{
	const struct asker *a = container_of(c, struct asker, client);

	for (unsigned i = 0; i < ASKS; i++)
		if (a->asks[i].user)
			fn(arg, a->asks[i].gate.submitted);
}

static inline void ask(struct asker *a, unsigned i)
{
	a->asks[i].client = &a->client;
	a->asks[i].done = answered;
	a->asks[i].owner = a;
	a->asks[i].user = 1;
	a->asks[i].io =
		(struct back_io){.op = a->op, .offset = (uint64_t)i << 20, .length = a->length};
	resource_submit(a->client.resource, &a->asks[i]);
}

static inline void join(struct world *w, struct asker *a, const char *export_, unsigned depth)
{
	memset(a, 0, sizeof(*a));
	strcpy(a->client.export_, export_);
	a->length = 4096;
	a->again = depth > 0;
	a->client.waiting = waiting;
	resource_join(w->resource, &a->client);
	for (unsigned i = 0; i < depth; i++)
		ask(a, i);
}

/* w->policy must be set. */
static inline void world_open(struct world *w, bool bare)
{
	struct resource_config config = {.bare = bare};
	struct weir_err err;

	w->fake = calloc(1, sizeof(*w->fake));
	w->fake->back.ops = &fake_ops;
	w->fake->back.info = (struct back_info){.size = UINT64_C(1) << 40, .depth = 16};
	w->fake->time = WEIR_MS;
	w->fake->end = &w->fake->first;
	w->now = WEIR_SEC;
	config.spec = &w->policy->resources[0];
	config.back = &w->fake->back;
	CHECK_INT(resource_new(&config, &w->resource), 0);
	if (resource_swap(w->resource, w->policy, &err) < 0)
		FAIL("%s", err.text);
}

static inline void world_new(struct world *w, const char *text, bool bare)
{
	w->policy = parse(text);
	world_open(w, bare);
}

static inline void world_free(struct world *w)
{
	resource_free(w->resource);
	weir_policy_free(w->policy);
}

static inline void turn(struct world *w)
{
	fake_step(w->fake, w->now);
	for (int i = 0; resource_turn(w->resource, w->now); i++)
		CHECK(i < 10000);
}

/* Run from event to event: the back end's and the resource's timer. */
static inline void run_world(struct world *w, weir_time span)
{
	weir_time end = w->now + span;

	for (;;) {
		weir_time next;

		if (w->resource->timer_at <= w->now)
			w->resource->timer_at = WEIR_NEVER; /* as when the loop's timer is due */
		turn(w);
		next = fake_next(w->fake);
		if (w->resource->timer_at < next)
			next = w->resource->timer_at;
		if (next > end)
			break;
		CHECK(next > w->now);
		w->now = next;
	}
	w->now = end;
	turn(w);
}

static inline struct weir_gate_stats stats(struct world *w, const char *path)
{
	struct weir_gate_stats s;
	int i = weir_policy_find(w->policy, path);

	CHECK(i >= 0);
	CHECK_INT(
		weir_gate_get_stats(w->resource->gate, w->resource->now, w->resource->nodes[i], &s),
		0);
	return s;
}

#define DISK   "resources: [{name: disk, depth: 4}]\n"
#define SHADOW "enforce: false\n" DISK

#endif
