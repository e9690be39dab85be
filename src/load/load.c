/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: run jobs on their threads, from the first connection to the last reply. See load.h.
 *
 * In a round of the loop, received replies free slots (load-conn.c); then each job's turn fills the
 * free slots of its connections, and sends once per connection. Idle connections cost nothing: only
 * those with something to do are in a list.
 */
#include "base/container.h"
#include "load/load-impl.h"
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

static void job_over(struct load_run *r);

/* ---- messages */

void load_say(struct load_run *r, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	if (!r->load->options.say)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&r->load->lock);
	r->load->options.say(r->load->options.arg, r->job.name, text);
	pthread_mutex_unlock(&r->load->lock);
}

void load_fail(struct load_run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->result.fault, sizeof(r->result.fault), fmt, ap);
	va_end(ap);
	job_over(r);
}

/* ---- filling slots */

static void mark_all(struct load_run *r)
{
	for (uint32_t i = 0; i < r->job.connections; i++)
		load_conn_dirty(&r->conns[i]);
}

static void wake_at(struct load_run *r, weir_time when)
{
	if (when < r->wake_at) {
		r->wake_at = when;
		loop_set(r->loop, &r->wake, when);
	}
}

/* Closed loop: fill every free slot. */
static void fill_closed(struct load_conn *c, weir_time now)
{
	struct load_run *r = c->run;
	struct load_request q;
	struct load_slot *s;
	weir_time when;

	while ((s = load_conn_free_slot(c)) && load_conn_room(c)) {
		if (s->free_at > now && r->phase == LOAD_RUN) {
			r->thinking = true;
			wake_at(r, s->free_at);
			return;
		}
		if (!load_next(r, now, &q, &when))
			return;
		load_conn_issue(c, &q, now);
	}
}

/* Open loop: return the next connection with a free slot. */
static struct load_conn *pick_conn(struct load_run *r)
{
	for (uint32_t i = 0; i < r->job.connections; i++) {
		struct load_conn *c = &r->conns[r->pick];

		r->pick = r->pick + 1 == r->job.connections ? 0 : r->pick + 1;
		if (c->n_free && c->resend_at == c->n_slots && load_conn_room(c))
			return c;
	}
	return NULL;
}

static void fill_open(struct load_run *r, weir_time now)
{
	struct load_request q;
	struct load_conn *c;
	weir_time when = WEIR_NEVER, from;

	while (r->next_at <= now && !load_next_over(r, now)) {
		c = pick_conn(r);
		if (!c) {
			r->blocked = true;
			return;
		}
		if (r->blocked) {
			r->blocked = false;
			r->unblocked_at = now;
		}
		if (!load_next(r, now, &q, &when))
			break;
		from = q.intended > r->unblocked_at ? q.intended : r->unblocked_at;
		if (r->warm)
			weir_hist_record(&r->result.late, now > from ? (uint64_t)(now - from) : 0);
		load_conn_issue(c, &q, now);
		load_conn_dirty(c);
	}
	if (!load_next_over(r, now) && !r->starved) /* starved: the next reply causes a turn */
		wake_at(r, r->next_at);
}

static void serve_dirty(struct load_run *r, weir_time now, bool closed)
{
	struct load_conn *c = r->dirty, *next;

	r->dirty = NULL;
	for (; c; c = next) {
		next = c->next_dirty;
		c->dirty = false;
		if (r->lost || r->phase == LOAD_DONE)
			continue;
		if (load_conn_resend(c) && closed)
			fill_closed(c, now);
		load_conn_send(c);
	}
}

/* ---- phases */

static void enter_phase(struct load_run *r, enum load_phase phase)
{
	r->phase = phase;
	mark_all(r);
}

static void after_run(struct load_run *r, weir_time now)
{
	load_next_missed(r);
	if (r->end == WEIR_NEVER || now < r->end) /* the requests were done before the end */
		r->ended_by_count = true;
	enter_phase(r, LOAD_DRAIN);
}

