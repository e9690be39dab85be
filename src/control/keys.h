/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keys: the settings of a controller, as a table of keys.
 *
 * A controller declares its settings once. `weir serve`, `weir sim` and `weir policy check` read a
 * map by the table; `weir policy keys` and the manual page print the table.
 *
 *   struct mine { weir_time period; double gain; int mode; };
 *   static const char *const modes[] = {"first", "hold", NULL};
 *   static const struct key mine_keys[] = {
 *     {"period", KEY_TIME, offsetof(struct mine, period), 0.1, 0.01, 60, .help = "step time"},
 *     {"gain", KEY_NUMBER, offsetof(struct mine, gain), 0.8, 0, 1, .help = "part corrected"},
 *     {"tokens", KEY_WORD, offsetof(struct mine, mode), .words = modes, .help = "order or hold"},
 *     {0}};
 *
 * Settings are one block of memory without pointers: memcpy copies them, and memcmp compares two of
 * them. A list of any length follows the structure, in the same block (key_append).
 */
#pragma once

#include "base/yamldoc.h"
#include <stddef.h>

enum key_type {
	KEY_TIME = 1, /* weir_time; default and bounds in seconds */
	KEY_NUMBER,   /* double */
	KEY_WHOLE,    /* uint32_t */
	KEY_SIZE,     /* uint64_t; bytes */
	KEY_IOPS,     /* double; requests per second */
	KEY_FLAG,     /* bool; default 0 or 1 */
	KEY_WORD,     /* int; the index in `words` */
	KEY_TEXT,     /* char[KEY_TEXT_SIZE] */
	KEY_OWN,      /* read by a function of the controller, and not shown */
};
#define KEY_TEXT_SIZE 256
#define KEYS_MOST     40 /* keys of one map */

struct settings { /* a block of settings */
	void *data;
	size_t len;
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset; /* of the value in the settings */
	double otherwise;
	double least, most; /* both 0: any value */
	bool above;         /* `least` itself is refused */
	bool beside;      /* in the resource's map, beside `controller`; else in the controller's */
	bool lab;         /* for experiments only: `weir serve` refuses it without --lab */
	const char *zero; /* word for a 0 outside of the bounds, as in "none"; NULL: no word */
	const char *const *words; /* NULL-terminated */
	/* KEY_OWN: read a value that is present; 0, -EINVAL with a message, or -ENOMEM. */
	int (*read)(yamldoc_node value, struct settings *s, struct weir_err *err);
	const char *shown; /* the default in words, if its number is not meaningful */
};

/* The place of a value; as a designator, so that the fields behind it may be left out. */
#define KEY_AT(type, member) .read = NULL, .offset = offsetof(type, member)

/* Of a key, for the manual: sentences in POD, without default and bounds. A build makes them of <name>/keys.pod. */
struct key_help {
	const char *key, *text;
};

/* Set every key to its default. `data` has `size` bytes. */
void keys_default(const struct key *keys, void *data, size_t size);

/* Read a key of a map into the settings, which hold its default or an earlier value. Return 0,
 * -ENOENT if the map has no such key, -EINVAL with a message and its place, or -ENOMEM. */
int key_read(const struct key *k, yamldoc_node map, struct settings *s, struct weir_err *err);

/* Append `size` bytes to the settings. Return their offset, or -ENOMEM. */
ptrdiff_t key_append(struct settings *s, const void *bytes, size_t size);

/* Collect the names of the keys, with or without the lab keys, of the controller's own map (or
 * beside it), then `more` (NULL-terminated, or NULL), in the form that yamldoc_map takes. `names`
 * has room for KEYS_MOST. Return names. */
const char **keys_names(
	const struct key *keys, bool beside, bool lab, const char *const *more, const char **names);

/* Write the value in these settings as a policy states it; "": a KEY_OWN, or a text that is not there. Return buf. */
char *key_show(const struct key *k, const void *settings, char *buf, size_t len);

/* Write the default, or the bounds, as the manual has them ("2s", "10ms to 60s"). Return buf. */
char *key_show_default(const struct key *k, char *buf, size_t len);
char *key_show_bounds(const struct key *k, char *buf, size_t len);
