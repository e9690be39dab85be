/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: a file or a block device: its name, the kind of the file, start and end.
 * serve/back/file-steps.c carries out requests, by serve/back/file-ring.c and
 * serve/back/file-call.c.
 */
#include "base/hash.h"
#include "serve/back/file.h"
#include "serve/back/name.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEPTH_DISK   32    /* queue depth of a SATA disk */
#define DEPTH_FLASH  64    /* enough to be near a flash device's best */
#define DIRECT_BLOCK 4096u /* bytes: supported for direct I/O everywhere */

static void file_submit(struct back *b, struct back_io *ios)
{
	struct file *f = (struct file *)b;

	while (ios) {
		struct back_io *io = ios;

		ios = io->next;
		file_begin(f, io);
	}
	file_kick(f->hub);
}

static int file_start(struct back *b)
{
	struct file *f = (struct file *)b;

	int r = file_hub_join(f);

	if (r < 0)
		return r;
	file_ring_register(f);
	file_guard_watch(f);
	return 0;
}

static void file_free(struct back *b)
{
	struct file *f = (struct file *)b;

	file_guard_end(f);
	file_ring_unregister(f);
	file_cached_free(f);
	file_hub_leave(f);
	overlap_free(&f->overlap);
	if (f->fd >= 0)
		close(f->fd);
	free(f->name);
	free(f);
}

static void file_say(const struct back *b, char *text, size_t len)
{
	const struct file *f = (const struct file *)b;

	snprintf(text, len, "%s", f->hub && f->hub->ring_up ? "io_uring" : "threads");
}

static int file_grown(struct back *b)
{
	struct file *f = (struct file *)b;
	struct stat st;

	if (f->block)
		return ioctl(f->fd, BLKGETSIZE64, &b->info.size) < 0 ? -errno : 0;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	b->info.size = (uint64_t)st.st_size / b->info.block_min * b->info.block_min;
	file_cached_grown(f);
	file_guard_whole(f);
	return 0;
}

static const struct back_ops file_ops = {
	.name = "file",
	.start = file_start,
	.submit = file_submit,
	.free = file_free,
	.grown = file_grown,
	.say = file_say,
};

/* ---- the name */

struct file_options {
	bool direct, threads, read_only, lock;
};
static const struct field file_fields[] = {
	{"direct", FIELD_FLAG, offsetof(struct file_options, direct), NULL},
	{"threads", FIELD_FLAG, offsetof(struct file_options, threads), NULL},
	{"read_only", FIELD_FLAG, offsetof(struct file_options, read_only), NULL},
	{"lock", FIELD_FLAG, offsetof(struct file_options, lock), NULL}, {NULL, 0, 0, NULL}};

static int parse(const char *rest, struct file_options *o, struct weir_err *err)
{
	const char *query = back_query(rest);
	struct weir_err why;
	int r = 0;

	if (query == rest)
		return weir_err_set(
			err, -EINVAL, "file:%s: needs a path, as in 'file:disk.img'", rest);
	if (*query)
		r = back_options(query + 1, strlen(query + 1), '&', file_fields, o, NULL, &why);
	return r ? weir_err_set(err, r, "file:%s: %s", rest, why.text) : 0;
}

static int file_check(const char *rest, struct weir_err *err)
{
	struct file_options o = {0};

	return parse(rest, &o, err);
}

int back_file_use(const char *name, bool *lock, bool *read_only)
{
	struct file_options o = {.lock = *lock, .read_only = *read_only};
	const char *file = strstr(name, "file:");
	struct weir_err ignored;
	int r = file ? parse(file + strlen("file:"), &o, &ignored) : 0;

	if (r == 0) {
		*lock = o.lock;
		*read_only = o.read_only;
	}
	return r;
}

static int file_size(const char *rest, uint64_t *ret_size)
{
	char *path = strndup(rest, (size_t)(back_query(rest) - rest));
	struct stat st;
	int r = path && stat(path, &st) == 0 && S_ISREG(st.st_mode) ? 0 : -ENODATA;

	free(path);
	if (r == 0)
		*ret_size = (uint64_t)st.st_size;
	return r;
}

/* ---- the kind of the file */

/* Return a number of a device's queue from sysfs, or `otherwise`. A partition has the queue of its
 * disk. */
static long queue_number(dev_t dev, const char *what, long otherwise)
{
	static const char *const ways[] = {"queue", "../queue"};

	for (size_t i = 0; i < 2; i++) {
		char path[128];
		FILE *in;
		char text[32], *end;
		bool got;
		long n;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s", major(dev), minor(dev),
			ways[i], what);
		in = fopen(path, "re");
		if (!in)
			continue;
		got = fgets(text, sizeof(text), in) != NULL;
		fclose(in);
		n = got ? strtol(text, &end, 10) : 0;
		if (got && end != text)
			return n;
	}
	return otherwise;
}

static int probe_block(struct file *f, struct weir_err *err)
{
	struct back_info *i = &f->back.info;
	int sector = 0;

	f->block = true;
	if (ioctl(f->fd, BLKGETSIZE64, &i->size) < 0 || ioctl(f->fd, BLKSSZGET, &sector) < 0)
		return weir_err_set(
			err, -errno, "%s: not a block device: %s", f->name, strerror(errno));
	i->block_min = sector > 0 ? (uint32_t)sector : 512;
	i->can_trim = i->can_fast_zero = true;
	i->can_status = false;
	return 0;
}

