/* SPDX-License-Identifier: BSD-3-Clause */
/* attach: an export as a block device of this machine; shared by `weir attach`, its watch, and `weir detach`. */
#pragma once

#include "cli/attach/netlink.h"
#include "serve/back/nbd-uri.h"

#define ATTACH_CONNECTIONS                                                                         \
	64 /* at most: more help no device, and a message of netlink has no room for many */

struct attach {
	struct netlink netlink;
	struct nbd_uri uri;
	unsigned connections; /* where the export allows several */
	bool read_only;
	struct netlink_device device; /* as asked for; .index: once it is attached */
	char *found; /* URI of a volume that the gateway named; NULL: it was given */
};

/* Give the attached device new connections instead of dead ones, and the export's size if it grew. */
int attach_again(struct attach *a, struct weir_err *err);
/* Set the device's size to the export's if it grew. *ret_size: the new size, 0: as before. -ENOSPC: it shrank. */
int attach_grow(struct attach *a, uint64_t *ret_size, struct weir_err *err);
/* Attach again and grow whenever needed, until the device is detached or SIGTERM. Return the exit status. */
int watch_run(struct attach *a);

/* device.c: devices as /sys shows them. */

/* Parse "/dev/nbd3". Return its number, or -EINVAL. */
int device_parse(const char *text);
/* Find the device of the volume: `name` is its identifier, or the export in it. Return its number, -ENOENT, or -EEXIST
 * and a message: there are several. */
int device_find(const char *name, struct weir_err *err);
uint64_t device_size(int index); /* bytes */
