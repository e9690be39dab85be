/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job: jobs and payload memory, and the limits of a connection and a tenant.
 *
 * LAW     A connection may hold chunks up to half of the free memory (as in a switch with a shared
 *         buffer: a dynamic threshold), and as many jobs as half of the free ones, at most 1,024.
 *         So one alone may have a third of everything, n that all want more have 1/(n+2) each, and
 *         some is always left for the next one.
 *         Connections that come one after the other and never return anything (their back end is
 *         away) get a third of what the previous one left: a dozen connections would leave next to
 *         nothing. So a tenant, with all its connections to a resource, may hold as much as is
 *         free: half of everything; and a resource with all its tenants, if a thread has several,
 *         twice as much as is free: two thirds. Memory stuck at one resource leaves some for the
 *         others. A tenant that has nothing may have one small piece even then; so may a connection
 *         that has nothing, within the limit of its tenant.
 *         Connections whose socket is full, and those that have not read a reply yet, are doubtful:
 *         they have half of that, counted separately, so that the others have all of theirs in any
 *         case. While others wait, a connection whose socket is full gets no more.
 *         Deaf connections (they read no reply for a second) get nothing more, and what they hold
 *         is again counted separately, as long as it is not more than is free. Deaf ones beyond
 *         that, while other doubtful ones of their tenant wait, are disconnected
 *         (serve/front/conn.c).
 * SOURCE  Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches,
 *         IEEE/ACM Transactions on Networking 6(2), 1998; α = ½.
 * METHOD  Jobs come from a free list that grows by slabs and never shrinks. A connection's jobs and
 *         chunks are counted in its tenant's usage, and in its resource's total; when the policy
 *         gives it to another tenant, they move to that usage with the next request for memory.
 */
#include "serve/front/impl.h"
#include "base/array.h"
#include "base/list.h"
#include <errno.h>
#include <stdlib.h>

#define SLAB     128   /* jobs allocated at once: 48 KiB */
#define SMALL    16384 /* bytes: a piece that is always granted to a connection without any */
#define MOST_OF  16    /* jobs may take this part of the payload memory in addition */
#define JOBS_MIN 4096

struct slab {
	struct slab *next;
	struct front_job jobs[SLAB];
};

static bool grow(struct front *f)
{
	struct slab *s;

	if (!f->most_jobs) {
		f->most_jobs = chunk_budget(f->pool) / MOST_OF / sizeof(struct front_job);
		if (f->most_jobs < JOBS_MIN)
			f->most_jobs = JOBS_MIN;
	}
	if (f->n_jobs + SLAB > f->most_jobs || !(s = calloc(1, sizeof(*s))))
		return false;
	s->next = f->slabs;
	f->slabs = s;
	f->n_jobs += SLAB;
	for (size_t i = SLAB; i-- > 0;) {
		s->jobs[i].req.next = f->free_jobs;
		f->free_jobs = &s->jobs[i].req;
	}
	return true;
}

/* ---- accounting */

size_t front_left(const struct front *f)
{
	size_t held = chunk_held(f->pool), budget = chunk_budget(f->pool);

	return budget > held ? budget - held : 0;
}

/* Return the number of free jobs; unlimited until the maximum is known. */
static size_t jobs_left(const struct front *f)
{
	return f->most_jobs ? f->most_jobs - f->n_used : SIZE_MAX / 4;
}

static void count_in(struct front_conn *c, size_t bytes, uint32_t jobs)
{
	struct front_usage *p = c->usage;

	if (c->deaf) {
		p->deaf_held += bytes;
		p->deaf_jobs += jobs;
	} else {
		p->held += bytes;
		p->jobs += jobs;
		c->total->held += bytes;
		c->total->jobs += jobs;
	}
}

static void count_out(struct front_conn *c, size_t bytes, uint32_t jobs)
{
	count_in(c, (size_t)0 - bytes, 0u - jobs); /* unsigned: the subtraction is exact */
}

static struct front_total *total_of(struct front *f, const struct resource *r)
{
	struct front_total *t = f->totals;

	while (t && t->resource != r)
		t = t->next;
	if (t || !(t = calloc(1, sizeof(*t))))
		return t;
	t->resource = r;
	t->unknown.end = &t->unknown.first;
	t->next = f->totals;
	f->totals = t;
	f->n_totals++;
	return t;
}

static bool grow_usages(struct front_total *t, size_t n)
{
	size_t had = t->n_usages;

	if (array_grow(&t->usages, &t->n_usages, n) < 0)
		return false;
	for (size_t i = had; i < t->n_usages; i++)
		t->usages[i] = NULL;
	return true;
}

static struct front_usage *find_usage(const struct front_conn *c)
{
	struct front_total *t = c->total;
	bool doubtful = c->blocked || !c->heard;
	size_t at = 2 * (size_t)c->client.tenant + doubtful;
	struct front_usage *p;

	if (c->client.tenant < 0 || !grow_usages(t, at + 1))
		return &t->unknown;
	p = t->usages[at];
	if (p || !(p = calloc(1, sizeof(*p))))
		return p ? p : &t->unknown;
	p->end = &p->first;
	p->doubtful = doubtful;
	t->usages[at] = p;
	return p;
}

static struct front_usage *usage_of(struct front_conn *c)
{
	struct front_usage *p = c->client.tenant < 0 ? c->usage : find_usage(c);

	if (p != c->usage) {
		count_out(c, c->held, c->jobs);
		c->usage = p;
		count_in(c, c->held, c->jobs);
	}
	return p;
}

