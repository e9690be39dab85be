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
};

static int open_file(struct audit *a)
{
	struct stat st;

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

static int write_line(struct audit *a, char *text, size_t len)
{
	int rc = follow_name(a);
	ssize_t n;

	if (rc < 0)
		return rc;
	text[len] = '\n'; /* instead of the NUL */
	n = write(a->fd, text, len + 1);
	rc = n < 0 ? -errno : n <= (ssize_t)len ? -ENOSPC : 0;
	text[len] = 0;
	return rc;
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
		log_event(LOG_LEVEL_INFO, "audit", "record", text, NULL);
	} else {
		rc = write_line(a, text, strlen(text));
		if (rc < 0)
			log_event(LOG_LEVEL_ERROR, "audit-unwritten", "file", a->path, "why",
				strerror(-rc), "record", text, NULL);
	}
	free(text);
	json_decref(record);
}
