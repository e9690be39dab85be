/* SPDX-License-Identifier: BSD-3-Clause */
/* device: see attach.h. */
#include "cli/attach/attach.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "/dev/nbd"

int device_parse(const char *text)
{
	size_t n = strlen(PREFIX),
	       digits = strncmp(text, PREFIX, n) ? 0 : strspn(text + n, "0123456789");

	/* The driver's numbers are minor numbers. */
	return digits && digits < 7 && !text[n + digits] ? (int)strtol(text + n, NULL, 10)
							 : -EINVAL;
}

/* Read the first line of /sys/block/nbdN/NAME; "" if there is none. */
static char *read_line(int index, const char *name, char *ret, size_t len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/nbd%d/%s", index, name);
	f = fopen(path, "re");
	if (!f || !fgets(ret, (int)len, f))
		ret[0] = '\0';
	if (f)
		fclose(f);
	ret[strcspn(ret, "\n")] = '\0';
	return ret;
}

uint64_t device_size(int index)
{
	char text[32];

	return strtoull(read_line(index, "size", text, sizeof(text)), NULL, 10) * 512;
}

static bool names(const char *identifier, const char *name)
{
	struct nbd_uri uri;
	struct weir_err ignored;

	return strcmp(identifier, name) == 0 ||
	       (strstr(identifier, "://") && nbd_uri_parse(identifier, &uri, &ignored) == 0 &&
		       strcmp(uri.name, name) == 0);
}

int device_find(const char *name, struct weir_err *err)
{
	char identifier[NBD_NAME_MAX + 512], path[32];
	int found = -ENOENT, index;
	struct dirent *e;
	DIR *d = opendir("/sys/block");

	while (d && found != -EEXIST && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/dev/%.16s", e->d_name);
		index = device_parse(path);
		if (index < 0 ||
			!names(read_line(index, "backend", identifier, sizeof(identifier)), name))
			continue;
		if (found >= 0)
			found = weir_err_set(err, -EEXIST,
				"'%s' is attached to /dev/nbd%d and /dev/nbd%d: name the device",
				name, found, index);
		else
			found = index;
	}
	if (d)
		closedir(d);
	return found;
}
