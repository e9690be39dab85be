/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-count: add a finished request to the results.
 *
 * Latencies are recorded in the interval only, and an interval is added to the totals when it ends:
 * a request touches one histogram, which stays in the cache.
 */
#include "load/load-impl.h"
#include <errno.h>

#define SAY_WRONG 10 /* wrong blocks reported one by one; the others are only counted */

const char *const load_error_names[LOAD_ERRORS + 1] = {"EPERM", "EIO", "ENOMEM", "EINVAL", "ENOSPC",
	"EOVERFLOW", "ENOTSUP", "ESHUTDOWN", "unanswered", NULL};

static enum load_error error_kind(int error)
{
	switch (-error) {
	case EPERM:
		return LOAD_EPERM;
	case ENOMEM:
		return LOAD_ENOMEM;
	case EINVAL:
		return LOAD_EINVAL;
	case ENOSPC:
		return LOAD_ENOSPC;
	case EOVERFLOW:
		return LOAD_EOVERFLOW;
	case ENOTSUP:
		return LOAD_ENOTSUP;
	case ESHUTDOWN:
		return LOAD_ESHUTDOWN;
	default:
		return LOAD_EIO;
	}
}

static void verify_request(struct load_run *r, struct load_slot *s, int error)
{
	uint64_t wrong = r->count.wrong;

	switch (s->r.command) {
	case NBD_WRITE:
		load_verify_written(
			r->verify, s->r.offset, s->r.length, s->r.flags & NBD_FUA, error);
		break;
	case NBD_FLUSH:
		if (!error)
			load_verify_flushed(r->verify, s->mark);
		break;
	case NBD_READ:
		load_verify_read(r->verify, s->r.offset, s->r.length, s->data, error, &r->count);
		if (r->count.wrong > wrong && r->said_wrong++ < SAY_WRONG)
			load_say(r, "%s", r->count.last.text);
		break;
	}
}

static void count_kind(struct load_result *t, const struct load_request *q)
{
	switch (q->command) {
	case NBD_READ:
		t->reads++;
		break;
	case NBD_WRITE:
		t->writes++;
		break;
	case NBD_FLUSH:
		t->flushes++;
		break;
	default:
		t->trims++;
	}
}

void load_count_done(struct load_run *r, struct load_slot *s, int error, weir_time now)
{
	struct load_result *t = &r->result;
	uint64_t bytes = s->r.command <= NBD_WRITE && !error ? s->r.length : 0;

	r->in_flight--;
	if (r->verify)
		verify_request(r, s, error);
	if (error) {
		t->errors[error_kind(error)]++;
		t->n_errors++;
	}
	if (!s->r.counts)
		return;
	weir_hist_record(&r->interval, now > s->r.intended ? (uint64_t)(now - s->r.intended) : 0);
	r->interval_requests++;
	r->interval_bytes += bytes;
	if (!r->warm)
		return;
	t->requests++;
	count_kind(t, &s->r);
	if (now <= r->end) {
		t->in_time++;
		t->bytes += bytes;
	}
}

void load_count_interval(struct load_run *r, weir_time now)
{
	const struct load_options *o = &r->load->options;
	struct load_interval i = {.job = r->index,
		.name = r->job.name,
		.at = now - r->load->start,
		.span = now - r->interval_at,
		.warm = r->warm,
		.requests = r->interval_requests,
		.bytes = r->interval_bytes,
		.latency = &r->interval};

	if (o->tick && i.span > 0) {
		pthread_mutex_lock(&r->load->lock);
		o->tick(o->arg, &i);
		pthread_mutex_unlock(&r->load->lock);
	}
	if (r->warm)
		weir_hist_merge(&r->result.latency, &r->interval);
	weir_hist_clear(&r->interval);
	r->interval_requests = r->interval_bytes = 0;
	r->interval_at = now;
}
