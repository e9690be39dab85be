/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: another NBD server as a back end, over several connections; acknowledged writes survive
 * the loss of the upstream. Structure, states and invariants: serve/back/nbd.h.
 */
#include "base/container.h"
#include "serve/back/nbd.h"
#include <weir/units.h>
#include "serve/loop/log.h"
#include "serve/loop/tls.h"
#include "base/array.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SLOT_BLOCK 256         /* slots allocated at once */
#define CONNS      4           /* default, if the upstream allows several */
#define DEPTH      32          /* requests that a connection can use at once */
#define KEEP       (64u << 20) /* bytes, default */
#define TIMEOUT    (60 * WEIR_SEC)
#define LOOKUP_MIN WEIR_SEC        /* patience with which a name may be looked up at open */
#define OPEN_MOST  (10 * WEIR_SEC) /* for connecting and the handshake at open */

/* ---- slots */

static int more_slots(struct nbd *n)
{
	struct slot *block;

	if (array_resize(&n->blocks, n->n_blocks + 1) < 0)
		return -ENOMEM;
	block = calloc(SLOT_BLOCK, sizeof(*block));
	if (!block)
		return -ENOMEM;
	for (uint32_t i = SLOT_BLOCK; i-- > 0;) {
		block[i].call.cookie = n->n_blocks * SLOT_BLOCK + i;
		block[i].next = n->free_slots;
		n->free_slots = &block[i];
	}
	n->blocks[n->n_blocks++] = block;
	return 0;
}

struct slot *back_nbd_slot(struct nbd *n)
{
	struct slot *s;
	uint64_t cookie;

	if (!n->free_slots && more_slots(n) < 0)
		return NULL;
	s = n->free_slots;
	n->free_slots = s->next;
	cookie = (uint32_t)s->call.cookie;
	memset(&s->next, 0,
		sizeof(*s) - offsetof(struct slot, next)); /* range: set by overlap_enter */
	s->call.cookie = cookie;
	s->born = n->born++;
	return s;
}

void back_nbd_slot_free(struct nbd *n, struct slot *s)
{
	cover_clear(&s->call.cover);
	s->conn = NULL; /* so that a late reply does not find it */
	s->next = n->free_slots;
	n->free_slots = s;
}

struct slot *back_nbd_find(struct nbd *n, uint64_t cookie)
{
	uint32_t index = (uint32_t)cookie;
	struct slot *s;

	if (index / SLOT_BLOCK >= n->n_blocks)
		return NULL;
	s = &n->blocks[index / SLOT_BLOCK][index % SLOT_BLOCK];
	return s->call.cookie == cookie ? s : NULL;
}

/* ---- the loop */

static bool nbd_turn(struct loop_turn *t, weir_time now)
{
	struct nbd *n = container_of(t, struct nbd, turn);
	bool more = false;

	n->turned = loop_round(n->loop);
	n->finished = false;
	n->in_turn = true;
	for (uint32_t i = 0; i < n->wanted; i++)
		if (n->conns[i].more)
			back_nbd_conn_recv(n, &n->conns[i]);
	n->in_turn = false;
	if (n->attend || n->phase != NBD_PHASE_UP)
		back_nbd_attend(n);
	back_nbd_way_go(n);
	if (n->phase == NBD_PHASE_DRAIN) {
		back_nbd_attend(n);
		back_nbd_way_go(n); /* with nothing to await or resend it is UP already */
	}
	for (uint32_t i = 0; i < n->wanted; i++) {
		struct conn *c = &n->conns[i];
		if (c->link.state == NBD_LINK_READY && c->out.n)
			back_nbd_conn_send(n, c);
		more |= c->more;
	}
	return more || n->attend || n->finished;
}

static void on_kick(struct loop_timer *t, weir_time now)
{
	(void)t; /* the turn follows: that is all */
	(void)now;
}

static int nbd_start(struct back *b)
{
	struct nbd *n = nbd_of(b);
	struct conn *c = &n->conns[0];
	int r;

	n->timer.due = back_nbd_due;
	n->kick.due = on_kick;
	if (c->link.state == NBD_LINK_READY) {
		c->fd = (struct loop_fd){.fd = c->link.stream.fd, .ready = back_nbd_ready};
		r = loop_add(n->loop, &c->fd, EPOLLIN);
		if (r < 0)
			return r;
		c->watched = true;
	}
	n->turn.turn = nbd_turn;
	loop_turn_add(n->loop, &n->turn);
	n->started = true;
	n->up_since = loop_now(n->loop);
	r = loop_set(n->loop, &n->kick, loop_now(n->loop));
	n->attend = true; /* for the other connections */
	return r;
}

