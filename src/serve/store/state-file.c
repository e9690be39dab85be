/* SPDX-License-Identifier: BSD-3-Clause */
/* state-file: the files are small and changes rare: the caller waits for the disk. */
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Give the new file the owner, the group and the mode of the file that it replaces; a file that root makes, the owner and group of
 * the folder: the process that reads it may be another user's. */
static int keep_owner(int dir, const char *name, int fd)
{
	struct stat from, own;
	bool root = geteuid() == 0;
	bool old = fstatat(dir, name, &from, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(from.st_mode);
	mode_t mode = old ? from.st_mode & 0777 : 0600;

	if (fstat(fd, &own) < 0 || (!old && fstat(dir, &from) < 0))
		return -errno;
	if (!old && !root)
		return 0;
	if ((from.st_uid != own.st_uid || from.st_gid != own.st_gid) &&
		fchown(fd, root ? from.st_uid : (uid_t)-1, from.st_gid) < 0) {
		if (root)
			return -errno;
		mode &= ~(mode_t)S_IRWXG; /* it was another group's */
	}
	return mode != (own.st_mode & 0777) && fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Write the new file, `new`, to disk. 0 or a negative errno. */
static int write_new(int dir, const char *new, const char *name, const char *text, size_t len)
{
	int fd, rc;

	unlinkat(dir, new, 0); /* of a crash; and no link of another user is followed */
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = keep_owner(dir, name, fd);
	while (len && rc == 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

int state_file_put(const char *folder, const char *name, const char *text, size_t len)
{
	char new[NAME_MAX + 1];
	int dir, rc;

	if (snprintf(new, sizeof(new), "%s.new", name) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	rc = write_new(dir, new, name, text, len);
	if (rc == 0 && (renameat(dir, new, dir, name) < 0 || fsync(dir) < 0))
		rc = -errno;
	if (rc < 0)
		unlinkat(dir, new, 0);
	close(dir);
	return rc;
}

void state_file_check(const char *folder)
{
	if ((mkdir(folder, 0700) < 0 && errno != EEXIST) ||
		faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
		log_event(LOG_LEVEL_WARNING, "state-unwritable", "folder", folder, "why",
			strerror(errno), NULL);
}

void state_file_aside(const char *folder, const char *name, const char *why)
{
	char from[PATH_MAX], to[PATH_MAX];
	const char *now = "left where it is";

	if (snprintf(from, sizeof(from), "%s/%s", folder, name) < (int)sizeof(from) &&
		snprintf(to, sizeof(to), "%s/%s.damaged", folder, name) < (int)sizeof(to) &&
		rename(from, to) == 0)
		now = strrchr(to, '/') + 1;
	log_event(LOG_LEVEL_WARNING, "state-damaged", "folder", folder, "file", name, "why", why,
		"now", now, NULL);
}

int state_file_open(const char *folder, const char *name)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *why = fd < 0 && errno != ENOENT && errno != ENOTDIR ? strerror(errno) : NULL;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
		why = "not a regular file";
	}
	if (dir >= 0)
		close(dir);
	if (why)
		log_event(LOG_LEVEL_WARNING, "state-unreadable", "folder", folder, "file", name,
			"why", why, NULL);
	return fd;
}

static int load_from(const char *folder, const char *name, int fd, const char *what,
	state_file_reader *reader, void *arg)
{
	json_error_t fault = {.text = ""};
	json_t *root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &fault);
	int rc = root ? reader(root, arg) : -EINVAL;

	if (rc == -EINVAL) {
		if (root)
			snprintf(fault.text, sizeof(fault.text), "not a list of %s", what);
		state_file_aside(folder, name, fault.text);
		rc = 0;
	}
	json_decref(root);
	return rc;
}

int state_file_load(const char *folder, const char *name, const char *what,
	state_file_reader *reader, void *arg, struct weir_err *err)
{
	int fd = state_file_open(folder, name), rc = 0;

	if (fd >= 0) {
		rc = load_from(folder, name, fd, what, reader, arg);
		close(fd);
	}
	return rc < 0 ? no_memory(err) : 0;
}

int state_file_write(const char *folder, const char *name, const char *what, const char *text,
	size_t len, struct weir_err *err)
{
	int rc = state_file_put(folder, name, text, len);

	if (rc < 0) /* -ENOENT would suggest a missing key */
		return weir_err_set(
			err, -EIO, "cannot write %s to %s: %s", what, folder, strerror(-rc));
	return 0;
}

int state_file_save(const char *folder, const char *name, const char *what, struct json_t *root,
	struct weir_err *err)
{
	char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
	int rc;

	json_decref(root);
	if (!text)
		return no_memory(err);
	rc = state_file_write(folder, name, what, text, strlen(text), err);
	free(text);
	return rc;
}
