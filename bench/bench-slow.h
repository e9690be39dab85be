/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-slow: clients of an NBD server that read their replies slowly, for weir bench gateway.
 *
 * Each keeps 1 MiB of reads in flight, half of the clients in requests of 4 KiB and half of 64 KiB,
 * and receives 16 KiB every 16 ms: 1 MB/s. So the server's socket to it is always full.
 */
#pragma once

#include <weir/err.h>

struct slow;

/* Connect n clients to the export behind a unix socket; they read on a separate thread. */
int slow_start(const char *socket, const char *export_, unsigned n, struct slow **ret_slow,
	struct weir_err *err);
void slow_stop(struct slow *s); /* NULL is allowed */
