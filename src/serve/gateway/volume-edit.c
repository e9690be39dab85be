/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  A request is compared with the volume of that name in the policy in force: the same request twice is one change. A file
 *         is made without a name, written down (EXTRA_MADE), and gets its name by a link, which fails where a file is: after a
 *         crash there is the whole volume, or none, as an entry without its file is dropped at the start. A file that is to be
 *         deleted is written down first (EXTRA_GONE), so that its folder does not find it as a volume after a crash.
 */
#include "base/arena.h"
#include "base/no-memory.h"
#include "policy/folder.h"
#include "policy/index.h"
#include "serve/store/folder.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/volume-edit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0600

/* Enter a volume in the list. */
static int put_extra(const struct gateway *g, struct extras *list,
	const struct gateway_volume_request *q, const char *resource, const char *back,
	const char *class_, enum extra_kind kind, struct policy_file file, struct weir_err *err)
{
	struct extra one = {(char *)q->name, (char *)resource, (char *)back, (char *)class_, kind,
		{.ino = file.ino, .born = file.born}, {0}};
	char *path = kind == EXTRA_ADDED ? NULL : folder_path_of(back);

	if (path)
		folders_file(g->folders, path, &file, &one.folder);
	free(path);
	return extras_put(list, &one) < 0 ? no_memory(err) : 0;
}

/* ---- files */

static int fail(struct weir_err *err, const char *path)
{
	int e = errno;

	return weir_err_set(err, e == EEXIST ? -EBUSY : -EINVAL, "%s: %s", path, strerror(e));
}

/* A file without a name; where the file system has none, with a hidden one, which is no volume. */
static int open_new(int dir, const char *hidden)
{
	int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, MODE);

	if (fd >= 0)
		return fd;
	unlinkat(dir, hidden, 0); /* of a crash */
	return openat(dir, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
}

/* Give the file its name, which fails where a file is. */
static int link_new(int dir, int fd, const char *hidden, const char *file)
{
	char open_[32];

	snprintf(open_, sizeof(open_), "/proc/self/fd/%d", fd);
	if (linkat(dir, hidden, dir, file, 0) < 0 &&
		(errno != ENOENT || linkat(AT_FDCWD, open_, dir, file, AT_SYMLINK_FOLLOW) < 0))
		return -1;
	return fsync(dir);
}

/* Another file has the name already: name both. */
static int say_exists(struct gateway_change *c)
{
	char is[32] = "?", asked[32];
	struct stat st;

	if (lstat(c->made, &st) == 0)
		weir_units_show_size((uint64_t)st.st_size, is, sizeof(is));
	weir_units_show_size(c->volume.size, asked, sizeof(asked));
	return weir_err_set(&c->err, -EBUSY,
		"volume '%s': %s exists, with %s; asked for: a new file of %s", c->volume.name,
		c->made, is, asked);
}

/* Make a sparse file; first write down the volume that it is. */
static int create_file(struct gateway *g, struct gateway_change *c, const struct weir_folder *f,
	const char *file, struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	char hidden[POLICY_FOLDER_NAME + 8], back[4096 + 8];
	int dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	int fd;

	snprintf(back, sizeof(back), "file:%s", c->made);
	snprintf(hidden, sizeof(hidden), ".%s.new", file);
	fd = dir >= 0 ? open_new(dir, hidden) : -1;
	if (fd < 0 || ftruncate(fd, (off_t)q->size) < 0 || fsync(fd) < 0 ||
		!folder_file_of(fd, "", &c->made_file))
		rc = fail(&c->err, c->made);
	if (rc == 0)
		rc = put_extra(g, list, q, q->resource, back, q->class_ ? q->class_ : f->class_,
			EXTRA_MADE, c->made_file, &c->err);
	if (rc == 0 && g->state) {
		rc = extras_write(g->state, list, &c->err);
		c->draft.kept_extras = rc == 0;
	}
	if (rc == 0 && link_new(dir, fd, hidden, file) < 0)
		rc = errno == EEXIST ? say_exists(c) : fail(&c->err, c->made);
	if (fd >= 0) {
		unlinkat(dir, hidden, 0);
		close(fd);
	}
	if (dir >= 0)
		close(dir);
	return rc;
}

