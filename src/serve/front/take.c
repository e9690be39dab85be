/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take: connections from the process that this one replaces. The form is in kept.h.
 *
 * METHOD  First everything is read and made, with all its memory, while the other process still has the clients: then nothing is
 *         left that could fail. The start only links and submits.
 */
#include "base/array.h"
#include "serve/front/impl.h"
#include "serve/front/kept.h"
#include "serve/handover/record.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct front_taken {
	struct front *front;
	struct resource *resource;
	struct front_conn **conns; /* by number, from 1 on; NULL: refused */
	size_t n, room;
	struct request_list waiting; /* in order; `user` is the operation */
	bool whole;
};

/* ---- jobs */

static struct front_job *head_of(struct front_conn *c, uint64_t number)
{
	for (struct front_job *j = c->first_job; j && number; j = j->next)
		if (j->is_head && j->size == number)
			return j;
	return NULL;
}

/* Make the piece of a head, or (NULL) a job of its own. */
static struct front_job *make(struct front_conn *c, struct front_job *head, size_t memory)
{
	struct front_job *j = front_job_get(c, memory, true);

	if (!j)
		return NULL;
	j->head = head;
	j->last = !head;
	j->size = 0;
	if (head) {
		j->cookie = head->cookie;
		j->command = head->command;
	}
	return j;
}

static size_t memory_of(const struct front_conn *c, uint64_t op, uint64_t length, uint64_t extents)
{
	switch (op) {
	case BACK_READ:
		return c->info->lends ? 0 : length;
	case BACK_WRITE:
		return length;
	case BACK_STATUS:
		return extents * sizeof(struct back_extent);
	default:
		return 0;
	}
}

static int get_piece(struct front_conn *c, struct front_job *head, struct record_in *in)
{
	uint64_t offset = record_get(in), length = record_get_most(in, CHUNK_MAX);
	bool waits = record_get_most(in, 1);
	size_t n = 0;
	const uint8_t *data = waits ? NULL : record_get_bytes(in, &n);
	struct front_job *p;

	if (in->bad || (!waits && n != 0 && n != length))
		return -EBADMSG;
	p = make(c, head, c->info->lends && waits ? 0 : length);
	if (!p)
		return -ENOMEM;
	p->offset = offset;
	p->length = (uint32_t)length;
	p->next_piece = NULL;
	*head->pieces_end = p;
	head->pieces_end = &p->next_piece;
	if (n)
		memcpy(p->req.io.data, data, n);
	return 0;
}

static int get_head(struct front_conn *c, uint32_t number, struct record_in *in)
{
	uint64_t flags = record_get_most(in, KEPT_PARTS | KEPT_WHOLE | KEPT_ARRIVES), n = 0;
	struct front_job *j = make(c, NULL, 0);
	int rc = 0;

	if (!j)
		return -ENOMEM;
	j->is_head = true;
	j->left = 1;
	j->size = number;
	j->pieces = NULL;
	j->pieces_end = &j->pieces;
	j->parts = flags & KEPT_PARTS;
	j->whole = flags & KEPT_WHOLE;
	j->cookie = record_get(in);
	j->command = (uint8_t)record_get_most(in, UINT8_MAX);
	j->offset = record_get(in);
	j->length = (uint32_t)record_get_most(in, UINT32_MAX);
	j->received = (weir_time)record_get(in);
	j->req.io.error = (int)(int64_t)record_get(in);
	if (flags & KEPT_ARRIVES)
		c->head = j;
	if (j->whole)
		n = record_get(in);
	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = get_piece(c, j, in);
	return in->bad ? -EBADMSG : rc;
}

static int get_arriving(struct front_conn *c, struct record_in *in)
{
	uint64_t offset, length;
	const uint8_t *data;
	size_t n;

	if (!record_get_most(in, 1))
		return in->bad || c->step == FRONT_PAYLOAD ? -EBADMSG : 0;
	offset = record_get(in);
	length = record_get_most(in, CHUNK_MAX);
	data = record_get_bytes(in, &n);
	if (in->bad || n >= length || c->step != FRONT_PAYLOAD)
		return -EBADMSG;
	c->piece = make(c, c->head, length);
	if (!c->piece)
		return -ENOMEM;
	c->piece->cookie = c->request.cookie;
	c->piece->command = c->request.command;
	c->piece->offset = offset;
	c->piece->length = (uint32_t)length;
	c->have = (uint32_t)n;
	if (n)
		memcpy(c->piece->req.io.data, data, n);
	return 0;
}

