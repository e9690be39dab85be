/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts: the values that a controller shows, each with its names, type and unit.
 *
 * A controller describes its facts once, in its own folder. The API, /metrics, weir status, weir
 * top and the simulator's series iterate over the description; none of them names a controller.
 *
 *   kind    a controller: its own values (one row) and tables of rows, e.g. one row a tenant
 *   table   rows of one struct; a row has up to two keys
 *   fact    the place of a value in its row, and its name in each view
 *
 * Rows are plain structs without pointers to the controller, so they can be copied. The controller
 * fills them on demand; they never change afterwards.
 */
#pragma once

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- description */

enum facts_type { /* type of the struct's member; FACT_AT derives it */
	FACTS_U64,
	FACTS_I64,
	FACTS_U32,
	FACTS_I32,
	FACTS_REAL, /* double; NAN: not known */
	FACTS_BOOL,
	FACTS_TEXT, /* const char *; NULL: not known */
};

enum facts_unit {
	FACTS_COUNT,    /* whole */
	FACTS_NUMBER,   /* any other number without a unit */
	FACTS_REQUESTS, /* a mean, or an estimate */
	FACTS_SECONDS,  /* ns in the struct, seconds everywhere else */
	FACTS_AGO,      /* ns as above: time before the snapshot */
	FACTS_BYTES,
	FACTS_TOKENS,
	FACTS_PART,       /* 0 … 1 */
	FACTS_RATE,       /* requests a second */
	FACTS_TOKEN_RATE, /* tokens a second */
};

enum facts_none {       /* which value means "none": null in JSON, "-" in a table */
	FACTS_KNOWN,    /* no value does */
	FACTS_NOT_ZERO, /* 0 */
	FACTS_NO_LIMIT, /* INT64_MAX; +Inf in /metrics */
};

enum facts_place { /* where the fact is shown as JSON */
	FACTS_EVERYWHERE,
	FACTS_IN_STATUS,   /* GET /v1/status only */
	FACTS_IN_STATE,    /* only GET /v1/ledger and the file that a restart reads */
	FACTS_OF_RESOURCE, /* already a member of the resource in JSON: only a column */
};

struct fact {
	const char *name; /* member in JSON; NULL: not in JSON */
	/* Prometheus: weir_KIND_METRIC, a counter if it ends in _total; NULL: no metric */
	const char *metric, *help;
	const char *title;        /* of a column; NULL: no column */
	const char *series, *end; /* simulator: a series, and the value at the end; NULL: neither */
	bool later;               /* absent in older state files: 0 */
	enum facts_place place;
	enum facts_none none;
	enum facts_unit unit;
	enum facts_type type;
	size_t offset;
};

#define FACT_AT(row, member)                                                                       \
	.offset = offsetof(row, member), .type = _Generic(((row *)0)->member,                      \
		uint64_t: FACTS_U64,                                                               \
		int64_t: FACTS_I64,                                                                \
		uint32_t: FACTS_U32,                                                               \
		int32_t: FACTS_I32,                                                                \
		double: FACTS_REAL,                                                                \
		bool: FACTS_BOOL,                                                                  \
		const char *: FACTS_TEXT)

struct facts_row {          /* first member of every row but a controller's own */
	const char *key[2]; /* NULL: a job that left */
	uint32_t tenant;    /* index in the policy, if the first key is a tenant */
};

#define FACTS_NOTE 160 /* bytes */

struct facts_table {
	const char *name; /* JSON member that lists the rows */
	struct {
		const char *name, *label, *title; /* JSON, /metrics, column */
	} keys[2];                                /* name NULL: fewer */
	const struct fact *facts;
	size_t n_facts, size; /* size: of a row */
	enum facts_place place;
	bool tenants; /* the first key is a tenant, and rows are in the policy's order */
	size_t shown; /* most rows in a printed table; 0: all */
	/* All may be NULL. finish: set the members that follow from others, after these were filled
	 * or read. note: write a remark for the table's last column into text, or return a literal;
	 * "": no remark. */
	void (*finish)(void *row);
	const char *(*note)(const void *row, char text[FACTS_NOTE]);
};

/* The description of rows of a struct, from an array of facts. */
#define FACTS_OF(row, array)                                                                       \
	.facts = array, .n_facts = sizeof(array) / sizeof(*(array)), .size = sizeof(row)

#define FACTS_TABLES 4 /* of a kind, at most */

struct facts;
struct facts_site { /* input from which a controller fills its facts */
	struct arena *memory;
	const char *(*path)(void *arg, size_t tenant); /* lives as long as the memory */
	void *arg;
};

struct facts_kind {
	const char *name;                        /* as in a policy; member of a resource in JSON */
	const char *label;                       /* for people */
	struct facts_table self;                 /* one row without keys */
	struct facts_table tables[FACTS_TABLES]; /* size 0 ends them */
	struct facts_table whole; /* rows of the whole gateway, not of a resource; size 0: none */
	/* Fill *ret, which is zeroed; the controller's facts.h gives the type of `of`. If memory
	 * runs out, rows are missing. */
	void (*fill)(const void *of, const struct facts_site *site, struct facts *ret);
	/* Write a sentence about the whole state. Only for a controller whose state is kept across
	 * a restart; else NULL. */
	void (*head)(const void *self, char *text, size_t size);
};

#define FACTS_KINDS_MAX 8
/* The kinds of all controllers that have facts, in the order of their table
 * (control/all/controllers.c). */
const struct facts_kind *facts_kind(size_t i);     /* NULL: no more kinds */
size_t facts_index(const struct facts_kind *kind); /* index of the kind */
const struct facts_kind *facts_stateful(void); /* the kind whose state is kept across a restart */

/* ---- values */

struct facts_rows {
	void *rows; /* structs of the table's size */
	size_t n;
};

struct facts {                         /* of one instance of a controller */
	const struct facts_kind *kind; /* NULL: no facts */
	void *self;
	struct facts_rows tables[FACTS_TABLES];
};

static inline void *facts_row(const struct facts_table *t, const struct facts_rows *r, size_t i)
{
	return (char *)r->rows + i * t->size;
}

/* Return the value as stored in the row: ns for a time; text: NAN. */
double facts_stored(const struct fact *f, const void *row);
/* Return the value in the unit of the views: seconds, 0 or 1; text: NAN. FACTS_NO_LIMIT:
 * INFINITY. */
double facts_value(const struct fact *f, const void *row);
bool facts_known(const struct fact *f, const void *row);
const char *facts_text(const struct fact *f, const void *row); /* FACTS_TEXT only */
bool facts_is_whole(const struct fact *f);                     /* JSON writes an integer */
int64_t facts_whole(const struct fact *f, const void *row);    /* the value of a whole fact */

/* Set a value, in seconds for SECONDS and AGO. Return false if it does not fit the member. */
bool facts_set_whole(const struct fact *f, void *row, int64_t value);
bool facts_set_real(const struct fact *f, void *row, double value);
void facts_set_text(const struct fact *f, void *row, const char *value);
