/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  inotify reports files by name; each is looked at with stat, and enters or leaves the sorted list of its folder. A
 *         scan compares the whole folder: a file that it finds, and that was not reported, counts when it was not changed for
 *         SETTLED; one that was reported as created, and not as closed, when it was not changed for ABANDONED. After an overflow
 *         of the system's queue every folder is scanned.
 *         A file is its inode, not its name: another one with the name of the last, which was moved over it or came after it was
 *         deleted, is another volume. The time of its birth tells a file from a later one with the inode's number.
 */
#include "base/arena.h"
#include "base/array.h"
#include "base/no-memory.h"
#include "policy/folder.h"
#include "serve/gateway/extra.h"
#include "serve/gateway/folder.h"
#include "serve/gateway/note.h"
#include "serve/loop/log.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_CREATE | IN_DELETE_SELF |   \
		IN_MOVE_SELF | IN_ONLYDIR)
#define SETTLED   5  /* s */
#define ABANDONED 60 /* s */

struct file {
	char *name;
	struct policy_file id;
	bool open; /* it was created, and is not closed yet: no volume */
	bool seen; /* by the scan */
};

struct folder {
	char *dir;
	int wd; /* -1: it is not there */
	bool in_dev;
	bool scanned;       /* since it is there */
	char why[64];       /* it is not there; "": it is, or was never looked at */
	bool wanted;        /* by a policy */
	struct file *files; /* by name */
	size_t n, room;
};

struct gateway_folders {
	int fd;
	struct folder **all;
	size_t n, room;
	uint64_t version;
	bool overflow;
	unsigned unsettled; /* files that the last scan has seen, and that may still be written */
	atomic_uint soon;
};

/* ---- the list of a folder */

