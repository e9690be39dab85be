/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volumes: pass requests on to the volume of their slot.
 *
 * METHOD  A batch is sorted into one list a volume, in order, and each volume gets its list in one call. The volume sees
 *         offsets of its own. Requests inside are counted, so that a volume that is removed is flushed and freed after the
 *         last of them, in the loop's turn, since `done` may be called from inside its own functions.
 *         A slot is reused as late as possible: a client in its handshake may still have the offset of a volume that was
 *         removed.
 * COST    O(1) a request; volumes without requests cost memory only.
 */
#include "serve/back/volumes.h"
#include "base/array.h"
#include "base/container.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_LEAST 1024

struct volume {
	struct volumes *all;
	struct back *back; /* NULL: the slot is only reserved */
	uint32_t slot;
	uint32_t inside;              /* requests */
	bool known;                   /* its info is, and counts */
	bool leaving;                 /* removed: freed when nothing is inside */
	struct volume *next_touched;  /* of a batch */
	struct back_io *first, **end; /* its part of the batch */
	struct back_volume_calls calls;
	struct back_io flush;
	bool in_all;               /* `flush` is a part of flush_all */
	struct volume *next_ended; /* to be freed in the turn */
};

struct volumes {
	struct back back; /* first */
	struct loop *loop;
	struct volume **slots;     /* NULL: free */
	size_t n_slots, next_slot; /* next_slot: where the search for a free one begins */
	size_t n_used, n_volumes;  /* slots that are not free; those of them with a volume */
	size_t n_known, n_telling; /* volumes whose info is known; that tell the device's time */
	bool started;
	struct back_io *flush_all; /* a FLUSH of all volumes that is inside */
	size_t flushing;           /* volumes whose part of it is not done */
	struct volume *ended;
	struct loop_turn turn;
};

static struct volumes *volumes_of(struct back *b)
{
	return container_of(b, struct volumes, back);
}

static struct volume *volume_at(const struct volumes *v, uint64_t offset)
{
	size_t slot = (size_t)(offset >> BACK_VOLUMES_BITS);

	return slot < v->n_slots ? v->slots[slot] : NULL;
}

/* ---- requests */

static void refuse(struct volumes *v, struct back_io *io)
{
	io->error = -EIO;
	v->back.done(v->back.done_arg, io);
}

static struct volume *volume_from(const struct volumes *v, size_t *at)
{
	while (*at < v->n_slots) {
		struct volume *volume = v->slots[(*at)++];

		if (volume && volume->back)
			return volume;
	}
	return NULL;
}

static void flush_ended(struct volumes *v)
{
	struct back_io *io = v->flush_all;

	if (--v->flushing)
		return;
	v->flush_all = NULL;
	v->back.done(v->back.done_arg, io);
}

/* A FLUSH that covers everything: of every volume. */
static void flush_all(struct volumes *v, struct back_io *io)
{
	struct volume *volume;

	v->flush_all = io;
	v->flushing = 1;
	io->error = 0;
	for (size_t at = 0; (volume = volume_from(v, &at));) {
		if (volume->leaving || volume->back->info.read_only ||
			!volume->back->info.can_flush)
			continue;
		volume->flush = (struct back_io){.op = BACK_FLUSH};
		volume->in_all = true;
		volume->inside++;
		v->flushing++;
		back_submit(volume->back, &volume->flush);
	}
	flush_ended(v);
}

/* One thread writes. */
static void count(struct back_volume_counts *c, const struct back_io *io)
{
	uint64_t n = atomic_load_explicit(&c->requests, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);

	for (; io; io = io->next) {
		n++;
		bytes += io->op == BACK_READ || io->op == BACK_WRITE ? io->length : 0;
	}
	atomic_store_explicit(&c->requests, n, memory_order_relaxed);
	atomic_store_explicit(&c->bytes, bytes, memory_order_relaxed);
}

/* Volumes may be thousands, and in no cache: all of a batch are fetched together. */
static void fetch_volumes(const struct volumes *v, const struct back_io *io)
{
	for (; io; io = io->next) {
		const struct volume *volume = volume_at(v, io->offset);

		__builtin_prefetch(volume, 1);
		__builtin_prefetch((const char *)volume + 64, 1);
	}
}