/* A device is grown by other means before. */
static int check_device(int fd, const char *path, uint64_t size, struct weir_err *err)
{
	uint64_t is;
	char text[32];

	if (ioctl(fd, BLKGETSIZE64, &is) < 0)
		return fail(err, path);
	weir_units_show_size(is, text, sizeof(text));
	return is < size ? weir_err_set(err, -EINVAL, "%s: the device has %s", path, text) : 0;
}

/* Make the file of a volume longer; it is never made shorter. */
static int grow_file(const char *path, const struct policy_file *file, bool links, uint64_t size,
	struct weir_err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | (links ? 0 : O_NOFOLLOW)), rc = 0;
	struct policy_file is;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !folder_file_of(fd, "", &is))
		/* NOLINTNEXTLINE(bugprone-branch-clone): the errno is another call's than below */
		rc = fail(err, path);
	else if (file->ino && !policy_file_same(&is, file))
		rc = weir_err_set(
			err, -EBUSY, "%s: another file than the volume's is there now", path);
	else if (S_ISBLK(st.st_mode))
		rc = check_device(fd, path, size, err);
	else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < size &&
		 (ftruncate(fd, (off_t)size) < 0 || fsync(fd) < 0))
		rc = fail(err, path);
	if (fd >= 0)
		close(fd);
	return rc;
}

void gateway_volume_unlink(const char *name, const char *path, const struct policy_file *file,
	struct gateway_note *note)
{
	struct policy_file is;
	const char *why = NULL;

	if (file->ino && folder_file_of(AT_FDCWD, path, &is) && !policy_file_same(&is, file))
		why = "it is another file than the one that was created";
	else if (unlink(path) < 0 && errno != ENOENT)
		why = strerror(errno);
	if (!why)
		return;
	log_event(LOG_LEVEL_ERROR, "file-not-deleted", "volume", name, "file", path, "why", why,
		NULL);
	if (note)
		gateway_note_add(note, "%s is not deleted: %s", path, why);
}

void gateway_volume_unmake(struct gateway_change *c)
{
	if (c->made)
		gateway_volume_unlink(c->volume.name, c->made, &c->made_file, NULL);
	free(c->made);
	c->made = NULL;
}

void gateway_volume_unlink_all(const struct extras *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct extra *e = &list->all[i];
		char *path = e->kind == EXTRA_GONE ? folder_path_of(e->back) : NULL;

		if (path)
			gateway_volume_unlink(e->name, path, &e->file, NULL);
		free(path);
	}
}

/* ---- a new volume */

static int resource_of(const struct weir_policy *p, const char *name, struct weir_err *err)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, name) == 0 && p->resources[i].volumes)
			return (int)i;
	return weir_err_set(err, -ENOENT, "there is no resource '%s' with volumes", name);
}

static int check_class(
	const struct gateway *g, const struct gateway_volume_request *q, struct weir_err *err)
{
	return q->class_ && *q->class_ ? policy_volume_class(g->base, q->class_, err) : 0;
}

/* In the first folder of the resource that would give a file that name. */
static int create(struct gateway *g, struct gateway_change *c, int resource, struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	char file[POLICY_FOLDER_NAME], path[4096];
	struct weir_err *err = &c->err;

	for (size_t i = 0; i < g->base->n_folders; i++) {
		const struct weir_folder *f = &g->base->folders[i];
		const char *why = folders_why(g->folders, f->dir);
		int rc;

		if (f->resource != resource || policy_folder_file(f, q->name, file) < 0)
			continue;
		if (why)
			return weir_err_set(err, -EBUSY, "dir %s is away: %s", f->dir, why);
		snprintf(path, sizeof(path), "%s/%s", f->dir, file);
		if (strchr(path, '?')) /* the rest would be options of the back end */
			return weir_err_set(
				err, -EINVAL, "%s: a path with '?' cannot be served", path);
		c->made = strdup(path);
		rc = c->made ? create_file(g, c, f, file, list) : no_memory(err);
		if (rc < 0) {
			free(c->made);
			c->made = NULL;
			return rc;
		}
		return folders_touch(g->folders, f->dir, file) < 0 ? no_memory(err) : 0;
	}
	return weir_err_set(err, -EINVAL,
		"no dir of resource '%s' has a file for a volume called '%s'", q->resource,
		q->name);
}

