/* SPDX-License-Identifier: BSD-3-Clause */
/* value: values as JSON, and JSON written into a longer answer. */
#include "serve/show/value.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *show_text(const char *s)
{
	char copy[512];
	size_t n = 0;
	json_t *j;

	if (!s)
		return json_null();
	j = json_string(s);
	if (j)
		return j;
	for (; s[n] && n < sizeof(copy) - 1; n++)
		copy[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
	copy[n] = 0;
	return json_string(copy);
}

json_t *show_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *show_count(uint64_t n)
{
	return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

json_t *show_seconds(double ns)
{
	return show_real(ns / 1e9);
}

void show_write_members(json_t *j, FILE *to)
{
	char *text = j ? json_dumps(j, JSON_REAL_PRECISION(12)) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len > 2)
		fwrite(text + 1, 1, len - 2, to);
	free(text);
	json_decref(j);
}

void show_write(json_t *j, FILE *to)
{
	if (!j || json_dumpf(j, to, JSON_REAL_PRECISION(12)) < 0)
		fputs("null", to);
	json_decref(j);
}