static size_t place_of(const struct folder *d, const char *name)
{
	size_t from = 0, to = d->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(d->files[middle].name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct file *find(const struct folder *d, const char *name)
{
	size_t at = place_of(d, name);

	return at < d->n && strcmp(d->files[at].name, name) == 0 ? &d->files[at] : NULL;
}

static void drop(struct gateway_folders *f, struct folder *d, struct file *file)
{
	size_t at = (size_t)(file - d->files);

	f->version += !file->open;
	free(file->name);
	memmove(d->files + at, d->files + at + 1, (--d->n - at) * sizeof(*d->files));
}

static struct policy_file id_of(const struct statx *x)
{
	uint64_t born = x->stx_mask & STATX_BTIME
				? (uint64_t)x->stx_btime.tv_sec * WEIR_SEC + x->stx_btime.tv_nsec
				: 0;

	return (struct policy_file){makedev(x->stx_dev_major, x->stx_dev_minor), x->stx_ino, born};
}

static bool is_file(const struct file *file, const struct statx *x)
{
	struct policy_file id = id_of(x);

	return file && policy_file_same(&file->id, &id);
}

/* Enter the file, or bring its entry up to date. */
static int enter(struct gateway_folders *f, struct folder *d, const char *name,
	const struct statx *x, bool open)
{
	struct file *file = find(d, name);
	size_t at = place_of(d, name);
	char *copy;

	if (is_file(file, x) && file->open == open) {
		file->seen = true;
		return 0;
	}
	f->version += !open || (file && !file->open);
	if (file) {
		*file = (struct file){file->name, id_of(x), open, true};
		return 0;
	}
	copy = strdup(name);
	if (!copy || array_grow(&d->files, &d->room, d->n + 1) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memmove(d->files + at + 1, d->files + at, (d->n++ - at) * sizeof(*d->files));
	d->files[at] = (struct file){copy, id_of(x), open, true};
	return 0;
}

/* ---- one file */

#define WANTED (STATX_BASIC_STATS | STATX_BTIME)

static bool stat_file(const struct folder *d, int fd, const char *name, struct statx *x)
{
	char path[4096];

	if (fd < 0 && snprintf(path, sizeof(path), "%s/%s", d->dir, name) >= (int)sizeof(path))
		return false;
	return statx(fd < 0 ? AT_FDCWD : fd, fd < 0 ? path : name,
		       d->in_dev ? 0 : AT_SYMLINK_NOFOLLOW, WANTED, x) == 0 &&
	       (S_ISREG(x->stx_mode) || S_ISBLK(x->stx_mode));
}

bool gateway_file_of(int at, const char *path, struct policy_file *ret)
{
	struct statx x;

	if (statx(at, path, AT_SYMLINK_NOFOLLOW, WANTED, &x) < 0)
		return false;
	*ret = id_of(&x);
	return true;
}

/* A file went. If another one has its name now, then later events report that. */
static void look_gone(struct gateway_folders *f, struct folder *d, const char *name)
{
	struct file *file = find(d, name);
	struct statx x;

	if (file && !(stat_file(d, -1, name, &x) && is_file(file, &x)))
		drop(f, d, file);
}

/* Something happened to a file; created: it may still be open for writing. */
static int look_at(struct gateway_folders *f, struct folder *d, const char *name, bool created)
{
	struct file *file = find(d, name);
	struct statx x;

	if (*name == '.')
		return 0;
	if (!stat_file(d, -1, name, &x)) {
		if (file)
			drop(f, d, file);
		return 0;
	}
	if (is_file(file, &x))
		created &= file->open;
	/* a second link to a file is whole */
	return enter(f, d, name, &x, created && S_ISREG(x.stx_mode) && x.stx_nlink < 2);
}

/* ---- the whole folder */

static bool unchanged_for(const struct statx *x, time_t seconds)
{
	time_t before = time(NULL) - seconds;

	return x->stx_mtime.tv_sec <= before && x->stx_ctime.tv_sec <= before;
}

static int scan_file(struct gateway_folders *f, struct folder *d, int fd, const char *name)
{
	struct file *file = find(d, name);
	struct statx x;

	if (*name == '.' || !stat_file(d, fd, name, &x))
		return 0;
	if (!is_file(file, &x))
		file = NULL; /* the one of that name is gone */
	if (file)
		file->seen = true;
	if (d->scanned && S_ISREG(x.stx_mode) && (!file || file->open) &&
		!unchanged_for(&x, file && !f->overflow ? ABANDONED : SETTLED)) {
		f->unsettled += !file;
		return 0;
	}
	return enter(f, d, name, &x, false);
}

static int read_folder(struct gateway_folders *f, struct folder *d, DIR *dir)
{
	const struct dirent *e;
	int rc = 0;

	for (size_t i = 0; i < d->n; i++)
		d->files[i].seen = false;
	while (rc == 0 && (errno = 0, e = readdir(dir)))
		rc = scan_file(f, d, dirfd(dir), e->d_name);
	if (rc == 0 && errno)
		return -errno;
	for (size_t i = d->n; rc == 0 && i-- > 0;)
		if (!d->files[i].seen)
			drop(f, d, &d->files[i]);
	d->scanned |= rc == 0;
	return rc;
}

static void vanish(struct gateway_folders *f, struct folder *d, const char *why)
{
	if (!d->why[0]) {
		snprintf(d->why, sizeof(d->why), "%s", why);
		f->version++;
	}
	if (d->wd >= 0)
		inotify_rm_watch(f->fd, d->wd);
	d->wd = -1;
	d->scanned = false;
}

/* Read it whole. -ENOMEM; any other failure: it is not there. */
static int scan(struct gateway_folders *f, struct folder *d, int *ret_why)
{
	DIR *dir = opendir(d->dir);
	int wd = dir ? inotify_add_watch(f->fd, d->dir, EVENTS) : -1;
	int rc = wd < 0 ? -errno : 0;

	*ret_why = rc;
	if (wd >= 0) {
		if (d->why[0]) {
			log_event(LOG_LEVEL_INFO, "folder-back", "dir", d->dir, NULL);
			f->version++;
		}
		d->why[0] = '\0';
		d->wd = wd;
		rc = read_folder(f, d, dir);
		*ret_why = rc;
	}
	if (dir)
		closedir(dir);
	if (rc < 0 && rc != -ENOMEM) {
		vanish(f, d, strerror(-rc));
		rc = 0;
	}
	return rc;
}

/* ---- events */

static int take_event(struct gateway_folders *f, const struct inotify_event *e)
{
	int rc = 0;

	f->overflow |= e->mask & IN_Q_OVERFLOW;
	for (size_t i = 0; rc == 0 && e->wd >= 0 && i < f->n; i++) {
		struct folder *d = f->all[i];

		if (d->wd != e->wd)
			continue;
		if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED))
			vanish(f, d, "it was deleted, moved or unmounted");
		else if (e->len && e->mask & (IN_DELETE | IN_MOVED_FROM))
			look_gone(f, d, e->name);
		else if (e->len)
			rc = look_at(f, d, e->name, e->mask & IN_CREATE);
	}
	return rc;
}

static int take_events(struct gateway_folders *f)
{
	_Alignas(struct inotify_event) char text[16384];
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = read(f->fd, text, sizeof(text))) > 0)
		for (char *at = text; rc == 0 && at < text + n;) {
			const struct inotify_event *e = (const struct inotify_event *)(void *)at;

			rc = take_event(f, e);
			at += sizeof(*e) + e->len;
		}
	return rc;
}

