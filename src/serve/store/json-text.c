/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/store/json-text.h"
#include <math.h>
#include <string.h>

static void escape_one(unsigned char c, FILE *to)
{
	if (c == '"' || c == '\\')
		fprintf(to, "\\%c", c);
	else if (c == '\n')
		fputs("\\n", to);
	else if (c == '\t')
		fputs("\\t", to);
	else
		fprintf(to, "\\u%04x", c);
}

void json_text_escape(const char *s, size_t n, FILE *to)
{
	const char *end = s + n, *plain = s;

	for (; s < end; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= ' ' && c != '"' && c != '\\')
			continue;
		fwrite_unlocked(plain, 1, (size_t)(s - plain), to);
		escape_one(c, to);
		plain = s + 1;
	}
	fwrite_unlocked(plain, 1, (size_t)(end - plain), to);
}

void json_text_string(const char *s, FILE *to)
{
	if (!s) {
		fputs("null", to);
		return;
	}
	putc_unlocked('"', to);
	json_text_escape(s, strlen(s), to);
	putc_unlocked('"', to);
}

void json_text_real(double value, FILE *to)
{
	if (!isfinite(value))
		fputs("null", to);
	else if (value == (double)(long)value && fabs(value) < 1e15)
		fprintf(to, "%ld.0", (long)value);
	else
		fprintf(to, "%.12g", value);
}