int front_job_join(struct front_conn *c)
{
	c->total = total_of(c->front, c->client.resource);
	if (!c->total)
		return -ENOMEM;
	c->usage = find_usage(c);
	return 0;
}

/* ---- deaf connections */

void front_job_blocked(struct front_conn *c)
{
	const struct front_usage *before = c->usage;

	if (usage_of(c) != before)
		c->front->given_back++; /* connections that read their replies may have more now */
}

bool front_job_deaf(struct front_conn *c)
{
	struct front *f = c->front;
	const struct front_usage *p = usage_of(c);

	if (p->deaf_held + c->held > front_left(f) || p->deaf_jobs + c->jobs > jobs_left(f))
		return false;
	count_out(c, c->held, c->jobs);
	c->deaf = true;
	count_in(c, c->held, c->jobs);
	f->given_back++;
	return true;
}

void front_job_hears(struct front_conn *c)
{
	if (!c->deaf)
		return;
	count_out(c, c->held, c->jobs);
	c->deaf = false;
	count_in(c, c->held, c->jobs);
	front_returned(c);
}

/* ---- limits */

static bool usage_may(const struct front_conn *c, const struct front_usage *p, size_t bytes)
{
	const struct front *f = c->front;
	const struct front_total *t = c->total;
	size_t left = front_left(f), jobs = jobs_left(f);
	bool first = c->jobs == 0 && bytes <= SMALL; /* else it could never prove to be good */
	/* A request answered as a whole gets its room at once, or never. */
	size_t most = p->doubtful && !first && bytes <= CHUNK_MAX ? left / 2 : left;

	if (p->jobs > jobs || (f->n_totals > 1 && t->jobs > 2 * jobs))
		return false;
	if (bytes == 0)
		return true;
	return (first || !front_goes_behind(c)) && p->held + bytes <= most &&
	       (f->n_totals == 1 || t->held + bytes <= 2 * left);
}

bool front_tenant_may(struct front_conn *c, size_t bytes)
{
	return usage_may(c, usage_of(c), bytes);
}

bool front_waits_for_own(const struct front_conn *c)
{
	return c->jobs > (c->head ? 1u : 0u); /* a head returns only at the end */
}

bool front_may(struct front_conn *c, size_t bytes)
{
	const struct front *f = c->front;
	const struct front_usage *p = usage_of(c);

	c->need = bytes;
	c->own = c->deaf || (c->blocked && p->n_queued && front_waits_for_own(c));
	if (c->own)
		return false;
	if (p->jobs == 0 && bytes <= SMALL)
		return true;
	if ((c->jobs || bytes > SMALL) && (c->jobs >= FRONT_JOBS || c->jobs > jobs_left(f) / 2 ||
						  (bytes && c->held + bytes > front_left(f) / 2))) {
		c->own = front_waits_for_own(c);
		return false;
	}
	return usage_may(c, p, bytes);
}

/* ---- jobs */

struct front_job *front_job_get(struct front_conn *c, size_t bytes, bool anyway)
{
	struct front *f = c->front;
	struct front_job *j;
	struct chunk *chunk = NULL;

	if ((!anyway && !front_may(c, bytes)) || (!f->free_jobs && !grow(f)))
		return NULL;
	if (bytes && !(chunk = chunk_get(f->pool, bytes)))
		return NULL;
	j = front_job_of(f->free_jobs);
	f->free_jobs = j->req.next;
	f->n_used++;
	f->granted++;
	f->waking = NULL; /* it had its turn */
	c->jobs++;
	c->held += chunk ? chunk->room : 0;
	count_in(c, chunk ? chunk->room : 0, 1);
	j->conn = c;
	list_push(c->first_job, j);
	j->head = NULL;
	j->received = 0;
	j->is_head = j->parts = j->whole = j->raw = false;
	j->last = true;
	j->req.client = &c->client;
	j->req.done = front_done;
	j->req.io.chunk = chunk;
	j->req.io.data = chunk ? chunk->data : NULL;
	j->req.io.op = BACK_FLUSH; /* its reply has no data, unless it is submitted as another */
	j->req.io.error = 0;
	j->req.io.flags = 0;
	return j;
}

void front_job_put(struct front_job *j)
{
	struct front_conn *c = j->conn;
	struct front *f = c->front;
	size_t room = j->req.io.chunk ? j->req.io.chunk->room : 0;

	chunk_put(f->pool, j->req.io.chunk);
	list_remove(j);
	j->req.next = f->free_jobs;
	f->free_jobs = &j->req;
	f->n_used--;
	count_out(c, room, 1);
	c->held -= room;
	c->jobs--;
	front_returned(c);
	if (c->jobs == 0 && (c->closed || c->stopping))
		front_todo(c);
}

void front_jobs_waiting(
	const struct client *client, void (*fn)(void *arg, weir_time received), void *arg)
{
	const struct front_conn *c = container_of(client, struct front_conn, client);

	for (const struct front_job *j = c->first_job; j; j = j->next) {
		bool write_arrives = j == c->head && !j->parts && !j->whole;

		/* Of several jobs of a request one ends its reply. */
		if (j->received && j->last && !write_arrives)
			fn(arg, j->received);
	}
}

static void total_free(struct front_total *t)
{
	for (size_t i = 0; i < t->n_usages; i++)
		free(t->usages[i]);
	free(t->usages);
	free(t);
}

void front_jobs_free(struct front *f)
{
	struct slab *s = f->slabs, *next;
	struct front_total *t = f->totals, *next_total;

	for (; s; s = next) {
		next = s->next;
		free(s);
	}
	for (; t; t = next_total) {
		next_total = t->next;
		total_free(t);
	}
}
