/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: a disk in memory, without persistence.
 *
 * METHOD  One private mapping of the whole size; the kernel allocates a page at the first write to
 *         it and frees it at a TRIM. Reads lend the mapping itself: an unwritten page reads as the
 *         kernel's zero page and takes no memory. A bitmap with a bit per page records which pages
 *         were written: for STATUS, to count the pages in use, and to skip unwritten ones in a
 *         TRIM.
 * COST    READ: a pointer. WRITE: a memcpy and a check of one or two words of the bitmap.
 * LIMITS  A page that cannot be allocated would kill the process: the kernel cannot refuse a page
 *         otherwise. So new pages are refused here first, with ENOSPC, when as many are in use as
 *         the name allows (most=), or when the machine is about to run out of memory (spare.h).
 *         Reads, and writes to allocated pages, still work.
 * DIFFERS from a memfd, whose holes are allocated when they are read through a mapping, and whose
 *         mapping raises SIGBUS when there is no memory.
 *
 * Large TRIMs and ZEROes are done in pieces, one per round of the loop, so that they do not delay
 * other requests: freeing 1 GiB takes about 100 ms.
 */
#include <weir/units.h>
#include "base/container.h"
#include "serve/back/name.h"
#include "serve/back/back.h"
#include "serve/loop/spare.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE        4096u       /* bytes; on machines with larger pages only the count is off */
#define PIECE       (4u << 20)  /* bytes zeroed per round: under 1 ms */
#define LOOK_EVERY  (16u << 20) /* bytes of new pages between two checks of the machine's memory */
#define MEMORY_MOST (UINT64_C(1) << 46) /* bytes: half of a 47-bit address space */

struct memory {
	struct back back;
	uint8_t *data;
	uint64_t *written;         /* a bit per page */
	uint64_t n_pages, n_words; /* of the whole; words of `written` */
	uint64_t taken, most;      /* pages */
	uint64_t unlooked;         /* bytes allocated since the last check of the machine */
	struct loop *loop;
	struct loop_task task; /* posted while requests are deferred */
	bool started;
	struct back_io *first, *last; /* large TRIMs and ZEROes; scratch[0]: where to continue */
};

/* ---- the bitmap */

/* Return the first page from `at` on, before `end`, whose bit is `set`; else `end`. */
static uint64_t page_find(const struct memory *m, uint64_t at, uint64_t end, bool set)
{
	while (at < end) {
		uint64_t word = m->written[at / 64];

		word = (set ? word : ~word) >> at % 64;
		if (word) {
			at += (uint64_t)__builtin_ctzll(word);
			return at < end ? at : end;
		}
		at = (at / 64 + 1) * 64;
	}
	return end;
}

