/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: any back end with the timing of a device model.
 *
 * METHOD  A request goes to the model at its submission time and, at once, to the inner back end;
 *         it is done when both are. One timer is set to the model's next event. When it expires,
 *         the model processes everything up to then, and finished requests are returned in one
 *         batch. Requests that wait inside the model start at the model's times, not at the
 *         timer's, so that a late timer delays one reply but does not slow down the device.
 *
 *         Each request has a part, from a free list that grows to the peak of requests inside: the
 *         model and the inner back end both need room in it.
 *
 *         READ, WRITE and a ZERO that must leave no hole take the time of their bytes; TRIM, other
 *         ZEROes and FLUSH the model's time of a flush or trim; STATUS and CACHE no time.
 */
#include "base/container.h"
#include "serve/back/model.h"
#include "serve/back/back.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLAB 64 /* parts in one allocation */

struct part {
	struct device_io timed; /* first: the device returns it */
	struct back_io inner;
	struct back_io *outer;
	struct part *next; /* in the free list */
	uint8_t pending;   /* of the two */
};
struct slab {
	struct slab *next;
	struct part parts[SLAB];
};

struct model {
	struct back back;
	struct back *inner;
	struct device *device;
	struct loop *loop;
	struct loop_timer timer;
	weir_time at;  /* expiry of the timer */
	weir_time now; /* of the device: monotonic */
	struct part *free_parts;
	struct slab *slabs;
};

static struct part *part_new(struct model *m)
{
	struct part *p = m->free_parts;

	if (!p) {
		struct slab *s = calloc(1, sizeof(*s));

		if (!s)
			return NULL;
		s->next = m->slabs;
		m->slabs = s;
		for (size_t i = 0; i < SLAB; i++) {
			s->parts[i].next = m->free_parts;
			m->free_parts = &s->parts[i];
		}
		p = m->free_parts;
	}
	m->free_parts = p->next;
	return p;
}

static void part_done(struct model *m, struct part *p)
{
	struct back_io *io = p->outer;

	if (--p->pending)
		return;
	io->error = p->inner.error;
	io->data = p->inner.data;
	io->n_extents = p->inner.n_extents;
	io->device = p->timed.busy;
	p->next = m->free_parts;
	m->free_parts = p;
	m->back.done(m->back.done_arg, io);
}

static void inner_done(void *arg, struct back_io *io)
{
	part_done(arg, container_of(io, struct part, inner));
}

/* ---- time */

static void set_timer(struct model *m)
{
	weir_time next = device_next(m->device);

	if (next == m->at)
		return;
	m->at = loop_set(m->loop, &m->timer, next) < 0 ? WEIR_NEVER : next;
}

/* Process everything in the model up to now. */
static void catch_up(struct model *m, weir_time now)
{
	struct device_io *d;

	m->now = now;
	if (device_next(m->device) > now)
		return;
	d = device_step(m->device, now);
	while (d) {
		struct part *p = container_of(d, struct part, timed);

		d = d->next;
		part_done(m, p);
	}
}

static void model_due(struct loop_timer *t, weir_time round)
{
	struct model *m = container_of(t, struct model, timer);

	m->at = WEIR_NEVER;
	catch_up(m, loop_clock());
	set_timer(m);
}

/* ---- requests */

static void set_timed(struct part *p, const struct back_io *io)
{
	bool bytes = io->op == BACK_READ || io->op == BACK_WRITE ||
		     (io->op == BACK_ZERO && io->flags & BACK_NO_HOLE);

	p->timed = (struct device_io){
		.offset = io->offset,
		.bytes = !bytes                    ? 0
			 : io->length < UINT32_MAX ? (uint32_t)io->length
						   : UINT32_MAX,
		.op = bytes                  ? io->op != BACK_READ
		      : io->op == BACK_FLUSH ? 2
					     : 3,
		.source = io->source,
	};
}

static struct part *start_part(struct model *m, struct back_io *io)
{
	struct part *p = part_new(m);

	if (!p) {
		io->error = -ENOMEM;
		m->back.done(m->back.done_arg, io);
		return NULL;
	}
	p->outer = io;
	p->inner = *io;
	p->inner.next = NULL;
	p->timed.busy = 0;
	p->inner.flags &= (uint8_t)~BACK_BORROW; /* the model may finish it in a later round */
	p->pending = 1;
	if (io->op != BACK_STATUS && io->op != BACK_CACHE) {
		p->pending = 2;
		set_timed(p, io);
		device_submit(m->device, m->now, &p->timed);
	}
	return p;
}

