/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-guard: a file that other programs use as well, delete, or make shorter.
 *
 * SOURCE  QEMU's image locking (block/file-posix.c): a program that uses permission p holds a
 *         shared lock on byte 100 + p of the file, one that denies p to others on byte 200 + p.
 *         Locks belong to the open file description (OFD, fcntl(2)), so that they end with it, and
 *         no other descriptor of the process releases them.
 * METHOD  As QEMU: take our locks first, then look for conflicting locks of others. Of two programs
 *         that open at once at least one sees the other. We read (and write), and deny writing and
 *         resizing to others.
 */
#include "base/container.h"
#include "serve/back/file.h"
#include "serve/loop/log.h"
#include <weir/units.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READ, WRITE, WRITE_UNCHANGED, RESIZE }; /* QEMU's permissions */
#define USED     100
#define DENIED   200
#define PATIENCE (500 * WEIR_MS) /* io_uring holds the files of a killed process slightly longer */
#define PAUSE    (20 * WEIR_MS)

static const struct {
	uint8_t permission;
	bool denied;     /* denied to others; else used by us */
	bool write_only; /* not if opened read-only */
} ours[] = {
	{READ, false, false}, {WRITE, false, true}, {WRITE, true, false}, {RESIZE, true, false}};
#define N_OURS (sizeof(ours) / sizeof(*ours))

static struct flock one_byte(short type, unsigned at)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

/* Return 0, -EBUSY, or another negative errno: locks are not supported here. */
static int take_locks(const struct file *f)
{
	for (size_t i = 0; i < N_OURS; i++) {
		struct flock l =
			one_byte(F_RDLCK, (ours[i].denied ? DENIED : USED) + ours[i].permission);

		if (ours[i].write_only && f->back.info.read_only)
			continue;
		if (fcntl(f->fd, F_OFD_SETLK, &l) < 0)
			return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
	}
	return 0;
}

static bool is_locked(const struct file *f, unsigned at)
{
	struct flock l = one_byte(F_WRLCK, at);

	return fcntl(f->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* Return true if another program uses what we deny, or denies what we use. */
static bool in_conflict(const struct file *f)
{
	for (size_t i = 0; i < N_OURS; i++) {
		if (ours[i].write_only && f->back.info.read_only)
			continue;
		if (is_locked(f, (ours[i].denied ? USED : DENIED) + ours[i].permission))
			return true;
	}
	return false;
}

static void release_locks(const struct file *f)
{
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = USED, .l_len = 200};

	fcntl(f->fd, F_OFD_SETLK, &l);
}

static int lock_once(const struct file *f)
{
	int r = take_locks(f);

	if (r == 0 && !f->heir && in_conflict(f))
		r = -EBUSY;
	if (r)
		release_locks(f);
	return r;
}

int file_guard_lock(struct file *f, weir_time by, struct weir_err *err)
{
	const struct timespec pause = {.tv_nsec = PAUSE};
	int r = lock_once(f);

	by = by ? by : loop_clock() + PATIENCE;
	while (r == -EBUSY && loop_clock() < by) {
		nanosleep(&pause, NULL);
		r = lock_once(f);
	}
	f->locked = r == 0;
	if (r == -EBUSY)
		return weir_err_set(err, r,
			"%s: in use by another process, which holds a lock (lock: false shares "
			"it)",
			f->name);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "file-not-locked", "back", f->name, "why",
			strerror(-r), NULL);
	return 0;
}

/* ---- deleted */

static void look_if_deleted(struct file *f)
{
	struct stat st;

	if (f->deleted || fstat(f->fd, &st) < 0 || st.st_nlink > 0)
		return;
	f->deleted = true;
	if (!f->back.trouble)
		f->back.trouble = "its file was deleted: the data are lost when the gateway ends";
	if (f->followed)
		return;
	log_event(LOG_LEVEL_ERROR, "file-deleted", "back", f->name, "then",
		"the file is served until the gateway ends; then its data are lost", NULL);
}

/* ---- made shorter */

void file_guard_size(struct file *f)
{
	uint64_t was = f->back.info.size;
	char text[2][32];
	struct stat st;

	if (f->block || atomic_load(&f->back.shrunk) || fstat(f->fd, &st) < 0 ||
		(uint64_t)st.st_size >= was)
		return;
	atomic_store(&f->back.shrunk, true);
	if (!f->back.trouble)
		f->back.trouble = BACK_SHRUNK;
	log_event(LOG_LEVEL_ERROR, "file-shrunk", "back", f->name, "was",
		weir_units_show_size(was, text[0], sizeof(text[0])), "is",
		weir_units_show_size((uint64_t)st.st_size, text[1], sizeof(text[1])), "then",
		"its clients stay, and reads beyond its end fail", NULL);
}

/* ---- events */

static void look_at(const struct file_hub *h, int wd)
{
	for (struct file *f = h->watched; f; f = f->next_watched)
		if (f->wd == wd || wd < 0) {
			look_if_deleted(f);
			file_guard_size(f);
		}
}

static void on_change(struct loop_fd *l, uint32_t events)
{
	const struct file_hub *h = container_of(l, struct file_hub, watch);
	_Alignas(struct inotify_event) char text[4096];
	ssize_t n;

	while ((n = read(l->fd, text, sizeof(text))) > 0)
		for (const char *at = text; at < text + n;) {
			const struct inotify_event *e =
				(const struct inotify_event *)(const void *)at;

			look_at(h, e->wd); /* -1: some were lost */
			at += sizeof(*e) + e->len;
		}
}

static bool start_watch(struct file_hub *h)
{
	if (h->watch.fd >= 0)
		return true;
	h->watch =
		(struct loop_fd){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .ready = on_change};
	if (h->watch.fd >= 0 && loop_add(h->loop, &h->watch, EPOLLIN) < 0) {
		close(h->watch.fd);
		h->watch.fd = -1;
	}
	return h->watch.fd >= 0;
}

/* A change of the link count is an IN_ATTRIB event. A change of the size is IN_MODIFY, as is each write of ours: so a file is
 * looked at when another program closes it. Without inotify both go unnoticed, but for reads beyond the end. */
void file_guard_watch(struct file *f)
{
	struct file_hub *h = f->hub;
	char path[40];

	if (f->block || !start_watch(h))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	f->wd = inotify_add_watch(h->watch.fd, path, IN_ATTRIB | IN_CLOSE_WRITE);
	if (f->wd < 0)
		return;
	f->next_watched = h->watched;
	f->watched_link = &h->watched;
	if (h->watched)
		h->watched->watched_link = &f->next_watched;
	h->watched = f;
	look_if_deleted(f); /* before it was watched */
}

/* Another volume may be the same file, with the same watch. */
static bool is_last_with(const struct file *f)
{
	for (const struct file *g = f->hub->watched; g; g = g->next_watched)
		if (g != f && g->wd == f->wd)
			return false;
	return true;
}

void file_guard_end(struct file *f)
{
	/* Explicitly, as io_uring releases its files slightly after the close. */
	if (f->locked)
		release_locks(f);
	if (f->wd < 0)
		return;
	*f->watched_link = f->next_watched;
	if (f->next_watched)
		f->next_watched->watched_link = f->watched_link;
	if (is_last_with(f))
		inotify_rm_watch(f->hub->watch.fd, f->wd);
}

void file_guard_free(struct file_hub *h)
{
	if (h->watch.fd < 0)
		return;
	loop_remove(h->loop, &h->watch);
	close(h->watch.fd);
}
