/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  inotify reports files by name; each is looked at with stat, and enters or leaves the sorted list of its folder. A
 *         scan compares the whole folder: a file that it finds, and that was not reported, counts when it was not changed for
 *         SETTLED; one that was reported as created, and not as closed, when it was not changed for ABANDONED. After an overflow
 *         of the system's queue every folder is scanned.
 *         A file is its inode, not its name: another one with the name of the last, which was moved over it or came after it was
 *         deleted, is another volume. The same holds for a folder that has files: while another one is at its path, it is away.
 *         The time of its birth tells a file from a later one with the inode's number.
 */
#include "base/array.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include "serve/store/extra.h"
#include "serve/store/folder-impl.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

/* IN_EXCL_UNLINK: when a volume of a deleted file is closed, that is no event of the file that has its name now */
#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_CREATE | IN_DELETE_SELF |   \
		IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define SETTLED   5  /* s */
#define ABANDONED 60 /* s */

/* A file went. If another one has its name now, then later events report that. */
static void look_gone(struct folders *f, struct folder *d, const char *name)
{
	struct file *file = folder_find(d, name);
	struct statx x;

	if (file && !(folder_stat(d, -1, name, &x) && folder_is(file, &x)))
		folder_drop(f, d, file);
}

/* Something happened to a file; created: it may still be open for writing. */
static int look_at(struct folders *f, struct folder *d, const char *name, bool created)
{
	struct file *file = folder_find(d, name);
	struct statx x;

	if (*name == '.')
		return 0;
	if (!folder_stat(d, -1, name, &x)) {
		if (file)
			folder_drop(f, d, file);
		return 0;
	}
	if (folder_is(file, &x))
		created &= file->open;
	/* a second link to a file is whole */
	return folder_enter(f, d, name, &x, created && S_ISREG(x.stx_mode) && x.stx_nlink < 2);
}

/* ---- the whole folder */

static bool unchanged_for(const struct statx *x, time_t seconds)
{
	time_t before = time(NULL) - seconds;

	return x->stx_mtime.tv_sec <= before && x->stx_ctime.tv_sec <= before;
}

static int scan_file(struct folders *f, struct folder *d, int fd, const char *name)
{
	struct file *file = folder_find(d, name);
	struct statx x;

	if (*name == '.' || !folder_stat(d, fd, name, &x))
		return 0;
	if (!folder_is(file, &x))
		file = NULL; /* the one of that name is gone */
	if (file)
		file->seen = true;
	if (d->scanned && S_ISREG(x.stx_mode) && (!file || file->open) &&
		!unchanged_for(&x, file && !f->overflow ? ABANDONED : SETTLED)) {
		f->unsettled += !file;
		return 0;
	}
	return folder_enter(f, d, name, &x, false);
}

static int read_folder(struct folders *f, struct folder *d, DIR *dir)
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
			folder_drop(f, d, &d->files[i]);
	d->scanned |= rc == 0;
	return rc;
}

/* Two paths of one folder have one watch. */
static void unwatch(struct folders *f, struct folder *d)
{
	int wd = d->wd;

	d->wd = -1;
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i]->wd == wd)
			return;
	if (wd >= 0)
		inotify_rm_watch(f->fd, wd);
}

static void vanish(struct folders *f, struct folder *d, const char *why)
{
	if (!d->why[0]) {
		snprintf(d->why, sizeof(d->why), "%s", why);
		f->version++;
	}
	unwatch(f, d);
	d->scanned = false;
}

/* Return true if another folder than that of its files has the path: an unmounted one leaves an empty folder, whose files
 * are not those that went. The folders of /dev are made anew with their devices. */
static bool is_other(const struct folder *d)
{
	struct policy_file is;
	bool other = false;
	int fd = (d->n || d->kept) && !d->in_dev ? open(d->dir, O_PATH | O_DIRECTORY | O_CLOEXEC)
						 : -1;

	if (fd < 0)
		return false;
	/* a file system may have another device number when it is mounted again */
	if (folder_file_of(fd, "", &is))
		other = is.ino != d->id.ino || is.born != d->id.born;
	close(fd);
	return other;
}

static void leave_others(struct folders *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_other(f->all[i]))
			vanish(f, f->all[i], "another folder is at its path");
}

/* Keep the files of a folder, as another one at its path is taken. */
static int set_aside(struct folder *d)
{
	if (d->was || !is_other(d))
		return 0;
	d->was = malloc(sizeof(*d->was));
	if (!d->was)
		return -ENOMEM;
	*d->was = *d;
	d->was->was = NULL;
	d->files = NULL;
	d->n = d->room = 0;
	return 0;
}

static void free_files(struct folder *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->files[i].name);
	free(d->files);
}

void folders_taken(struct folders *f, bool in_force)
{
	for (size_t i = 0; i < f->n; i++) {
		struct folder *d = f->all[i], *was = d->was;

		if (!was)
			continue;
		if (!in_force) {
			struct folder taken = *d;

			vanish(f, d, was->why);
			*d = *was;
			*was = taken;
			f->version++;
		}
		d->was = NULL;
		free_files(was);
		free(was);
	}
}

