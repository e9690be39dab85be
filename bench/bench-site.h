/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-site: the servers of weir bench gateway, ours and others', and their folder.
 *
 * All listen on unix sockets. Ours have a policy of SITE_TENANTS tenants with an export each, of
 * SITE_REGION bytes, unless stated; the others have one export, of which each job uses a part.
 */
#pragma once

#include <weir/err.h>
#include "cli/common/files.h"
#include "cli/common/process.h"
#include <stdbool.h>
#include <stddef.h>

#define SITE_TENANTS 50
#define SITE_REGION  (16ull << 20)  /* bytes of each export, written once before it is read */
#define SITE_MOST    1000           /* volumes, and tenants */
#define SITE_SMALL   (256ull << 10) /* bytes of each of them */
#define SITE_CORE    0              /* core of a pinned server */

enum site_server {
	SITE_BARE,          /* our loop without a gate */
	SITE_GATED,         /* 50 tenants, each with a weight, a min and a max */
	SITE_PLANNED,       /* the same, with a plan of four pairs for each of them in force … */
	SITE_PLANNED_SHORT, /* … of less than a second, as those of most traces are */
	SITE_NBDKIT,
	SITE_NBDKIT_RATE,
	SITE_QEMU,
	SITE_UPSTREAM,     /* ours without a gate: the upstream of the proxies */
	SITE_PROXY,        /* the gate's 50 tenants in front of the upstream */
	SITE_NBDKIT_PROXY, /* nbdkit in front of the upstream */
	SITE_MODEL,        /* two tenants of equal weight on a device of 8 x 100 us */
	SITE_WIDE,         /* as SITE_GATED, with a window that is never full … */
	SITE_PARDA,        /* … and with PARDA, which keeps it so wide */
	SITE_FILE,         /* as SITE_GATED, on a file */
	SITE_NBDKIT_FILE,  /* nbdkit on a file */
	SITE_VOLUMES, /* SITE_MOST volumes of SITE_SMALL bytes with a tenant each, behind one gate */
	SITE_VOLUME,  /* one volume of as many bytes, and one tenant */
	SITE_LOCAL,   /* no server: SITE_FILE's file, read directly */
	SITE_SERVERS
};

struct site {
	char dir[FILES_SCRATCH];
	bool pin;                   /* there are enough cores to pin processes */
	bool missing[SITE_SERVERS]; /* not installed */
};

/* Make the folder and its files; files_remove_scratch() removes them, also if this fails. */
int site_new(struct site *s, struct weir_err *err);
/* Start a server and wait until it listens. Return 0, -ENOENT (not installed; s->missing is set,
 * too) or a negative errno. Start the upstream of a proxy first. pin: on SITE_CORE. */
int site_start(
	struct site *s, enum site_server which, bool pin, struct peer *ret, struct weir_err *err);
/* Write the path of the file of SITE_FILE. */
void site_file(const struct site *s, char *ret, size_t len);
void site_socket(const struct site *s, enum site_server which, char *ret, size_t len);
bool site_ours(enum site_server which);
bool site_divided(enum site_server which);    /* has an export for each job */
uint64_t site_region(enum site_server which); /* bytes of an export, or of a job's part of it */
