/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/profile/gauge.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "base/rng.h"
#include "serve/back/model.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define POOL (64u << 20) /* bytes: for what a back end receives and keeps */
#define WARM 2           /* requests of each slot that are not counted */

struct slot {
	struct back_io io;
	struct device_io timed; /* of a model */
	weir_time sent;
	unsigned kind;
	uint8_t *data;
};

struct gauge {
	struct loop *loop;
	struct chunk_pool *pool;
	struct back *back;
	struct device *device; /* of a model; NULL: the back end is measured */
	weir_time now;         /* the model's */
	struct slot *slots;
	unsigned depth;
	volatile sig_atomic_t stopped;
	struct rng rng;
	/* of the run under way */
	const struct gauge_kind *kinds;
	unsigned n_kinds;
	struct gauge_result *result;
	struct loop_timer timer;
	struct loop_turn turn;
	struct back_io *ready; /* slots to send in this round */
	uint64_t last;         /* offset */
	uint64_t left;         /* bytes that may still be sent */
	uint64_t warm;         /* requests that are not counted yet */
	weir_time began, ended;
	unsigned inside;
	bool closing;
	int error;
};

/* ---- offsets */

static uint64_t next_offset(struct gauge *m, const struct gauge_kind *k)
{
	uint64_t places = m->back->info.size / k->bytes, reach = k->distance / k->bytes;
	uint64_t at = m->last / k->bytes, low, high;

	if (k->distance == 0)
		return m->last = (at + 1) % places * k->bytes;
	low = at > reach ? at - reach : 0;
	high = reach < places - 1 - at ? at + reach : places - 1;
	return m->last = (low + rng_below(&m->rng, high - low + 1)) * k->bytes;
}

/* ---- the loop */

static void send_slot(struct gauge *m, struct slot *s)
{
	const struct gauge_kind *k;

	s->kind = m->n_kinds > 1 ? (unsigned)rng_below(&m->rng, m->n_kinds) : 0;
	k = &m->kinds[s->kind];
	s->io = (struct back_io){.op = k->write ? BACK_WRITE : BACK_READ,
		.offset = next_offset(m, k),
		.length = k->bytes,
		.data = s->data,
		.next = m->ready};
	m->ready = &s->io;
	m->inside++;
	m->left = m->left > k->bytes ? m->left - k->bytes : 0;
}

/* Count a request, and replace it. */
static void slot_done(struct gauge *m, struct slot *s, weir_time now)
{
	m->inside--;
	if (m->error || m->stopped || !m->left)
		m->closing = true;
	if (m->warm) {
		m->warm--;
		m->began = now;
	} else if (!m->closing) {
		m->result->n++;
		m->result->of[s->kind]++;
		m->ended = now;
		weir_hist_record(&m->result->inside, (uint64_t)(now - s->sent));
	}
	if (!m->closing)
		send_slot(m, s);
}

static void request_done(void *arg, struct back_io *io)
{
	struct gauge *m = arg;

	if (io->error && !m->error)
		m->error = io->error;
	slot_done(m, container_of(io, struct slot, io), loop_refresh(m->loop));
	if (!m->inside)
		loop_stop(m->loop);
}

/* Send what the round's replies made room for, in one batch. */
static bool send_ready(struct loop_turn *t, weir_time now)
{
	struct gauge *m = container_of(t, struct gauge, turn);
	struct back_io *ios = m->ready;

	if (!ios)
		return false;
	m->ready = NULL;
	now = loop_refresh(m->loop);
	for (struct back_io *io = ios; io; io = io->next)
		container_of(io, struct slot, io)->sent = now;
	back_submit(m->back, ios);
	return m->ready != NULL;
}

static void time_is_over(struct loop_timer *t, weir_time now)
{
	container_of(t, struct gauge, timer)->closing = true;
}

static int run_back(struct gauge *m, weir_time time)
{
	int rc = loop_set(m->loop, &m->timer, loop_now(m->loop) + time);

	if (rc == 0)
		rc = loop_run(m->loop);
	loop_set(m->loop, &m->timer, WEIR_NEVER);
	return rc;
}

/* ---- a model, in its own time */

static void send_timed(struct gauge *m)
{
	struct back_io *ios = m->ready;

	m->ready = NULL;
	for (struct back_io *io = ios; io; io = io->next) {
		struct slot *s = container_of(io, struct slot, io);

		s->sent = m->now;
		s->timed = (struct device_io){.offset = io->offset,
			.bytes = (uint32_t)io->length,
			.op = io->op == BACK_WRITE};
		device_submit(m->device, m->now, &s->timed);
	}
}

