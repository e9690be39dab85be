/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: shared by the files of history. */
#pragma once

#include "serve/history/history.h"

#define TIERS   3
#define COLUMNS 12
#define POINTS  (360 + 360 + 288) /* of all tiers */

struct tier {
	unsigned step;  /* s */
	unsigned n, at; /* points; the first one's place */
};
extern const struct tier history_tiers[TIERS];

struct point {
	uint32_t number; /* time of its end ÷ step; 0: none */
	float value[COLUMNS];
};

struct series { /* in memory as in the file */
	uint32_t kind;
	uint32_t used;
	double last; /* time of day of the last sample in which it was active; in the file: of old */
	char name[256];
	struct point points[POINTS];
};

struct head { /* of the file */
	char magic[8];
	uint32_t size, series; /* bytes of a series; their number */
};

struct base { /* what a tier's next point is measured from */
	bool known;
	double day;          /* time of day: the end of its last point */
	double sum[COLUMNS]; /* the counters then */
	struct snapshot_hist *hist;
};

struct live { /* of a series, in this process */
	struct base base[TIERS];
	double value[COLUMNS]; /* of the last sample */
	bool seen;             /* in this snapshot */
	bool saved;            /* the file has its name, so that points may follow */
};

struct history {
	struct series *series; /* mapped: only what is used takes memory */
	struct live *live;
	int fd;               /* of the file; -1: in memory only */
	int wrong;            /* negative errno of the last write to it; 0: it has everything */
	uint32_t *table;      /* by hash of kind and name: index + 1 */
	uint32_t last[TIERS]; /* numbers of the last points of this process; 0: none yet */
	bool crowded; /* some tenant had no series for a time: a new series need not begin with counters of 0 */
};

enum column_type { RATE, GAUGE, PERCENTILE };
struct column {
	const char *name;
	enum column_type type;
	double of; /* a percentile's percent; a counter's units in one of the column */
};
extern const struct column *const history_columns[];
extern const unsigned history_n_columns[];

/* file.c: the memory, and its copy in the file. */
int history_map(struct history *h, const char *folder, struct weir_err *err);
void history_unmap(struct history *h);
/* Write a point of a series to the file, if there is one. */
void history_save(struct history *h, size_t i, const struct point *p);
/* Return the series, or HISTORY_SERIES: there is none. */
size_t history_find(const struct history *h, enum history_kind kind, const char *name);
/* The same, made if it is new; HISTORY_SERIES: there is no room. */
size_t history_find_or_make(struct history *h, enum history_kind kind, const char *name);