static int add(struct gateway *g, struct gateway_change *c, struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	const char *bad = policy_volume_name_bad(q->name);
	struct weir_err *err = &c->err;
	int resource, rc;

	if (bad)
		return weir_err_set(err, -EINVAL, "the name %s", bad);
	if (!q->resource || !q->back == !q->size)
		return weir_err_set(err, -EINVAL,
			"volume '%s' needs a resource, and a size or a back", q->name);
	resource = resource_of(g->base, q->resource, err);
	if (resource < 0)
		return resource;
	if (check_class(g, q, err) < 0)
		return -EINVAL;
	if (q->back && (rc = gateway_file_free(g->policy, &g->base->resources[resource], q->name,
				q->back, err)) < 0)
		return rc;
	return q->back ? put_extra(g, list, q, q->resource, q->back, q->class_, EXTRA_ADDED,
				 (struct policy_file){0}, err)
		       : create(g, c, resource, list);
}

/* ---- one that exists */

struct there { /* a volume in force */
	const struct weir_export *export_;
	const struct gateway_volume *volume; /* NULL: it could not be opened */
	const char *resource;
};

static bool find(const struct gateway *g, const char *name, struct there *ret)
{
	int found = policy_index_export(g->policy, name);

	if (found < 0 || !g->policy->exports[found].back)
		return false;
	ret->export_ = &g->policy->exports[found];
	ret->resource = g->policy->resources[ret->export_->resource].name;
	ret->volume = gateway_volume_find(g, name);
	return true;
}

static bool differ(const char *asked, const char *is)
{
	return asked && (!is || strcmp(asked, is) != 0);
}

/* The same parameters, as far as they are stated; else a conflict that names both. A request with a size alone is for a new
 * file: a volume with another one is not the same, whatever its size. */
static int compare(const struct there *t, struct gateway_change *c, const struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	const struct extra *e = extras_find(list, q->name);
	bool old = q->size && !q->back && !(e && e->kind == EXTRA_MADE);
	uint64_t size = t->volume ? t->volume->size : 0;
	char is[32], asked[32];

	c->same = true;
	if (!old && !differ(q->resource, t->resource) && !differ(q->back, t->export_->back) &&
		!differ(q->class_, t->export_->class_) && (!q->size || q->size == size))
		return 0;
	weir_units_show_size(size, is, sizeof(is));
	weir_units_show_size(q->size, asked, sizeof(asked));
	return weir_err_set(&c->err, -EBUSY,
		"volume '%s' exists: resource %s, %s%s, %s, class %s; asked for: resource %s, %s, "
		"%s, class %s",
		q->name, t->resource, t->export_->back, old ? " (with data from before)" : "", is,
		t->export_->class_ ? t->export_->class_ : "none", q->resource ? q->resource : "any",
		q->back ? q->back : "a new file", q->size ? asked : "any size",
		q->class_ ? q->class_ : "any");
}

static int set_class(const struct gateway *g, const struct there *t,
	const struct gateway_volume_request *q, struct extras *list, struct weir_err *err)
{
	const struct extra *e = extras_find(list, q->name);
	const char *class_ = *q->class_ ? q->class_ : NULL;

	if (t->export_->from == POLICY_EXPORT_FILE)
		return weir_err_set(err, -EBUSY,
			"volume '%s' is in the policy file: change its class there", q->name);
	return put_extra(g, list, q, t->resource, t->export_->back, class_,
		e ? e->kind : EXTRA_FOUND, e ? e->file : (struct policy_file){0}, err);
}

static int check_growth(
	const struct there *t, const struct gateway_volume_request *q, struct weir_err *err)
{
	char *path = folder_path_of(t->export_->back);
	int rc = 0;

	if (!t->volume || !t->volume->known)
		rc = weir_err_set(err, -EBUSY, "volume '%s' was not reached yet", q->name);
	else if (q->size < t->volume->size)
		rc = weir_err_set(err, -EINVAL,
			"volume '%s' has %llu bytes: a volume cannot be made smaller", q->name,
			(unsigned long long)t->volume->size);
	else if (!path)
		rc = weir_err_set(err, -EINVAL,
			"volume '%s' is no file: grow it where it is, and "
			"add it anew",
			q->name);
	free(path);
	return rc;
}

