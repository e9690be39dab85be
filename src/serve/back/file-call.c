/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-call: the steps as ordinary system calls, by threads: all of them where io_uring is
 * forbidden, as in many containers; else those that io_uring lacks.
 */
#include "base/container.h"
#include "serve/back/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* lseek moves the fd's position, which no other call uses: threads may share the fd. Without
 * SEEK_DATA everything is data. */
static int status(struct file *f, struct back_io *io)
{
	uint64_t at = io->offset, end = at + io->length;
	uint32_t n = 0;

	while (at < end && n < io->n_extents) {
		off_t next = lseek(f->fd, (off_t)at, SEEK_DATA);
		bool hole = next < 0 ? errno == ENXIO : (uint64_t)next > at;

		if (next >= 0 && !hole)
			next = lseek(f->fd, (off_t)at, SEEK_HOLE);
		if (next < 0 || (uint64_t)next > f->back.info.size || (uint64_t)next <= at)
			next = (off_t)f->back.info.size;
		io->extents[n++] = (struct back_extent){(uint64_t)next - at, hole ? 3 : 0};
		at = (uint64_t)next;
	}
	io->n_extents = n;
	return 0;
}

static ssize_t do_call(struct file *f, struct back_io *io)
{
	enum file_step s = file_op(io)->step;
	struct iovec iov = {.iov_len = file_bytes(io)};
	uint64_t range[2] = {io->offset, io->length};

	switch (s) {
	case FILE_READ:
		iov.iov_base = file_data(f, io);
		return preadv2(f->fd, &iov, 1, (off_t)file_offset(io), 0);
	case FILE_WRITE:
	case FILE_REWRITE:
	case FILE_WRITE_ZERO:
		iov.iov_base = file_data(f, io);
		return pwritev2(f->fd, &iov, 1, (off_t)file_offset(io), file_fua(io, s));
	case FILE_SYNC:
		return fdatasync(f->fd);
	case FILE_PUNCH:
		return fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)io->offset, (off_t)io->length);
	case FILE_ZERO_RANGE:
		return fallocate(f->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
			(off_t)io->offset, (off_t)io->length);
	case FILE_ADVISE:
		return posix_fadvise(
			f->fd, (off_t)io->offset, (off_t)io->length, POSIX_FADV_WILLNEED);
	case FILE_DISCARD:
		return ioctl(f->fd, BLKDISCARD, range);
	case FILE_ZERO_OUT:
		return ioctl(f->fd, BLKZEROOUT, range);
	default:
		return status(f, io);
	}
}

static void do_step(struct threads_job *j)
{
	struct file_op *op = container_of(j, struct file_op, job);
	ssize_t n = do_call(op->file, file_io(op));

	op->result = n < 0 ? -errno : (int)n;
}

static void on_done(struct loop_task *t)
{
	struct file_op *op = container_of(t, struct file_op, job.done);
	struct file_hub *h = op->file->hub;

	file_advance(op->file, file_io(op), op->result);
	file_kick(h);
}

void file_call_put(struct file *f, struct back_io *io)
{
	struct threads_job *j = &file_op(io)->job;

	*j = (struct threads_job){.done.run = on_done, .work = do_step};
	*f->hub->jobs_end = j;
	f->hub->jobs_end = &j->next;
}

void file_call_kick(struct file_hub *h)
{
	struct threads_job *jobs = h->jobs;

	if (!jobs)
		return;
	h->jobs = NULL;
	h->jobs_end = &h->jobs;
	threads_add(h->threads, jobs);
}