static void run_model(struct gauge *m, weir_time time)
{
	weir_time end = m->now + time;

	send_timed(m);
	while (m->inside) {
		struct device_io *d;

		m->now = device_next(m->device);
		m->closing |= m->now > end;
		d = device_step(m->device, m->now);
		while (d) {
			struct slot *s = container_of(d, struct slot, timed);

			d = d->next;
			slot_done(m, s, m->now);
		}
		send_timed(m);
	}
}

/* ---- a run */

int gauge_run(struct gauge *m, const struct gauge_kind *kinds, unsigned n, weir_time time,
	uint64_t bytes, struct gauge_result *ret)
{
	int rc = 0;

	if (m->stopped)
		return -EINTR;
	m->kinds = kinds;
	m->n_kinds = n;
	m->result = ret;
	ret->n = 0;
	memset(ret->of, 0, sizeof(ret->of));
	weir_hist_clear(&ret->inside);
	m->left = bytes;
	m->warm = (uint64_t)WARM * m->depth;
	m->error = 0;
	m->closing = false;
	m->began = m->ended = m->device ? m->now : loop_refresh(m->loop);
	for (unsigned i = 0; i < m->depth; i++)
		send_slot(m, &m->slots[i]);
	if (m->device)
		run_model(m, time);
	else
		rc = run_back(m, time);
	if (rc == 0)
		rc = m->error;
	if (rc < 0)
		return rc;
	ret->work = ret->n ? (double)(m->ended - m->began) / (double)ret->n : 0;
	return m->stopped ? -EINTR : 0;
}

void gauge_stop(struct gauge *m)
{
	m->stopped = 1;
}

/* ---- life */

const struct back_info *gauge_info(const struct gauge *m)
{
	return &m->back->info;
}

static int make_slots(struct gauge *m)
{
	m->slots = calloc(m->depth, sizeof(*m->slots));
	for (unsigned i = 0; m->slots && i < m->depth; i++) {
		m->slots[i].data = aligned_alloc(4096, CHUNK_MAX);
		if (!m->slots[i].data)
			return -ENOMEM;
		memset(m->slots[i].data, 0xa5, CHUNK_MAX);
	}
	return m->slots ? 0 : -ENOMEM;
}

/* A target that is a model is measured by itself. */
static int open_model(struct gauge *m, const char *target, struct weir_err *err)
{
	struct back_model_device d;
	const char *inner;
	int rc;

	if (strncmp(target, "model:", 6) != 0)
		return 0;
	rc = back_model_device(target + 6, 1, &d, &inner, err);
	if (rc == 0)
		m->device = d.device;
	return rc;
}

int gauge_new(
	const char *target, unsigned depth, bool writes, struct gauge **ret, struct weir_err *err)
{
	struct gauge *m = calloc(1, sizeof(*m));
	struct back_config c = {.read_only = !writes, .lock = writes, .seed = 1};
	int rc = m ? 0 : -ENOMEM;

	if (rc == 0) {
		m->depth = depth;
		m->timer.due = time_is_over;
		m->turn.turn = send_ready;
		rng_init(&m->rng, 1, "profile");
		rc = make_slots(m);
	}
	if (rc == 0)
		rc = loop_new(&m->loop);
	if (rc == 0)
		rc = chunk_pool_new(POOL, &m->pool);
	if (rc < 0) {
		gauge_free(m);
		return no_memory(err);
	}
	c.loop = m->loop;
	c.pool = m->pool;
	loop_poll(m->loop);
	rc = back_open(target, &c, &m->back, err);
	if (rc == 0)
		rc = open_model(m, target, err);
	if (rc == 0 && !m->device) {
		m->back->done = request_done;
		m->back->done_arg = m;
		rc = m->back->ops->start(m->back);
		if (rc < 0)
			weir_err_set(err, rc, "%s: %s", target, strerror(-rc));
	}
	if (rc < 0) {
		gauge_free(m);
		return rc;
	}
	loop_turn_add(m->loop, &m->turn);
	*ret = m;
	return 0;
}

void gauge_free(struct gauge *m)
{
	if (!m)
		return;
	back_free(m->back);
	device_free(m->device);
	for (unsigned i = 0; m->slots && i < m->depth; i++)
		free(m->slots[i].data);
	free(m->slots);
	if (m->loop)
		loop_free(m->loop);
	if (m->pool)
		chunk_pool_free(m->pool);
	free(m);
}