/* Bytes of replies become jobs, one after the other. */
static int get_reply(struct front_conn *c, struct record_in *in)
{
	size_t n;
	const uint8_t *data = record_get_bytes(in, &n);

	for (size_t at = 0; !in->bad && at < n;) {
		size_t some = n - at < CHUNK_MAX ? n - at : CHUNK_MAX;
		struct front_job *j = make(c, NULL, some);

		if (!j)
			return -ENOMEM;
		j->raw = true;
		j->length = (uint32_t)some;
		memcpy(j->req.io.data, data + at, some);
		request_list_add(&c->out, &j->req);
		at += some;
	}
	return in->bad ? -EBADMSG : 0;
}

/* ---- connections */

static int get_receiving(struct front_conn *c, struct record_in *in)
{
	const uint8_t *part, *rest;
	size_t n_part, n_rest;

	c->request.cookie = record_get(in);
	c->request.offset = record_get(in);
	c->request.length = (uint32_t)record_get_most(in, UINT32_MAX);
	c->request.command = (uint8_t)record_get_most(in, UINT8_MAX);
	c->request.flags = (uint8_t)record_get_most(in, UINT8_MAX);
	c->request.whole = record_get_most(in, 1);
	c->step = (uint8_t)record_get_most(in, FRONT_SKIP);
	c->done = (uint32_t)record_get_most(in, UINT32_MAX);
	c->skip = (uint32_t)record_get_most(in, UINT32_MAX);
	c->refusal = (int)(int64_t)record_get(in);
	c->received = (weir_time)record_get(in);
	part = record_get_bytes(in, &n_part);
	rest = record_get_bytes(in, &n_rest);
	if (c->step < FRONT_MORE)
		c->done = 0;
	if (in->bad || n_part >= c->ops->head_max || c->done > c->request.length)
		return -EBADMSG;
	if (n_part)
		memcpy(c->part, part, n_part);
	c->n_part = (uint32_t)n_part;
	if (n_rest && !(c->rest = malloc(n_rest)))
		return -ENOMEM;
	if (n_rest)
		memcpy(c->rest, rest, n_rest);
	c->rest_n = n_rest;
	return 0;
}

static int get_jobs(struct front_conn *c, struct record_in *in)
{
	uint64_t n = record_get(in);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = get_head(c, i + 1, in);
	if (rc == 0)
		rc = get_arriving(c, in);
	n = rc == 0 ? record_get(in) : 0;
	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = get_reply(c, in);
	return in->bad && rc == 0 ? -EBADMSG : rc;
}

static const struct front_ops *ops_named(const struct front_taken *t, const char *name)
{
	for (const struct front_ops *const *o = t->front->site->fronts; *o; o++)
		if (strcmp((*o)->name, name) == 0 && (*o)->take)
			return *o;
	return NULL;
}

static void copy(char *to, size_t room, struct record_in *in)
{
	snprintf(to, room, "%s", record_get_text(in));
}

/* Find the export again. 0, or -ESTALE with the reason; -EAGAIN: front_take. */
static int find_place(const struct front_taken *t, struct front_start *s, uint64_t size,
	uint64_t storage, const char **ret_why)
{
	const struct client *l = &s->client;
	struct weir_who who = {.export_ = l->export_,
		.client = *l->address ? l->address : NULL,
		.uid = *l->uid ? l->uid : NULL};
	int rc = t->front->site->find(t->front->gateway, &who, &s->place);

	if (rc == 0 && !s->place.known && t->whole)
		return -EAGAIN;
	if (rc == 0 && s->place.known && s->place.resource == t->resource &&
		s->place.size == size && s->place.storage == storage)
		return 0;
	*ret_why = rc == -EACCES                ? "the policy has no tenant for it"
		   : rc == 0 && !s->place.known ? "its storage is not reached"
						: "its export is gone, or another one";
	return -ESTALE;
}

