/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front-nbd-job: jobs and payload memory, and how much of them a connection and a tenant may have.
 *
 * LAW     A connection may hold chunks up to half of what is free (as it shares a switch's buffer: a
 *         dynamic threshold), and as many jobs as half of those that are free, at most 1,024. So one
 *         alone may have a third of everything, n that all want more have 1/(n+2) each, and there is
 *         always something left for who comes next.
 *         Those who come one after the other and never give anything back (they do not read their
 *         replies) have a third of what the one before left: a dozen connections would leave next to
 *         nothing. So a tenant, with all its connections, may hold as much as is free: half of
 *         everything. A tenant that has nothing may have one small piece even then; so may a connection
 *         that has nothing, within what its tenant may have.
 * SOURCE  Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches,
 *         IEEE/ACM Transactions on Networking 6(2), 1998; α = ½.
 * METHOD  Jobs come from a free list that grows by slabs and never shrinks. A connection's jobs and
 *         chunks are counted in its tenant's purse; when the policy makes it another tenant's, it takes
 *         them along the next time it wants something.
 */
#include "port/front-nbd-impl.h"
#include <stdlib.h>
#include <string.h>

#define SLAB     128   /* jobs allocated at once: 48 KiB */
#define SMALL    16384 /* bytes: a piece that who has nothing may always have */
#define MOST_OF  16    /* jobs may take this part of the payload memory besides it */
#define JOBS_MIN 4096

struct slab {
	struct slab *next;
	struct front_nbd_job jobs[SLAB];
};

static bool grow(struct front_nbd *f)
{
	struct slab *s;

	if (!f->most_jobs) {
		f->most_jobs = chunk_budget(f->pool) / MOST_OF / sizeof(struct front_nbd_job);
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

/* ---- tenants */

static bool purses_for(struct front_nbd *f, size_t n)
{
	struct front_nbd_purse *all;
	size_t room = n < 2 * f->n_purses ? 2 * f->n_purses : n;

	if (n <= f->n_purses)
		return true;
	all = realloc(f->purses, room * sizeof(*all));
	if (!all)
		return false;
	memset(all + f->n_purses, 0, (room - f->n_purses) * sizeof(*all));
	f->purses = all;
	f->n_purses = room;
	return true;
}

/* The first is of those whose tenant is not known, or for whom there was no memory. NULL: nor for it. */
static struct front_nbd_purse *purse_of(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;
	uint32_t purse = c->client.tenant < 0 ? c->purse : (uint32_t)c->client.tenant + 1;

	if (c->purse != purse && purses_for(f, (size_t)purse + 1)) {
		f->purses[c->purse].jobs -= c->jobs;
		f->purses[c->purse].held -= c->held;
		c->purse = purse;
		f->purses[c->purse].jobs += c->jobs;
		f->purses[c->purse].held += c->held;
	}
	return purses_for(f, 1) ? &f->purses[c->purse] : NULL;
}

/* ---- who may have how much */

static size_t left(const struct front_nbd *f)
{
	size_t held = chunk_held(f->pool), budget = chunk_budget(f->pool);

	return budget > held ? budget - held : 0;
}

bool front_nbd_tenant_may(struct front_nbd_conn *c, size_t bytes)
{
	const struct front_nbd *f = c->front;
	const struct front_nbd_purse *p = purse_of(c);

	if (!p || (f->most_jobs && p->jobs > f->most_jobs - f->n_used))
		return false;
	return bytes == 0 || p->held + bytes <= left(f);
}

bool front_nbd_may(struct front_nbd_conn *c, size_t bytes)
{
	const struct front_nbd *f = c->front;
	const struct front_nbd_purse *p = purse_of(c);

	if (p && p->jobs == 0 && bytes <= SMALL)
		return true;
	if (!front_nbd_tenant_may(c, bytes))
		return false;
	if (c->jobs == 0 && bytes <= SMALL)
		return true;
	if (c->jobs >= FRONT_NBD_JOBS || (f->most_jobs && c->jobs > (f->most_jobs - f->n_used) / 2))
		return false;
	return bytes == 0 || c->held + bytes <= left(f) / 2;
}

/* ---- jobs */

struct front_nbd_job *front_nbd_job_get(struct front_nbd_conn *c, size_t bytes, bool anyway)
{
	struct front_nbd *f = c->front;
	struct front_nbd_job *j;
	struct chunk *chunk = NULL;

	if ((!anyway && !front_nbd_may(c, bytes)) || !purse_of(c) || (!f->free_jobs && !grow(f)))
		return NULL;
	if (bytes && !(chunk = chunk_get(f->pool, bytes)))
		return NULL;
	j = front_nbd_job_of(f->free_jobs);
	f->free_jobs = j->req.next;
	f->n_used++;
	c->jobs++;
	f->purses[c->purse].jobs++;
	if (chunk) {
		c->held += chunk->room;
		f->purses[c->purse].held += chunk->room;
	}
	j->conn = c;
	j->head = NULL;
	j->is_head = j->whole = false;
	j->last = true;
	j->req.client = &c->client;
	j->req.done = front_nbd_done;
	j->req.io.chunk = chunk;
	j->req.io.data = chunk ? chunk->data : NULL;
	j->req.io.error = 0;
	j->req.io.flags = 0;
	return j;
}

void front_nbd_job_put(struct front_nbd_job *j)
{
	struct front_nbd_conn *c = j->conn;
	struct front_nbd *f = c->front;

	if (j->req.io.chunk) {
		c->held -= j->req.io.chunk->room;
		f->purses[c->purse].held -= j->req.io.chunk->room;
		chunk_put(f->pool, j->req.io.chunk);
	}
	j->req.next = f->free_jobs;
	f->free_jobs = &j->req;
	f->n_used--;
	c->jobs--;
	f->purses[c->purse].jobs--;
	if (c->jobs == 0 && (c->closed || c->stopping))
		front_nbd_todo(c);
}

void front_nbd_jobs_free(struct front_nbd *f)
{
	struct slab *s = f->slabs, *next;

	for (; s; s = next) {
		next = s->next;
		free(s);
	}
	free(f->purses);
}