static void fetch_back(const struct volume *volume)
{
	__builtin_prefetch(volume->back);
	__builtin_prefetch(&volume->back->done);
	__builtin_prefetch(volume->calls.counts, 1);
}

static void volumes_submit(struct back *b, struct back_io *ios)
{
	struct volumes *v = volumes_of(b);
	struct volume *touched = NULL, **last = &touched, *volume;
	struct back_io *next;

	fetch_volumes(v, ios);
	for (struct back_io *io = ios; io; io = next) {
		next = io->next;
		if (io->op == BACK_FLUSH && !io->length && !v->flush_all) {
			flush_all(v, io);
			continue;
		}
		volume = volume_at(v, io->offset);
		if (!volume || !volume->back || volume->leaving) {
			refuse(v, io);
			continue;
		}
		if (!volume->first) {
			volume->end = &volume->first;
			volume->next_touched = NULL;
			*last = volume;
			last = &volume->next_touched;
			fetch_back(volume);
		}
		io->offset &= BACK_VOLUMES_SIZE - 1;
		io->next = NULL;
		*volume->end = io;
		volume->end = &io->next;
		volume->inside++;
	}
	while ((volume = touched)) {
		struct back_io *first = volume->first;

		touched = volume->next_touched;
		volume->first = NULL;
		if (volume->calls.counts)
			count(volume->calls.counts, first);
		back_submit(volume->back, first);
	}
}

/* ---- a volume that leaves */

static void free_slot(struct volumes *v, uint32_t slot)
{
	free(v->slots[slot]);
	v->slots[slot] = NULL;
	v->n_used--;
}

/* The device's time is known if every volume tells it. */
static void count_known(struct volume *volume, int by)
{
	struct volumes *v = volume->all;

	volume->known = by > 0;
	v->n_known += (size_t)by;
	v->n_telling += volume->back->info.tells_device ? (size_t)by : 0;
	v->back.info.tells_device = v->n_known && v->n_telling == v->n_known;
}

static void free_volume(struct volume *volume)
{
	struct back_volume_calls calls = volume->calls;
	int error = volume->flush.error;

	if (volume->known)
		count_known(volume, -1);
	back_free(volume->back);
	volume->all->n_volumes--;
	free_slot(volume->all, volume->slot);
	if (calls.gone)
		calls.gone(calls.arg, error);
}

static bool volumes_turn(struct loop_turn *t, weir_time now)
{
	struct volumes *v = container_of(t, struct volumes, turn);
	struct volume *volume;

	while ((volume = v->ended)) {
		v->ended = volume->next_ended;
		free_volume(volume);
	}
	return false;
}

/* Nothing is inside: flush, then free. */
static void leave(struct volume *volume)
{
	struct back *b = volume->back;

	if (!volume->flush.op && b->info.can_flush && !b->info.read_only) {
		volume->flush = (struct back_io){.op = BACK_FLUSH};
		volume->inside++;
		back_submit(b, &volume->flush);
		return;
	}
	volume->next_ended = volume->all->ended;
	volume->all->ended = volume;
}

static void flush_part_done(struct volume *volume)
{
	struct volumes *v = volume->all;

	if (volume->flush.error && !v->flush_all->error)
		v->flush_all->error = volume->flush.error;
	volume->flush.op = 0;
	volume->in_all = false;
	flush_ended(v);
}

static void volume_done(void *arg, struct back_io *io)
{
	struct volume *volume = arg;

	volume->inside--;
	if (io != &volume->flush)
		volume->all->back.done(volume->all->back.done_arg, io);
	else if (volume->in_all)
		flush_part_done(volume);
	if (volume->leaving && !volume->inside)
		leave(volume);
}

void back_volumes_remove(struct back *all, uint32_t slot)
{
	struct volumes *v = volumes_of(all);
	struct volume *volume = v->slots[slot];

	if (!volume->back) {
		free_slot(v, slot);
		return;
	}
	volume->leaving = true;
	if (!volume->inside)
		leave(volume);
}