static int fill(struct front_taken *t, struct front_start *s, uint64_t flags, struct record_in *in,
	struct front_conn **ret, const char **ret_why)
{
	uint64_t since = record_get(in), requests = record_get(in), bytes = record_get(in);
	uint64_t size = record_get(in), storage = record_get(in);
	int rc = find_place(t, s, size, storage, ret_why);
	struct front_conn *c = rc == 0 ? front_conn_new(s) : NULL;

	if (!c)
		return rc == 0 ? -ENOMEM : rc;
	*ret = c;
	s->stream.fd = -1;
	c->client.since = (weir_time)since;
	c->client.requests = requests;
	c->client.bytes = bytes;
	c->client.tenant = s->place.tenant;
	c->stopping = flags & KEPT_STOPPING;
	c->ended = flags & KEPT_ENDED;
	c->gone = flags & KEPT_GONE;
	c->heard = flags & KEPT_HEARD;
	*ret_why = "its export has other properties";
	if (c->read_only != !!(flags & KEPT_READ_ONLY))
		return -ESTALE;
	rc = front_job_join(c);
	if (rc == 0)
		rc = c->ops->take(c, in);
	if (rc == 0)
		rc = get_receiving(c, in);
	return rc < 0 ? rc : get_jobs(c, in);
}

static void unmake(struct front_conn *c)
{
	if (!c)
		return;
	c->closed = c->stopping = false; /* else the last job would list it */
	c->head = c->piece = NULL;
	request_list_clear(&c->out);
	while (c->first_job)
		front_job_put(c->first_job);
	front_conn_unstarted(c);
}

static int get_conn(struct front_taken *t, struct record_in *in)
{
	struct front_start s = {.ops = ops_named(t, record_get_text(in)), .stream = {.fd = -1}};
	uint64_t flags = record_get_most(in, KEPT_FLAGS);
	struct front_conn *c = NULL;
	const char *why = "its protocol is not known";
	int rc = s.ops ? 0 : -ESTALE;

	if (!(flags & KEPT_GONE))
		s.stream.fd = record_get_fd(in);
	copy(s.client.export_, sizeof(s.client.export_), in);
	copy(s.client.name, sizeof(s.client.name), in);
	copy(s.client.address, sizeof(s.client.address), in);
	copy(s.client.uid, sizeof(s.client.uid), in);
	if (rc == 0 && s.stream.fd < 0 && !(flags & KEPT_GONE)) {
		rc = -ESTALE; /* the service manager drops sockets that have ended */
		why = "its socket is missing";
	}
	if (rc == 0)
		rc = fill(t, &s, flags, in, &c, &why);
	if (rc < 0) {
		unmake(c);
		c = NULL;
		stream_close(&s.stream);
	}
	if (rc == -ESTALE)
		log_event(LOG_LEVEL_WARNING, "client-refused", "client", s.client.name, "export",
			s.client.export_, "why", why, NULL);
	t->conns[t->n++] = c;
	return rc == -ESTALE ? 0 : in->bad ? -EBADMSG : rc;
}

/* ---- requests that wait */

static struct front_job *piece_at(const struct front_job *head, uint64_t offset)
{
	struct front_job *p = head->pieces;

	while (p && p->offset != offset)
		p = p->next_piece;
	return p;
}

