/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  Increase the decimals until units.c would read back a value near enough. The digits are
 *         printed from integers, since the locale affects how a double is printed.
 */
#include "base/units-impl.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes for a number. None has more than 14 characters, but compilers warn unless there is room for
 * every value of the types. */
#define NUMBER_ROOM 52

/* Write `digits` / 10^decimals as a decimal number, followed by `tail`. */
static void put_digits(
	char out[NUMBER_ROOM], unsigned long digits, unsigned decimals, const char *tail)
{
	unsigned long scale = 1;

	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	if (decimals)
		snprintf(out, NUMBER_ROOM, "%lu.%0*lu%s", digits / scale, (int)decimals,
			digits % scale, tail);
	else
		snprintf(out, NUMBER_ROOM, "%lu%s", digits, tail);
}

/* Write the shortest decimal x such that x · factor, rounded if the kind is `whole`, is within 0.05
 * % of value. */
static void put_number(char out[NUMBER_ROOM], double value, double factor, bool whole)
{
	double x = value / factor;
	char tail[8] = "";

	if (x != 0 && (x < 1e-3 || x >= 1e5)) {
		int e = 0;
		for (; x >= 9.9996; e++) /* else it might round to 10 */
			x /= 10;
		for (; x < 0.99996; e--)
			x *= 10;
		snprintf(tail, sizeof(tail), "e%d", e);
		factor = 1;
		whole = false; /* so large a time or size is nearly whole */
	}
	double scale = 1;

	for (unsigned decimals = 0;; scale *= 10, decimals++) {
		double near = floor(x * scale + 0.5);
		double back = near / scale * factor;
		if (whole)
			back = floor(back + 0.5);
		/* Slightly inside the bound, to cover the rounding of this check. Seven decimals
		 * always suffice, x being at least a thousandth. */
		if (fabs(back - x * factor) > 0.000499 * x * factor && decimals < 7)
			continue;
		put_digits(out, (unsigned long)near, decimals, tail);
		return;
	}
}

/* Return the largest scale that is not above the value, allowing for values that round up to it. */
static const struct units_scale *choose_scale(const struct units_scale *scales, double value)
{
	const struct units_scale *best = scales;

	for (; scales->name; scales++)
		if (value >= (double)scales->factor * 0.9996)
			best = scales;
	return best;
}

/* Write "inf" or "nan" for a value that is not a number to show. Return true if it was. */
static bool put_odd(double value, const char *unit, char *buf, size_t len)
{
	if (isfinite(value) && value >= 0)
		return false;
	snprintf(buf, len, "%s%s", isinf(value) && value > 0 ? "inf" : "nan", unit);
	return true;
}

char *weir_units_show_time(weir_time ns, char *buf, size_t len)
{
	char number[NUMBER_ROOM];
	/* Unsigned, since −INT64_MIN does not exist. */
	uint64_t span = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	struct units_scale s = *choose_scale(units_time_scales, (double)span);

	if (ns == WEIR_NEVER) {
		snprintf(buf, len, "never");
		return buf;
	}
	/* "90s" is clearer than "1.5m", and "2500s" than "41.67m"; whole minutes and hours are
	 * clear. */
	if (span >= UNITS_HOUR && (span % UNITS_HOUR == 0 || span >= 10000 * (uint64_t)WEIR_SEC))
		s = (struct units_scale){"h", UNITS_HOUR};
	else if (span >= 2 * UNITS_MINUTE && span % UNITS_MINUTE == 0)
		s = (struct units_scale){"m", UNITS_MINUTE};
	put_number(number, (double)span, (double)s.factor, true);
	snprintf(buf, len, "%s%s%s", ns < 0 ? "-" : "", number, span ? s.name : "s");
	return buf;
}

/* Use binary units, unless the value is round in decimal units and less so in binary ones: so a setting of "400
 * MB/s" is shown as written, and measured values are hardly ever so round. */
static void put_bytes(double value, bool whole, const char *per, char *buf, size_t len)
{
	char binary[NUMBER_ROOM], decimal[NUMBER_ROOM];
	const struct units_scale *b = choose_scale(units_binary_scales, value),
				 *d = choose_scale(units_decimal_scales, value);
	double hundreds = value / (double)d->factor * 100;

	put_number(binary, value, (double)b->factor, whole);
	put_number(decimal, value, (double)d->factor, whole);
	if (hundreds == floor(hundreds) && strlen(decimal) < strlen(binary))
		snprintf(buf, len, "%s %sB%s", decimal, d->name, per);
	else
		snprintf(buf, len, "%s %sB%s", binary, b->name, per);
}

char *weir_units_show_size(uint64_t bytes, char *buf, size_t len)
{
	const uint64_t top = 16380 * units_binary_scales[5].factor;

	/* 2^64 − 1 would be rounded to 16384 PiB, which is too large to be read back. */
	put_bytes((double)(bytes < top ? bytes : top), true, "", buf, len);
	return buf;
}

char *weir_units_show_rate(struct weir_rate rate, char *buf, size_t len)
{
	static const char *const odd[WEIR_UNITS] = {" iops", " B/s", " s/s"};
	double v = rate.per_second;
	char number[NUMBER_ROOM];

	if (put_odd(v, odd[rate.unit], buf, len))
		return buf;
	if (rate.unit == WEIR_UNIT_BYTES) {
		put_bytes(v, false, "/s", buf, len);
		return buf;
	}
	bool time = rate.unit == WEIR_UNIT_TIME;
	const struct units_scale *s =
		choose_scale(time ? units_time_scales : units_decimal_scales, v);
	put_number(number, v, (double)s->factor, false);
	if (time)
		snprintf(buf, len, "%s %s/s", number, s->name);
	else
		snprintf(buf, len, "%s%s iops", number, s->name);
	return buf;
}

#define DIGITS_MAX 1e18 /* below 2⁶³, and beyond the precision of a double */

void weir_units_show_rates(
	struct weir_rate a, struct weir_rate b, char *buf_a, char *buf_b, size_t len)
{
	static const char *const whole[WEIR_UNITS] = {" iops", " B/s", " ns/s"};
	double most = fmax(a.per_second, b.per_second), scale = 1;
	bool odd = fmin(a.per_second, b.per_second) < 0;
	char number[NUMBER_ROOM];

	weir_units_show_rate(a, buf_a, len);
	weir_units_show_rate(b, buf_b, len);
	/* Rates that differ by a billionth look different long before DIGITS_MAX. */
	if (a.per_second == b.per_second || odd)
		return;
	for (unsigned d = 0; strcmp(buf_a, buf_b) == 0 && most * scale < DIGITS_MAX;
		d++, scale *= 10) {
		put_digits(
			number, (unsigned long)floor(a.per_second * scale + 0.5), d, whole[a.unit]);
		snprintf(buf_a, len, "%s", number);
		put_digits(
			number, (unsigned long)floor(b.per_second * scale + 0.5), d, whole[b.unit]);
		snprintf(buf_b, len, "%s", number);
	}
}

char *weir_units_show_count(double count, char *buf, size_t len)
{
	char number[NUMBER_ROOM];

	if (put_odd(count, "", buf, len))
		return buf;
	const struct units_scale *s = choose_scale(units_decimal_scales, count);
	put_number(number, count, (double)s->factor, false);
	snprintf(buf, len, "%s%s", number, s->name);
	return buf;
}
