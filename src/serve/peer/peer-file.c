/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-file: a file, a device or an NBD export that all hosts share, with a block for each.
 *
 * Once a period: one large read of all blocks; new messages go to receive, and the slots determine
 * our block (wire/peer-slots.h); then our block is written. The time between the two is as short as
 * possible, since the write is decided by the read. A period that begins while the last one's I/O
 * is in flight is skipped: the storage is slow or away, and nothing waits for it.
 *
 * The header is read each time with the rest: if it has changed, the file was replaced, and nothing
 * is written.
 */
#include "base/container.h"
#include "serve/peer/peer-impl.h"
#include "serve/back/back.h"
#include "serve/loop/log.h"
#include "wire/peer-slots.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK PEER_SLOTS_BLOCK
/* ns: 30 periods: a host that was away for a moment finds its block again */
#define STALE     (60 * WEIR_SEC)
#define SAY_AGAIN (60 * WEIR_SEC)
#define READS     ((PEER_SLOTS_MOST + 1) * BLOCK / CHUNK_MAX) /* requests of the largest read */

struct file {
	struct peers peers; /* first */
	struct back *back;
	struct peer_slots *slots;
	char *name;
	unsigned n_slots;
	uint8_t *all;    /* header and slots, as last read */
	uint8_t *block;  /* our output */
	uint8_t *header; /* expected content */
	unsigned inside; /* requests in the back end */
	bool busy;       /* a period is in progress */
	struct loop_task task;
	int error;      /* of this period's */
	weir_time said; /* when an error was last logged; 0: never */
	bool leaving;   /* close was called: one more period, and then the end */
	bool last;      /* this is that period */
	struct back_io io[READS];
};

static bool file_sealed(void *arg, const uint8_t *in, size_t n)
{
	return peer_key_sealed(&((struct file *)arg)->peers.key, in, n);
}

static void file_seal(void *arg, uint8_t *out, size_t n)
{
	peer_key_seal(&((struct file *)arg)->peers.key, out, n);
}

static void file_receive(void *arg, const struct peer_message *m, bool same)
{
	struct file *f = arg;

	peer_deliver(&f->peers, m, NULL, same, loop_now(f->peers.config.loop));
}

static void file_free(struct file *f)
{
	back_free(f->back);
	peer_slots_free(f->slots);
	free(f->name);
	free(f->all);
	free(f->block);
	free(f->header);
	peer_closed(&f->peers);
	free(f);
}

/* ---- a period */

static void failed(struct file *f, const char *what)
{
	weir_time now = loop_now(f->peers.config.loop);

	f->peers.stats.failed++;
	if (f->said && now - f->said < SAY_AGAIN)
		return;
	f->said = now;
	log_event(LOG_LEVEL_WARNING, "peer-file", "file", f->name, "why", what, NULL);
}

static void begin(struct file *f);

/* End the period, and perhaps the whole. */
static void finish(struct file *f)
{
	f->busy = false;
	if (f->last)
		file_free(f);
	else if (f->leaving)
		begin(f);
}

static void submit(struct file *f, unsigned n)
{
	for (unsigned i = 0; i + 1 < n; i++)
		f->io[i].next = &f->io[i + 1];
	f->io[n - 1].next = NULL;
	f->inside = n;
	f->error = 0;
	back_submit(f->back, f->io);
}

static void begin(struct file *f)
{
	size_t total = (size_t)(f->n_slots + 1) * BLOCK, at = 0;
	unsigned n = 0;

	f->busy = true;
	f->last = f->leaving;
	for (; at < total; n++, at += f->io[n - 1].length)
		f->io[n] = (struct back_io){.op = BACK_READ,
			.offset = at,
			.length = total - at < CHUNK_MAX ? total - at : CHUNK_MAX,
			.data = f->all + at};
	submit(f, n);
}

static void write_ours(struct file *f)
{
	weir_time now = loop_now(f->peers.config.loop);
	int at = peer_slots_choose(f->slots, now);

	if (at < 0) {
		f->peers.stats.full++;
		failed(f, "all slots belong to living hosts");
		finish(f);
		return;
	}
	peer_slots_block(
		f->slots, peer_next(&f->peers, f->last ? PEER_LEAVE : PEER_BLOCK), f->block);
	/* At once to the device: an NBD back end then has nothing to resend later, when the block
	 * may belong to another host. */
	f->io[0] = (struct back_io){.op = BACK_WRITE,
		.flags = f->back->info.can_fua ? BACK_FUA : 0,
		.offset = (uint64_t)(at + 1) * BLOCK,
		.length = BLOCK,
		.data = f->block};
	submit(f, 1);
}

