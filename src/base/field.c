/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/field.h"
#include <weir/units.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

char *field_join(const char *const *words, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; words[i]; i++) {
		size_t size = strlen(words[i]);
		if (used + size + sizeof(", …") > len) {
			snprintf(buf + used, len - used, "%s…", i ? ", " : "");
			break;
		}
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? ", " : "", words[i]);
	}
	return buf;
}

int field_index(const char *const *words, const char *text)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return -ENOENT;
}

int field_word(const char *text, const char *const *words, int *ret_index, struct weir_err *err)
{
	const char *near;
	char list[160];
	int i = field_index(words, text);

	if (i >= 0) {
		*ret_index = i;
		return 0;
	}
	near = weir_err_near(text, words);
	field_join(words, list, sizeof(list));
	return weir_err_set(err, -EINVAL, "\"%.60s\": must be one of %s%s%s%s", text, list,
		near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int read_flag(const char *text, bool *ret, struct weir_err *err)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	}
	return weir_err_set(err, -EINVAL, "\"%.60s\": must be yes or no", text);
}

static int read_whole(const char *text, int64_t most, int64_t *ret, struct weir_err *err)
{
	int r = weir_units_int(text, ret, err);

	if (r == 0 && (*ret < 0 || *ret > most))
		r = weir_err_set(err, -EINVAL, "\"%.60s\": must be between 0 and %lld", text,
			(long long)most);
	return r;
}

static int read_u32(const struct field *f, const char *text, uint32_t *ret, struct weir_err *err)
{
	uint64_t bytes = 0;
	int64_t whole = 0;
	int r = f->type == FIELD_WHOLE ? read_whole(text, UINT32_MAX, &whole, err)
				       : weir_units_size(text, &bytes, err);

	if (r)
		return r;
	if (bytes > UINT32_MAX)
		return weir_err_set(err, -EINVAL, "\"%.60s\": must be less than 4 GiB", text);
	*ret = f->type == FIELD_WHOLE ? (uint32_t)whole : (uint32_t)bytes;
	return 0;
}

static int read_rate(const struct field *f, const char *text, double *ret, struct weir_err *err)
{
	bool iops = f->type == FIELD_IOPS;
	struct weir_rate rate;
	int r;

	if (iops && weir_units_count(text, ret, NULL) == 0)
		return 0;
	r = weir_units_rate(text, &rate, err);
	if (r)
		return r;
	if (rate.unit != (iops ? WEIR_UNIT_REQUESTS : WEIR_UNIT_BYTES))
		return weir_err_set(err, -EINVAL, "\"%.60s\": must be in %s", text,
			iops ? "iops, as in '400 iops'" : "bytes or bits per second");
	*ret = rate.per_second;
	return 0;
}

int field_read(const struct field *f, const char *text, void *to, struct weir_err *err)
{
	void *at = (char *)to + f->offset;
	int64_t whole;
	int r;

	switch (f->type) {
	case FIELD_TIME:
		return weir_units_time(text, at, err);
	case FIELD_SIZE:
		return weir_units_size(text, at, err);
	case FIELD_SIZE32:
	case FIELD_WHOLE:
		return read_u32(f, text, at, err);
	case FIELD_WHOLE64:
		r = read_whole(text, INT64_MAX, &whole, err);
		if (r == 0)
			*(uint64_t *)at = (uint64_t)whole;
		return r;
	case FIELD_REAL:
		return weir_units_count(text, at, err);
	case FIELD_BYTES_RATE:
	case FIELD_IOPS:
		return read_rate(f, text, at, err);
	case FIELD_FLAG:
		return read_flag(text, at, err);
	default:
		return field_word(text, f->words, at, err);
	}
}

int field_find(const struct field *fields, const char *key)
{
	for (int i = 0; fields[i].key; i++)
		if (strcmp(fields[i].key, key) == 0)
			return i;
	return -ENOENT;
}

size_t field_keys(const struct field *fields, const char **ret_keys)
{
	size_t n = 0;

	for (; fields[n].key && n < FIELDS_MOST; n++)
		ret_keys[n] = fields[n].key;
	ret_keys[n] = NULL;
	return n;
}
