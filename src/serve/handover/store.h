/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: a hand-over through systemd's descriptor store (FileDescriptorStoreMax=), for `systemctl restart`: the process ends before
 * the next one starts, and the service manager keeps what is passed on.
 *
 * METHOD  A stop and a restart begin with the same signal. Which it is says the unit's job (org.freedesktop.systemd1): it is a
 *         restart until the new process starts. Without a bus, or a store, it counts as a stop.
 *         systemd 252 keeps the store while the unit has a job, or will be restarted; so also after a start that failed, with
 *         Restart=. It is empty after a stop.
 *         The record's memfd is stored last: without it the rest is worth nothing. FDPOLL=0, as a socket whose client has left
 *         must not be removed in between.
 */
#pragma once

#include "serve/handover/record.h"

#define STORE_NAME                                                                                 \
	"weir" /* of each descriptor, in LISTEN_FDNAMES: that string has 128 KiB at most */

/* Return true if this service is being restarted, and the store has room for so many descriptors. Waits for the bus, 1 s at
 * most. */
bool store_is_restart(size_t descriptors);
/* Store the descriptors, and the memfd behind them. 0 or a negative errno; then the store is empty. */
int store_put(int memfd, const struct record_fds *fds);
void store_clear(void);
