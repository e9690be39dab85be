/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * field: values in a structure, read from text by a table of keys.
 *
 *   struct mine { uint32_t channels; weir_time read; };
 *   static const struct field mine_fields[] = {
 *     {"channels", FIELD_WHOLE, offsetof(struct mine, channels), NULL},
 *     {"read", FIELD_TIME, offsetof(struct mine, read), NULL}, {0}};
 */
#pragma once

#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
	FIELD_TIME = 1,   /* weir_time */
	FIELD_SIZE,       /* uint64_t, bytes */
	FIELD_SIZE32,     /* uint32_t, bytes */
	FIELD_WHOLE,      /* uint32_t */
	FIELD_WHOLE64,    /* uint64_t, at most INT64_MAX */
	FIELD_REAL,       /* double */
	FIELD_BYTES_RATE, /* double, bytes/s */
	FIELD_IOPS,       /* double, requests/s; "10k" and "10k iops" are the same */
	FIELD_FLAG,       /* bool: yes no true false on off 1 0 */
	FIELD_WORD,       /* int: the index in words */
};

struct field { /* a table ends with key NULL and has at most FIELDS_MOST fields */
	const char *key;
	enum field_type type;
	size_t offset;            /* of the value in the structure */
	const char *const *words; /* FIELD_WORD: NULL-terminated */
};
#define FIELDS_MOST 64 /* a set of fields has a bit for each */

/* Read a value into its place in the structure `to`. Return 0, or -EINVAL with a message that does
 * not name the key; `to` is then unchanged. */
int field_read(const struct field *f, const char *text, void *to, struct weir_err *err);

/* Find the field of a key. Return its index, or -ENOENT. */
int field_find(const struct field *fields, const char *key);

/* Collect the keys of a table. `ret_keys` has room for FIELDS_MOST + 1. Return their number. */
size_t field_keys(const struct field *fields, const char **ret_keys);

/* Find one of the words, NULL-terminated. Return its index, or -ENOENT. */
int field_index(const char *const *words, const char *text);
/* The same with 0 for success; else -EINVAL with a message that lists them and suggests the nearest. */
int field_word(const char *text, const char *const *words, int *ret_index, struct weir_err *err);

/* Write the words, separated by commas; cut with "…" if the list does not fit. Return buf. */
char *field_join(const char *const *words, char *buf, size_t len);
