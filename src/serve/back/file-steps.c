/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-steps: a request as a sequence of system calls, each after the result of the last.
 *
 *   READ    read, repeated until whole; end of file inside the size: EIO (the file was truncated)
 *   WRITE   write, repeated until whole; FUA: with RWF_DSYNC
 *   FLUSH   fdatasync
 *   TRIM    punch a hole (a device: BLKDISCARD); unsupported: done, since it is a hint
 *   ZERO    punch a hole, or zero the range (NO_HOLE); unsupported: write zeroes (a device:
 *           BLKZEROOUT), or -EOPNOTSUPP if it must be fast. FUA: then fdatasync
 *   CACHE   ask the system to read ahead; the result is ignored
 *   STATUS  SEEK_DATA, SEEK_HOLE
 *
 * ORDER. WRITEs, TRIMs and ZEROes that overlap take effect in the order in which they were submitted,
 * although a cached write is done at once and others by several threads: a request waits for older
 * ones that it overlaps (overlap.h). READs do not wait.
 *
 * A FAILED FLUSH. The kernel reports pages that it could not write once, at the next fsync, and
 * then considers them clean: the next fsync succeeds although the data are lost ("fsyncgate",
 * PostgreSQL 2018). So after a failed FLUSH every later one fails with EIO too, until the back end
 * is reopened, and so does every request with FUA, which promises the same: none may claim that all
 * data are durable. No sync is retried. From then on a client's writes may also read back as the
 * old data. A FUA write syncs too, and so consumes the kernel's report instead of the next FLUSH: a
 * failed one is repeated without the sync, and if that succeeds, the sync had failed.
 */
#include "serve/back/file.h"
#include <errno.h>

int file_fua(const struct back_io *io, enum file_step step)
{
	return step == FILE_WRITE && io->flags & BACK_FUA ? RWF_DSYNC : 0;
}

static _Alignas(4096) uint8_t zeroes[CHUNK_MAX]; /* never written */

void *file_data(const struct file *f, struct back_io *io)
{
	struct file_op *op = file_op(io);

	return op->step == FILE_WRITE_ZERO ? zeroes : io->data + op->done;
}

uint32_t file_bytes(struct back_io *io)
{
	uint64_t left = io->length - file_op(io)->done;

	return left < CHUNK_MAX ? (uint32_t)left : CHUNK_MAX;
}

/* Map an error to one that has a meaning for clients, or EIO. */
static int error_of(int result)
{
	switch (result) {
	case -EDQUOT:
	case -EFBIG:
		return -ENOSPC;
	case -EIO:
	case -ENOSPC:
	case -EROFS:
	case -EPERM:
	case -EINVAL:
	case -ENOMEM:
	case -EOPNOTSUPP:
		return result;
	default:
		return -EIO;
	}
}

static void start(struct file *f, struct back_io *io);

/* Start the requests that waited only for others which are done. Not recursive: a released request
 * that is done at once may release the next one. */
static void start_released(struct file *f)
{
	if (f->releasing)
		return;
	f->releasing = true;
	while (f->released) {
		struct overlap_range *r = f->released;

		f->released = r->next;
		start(f, file_io(container_of(r, struct file_op, range)));
	}
	f->releasing = false;
}

static void leave(struct file *f, struct overlap_range *range)
{
	struct overlap_range *r = overlap_leave(&f->overlap, range);

	while (r) {
		struct overlap_range *next = r->next;

		r->next = f->released;
		f->released = r;
		r = next;
	}
}

static void finish(struct file *f, struct back_io *io, int error)
{
	io->error = error ? error_of(error) : 0;
	if (error && f->flush_failed && (io->op == BACK_FLUSH || io->flags & BACK_FUA))
		back_flush_failed(&f->back, f->name, error, loop_now(f->loop));
	if (file_op(io)->entered)
		leave(f, &file_op(io)->range);
	f->back.done(f->back.done_arg, io);
	start_released(f);
}

static void set_flush_failed(struct file *f)
{
	f->flush_failed = true;
	f->back.trouble = "a FLUSH failed: data may be lost; every FLUSH fails until a restart";
}

static void start_step(struct file *f, struct back_io *io, enum file_step s)
{
	file_op(io)->step = s;
	if (f->hub->ring_up && s < FILE_DISCARD)
		file_ring_put(f, io);
	else
		file_call_put(f, io);
}

static void begin_zero(struct file *f, struct back_io *io)
{
	bool hole = !(io->flags & BACK_NO_HOLE), fast = io->flags & BACK_FAST_ZERO;

	if (hole && !f->no_punch)
		start_step(f, io, FILE_PUNCH);
	else if (!f->block && !f->no_zero_range)
		start_step(f, io, FILE_ZERO_RANGE);
	else if (fast)
		finish(f, io, -EOPNOTSUPP);
	else
		start_step(f, io, f->block ? FILE_ZERO_OUT : FILE_WRITE_ZERO);
}