void back_volumes_client(struct back *all, uint64_t offset, int n)
{
	const struct volume *volume =
		back_is_volumes(all) ? volume_at(volumes_of(all), offset) : NULL;

	if (volume && volume->calls.counts)
		atomic_fetch_add_explicit(
			&volume->calls.counts->clients, (unsigned)n, memory_order_relaxed);
}

void back_volumes_stalled(struct back *all, uint32_t slot, bool stalled)
{
	const struct volume *volume = volumes_of(all)->slots[slot];

	if (volume && volume->calls.counts)
		atomic_store(&volume->calls.counts->stalled, stalled);
}

int back_volumes_grown(struct back *all, uint32_t slot)
{
	struct back *b = volumes_of(all)->slots[slot]->back;

	return b->ops->grown ? b->ops->grown(b) : -ENOTSUP;
}

/* ---- a volume that comes */

/* Keep at least half of the slots free. */
static int grow(struct volumes *v)
{
	size_t n = v->n_slots ? 2 * v->n_slots : SLOTS_LEAST;

	if (2 * (v->n_used + 1) <= v->n_slots || v->n_slots == BACK_VOLUMES_MOST)
		return 0;
	if (array_resize(&v->slots, n) < 0)
		return -ENOMEM;
	memset(v->slots + v->n_slots, 0, (n - v->n_slots) * sizeof(*v->slots));
	v->next_slot = v->n_slots;
	v->n_slots = n;
	return 0;
}

int back_volumes_reserve(struct back *all, uint32_t *ret_slot)
{
	struct volumes *v = volumes_of(all);
	struct volume *volume;
	size_t slot;

	if (v->n_used == BACK_VOLUMES_MOST)
		return -ENOSPC;
	if (grow(v) < 0 || !(volume = calloc(1, sizeof(*volume))))
		return -ENOMEM;
	for (slot = v->next_slot; v->slots[slot];)
		slot = (slot + 1) % v->n_slots;
	v->next_slot = (slot + 1) % v->n_slots;
	v->n_used++;
	*volume = (struct volume){.all = v, .slot = (uint32_t)slot};
	v->slots[slot] = volume;
	*ret_slot = (uint32_t)slot;
	return 0;
}

/* The properties of all: the resource's defaults. */
static void take_info(struct volume *volume)
{
	struct back_info *to = &volume->all->back.info;
	const struct back_info *one = &volume->back->info;

	count_known(volume, 1);
	to->rotational |= one->rotational;
	to->can_flush |= one->can_flush;
	to->size = BACK_VOLUMES_SIZE;
	if (one->depth > to->depth)
		to->depth = one->depth;
	if (one->depth_bytes > to->depth_bytes)
		to->depth_bytes = one->depth_bytes;
}

static void volume_known(void *arg)
{
	struct volume *volume = arg;
	struct back *all = &volume->all->back;

	take_info(volume);
	if (all->known)
		all->known(all->known_arg);
	if (volume->calls.known)
		volume->calls.known(volume->calls.arg);
}

static int start_volume(struct volume *volume)
{
	struct back *b = volume->back;

	return b->ops->start ? b->ops->start(b) : 0;
}

int back_volumes_add(
	struct back *all, uint32_t slot, struct back *volume, const struct back_volume_calls *calls)
{
	struct volumes *v = volumes_of(all);
	struct volume *to = v->slots[slot];
	int rc;

	to->back = volume;
	to->calls = *calls;
	volume->done = volume_done;
	volume->done_arg = to;
	volume->known = volume_known;
	volume->known_arg = to;
	rc = v->started ? start_volume(to) : 0;
	if (rc < 0) {
		free_slot(v, slot);
		return rc;
	}
	v->n_volumes++;
	if (back_real(volume)->state == BACK_STARTING)
		return 0;
	take_info(to);
	if (v->started && all->known)
		all->known(all->known_arg);
	return 0;
}

/* ---- the table */

