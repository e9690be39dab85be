/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history: what tenants and resources did in the last day, in bounded memory.
 *
 * LAW     Each series has three rings of points: 5 s for 30 minutes, 1 minute for 6 hours, 5 minutes for 24 hours. A rate is a
 *         counter's difference between the ends of its point over the time between them, and a percentile is of the requests that
 *         were answered between the two snapshots behind these ends: no average of averages. So rate · step, summed over points,
 *         is the counter's growth. A snapshot comes after an end; of its growth so much is the point's as of its time.
 * METHOD  The owner takes a snapshot every HISTORY_STEP and hands it over with the time of day. A point is found by its number,
 *         time ÷ step, modulo the ring: what is older is overwritten, and a number that does not fit is no point.
 * MEMORY  HISTORY_SERIES rings of 52 kB each, allocated at first use; a further tenant replaces the one that was idle for
 *         longest, but none that is active. Besides, three histograms without their empty parts for each tenant.
 * FILE    With a folder the rings are copied to the file `history` in it, each point when it ends: they survive a restart, and a
 *         crash of the process. A file of another format, or a damaged one, is begun anew. Points that cannot be written stay in
 *         memory.
 *
 * One thread.
 */
#pragma once

#include "serve/snapshot/snapshot.h"
#include <stdio.h>

#define HISTORY_SERIES 1000
#define HISTORY_STEP   (5 * WEIR_SEC) /* of the finest points */
#define HISTORY_SPAN   86400          /* s */

enum history_kind { HISTORY_GATEWAY, HISTORY_TENANT, HISTORY_RESOURCE };

struct history;
/* folder: must exist; NULL: the history is kept in memory only. -EBUSY: another process has the file. */
int history_new(const char *folder, struct history **ret, struct weir_err *err);
void history_free(struct history *h);

/* Take the measurements of now; day: seconds since 1970. Return the number of active tenants for which there was no room. */
size_t history_take(struct history *h, const struct snapshot *s, double day);

/* Return why the file did not take all since the last call, a negative errno, or 0. */
int history_wrong(struct history *h);

/* Write {"step_s", "columns": [name, …], "points": [[time, value, …], …]}: the last `span` seconds up to `day` in the finest points
 * that reach so far back. A value that is not known is null; there are no points of times at which no snapshot was taken. name:
 * of a tenant or resource; "" for the gateway. 0, or -ENOENT: there is no such series. */
int history_write(const struct history *h, enum history_kind kind, const char *name, double span,
	double day, FILE *to);
