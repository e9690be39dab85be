/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-site: the servers of weir bench gateway, ours and others', and the folder in which they live.
 *
 * All listen on unix sockets. Ours are given a policy of SITE_TENANTS tenants with an export each, of
 * SITE_REGION bytes; the others have one export, of which parts are used.
 */
#ifndef WEIR_BENCH_BENCH_SITE_H
#define WEIR_BENCH_BENCH_SITE_H

#include <weir/err.h>
#include "cli/common/process.h"
#include <stdbool.h>
#include <stddef.h>

#define SITE_TENANTS 50
#define SITE_REGION                                                                                \
	(16ull << 20) /* bytes of each export: written once, so that reads find something */
#define SITE_CORE 0   /* where a pinned server runs */

enum site_server {
	SITE_BARE,  /* our loop without a gate */
	SITE_GATED, /* 50 tenants, each with a weight, a min and a max */
	SITE_NBDKIT,
	SITE_NBDKIT_RATE,
	SITE_QEMU,
	SITE_UPSTREAM,     /* ours without a gate: what the proxies lead to */
	SITE_PROXY,        /* the gate's 50 tenants in front of it */
	SITE_NBDKIT_PROXY, /* nbdkit in front of it */
	SITE_MODEL,        /* two tenants of equal weight on a device of 8 x 100 us */
	SITE_WIDE,         /* as SITE_GATED, with a window that holds nobody back … */
	SITE_PARDA,        /* … and with PARDA, which leaves it so wide */
	SITE_FILE,         /* as SITE_GATED, on a file */
	SITE_NBDKIT_FILE,  /* nbdkit on a file */
	SITE_SERVERS
};

struct site {
	char dir[64];
	bool pin;                   /* there are cores to pin to */
	bool missing[SITE_SERVERS]; /* is not installed */
};

int site_new(struct site *s, struct weir_err *err); /* to be freed also when it fails */
void site_free(const struct site *s);
/* Starts it and waits until it listens: 0, -ENOENT (not installed; s->missing says so, too) or a
 * negative errno. A proxy's upstream must run before. pin: on SITE_CORE. */
int site_start(
	struct site *s, enum site_server which, bool pin, struct peer *ret, struct weir_err *err);
void site_socket(const struct site *s, enum site_server which, char *ret, size_t len);
bool site_ours(enum site_server which);
bool site_divided(enum site_server which); /* has an export for each job */

#endif
