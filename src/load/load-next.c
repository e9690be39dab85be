/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-next: choose the next request and its time.
 *
 * LAW     Closed loop: at once. Open loop: the time of the i-th arrival depends only on the seed and
 *         the rate, never on the server. Even: i / rate. Poisson: sums of exponential times.
 * METHOD  Arrivals are generated one at a time on demand; overdue ones, for lack of a free slot, still
 *         get the time at which they were due. So the queue of a stalled server costs no memory,
 *         however long it is.
 */
#include "load/load-impl.h"
#include "base/divisor.h"
#include "model/trace/trace.h"
#include <errno.h>
#include <stdio.h>

__extension__ typedef unsigned __int128 load_u128;

static int check_sizes(struct load_run *r, struct weir_err *err)
{
	uint32_t most =
		r->export_.block_max < NBD_PAYLOAD_MAX ? r->export_.block_max : NBD_PAYLOAD_MAX;

	if (r->job.n_sizes == 0)
		return weir_err_set(err, -EINVAL, "%s: no size", r->job.name);
	r->align = r->job.sizes[0].bytes;
	r->least = UINT32_MAX;
	for (size_t i = 0; i < r->job.n_sizes; i++) {
		uint32_t n = r->job.sizes[i].bytes;

		if (n == 0 || n % r->export_.block_min || n > most)
			return weir_err_set(err, -EINVAL,
				"%s: size %u: the server accepts multiples of %u up to %u",
				r->job.name, n, r->export_.block_min, most);
		r->align = (uint32_t)common_divisor(n, r->align);
		r->least = n < r->least ? n : r->least;
		r->most = n > r->most ? n : r->most;
	}
	return 0;
}

static int check_flags(struct load_run *r, struct weir_err *err)
{
	struct load_job *j = &r->job;
	uint16_t flags = r->export_.flags;

	if (flags & NBD_READ_ONLY && j->reads < 1)
		return weir_err_set(
			err, -EROFS, "%s: the export is read-only (reads=100%%)", j->name);
	if (j->verify && j->flush_every == 0 && flags & NBD_SEND_FLUSH)
		j->flush_every = 64;
	if (j->flush_every && !(flags & NBD_SEND_FLUSH))
		return weir_err_set(
			err, -ENOTSUP, "%s: the server does not support flush", j->name);
	if (j->fua > 0 && !(flags & NBD_SEND_FUA))
		return weir_err_set(err, -ENOTSUP, "%s: the server does not support FUA", j->name);
	if (j->verify && j->connections > 1 && !(flags & NBD_MULTI_CONN))
		return weir_err_set(err, -EINVAL,
			"%s: without MULTI_CONN a flush covers one connection only; verify "
			"needs connections=1",
			j->name);
	if (j->verify && r->align % LOAD_VERIFY_MIN)
		return weir_err_set(err, -EINVAL, "%s: verify needs sizes that are multiples of %d",
			j->name, LOAD_VERIFY_MIN);
	return 0;
}

static int check_region(struct load_run *r, struct weir_err *err)
{
	struct load_job *j = &r->job;
	uint64_t size = r->export_.size;

	if (j->offset > size || j->length > size - j->offset)
		return weir_err_set(err, -EINVAL, "%s: the export has only %llu bytes", j->name,
			(unsigned long long)size);
	r->base = j->offset;
	r->span = j->length ? j->length : size - j->offset;
	if (r->base % r->export_.block_min)
		return weir_err_set(err, -EINVAL, "%s: offset: the server accepts multiples of %u",
			j->name, r->export_.block_min);
	if (r->align)
		r->span -= r->span % r->align;
	if (r->align == 0 || r->span < r->most)
		return weir_err_set(err, -EINVAL,
			"%s: the part of the export is smaller than a request", j->name);
	r->places = r->span / r->align;
	return 0;
}

/* Find the largest request of the trace, and check that all fit. */
static int check_trace(struct load_run *r, struct weir_err *err)
{
	const struct trace *t = r->job.trace;
	uint32_t unit = r->export_.block_min;

	r->align = unit;
	r->least = r->most = unit;
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *q = &t->records[i];
		uint64_t n =
			((uint64_t)q->bytes + 2 * unit - 1) / unit * unit; /* rounded outwards */
		uint64_t end = q->offset + q->bytes;

		if (q->op == TRACE_FLUSH)
			continue;
		if (q->op != TRACE_TRIM && n > NBD_PAYLOAD_MAX)
			return weir_err_set(err, -EINVAL,
				"request %zu of the trace has %u bytes, more than %u", i + 1,
				q->bytes, NBD_PAYLOAD_MAX);
		if (q->op != TRACE_READ && r->export_.flags & NBD_READ_ONLY)
			return weir_err_set(
				err, -EROFS, "the trace has writes, but the export is read-only");
		if (q->op != TRACE_TRIM && n > r->most)
			r->most = (uint32_t)n;
		r->trace_extent = end > r->trace_extent ? end : r->trace_extent;
	}
	if (r->trace_extent > r->export_.size && !r->job.scale_offsets)
		return weir_err_set(err, -EINVAL,
			"the trace ends at %llu, the export at %llu; use --scale-offsets to make "
			"it fit",
			(unsigned long long)r->trace_extent, (unsigned long long)r->export_.size);
	return r->most > r->export_.size ? weir_err_set(err, -EINVAL, "the export is too small")
					 : 0;
}