void gateway_folders_remark(const struct gateway_folders *f, struct gateway_note *to)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i]->why[0])
			gateway_note_add(to,
				"dir %s is away: %s; its volumes stay, and its files are not "
				"followed",
				f->all[i]->dir, f->all[i]->why);
}

/* ---- which folders */

static struct folder *folder_of(const struct gateway_folders *f, const char *dir)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->all[i]->dir, dir) == 0)
			return f->all[i];
	return NULL;
}

static void free_folder(struct folder *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->files[i].name);
	free(d->files);
	free(d->dir);
	free(d);
}

static int add_folder(struct gateway_folders *f, const char *dir)
{
	struct folder *d = calloc(1, sizeof(*d));

	if (!d || !(d->dir = strdup(dir)) || array_grow(&f->all, &f->room, f->n + 1) < 0) {
		if (d)
			free_folder(d);
		return -ENOMEM;
	}
	d->wd = -1;
	d->in_dev = strncmp(dir, "/dev/", 5) == 0 && !strstr(dir, "/..");
	f->all[f->n++] = d;
	return 0;
}

static int want(struct gateway_folders *f, const struct weir_policy *p)
{
	int rc = 0;

	for (size_t i = 0; p && rc == 0 && i < p->n_folders; i++) {
		if (!folder_of(f, p->folders[i].dir))
			rc = add_folder(f, p->folders[i].dir);
		if (rc == 0)
			folder_of(f, p->folders[i].dir)->wanted = true;
	}
	return rc;
}

static void forget_unwanted(struct gateway_folders *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct folder *d = f->all[i];

		if (d->wanted) {
			d->wanted = false;
			f->all[kept++] = d;
			continue;
		}
		if (d->wd >= 0)
			inotify_rm_watch(f->fd, d->wd);
		f->version++;
		free_folder(d);
	}
	f->n = kept;
}

/* Return the folder of `next` with this path if `old`, which is not NULL, has none such. */
static const struct weir_folder *is_new(
	const struct weir_policy *old, const struct weir_policy *next, const char *dir)
{
	for (size_t i = 0; old && i < old->n_folders; i++)
		if (strcmp(old->folders[i].dir, dir) == 0)
			return NULL;
	for (size_t i = 0; old && i < next->n_folders; i++)
		if (strcmp(next->folders[i].dir, dir) == 0)
			return &next->folders[i];
	return NULL;
}

static int scan_all(struct gateway_folders *f, const struct weir_policy *old,
	const struct weir_policy *next, bool whole, struct weir_err *err)
{
	unsigned away = 0;

	f->unsettled = whole ? 0 : f->unsettled;
	for (size_t i = 0; i < f->n; i++) {
		struct folder *d = f->all[i];
		const struct weir_folder *fresh = d->scanned ? NULL : is_new(old, next, d->dir);
		int why = 0;

		if ((whole || d->wd < 0) && scan(f, d, &why) < 0)
			return no_memory(err);
		if (why < 0 && fresh)
			return weir_err_at(
				err, -EINVAL, fresh->at, "dir %s: %s", d->dir, strerror(-why));
		away += d->wd < 0;
	}
	f->overflow = false;
	atomic_store(&f->soon, away + f->unsettled);
	return 0;
}

int gateway_folders_look(struct gateway_folders *f, const struct weir_policy *old,
	const struct weir_policy *next, bool scan_, struct weir_err *err)
{
	if (want(f, old) < 0 || want(f, next) < 0)
		return no_memory(err);
	forget_unwanted(f);
	if (take_events(f) < 0)
		return no_memory(err);
	return scan_all(f, old, next, scan_ || f->overflow, err);
}

int gateway_folders_touch(struct gateway_folders *f, const char *dir, const char *file)
{
	struct folder *d = folder_of(f, dir);

	return d ? look_at(f, d, file, false) : 0;
}

bool gateway_folders_lacks(
	const struct gateway_folders *f, const char *path, const struct policy_file *file)
{
	const char *slash = strrchr(path, '/');
	const struct file *is;

	for (size_t i = 0; slash && i < f->n; i++) {
		const struct folder *d = f->all[i];
		size_t len = (size_t)(slash - path);

		if (strlen(d->dir) != len || memcmp(d->dir, path, len) != 0)
			continue;
		is = find(d, slash + 1);
		return d->wd >= 0 && (!is || (file && !policy_file_same(&is->id, file)));
	}
	return false;
}

/* ---- volumes */

struct served { /* the files that volumes with a name are */
	struct {
		dev_t dev;
		ino_t ino;
	} * all;
	size_t n, room;
};