/* Return true if a request cannot be sent, or has no effect; *ret_error is its result. */
static bool is_refused(const struct nbd *n, const struct back_io *io, int *ret_error)
{
	bool writes = io->op == BACK_WRITE || io->op == BACK_TRIM || io->op == BACK_ZERO;
	bool flush = io->op == BACK_FLUSH; /* has no range */
	const struct back_info *i = &n->back.info;

	*ret_error = 0;
	if (n->back.state == BACK_FAILED || n->back.state == BACK_STARTING)
		*ret_error = -EIO;
	else if (back_nbd_given_up(n))
		*ret_error = -ESHUTDOWN;
	else if (writes && i->read_only)
		*ret_error = -EPERM;
	else if ((io->op == BACK_TRIM && !i->can_trim) || (io->op == BACK_ZERO && !i->can_zero) ||
		 (io->op == BACK_STATUS && !i->can_status))
		*ret_error = -ENOTSUP;
	else if (!flush && (io->length > UINT32_MAX || io->offset > i->size ||
				   io->length > i->size - io->offset))
		*ret_error = -EINVAL;
	else if (flush || (io->length && (io->op != BACK_CACHE || i->can_cache)))
		return false;
	return true;
}

static void submit_one(struct nbd *n, struct back_io *io)
{
	struct slot *s = NULL;
	int error;

	n->inside++;
	if (!is_refused(n, io, &error)) {
		s = back_nbd_slot(n);
		error = -ENOMEM;
	}
	if (!s) {
		n->inside--;
		io->error = error;
		n->back.done(n->back.done_arg, io);
		return;
	}
	s->io = io;
	s->op = io->op;
	s->flags = io->flags;
	s->call.offset = io->offset;
	s->call.length = (uint32_t)io->length;
	s->out = s->call.in = io->data;
	s->call.borrows = io->op == BACK_READ && io->flags & BACK_BORROW;
	s->since = loop_now(n->loop);
	slot_push(&n->ready, s);
}

/* Requests are sent in the turn, with others of this round; or, after it, soon. */
static void kick(struct nbd *n)
{
	if ((n->turned == loop_round(n->loop) || !n->turned) && !n->kick.set)
		loop_set(n->loop, &n->kick, loop_now(n->loop));
}

static void nbd_submit(struct back *b, struct back_io *ios)
{
	struct nbd *n = nbd_of(b);

	for (struct back_io *next; ios; ios = next) {
		next = ios->next;
		submit_one(n, ios);
	}
	kick(n);
}

/* Query on any connection: all of them belong to one tenant there. */
static void nbd_ask(struct back *b)
{
	struct nbd *n = nbd_of(b);
	struct conn *c = NULL;

	for (uint32_t i = 0; i < n->wanted && !c; i++)
		if (n->conns[i].link.state == NBD_LINK_READY && n->conns[i].joined &&
			!n->conns[i].broken)
			c = &n->conns[i];
	if (n->question || n->phase != NBD_PHASE_UP)
		return;
	if (!c || !c->link.greet.held || n->export_.size < n->export_.block_min) {
		n->back.held = 0;
		return;
	}
	n->question = back_nbd_slot(n);
	if (!n->question)
		return;
	n->question->op = BACK_STATUS;
	n->question->call.length = n->export_.block_min;
	back_nbd_conn_put(n, c, n->question);
	kick(n);
}

static void nbd_free(struct back *b)
{
	struct nbd *n = nbd_of(b);

	if (n->started) {
		loop_set(n->loop, &n->timer, WEIR_NEVER);
		loop_set(n->loop, &n->kick, WEIR_NEVER);
		loop_turn_remove(n->loop, &n->turn);
		back_nbd_dial_drop(n);
	}
	for (uint32_t i = 0; n->conns && i < BACK_NBD_CONNS; i++)
		if (n->conns[i].link.state != NBD_LINK_NONE)
			back_nbd_conn_close(n, &n->conns[i]);
	unflushed_free(n->kept);
	overlap_free(&n->overlap);
	tls_free(n->tls);
	for (uint32_t i = 0; i < n->n_blocks; i++) {
		for (uint32_t j = 0; j < SLOT_BLOCK; j++)
			cover_clear(&n->blocks[i][j].call.cover); /* of an internal one in flight */
		free(n->blocks[i]);
	}
	free(n->blocks);
	free(n->conns);
	free(n->scratch_in);
	free(n->scratch_out);
	free(n->sink);
	free(n->name);
	free(n);
}

