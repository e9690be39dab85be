/* SPDX-License-Identifier: BSD-3-Clause */
/* file: the memory of all series, a mapped file or none, and where a name's series is. */
#include "base/no-memory.h"
#include "serve/history/impl.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
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
	if (i == HISTORY_SERIES || history_reserve(h, i) < 0)
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

/* ---- memory */

int history_reserve(struct history *h, size_t i)
{
	off_t at = (off_t)((char *)&h->series[i] - (char *)h->head);

	if (h->fd < 0)
		return 0;
	return posix_fallocate(h->fd, at, sizeof(struct series)) == 0 ? 0 : -ENOSPC;
}

/* Return true if a file has this format, and nothing in it that a reader would stumble over. */
static bool is_sound(const struct history *h)
{
	if (memcmp(h->head, &head_of, sizeof(head_of)) != 0)
		return false;
	for (size_t i = 0; i < HISTORY_SERIES; i++)
		if (h->series[i].used &&
			(h->series[i].kind > HISTORY_RESOURCE ||
				!memchr(h->series[i].name, 0, sizeof(h->series[i].name))))
			return false;
	return true;
}

static int open_file(struct history *h, const char *folder, struct weir_err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/history", folder) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", folder);
	h->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (h->fd < 0)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(h->fd, LOCK_EX | LOCK_NB) < 0)
		return weir_err_set(err, -EBUSY, "%s: another process has it", path);
	if (ftruncate(h->fd, (off_t)h->size) < 0 ||
		posix_fallocate(h->fd, 0, sizeof(*h->head)) != 0)
		return weir_err_set(err, -ENOSPC, "%s: no space", path);
	return 0;
}

int history_map(struct history *h, const char *folder, struct weir_err *err)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, r;
	void *at;

	h->fd = -1;
	h->size = sizeof(*h->head) + HISTORY_SERIES * sizeof(*h->series);
	h->table = calloc(TABLE, sizeof(*h->table));
	h->live = calloc(HISTORY_SERIES, sizeof(*h->live));
	if (!h->table || !h->live)
		return no_memory(err);
	if (folder) {
		r = open_file(h, folder, err);
		if (r < 0)
			return r;
		flags = MAP_SHARED;
	}
	at = mmap(NULL, h->size, PROT_READ | PROT_WRITE, flags, h->fd, 0);
	if (at == MAP_FAILED)
		return no_memory(err);
	h->head = at;
	h->series = (struct series *)(h->head + 1);
	if (!is_sound(h)) {
		if (h->fd >= 0 &&
			(ftruncate(h->fd, 0) < 0 || ftruncate(h->fd, (off_t)h->size) < 0 ||
				posix_fallocate(h->fd, 0, sizeof(*h->head)) != 0))
			return weir_err_set(err, -ENOSPC, "%s/history: no space", folder);
		*h->head = head_of;
	}
	index_all(h);
	return 0;
}

void history_unmap(struct history *h)
{
	if (h->head)
		munmap(h->head, h->size);
	if (h->fd >= 0)
		close(h->fd);
	free(h->table);
	free(h->live);
}