static void was_read(struct file *f)
{
	if (memcmp(f->all, f->header, BLOCK) != 0) {
		failed(f, "its header was overwritten by another program");
		finish(f);
		return;
	}
	f->peers.stats.received_bytes += (uint64_t)(f->n_slots + 1) * BLOCK;
	peer_slots_scan(f->slots, f->all + BLOCK, loop_now(f->peers.config.loop));
	write_ours(f);
}

static void was_written(struct file *f)
{
	f->peers.stats.sent++;
	f->peers.stats.sent_bytes += BLOCK;
	finish(f);
}

/* Do the next step, outside of the back end, which may be freed. */
static void step(struct loop_task *t)
{
	struct file *f = container_of(t, struct file, task);

	if (f->error) {
		failed(f, strerror(-f->error));
		finish(f);
	} else if (f->io[0].op == BACK_READ) {
		was_read(f);
	} else {
		was_written(f);
	}
}

static void io_done(void *arg, struct back_io *io)
{
	struct file *f = arg;

	if (io->error)
		f->error = io->error;
	/* the back end lends its own memory */
	else if (io->op == BACK_READ && io->data != f->all + io->offset)
		memcpy(f->all + io->offset, io->data, io->length);
	if (!--f->inside)
		loop_post(f->peers.config.loop, &f->task);
}

/* ---- the table of functions */

static void file_send(struct peers *p)
{
	struct file *f = (struct file *)p;

	if (f->busy)
		p->stats.missed++;
	else
		begin(f);
}

static void file_stats(const struct peers *p, struct peer_stats *s)
{
	const struct file *f = (const struct file *)p;
	struct peer_slots_stats own;

	peer_slots_stats(f->slots, loop_now(p->config.loop), PEER_HEARD, &own);
	memcpy(s->verdicts, own.verdicts, sizeof(s->verdicts));
	s->lost = own.lost;
	s->heard = own.heard;
}

static void file_close(struct peers *p)
{
	struct file *f = (struct file *)p;

	f->leaving = true;
	p->last.n_reports = 0;
	if (!f->busy)
		begin(f);
}

static const struct peers_ops file_ops = {
	.send = file_send, .stats = file_stats, .close = file_close};

/* ---- opening */

static struct peer_slots_config slots_config(struct file *f)
{
	const struct peer_config *c = &f->peers.config;

	return (struct peer_slots_config){.name = f->peers.last.name,
		.instance = f->peers.last.instance,
		.cluster = f->peers.last.cluster,
		.stale = c->stale ? c->stale : STALE,
		.slots = f->n_slots,
		.sealed = file_sealed,
		.seal = file_seal,
		.receive = file_receive,
		.arg = f};
}

static int allocate(struct file *f)
{
	struct peer_slots_config slots = slots_config(f);
	size_t total = (size_t)(f->n_slots + 1) * BLOCK;

	f->all = aligned_alloc(BLOCK, total); /* aligned for direct I/O */
	f->block = aligned_alloc(BLOCK, BLOCK);
	f->header = malloc(BLOCK);
	if (!f->all || !f->block || !f->header || peer_slots_new(&slots, &f->slots) < 0)
		return -ENOMEM;
	peer_slots_header(&slots, f->header);
	return 0;
}

static int open_back(struct file *f, const char *name, struct weir_err *err)
{
	struct back_config back = {.loop = f->peers.config.loop,
		.timeout = PEER_FILE_TIMEOUT,
		.connections = 1}; /* the requests of a period are sequential */
	int r = back_open(name, &back, &f->back, err);

	if (r < 0)
		return r;
	f->back->done = io_done;
	f->back->done_arg = f;
	r = f->back->ops->start(f->back);
	return r < 0 ? weir_err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

static int file_start(struct file *f, const struct peer_config *config, struct weir_err *err)
{
	struct peer_file_place place = {0};
	struct peer_slots_config slots;
	int r = peer_init(&f->peers, &file_ops, config, err);

	if (r < 0)
		return r;
	slots = slots_config(f);
	r = peer_file_place(config->addresses[0], &slots, &place, err);
	if (r < 0)
		return r;
	f->n_slots = place.slots;
	f->name = strdup(config->addresses[0]);
	if (!f->name || allocate(f) < 0)
		r = weir_err_set(err, -ENOMEM, "peers: out of memory");
	else
		r = open_back(f, place.back, err);
	free(place.back);
	return r;
}

int peer_file_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err)
{
	struct file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return weir_err_set(err, -ENOMEM, "peers: out of memory");
	f->task.run = step;
	r = file_start(f, config, err);
	if (r < 0) {
		file_free(f);
		return r;
	}
	*ret_peers = &f->peers;
	return 0;
}