int load_next_init(struct load_run *r, struct weir_err *err)
{
	char name[64];
	int e = r->job.trace ? check_trace(r, err) : check_sizes(r, err);

	if (e == 0)
		e = check_region(r, err);
	if (e == 0 && !r->job.trace)
		e = check_flags(r, err);
	if (e < 0)
		return e;
	snprintf(name, sizeof(name), "load/%.40s", r->job.name);
	rng_init(&r->rng, r->job.seed, name);
	if (r->job.order == LOAD_ZIPF) {
		rng_zipf_init(&r->zipf, r->places, r->job.zipf);
		/* About 0.618 of the whole, and coprime: adjacent ranks are far apart. */
		r->stride = (uint64_t)((double)r->places * 0.6180339887) | 1;
		while (r->stride > 1 && common_divisor(r->places, r->stride) != 1)
			r->stride--;
	}
	return 0;
}

/* ---- times */

static void schedule_next(struct load_run *r)
{
	if (r->job.trace) {
		r->next_at =
			r->trace_at < r->job.trace->n
				? r->start + (weir_time)((double)r->job.trace->records[r->trace_at]
								 .at /
							 r->job.speed)
				: WEIR_NEVER;
		return;
	}
	r->next_exact += r->job.even ? 1e9 / r->job.rate : rng_exp(&r->rng, 1e9 / r->job.rate);
	r->next_at = r->start + (weir_time)r->next_exact;
}

void load_next_begin(struct load_run *r, weir_time now)
{
	r->start = now;
	r->end = r->job.duration == WEIR_NEVER ? WEIR_NEVER : now + r->job.duration;
	r->warm_at = now + r->job.warm_up;
	r->unblocked_at = now;
	r->next_exact =
		r->job.even && r->job.rate > 0 ? -1e9 / r->job.rate : 0; /* the first at once */
	if (load_open_loop(r))
		schedule_next(r);
}

/* Requests due before the end are still sent after it, if there is room at once. */
static bool time_up(const struct load_run *r, weir_time now)
{
	if (!load_open_loop(r))
		return now >= r->end;
	return r->next_at >= r->end || (now >= r->end && (r->blocked || r->starved));
}

bool load_next_over(const struct load_run *r, weir_time now)
{
	switch (r->phase) {
	case LOAD_RUN:
		return time_up(r, now) || r->issued >= r->job.requests ||
		       (r->job.trace && r->trace_at >= r->job.trace->n);
	case LOAD_FLUSH:
		return r->flushed_last;
	case LOAD_BACK:
		return r->back_over;
	default:
		return r->phase == LOAD_DRAIN;
	}
}

void load_next_missed(struct load_run *r)
{
	if (!load_open_loop(r))
		return;
	for (uint64_t n = r->issued; r->next_at < r->end && n < r->job.requests; n++) {
		r->result.missed++;
		r->trace_at++;
		schedule_next(r);
	}
}

/* ---- requests */

static uint32_t pick_size(struct load_run *r)
{
	double x;

	if (r->job.n_sizes == 1)
		return r->job.sizes[0].bytes;
	x = rng_double(&r->rng) * r->shares;
	for (size_t i = 0; i + 1 < r->job.n_sizes; i++) {
		x -= r->job.sizes[i].share;
		if (x < 0)
			return r->job.sizes[i].bytes;
	}
	return r->job.sizes[r->job.n_sizes - 1].bytes;
}

/* Choose a place, in units of align, where `length` fits. */
static uint64_t pick_place(struct load_run *r, uint32_t length)
{
	uint64_t n = (r->span - length) / r->align + 1, place;

	switch (r->job.order) {
	case LOAD_SEQUENTIAL:
		if (r->cursor >= n)
			r->cursor = 0;
		place = r->cursor;
		r->cursor += length / r->align;
		return place;
	case LOAD_ZIPF:
		place = (uint64_t)((load_u128)rng_zipf_draw(&r->rng, &r->zipf) * r->stride %
				   r->places);
		return place < n ? place : n - 1;
	default:
		return rng_below(&r->rng, n);
	}
}