static void nbd_say(const struct back *b, char *text, size_t len)
{
	const struct nbd *n = container_of(b, const struct nbd, back);
	char kept[32];
	int at;

	if (n->back.state == BACK_STARTING) {
		snprintf(text, len, "%s", n->why);
		return;
	}
	at = snprintf(text, len, "%u connection%s, %llu reconnects", n->ready_conns,
		n->ready_conns == 1 ? "" : "s", (unsigned long long)n->reconnects);
	if (n->kept && at >= 0 && (size_t)at < len)
		snprintf(text + at, len - (size_t)at, ", %s unflushed%s",
			weir_units_show_size(unflushed_held(n->kept), kept, sizeof(kept)),
			n->doubt ? " (in doubt)" : "");
	at = (int)strlen(text);
	if (n->back.state != BACK_UP && n->why[0] && (size_t)at < len)
		snprintf(text + at, len - (size_t)at, "; %s", n->why);
}

static uint64_t nbd_unflushed(const struct back *b)
{
	const struct nbd *n = container_of(b, const struct nbd, back);

	return n->kept ? unflushed_bytes(n->kept) : 0;
}

static const struct back_ops ops = {
	.name = "nbd",
	.start = nbd_start,
	.submit = nbd_submit,
	.ask = nbd_ask,
	.free = nbd_free,
	.abandon = back_nbd_abandon,
	.unflushed = nbd_unflushed,
	.say = nbd_say,
};

/* ---- open */

static int connect_first(struct nbd *n, weir_time most, struct weir_err *err)
{
	weir_time until = loop_clock() + most;
	struct conn *c = &n->conns[0];
	int fd, r;

	r = stream_connect(n->uri.address, most, &fd, err);
	if (r)
		return r;
	back_nbd_conn_begin(n, c, fd);
	r = nbd_link_wait(&c->link, &n->uri, n->tls, until);
	if (r)
		return weir_err_set(err, r, "%s", c->link.why);
	c->joined = true;
	n->ready_conns = 1;
	n->attend = false;
	return 0;
}

static void learn_info(struct nbd *n, const struct nbd_greet *g)
{
	uint16_t f = g->export_.flags;
	struct back_info *i = &n->back.info;

	n->export_ = g->export_;
	n->export_.description = NULL;
	n->fua = f & NBD_SEND_FUA;
	n->status = g->base_allocation;
	if (!(f & NBD_MULTI_CONN))
		n->wanted = 1;
	*i = (struct back_info){
		.batch = 32,
		.size = g->export_.size,
		.read_only = n->read_only || (f & NBD_READ_ONLY),
		.rotational = f & NBD_ROTATIONAL,
		.can_flush = f & NBD_SEND_FLUSH,
		.can_fua = f & (NBD_SEND_FUA | NBD_SEND_FLUSH),
		.can_trim = f & NBD_SEND_TRIM,
		.can_zero = f & NBD_SEND_WRITE_ZEROES,
		.can_fast_zero = f & NBD_SEND_FAST_ZERO,
		.can_cache = f & NBD_SEND_CACHE,
		.can_status = g->base_allocation,
		.multi_conn = true, /* this back end is one client: its FLUSH covers all of ours */
		.block_min = g->export_.block_min,
		.block_preferred = g->export_.block_preferred,
		.depth = DEPTH * n->wanted,
	};
}

int back_nbd_learn(struct nbd *n, const struct nbd_greet *g, struct weir_err *err)
{
	size_t keep = n->keep;
	int r;

	if (g->export_.block_max < CHUNK_MAX)
		return weir_err_set(err, -EINVAL,
			"%s: accepts at most %u bytes per request; %u are needed", n->name,
			g->export_.block_max, CHUNK_MAX);
	free(n->sink);
	n->sink = malloc(g->export_.block_min + 1);
	if (!n->sink)
		return weir_err_set(err, -ENOMEM, "%s: no memory", n->name);
	/* Without data to read, a second connection could not be checked (invariant 2). */
	if (g->export_.size < g->export_.block_min || !g->export_.size)
		n->wanted = n->most = 1;
	learn_info(n, g);
	n->known = true;
	if (!n->back.info.can_flush || n->back.info.read_only)
		return 0;
	/* Payloads need memory, too, and there may be several upstreams. */
	if (n->pool && keep > chunk_budget(n->pool) / 8)
		keep = chunk_budget(n->pool) / 8;
	if (keep < BACK_KEEP_LEAST) /* for a pool as small as a test's */
		keep = BACK_KEEP_LEAST;
	r = unflushed_new(keep, n->pool, &n->kept);
	n->known = n->own_flush = r == 0; /* own: see serve/back/nbd-flush.c */
	return r < 0 ? weir_err_set(err, r, "%s: no memory", n->name) : 0;
}

