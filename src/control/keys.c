/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/keys.h"
#include "base/array.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values */

/* Return the stored value in the unit of the bounds. */
static double number_of(const struct key *k, const void *at)
{
	switch (k->type) {
	case KEY_TIME:
		return (double)*(const weir_time *)at / WEIR_SEC;
	case KEY_WHOLE:
		return *(const uint32_t *)at;
	case KEY_SIZE:
		return (double)*(const uint64_t *)at;
	default:
		return *(const double *)at;
	}
}

static void set_number(const struct key *k, void *at, double value)
{
	switch (k->type) {
	case KEY_TIME:
		*(weir_time *)at = (weir_time)llround(value * WEIR_SEC);
		break;
	case KEY_WHOLE:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case KEY_SIZE:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case KEY_NUMBER:
	case KEY_IOPS:
		*(double *)at = value;
		break;
	case KEY_FLAG:
		*(bool *)at = value != 0;
		break;
	case KEY_WORD:
		*(int *)at = (int)value;
		break;
	case KEY_TEXT:
	case KEY_OWN:
		break;
	}
}

void keys_default(const struct key *keys, void *data, size_t size)
{
	memset(data, 0, size);
	for (const struct key *k = keys; k->name; k++)
		set_number(k, (char *)data + k->offset, k->otherwise);
}

ptrdiff_t key_append(struct settings *s, const void *bytes, size_t size)
{
	size_t offset = s->len;

	if (array_resize_to(&s->data, offset + size, 1) < 0)
		return -ENOMEM;
	s->len += size;
	memcpy((char *)s->data + offset, bytes, size);
	return (ptrdiff_t)offset;
}

/* ---- show */

static bool is_bounded(const struct key *k)
{
	return k->least != 0 || k->most != 0;
}

static char *show_number(const struct key *k, double value, char *buf, size_t len)
{
	switch (k->type) {
	case KEY_TIME:
		return weir_units_show_time((weir_time)llround(value * WEIR_SEC), buf, len);
	case KEY_SIZE:
		return weir_units_show_size((uint64_t)value, buf, len);
	case KEY_IOPS:
		return weir_units_show_rate(
			(struct weir_rate){value, WEIR_UNIT_REQUESTS}, buf, len);
	default:
		snprintf(buf, len, "%.9g", value);
		return buf;
	}
}

char *key_show(const struct key *k, const void *settings, char *buf, size_t len)
{
	const void *at = (const char *)settings + k->offset;

	if (k->type == KEY_WORD)
		snprintf(buf, len, "%s", k->words[*(const int *)at]);
	else if (k->type == KEY_FLAG)
		snprintf(buf, len, "%s", *(const bool *)at ? "true" : "false");
	else if (k->type == KEY_TEXT)
		snprintf(buf, len, "%s", (const char *)at);
	else if (k->type == KEY_OWN)
		buf[0] = '\0';
	else if (isinf(number_of(k, at)))
		snprintf(buf, len, "none");
	else if (number_of(k, at) == 0 && k->zero)
		snprintf(buf, len, "%s", k->zero);
	else
		show_number(k, number_of(k, at), buf, len);
	return buf;
}

char *key_show_default(const struct key *k, char *buf, size_t len)
{
	struct key alone = *k;
	_Alignas(max_align_t) char value[KEY_TEXT_SIZE] = "";

	alone.offset = 0;
	set_number(k, value, k->otherwise);
	return key_show(&alone, value, buf, len);
}

char *key_show_bounds(const struct key *k, char *buf, size_t len)
{
	char least[32], most[32];
	size_t used = 0;

	buf[0] = '\0';
	show_number(k, k->least, least, sizeof(least));
	show_number(k, k->most, most, sizeof(most));
	if (k->type == KEY_WORD) {
		for (int i = 0; k->words[i] && used < len; i++)
			used += (size_t)snprintf(
				buf + used, len - used, "%s%s", i ? ", " : "", k->words[i]);
	} else if (!is_bounded(k)) {
		if (k->above)
			snprintf(buf, len, "more than 0");
	} else if (isinf(k->most)) {
		snprintf(buf, len, "%s %s", k->above ? "more than" : "at least", least);
	} else if (k->least == 0 && !k->above) {
		snprintf(buf, len, "at most %s", most);
	} else if (k->above) {
		snprintf(buf, len, "more than %s and at most %s", least, most);
	} else {
		snprintf(buf, len, "from %s to %s", least, most);
	}
	return buf;
}

