/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink: the kernel's nbd driver, by its generic netlink family (linux/nbd-netlink.h).
 *
 * All functions return 0 or a negative errno with a message. They need CAP_SYS_ADMIN.
 */
#pragma once

#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mnl_socket;

struct netlink { /* zero it before netlink_open */
	struct mnl_socket *commands;
	struct mnl_socket *events; /* netlink_listen */
	uint16_t family;
	uint32_t group; /* of the driver's messages */
	uint32_t seq;
};

struct netlink_device {   /* a device as it should be; 0 and NULL: not stated */
	int index;        /* of /dev/nbdN; -1: a free one */
	uint64_t size;    /* bytes */
	uint64_t block;   /* bytes */
	uint64_t flags;   /* enum nbd_export_flags */
	uint64_t timeout; /* s, without a reply, until a request is sent on another connection */
	uint64_t dead;    /* s that requests wait for a new connection when all are lost */
	const char *identifier; /* of the volume: the driver refuses sockets for another one */
	const int *sockets;     /* after the handshake; the driver holds them from then on */
	size_t n;
};

/* -ENOENT: the driver is not loaded. */
int netlink_open(struct netlink *n, struct weir_err *err);
void netlink_close(struct netlink *n);

/* Attach a free device. -EBUSY: it is attached. *ret_index: its number. */
int netlink_connect(
	struct netlink *n, const struct netlink_device *d, int *ret_index, struct weir_err *err);
/* Change an attached device: replace its dead connections by `sockets`, of which the driver drops
 * those that it does not need; set its size. -EINVAL: not attached, or to another volume. */
int netlink_reconfigure(struct netlink *n, const struct netlink_device *d, struct weir_err *err);
/* Detach; nothing happens to a device that is not attached. Requests without a reply fail. */
int netlink_disconnect(struct netlink *n, int index, struct weir_err *err);
/* Return true if the device is attached. */
int netlink_attached(struct netlink *n, int index, bool *ret, struct weir_err *err);

/* Receive the driver's messages from now on. *ret_fd becomes readable. */
int netlink_listen(struct netlink *n, int *ret_fd, struct weir_err *err);
/* Read all messages. Return true if a connection of the device was lost, or messages were. */
bool netlink_lost(struct netlink *n, int index);
