/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve-disks: notice resources on one disk, between which weights do not act: each gate sees its own requests only.
 *
 * METHOD  The storage behind a back end has a name: of a file or block device the whole disk, found by its device number
 *         in /sys/dev/block through partitions and mapped devices; of an NBD server its address. A file system without a
 *         device, as NFS, is named by its number. Memory and models share nothing.
 */
#include "cli/serve.h"
#include "serve/back/name.h"
#include "serve/back/nbd-uri.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DISK 600 /* bytes of a name: an address of NBD, or less */

/* Replace the folder of a mapped device in /sys by that of the device below it, if that is only one. */
static bool descend(char *path)
{
	char slaves[PATH_MAX], below[PATH_MAX] = "";
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(slaves, sizeof(slaves), "%.*s/slaves", PATH_MAX - 16, path);
	d = opendir(slaves);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && n++ == 0)
			snprintf(below, sizeof(below), "/sys/class/block/%s", e->d_name);
	if (d)
		closedir(d);
	return n == 1 && realpath(below, path);
}

static void name_disk(dev_t device, char *ret)
{
	char link[64], path[PATH_MAX], partition[PATH_MAX];

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(device), minor(device));
	if (!realpath(link, path)) {
		snprintf(ret, DISK, "file system %u:%u", major(device), minor(device));
		return;
	}
	do {
		snprintf(partition, sizeof(partition), "%.*s/partition", PATH_MAX - 16, path);
		if (access(partition, F_OK) == 0)
			*strrchr(path, '/') = '\0';
	} while (descend(path));
	snprintf(ret, DISK, "disk %.255s", strrchr(path, '/') + 1);
}

/* Name the storage of a back end. Return false if it is not known. */
static bool name_storage(const char *back, char *ret)
{
	struct nbd_uri uri;
	struct weir_err ignored;
	struct stat st;
	char path[PATH_MAX];

	if (strncmp(back, "nbd", 3) == 0 && nbd_uri_parse(back, &uri, &ignored) == 0) {
		snprintf(ret, DISK, "server %s", uri.address);
		return true;
	}
	if (strncmp(back, "file:", 5) != 0)
		return false;
	back += 5;
	snprintf(path, sizeof(path), "%.*s", (int)(back_query(back) - back), back);
	if (stat(path, &st) < 0)
		return false;
	name_disk(S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev, ret);
	return true;
}

/* Return the back end of a resource: its own, or that of its first volume. */
static const char *back_of(const struct weir_policy *p, size_t resource)
{
	if (p->resources[resource].back)
		return p->resources[resource].back;
	for (size_t i = 0; i < p->n_exports; i++)
		if (p->exports[i].resource == (int)resource && p->exports[i].back)
			return p->exports[i].back;
	return NULL;
}

void serve_disks_hint(const struct weir_policy *p, FILE *to)
{
	char(*names)[DISK] = calloc(p->n_resources + 1, sizeof(*names));
	struct weir_err err;

	for (size_t i = 0; names && p->n_tenants > 1 && i < p->n_resources; i++) {
		const char *back = back_of(p, i);

		if (!back || !name_storage(back, names[i]))
			continue;
		for (size_t k = 0; k < i; k++) {
			if (strcmp(names[i], names[k]) != 0)
				continue;
			weir_err_at(&err, 0,
				p->resources[i].back ? p->resources[i].back_at : p->resources[i].at,
				"'%s' and '%s' are on one %s, and weights do not act between two "
				"resources: make them "
				"one resource with volumes (hint)",
				p->resources[k].name, p->resources[i].name, names[i]);
			fprintf(to, "%s\n", err.text);
			break;
		}
	}
	free(names);
}