static void model_submit(struct back *b, struct back_io *ios)
{
	struct model *m = (struct model *)b;
	struct back_io *first = NULL, **end = &first;

	catch_up(m, loop_clock());
	while (ios) {
		struct back_io *io = ios;
		struct part *p;

		ios = io->next;
		p = start_part(m, io);
		if (p) {
			*end = &p->inner;
			end = &p->inner.next;
		}
	}
	set_timer(m);
	if (first)
		back_submit(m->inner, first);
}

/* ---- start and end */

/* Report the properties of the inner back end, except those that the model sets. */
static void merge_info(struct model *m)
{
	struct back_info own = m->back.info;

	m->back.info = m->inner->info;
	m->back.info.depth = own.depth;
	m->back.info.depth_bytes = own.depth_bytes;
	m->back.info.rotational = own.rotational;
	m->back.info.tells_device = own.tells_device;
}

static void inner_known(void *arg)
{
	struct model *m = arg;

	merge_info(m);
	if (m->back.known)
		m->back.known(m->back.known_arg);
}

static int model_start(struct back *b)
{
	struct model *m = (struct model *)b;

	m->inner->done = inner_done;
	m->inner->done_arg = m;
	m->inner->known = inner_known;
	m->inner->known_arg = m;
	m->timer.due = model_due;
	m->at = WEIR_NEVER;
	return m->inner->ops->start(m->inner);
}

static void model_free(struct back *b)
{
	struct model *m = (struct model *)b;

	if (m->timer.due)
		loop_set(m->loop, &m->timer, WEIR_NEVER);
	back_free(m->inner);
	device_free(m->device);
	while (m->slabs) {
		struct slab *s = m->slabs;

		m->slabs = s->next;
		free(s);
	}
	free(m);
}

static void model_say(const struct back *b, char *text, size_t len)
{
	const struct model *m = (const struct model *)b;
	int n = snprintf(text, len, "model of %s; ", m->device->ops->name);

	if (m->inner->ops->say && n > 0 && (size_t)n < len)
		m->inner->ops->say(m->inner, text + n, len - (size_t)n);
}

static bool model_abandon(struct back *b)
{
	struct back *inner = ((struct model *)b)->inner;

	return inner->ops->abandon && inner->ops->abandon(inner);
}

static uint64_t model_unflushed(const struct back *b)
{
	const struct back *inner = ((const struct model *)b)->inner;

	return inner->ops->unflushed ? inner->ops->unflushed(inner) : 0;
}

static const struct back_ops model_ops = {
	.name = "model",
	.start = model_start,
	.submit = model_submit,
	.free = model_free,
	.abandon = model_abandon,
	.unflushed = model_unflushed,
	.say = model_say,
};

static int model_check(const char *rest, struct weir_err *err)
{
	struct back_model_device d;
	const char *inner;
	int r = back_model_device(rest, 1, &d, &inner, err);

	if (r)
		return r;
	device_free(d.device);
	return back_check(inner, err);
}

static int model_size(const char *rest, uint64_t *ret_size)
{
	struct back_model_device d;
	struct weir_err ignored;
	const char *inner;

	if (back_model_device(rest, 1, &d, &inner, &ignored) < 0)
		return -ENODATA;
	device_free(d.device);
	return back_size(inner, ret_size);
}

static int model_open(const char *rest, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	struct back_model_device d;
	struct model *m = calloc(1, sizeof(*m));
	const char *inner;
	int r;

	if (!m)
		return weir_err_set(err, -ENOMEM, "model:%s: out of memory", rest);
	r = back_model_device(rest, config->seed, &d, &inner, err);
	if (r == 0) {
		m->device = d.device;
		r = back_open(inner, config, &m->inner, err);
	}
	if (r) {
		device_free(m->device);
		free(m);
		return r;
	}
	m->back.ops = &model_ops;
	m->back.info.rotational = d.rotational;
	m->back.info.depth = d.depth;
	m->back.info.depth_bytes = d.depth_bytes;
	m->back.info.tells_device = m->device->ops->tells_busy;
	m->back.behind = m->inner;
	merge_info(m);
	m->loop = config->loop;
	*ret_back = &m->back;
	return 0;
}

const struct back_kind back_model_kind = {
	.names = (const char *const[]){"model", NULL},
	.open = model_open,
	.check = model_check,
	.size = model_size,
};