int gateway_volume_grow(struct gateway_change *c)
{
	const struct weir_policy *p = c->gateway->policy;
	int at = policy_index_export(p, c->volume.name);
	bool links = at >= 0 && gateway_volume_links(&p->exports[at]);
	char *path = folder_path_of(c->grows->back_name);
	int rc = path ? grow_file(path, &c->grows->file, links, c->volume.size, &c->err)
		      : no_memory(&c->err);

	free(path);
	return rc;
}

static int change(struct gateway *g, struct gateway_change *c, struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	struct there t;
	int rc = 0;

	if (!find(g, q->name, &t))
		return weir_err_set(&c->err, -ENOENT, "there is no volume '%s'", q->name);
	if (!q->class_ && !q->size)
		return weir_err_set(
			&c->err, -EINVAL, "a volume's class or its size can be changed");
	if (check_class(g, q, &c->err) < 0)
		return -EINVAL;
	if (q->size)
		rc = check_growth(&t, q, &c->err);
	if (rc == 0 && q->class_)
		rc = set_class(g, &t, q, list, &c->err);
	c->grows = rc == 0 && q->size ? t.volume : NULL;
	c->same = rc == 0 && !q->size && extras_same(list, &g->extras);
	return rc;
}

/* ---- removed */

/* Return true if a dir would make a volume of the file. */
static bool is_of_dir(const struct gateway *g, const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[POLICY_FOLDER_NAME];

	for (size_t i = 0; slash && i < g->base->n_folders; i++) {
		const struct weir_folder *f = &g->base->folders[i];
		size_t n = (size_t)(slash - path);

		if (strncmp(f->dir, path, n) == 0 && !f->dir[n] &&
			policy_folder_volume(f, slash + 1, name) == 0)
			return true;
	}
	return false;
}

/* The file stays; in a folder it would be a volume again. */
static int drop_added(const struct gateway *g, const struct gateway_volume_request *q,
	const struct extra *e, struct extras *list, struct weir_err *err)
{
	char *path = folder_path_of(e->back);
	struct policy_file file;
	int rc = 0;

	if (path && is_of_dir(g, path) && folder_file_of(AT_FDCWD, path, &file))
		rc = put_extra(g, list, q, e->resource, e->back, NULL, EXTRA_HIDDEN, file, err);
	else
		extras_drop(list, q->name);
	free(path);
	return rc;
}

/* Refuse to delete a file whose folder is away: the file would stay, and come back with the folder. */
static int check_here(const struct gateway *g, const char *path, struct weir_err *err)
{
	const char *slash = strrchr(path, '/'), *why;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash ? slash - path : 0), path);
	why = folders_why(g->folders, dir);
	return why ? weir_err_set(err, -EBUSY, "dir %s is away: %s", dir, why) : 0;
}

static int remove_one(struct gateway *g, struct gateway_change *c, struct extras *list)
{
	const struct gateway_volume_request *q = &c->volume;
	const struct extra *e = extras_find(list, q->name);
	bool made = e && e->kind == EXTRA_MADE;
	struct there t;
	bool there = find(g, q->name, &t);

	if (there && t.export_->from == POLICY_EXPORT_FILE)
		return weir_err_set(&c->err, -EBUSY,
			"volume '%s' is in the policy file: remove it there", q->name);
	if (there && t.export_->from == POLICY_EXPORT_FOUND && !q->keep)
		return weir_err_set(&c->err, -EBUSY,
			"volume '%s' is the file %s of a dir: delete the file, or let --keep hide "
			"it",
			q->name, t.export_->back + strlen("file:"));
	if (there && !q->force)
		c->idle = t.volume;
	if (made && !q->keep) {
		c->gone = folder_path_of(e->back);
		if (!c->gone)
			return no_memory(&c->err);
		c->gone_file = e->file;
		if (check_here(g, c->gone, &c->err) < 0)
			return -EBUSY;
	}
	if (there && (made || t.export_->from == POLICY_EXPORT_FOUND))
		return put_extra(g, list, q, t.resource, t.export_->back, NULL,
			q->keep ? EXTRA_HIDDEN : EXTRA_GONE, t.export_->file, &c->err);
	if (made) /* it is not served */
		return put_extra(g, list, q, e->resource, e->back, NULL,
			q->keep ? EXTRA_HIDDEN : EXTRA_GONE, e->file, &c->err);
	if (e && e->kind == EXTRA_ADDED)
		return drop_added(g, q, e, list, &c->err);
	c->same = !there; /* its file went, and it goes with the folders' events */
	return 0;
}