char *gateway_path_of(const char *back)
{
	const char *file = strncmp(back, "file:", 5) == 0 ? back : strstr(back, "+file:");

	if (!file)
		return NULL;
	file = strchr(file, ':') + 1;
	return strndup(file, strcspn(file, "?"));
}

static int add_served(struct served *s, const char *back)
{
	char *path = gateway_path_of(back);
	struct stat st;
	int rc = 0;

	if (path && stat(path, &st) == 0) {
		rc = array_grow(&s->all, &s->room, s->n + 1);
		if (rc == 0) {
			s->all[s->n].dev = st.st_dev;
			s->all[s->n++].ino = st.st_ino;
		}
	}
	free(path);
	return rc;
}

static int list_served(
	const struct weir_policy *p, const struct gateway_extras *extras, struct served *ret)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_exports; i++)
		if (p->exports[i].back && p->exports[i].from == POLICY_EXPORT_FILE)
			rc = add_served(ret, p->exports[i].back);
	for (size_t i = 0; rc == 0 && i < extras->n; i++)
		if (extras->all[i].kind == EXTRA_ADDED)
			rc = add_served(ret, extras->all[i].back);
	return rc;
}

static bool is_served(const struct served *s, const struct file *file)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].dev == file->id.dev && s->all[i].ino == file->id.ino)
			return true;
	return false;
}

struct listing {
	const struct weir_policy *policy;
	const struct gateway_extras *extras;
	struct served served;
	struct arena *memory;
	struct policy_volume *list;
	size_t n, room;
	policy_volume_skipped *skipped;
	void *arg;
};

static int list_file(struct listing *l, const struct weir_folder *spec, const struct file *file)
{
	char back[4096 + 8], name[POLICY_FOLDER_NAME];
	const struct gateway_extra *extra;
	struct policy_volume v = {.resource = l->policy->resources[spec->resource].name,
		.back = back,
		.class_ = spec->class_,
		.read_only = spec->read_only,
		.found = true,
		.file = file->id};
	int rc = policy_folder_volume(spec, file->name, name);

	if (file->open || rc == -ENOENT || is_served(&l->served, file))
		return 0;
	snprintf(back, sizeof(back), "file:%s/%s", spec->dir, file->name);
	v.name = rc == 0 ? name : file->name;
	if (rc < 0 || strchr(back, '?')) {
		l->skipped(l->arg, &v, rc < 0 ? "the name is too long" : "a path with '?'");
		return 0;
	}
	extra = gateway_extras_find(l->extras, name);
	if (extra && strcmp(extra->back, back) == 0) {
		if (extra->kind != EXTRA_FOUND)
			return 0; /* one volume, which is listed there; or hidden */
		v.class_ = extra->class_;
	}
	v.name = arena_text(l->memory, name);
	v.back = arena_text(l->memory, back);
	if (l->memory->failed || array_grow(&l->list, &l->room, l->n + 1) < 0)
		return -ENOMEM;
	l->list[l->n++] = v;
	return 0;
}

int gateway_folders_volumes(const struct gateway_folders *f, const struct weir_policy *p,
	const struct gateway_extras *extras, struct arena *memory, struct policy_volume **ret_list,
	size_t *ret_n, policy_volume_skipped *skipped, void *arg)
{
	struct listing l = {
		.policy = p, .extras = extras, .memory = memory, .skipped = skipped, .arg = arg};
	int rc = p->n_folders ? list_served(p, extras, &l.served) : 0;

	for (size_t i = 0; rc == 0 && i < p->n_folders; i++) {
		const struct folder *d = folder_of(f, p->folders[i].dir);

		for (size_t k = 0; d && rc == 0 && k < d->n; k++)
			rc = list_file(&l, &p->folders[i], &d->files[k]);
	}
	free(l.served.all);
	if (rc < 0) {
		free(l.list);
		return rc;
	}
	*ret_list = l.list;
	*ret_n = l.n;
	return 0;
}

/* ---- start and end */

int gateway_folders_fd(const struct gateway_folders *f)
{
	return f->fd;
}

bool gateway_folders_soon(const struct gateway_folders *f)
{
	return atomic_load(&f->soon);
}

uint64_t gateway_folders_version(const struct gateway_folders *f)
{
	return f->version;
}

int gateway_folders_new(struct gateway_folders **ret)
{
	struct gateway_folders *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->fd < 0) {
		rc = -errno;
		free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void gateway_folders_free(struct gateway_folders *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free_folder(f->all[i]);
	free(f->all);
	close(f->fd);
	free(f);
}