/* Advance to the next phase when no request is in flight and none follows. */
static void advance_phase(struct load_run *r, weir_time now)
{
	bool flush = r->export_.flags & NBD_SEND_FLUSH && !(r->export_.flags & NBD_READ_ONLY);

	if (r->phase == LOAD_RUN && load_next_over(r, now))
		after_run(r, now);
	if (r->in_flight || !load_next_over(r, now))
		return;
	switch (r->phase) {
	case LOAD_DRAIN:
		r->drained_at = now;
		load_count_interval(r, now);
		if (r->verify)
			enter_phase(r, flush ? LOAD_FLUSH : LOAD_BACK);
		else
			job_over(r);
		break;
	case LOAD_FLUSH:
		enter_phase(r, LOAD_BACK);
		break;
	case LOAD_BACK:
		job_over(r);
		break;
	default:
		break;
	}
}

static bool job_turn(struct loop_turn *t, weir_time round)
{
	struct load_run *r = container_of(t, struct load_run, turn);
	bool open = load_open_loop(r) && r->phase == LOAD_RUN;
	weir_time now;

	if (r->phase == LOAD_WAIT || r->phase == LOAD_DONE || r->lost)
		return false;
	/* Count the time of this round so far for the requests sent now; jobs with nothing to send
	 * do not need the exact time. */
	now = open || r->dirty || r->starved || r->thinking ? loop_clock() : round;
	if (r->starved || (r->thinking && r->wake_at == WEIR_NEVER)) {
		r->starved = r->thinking = false;
		mark_all(r);
	}
	if (open)
		fill_open(r, now);
	serve_dirty(r, now, !open);
	if (r->phase != LOAD_DONE && !r->lost)
		advance_phase(r, now);
	return r->phase != LOAD_DONE && r->dirty != NULL;
}

static void begin_run(struct load_run *r, weir_time now)
{
	load_next_begin(r, now);
	r->interval_at = now;
	r->warm = r->job.warm_up == 0;
	r->phase = LOAD_RUN;
	if (!r->warm)
		loop_set(r->loop, &r->mark, r->warm_at);
	else if (r->end != WEIR_NEVER)
		loop_set(r->loop, &r->mark, r->end);
	mark_all(r);
}

static void on_wake(struct loop_timer *t, weir_time now)
{
	struct load_run *r = container_of(t, struct load_run, wake);

	r->wake_at = WEIR_NEVER;
	if (r->phase == LOAD_WAIT)
		begin_run(r, loop_clock());
}

static void on_mark(struct loop_timer *t, weir_time now)
{
	struct load_run *r = container_of(t, struct load_run, mark);

	if (r->warm || r->phase == LOAD_DONE)
		return; /* the end: the next turn handles it */
	load_count_interval(r, now);
	r->warm = true;
	r->warm_at = now;
	if (r->end != WEIR_NEVER)
		loop_set(r->loop, &r->mark, r->end);
}

static void on_tick(struct loop_timer *t, weir_time now)
{
	struct load_run *r = container_of(t, struct load_run, tick);
	bool stop = atomic_load_explicit(&r->load->stop, memory_order_relaxed);

	loop_set(r->loop, &r->tick, now + r->load->options.interval);
	if (stop && r->phase == LOAD_WAIT) {
		job_over(r);
		return;
	}
	if (r->phase == LOAD_RUN || r->phase == LOAD_DRAIN)
		load_count_interval(r, now);
	if (stop && r->phase == LOAD_RUN && r->end > now)
		r->end = now;
	if (stop && r->lost)
		load_fail(r, "%s: stopped while the connection was lost", r->job.uri);
	else if (r->lost)
		load_conn_retry(r, now);
	else if (r->in_flight && now - r->heard > r->job.timeout)
		load_conn_lost(r, "no reply within the timeout");
}

