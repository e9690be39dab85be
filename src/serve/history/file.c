/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: the memory of all series, their copy in the file, and where a name's series is.
 *
 * The file is read at the start and written point by point, not mapped: a file that is cut off, or on a disk that fails, must not
 * end the gateway with SIGBUS.
 */
#include "base/no-memory.h"
#include "serve/history/impl.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TABLE 4096 /* a power of two, several times HISTORY_SERIES */

static const struct head head_of = {
	.magic = "weirhis1", .size = sizeof(struct series), .series = HISTORY_SERIES};

/* ---- names */

static uint32_t hash(enum history_kind kind, const char *name)
{
	uint32_t h = 2166136261u ^ kind; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

/* Return the place of a name in the table, or of the first empty one. */
static uint32_t *place(const struct history *h, enum history_kind kind, const char *name)
{
	uint32_t at = hash(kind, name) % TABLE;

	for (; h->table[at]; at = (at + 1) % TABLE) {
		const struct series *s = &h->series[h->table[at] - 1];

		if (s->kind == kind && strcmp(s->name, name) == 0)
			break;
	}
	return &h->table[at];
}

/* Make the table anew: an entry cannot be removed from it. */
static void index_all(struct history *h)
{
	memset(h->table, 0, TABLE * sizeof(*h->table));
	for (uint32_t i = 0; i < HISTORY_SERIES; i++)
		if (h->series[i].used)
			*place(h, h->series[i].kind, h->series[i].name) = i + 1;
}

size_t history_find(const struct history *h, enum history_kind kind, const char *name)
{
	uint32_t i = *place(h, kind, name);

	return i ? i - 1 : HISTORY_SERIES;
}

/* Return a series that is free, or else the one that is idle for longest. */
static size_t choose(const struct history *h)
{
	size_t oldest = HISTORY_SERIES;

	for (size_t i = 0; i < HISTORY_SERIES; i++) {
		const struct series *s = &h->series[i];

		if (!s->used)
			return i;
		if (!h->live[i].seen &&
			(oldest == HISTORY_SERIES || s->last < h->series[oldest].last))
			oldest = i;
	}
	return oldest;
}

size_t history_find_or_make(struct history *h, enum history_kind kind, const char *name)
{
	size_t i = history_find(h, kind, name);
	struct series *s;
	bool replaced;

	if (i < HISTORY_SERIES || strlen(name) >= sizeof(s->name))
		return i;
	i = choose(h);
	h->crowded |= i == HISTORY_SERIES || h->series[i].used;
	if (i == HISTORY_SERIES)
		return HISTORY_SERIES;
	s = &h->series[i];
	replaced = s->used;
	for (size_t t = 0; t < TIERS; t++)
		free(h->live[i].base[t].hist);
	memset(&h->live[i], 0, sizeof(h->live[i]));
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	strcpy(s->name, name);
	s->used = 1;
	if (replaced)
		index_all(h);
	else
		*place(h, kind, name) = (uint32_t)i + 1;
	return i;
}

/* ---- the file */

#define SIZE ((off_t)(sizeof(struct head) + HISTORY_SERIES * sizeof(struct series)))

static off_t place_of(size_t i)
{
	return (off_t)(sizeof(struct head) + i * sizeof(struct series));
}

static bool put(struct history *h, const void *data, size_t n, off_t at)
{
	ssize_t r = pwrite(h->fd, data, n, at);

	if (r != (ssize_t)n)
		h->wrong = r < 0 ? -errno : -ENOSPC;
	return r == (ssize_t)n;
}

/* Write a series whole. While its points are those of another, the file has it as unused. */
static bool save_series(struct history *h, size_t i)
{
	const struct series *s = &h->series[i];
	const uint32_t unused[2] = {0};

	return put(h, unused, sizeof(unused), place_of(i)) &&
	       put(h, s->points, sizeof(s->points),
		       place_of(i) + (off_t)offsetof(struct series, points)) &&
	       put(h, s, offsetof(struct series, points), place_of(i));
}

void history_save(struct history *h, size_t i, const struct point *p)
{
	struct live *l = &h->live[i];

	if (h->fd < 0)
		return;
	if (l->saved)
		l->saved = put(h, p, sizeof(*p),
			place_of(i) + (off_t)((const char *)p - (const char *)&h->series[i]));
	else
		l->saved = save_series(h, i);
}

/* Set `last` to the end of the newest point. A clock that was wrong then keeps no series for ever. */
static void find_last(struct series *s, double day)
{
	s->last = 0;
	for (size_t t = 0; t < TIERS; t++)
		for (unsigned k = 0; k < history_tiers[t].n; k++) {
			double end = (double)s->points[history_tiers[t].at + k].number *
				     history_tiers[t].step;

			if (end > s->last && end <= day + history_tiers[t].step)
				s->last = end;
		}
}

static bool read_series(struct history *h, size_t i, double day)
{
	struct series *s = &h->series[i], head;
	size_t n = offsetof(struct series, points);

	if (pread(h->fd, &head, n, place_of(i)) != (ssize_t)n)
		return false;
	if (!head.used)
		return true;
	if (head.kind > HISTORY_RESOURCE || !memchr(head.name, 0, sizeof(head.name)) ||
		pread(h->fd, s, sizeof(*s), place_of(i)) != (ssize_t)sizeof(*s))
		return false;
	find_last(s, day);
	h->live[i].saved = true;
	return true;
}

/* Return true if the file has this format, and nothing in it that a reader would stumble over. */
static bool read_all(struct history *h)
{
	struct head head;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (pread(h->fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		memcmp(&head, &head_of, sizeof(head)) != 0)
		return false;
	for (size_t i = 0; i < HISTORY_SERIES; i++)
		if (!read_series(h, i, (double)now.tv_sec))
			return false;
	return true;
}

static int begin_file(struct history *h, const char *path, struct weir_err *err)
{
	memset(h->live, 0, HISTORY_SERIES * sizeof(*h->live));
	madvise(h->series, HISTORY_SERIES * sizeof(*h->series), MADV_DONTNEED); /* zeros again */
	if (ftruncate(h->fd, 0) < 0 || ftruncate(h->fd, SIZE) < 0 ||
		!put(h, &head_of, sizeof(head_of), 0))
		return weir_err_set(err, -ENOSPC, "%s: no space", path);
	return 0;
}

static int open_file(struct history *h, const char *folder, struct weir_err *err)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/history", folder) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", folder);
	h->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (h->fd < 0)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(h->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return weir_err_set(
			err, -EINVAL, "%s: not a file, or a file with other names", path);
	if (flock(h->fd, LOCK_EX | LOCK_NB) < 0)
		return weir_err_set(err, -EBUSY, "%s: another process has it", path);
	return read_all(h) ? 0 : begin_file(h, path, err);
}

/* ---- memory */

int history_map(struct history *h, const char *folder, struct weir_err *err)
{
	void *at = mmap(NULL, HISTORY_SERIES * sizeof(*h->series), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	h->fd = -1;
	h->series = at == MAP_FAILED ? NULL : at;
	h->table = calloc(TABLE, sizeof(*h->table));
	h->live = calloc(HISTORY_SERIES, sizeof(*h->live));
	if (!h->series || !h->table || !h->live)
		return no_memory(err);
	r = folder ? open_file(h, folder, err) : 0;
	if (r < 0)
		return r;
	index_all(h);
	return 0;
}

void history_unmap(struct history *h)
{
	if (h->series)
		munmap(h->series, HISTORY_SERIES * sizeof(*h->series));
	if (h->fd >= 0)
		close(h->fd);
	free(h->table);
	free(h->live);
}
