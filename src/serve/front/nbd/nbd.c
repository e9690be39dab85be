/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd: NBD as a front end: the handshake by wire/nbd-hello.c, and requests. */
#include "base/container.h"
#include "serve/front/nbd/nbd.h"
#include "serve/handover/record.h"
#include <errno.h>

#define SKIP_MAX (64u << 20) /* bytes of a refused write; beyond, the client is disconnected */
#define EXTENTS  256         /* of one block status: 4 KiB of them */
#define REPLY    64          /* bytes: no reply is longer, without its data and extents */

static struct front_nbd_visit *visit_of(struct front_visit *v)
{
	return container_of(v, struct front_nbd_visit, visit);
}

static struct front_nbd_conn *conn_of(struct front_conn *c)
{
	return container_of(c, struct front_nbd_conn, conn);
}

/* ---- the handshake */

_Static_assert((int)NBD_HELLO_TLS == (int)FRONT_HELLO_TLS &&
		       (int)NBD_HELLO_READY == (int)FRONT_HELLO_READY &&
		       (int)NBD_HELLO_WAIT == (int)FRONT_HELLO_WAIT &&
		       (int)NBD_HELLO_END == (int)FRONT_HELLO_END,
	"hello casts one to the other");

static const char *list_exports(void *arg, size_t i)
{
	struct front_nbd_visit *v = arg;

	return front_list(&v->visit, i, &v->about);
}

static const char *describe(void *arg)
{
	return ((struct front_nbd_visit *)arg)->about;
}

static int find_export(void *arg, const char *name, struct nbd_export *ret)
{
	struct front_nbd_visit *v = arg;
	struct front_place place;
	int rc = front_find(&v->visit, name, &place);

	if (rc < 0)
		return rc;
	*ret = (struct nbd_export){.size = place.size,
		.flags = front_nbd_flags(place.info, place.read_only),
		.block_min = place.info->block_min ? place.info->block_min : 1,
		.block_preferred = place.info->block_preferred ? place.info->block_preferred : 4096,
		.block_max = NBD_PAYLOAD_MAX,
		.description = place.description};
	return 0;
}

static int enter_export(void *arg)
{
	return front_enter(&((struct front_nbd_visit *)arg)->visit);
}

static size_t greet(struct front_visit *visit, uint8_t *out)
{
	struct front_nbd_visit *v = visit_of(visit);

	v->ops = (struct nbd_hello_ops){.find = find_export,
		.enter = enter_export,
		.list = list_exports,
		.describe = describe,
		.arg = v};
	nbd_hello_init(&v->hello, &v->ops, visit->tls_offered, visit->tls_required);
	visit->name = v->hello.name;
	return nbd_hello_start(&v->hello, out);
}

static enum front_hello hello(struct front_visit *visit, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made)
{
	struct front_nbd_visit *v = visit_of(visit);
	/* The states have the same order. */
	int state = (int)nbd_hello_input(&v->hello, in, n, used, out, room, made);

	visit->fault = v->hello.fault;
	return (enum front_hello)state;
}

static void secured(struct front_visit *visit)
{
	struct front_nbd_visit *v = visit_of(visit);

	nbd_hello_secure(&v->hello);
	v->hello.denied = visit->denied;
}

void front_nbd_agree(struct front_conn *conn, const struct nbd_hello *h)
{
	struct front_nbd_conn *c = conn_of(conn);

	c->flags = front_nbd_flags(conn->info, conn->read_only);
	c->structured = h->structured;
	c->base_allocation = h->base_allocation;
	c->tells_held = h->held;
	c->context_id = h->context_id;
	c->held_id = h->held_id;
}

static void agree(struct front_conn *c, const struct front_visit *v)
{
	front_nbd_agree(c, &container_of(v, const struct front_nbd_visit, visit)->hello);
}

/* ---- requests */

static size_t parse(struct front_conn *c, const uint8_t *p, size_t n)
{
	if (n < NBD_REQUEST_SIZE)
		return 0;
	if (nbd_request_read(p, &conn_of(c)->request) < 0)
		front_broken(c, "bad magic");
	else
		c->step = FRONT_BEGIN;
	return NBD_REQUEST_SIZE;
}

static enum front_step begin_status(struct front_nbd_conn *c)
{
	bool at_once, one = c->request.flags & NBD_REQ_ONE;
	struct front_job *j = front_job_make(&c->conn, EXTENTS * sizeof(struct back_extent));
	struct back_io *io;

	if (!j)
		return FRONT_BEGIN;
	io = &j->req.io;
	at_once = front_nbd_held(c) || !c->conn.info->can_status;
	j->note = c->told;
	io->extents = (struct back_extent *)(void *)io->data;
	io->n_extents = one ? 1 : EXTENTS;
	if (!at_once) {
		front_submit(&c->conn, j, BACK_STATUS);
		return FRONT_HEAD;
	}
	io->op = BACK_STATUS;
	io->extents[0] = (struct back_extent){.length = j->length}; /* all is data */
	io->n_extents = 1;
	front_reply(j);
	return FRONT_HEAD;
}