/* Return true if the file supports holes; tested after its end, where there are no data. */
static bool can_punch(struct file *f)
{
	off_t at = (off_t)((f->back.info.size + 4095) / 4096 * 4096);

	return fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 4096) == 0 ||
	       errno != EOPNOTSUPP;
}

static void probe_regular(struct file *f, const struct stat *st, bool direct)
{
	struct back_info *i = &f->back.info;
	struct statx x;

	i->block_min = 1;
	if (direct) {
		i->block_min = DIRECT_BLOCK;
#ifdef STATX_DIOALIGN
		if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) == 0 &&
			x.stx_mask & STATX_DIOALIGN && x.stx_dio_offset_align)
			i->block_min = x.stx_dio_offset_align;
#else
		(void)x;
#endif
	}
	i->size = (uint64_t)st->st_size / i->block_min * i->block_min;
	i->can_status = true;
	if (!i->read_only)
		f->no_punch = !can_punch(f);
	i->can_trim = i->can_fast_zero = !f->no_punch;
}

/* A block device is the same by any path to it; a file that was renamed and made anew is another one. */
static uint64_t identify(const struct stat *st)
{
	bool block = S_ISBLK(st->st_mode);
	uint64_t is[3] = {block, block ? st->st_rdev : st->st_dev, block ? 0 : st->st_ino};

	return hash_more(HASH_BEGIN, is, sizeof(is));
}

static int probe(struct file *f, bool direct, struct weir_err *err)
{
	struct back_info *i = &f->back.info;
	struct stat st;
	int r = 0;

	if (fstat(f->fd, &st) < 0)
		return weir_err_set(err, -errno, "%s: %s", f->name, strerror(errno));
	f->back.file = identify(&st);
	i->can_flush = i->can_fua = i->can_zero = i->can_cache = i->multi_conn = true;
	if (S_ISBLK(st.st_mode))
		r = probe_block(f, err);
	else if (S_ISREG(st.st_mode))
		probe_regular(f, &st, direct);
	else
		return weir_err_set(err, -EINVAL, "%s: neither a file nor a block device", f->name);
	if (r)
		return r;
	if (!i->size)
		return weir_err_set(
			err, -EINVAL, "%s: is empty; set a size with 'truncate -s 1G'", f->name);
	i->block_preferred = i->block_min > 4096 ? i->block_min : 4096;
	i->rotational = queue_number(f->block ? st.st_rdev : st.st_dev, "rotational", 0) == 1;
	i->depth = i->rotational ? DEPTH_DISK : DEPTH_FLASH;
	return 0;
}

/* ---- opening */

static int open_path(
	struct file *f, const char *path, bool direct, bool no_links, struct weir_err *err)
{
	bool read_only = f->back.info.read_only;
	int flags = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | (direct ? O_DIRECT : 0) |
		    (no_links ? O_NOFOLLOW : 0);
	struct stat st;
	int e;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return weir_err_set(err, -EINVAL, "%s: neither a file nor a block device", f->name);
	f->fd = open(path, flags);
	if (f->fd >= 0)
		return 0;
	e = errno;
	if (e == EMFILE)
		return weir_err_set(err, -e,
			"%s: too many open files: raise the limit (LimitNOFILE= of the service, or "
			"ulimit -n)",
			f->name);
	if (direct && e == EINVAL)
		return weir_err_set(
			err, -e, "%s: its file system does not support direct I/O", f->name);
	if (!read_only && (e == EROFS || e == EACCES || e == EPERM))
		return weir_err_set(err, -e, "%s: %s (try read_only=yes)", f->name, strerror(e));
	return weir_err_set(err, -e, "%s: %s", f->name, strerror(e));
}

static int file_new(const char *path, const struct file_options *o,
	const struct back_config *config, struct file **ret_file, struct weir_err *err)
{
	struct file *f = calloc(1, sizeof(*f));

	if (f) {
		f->fd = f->wd = f->fixed = -1;
		f->back.ops = &file_ops;
		f->back.info.read_only = o->read_only;
		f->loop = config->loop;
		f->threads_only = o->threads;
		overlap_init(&f->overlap);
		if (asprintf(&f->name, "file:%s", path) < 0)
			f->name = NULL;
	}
	if (!f || !f->name) {
		if (f)
			file_free(&f->back);
		return weir_err_set(err, -ENOMEM, "file:%s: out of memory", path);
	}
	*ret_file = f;
	return 0;
}

static int file_open(const char *rest, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	struct file_options o = {config->direct, config->threads, config->read_only, config->lock};
	struct file *f = NULL;
	char *path;
	int r = parse(rest, &o, err);

	if (r)
		return r;
	path = strndup(rest, (size_t)(back_query(rest) - rest));
	r = path ? file_new(path, &o, config, &f, err)
		 : weir_err_set(err, -ENOMEM, "file:%s: out of memory", rest);
	if (r == 0) {
		f->heir = config->heir;
		f->followed = config->followed;
		r = open_path(f, path, o.direct, config->no_links, err);
		if (r == 0 && o.lock)
			r = file_guard_lock(f, config->lock_by, err);
		if (r == 0)
			r = probe(f, o.direct, err);
		if (r == 0)
			file_cached_start(f, o.direct);
		if (r)
			file_free(&f->back);
	}
	free(path);
	if (r)
		return r;
	*ret_back = &f->back;
	return 0;
}

const struct back_kind back_file_kind = {
	.names = (const char *const[]){"file", NULL},
	.open = file_open,
	.check = file_check,
	.size = file_size,
};