static int get_waiting(struct front_taken *t, struct record_in *in)
{
	uint64_t number = record_get(in), head_number = record_get(in), cookie = record_get(in);
	uint8_t command = (uint8_t)record_get_most(in, UINT8_MAX);
	uint64_t offset = record_get(in), length = record_get_most(in, UINT32_MAX);
	uint64_t note = record_get_most(in, UINT32_MAX), received = record_get(in);
	uint64_t op = record_get_most(in, BACK_STATUS), flags = record_get_most(in, UINT8_MAX);
	uint64_t extents = record_get_most(in, CHUNK_MAX / sizeof(struct back_extent));
	size_t n = 0;
	const uint8_t *data = op == BACK_WRITE ? record_get_bytes(in, &n) : NULL;
	struct front_job *head = NULL, *j;
	struct front_conn *c;
	struct back_io *io;

	if (in->bad || number == 0 || number > t->n ||
		((op == BACK_READ || op == BACK_WRITE) && length > CHUNK_MAX) ||
		(op == BACK_WRITE && n != length))
		return -EBADMSG;
	c = t->conns[number - 1];
	if (!c)
		return 0;
	if (offset > c->size || length > c->size - offset)
		return -EBADMSG;
	if (head_number && !(head = head_of(c, head_number)))
		return -EBADMSG;
	j = head && head->whole ? piece_at(head, offset)
				: make(c, head, memory_of(c, op, length, extents));
	if (!j)
		return head && head->whole ? -EBADMSG : -ENOMEM;
	j->cookie = cookie;
	j->command = command;
	j->offset = offset;
	j->length = (uint32_t)length;
	j->received = (weir_time)received;
	j->note = (uint32_t)note;
	io = &j->req.io;
	io->op = (uint8_t)op;
	io->offset = c->offset + offset;
	io->length = op == BACK_FLUSH ? c->size : length;
	io->flags = (uint8_t)(flags & ~(uint64_t)BACK_BORROW) |
		    (op == BACK_READ && io->chunk ? BACK_BORROW : 0);
	if (op == BACK_STATUS) {
		io->extents = (struct back_extent *)(void *)io->data;
		io->n_extents = (uint32_t)extents;
	}
	if (n)
		memcpy(io->data, data, n);
	request_list_add(&t->waiting, &j->req);
	return 0;
}

/* ---- all of them */

int front_take(struct front *f, struct resource *r, struct record_in *in, bool whole,
	struct front_taken **ret)
{
	struct front_taken *t = calloc(1, sizeof(*t));
	struct record_in part;
	const char *name;
	int rc = 0;

	if (!t)
		return -ENOMEM;
	t->front = f;
	t->resource = r;
	t->whole = whole;
	request_list_clear(&t->waiting);
	while (rc == 0 && record_section(in, &name, &part)) {
		bool client = strcmp(name, "client") == 0;

		if (client)
			rc = array_grow(&t->conns, &t->room, t->n + 1);
		if (rc == 0 && client)
			rc = get_conn(t, &part);
		else if (rc == 0 && strcmp(name, "queue") == 0)
			while (rc == 0 && part.at < part.end)
				rc = get_waiting(t, &part);
	}
	if (rc == 0 && in->bad)
		rc = -EBADMSG;
	if (rc < 0) {
		front_taken_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void front_taken_free(struct front_taken *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		unmake(t->conns[i]);
	free(t->conns);
	free(t);
}

/* ---- the start */

static void submit(struct front_taken *t)
{
	struct request *q, *next;

	for (q = t->waiting.first; q; q = next) {
		struct front_job *j = front_job_of(q);

		next = q->next;
		q->io.source = j->conn->client.node;
		if (j->head)
			j->head->left++;
		j->conn->gate->submit(t->resource, q);
	}
	t->front->submitted = true;
}

/* The requests of a head are submitted: it ends with the last of them, unless more are to come. */
static void release_heads(struct front_conn *c)
{
	struct front_job *j = c->first_job;

	while (j) {
		if (!j->is_head || !j->size || j == c->head) {
			j = j->next;
			continue;
		}
		j->size = 0; /* once */
		front_head_release(j);
		j = c->first_job; /* it may be gone, and its pieces with it */
	}
}

static void begin(struct front_conn *c)
{
	release_heads(c);
	c->progress = c->piece_since = loop_now(c->front->loop);
	if (c->gone)
		c->gate->unread(c->client.resource, &c->client);
	else if (!c->stopping && !c->doomed)
		front_resume(c);
	front_events(c);
	front_todo(c);
}

/* The system has no room for its socket: it ends as one that is lost. */
static void give_up(struct front_taken *t, size_t i)
{
	struct request *q = t->waiting.first, *next;

	for (request_list_clear(&t->waiting); q; q = next) {
		next = q->next;
		if (front_job_of(q)->conn != t->conns[i])
			request_list_add(&t->waiting, q);
	}
	unmake(t->conns[i]);
	t->conns[i] = NULL;
}

void front_taken_start(struct front_taken *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->conns[i] && front_conn_enter(t->conns[i]) < 0)
			give_up(t, i);
	submit(t);
	for (size_t i = 0; i < t->n; i++)
		if (t->conns[i])
			begin(t->conns[i]);
	free(t->conns);
	free(t);
}
