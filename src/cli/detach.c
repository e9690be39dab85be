/* SPDX-License-Identifier: BSD-3-Clause */
/* detach: `weir detach`, end what `weir attach` began. */
#include "cli/attach/attach.h"
#include "cli/common/verb.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

extern const struct verb verb_detach;

enum { FORCE, N_OPTIONS };
static const struct opt options[] = {
	[FORCE] = {"force", 'f', NULL, "also while the device is in use: its requests fail"},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* Return true if the device is mounted, or another program has it for itself. */
static bool in_use(int index)
{
	char path[24];
	int fd;

	snprintf(path, sizeof(path), "/dev/nbd%d", index);
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == EBUSY;
	close(fd);
	return false;
}

static int detach_one(struct netlink *n, const char *volume, bool force)
{
	struct weir_err err = {""};
	int index = device_parse(volume);
	bool attached;

	if (index < 0)
		index = device_find(volume, &err);
	if (index < 0)
		return opts_fail(&verb_detach, "%s: %s", volume,
			index == -ENOENT ? "no device has this volume" : err.text);
	if (netlink_attached(n, index, &attached, &err) < 0 || !attached)
		return opts_fail(
			&verb_detach, "%s: %s", volume, *err.text ? err.text : "not attached");
	if (!force && in_use(index)) {
		opts_fail(&verb_detach, "%s: /dev/nbd%d is in use (unmount it first, or --force)",
			volume, index);
		return 1;
	}
	if (netlink_disconnect(n, index, &err) < 0) {
		opts_fail(&verb_detach, "%s: %s", volume, err.text);
		return 1;
	}
	return 0;
}

static int detach_main(const char *const *values, char **operands, int n)
{
	struct netlink netlink = {0};
	struct weir_err err;
	int failed, status = 0;

	if (n == 0)
		return opts_fail(&verb_detach, "needs a VOLUME or a device, such as /dev/nbd0");
	if (netlink_open(&netlink, &err) < 0) {
		opts_fail(&verb_detach, "%s", err.text);
		return 1;
	}
	for (int i = 0; i < n; i++) { /* a failure does not stop the others */
		failed = detach_one(&netlink, operands[i], values[FORCE]);
		status = failed ? failed : status;
	}
	netlink_close(&netlink);
	return status;
}

const struct verb verb_detach = {
	.name = "detach",
	.summary = "detach a block device that weir attach made",
	.usage = "[OPTION]... VOLUME|/dev/nbdN...",
	.options = options,
	.run = detach_main,
};
