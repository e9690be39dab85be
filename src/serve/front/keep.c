/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep: connections for the process that replaces this one. The form is in kept.h.
 *
 * Nothing here changes what the connections do: this process may go on.
 */
#include "serve/front/impl.h"
#include "serve/front/kept.h"
#include "serve/handover/record.h"
#include <string.h>

struct keeping {
	struct front *front;
	struct record_out *out;
};

bool front_kept(const struct front_conn *c)
{
	return !c->stream.tls && c->ops->keep;
}

/* ---- replies */

static void put_reply(void *arg, const struct iovec *iov, int n)
{
	size_t bytes = 0;
	uint8_t *to;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	to = record_room(arg, bytes);
	for (int i = 0; to && i < n; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

static void put_replies(struct front_conn *c, struct record_out *o)
{
	uint64_t n = 0;

	for (const struct request *q = c->out.first; q; q = q->next)
		n++;
	record_put(o, n);
	front_unsent(c, put_reply, o);
}

/* ---- heads. The `size` of a job that has no reply yet is free: of a head it is its number here, of a piece 1 if it waits. */

static bool is_open_head(const struct front_job *j)
{
	return j->is_head && j->left;
}

static void put_pieces(const struct front_job *head, struct record_out *o)
{
	uint64_t n = 0;

	for (const struct front_job *p = head->pieces; p; p = p->next_piece)
		n++;
	record_put(o, n);
	for (const struct front_job *p = head->pieces; p; p = p->next_piece) {
		record_put(o, p->offset);
		record_put(o, p->length);
		record_put(o, p->size);
		if (!p->size)
			record_put_bytes(o, p->req.io.data, p->req.io.error ? 0 : p->length);
	}
}

static void put_heads(struct front_conn *c, struct record_out *o)
{
	uint32_t n = 0;

	for (struct front_job *j = c->first_job; j; j = j->next)
		if (is_open_head(j))
			j->size = ++n;
	record_put(o, n);
	for (const struct front_job *j = c->first_job; j; j = j->next) {
		if (!is_open_head(j))
			continue;
		record_put(o, (j->parts ? KEPT_PARTS : 0u) | (j->whole ? KEPT_WHOLE : 0u) |
				      (j == c->head ? KEPT_ARRIVES : 0u));
		record_put(o, j->cookie);
		record_put(o, j->command);
		record_put(o, j->offset);
		record_put(o, j->length);
		record_put(o, (uint64_t)j->received);
		record_put(o, (uint64_t)(int64_t)j->req.io.error);
		if (j->whole)
			put_pieces(j, o);
	}
}

/* ---- connections */

static void put_request(const struct front_request *q, struct record_out *o)
{
	record_put(o, q->cookie);
	record_put(o, q->offset);
	record_put(o, q->length);
	record_put(o, q->command);
	record_put(o, q->flags);
	record_put(o, q->whole);
}

static void put_receiving(struct front_conn *c, struct record_out *o)
{
	put_request(&c->request, o);
	record_put(o, c->step);
	record_put(o, c->done);
	record_put(o, c->skip);
	record_put(o, (uint64_t)(int64_t)c->refusal);
	record_put(o, (uint64_t)c->received);
	record_put_bytes(o, c->part, c->n_part);
	record_put_bytes(o, c->rest ? c->rest + c->rest_at : NULL, c->rest_n - c->rest_at);
}

static void put_conn(struct front_conn *c, struct record_out *o)
{
	size_t begun = record_begin(o, "client");

	record_put_text(o, c->ops->name);
	record_put(o, (c->stopping ? KEPT_STOPPING : 0u) | (c->ended ? KEPT_ENDED : 0u) |
			      (c->gone ? KEPT_GONE : 0u) | (c->heard ? KEPT_HEARD : 0u) |
			      (c->read_only ? KEPT_READ_ONLY : 0u));
	if (!c->gone)
		record_put_fd(o, c->stream.fd);
	record_put_text(o, c->client.export_);
	record_put_text(o, c->client.name);
	record_put_text(o, c->client.address);
	record_put_text(o, c->client.uid);
	record_put(o, (uint64_t)c->client.since);
	record_put(o, c->client.requests);
	record_put(o, c->client.bytes);
	record_put(o, c->size);
	record_put(o, c->storage);
	c->ops->keep(c, o);
	put_receiving(c, o);
	put_heads(c, o);
	record_put(o, c->piece != NULL);
	if (c->piece) {
		record_put(o, c->piece->offset);
		record_put(o, c->piece->length);
		record_put_bytes(o, c->piece->req.io.data, c->have);
	}
	put_replies(c, o);
	record_end(o, begun);
}

/* ---- requests that wait */

static void mark(void *arg, struct request *q)
{
	if (q->done == front_done)
		front_job_of(q)->size = 1;
}

static void put_waiting(void *arg, struct request *q)
{
	struct keeping *k = arg;
	struct record_out *o = k->out;
	const struct front_job *j = front_job_of(q);

	if (q->done != front_done || !j->conn->number)
		return;
	record_put(o, j->conn->number);
	record_put(o, j->head ? j->head->size : 0);
	record_put(o, j->cookie);
	record_put(o, j->command);
	record_put(o, j->offset);
	record_put(o, j->length);
	record_put(o, j->note);
	record_put(o, (uint64_t)j->received);
	record_put(o, q->io.op);
	record_put(o, q->io.flags);
	record_put(o, q->io.op == BACK_STATUS ? q->io.n_extents : 0);
	if (q->io.op == BACK_WRITE)
		record_put_bytes(o, q->io.data, j->length);
}

void front_keep(struct front *f, struct resource *r, struct record_out *o)
{
	struct keeping k = {f, o};
	const struct front_gate *gate = NULL;
	uint32_t n = 0;
	size_t begun;

	f->kept = true;
	for (struct front_conn *c = f->conns; c; c = c->next) {
		bool kept = c->client.resource == r && !c->closed && !c->doomed && front_kept(c);

		c->number = kept ? ++n : 0;
		if (kept)
			gate = c->gate;
		for (struct front_job *j = kept ? c->first_job : NULL; j; j = j->next)
			if (j->head)
				j->size = 0;
	}
	if (gate)
		gate->each_waiting(r, mark, NULL);
	for (struct front_conn *c = f->conns; c; c = c->next)
		if (c->number)
			put_conn(c, o);
	begun = record_begin(o, "queue");
	if (gate)
		gate->each_waiting(r, put_waiting, &k);
	record_end(o, begun);
}
