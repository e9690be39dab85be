/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts: the values that a controller shows, each with its names, type and unit.
 *
 * A controller describes its facts once, in its own folder. The API, /metrics, weir status, weir top and the
 * simulator's series iterate over the description; none of them names a controller.
 *
 *   kind    a controller: its own values (one row) and tables of rows, e.g. one row a tenant
 *   table   rows of one struct; a row has up to two keys
 *   fact    the place of a value in its row, and its name in each view
 *
 * Rows are plain structs: a copy needs no knowledge of the controller, and a hundred thousand of them cost what the
 * values take. They are filled by the controller on demand and never change afterwards.
 */
#ifndef WEIR_CONTROL_FACTS_H
#define WEIR_CONTROL_FACTS_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- description */

enum facts_type { /* of the struct's member; FACT_AT finds it */
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
	FACTS_AGO,      /* the same: time before the look */
	FACTS_BYTES,
	FACTS_TOKENS,
	FACTS_PART,       /* 0 … 1 */
	FACTS_RATE,       /* requests a second */
	FACTS_TOKEN_RATE, /* tokens a second */
};

enum facts_none {       /* which value means that there is none: null in JSON, "-" in a table */
	FACTS_KNOWN,    /* no value does */
	FACTS_NOT_ZERO, /* 0 */
	FACTS_NO_LIMIT, /* INT64_MAX; +Inf in /metrics */
};

enum facts_place { /* where the fact is shown as JSON */
	FACTS_EVERYWHERE,
	FACTS_IN_STATUS,   /* GET /v1/status only */
	FACTS_IN_STATE,    /* GET /v1/ledger and the file that a restart reads only */
	FACTS_OF_RESOURCE, /* a member of the resource itself, not told again: only a column */
};

struct fact {
	const char *name; /* JSON; NULL: not there */
	const char *metric,
		*help; /* Prometheus: weir_KIND_METRIC, a counter if it ends in _total; NULL: not there */
	const char *title;        /* of a column; NULL: none */
	const char *series, *end; /* simulator: a series, and the value at the end; NULL: none */
	bool later;               /* older files of state do not have it: 0 */
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

struct facts_row {          /* every row but a controller's own begins with it */
	const char *key[2]; /* NULL: one that left */
	uint32_t tenant;    /* index in the policy, where the first key is a tenant */
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
	size_t shown; /* at most so many rows in a table for people; 0: all */
	/* May be NULL. finish: set the members that follow from others, after all others were filled or read.
	 * note: a remark for the table's last column, in text or a literal; "": none. */
	void (*finish)(void *row);
	const char *(*note)(const void *row, char text[FACTS_NOTE]);
};

/* The description of rows of a struct, from an array of facts. */
#define FACTS_OF(row, array)                                                                       \
	.facts = array, .n_facts = sizeof(array) / sizeof(*(array)), .size = sizeof(row)

#define FACTS_TABLES 4 /* of a kind, at most */

struct facts;
struct facts_site { /* what a controller needs to fill its facts */
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
	/* Fill *ret, which is zeroed; `of` is what the controller's facts.h says. Without memory, rows are missing. */
	void (*fill)(const void *of, const struct facts_site *site, struct facts *ret);
	/* Write a sentence about all of it. Of a controller whose state is kept across a restart; else NULL. */
	void (*head)(const void *self, char *text, size_t size);
};

#define FACTS_KINDS_MAX 8
/* The kinds of all controllers that have facts, in the order of their table (control/all/controllers.c). */
const struct facts_kind *facts_kind(size_t i);     /* NULL: there are no more */
size_t facts_index(const struct facts_kind *kind); /* its i */
const struct facts_kind *facts_stateful(void); /* the kind whose state is kept across a restart */

/* ---- values */

struct facts_rows {
	void *rows; /* structs of the table's size */
	size_t n;
};

struct facts {                         /* of one instance of a controller */
	const struct facts_kind *kind; /* NULL: there is none */
	void *self;
	struct facts_rows tables[FACTS_TABLES];
};

static inline void *facts_row(const struct facts_table *t, const struct facts_rows *r, size_t i)
{
	return (char *)r->rows + i * t->size;
}

/* The value as it lies in the row: ns for a time; text: NAN. */
double facts_stored(const struct fact *f, const void *row);
/* The value in the unit that views have: seconds, 0 or 1; text: NAN. FACTS_NO_LIMIT: INFINITY. */
double facts_value(const struct fact *f, const void *row);
bool facts_known(const struct fact *f, const void *row);
const char *facts_text(const struct fact *f, const void *row); /* FACTS_TEXT only */
bool facts_is_whole(const struct fact *f);                     /* JSON writes an integer */
int64_t facts_whole(const struct fact *f, const void *row);    /* its value, of a fact that is */

/* Set a value; false: it does not fit the member. seconds for SECONDS and AGO. */
bool facts_set_whole(const struct fact *f, void *row, int64_t value);
bool facts_set_real(const struct fact *f, void *row, double value);
void facts_set_text(const struct fact *f, void *row, const char *value);

#endif