static enum front_step begin_other(struct front_nbd_conn *c)
{
	static const uint8_t ops[] = {[NBD_FLUSH] = BACK_FLUSH,
		[NBD_TRIM] = BACK_TRIM,
		[NBD_WRITE_ZEROES] = BACK_ZERO,
		[NBD_CACHE] = BACK_CACHE};
	struct front_job *j = front_job_make(&c->conn, 0);

	if (!j)
		return FRONT_BEGIN;
	if (c->request.command == NBD_FLUSH) /* its range has no meaning */
		j->offset = j->length = 0;
	front_submit(&c->conn, j, (enum back_op)ops[c->request.command]);
	return FRONT_HEAD;
}

/* The flags of a checked request for the back end. The protocol allows FUA on all commands; it has a
 * meaning for writes. */
static uint8_t back_flags(const struct nbd_request *q)
{
	bool writes =
		q->command == NBD_WRITE || q->command == NBD_TRIM || q->command == NBD_WRITE_ZEROES;

	return (uint8_t)((q->flags & NBD_FUA && writes ? BACK_FUA : 0) |
			 (q->flags & NBD_NO_HOLE ? BACK_NO_HOLE : 0) |
			 (q->flags & NBD_FAST_ZERO ? BACK_FAST_ZERO : 0));
}

static enum front_step begin(struct front_conn *conn)
{
	struct front_nbd_conn *c = conn_of(conn);
	const struct nbd_request *q = &c->request;
	struct front_nbd_rules rules = {conn->size, c->flags, conn->info->block_min, c->structured,
		c->base_allocation || c->tells_held};
	int error;

	if (q->command == NBD_DISC) {
		front_leave(conn);
		return FRONT_HEAD;
	}
	error = front_nbd_check(&rules, q);
	if (q->command == NBD_WRITE && q->length > SKIP_MAX) {
		front_broken(conn, "a write of more than 64 MiB");
		return FRONT_HEAD;
	}
	/* The number of an unknown command, cut to 8 bits, may be a known one: it gets a simple
	 * reply. */
	conn->request = (struct front_request){.cookie = q->cookie,
		.offset = q->offset,
		.length = q->length,
		.command = q->command <= NBD_BLOCK_STATUS ? (uint8_t)q->command : NBD_DISC,
		.flags = error ? 0 : back_flags(q),
		.whole = !c->structured || q->flags & NBD_DF};
	if (q->command == NBD_WRITE && q->length)
		return front_begin_write(conn, error);
	if (error || (q->length == 0 && q->command != NBD_FLUSH))
		return front_answer(conn, error);
	if (q->command == NBD_READ)
		return front_begin_read(conn);
	return q->command == NBD_BLOCK_STATUS ? begin_status(c) : begin_other(c);
}

/* ---- for the process that replaces this one */

enum { STRUCTURED = 1, BASE = 2, HELD = 4 };

static void keep_conn(const struct front_conn *conn, struct record_out *o)
{
	const struct front_nbd_conn *c = container_of(conn, const struct front_nbd_conn, conn);

	record_put(o, c->flags);
	record_put(o, (c->structured ? STRUCTURED : 0u) | (c->base_allocation ? BASE : 0u) |
			      (c->tells_held ? HELD : 0u));
	record_put(o, c->context_id);
	record_put(o, c->held_id);
	record_put(o, c->told);
	record_put(o, c->request.cookie);
	record_put(o, c->request.offset);
	record_put(o, c->request.length);
	record_put(o, c->request.flags);
	record_put(o, c->request.command);
}

static int take_conn(struct front_conn *conn, struct record_in *in)
{
	struct front_nbd_conn *c = conn_of(conn);
	uint64_t agreed;

	c->flags = (uint16_t)record_get_most(in, UINT16_MAX);
	agreed = record_get_most(in, STRUCTURED | BASE | HELD);
	c->structured = agreed & STRUCTURED;
	c->base_allocation = agreed & BASE;
	c->tells_held = agreed & HELD;
	c->context_id = (uint32_t)record_get_most(in, UINT32_MAX);
	c->held_id = (uint32_t)record_get_most(in, UINT32_MAX);
	c->told = (uint32_t)record_get_most(in, UINT32_MAX);
	c->request.cookie = record_get(in);
	c->request.offset = record_get(in);
	c->request.length = (uint32_t)record_get_most(in, UINT32_MAX);
	c->request.flags = (uint16_t)record_get_most(in, UINT16_MAX);
	c->request.command = (uint16_t)record_get_most(in, UINT16_MAX);
	if (in->bad)
		return -EBADMSG;
	return c->flags == front_nbd_flags(conn->info, conn->read_only) ? 0 : -ESTALE;
}

const struct front_ops front_nbd_ops = {
	.name = "nbd",
	.visit_size = sizeof(struct front_nbd_visit),
	.conn_size = sizeof(struct front_nbd_conn),
	.head_max = NBD_REQUEST_SIZE,
	.reply_max = REPLY,
	.greet = greet,
	.hello = hello,
	.secured = secured,
	.agree = agree,
	.parse = parse,
	.begin = begin,
	.reply = front_nbd_reply,
	.keep = keep_conn,
	.take = take_conn,
};