static void page_mark(struct memory *m, uint64_t from, uint64_t to, bool set)
{
	while (from < to) {
		uint64_t n = 64 - from % 64 < to - from ? 64 - from % 64 : to - from;
		uint64_t bits = (n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << from % 64;

		if (set)
			m->written[from / 64] |= bits;
		else
			m->written[from / 64] &= ~bits;
		from += n;
	}
}

/* ---- pages */

/* Return true if there is memory for `bytes` more. Checks the machine now and then, and always when
 * short. */
static bool machine_has(struct memory *m, uint64_t bytes)
{
	m->unlooked += bytes;
	if (m->unlooked < LOOK_EVERY)
		return true;
	if (spare_memory() < SPARE_LEAST + bytes) {
		m->unlooked = LOOK_EVERY; /* check again next time */
		return false;
	}
	m->unlooked = 0;
	return true;
}

/* Mark the pages of a range as written. Return 0, or -ENOSPC with nothing changed. */
static int mark_written(struct memory *m, uint64_t offset, uint64_t length)
{
	uint64_t from = offset / PAGE, end = (offset + length + PAGE - 1) / PAGE, new = 0;

	if (page_find(m, from, end, false) == end)
		return 0;
	for (uint64_t at = from; (at = page_find(m, at, end, false)) < end;) {
		uint64_t stop = page_find(m, at, end, true);

		new += stop - at;
		at = stop;
	}
	if (new > m->most - m->taken || !machine_has(m, new *PAGE))
		return -ENOSPC;
	m->taken += new;
	page_mark(m, from, end, true);
	return 0;
}

/* Free whole pages; they read as zeroes. */
static void free_pages(struct memory *m, uint64_t from, uint64_t end)
{
	for (uint64_t at = from; (at = page_find(m, at, end, true)) < end;) {
		uint64_t stop = page_find(m, at, end, false);

		if (madvise(m->data + at * PAGE, (stop - at) * PAGE, MADV_DONTNEED) == 0) {
			page_mark(m, at, stop, false);
			m->taken -= stop - at;
		} else {
			memset(m->data + at * PAGE, 0, (stop - at) * PAGE);
		}
		at = stop;
	}
}

/* Zero a range within one page, if it was ever written. */
static void zero_in_page(struct memory *m, uint64_t offset, uint64_t length)
{
	if (length && page_find(m, offset / PAGE, offset / PAGE + 1, true) == offset / PAGE)
		memset(m->data + offset, 0, length);
}

/* Make a range read as zeroes, freeing whole pages. */
static void punch(struct memory *m, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length, from = (offset + PAGE - 1) / PAGE * PAGE,
		 to = end / PAGE * PAGE;

	if (from > to) { /* inside one page */
		zero_in_page(m, offset, length);
		return;
	}
	zero_in_page(m, offset, from - offset);
	free_pages(m, from / PAGE, to / PAGE);
	zero_in_page(m, to, end - to);
}

/* ---- requests */

/* Zero the next piece, which begins at scratch[0] and ends with a page. Return true if it was the
 * last. */
static bool zero_piece(struct memory *m, struct back_io *io)
{
	bool fill = io->op == BACK_ZERO && io->flags & BACK_NO_HOLE;
	uint64_t at = io->scratch[0], end = io->offset + io->length, stop;

	io->error = 0;
	if (!fill) { /* unwritten pages can be skipped, however many */
		uint64_t page = page_find(m, at / PAGE, (end + PAGE - 1) / PAGE, true);

		if (page * PAGE > at)
			at = page * PAGE;
		if (at >= end)
			return true;
	}
	stop = end - at > PIECE ? (at + PIECE) / PAGE * PAGE : end;
	if (fill) {
		io->error = mark_written(m, at, stop - at);
		if (io->error)
			return true;
		memset(m->data + at, 0, stop - at);
	} else {
		punch(m, at, stop - at);
	}
	io->scratch[0] = stop;
	return stop == end;
}

static void status(const struct memory *m, struct back_io *io)
{
	uint64_t at = io->offset, end = io->offset + io->length;
	uint32_t n = 0;

	while (at < end && n < io->n_extents) {
		uint64_t page = at / PAGE;
		bool data = page_find(m, page, page + 1, true) == page;
		uint64_t stop = page_find(m, page, (end + PAGE - 1) / PAGE, !data) * PAGE;

		if (stop > m->back.info.size)
			stop = m->back.info.size;
		io->extents[n++] = (struct back_extent){stop - at, data ? 0 : 3};
		at = stop;
	}
	io->n_extents = n;
	io->error = n ? 0 : -EINVAL; /* -EINVAL: an empty range */
}

/* Carry out a request. Return true if it is done, false if it has to be deferred. */
static bool carry_out(struct memory *m, struct back_io *io)
{
	switch (io->op) {
	case BACK_READ:
		io->data = m->data + io->offset;
		break;
	case BACK_WRITE:
		io->error = mark_written(m, io->offset, io->length);
		if (io->error)
			return true;
		memcpy(m->data + io->offset, io->data, io->length);
		break;
	case BACK_TRIM:
	case BACK_ZERO:
		io->scratch[0] = io->offset;
		while (!zero_piece(m, io)) {
			if (m->started)
				return false;
		}
		return true;
	case BACK_STATUS:
		status(m, io);
		return true;
	case BACK_FLUSH:
	case BACK_CACHE:
		break;
	default:
		io->error = -EINVAL;
		return true;
	}
	io->error = 0;
	return true;
}

/* Append to the deferred requests. */
static void defer(struct memory *m, struct back_io *io)
{
	io->next = NULL;
	if (m->first) {
		m->last->next = io;
	} else {
		m->first = io;
		loop_post(m->loop, &m->task);
	}
	m->last = io;
}

static void memory_submit(struct back *b, struct back_io *ios)
{
	struct memory *m = (struct memory *)b;

	while (ios) {
		struct back_io *io = ios;

		ios = io->next;
		if (carry_out(m, io))
			b->done(b->done_arg, io);
		else
			defer(m, io);
	}
}

/* Do one piece per round. */
static void memory_round(struct loop_task *t)
{
	struct memory *m = container_of(t, struct memory, task);
	struct back_io *io = m->first;
	bool over = zero_piece(m, io);

	if (over)
		m->first = io->next;
	if (m->first)
		loop_post(m->loop, &m->task);
	if (over)
		m->back.done(m->back.done_arg, io);
}

static int memory_start(struct back *b)
{
	struct memory *m = (struct memory *)b;

	m->task.run = memory_round;
	m->started = m->loop != NULL;
	return 0;
}

static void memory_free(struct back *b)
{
	struct memory *m = (struct memory *)b;

	if (m->written)
		munmap(m->written, m->n_words * sizeof(*m->written));
	if (m->data)
		munmap(m->data, m->n_pages * PAGE);
	free(m);
}

static void memory_say(const struct back *b, char *text, size_t len)
{
	const struct memory *m = (const struct memory *)b;
	char taken[32];

	weir_units_show_size(m->taken * PAGE, taken, sizeof(taken));
	snprintf(text, len, "%s taken", taken);
}

static const struct back_ops memory_ops = {
	.name = "memory",
	.start = memory_start,
	.submit = memory_submit,
	.free = memory_free,
	.say = memory_say,
};

/* ---- the name */

struct memory_options {
	uint64_t most; /* bytes; 0: all */
};
static const struct field memory_fields[] = {
	{"most", FIELD_SIZE, offsetof(struct memory_options, most), NULL}, {NULL, 0, 0, NULL}};

static int parse(const char *rest, uint64_t *ret_size, struct memory_options *ret_options,
	struct weir_err *err)
{
	const char *query = back_query(rest);
	struct memory_options o = {0};
	uint64_t size;
	char text[64];
	struct weir_err why;
	int r;

	if (query == rest)
		return weir_err_set(
			err, -EINVAL, "memory:%s: needs a size, as in 'memory:1G'", rest);
	if ((size_t)(query - rest) >= sizeof(text))
		return weir_err_set(err, -EINVAL, "memory:%s: not a size", rest);
	memcpy(text, rest, (size_t)(query - rest));
	text[query - rest] = '\0';
	r = weir_units_size(text, &size, &why);
	if (r)
		return weir_err_set(err, r, "memory:%s: %s", rest, why.text);
	if (!size || size > MEMORY_MOST)
		return weir_err_set(err, -EINVAL,
			"memory:%s: the size must be between 1 byte and 64 TiB", rest);
	if (*query) {
		r = back_options(query + 1, strlen(query + 1), '&', memory_fields, &o, NULL, &why);
		if (r)
			return weir_err_set(err, r, "memory:%s: %s", rest, why.text);
	}
	*ret_size = size;
	*ret_options = o;
	return 0;
}

static int memory_check(const char *rest, struct weir_err *err)
{
	struct memory_options o;
	uint64_t size;

	return parse(rest, &size, &o, err);
}

static int memory_size(const char *rest, uint64_t *ret_size)
{
	struct memory_options o;
	struct weir_err ignored;

	return parse(rest, ret_size, &o, &ignored) < 0 ? -ENODATA : 0;
}

static void *map_memory(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* No huge pages: a write of 4 KiB must not take 2 MiB, or a sparse disk would fill the
	 * machine. */
	(void)madvise(p, bytes, MADV_NOHUGEPAGE);
	(void)madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

static int memory_open(const char *rest, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	struct memory_options o;
	struct memory *m;
	uint64_t size;
	int r = parse(rest, &size, &o, err);

	if (r)
		return r;
	m = calloc(1, sizeof(*m));
	if (!m)
		return weir_err_set(err, -ENOMEM, "memory:%s: out of memory", rest);
	m->back.ops = &memory_ops;
	m->back.info = (struct back_info){
		.size = size,
		.read_only = config->read_only,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.can_zero = true,
		.can_fast_zero = true,
		.can_cache = true,
		.can_status = true,
		.multi_conn = true,
		.lends = true,
		.transient = true,
		.block_min = 1,
		.block_preferred = PAGE,
		.depth = 128, /* no request waits inside: enough for a round's batch */
	};
	m->loop = config->loop;
	m->n_pages = (size + PAGE - 1) / PAGE;
	m->n_words = (m->n_pages + 63) / 64;
	m->most = o.most ? o.most / PAGE : m->n_pages;
	m->data = map_memory(m->n_pages * PAGE);
	m->written = map_memory(m->n_words * sizeof(*m->written));
	if (!m->data || !m->written) {
		memory_free(&m->back);
		return weir_err_set(
			err, -ENOMEM, "memory:%s: the system refuses to map so much memory", rest);
	}
	*ret_back = &m->back;
	return 0;
}

const struct back_kind back_memory_kind = {
	.names = (const char *const[]){"memory", NULL},
	.open = memory_open,
	.check = memory_check,
	.size = memory_size,
};
