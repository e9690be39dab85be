/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-ring: the steps by io_uring, many per system call.
 *
 * METHOD  A batch is put into the ring step by step and submitted in one call; steps on cached data
 *         have completed by then, and are processed at once. Other completions make the ring's fd
 *         readable, which the loop watches. At most RING_ROOM steps are inside, so that the
 *         completion queue never overflows; further ones wait here.
 *
 *         Not with DEFER_TASKRUN: such a ring does not always wake pollers of its fd.
 */
#include "base/container.h"
#include "serve/back/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/epoll.h>

#define RING_BATCH 256  /* most entries per submission */
#define RING_ROOM  4096 /* most steps inside; size of the completion queue */
#define ROUNDS     4 /* most rounds of submitting and completing before other work has its turn */

static void ring_ready(struct loop_fd *l, uint32_t events)
{
	file_kick(container_of(l, struct file_hub, ring_fd));
}

static void ring_again(struct loop_timer *t, weir_time now)
{
	file_kick(container_of(t, struct file_hub, again));
}

/* Return true if the ring supports all operations of the steps, which Linux 5.6 does. */
static bool has_all_ops(struct io_uring *ring)
{
	static const int ops[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC,
		IORING_OP_FALLOCATE, IORING_OP_FADVISE};
	struct io_uring_probe *p = io_uring_get_probe_ring(ring);
	bool all = p != NULL;

	for (size_t i = 0; all && i < sizeof(ops) / sizeof(ops[0]); i++)
		all = io_uring_opcode_supported(p, ops[i]);
	io_uring_free_probe(p);
	return all;
}

/* The table begins empty; files come and go. */
static bool make_table(struct io_uring *ring)
{
	int none[FILE_FIXED];

	for (size_t i = 0; i < FILE_FIXED; i++)
		none[i] = -1;
	return io_uring_register_files(ring, none, FILE_FIXED) == 0;
}

int file_ring_start(struct file_hub *h)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = RING_ROOM};
	int r = io_uring_queue_init_params(RING_BATCH, &h->ring, &p);

	if (r < 0)
		return r;
	r = has_all_ops(&h->ring) ? 0 : -ENOSYS;
	if (r == 0) {
		h->ring_fd = (struct loop_fd){.fd = h->ring.ring_fd, .ready = ring_ready};
		r = loop_add(h->loop, &h->ring_fd, EPOLLIN);
	}
	if (r < 0) {
		io_uring_queue_exit(&h->ring);
		return r;
	}
	h->again.due = ring_again;
	h->fixed = make_table(&h->ring);
	h->ring_up = true;
	return 0;
}

void file_ring_free(struct file_hub *h)
{
	if (!h->ring_up)
		return;
	loop_set(h->loop, &h->again, WEIR_NEVER);
	loop_remove(h->loop, &h->ring_fd);
	io_uring_queue_exit(&h->ring);
}

void file_ring_register(struct file *f)
{
	struct file_hub *h = f->hub;

	for (int i = 0; h->ring_up && h->fixed && i < FILE_FIXED && f->fixed < 0; i++)
		if (!h->registered[i]) {
			if (io_uring_register_files_update(&h->ring, (unsigned)i, &f->fd, 1) != 1)
				return;
			h->registered[i] = f;
			f->fixed = i;
		}
}

void file_ring_unregister(struct file *f)
{
	int none = -1;

	if (f->fixed < 0)
		return;
	io_uring_register_files_update(&f->hub->ring, (unsigned)f->fixed, &none, 1);
	f->hub->registered[f->fixed] = NULL;
}

static void prepare(struct file *f, struct io_uring_sqe *q, struct back_io *io)
{
	enum file_step s = file_op(io)->step;
	int fd = f->fixed >= 0 ? f->fixed : f->fd;

	switch (s) {
	case FILE_READ:
		io_uring_prep_read(q, fd, file_data(f, io), file_bytes(io), file_offset(io));
		break;
	case FILE_WRITE:
	case FILE_REWRITE:
	case FILE_WRITE_ZERO:
		io_uring_prep_write(q, fd, file_data(f, io), file_bytes(io), file_offset(io));
		q->rw_flags = file_fua(io, s);
		break;
	case FILE_SYNC:
		io_uring_prep_fsync(q, fd, IORING_FSYNC_DATASYNC);
		break;
	case FILE_PUNCH:
		io_uring_prep_fallocate(q, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)io->offset, (off_t)io->length);
		break;
	case FILE_ZERO_RANGE:
		io_uring_prep_fallocate(q, fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
			(off_t)io->offset, (off_t)io->length);
		break;
	default: /* FILE_ADVISE; its length has 32 bits */
		io_uring_prep_fadvise(q, fd, io->offset,
			io->length < INT32_MAX ? (off_t)io->length : INT32_MAX,
			POSIX_FADV_WILLNEED);
	}
	if (f->fixed >= 0)
		io_uring_sqe_set_flags(q, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(q, io);
}

/* Put a request into the ring. Return false if there is no room. */
static bool put_in_ring(struct file_hub *h, struct back_io *io)
{
	struct io_uring_sqe *q;

	if (h->in_ring >= RING_ROOM)
		return false;
	q = io_uring_get_sqe(&h->ring);
	if (!q && io_uring_submit(&h->ring) > 0)
		q = io_uring_get_sqe(&h->ring);
	if (!q)
		return false;
	prepare(file_op(io)->file, q, io);
	h->in_ring++;
	return true;
}

void file_ring_put(struct file *f, struct back_io *io)
{
	struct file_list *waiting = &f->hub->waiting;

	if (!waiting->first && put_in_ring(f->hub, io))
		return;
	io->next = NULL;
	if (waiting->first)
		waiting->last->next = io;
	else
		waiting->first = io;
	waiting->last = io;
}

static void put_waiting(struct file_hub *h)
{
	while (h->waiting.first && put_in_ring(h, h->waiting.first))
		h->waiting.first = h->waiting.first->next;
}

static void complete_all(struct file_hub *h)
{
	struct io_uring_cqe *c;

	while (io_uring_peek_cqe(&h->ring, &c) == 0) {
		struct back_io *io = io_uring_cqe_get_data(c);
		int result = c->res;

		io_uring_cqe_seen(&h->ring, c);
		h->in_ring--;
		file_advance(file_op(io)->file, io, result);
	}
}

void file_ring_kick(struct file_hub *h)
{
	if (h->kicking) /* `done` submitted more: handled below */
		return;
	h->kicking = true;
	for (int i = 0; i < ROUNDS; i++) {
		if (io_uring_sq_ready(&h->ring) && io_uring_submit(&h->ring) < 0)
			break;
		complete_all(h);
		put_waiting(h);
		if (!io_uring_sq_ready(&h->ring))
			break;
	}
	/* Either the system is short of memory, or the rounds are used up. */
	if (io_uring_sq_ready(&h->ring))
		(void)io_uring_submit(&h->ring);
	if (io_uring_sq_ready(&h->ring) || (h->waiting.first && !h->in_ring))
		(void)loop_set(h->loop, &h->again, loop_now(h->loop) + WEIR_MS);
	h->kicking = false;
}