static void finish_result(struct load_run *r, weir_time now)
{
	struct load_result *t = &r->result;
	weir_time end = r->drained_at ? r->drained_at : now;

	if (!r->ended_by_count && r->end < end)
		end = r->end;
	t->size = r->export_.size;
	t->elapsed = r->warm && end > r->warm_at ? end - r->warm_at : 0;
	if (t->elapsed) {
		t->iops = (double)t->in_time * 1e9 / (double)t->elapsed;
		t->bytes_per_second = (double)t->bytes * 1e9 / (double)t->elapsed;
	}
	t->checked = r->count.checked;
	t->unchecked = r->count.unchecked;
	t->wrong = r->count.wrong;
}

static void job_over(struct load_run *r)
{
	struct weir_err err;
	weir_time now = loop_clock();

	if (r->phase == LOAD_DONE)
		return;
	if (r->phase == LOAD_RUN || r->phase == LOAD_DRAIN)
		load_count_interval(r, now);
	r->phase = LOAD_DONE;
	load_conn_end(r);
	finish_result(r, now);
	if (r->verify && r->job.table && load_verify_save(r->verify, r->job.table, &err) < 0 &&
		!r->result.fault[0])
		snprintf(r->result.fault, sizeof(r->result.fault), "%s", err.text);
	loop_set(r->loop, &r->tick, WEIR_NEVER);
	loop_set(r->loop, &r->wake, WEIR_NEVER);
	loop_set(r->loop, &r->mark, WEIR_NEVER);
	loop_turn_remove(r->loop, &r->turn);
	if (--r->thread->running == 0)
		loop_stop(r->loop);
}

/* ---- threads */

static void start_job(struct load_run *r)
{
	r->turn.turn = job_turn;
	r->tick.due = on_tick;
	r->wake.due = on_wake;
	r->mark.due = on_mark;
	r->wake_at = WEIR_NEVER;
	loop_turn_add(r->loop, &r->turn);
	loop_set(r->loop, &r->tick, r->load->start + r->load->options.interval);
	wake_at(r, r->load->start + r->job.start);
}

static void *thread_main(void *arg)
{
	struct load_thread *t = arg;

	if (t->core >= 0) { /* best effort */
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)t->core, &set);
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	for (size_t i = 0; i < t->load->n; i++)
		if (t->load->runs[i].thread == t)
			start_job(&t->load->runs[i]);
	t->result = t->running ? loop_run(t->loop) : 0;
	return NULL;
}

/* Threads that reconnect post to a loop: they must end before the loop is freed. */
static void wait_for_dials(struct load *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct load_run *r = &l->runs[i];

		while (r->dial) {
			pthread_join(r->dial->thread, NULL);
			r->dial->joined = true;
			r->dial->task.run(&r->dial->task);
		}
	}
}

int load_run(struct load *l)
{
	cpu_set_t before; /* of the caller's thread, which is thread 0 */
	bool pinned = l->threads[0].core >= 0 && sched_getaffinity(0, sizeof(before), &before) == 0;
	int r = 0;

	l->start = loop_clock();
	for (unsigned i = 1; i < l->n_threads; i++) {
		int e = pthread_create(&l->threads[i].thread, NULL, thread_main, &l->threads[i]);

		l->threads[i].started = e == 0;
		if (e)
			r = -e;
	}
	if (r < 0)
		load_stop(l);
	thread_main(&l->threads[0]);
	if (pinned)
		(void)sched_setaffinity(0, sizeof(before), &before);
	for (unsigned i = 1; i < l->n_threads; i++)
		if (l->threads[i].started)
			pthread_join(l->threads[i].thread, NULL);
	wait_for_dials(l);
	for (unsigned i = 0; i < l->n_threads && r == 0; i++)
		r = l->threads[i].result;
	return r;
}

void load_stop(struct load *l)
{
	atomic_store_explicit(&l->stop, true, memory_order_relaxed);
}

const struct load_result *load_result(const struct load *l, size_t job)
{
	return &l->runs[job].result;
}