/* Read it whole. -ENOMEM; any other failure: it is not there. */
static int scan(struct folders *f, struct folder *d, int *ret_why)
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
		if (d->wd != wd) /* another folder has the path now */
			unwatch(f, d);
		d->wd = wd;
		d->kept = false;
		folder_file_of(dirfd(dir), "", &d->id);
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

static int take_event(struct folders *f, const struct inotify_event *e)
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

static int take_events(struct folders *f)
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

const char *folders_away(const struct folders *f, size_t i, const char **ret_dir)
{
	*ret_dir = f->all[i]->dir;
	return f->all[i]->why[0] ? f->all[i]->why : NULL;
}

const char *folders_why(const struct folders *f, const char *dir)
{
	const struct folder *d = folder_of(f, dir, strlen(dir));

	return d && d->why[0] ? d->why : NULL;
}

size_t folders_count(const struct folders *f)
{
	return f->n;
}

/* ---- which folders */

struct folder *folder_of(const struct folders *f, const char *dir, size_t len)
{
	for (size_t i = 0; i < f->n; i++)
		if (strncmp(f->all[i]->dir, dir, len) == 0 && !f->all[i]->dir[len])
			return f->all[i];
	return NULL;
}

static void free_folder(struct folder *d)
{
	if (d->was)
		free_files(d->was);
	free(d->was);
	free_files(d);
	free(d->dir);
	free(d);
}

static int add_folder(struct folders *f, const char *dir)
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

static int want(struct folders *f, const struct weir_policy *p)
{
	int rc = 0;

	for (size_t i = 0; p && rc == 0 && i < p->n_folders; i++) {
		const char *dir = p->folders[i].dir;
		struct folder *d = folder_of(f, dir, strlen(dir));

		if (!d && (rc = add_folder(f, dir)) == 0)
			d = f->all[f->n - 1];
		if (d)
			d->wanted = true;
	}
	return rc;
}

static void forget_unwanted(struct folders *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++)
		if (!f->all[i]->wanted)
			unwatch(f, f->all[i]);
	for (size_t i = 0; i < f->n; i++) {
		struct folder *d = f->all[i];

		if (d->wanted) {
			d->wanted = false;
			f->all[kept++] = d;
			continue;
		}
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

static int scan_all(struct folders *f, const struct weir_policy *old,
	const struct weir_policy *next, bool whole, bool take, struct weir_err *err)
{
	unsigned away = 0;

	f->unsettled = whole ? 0 : f->unsettled;
	for (size_t i = 0; i < f->n; i++) {
		struct folder *d = f->all[i];
		const struct weir_folder *fresh = d->scanned ? NULL : is_new(old, next, d->dir);
		int why = 0;

		if (take && set_aside(d) < 0)
			return no_memory(err);
		if ((whole || d->wd < 0) && (take || !is_other(d)) && scan(f, d, &why) < 0)
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

/* Return true if a kept volume tells that the folder at the path is its own; else take note of its folder. */
static bool is_own(const struct folders *f, struct folder *d, const struct extra *e)
{
	char *path = e->folder.ino ? folder_path_of(e->back) : NULL;
	const struct folder *at = NULL;
	struct policy_file is;
	struct statx x;
	bool own = false;

	if (path)
		folder_at(f, path, &at);
	if (at && at == d) {
		d->id = e->folder;
		d->kept = true;
		own = folder_stat(d, -1, strrchr(path, '/') + 1, &x) ||
		      (folder_file_of(AT_FDCWD, d->dir, &is) && policy_file_same(&is, &e->folder));
	}
	free(path);
	return own;
}

int folders_expect(struct folders *f, const struct weir_policy *p, const struct extras *extras)
{
	if (want(f, p) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		bool own = false;

		for (size_t k = 0; !own && k < extras->n; k++)
			own = is_own(f, f->all[i], &extras->all[k]);
		f->all[i]->kept &= !own;
	}
	return 0;
}

int folders_look(struct folders *f, const struct weir_policy *old, const struct weir_policy *next,
	bool scan_, bool take, struct weir_err *err)
{
	if (want(f, old) < 0 || want(f, next) < 0)
		return no_memory(err);
	forget_unwanted(f);
	leave_others(f);
	if (take_events(f) < 0)
		return no_memory(err);
	return scan_all(f, old, next, scan_ || f->overflow, take, err);
}

int folders_touch(struct folders *f, const char *dir, const char *file)
{
	struct folder *d = folder_of(f, dir, strlen(dir));

	return d ? look_at(f, d, file, false) : 0;
}

/* ---- start and end */

int folders_fd(const struct folders *f)
{
	return f->fd;
}

bool folders_soon(const struct folders *f)
{
	return atomic_load(&f->soon);
}

uint64_t folders_version(const struct folders *f)
{
	return f->version;
}

int folders_new(struct folders **ret)
{
	struct folders *f = calloc(1, sizeof(*f));
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

void folders_free(struct folders *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free_folder(f->all[i]);
	free(f->all);
	close(f->fd);
	free(f);
}