/* ---- read */

static int check_bounds(const struct key *k, yamldoc_node n, double value, struct weir_err *err)
{
	bool low = k->above ? !(value > k->least) : !(value >= k->least);
	char bounds[96];

	if (is_bounded(k) ? !low && value <= k->most : !k->above || value > 0)
		return 0;
	return yamldoc_error(n, err, "must be %s%s%s", key_show_bounds(k, bounds, sizeof(bounds)),
		k->zero ? ", or " : "", k->zero ? k->zero : "");
}

static int read_iops(const struct key *k, yamldoc_node map, double *ret, struct weir_err *err)
{
	struct weir_rate rate;
	int r = yamldoc_rate(map, k->name, &rate, err);

	if (r)
		return r;
	if (rate.unit != WEIR_UNIT_REQUESTS)
		return yamldoc_error(
			yamldoc_get(map, k->name), err, "must be in iops, and more than 0");
	*ret = rate.per_second;
	return 0;
}

static int read_whole(const struct key *k, yamldoc_node map, uint32_t *ret, struct weir_err *err)
{
	int64_t value;
	int r = yamldoc_int(map, k->name, 0, UINT32_MAX, &value, err);

	if (r == 0)
		*ret = (uint32_t)value;
	return r;
}

static int read_text(const struct key *k, yamldoc_node map, char *ret, struct weir_err *err)
{
	const char *text;
	int r = yamldoc_string(map, k->name, &text, err);

	if (r)
		return r;
	if (!*text || strlen(text) >= KEY_TEXT_SIZE)
		return yamldoc_error(yamldoc_get(map, k->name), err,
			"must be a text of 1 to %d bytes", KEY_TEXT_SIZE - 1);
	strcpy(ret, text);
	return 0;
}

static int read_value(const struct key *k, yamldoc_node map, void *at, struct weir_err *err)
{
	switch (k->type) {
	case KEY_TIME:
		return yamldoc_time(map, k->name, at, err);
	case KEY_NUMBER:
		return yamldoc_count(map, k->name, at, err);
	case KEY_WHOLE:
		return read_whole(k, map, at, err);
	case KEY_SIZE:
		return yamldoc_size_of(map, k->name, at, err);
	case KEY_IOPS:
		return read_iops(k, map, at, err);
	case KEY_FLAG:
		return yamldoc_bool(map, k->name, at, err);
	case KEY_WORD:
		return yamldoc_choice(map, k->name, k->words, at, err);
	default:
		return read_text(k, map, at, err);
	}
}

static size_t value_size(const struct key *k)
{
	return k->type == KEY_WHOLE ? sizeof(uint32_t) : sizeof(uint64_t);
}

int key_read(const struct key *k, yamldoc_node map, struct settings *s, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, k->name);
	void *at = (char *)s->data + k->offset;
	const char *text = yamldoc_text(n);
	union {
		weir_time time;
		double number;
		uint64_t size;
	} value = {0};
	int r;

	if (k->type == KEY_OWN)
		return yamldoc_kind(n) == YAMLDOC_NONE ? -ENOENT : k->read(n, s, err);
	if (k->zero && text && strcmp(text, k->zero) == 0) {
		set_number(k, at, 0);
		return 0;
	}
	r = read_value(k, map, k->type < KEY_FLAG ? (void *)&value : at, err);
	if (r || k->type >= KEY_FLAG)
		return r;
	r = check_bounds(k, n, number_of(k, &value), err);
	if (r == 0)
		memcpy(at, &value, value_size(k));
	return r;
}

const char **keys_names(
	const struct key *keys, bool beside, bool lab, const char *const *more, const char **names)
{
	size_t n = 0;

	for (const struct key *k = keys; k->name; k++)
		if (k->beside == beside && (lab || !k->lab) && n + 1 < KEYS_MOST)
			names[n++] = k->name;
	for (; more && *more && n + 1 < KEYS_MOST; more++)
		names[n++] = *more;
	names[n] = NULL;
	return names;
}
