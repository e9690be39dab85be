/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics-text: families and samples for Prometheus, as text.
 *
 * SOURCE   The text exposition format of Prometheus, version 0.0.4.
 */
#include "serve/show/metrics-text.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void metrics_family(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Write a label's value: escape backslash, quote and newline. */
static void quoted(FILE *to, const char *text)
{
	putc_unlocked('"', to);
	for (;;) {
		size_t plain = strcspn(text, "\\\"\n");

		fwrite_unlocked(text, 1, plain, to);
		text += plain;
		if (!*text)
			break;
		putc_unlocked('\\', to);
		putc_unlocked(*text == '\n' ? 'n' : *text, to);
		text++;
	}
	putc_unlocked('"', to);
}

void metrics_label(FILE *to, char before, const char *key, const char *value)
{
	putc_unlocked(before, to);
	fputs_unlocked(key, to);
	putc_unlocked('=', to);
	quoted(to, value);
}

/* Write plain labels in one piece: most of the time of a line is that of writing to the stream.
 * Return false if a value needs escapes, or there is no room. */
static bool plain_labels(
	FILE *to, const char *key, const char *value, const char *key2, const char *value2)
{
	char line[256], *at = line;

	if (value[strcspn(value, "\\\"\n")] || value2[strcspn(value2, "\\\"\n")] ||
		strlen(key) + strlen(value) + strlen(key2) + strlen(value2) + 16 > sizeof(line))
		return false;
	*at++ = '{';
	at = stpcpy(stpcpy(stpcpy(stpcpy(at, key), "=\""), value), "\"");
	if (*key2) {
		*at++ = ',';
		at = stpcpy(stpcpy(stpcpy(stpcpy(at, key2), "=\""), value2), "\"");
	}
	at = stpcpy(at, "} ");
	fwrite_unlocked(line, 1, (size_t)(at - line), to);
	return true;
}

void metrics_labels(
	FILE *to, const char *key, const char *value, const char *key2, const char *value2)
{
	if (plain_labels(to, key, value, key2, value2))
		return;
	metrics_label(to, '{', key, value);
	if (*key2)
		metrics_label(to, ',', key2, value2);
	fputs_unlocked("} ", to);
}

/* Most numbers are small and whole, and printf would take most of the time of a line. */
static void whole(FILE *to, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	digits[--at] = '\n';
	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, to);
}

void metrics_number(FILE *to, double value)
{
	if (isnan(value))
		fputs("NaN\n", to);
	else if (isinf(value))
		fputs(value > 0 ? "+Inf\n" : "-Inf\n", to);
	else if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value)
		whole(to, (uint64_t)value);
	else
		fprintf(to, "%.15g\n", value);
}

void metrics_single(FILE *to, const char *name, const char *type, const char *help, double value)
{
	metrics_family(to, name, type, help);
	fprintf(to, "%s ", name);
	metrics_number(to, value);
}
