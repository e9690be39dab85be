/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "serve/access/audit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct audit {
	char *path; /* NULL: the log */
	int fd;
	bool torn; /* the file ends with a part of a line, which could not be removed */
};

static int open_file(struct audit *a)
{
	struct stat st;

	a->torn = false;
	a->fd = open(a->path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0640);
	if (a->fd < 0)
		return -errno;
	if (fstat(a->fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close(a->fd);
	a->fd = -1;
	return -EINVAL;
}

int audit_open(const char *path, struct audit **ret_audit, struct weir_err *err)
{
	struct audit *a = calloc(1, sizeof(*a));
	int rc;

	if (!a || (path && !(a->path = strdup(path)))) {
		free(a);
		return no_memory(err);
	}
	a->fd = -1;
	rc = path ? open_file(a) : 0;
	if (rc < 0) {
		audit_close(a);
		return weir_err_set(err, rc, "audit: %s: %s", path,
			rc == -EINVAL ? "not a regular file" : strerror(-rc));
	}
	*ret_audit = a;
	return 0;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	if (a->fd >= 0)
		close(a->fd);
	free(a->path);
	free(a);
}

/* Open the file again if its name leads to another one. */
static int follow_name(struct audit *a)
{
	struct stat named, ours;

	if (a->fd >= 0 && stat(a->path, &named) == 0 && fstat(a->fd, &ours) == 0 &&
		named.st_ino == ours.st_ino && named.st_dev == ours.st_dev)
		return 0;
	if (a->fd >= 0)
		close(a->fd);
	return open_file(a);
}

/* Remove the last n bytes, a part of a line, so that the next line can be parsed. */
static bool undo(const struct audit *a, off_t before, ssize_t n)
{
	struct stat st;

	return fstat(a->fd, &st) == 0 && st.st_size == before + n && ftruncate(a->fd, before) == 0;
}

static int write_line(struct audit *a, char *text, size_t len)
{
	int rc = follow_name(a);
	struct stat st;
	ssize_t n;

	if (rc < 0)
		return rc;
	if (a->torn && write(a->fd, "\n", 1) != 1)
		return -ENOSPC;
	a->torn = false;
	if (fstat(a->fd, &st) < 0)
		return -errno;
	text[len] = '\n'; /* instead of the NUL */
	n = write(a->fd, text, len + 1);
	rc = n < 0 ? -errno : n <= (ssize_t)len ? -ENOSPC : 0;
	text[len] = 0;
	a->torn = rc < 0 && n > 0 && !undo(a, st.st_size, n);
	return rc;
}

/* A refused request has changed nothing, and any client with some role can send many. The others are not refused: one that failed
 * for an error of the server may have changed something. */
static bool is_refused(const json_t *record)
{
	json_int_t status = json_integer_value(json_object_get(record, "status"));

	return status >= 400 && status < 500;
}

static void to_log(bool refused, const char *text)
{
	if (refused)
		log_event(LOG_LEVEL_INFO, "audit-refused", "record", text, NULL);
	else
		log_always(LOG_LEVEL_INFO, "audit", "record", text, NULL);
}

static void unwritten(const struct audit *a, bool refused, int rc, const char *text)
{
	if (refused)
		log_event(LOG_LEVEL_ERROR, "audit-unwritten", "file", a->path, "why", strerror(-rc),
			"record", text, NULL);
	else
		log_always(LOG_LEVEL_ERROR, "audit-unwritten", "file", a->path, "why",
			strerror(-rc), "record", text, NULL);
}

static void add_time(json_t *record)
{
	char text[40];
	size_t n;
	struct timespec now;
	struct tm at;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &at);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &at);
	snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / 1000000);
	json_object_set_new(record, "time", json_string(text));
}

void audit_put(struct audit *a, json_t *record)
{
	char *text = NULL;
	int rc;

	if (record) {
		add_time(record);
		text = json_dumps(record, JSON_COMPACT | JSON_SORT_KEYS);
	}
	if (!text) {
		log_event(LOG_LEVEL_ERROR, "audit-lost", "why", "out of memory", NULL);
	} else if (!a->path) {
		to_log(is_refused(record), text);
	} else {
		rc = write_line(a, text, strlen(text));
		if (rc < 0)
			unwritten(a, is_refused(record), rc, text);
	}
	free(text);
	json_decref(record);
}