static int volumes_start(struct back *b)
{
	struct volumes *v = volumes_of(b);
	struct volume *volume;
	int rc = 0;

	for (size_t at = 0; rc == 0 && (volume = volume_from(v, &at));)
		rc = start_volume(volume);
	v->started = rc == 0;
	if (v->started)
		loop_turn_add(v->loop, &v->turn);
	return rc;
}

static void volumes_ask(struct back *b)
{
	struct volume *volume;

	for (size_t at = 0; (volume = volume_from(volumes_of(b), &at));)
		if (volume->back->ops->ask)
			volume->back->ops->ask(volume->back);
}

static void volumes_free(struct back *b)
{
	struct volumes *v = volumes_of(b);

	if (v->started)
		loop_turn_remove(v->loop, &v->turn);
	for (size_t i = 0; i < v->n_slots; i++) {
		if (v->slots[i])
			back_free(v->slots[i]->back);
		free(v->slots[i]);
	}
	free(v->slots);
	free(v);
}

static bool volumes_abandon(struct back *b)
{
	struct volume *volume;
	bool away = false;

	for (size_t at = 0; (volume = volume_from(volumes_of(b), &at));)
		if (volume->back->ops->abandon && volume->back->ops->abandon(volume->back))
			away = true;
	return away;
}

static uint64_t volumes_unflushed(const struct back *b)
{
	const struct volumes *v = container_of(b, const struct volumes, back);
	const struct volume *volume;
	uint64_t bytes = 0;

	for (size_t at = 0; (volume = volume_from(v, &at));)
		if (volume->back->ops->unflushed)
			bytes += volume->back->ops->unflushed(volume->back);
	return bytes;
}

/* The state of all: of the volume that is worst off. Sums only grow, also when a volume leaves. */
static void volumes_look(struct back *b)
{
	static const uint8_t rank[] = {
		[BACK_UP] = 0, [BACK_STARTING] = 1, [BACK_LOST] = 2, [BACK_FAILED] = 3};
	struct volume *volume;
	uint64_t lost = 0, errors = 0;

	b->state = BACK_UP;
	b->trouble = NULL;
	b->held = 0;
	for (size_t at = 0; (volume = volume_from(volumes_of(b), &at));) {
		const struct back *one = back_real(volume->back);

		lost += one->lost;
		errors += one->flush_errors;
		if (rank[one->state] > rank[b->state])
			b->state = one->state;
		if (one->trouble)
			b->trouble = one->trouble;
		if (one->held > b->held)
			b->held = one->held;
	}
	b->lost = lost > b->lost ? lost : b->lost;
	b->flush_errors = errors > b->flush_errors ? errors : b->flush_errors;
}

static void volumes_say(const struct back *b, char *text, size_t len)
{
	const struct volumes *v = container_of(b, const struct volumes, back);
	const struct volume *volume;
	size_t away = 0;

	for (size_t at = 0; (volume = volume_from(v, &at));)
		away += back_real(volume->back)->state != BACK_UP;
	if (!away)
		snprintf(text, len, "%zu volume%s", v->n_volumes, v->n_volumes == 1 ? "" : "s");
	else
		snprintf(text, len, "%zu of %zu volumes not reachable", away, v->n_volumes);
}

static const struct back_ops ops = {.name = "volumes",
	.start = volumes_start,
	.submit = volumes_submit,
	.ask = volumes_ask,
	.free = volumes_free,
	.abandon = volumes_abandon,
	.unflushed = volumes_unflushed,
	.look = volumes_look,
	.say = volumes_say};

int back_volumes_new(struct loop *loop, struct back **ret_back)
{
	struct volumes *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->back.ops = &ops;
	v->back.info.size = BACK_VOLUMES_SIZE;
	v->loop = loop;
	v->turn.turn = volumes_turn;
	*ret_back = &v->back;
	return 0;
}

bool back_is_volumes(const struct back *b)
{
	return b->ops == &ops;
}

const struct back *back_at(const struct back *b, uint64_t offset)
{
	const struct volume *volume;

	if (!back_is_volumes(b))
		return b;
	volume = volume_at(container_of(b, const struct volumes, back), offset);
	return volume && !volume->leaving ? volume->back : NULL;
}
