/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-cached: reads and writes of cached pages, done at once on the loop's thread.
 *
 * METHOD  A request is attempted with RWF_NOWAIT before it goes to io_uring or to a thread: a read
 *         of cached pages costs one system call and no second wake-up.
 *
 *         Not every file system supports writes with RWF_NOWAIT (ext4 does not). There a plain
 *         write is done at once if it is not expected to sleep:
 *           - partially written pages are in the cache (mincore on a mapping that is never
 *             accessed),
 *             so that nothing has to be read;
 *           - the machine has fewer dirty pages than the background threshold of writeback, so that
 *             the writer is not throttled (/proc/vmstat, read every 100 ms);
 *           - no write was slow recently: because of a journal commit, the limits of a control
 *             group, a failing disk. So the unforeseen stops the loop for a twentieth of the time
 *             at most.
 * LIMITS  Never for direct I/O, and never with FUA, which waits for the device.
 */
#include "serve/back/file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define MISS  63              /* most reads to skip after many misses in a row */
#define LOOK  (100 * WEIR_MS) /* how long a count of dirty pages is valid */
#define SLOW  (5 * WEIR_MS)   /* a write that took this long may have slept: … */
#define PAUSE 20              /* … skip plain writes for this many times as long */
#define PAGE  4096u

static void map_all(struct file *f)
{
	void *map;

	if (!f->cached.writes)
		return;
	f->cached.mapped = f->back.info.size;
	map = mmap(NULL, f->cached.mapped, PROT_NONE, MAP_SHARED | MAP_NORESERVE, f->fd, 0);
	f->cached.map = map == MAP_FAILED ? NULL : map;
	f->cached.plain = f->cached.map;
}

void file_cached_start(struct file *f, bool direct)
{
	f->cached.reads = !direct;
	f->cached.writes = !direct && !f->back.info.read_only;
	map_all(f);
}

void file_cached_grown(struct file *f)
{
	file_cached_free(f);
	map_all(f);
}

void file_cached_free(struct file *f)
{
	if (f->cached.map)
		munmap(f->cached.map, f->cached.mapped);
	f->cached.map = NULL;
}

/* Count the bytes done; the rest takes the normal path. */
static void add_done(struct back_io *io, ssize_t n)
{
	if (n > 0)
		file_op(io)->done += (uint64_t)n;
}

static bool is_unsupported(ssize_t n)
{
	return n < 0 && errno != EAGAIN && errno != EINTR;
}

static void try_read(struct file *f, struct back_io *io)
{
	struct file_cached *c = &f->cached;
	struct iovec iov = {io->data, io->length};
	ssize_t n;

	if (c->skip) {
		c->skip--;
		return;
	}
	n = preadv2(f->fd, &iov, 1, (off_t)io->offset, RWF_NOWAIT);
	c->reads = !is_unsupported(n);
	c->missed = n > 0 ? 0 : c->missed < MISS ? 2 * c->missed + 1 : MISS;
	c->skip = c->missed;
	add_done(io, n);
}

/* ---- writes */

static bool resident(const struct file *f, uint64_t at)
{
	unsigned char page;

	return at % PAGE == 0 ||
	       (mincore(f->cached.map + at / PAGE * PAGE, PAGE, &page) == 0 && page & 1);
}

/* Return true if a page has to be read first, because only a part of it is written. */
static bool needs_reading(const struct file *f, const struct back_io *io)
{
	return !resident(f, io->offset) || !resident(f, io->offset + io->length);
}

static bool parse_field(const char *text, const char *name, uint64_t *ret)
{
	const char *at = strstr(text, name);

	if (at)
		*ret = strtoull(at + strlen(name), NULL, 10);
	return at != NULL;
}

/* Return true if dirty pages are below the background threshold, so that no write waits for
 * them. */
static bool has_few_dirty_pages(struct file_hub *c)
{
	uint64_t dirty, background;
	char text[8192];
	ssize_t n;

	if (loop_now(c->loop) - c->looked < LOOK)
		return c->clean;
	n = c->vmstat < 0 ? -1 : pread(c->vmstat, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	c->clean = parse_field(text, "\nnr_dirty ", &dirty) &&
		   parse_field(text, "\nnr_dirty_background_threshold ", &background) &&
		   dirty < background;
	c->looked = loop_now(c->loop);
	return c->clean;
}

static ssize_t write_plain(struct file *f, const struct back_io *io, const struct iovec *iov)
{
	struct file_cached *c = &f->cached;
	weir_time began, took;
	ssize_t n;

	if (!c->plain || loop_now(f->loop) < c->again || !has_few_dirty_pages(f->hub) ||
		needs_reading(f, io))
		return 0;
	began = loop_clock();
	n = pwritev2(f->fd, iov, 1, (off_t)io->offset, 0);
	took = loop_refresh(f->loop) - began;
	if (took > SLOW)
		c->again = loop_now(f->loop) + PAUSE * took;
	return n;
}

static void try_write(struct file *f, struct back_io *io)
{
	struct file_cached *c = &f->cached;
	struct iovec iov = {io->data, io->length};
	ssize_t n = -1;

	if (!c->no_nowait) {
		n = pwritev2(f->fd, &iov, 1, (off_t)io->offset, RWF_NOWAIT);
		c->no_nowait = is_unsupported(n);
	}
	if (c->no_nowait)
		n = write_plain(f, io, &iov);
	add_done(io, n);
}

bool file_cached(struct file *f, struct back_io *io)
{
	if (io->op == BACK_READ && f->cached.reads)
		try_read(f, io);
	else if (io->op == BACK_WRITE && f->cached.writes && !(io->flags & BACK_FUA))
		try_write(f, io);
	else
		return false;
	return file_op(io)->done == io->length;
}
