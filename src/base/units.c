/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  A text is a decimal number and a unit. The number is kept as an integer and a power of
 *         ten, so that times and sizes are exact and independent of the locale. units-show.c
 *         formats.
 */
#include "base/units-impl.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* For messages about a text that does not parse. */
struct kind {
	const char *such_as;
	const char *fits;         /* units to list if the unit is missing */
	const char *const *words; /* units to suggest for a misspelt one */
};

static const struct kind kind_time = {
	"10ms", "ns, us, ms, s, m, h, d", (const char *const[]){"ns", "us", "ms", "min", NULL}};
static const struct kind kind_size = {"64 KiB", "B, KiB, MiB, GiB, TiB or kB, MB, GB, TB",
	(const char *const[]){"KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", NULL}};
static const struct kind kind_rate = {"5k iops or 20 MiB/s",
	"iops, B/s, KiB/s, MiB/s, GiB/s, MB/s, GB/s, Mbit/s, Gbit/s",
	(const char *const[]){"iops", "kiops", "io/s", "req/s", "ops/s", "B/s", "KiB/s", "MiB/s",
		"GiB/s", "TiB/s", "kB/s", "MB/s", "GB/s", "TB/s", "kBps", "MBps", "GBps", "bit/s",
		"kbit/s", "Mbit/s", "Gbit/s", "kbps", "Mbps", "Gbps", "Mb/s", "Gb/s", "ms/s",
		NULL}};
static const struct kind kind_count = {
	"1500 or 1.5k", "k, M, G or none", (const char *const[]){NULL}};