static void begin_trim(struct file *f, struct back_io *io)
{
	if (f->block)
		start_step(f, io, FILE_DISCARD);
	else if (!f->no_punch)
		start_step(f, io, FILE_PUNCH);
	else
		finish(f, io, 0);
}

void file_begin(struct file *f, struct back_io *io)
{
	struct file_op *op = file_op(io);

	op->file = f;
	op->done = 0;
	op->entered = false;
	op->sync = io->flags & BACK_FUA && (io->op == BACK_TRIM || io->op == BACK_ZERO);
	if (!io->length && io->op != BACK_FLUSH) {
		finish(f, io, io->op == BACK_STATUS ? -EINVAL : 0);
		return;
	}
	if (f->flush_failed && (io->op == BACK_FLUSH || io->flags & BACK_FUA)) {
		finish(f, io, -EIO);
		return;
	}
	op->entered = io->op == BACK_WRITE || io->op == BACK_TRIM || io->op == BACK_ZERO;
	if (!op->entered || overlap_enter(&f->overlap, &op->range, io->offset, io->length))
		start(f, io);
}

static void start(struct file *f, struct back_io *io)
{
	if (file_cached(f, io)) {
		finish(f, io, 0);
		return;
	}
	switch (io->op) {
	case BACK_READ:
		start_step(f, io, FILE_READ);
		break;
	case BACK_WRITE:
		start_step(f, io, FILE_WRITE);
		break;
	case BACK_FLUSH:
		start_step(f, io, FILE_SYNC);
		break;
	case BACK_TRIM:
		begin_trim(f, io);
		break;
	case BACK_ZERO:
		begin_zero(f, io);
		break;
	case BACK_CACHE:
		start_step(f, io, FILE_ADVISE);
		break;
	case BACK_STATUS:
		start_step(f, io, FILE_STATUS);
		break;
	default:
		finish(f, io, -EINVAL);
	}
}

/* ---- the next step after a result */

static void handle_bytes(struct file *f, struct back_io *io, int bytes)
{
	struct file_op *op = file_op(io);

	if (bytes == 0) { /* a read at the end of the file; never a write */
		file_guard_size(f);
		finish(f, io, -EIO);
		return;
	}
	op->done += (uint32_t)bytes;
	if (op->done < io->length)
		start_step(f, io, op->step);
	else if (op->sync)
		start_step(f, io, FILE_SYNC);
	else /* a failed sync in flight at the same time may have consumed the error of its pages */
		finish(f, io, f->flush_failed && io->flags & BACK_FUA ? -EIO : 0);
}

static void write_failed(struct file *f, struct back_io *io, int error)
{
	if (io->flags & BACK_FUA)
		start_step(f, io, FILE_REWRITE);
	else
		finish(f, io, error);
}

static void handle_rewrite(struct file *f, struct back_io *io, int result)
{
	if (result >= 0) {
		set_flush_failed(f);
		result = -EIO;
	}
	finish(f, io, result);
}

static void handle_sync(struct file *f, struct back_io *io, int result)
{
	if (result < 0)
		set_flush_failed(f);
	/* If two syncs are in flight and one fails, either of them may have got the error of the
	 * lost pages. */
	finish(f, io, f->flush_failed ? result < 0 ? result : -EIO : 0);
}

static bool is_unsupported(int result)
{
	return result == -EOPNOTSUPP || result == -ENOSYS || result == -ENOTTY;
}

/* Handle the result of a hole, a zeroed range or a discard: complete, or unsupported. */
static void handle_range(struct file *f, struct back_io *io, int result)
{
	enum file_step s = file_op(io)->step;

	if (is_unsupported(result)) {
		f->no_punch |= s == FILE_PUNCH;
		f->no_zero_range |= s == FILE_ZERO_RANGE;
		if (io->op == BACK_ZERO && s != FILE_ZERO_OUT)
			begin_zero(f, io);
		else
			finish(f, io, io->op == BACK_TRIM ? 0 : result);
	} else if (result < 0) {
		finish(f, io, result);
	} else if (file_op(io)->sync) {
		start_step(f, io, FILE_SYNC);
	} else {
		finish(f, io, 0);
	}
}

void file_advance(struct file *f, struct back_io *io, int result)
{
	enum file_step s = file_op(io)->step;

	if (result == -EINTR || result == -EAGAIN) {
		start_step(f, io, s);
		return;
	}
	switch (s) {
	case FILE_READ:
	case FILE_WRITE:
	case FILE_WRITE_ZERO:
		if (result >= 0)
			handle_bytes(f, io, result);
		else if (s == FILE_WRITE)
			write_failed(f, io, result);
		else
			finish(f, io, result);
		break;
	case FILE_REWRITE:
		handle_rewrite(f, io, result);
		break;
	case FILE_SYNC:
		handle_sync(f, io, result);
		break;
	case FILE_ADVISE:
		finish(f, io, 0);
		break;
	case FILE_STATUS:
		finish(f, io, result);
		break;
	default:
		handle_range(f, io, result);
	}
}
