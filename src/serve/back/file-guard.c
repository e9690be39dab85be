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
#include "base/array.h"
#include "base/container.h"
#include "serve/back/file.h"
#include "serve/loop/inherit.h"
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
#define PERIOD   WEIR_SEC

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

	if (r == 0 && !f->heir && !inherit_has(f->fd) && in_conflict(f))
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
	if (f->locked)
		inherit_note(NULL, f->fd);
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

static void size_is(struct file *f, bool shrunk, uint64_t size)
{
	char text[2][32];

	if (atomic_exchange(&f->back.shrunk, shrunk) == shrunk)
		return;
	if (shrunk && !f->back.trouble)
		f->back.trouble = BACK_SHRUNK;
	else if (!shrunk && f->back.trouble && strcmp(f->back.trouble, BACK_SHRUNK) == 0)
		f->back.trouble = NULL;
	log_event(shrunk ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, shrunk ? "file-shrunk" : "file-whole",
		"back", f->name, "was",
		weir_units_show_size(f->back.info.size, text[0], sizeof(text[0])), "is",
		weir_units_show_size(size, text[1], sizeof(text[1])), "then",
		shrunk ? "its clients stay, and reads beyond its end fail"
		       : "new clients are accepted again",
		NULL);
}

void file_guard_size(struct file *f)
{
	struct stat st;

	if (!f->block && fstat(f->fd, &st) == 0 && (uint64_t)st.st_size < f->back.info.size)
		size_is(f, true, (uint64_t)st.st_size);
}

void file_guard_whole(struct file *f)
{
	struct stat st;

	if (!f->block && fstat(f->fd, &st) == 0 && (uint64_t)st.st_size >= f->back.info.size)
		size_is(f, false, (uint64_t)st.st_size);
}

/* ---- events */

/* A change of the link count is an IN_ATTRIB event, one of the size IN_MODIFY, as is each write of ours: after such an event that kind
 * is not asked for until `rested`, so that a file that is written costs a look every PERIOD, and an idle one nothing. */
static int ask(const struct file *f, bool modified)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return inotify_add_watch(
		f->hub->watch.fd, path, IN_ATTRIB | IN_CLOSE_WRITE | (modified ? IN_MODIFY : 0));
}

static void rest(struct file *f)
{
	struct file_hub *h = f->hub;

	if (f->resting_link ||
		(!h->resting && loop_set(h->loop, &h->rested, loop_now(h->loop) + PERIOD) < 0))
		return;
	ask(f, false);
	f->resting_link = &h->resting;
	f->next_resting = h->resting;
	if (f->next_resting)
		f->next_resting->resting_link = &f->next_resting;
	h->resting = f;
}

static void end_rest(struct file *f)
{
	if (!f->resting_link)
		return;
	*f->resting_link = f->next_resting;
	if (f->next_resting)
		f->next_resting->resting_link = f->resting_link;
	f->resting_link = NULL;
}

static void rested(struct loop_timer *t, weir_time now)
{
	struct file_hub *h = container_of(t, struct file_hub, rested);

	(void)now;
	while (h->resting) {
		struct file *f = h->resting;

		end_rest(f);
		ask(f, true);
		file_guard_size(f); /* since the event */
	}
}

static void look_at(struct file *f, uint32_t mask)
{
	look_if_deleted(f);
	file_guard_size(f);
	if (mask & IN_MODIFY)
		rest(f);
	if (mask &
		IN_CLOSE_WRITE) /* by another program; a write of ours beyond the end restores no data */
		file_guard_whole(f);
}

static int by_watch(const void *wd, const void *element)
{
	const struct file *const *f = element;
	const int *a = wd;

	return *a < (*f)->wd ? -1 : *a > (*f)->wd;
}

/* wd -1: some events were lost. */
static void on_event(const struct file_hub *h, int wd, uint32_t mask)
{
	size_t at = 0, end = h->n_watched;

	if (wd >= 0) {
		if (!array_find(h->watched, h->n_watched, &wd, by_watch, &at))
			return;
		end = at + 1;
	}
	for (; at < end; at++)
		for (struct file *f = h->watched[at]; f; f = f->same_watch)
			look_at(f, mask);
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

			on_event(h, e->wd, e->mask);
			at += sizeof(*e) + e->len;
		}
}

static bool start_watch(struct file_hub *h)
{
	if (h->watch.fd >= 0)
		return true;
	h->rested.due = rested;
	h->watch =
		(struct loop_fd){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .ready = on_change};
	if (h->watch.fd >= 0 && loop_add(h->loop, &h->watch, EPOLLIN) < 0) {
		close(h->watch.fd);
		h->watch.fd = -1;
	}
	return h->watch.fd >= 0;
}

/* Without inotify both changes go unnoticed, but for reads beyond the end. */
void file_guard_watch(struct file *f)
{
	struct file_hub *h = f->hub;
	size_t at;

	if (f->block || !start_watch(h))
		return;
	f->wd = ask(f, true);
	if (f->wd < 0)
		return;
	if (array_find(h->watched, h->n_watched, &f->wd, by_watch, &at)) {
		f->same_watch = h->watched[at]->same_watch; /* another volume is the same file */
		h->watched[at]->same_watch = f;
	} else if (array_insert(&h->watched, &h->n_watched, &h->room_watched, at, &f) < 0) {
		inotify_rm_watch(h->watch.fd, f->wd);
		f->wd = -1;
		return;
	}
	look_if_deleted(f); /* before it was watched */
	file_guard_size(f);
}

static void unwatch(struct file *f)
{
	struct file_hub *h = f->hub;
	struct file **link;
	size_t at;

	end_rest(f);
	array_find(h->watched, h->n_watched, &f->wd, by_watch, &at);
	for (link = &h->watched[at]; *link != f;)
		link = &(*link)->same_watch;
	*link = f->same_watch;
	if (h->watched[at])
		return;
	array_remove(h->watched, &h->n_watched, at);
	inotify_rm_watch(h->watch.fd, f->wd);
}

void file_guard_end(struct file *f)
{
	/* Explicitly, as io_uring releases its files slightly after the close. */
	if (f->locked)
		release_locks(f);
	if (f->wd >= 0)
		unwatch(f);
}

void file_guard_free(struct file_hub *h)
{
	if (h->watch.fd < 0)
		return;
	loop_set(h->loop, &h->rested, WEIR_NEVER);
	loop_remove(h->loop, &h->watch);
	close(h->watch.fd);
	free(h->watched);
}