const struct units_scale units_time_scales[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
const struct units_scale units_binary_scales[] = {{"", 1}, {"Ki", UINT64_C(1) << 10},
	{"Mi", UINT64_C(1) << 20}, {"Gi", UINT64_C(1) << 30}, {"Ti", UINT64_C(1) << 40},
	{"Pi", UINT64_C(1) << 50}, {NULL, 0}};
const struct units_scale units_decimal_scales[] = {{"", 1}, {"k", 1000}, {"M", 1000000},
	{"G", 1000000000}, {"T", UINT64_C(1000000000000)}, {"P", UINT64_C(1000000000000000)},
	{NULL, 0}};

/* mant · 10^exp */
struct number {
	uint64_t mant;
	int exp;
	bool cut; /* mant was full and digits were dropped: if exp > 0, n is over 2^64 */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

static void add_digit(struct number *n, char c, bool fraction)
{
	uint64_t more;

	if (!n->cut && !__builtin_mul_overflow(n->mant, UINT64_C(10), &more) &&
		!__builtin_add_overflow(more, (uint64_t)(c - '0'), &more)) {
		n->mant = more;
		n->exp -= fraction;
	} else {
		n->cut = n->cut || !fraction || c != '0'; /* trailing zeros do not matter */
		n->exp += !fraction;
	}
}

/* Parse digits[.digits][e[+-]digits]. Return the rest of `s`, or NULL if it does not start with a
 * number. */
static const char *read_number(const char *s, struct number *ret)
{
	struct number n = {0};

	if (!is_digit(*s))
		return NULL;
	for (; is_digit(*s); s++)
		add_digit(&n, *s, false);
	if (*s == '.' && is_digit(s[1]))
		for (s++; is_digit(*s); s++)
			add_digit(&n, *s, true);
	if ((*s == 'e' || *s == 'E') &&
		(is_digit(s[1]) || ((s[1] == '+' || s[1] == '-') && is_digit(s[2])))) {
		bool minus = s[1] == '-';
		int e = 0;
		for (s += is_digit(s[1]) ? 1 : 2; is_digit(*s); s++)
			if (e < 10000) /* beyond any double; keeps the sum in range */
				e = e * 10 + (*s - '0');
		n.exp += minus ? -e : e;
	}
	*ret = n;
	return s;
}

/* Return n · factor; inf if too large. */
static double number_double(struct number n, double factor)
{
	/* Cancel powers of ten: whole values stay exact, e.g. "8.510281383G". */
	for (; n.exp < 0 && factor >= 10 && fmod(factor, 10) == 0; n.exp++)
		factor /= 10;
	double m = (double)n.mant * factor;
	if (m == 0 || n.exp == 0)
		return m;
	/* Powers up to 10^22 are exact, so that dividing by one rounds once. */
	if (n.exp < 0 && n.exp >= -22)
		return m / pow(10, -n.exp);
	return m * pow(10, n.exp);
}

/* Compute n · factor to the nearest integer, halves up. Return false if over 2^64 − 1. *ret_exact:
 * nothing was rounded. */
static bool number_whole(struct number n, uint64_t factor, uint64_t *ret, bool *ret_exact)
{
	uint64_t power = 1, whole, rest;
	bool fits = true;

	*ret_exact = true;
	if (n.mant == 0) {
		*ret = 0;
		return true;
	}
	if (n.exp >= 0) {
		if (n.exp > 19 || (n.cut && n.exp > 0))
			return false;
		while (n.exp-- > 0)
			fits = fits && !__builtin_mul_overflow(n.mant, UINT64_C(10), &n.mant);
		return fits && !__builtin_mul_overflow(n.mant, factor, ret);
	}
	int e = n.exp;
	for (; e < 0 && power <= UINT64_MAX / 10; e++)
		power *= 10;
	/* Beyond 10^19 only a fraction is left, for which a double is precise enough. */
	if (__builtin_mul_overflow(e < 0 ? 0 : n.mant / power, factor, &whole))
		return false;
	double part = e < 0 ? number_double(n, (double)factor)
			    : (double)(n.mant % power) * (double)factor / (double)power;
	*ret_exact = !n.cut && e == 0 && !__builtin_mul_overflow(n.mant % power, factor, &rest) &&
		     rest % power == 0;
	return !__builtin_add_overflow(whole, (uint64_t)floor(part + 0.5), ret);
}

/* Parse the number at the start of `text`. */
static int read_text(const struct kind *kind, const char *text, struct number *ret_number,
	const char **ret_unit, struct weir_err *err)
{
	const char *start = skip_blanks(text);
	const char *unit = read_number(start, ret_number);

	if (!unit && *start == '-' && read_number(skip_blanks(start + 1), ret_number))
		return weir_err_set(err, -EINVAL, "\"%.60s\": must not be negative", text);
	if (!unit)
		return weir_err_set(err, -EINVAL, "\"%.60s\": must be a number, such as %s", text,
			kind->such_as);
	*ret_unit = skip_blanks(unit);
	return 0;
}

static bool at_end(const char *s)
{
	return *skip_blanks(s) == '\0';
}

static bool is_unit(const char *unit, const char *name)
{
	size_t n = strlen(name);

	return strncmp(unit, name, n) == 0 && at_end(unit + n);
}

/* Find the two units that equal this one except for case: "mb/s" may mean MB/s, bytes, or Mb/s,
 * bits. The words list bytes first. Return false if there are not two. */
static bool bytes_or_bits(const char *unit, const char *const *words, const char *ret[2])
{
	int n = 0;

	for (; *words && n < 2; words++)
		if (strcasecmp(unit, *words) == 0)
			ret[n++] = *words;
	return n == 2;
}

static int bad_unit(
	const struct kind *kind, const char *text, const char *unit, struct weir_err *err)
{
	if (at_end(unit))
		return weir_err_set(err, -EINVAL, "\"%.60s\": needs a unit: %s", text, kind->fits);
	const char *near = weir_err_near(unit, kind->words), *two[2];
	if (bytes_or_bits(unit, kind->words, two))
		return weir_err_set(err, -EINVAL,
			"\"%.60s\": unknown unit \"%.20s\" (did you mean %s, bytes, or %s, bits?)",
			text, unit, two[0], two[1]);
	if (near)
		return weir_err_set(err, -EINVAL,
			"\"%.60s\": unknown unit \"%.20s\" (did you mean %s?)", text, unit, near);
	return weir_err_set(err, -EINVAL, "\"%.60s\": unknown unit \"%.20s\"; it may be %s", text,
		unit, kind->fits);
}

static int too_large(const char *text, struct weir_err *err)
{
	return weir_err_set(err, -EINVAL, "\"%.60s\": too large", text);
}

/* Return the factor of a time unit, or 0. Both characters that look like µ (U+00B5 micro, U+03BC
 * mu) mean u. */
static uint64_t time_factor(const char *unit, const char *per)
{
	if (strncmp(unit, "\xC2\xB5s", 3) == 0 || strncmp(unit, "\xCE\xBCs", 3) == 0)
		return is_unit(unit + 3, per) ? 1000 : 0;
	for (const struct units_scale *s = units_time_scales; s->name; s++) {
		size_t n = strlen(s->name);
		if (strncmp(unit, s->name, n) == 0 && is_unit(unit + n, per))
			return s->factor;
	}
	return 0;
}

int weir_units_time(const char *text, weir_time *ret_ns, struct weir_err *err)
{
	struct number n;
	const char *unit;
	uint64_t ns;
	bool exact;

	int r = read_text(&kind_time, text, &n, &unit, err);
	if (r < 0)
		return r;
	uint64_t factor = time_factor(unit, "");
	if (is_unit(unit, "m") || is_unit(unit, "min"))
		factor = UNITS_MINUTE;
	else if (is_unit(unit, "h"))
		factor = UNITS_HOUR;
	else if (is_unit(unit, "d"))
		factor = 24 * UNITS_HOUR;
	if (factor == 0 && !(at_end(unit) && n.mant == 0))
		return bad_unit(&kind_time, text, unit, err);
	if (!number_whole(n, factor, &ns, &exact) || ns >= WEIR_NEVER)
		return too_large(text, err);
	*ret_ns = (weir_time)ns;
	return 0;
}

/* Split off a unit's prefix: none, k K M G T P, or these with an i. Return the rest of the unit.
 * *ret_power: 0 … 5. */
static const char *split_prefix(const char *unit, unsigned *ret_power, bool *ret_binary)
{
	static const char letters[] = "kMGTP";
	const char *at = *unit ? strchr(letters, *unit == 'K' ? 'k' : *unit) : NULL;

	*ret_power = at ? (unsigned)(at - letters) + 1 : 0;
	*ret_binary = at && unit[1] == 'i';
	return unit + (at != NULL) + *ret_binary;
}

int weir_units_size(const char *text, uint64_t *ret_bytes, struct weir_err *err)
{
	struct number n;
	const char *unit;
	uint64_t bytes;
	unsigned power;
	bool exact, binary;

	int r = read_text(&kind_size, text, &n, &unit, err);
	if (r < 0)
		return r;
	const char *rest = split_prefix(unit, &power, &binary);
	if (at_end(rest) && (power > 0 || n.mant == 0))
		binary = true;
	else if (!is_unit(rest, "B"))
		return bad_unit(&kind_size, text, unit, err);
	uint64_t factor = (binary ? units_binary_scales : units_decimal_scales)[power].factor;
	if (!number_whole(n, factor, &bytes, &exact))
		return too_large(text, err);
	*ret_bytes = bytes;
	return 0;
}

static bool one_of(const char *unit, const char *const *names)
{
	for (; *names; names++)
		if (is_unit(unit, *names))
			return true;
	return false;
}

/* Return the factor of a rate's unit, in *ret_unit; 0 if there is no such unit. */
static double rate_factor(const char *unit, enum weir_unit *ret_unit)
{
	static const char *const requests[] = {
		"iops", "IOPS", "io/s", "IO/s", "req/s", "ops/s", NULL};
	static const char *const bytes[] = {"B/s", "Bps", NULL};
	static const char *const bits[] = {"bit/s", "bitps", "b/s", "bps", NULL};
	unsigned power;
	bool binary;

	/* Requests first: the i of "kiops" does not mark a binary prefix. */
	const char *rest = split_prefix(unit, &power, &binary);
	if (one_of(skip_blanks(rest - binary), requests)) {
		*ret_unit = WEIR_UNIT_REQUESTS;
		return (double)units_decimal_scales[power].factor;
	}
	*ret_unit = WEIR_UNIT_BYTES;
	double factor = (double)(binary ? units_binary_scales : units_decimal_scales)[power].factor;
	if (one_of(rest, bytes))
		return factor;
	if (one_of(rest, bits))
		return factor / 8;
	*ret_unit = WEIR_UNIT_TIME;
	return (double)time_factor(unit, "/s");
}

int weir_units_rate(const char *text, struct weir_rate *ret_rate, struct weir_err *err)
{
	struct number n;
	const char *unit;
	struct weir_rate rate;

	int r = read_text(&kind_rate, text, &n, &unit, err);
	if (r < 0)
		return r;
	double factor = rate_factor(unit, &rate.unit);
	if (factor == 0)
		return bad_unit(&kind_rate, text, unit, err);
	rate.per_second = number_double(n, factor);
	if (!isfinite(rate.per_second))
		return too_large(text, err);
	*ret_rate = rate;
	return 0;
}

int weir_units_count(const char *text, double *ret_count, struct weir_err *err)
{
	struct number n;
	const char *unit;
	unsigned power;
	bool binary;

	int r = read_text(&kind_count, text, &n, &unit, err);
	if (r < 0)
		return r;
	const char *rest = split_prefix(unit, &power, &binary);
	if (binary || !at_end(rest))
		return bad_unit(&kind_count, text, unit, err);
	double count = number_double(n, (double)units_decimal_scales[power].factor);
	if (!isfinite(count))
		return too_large(text, err);
	*ret_count = count;
	return 0;
}

int weir_units_int(const char *text, int64_t *ret_int, struct weir_err *err)
{
	struct number n;
	const char *unit, *start = skip_blanks(text);
	uint64_t size;
	unsigned power;
	bool exact, binary, minus = *start == '-' && is_digit(*skip_blanks(start + 1));

	int r = read_text(&kind_count, minus ? start + 1 : text, &n, &unit, err);
	if (r < 0)
		return r;
	const char *rest = split_prefix(unit, &power, &binary);
	if (binary || !at_end(rest))
		return bad_unit(&kind_count, text, unit, err);
	if (!number_whole(n, units_decimal_scales[power].factor, &size, &exact))
		return weir_err_set(err, -EINVAL, "\"%.60s\": out of range", text);
	if (!exact)
		return weir_err_set(err, -EINVAL, "\"%.60s\": must be a whole number", text);
	if (size > (uint64_t)INT64_MAX + minus)
		return weir_err_set(err, -EINVAL, "\"%.60s\": out of range", text);
	*ret_int = minus ? (int64_t)(0 - size) : (int64_t)size;
	return 0;
}