/* Start without the upstream; connecting is retried once the back end is started. */
static void begin_away(struct nbd *n, const struct weir_err *err)
{
	if (n->conns[0].link.state != NBD_LINK_NONE)
		back_nbd_conn_close(n, &n->conns[0]);
	n->phase = NBD_PHASE_AWAY;
	n->back.state = BACK_STARTING;
	n->attend = false;
	snprintf(n->why, sizeof(n->why), "%s", err->text);
	log_event(
		LOG_LEVEL_WARNING, "upstream-not-reached", "back", n->name, "why", err->text, NULL);
	n->said = true;
}

/* Connect, waiting for the configured patience. */
static int connect_or_wait(struct nbd *n, weir_time patience, struct weir_err *err)
{
	struct weir_err why = {""};
	int r;

	if (patience && patience < LOOKUP_MIN && stream_looks_up(n->uri.address))
		r = weir_err_set(&why, -EAGAIN, "its name is being looked up");
	else
		r = connect_first(n, patience ? patience : OPEN_MOST, &why);

	if (r && patience) {
		begin_away(n, &why);
		return 0;
	}
	if (r)
		return weir_err_set(err, r, "%s: %s", n->name, why.text);
	return back_nbd_learn(n, &n->conns[0].link.greet, err);
}

static int allocate(struct nbd *n, const char *uri)
{
	n->name = strdup(uri);
	n->conns = calloc(BACK_NBD_CONNS, sizeof(*n->conns));
	n->scratch_in = malloc(BACK_NBD_IN);
	n->scratch_out = malloc(BACK_NBD_SCRATCH);
	if (!n->name || !n->conns || !n->scratch_in || !n->scratch_out)
		return -ENOMEM;
	return more_slots(n);
}

static int prepare_tls(struct nbd *n, const struct back_config *c, struct weir_err *err)
{
	struct tls_config t = {
		.cert = c->tls_cert, .key = c->tls_key, .ca = c->tls_ca, .psk = c->tls_psk};
	struct weir_err why = {""};
	int r = n->uri.tls ? tls_new(&t, false, &n->tls, &why) : 0;

	return r ? weir_err_set(err, r, "%s: %s", n->name, why.text) : 0;
}

static int nbd_open(const char *uri, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	struct nbd *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return weir_err_set(err, -ENOMEM, "%s: no memory", uri);
	n->back.ops = &ops;
	n->loop = config->loop;
	n->pool = config->pool;
	n->timeout = config->timeout ? config->timeout : TIMEOUT;
	n->read_only = config->read_only;
	n->keep = config->keep ? config->keep : KEEP;
	n->wanted = config->connections ? config->connections : CONNS;
	if (n->wanted > BACK_NBD_CONNS)
		n->wanted = BACK_NBD_CONNS;
	n->most = n->wanted;
	n->phase = NBD_PHASE_UP;
	n->lost_since = n->resend_at = WEIR_NEVER;
	overlap_init(&n->overlap);
	rng_init(&n->rng, (uint64_t)loop_clock() ^ (uint64_t)getpid() << 32, "back-nbd");
	r = nbd_uri_parse(uri, &n->uri, err);
	if (!r && n->keep < BACK_KEEP_LEAST)
		r = weir_err_set(
			err, -EINVAL, "%s: keep must be at least %u bytes", uri, BACK_KEEP_LEAST);
	if (!r && allocate(n, uri) < 0)
		r = weir_err_set(err, -ENOMEM, "%s: no memory", uri);
	if (!r)
		r = prepare_tls(n, config, err);
	if (!r)
		r = connect_or_wait(n, config->patience, err);
	if (r) {
		nbd_free(&n->back);
		return r;
	}
	*ret_back = &n->back;
	return 0;
}

const struct back_kind back_nbd_kind = {
	.names = (const char *const[]){"nbd", "nbds", "nbd+unix", "nbds+unix", NULL},
	.whole = true,
	.open = nbd_open,
	.check = nbd_uri_check,
};
