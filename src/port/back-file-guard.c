/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-file-guard: a file that others use as well, or delete.
 *
 * SOURCE  QEMU's image locking (block/file-posix.c): a program that uses permission p holds a shared lock
 *         on byte 100 + p of the file, one that forbids others to use p on byte 200 + p. Locks belong to the
 *         open file (OFD, fcntl(2)), so that they end with it, and no other descriptor of the process
 *         releases them.
 * METHOD  As QEMU: take one's own locks first, then look for those of others that they forbid. Of two
 *         that open at once at least one sees the other.
 *         We read (and write), and let nobody else write or resize.
 */
#include "port/back-file.h"
#include "port/log.h"
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
#define USED   100
#define DENIED 200
#define TRIES  25 /* io_uring holds the files of a killed process for a moment longer */
#define PAUSE  (20 * WEIR_MS)

static const struct {
	uint8_t permission;
	bool denied;     /* to others; else used by us */
	bool write_only; /* not if it is opened for reading only */
} ours[] = {
	{READ, false, false}, {WRITE, false, true}, {WRITE, true, false}, {RESIZE, true, false}};
#define N_OURS (sizeof(ours) / sizeof(*ours))

static struct flock one_byte(short type, unsigned at)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

/* 0, -EBUSY, or another negative errno: there are no such locks here. */
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

/* Does another use what we deny, or deny what we use? */
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

static void release(const struct file *f)
{
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = USED, .l_len = 200};

	fcntl(f->fd, F_OFD_SETLK, &l);
}

static int lock_once(const struct file *f)
{
	int r = take_locks(f);

	if (r == 0 && in_conflict(f))
		r = -EBUSY;
	if (r)
		release(f);
	return r;
}

int file_guard_lock(struct file *f, struct weir_err *err)
{
	const struct timespec pause = {.tv_nsec = PAUSE};
	int r = lock_once(f);

	for (int i = 0; r == -EBUSY && i < TRIES; i++) {
		nanosleep(&pause, NULL);
		r = lock_once(f);
	}
	f->locked = r == 0;
	if (r == -EBUSY)
		return weir_err_set(err, r,
			"%s: in use by another process, which has locked it (lock: false shares "
			"it)",
			f->name);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "file-not-locked", "back", f->name, "why",
			strerror(-r), NULL);
	return 0;
}

/* ---- deleted */

static void changed(struct loop_fd *l, uint32_t events)
{
	struct file *f = (struct file *)(void *)((char *)l - offsetof(struct file, watch));
	char text[512];
	struct stat st;

	while (read(l->fd, text, sizeof(text)) > 0)
		;
	if (f->deleted || fstat(f->fd, &st) < 0 || st.st_nlink > 0)
		return;
	f->deleted = true;
	if (!f->back.trouble)
		f->back.trouble = "its file was deleted: what it holds is lost at the end";
	log_event(LOG_LEVEL_ERROR, "file-deleted", "back", f->name, "then",
		"it is served until the gateway ends, and is then gone", NULL);
}

/* The number of an inode's names is an attribute, and its change an event. Without inotify nobody tells. */
int file_guard_watch(struct file *f)
{
	char path[40];
	int r;

	f->watch =
		(struct loop_fd){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .ready = changed};
	if (f->watch.fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	if (!f->block && inotify_add_watch(f->watch.fd, path, IN_ATTRIB) >= 0) {
		r = loop_add(f->loop, &f->watch, EPOLLIN);
		f->watched = r == 0;
		if (r == 0)
			changed(&f->watch, 0); /* it may have gone before */
	}
	if (!f->watched)
		close(f->watch.fd);
	return 0;
}

void file_guard_end(struct file *f)
{
	/* Not left to the close: io_uring lets go of its files a moment later. */
	if (f->locked)
		release(f);
	if (!f->watched)
		return;
	loop_remove(f->loop, &f->watch);
	close(f->watch.fd);
}
