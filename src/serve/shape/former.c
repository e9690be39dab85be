/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/former.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t device_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) < 0 ? 0 : st.st_ino;
}

/* Make the folder and those above it. */
static int make_folders(char *path)
{
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			if (mkdir(path, 0755) < 0 && errno != EEXIST)
				return -errno;
			*p = '/';
		}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int device_state_open(const char *folder, struct device_state *ret, struct weir_err *err)
{
	struct device_state s = {.lock = -1};
	char path[sizeof(s.folder) + 8];
	int r;

	if ((size_t)snprintf(s.folder, sizeof(s.folder), "%s/%llu", folder,
		    (unsigned long long)device_namespace()) >= sizeof(s.folder))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", folder);
	r = make_folders(s.folder);
	snprintf(path, sizeof(path), "%s/lock", s.folder);
	if (r == 0 && (s.lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		r = -errno;
	if (r)
		return weir_err_set(err, r, "%s: %s", s.folder, strerror(-r));
	if (flock(s.lock, LOCK_EX | LOCK_NB) < 0) {
		close(s.lock);
		return weir_err_set(err, -EBUSY, "a shaper runs in this network namespace");
	}
	*ret = s;
	return 0;
}

void device_state_close(struct device_state *s)
{
	close(s->lock);
}

static void path_of(const struct device_state *s, const char *device, char ret[320])
{
	snprintf(ret, 320, "%s/%s.json", s->folder, device);
}

/* The number of this boot. */
static void read_boot(char ret[64])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	ret[0] = '\0';
	if (f && !fgets(ret, 64, f))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void to_hex(const uint8_t *from, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		sprintf(ret + 2 * i, "%02x", from[i]);
	ret[2 * n] = '\0';
}

static bool from_hex(const char *text, struct tc_queue *to)
{
	size_t n = strlen(text) / 2;
	unsigned byte;

	for (size_t i = 0; n <= TC_OPTIONS && i < n; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		to->options[i] = (uint8_t)byte;
	}
	to->len = n;
	return n <= TC_OPTIONS;
}

int former_write(const struct device_state *s, const char *device, const struct former *state,
	struct weir_err *err)
{
	char path[320], next[328], boot[64], hex[2 * TC_OPTIONS + 1];
	int failed;
	json_t *j;

	path_of(s, device, path);
	snprintf(next, sizeof(next), "%s.new", path);
	read_boot(boot);
	to_hex(state->root.options, state->root.len <= TC_OPTIONS ? state->root.len : 0, hex);
	j = json_pack("{ss, sI, sb, s{ss, sI, ss}}", "boot", boot, "segments",
		(json_int_t)state->segments, "clsact", state->clsact, "root", "kind",
		state->root.kind, "handle", (json_int_t)state->root.handle, "options", hex);
	failed = !j || json_dump_file(j, next, JSON_INDENT(1)) < 0 || rename(next, path) < 0;
	json_decref(j);
	return failed ? weir_err_set(err, -EIO, "%s: cannot be written", path) : 0;
}

int former_read(
	const struct device_state *s, const char *device, struct former *ret, struct weir_err *err)
{
	struct former st = {0};
	const char *boot, *kind, *options;
	char path[320], now[64];
	json_int_t segments, handle;
	int clsact, bad;
	json_t *j;

	path_of(s, device, path);
	if (access(path, F_OK) < 0)
		return -ENOENT;
	j = json_load_file(path, 0, NULL);
	bad = !j ||
	      json_unpack(j, "{ss, sI, sb, s{ss, sI, ss}}", "boot", &boot, "segments", &segments,
		      "clsact", &clsact, "root", "kind", &kind, "handle", &handle, "options",
		      &options) < 0 ||
	      strlen(kind) >= sizeof(st.root.kind) || !from_hex(options, &st.root);
	read_boot(now);
	if (!bad && strcmp(boot, now) != 0) {
		json_decref(j);
		return -ENOENT;
	}
	if (!bad) {
		st.segments = (uint32_t)segments;
		st.clsact = clsact;
		st.root.handle = (uint32_t)handle;
		strcpy(st.root.kind, kind);
		*ret = st;
	}
	json_decref(j);
	return bad ? weir_err_set(err, -EINVAL, "%s: not a file of a device's state", path) : 0;
}

void former_remove(const struct device_state *s, const char *device)
{
	char path[320];

	path_of(s, device, path);
	unlink(path);
}
