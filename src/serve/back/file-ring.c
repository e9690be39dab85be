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
	struct file *f = container_of(l, struct file, ring_fd);

	file_kick(f);
}

static void ring_again(struct loop_timer *t, weir_time now)
{
	file_kick(container_of(t, struct file, again));
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

int file_ring_start(struct file *f)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = RING_ROOM};
	int r = io_uring_queue_init_params(RING_BATCH, &f->ring, &p);

	if (r < 0)
		return r;
	r = has_all_ops(&f->ring) ? 0 : -ENOSYS;
	if (r == 0) {
		f->ring_fd = (struct loop_fd){.fd = f->ring.ring_fd, .ready = ring_ready};
		r = loop_add(f->loop, &f->ring_fd, EPOLLIN);
	}
	if (r < 0) {
		io_uring_queue_exit(&f->ring);
		return r;
	}
	f->again.due = ring_again;
	f->fixed = io_uring_register_files(&f->ring, &f->fd, 1) == 0;
	f->ring_up = true;
	return 0;
}

void file_ring_free(struct file *f)
{
	if (!f->ring_up)
		return;
	loop_set(f->loop, &f->again, WEIR_NEVER);
	loop_remove(f->loop, &f->ring_fd);
	io_uring_queue_exit(&f->ring);
}

static void prepare(struct file *f, struct io_uring_sqe *q, struct back_io *io)
{
	enum file_step s = file_op(io)->step;
	int fd = f->fixed ? 0 : f->fd;

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
	if (f->fixed)
		io_uring_sqe_set_flags(q, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(q, io);
}

/* Put a request into the ring. Return false if there is no room. */
static bool put_in_ring(struct file *f, struct back_io *io)
{
	struct io_uring_sqe *q;

	if (f->in_ring >= RING_ROOM)
		return false;
	q = io_uring_get_sqe(&f->ring);
	if (!q && io_uring_submit(&f->ring) > 0)
		q = io_uring_get_sqe(&f->ring);
	if (!q)
		return false;
	prepare(f, q, io);
	f->in_ring++;
	return true;
}

void file_ring_put(struct file *f, struct back_io *io)
{
	if (!f->waiting.first && put_in_ring(f, io))
		return;
	io->next = NULL;
	if (f->waiting.first)
		f->waiting.last->next = io;
	else
		f->waiting.first = io;
	f->waiting.last = io;
}

static void put_waiting(struct file *f)
{
	while (f->waiting.first && put_in_ring(f, f->waiting.first))
		f->waiting.first = f->waiting.first->next;
}

static void complete_all(struct file *f)
{
	struct io_uring_cqe *c;

	while (io_uring_peek_cqe(&f->ring, &c) == 0) {
		struct back_io *io = io_uring_cqe_get_data(c);
		int result = c->res;

		io_uring_cqe_seen(&f->ring, c);
		f->in_ring--;
		file_advance(f, io, result);
	}
}

void file_ring_kick(struct file *f)
{
	if (f->kicking) /* `done` submitted more: handled below */
		return;
	f->kicking = true;
	for (int i = 0; i < ROUNDS; i++) {
		if (io_uring_sq_ready(&f->ring) && io_uring_submit(&f->ring) < 0)
			break;
		complete_all(f);
		put_waiting(f);
		if (!io_uring_sq_ready(&f->ring))
			break;
	}
	/* Either the system is short of memory, or the rounds are used up. */
	if (io_uring_sq_ready(&f->ring))
		(void)io_uring_submit(&f->ring);
	if (io_uring_sq_ready(&f->ring) || (f->waiting.first && !f->in_ring))
		(void)loop_set(f->loop, &f->again, loop_now(f->loop) + WEIR_MS);
	f->kicking = false;
}