/* Take a range without a block in flight: the proposed one or the next free one after it. */
static bool take_place(struct load_run *r, uint32_t length, uint64_t *place)
{
	uint64_t n = (r->span - length) / r->align + 1;

	for (uint64_t i = 0; i < n && i < 4096; i++) {
		if (load_verify_take(r->verify, r->base + *place * r->align, length))
			return true;
		*place = *place + 1 < n ? *place + 1 : 0;
	}
	return false;
}

static bool make_io(struct load_run *r, struct load_request *q)
{
	bool read = r->job.reads >= 1 || (r->job.reads > 0 && rng_double(&r->rng) < r->job.reads);
	uint64_t place;

	q->command = read ? NBD_READ : NBD_WRITE;
	q->length = pick_size(r);
	place = pick_place(r, q->length);
	if (r->verify && !take_place(r, q->length, &place)) {
		r->starved = true;
		return false;
	}
	q->offset = r->base + place * r->align;
	q->flags = 0;
	if (!read) {
		r->unflushed++;
		if (r->job.fua > 0 && rng_double(&r->rng) < r->job.fua)
			q->flags = NBD_FUA;
	}
	return true;
}

/* Map the record to whole blocks of the export. */
static void place_record(struct load_run *r, const struct trace_record *t, struct load_request *q)
{
	uint64_t unit = r->align, offset = t->offset, end, length;

	if (!r->job.trace->has_offsets)
		offset = rng_below(&r->rng, r->export_.size);
	else if (r->job.scale_offsets)
		offset = (uint64_t)((double)offset / (double)r->trace_extent *
				    (double)r->export_.size);
	end = (offset % unit + t->bytes + unit - 1) / unit * unit;
	length = end;
	offset -= offset % unit;
	if (length > r->span)
		length = r->span;
	if (offset > r->span - length)
		offset = (r->span - length) / unit * unit;
	q->offset = offset;
	q->length = (uint32_t)length;
}

static bool make_record(struct load_run *r, struct load_request *q)
{
	const struct trace_record *t = &r->job.trace->records[r->trace_at++];

	q->flags = 0;
	switch (t->op) {
	case TRACE_FLUSH:
		*q = (struct load_request){.command = NBD_FLUSH, .intended = q->intended};
		return r->export_.flags & NBD_SEND_FLUSH;
	case TRACE_TRIM:
		q->command = NBD_TRIM;
		place_record(r, t, q);
		return r->export_.flags & NBD_SEND_TRIM;
	default:
		q->command = t->op == TRACE_READ ? NBD_READ : NBD_WRITE;
		place_record(r, t, q);
		return true;
	}
}

static bool next_run(struct load_run *r, weir_time now, struct load_request *q)
{
	bool open = load_open_loop(r);

	q->intended = open ? r->next_at : now;
	if (r->job.flush_every && r->unflushed >= r->job.flush_every) {
		*q = (struct load_request){.command = NBD_FLUSH, .intended = q->intended};
		r->unflushed = 0;
	} else if (r->job.trace) {
		while (!make_record(r, q)) { /* not supported by the server */
			r->result.skipped++;
			r->issued++;
			schedule_next(r);
			if (r->next_at > now || r->trace_at >= r->job.trace->n)
				return false;
			q->intended = r->next_at;
		}
	} else if (!make_io(r, q)) {
		return false;
	}
	q->counts = true;
	r->issued++;
	if (open)
		schedule_next(r);
	return true;
}

/* The last two steps of verification: a flush, and reading back all written blocks. */
static bool next_last(struct load_run *r, weir_time now, struct load_request *q)
{
	uint64_t offset;
	uint32_t length;

	*q = (struct load_request){.intended = now};
	if (r->phase == LOAD_FLUSH) {
		q->command = NBD_FLUSH;
		r->flushed_last = true;
		return true;
	}
	if (!load_verify_next(r->verify, &r->back_at, r->most, &offset, &length)) {
		r->back_over = true;
		return false;
	}
	load_verify_take(r->verify, offset, length); /* no other request is in flight */
	q->command = NBD_READ;
	q->offset = offset;
	q->length = length;
	return true;
}

bool load_next(struct load_run *r, weir_time now, struct load_request *ret, weir_time *ret_when)
{
	*ret_when = WEIR_NEVER;
	if (load_next_over(r, now))
		return false;
	if (r->phase != LOAD_RUN)
		return next_last(r, now, ret);
	if (load_open_loop(r) && r->next_at > now) {
		*ret_when = r->next_at;
		return false;
	}
	if (next_run(r, now, ret))
		return true;
	if (r->job.trace)
		*ret_when = r->next_at;
	return false;
}
