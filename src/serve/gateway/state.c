/* SPDX-License-Identifier: BSD-3-Clause */
/* state: write state files. They are small and changes rare: the main thread waits for the disk. */
#include "base/no-memory.h"
#include "serve/gateway/state.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "set.json"

/* ---- files */

/* Write the new file to disk. 0 or a negative errno. */
static int write_new(int dir, const char *name, const char *text, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;

	if (fd < 0)
		return -errno;
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

int gateway_state_put(const char *folder, const char *name, const char *text, size_t len)
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
	rc = write_new(dir, new, text, len);
	if (rc == 0 && (renameat(dir, new, dir, name) < 0 || fsync(dir) < 0))
		rc = -errno;
	if (rc < 0)
		unlinkat(dir, new, 0);
	close(dir);
	return rc;
}

void gateway_state_check(const char *folder)
{
	if ((mkdir(folder, 0700) < 0 && errno != EEXIST) ||
		faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
		log_event(LOG_LEVEL_WARNING, "state-unwritable", "folder", folder, "why",
			strerror(errno), NULL);
}

void gateway_state_aside(const char *folder, const char *name, const char *why)
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

/* ---- lists */

void gateway_state_free(struct gateway_override *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].key);
		free(list[i].value);
	}
	free(list);
}

static int add(struct gateway_override *list, size_t *n, const char *key, const char *value)
{
	struct gateway_override *o = &list[(*n)++];

	o->key = strdup(key);
	o->value = strdup(value);
	return o->key && o->value ? 0 : -ENOMEM;
}

int gateway_state_copy(const struct gateway_override *list, size_t n, const char *except,
	const char *value, struct gateway_override **ret_list, size_t *ret_n)
{
	struct gateway_override *to = calloc(n + 1, sizeof(*to));
	size_t used = 0;
	int rc = to ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!except || strcmp(list[i].key, except) != 0)
			rc = add(to, &used, list[i].key, list[i].value);
	if (rc == 0 && value)
		rc = add(to, &used, except, value);
	if (rc < 0) {
		gateway_state_free(to, used);
		return rc;
	}
	*ret_list = to;
	*ret_n = used;
	return 0;
}

/* ---- reading */

struct gateway_state { /* a list that is read */
	struct gateway_override *list;
	size_t n;
};

static int read_overrides(json_t *root, void *arg)
{
	struct gateway_state *to = arg;
	json_t *list = json_object_get(root, "set"), *one;
	int rc = 0;
	size_t i;

	if (!json_is_array(list))
		return -EINVAL;
	to->list = calloc(json_array_size(list) + 1, sizeof(*to->list));
	if (!to->list)
		return -ENOMEM;
	json_array_foreach(list, i, one)
	{
		const char *key = json_string_value(json_object_get(one, "key"));
		const char *value = json_string_value(json_object_get(one, "value"));

		if (rc == 0)
			rc = key && value ? add(to->list, &to->n, key, value) : -EINVAL;
	}
	if (rc < 0) {
		gateway_state_free(to->list, to->n);
		*to = (struct gateway_state){0};
	}
	return rc;
}

static int load_from(const char *folder, const char *name, int fd, const char *what,
	gateway_state_reader *reader, void *arg)
{
	json_error_t fault = {.text = ""};
	json_t *root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &fault);
	int rc = root ? reader(root, arg) : -EINVAL;

	if (rc == -EINVAL) {
		if (root)
			snprintf(fault.text, sizeof(fault.text), "not a list of %s", what);
		gateway_state_aside(folder, name, fault.text);
		rc = 0;
	}
	json_decref(root);
	return rc;
}

int gateway_state_load(const char *folder, const char *name, const char *what,
	gateway_state_reader *reader, void *arg, struct weir_err *err)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = dir >= 0 ? openat(dir, name, O_RDONLY | O_CLOEXEC) : -1;
	int rc = 0;

	if (fd >= 0) {
		rc = load_from(folder, name, fd, what, reader, arg);
		close(fd);
	} else if (errno != ENOENT) {
		log_event(LOG_LEVEL_WARNING, "state-unreadable", "folder", folder, "why",
			strerror(errno), NULL);
	}
	if (dir >= 0)
		close(dir);
	return rc < 0 ? no_memory(err) : 0;
}

int gateway_state_read(
	const char *folder, struct gateway_override **ret_list, size_t *ret_n, struct weir_err *err)
{
	struct gateway_state s = {0};
	int rc = gateway_state_load(folder, NAME, "overrides", read_overrides, &s, err);

	if (rc < 0)
		return rc;
	*ret_list = s.list;
	*ret_n = s.n;
	return 0;
}

/* ---- writing */

static json_t *make(const struct gateway_override *list, size_t n)
{
	json_t *set = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(set, json_pack("{s:s, s:s}", "key", list[i].key, "value",
						       list[i].value)) < 0) {
			json_decref(set);
			return NULL;
		}
	return json_pack("{s:o}", "set", set);
}

int gateway_state_save(const char *folder, const char *name, const char *what, struct json_t *root,
	struct weir_err *err)
{
	char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
	int rc;

	json_decref(root);
	if (!text)
		return no_memory(err);
	rc = gateway_state_put(folder, name, text, strlen(text));
	free(text);
	if (rc < 0) /* -ENOENT would suggest a missing key */
		return weir_err_set(
			err, -EIO, "cannot write %s to %s: %s", what, folder, strerror(-rc));
	return 0;
}

int gateway_state_write(
	const char *folder, const struct gateway_override *list, size_t n, struct weir_err *err)
{
	return gateway_state_save(folder, NAME, "overrides", make(list, n), err);
}
