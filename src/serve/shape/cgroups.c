/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/cgroups.h"
#include "base/array.h"
#include "base/no-memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST 12 /* as the classifier sees */

struct known {
	uint64_t id;
	struct bpf_link *link; /* at the uppermost of those inside of each other */
	unsigned round;        /* of the scan that saw it last */
};

struct cgroups {
	struct rules *rules;
	struct program *program; /* NULL: only look */
	char root[PATH_MAX];
	struct known *known;
	size_t n, room;
	size_t next; /* where the last scan had the cgroup that comes next */
	unsigned round;
	size_t sets; /* that the program has */
};

int cgroups_root(char *ret, size_t len)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[PATH_MAX + 256], path[PATH_MAX], kind[64];
	int r = -ENOENT;

	while (f && r < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %4095s %63s", path, kind) == 2 &&
			strcmp(kind, "cgroup2") == 0 &&
			(size_t)snprintf(ret, len, "%s", path) < len)
			r = 0;
	if (f)
		fclose(f);
	return r;
}

int cgroups_new(struct rules *r, struct program *p, struct cgroups **ret, struct weir_err *err)
{
	struct cgroups *c = calloc(1, sizeof(*c));

	if (!c)
		return no_memory(err);
	*c = (struct cgroups){.rules = r, .program = p, .sets = r->n_sets};
	if (cgroups_root(c->root, sizeof(c->root)) < 0) {
		free(c);
		return weir_err_set(err, -ENOENT, "no cgroups of version 2 are mounted");
	}
	*ret = c;
	return 0;
}

static void forget(struct cgroups *c, struct known *k)
{
	if (!c->program)
		return;
	if (k->link)
		program_leave_cgroup(k->link);
	program_cgroup_gone(c->program, k->id);
}

void cgroups_free(struct cgroups *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		forget(c, &c->known[i]);
	free(c->known);
	free(c);
}

/* Return the entry of a cgroup, or NULL. They come in nearly the same order each time. */
static struct known *known_of(struct cgroups *c, uint64_t id)
{
	for (size_t i = 0; i < c->n; i++) {
		struct known *k = &c->known[(c->next + i) % c->n];

		if (k->id == id) {
			c->next = (c->next + i + 1) % c->n;
			return k;
		}
	}
	return NULL;
}

/* Give the program the sets that it does not have. */
static int put_sets(struct cgroups *c)
{
	int r = 0;

	for (; r == 0 && c->sets < c->rules->n_sets; c->sets += r == 0)
		r = program_set(c->program, (uint32_t)c->sets, &c->rules->sets[c->sets]);
	return r;
}

static int add(struct cgroups *c, int fd, uint64_t id, uint32_t set, bool top)
{
	struct known *k;
	int r = c->program ? put_sets(c) : 0;

	if (array_grow(&c->known, &c->room, c->n + 1) < 0)
		return -ENOMEM;
	k = &c->known[c->n];
	*k = (struct known){.id = id, .round = c->round};
	if (r == 0 && c->program)
		r = program_cgroup(c->program, id, set);
	if (r == 0 && c->program && top)
		r = program_enter_cgroup(c->program, fd, &k->link);
	if (r == 0)
		c->n++;
	return r;
}

/* Look at the cgroup `path` and at those inside of it. A cgroup may go away meanwhile. */
static int scan(
	struct cgroups *c, int above_fd, const char *name, char *path, uint32_t above, int depth)
{
	int fd = openat(above_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), r = 0;
	size_t length = strlen(path);
	struct dirent *e;
	struct known *k;
	struct stat st;
	DIR *dir;
	int set;

	if (fd < 0 || fstat(fd, &st) < 0 || !(dir = fdopendir(fd))) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	set = rules_cgroup(c->rules, above, path);
	if (set < 0)
		r = set;
	else if ((uint32_t)set != c->rules->any[SHAPE_CGROUP]) {
		k = known_of(c, st.st_ino);
		if (k)
			k->round = c->round;
		else
			r = add(c, fd, st.st_ino, (uint32_t)set,
				above == c->rules->any[SHAPE_CGROUP]);
	}
	while (r == 0 && depth < DEEPEST && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			(size_t)snprintf(path + length, PATH_MAX - length, "%s%s",
				length ? "/" : "", e->d_name) < PATH_MAX - length)
			r = scan(c, fd, e->d_name, path, (uint32_t)set, depth + 1);
	path[length] = '\0';
	closedir(dir);
	return r;
}

int cgroups_scan(struct cgroups *c, struct weir_err *err)
{
	char path[PATH_MAX] = "";
	int r;

	c->round++;
	c->next = 0;
	r = scan(c, AT_FDCWD, c->root, path, c->rules->any[SHAPE_CGROUP], 0);
	if (r < 0)
		return weir_err_set(err, r, "cgroups: %s", strerror(-r));
	for (size_t i = 0; i < c->n;) {
		if (c->known[i].round == c->round) {
			i++;
			continue;
		}
		forget(c, &c->known[i]);
		c->known[i] = c->known[--c->n];
	}
	return (int)c->n;
}

int cgroups_look(struct rules *r)
{
	struct cgroups *c;
	int n = cgroups_new(r, NULL, &c, NULL);

	if (n < 0)
		return n;
	n = cgroups_scan(c, NULL);
	cgroups_free(c);
	return n;
}