int gateway_volume_edit(struct gateway *g, struct gateway_change *c, struct extras *list)
{
	struct there t;

	if (c->volume.op == VOLUME_REMOVE)
		return remove_one(g, c, list);
	if (c->volume.op == VOLUME_CHANGE)
		return change(g, c, list);
	return find(g, c->volume.name, &t) ? compare(&t, c, list) : add(g, c, list);
}

/* ---- the layer */

void gateway_volume_prune(const struct gateway *g, struct extras *list)
{
	for (size_t i = list->n; i-- > 0;) {
		struct extra *e = &list->all[i];
		char *path = e->kind == EXTRA_ADDED ? NULL : folder_path_of(e->back);
		struct policy_file folder;
		enum folder_has has =
			path ? folders_file(g->folders, path, &e->file, &folder) : FOLDER_AWAY;

		free(path);
		if (has == FOLDER_AWAY)
			continue;
		e->folder = folder;
		if (has == FOLDER_OTHER && e->kind == EXTRA_MADE) {
			e->kind = EXTRA_FOUND;
			e->file = (struct policy_file){0};
		} else if (has != FOLDER_HAS) {
			extras_drop(list, e->name);
		}
	}
}

static void refuse(void *arg, const struct policy_volume *v, const char *why)
{
	gateway_note_add(arg, "volume '%s' of '%s', %s: %s", v->name, v->resource, v->back, why);
}

static int add_extras(
	struct weir_policy *p, const struct extras *extras, struct gateway_note *refused)
{
	struct policy_volume *list = calloc(extras->n + 1, sizeof(*list));
	size_t n = 0;
	int rc;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < extras->n; i++) {
		const struct extra *e = &extras->all[i];

		if (e->kind == EXTRA_ADDED || e->kind == EXTRA_MADE)
			list[n++] = (struct policy_volume){.name = e->name,
				.resource = e->resource,
				.back = e->back,
				.class_ = e->class_,
				.file = e->file};
	}
	rc = policy_volumes_add(p, list, n, refuse, refused);
	free(list);
	return rc;
}

/* Return the number of volumes that have the class of export i, if it is the first such volume; else 0. */
static size_t count_class(const struct weir_policy *p, size_t i)
{
	const struct weir_export *e = p->exports;
	size_t n = 0;

	for (size_t k = 0; k < p->n_exports && e[i].class_; k++) {
		if (!e[k].class_ || strcmp(e[k].class_, e[i].class_) != 0)
			continue;
		if (k < i)
			return 0;
		n++;
	}
	return n;
}

/* The policy may have lost a class that was given to volumes: they go on without it. */
static void note_classes(const struct weir_policy *p, struct gateway_note *remarks)
{
	for (size_t i = 0; i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];
		size_t n = e->class_ && policy_volume_class(p, e->class_, NULL) < 0
				   ? count_class(p, i)
				   : 0;

		if (n)
			gateway_note_add(remarks,
				"class '%s' is not in the policy: %zu volume%s without it, the "
				"first is '%s'",
				e->class_, n, n == 1 ? " is" : "s are", e->name);
	}
}

static void note_folders(const struct folders *f, struct gateway_note *remarks)
{
	for (size_t i = 0; i < folders_count(f); i++) {
		const char *dir, *why = folders_away(f, i, &dir);

		if (why)
			gateway_note_add(remarks,
				"dir %s is away: %s; its volumes stay, and its files are not "
				"followed",
				dir, why);
	}
}

int gateway_volume_layer(const struct gateway *g, struct weir_policy *p,
	const struct extras *extras, struct gateway_note *refused, struct gateway_note *remarks)
{
	struct arena memory = {0};
	struct policy_volume *list = NULL;
	size_t n = 0;
	int rc = add_extras(p, extras, refused);

	if (rc == 0)
		rc = folders_volumes(g->folders, p, extras, &memory, &list, &n, refuse, refused);
	if (rc == 0)
		rc = policy_volumes_add(p, list, n, refuse, refused);
	if (rc == 0) {
		note_classes(p, remarks);
		note_folders(g->folders, remarks);
	}
	free(list);
	arena_free(&memory);
	return rc;
}
