/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"
#include <weir/units.h>
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static weir_time time_of(const char *text)
{
	weir_time t;
	struct weir_err e;

	if (weir_units_time(text, &t, &e) < 0)
		FAIL("time: %s", e.text);
	return t;
}

static uint64_t size_of(const char *text)
{
	uint64_t s;
	struct weir_err e;

	if (weir_units_size(text, &s, &e) < 0)
		FAIL("size: %s", e.text);
	return s;
}

static struct weir_rate rate_of(const char *text)
{
	struct weir_rate r;
	struct weir_err e;

	if (weir_units_rate(text, &r, &e) < 0)
		FAIL("rate: %s", e.text);
	return r;
}

static double count_of(const char *text)
{
	double d;
	struct weir_err e;

	if (weir_units_count(text, &d, &e) < 0)
		FAIL("count: %s", e.text);
	return d;
}

static int64_t int_of(const char *text)
{
	int64_t i;
	struct weir_err e;

	if (weir_units_int(text, &i, &e) < 0)
		FAIL("int: %s", e.text);
	return i;
}

static void times(void)
{
	CHECK_INT(time_of("10ms"), 10 * WEIR_MS);
	CHECK_INT(time_of("10 ms"), 10 * WEIR_MS);
	CHECK_INT(time_of(" 10\tms "), 10 * WEIR_MS);
	CHECK_INT(time_of("7ns"), 7);
	CHECK_INT(time_of("1.5us"), 1500);
	CHECK_INT(time_of("2\xC2\xB5s"), 2000);   /* micro sign */
	CHECK_INT(time_of("2 \xCE\xBCs "), 2000); /* Greek mu */
	CHECK_INT(time_of("0.1s"), 100 * WEIR_MS);
	CHECK_INT(time_of("1m"), 60 * WEIR_SEC);
	CHECK_INT(time_of("1min"), 60 * WEIR_SEC);
	CHECK_INT(time_of("1.5h"), 5400 * WEIR_SEC);
	CHECK_INT(time_of("0"), 0);
	CHECK_INT(time_of("0.0"), 0);
	CHECK_INT(time_of("1e3ms"), WEIR_SEC);
	CHECK_INT(time_of("1E-3s"), WEIR_MS);
	CHECK_INT(time_of("0.5ns"), 1); /* to the nearest, halves up */
	CHECK_INT(time_of("0.49ns"), 0);
	CHECK_INT(time_of("9223372036854775806ns"), INT64_MAX - 1);
	CHECK_INT(time_of("0.0000000000000000000000001h"), 0);
	CHECK_INT(time_of("0.00000000000000000000000000000100000000000000000000000000000001e30s"),
		WEIR_SEC);
}

static void sizes(void)
{
	CHECK_INT(size_of("100 GiB"), INT64_C(100) << 30);
	CHECK_INT(size_of("4k"), 4096);
	CHECK_INT(size_of("4K"), 4096);
	CHECK_INT(size_of("4 Ki"), 4096);
	CHECK_INT(size_of("1M"), 1 << 20);
	CHECK_INT(size_of("1G"), 1 << 30);
	CHECK_INT(size_of("2T"), INT64_C(2) << 40);
	CHECK_INT(size_of("1P"), INT64_C(1) << 50);
	CHECK_INT(size_of("512B"), 512);
	CHECK_INT(size_of("4kB"), 4000);
	CHECK_INT(size_of("4KB"), 4000);
	CHECK_INT(size_of("4 KiB"), 4096);
	CHECK_INT(size_of("4 kiB"), 4096);
	CHECK_INT(size_of("1.5 MiB"), 3 << 19);
	CHECK_INT(size_of("1.1 TB"), INT64_C(1100000000000));
	CHECK_INT(size_of("0"), 0);
	CHECK(size_of("18446744073709551615B") == UINT64_MAX);
	CHECK(size_of("18446744073709551615.000000000 B") == UINT64_MAX);
	CHECK(size_of("184467440737095516150e-1 B") == UINT64_MAX);
	CHECK_INT(size_of("0000000000000000000000000000000000012B"), 12);
	CHECK_INT(size_of("12.00000000000000000000000000000000000000 KiB"), 12288);
}

static void check_rate(const char *text, double per_second, enum weir_unit unit)
{
	struct weir_rate r = rate_of(text);

	if (r.per_second != per_second || r.unit != unit)
		FAIL("\"%s\" is %g of %d", text, r.per_second, (int)r.unit);
}

static void rates(void)
{
	static const char *const five_k[] = {"5k iops", "5k IOPS", "5kiops", "5 kiops", "5 k iops",
		"5K iops", "5000 iops", "5k io/s", "5k IO/s", "5k req/s", "5k ops/s", "5kio/s",
		"5e3 iops", "0.005M iops", " 5k  iops "};
	for (size_t i = 0; i < COUNT_OF(five_k); i++)
		check_rate(five_k[i], 5000, WEIR_UNIT_REQUESTS);
	check_rate("0 iops", 0, WEIR_UNIT_REQUESTS);
	check_rate("3.3k iops", 3300, WEIR_UNIT_REQUESTS);
	check_rate("2Gio/s", 2e9, WEIR_UNIT_REQUESTS);

	check_rate("20 MiB/s", 20 * 1048576.0, WEIR_UNIT_BYTES);
	check_rate("20MiBps", 20 * 1048576.0, WEIR_UNIT_BYTES);
	check_rate("400 MB/s", 4e8, WEIR_UNIT_BYTES);
	check_rate("1 GBps", 1e9, WEIR_UNIT_BYTES);
	check_rate("3 B/s", 3, WEIR_UNIT_BYTES);
	check_rate("3 kB/s", 3000, WEIR_UNIT_BYTES);
	check_rate("3 KB/s", 3000, WEIR_UNIT_BYTES);
	check_rate("3 KiB/s", 3072, WEIR_UNIT_BYTES);

	check_rate("10 MB/s", 1e7, WEIR_UNIT_BYTES);
	check_rate("10 Mb/s", 1.25e6, WEIR_UNIT_BYTES); /* bits */
	check_rate("2 Gbit/s", 2.5e8, WEIR_UNIT_BYTES);
	check_rate("10 Gbps", 1.25e9, WEIR_UNIT_BYTES);
	check_rate("8 bit/s", 1, WEIR_UNIT_BYTES);
	check_rate("8 kbit/s", 1000, WEIR_UNIT_BYTES);
	check_rate("8 Mibit/s", 1048576, WEIR_UNIT_BYTES);
	check_rate("100 bps", 12.5, WEIR_UNIT_BYTES);

	check_rate("500 ms/s", 5e8, WEIR_UNIT_TIME);
	check_rate("1 s/s", 1e9, WEIR_UNIT_TIME);
	check_rate("1 \xC2\xB5s/s", 1e3, WEIR_UNIT_TIME);
}

static void counts_and_ints(void)
{
	CHECK(count_of("0") == 0);
	CHECK(count_of("0.1") == 0.1);
	CHECK(count_of("123456.789") == 123456.789);
	CHECK(count_of("1.5k") == 1500);
	CHECK(count_of("1.5 K") == 1500);
	CHECK(count_of("2M") == 2e6);
	CHECK(count_of("3G") == 3e9);
	CHECK(count_of("1e3") == 1000);
	CHECK(count_of("1e+3k") == 1e6);
	CHECK(count_of("1e-400") == 0);
	CHECK(count_of("0e999999999999999999999") == 0);
	CHECK_NEAR(count_of("1.7e308"), 1.7e308, 1e-15);

	CHECK_INT(int_of("64"), 64);
	CHECK_INT(int_of("-64"), -64);
	CHECK_INT(int_of(" - 64 "), -64);
	CHECK_INT(int_of("1.5k"), 1500);
	CHECK_INT(int_of("-2M"), -2000000);
	CHECK_INT(int_of("3.000000000000000000000000"), 3);
	CHECK_INT(int_of("1e2"), 100);
	CHECK_INT(int_of("-0"), 0);
	CHECK_INT(int_of("9223372036854775807"), INT64_MAX);
	CHECK(int_of("-9223372036854775808") == INT64_MIN);
}

/* Every refusal has a message, quotes the text, and leaves the output alone. */
static void refused_time(const char *text, const char *why)
{
	weir_time t = 77;
	struct weir_err e;

	CHECK_INT(weir_units_time(text, &t, &e), -EINVAL);
	CHECK_STR(e.text, why);
	CHECK_INT(t, 77);
	CHECK_INT(weir_units_time(text, &t, NULL), -EINVAL);
}

static void refused_size(const char *text, const char *why)
{
	uint64_t s = 77;
	struct weir_err e;

	CHECK_INT(weir_units_size(text, &s, &e), -EINVAL);
	CHECK_STR(e.text, why);
	CHECK_INT(s, 77);
}

static void refused_rate(const char *text, const char *why)
{
	struct weir_rate r = {77, WEIR_UNIT_TIME};
	struct weir_err e;

	CHECK_INT(weir_units_rate(text, &r, &e), -EINVAL);
	CHECK_STR(e.text, why);
	CHECK(r.per_second == 77 && r.unit == WEIR_UNIT_TIME);
}

static void refused_count(const char *text, const char *why)
{
	double d = 77;
	struct weir_err e;

	CHECK_INT(weir_units_count(text, &d, &e), -EINVAL);
	CHECK_STR(e.text, why);
	CHECK(d == 77);
}

static void refused_int(const char *text, const char *why)
{
	int64_t i = 77;
	struct weir_err e;

	CHECK_INT(weir_units_int(text, &i, &e), -EINVAL);
	CHECK_STR(e.text, why);
	CHECK_INT(i, 77);
}

static void bare_numbers_are_told_which_unit(void)
{
	refused_time("500", "\"500\": needs a unit: ns, us, ms, s, m, h, d");
	refused_time("500 ", "\"500 \": needs a unit: ns, us, ms, s, m, h, d");
	refused_size("4096", "\"4096\": needs a unit: B, KiB, MiB, GiB, TiB or kB, MB, GB, TB");
	refused_rate("500", "\"500\": needs a unit: iops, B/s, KiB/s, MiB/s, GiB/s, MB/s, GB/s, "
			    "Mbit/s, Gbit/s");
	refused_rate("0", "\"0\": needs a unit: iops, B/s, KiB/s, MiB/s, GiB/s, MB/s, GB/s, "
			  "Mbit/s, Gbit/s");
}

static void wrong_units_are_refused(void)
{
	refused_time("4MS", "\"4MS\": unknown unit \"MS\" (did you mean ms?)");
	refused_time("4 M", "\"4 M\": unknown unit \"M\"; it may be ns, us, ms, s, m, h, d");
	refused_time("4ms/s", "\"4ms/s\": unknown unit \"ms/s\" (did you mean ms?)");
	refused_time("1h30m", "\"1h30m\": unknown unit \"h30m\"; it may be ns, us, ms, s, m, h, d");
	refused_time("\xC2\xB5s", "\"µs\": must be a number, such as 10ms");
	refused_time("1\xC2\xB5", "\"1µ\": unknown unit \"µ\"; it may be ns, us, ms, s, m, h, d");
	refused_size("1mb", "\"1mb\": unknown unit \"mb\" (did you mean MB?)");
	refused_size("1 GIB", "\"1 GIB\": unknown unit \"GIB\" (did you mean GiB?)");
	refused_size("1 B B", "\"1 B B\": unknown unit \"B B\"; it may be B, KiB, MiB, GiB, TiB or "
			      "kB, MB, GB, TB");
	refused_size("1 m",
		"\"1 m\": unknown unit \"m\"; it may be B, KiB, MiB, GiB, TiB or kB, MB, "
		"GB, TB");
	refused_size("1iB", "\"1iB\": unknown unit \"iB\" (did you mean KiB?)");
	refused_rate("10 mbps",
		"\"10 mbps\": unknown unit \"mbps\" (did you mean MBps, bytes, or Mbps, bits?)");
	refused_rate("5 mb/s",
		"\"5 mb/s\": unknown unit \"mb/s\" (did you mean MB/s, bytes, or Mb/s, bits?)");
	refused_rate("5 mib/s", "\"5 mib/s\": unknown unit \"mib/s\" (did you mean MiB/s?)");
	refused_rate("10 Mib/S", "\"10 Mib/S\": unknown unit \"Mib/S\" (did you mean MiB/s?)");
	refused_rate("10 MiB",
		"\"10 MiB\": unknown unit \"MiB\"; it may be iops, B/s, KiB/s, MiB/s, "
		"GiB/s, MB/s, GB/s, Mbit/s, Gbit/s");
	refused_rate("5 ki iops", "\"5 ki iops\": unknown unit \"ki iops\" (did you mean kiops?)");
	refused_rate("5 m iops", "\"5 m iops\": unknown unit \"m iops\" (did you mean iops?)");
	refused_count("5 x", "\"5 x\": unknown unit \"x\"; it may be k, M, G or none");
	refused_count("5Ki", "\"5Ki\": unknown unit \"Ki\"; it may be k, M, G or none");
}

static void invalid_numbers_are_refused(void)
{
	static const char *const bad[] = {"", " ", "k", "nan", "inf", "NaN", "infinity", ".5", "+5",
		"--5", "- -5", "e5", "five"};
	static const char *const trailing[] = {"5.", "5..5", "5.5.5", "0x10", "5,5", "5e", "5e+",
		"5 5", "5k5", "1_000", "5\n", "5k\n", "5\x01"};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		char want[80];
		snprintf(want, sizeof(want), "\"%s\": must be a number, such as 1500 or 1.5k",
			bad[i]);
		refused_count(bad[i], want);
		refused_int(bad[i], want);
	}
	for (size_t i = 0; i < COUNT_OF(trailing); i++) {
		double d;
		struct weir_err e;
		CHECK_INT(weir_units_count(trailing[i], &d, &e), -EINVAL);
		CHECK(strstr(e.text, "unknown unit"));
		CHECK(!strpbrk(e.text, "\n\x01"));
	}
	refused_count("-5", "\"-5\": must not be negative");
	refused_time("-5ms", "\"-5ms\": must not be negative");
	refused_size(" -1 B", "\" -1 B\": must not be negative");
	refused_rate("- 5 iops", "\"- 5 iops\": must not be negative");
	refused_rate("-0 iops", "\"-0 iops\": must not be negative");
	refused_int("1.5", "\"1.5\": must be a whole number");
	refused_int("1e-1", "\"1e-1\": must be a whole number");
	refused_int("1.0001k", "\"1.0001k\": must be a whole number");
	refused_int("1e-40", "\"1e-40\": must be a whole number");
	refused_int("3.0000000000000000000000001",
		"\"3.0000000000000000000000001\": must be a whole "
		"number");
}

static void numbers_out_of_range_are_refused(void)
{
	refused_time("9223372036854775807ns", "\"9223372036854775807ns\": too large");
	refused_time("2562048h", "\"2562048h\": too large");
	refused_time("1e99999999999s", "\"1e99999999999s\": too large");
	refused_size("18446744073709551616B", "\"18446744073709551616B\": too large");
	refused_size("18446744073709551620B", "\"18446744073709551620B\": too large");
	refused_size("16384 PiB", "\"16384 PiB\": too large");
	refused_size("1e20B", "\"1e20B\": too large");
	refused_rate("1e308 GB/s", "\"1e308 GB/s\": too large");
	refused_count("1e309", "\"1e309\": too large");
	refused_count("1e308M", "\"1e308M\": too large");
	refused_int("9223372036854775808", "\"9223372036854775808\": out of range");
	refused_int("-9223372036854775809", "\"-9223372036854775809\": out of range");
	refused_int("1e40", "\"1e40\": out of range");

	/* A long text is quoted in part. */
	char text[2000];
	weir_time t;
	struct weir_err e;
	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK_INT(weir_units_time(text, &t, &e), -EINVAL);
	CHECK(strlen(e.text) < 120 && strstr(e.text, "needs a unit"));
	text[1] = '.';
	text[1900] = 's';
	text[1901] = '\0';
	CHECK_INT(time_of(text), 10 * WEIR_SEC);
}

__extension__ typedef unsigned __int128 wide; /* the exact reference */

/* Decimal fractions of a unit against exact arithmetic: integers are exact, the rest within one. */
static void sizes_are_exact(void)
{
	static const struct {
		const char *unit;
		uint64_t factor;
	} units[] = {{"B", 1}, {"kB", 1000}, {"KiB", 1024}, {"MB", 1000000}, {"MiB", 1 << 20},
		{"GiB", 1 << 30}, {"TiB", UINT64_C(1) << 40}, {"PiB", UINT64_C(1) << 50}};
	struct rng r;

	rng_init(&r, 1, "sizes");
	for (int i = 0; i < 200000; i++) {
		unsigned bits = (unsigned)rng_below(&r, 64) + 1,
			 k = (unsigned)rng_below(&r, 19) + 1;
		uint64_t mant = rng_u64(&r) >> (64 - bits), power = 1;
		size_t u = rng_below(&r, COUNT_OF(units));
		for (unsigned j = 0; j < k; j++)
			power *= 10;
		char text[80];
		snprintf(text, sizeof(text), "%" PRIu64 ".%0*" PRIu64 " %s", mant / power, (int)k,
			mant % power, units[u].unit);
		wide product = (wide)mant * units[u].factor, want = product / power;
		uint64_t got = 0;
		int rc = weir_units_size(text, &got, NULL);
		if (want >= UINT64_MAX)
			CHECK(rc == -EINVAL || got == UINT64_MAX);
		else if (product % power == 0)
			CHECK(rc == 0 && got == (uint64_t)want);
		else
			CHECK(rc == 0 && (got == (uint64_t)want || got == (uint64_t)want + 1));
		/* Whole bytes are always exact. */
		snprintf(text, sizeof(text), "%" PRIu64 "B", mant);
		CHECK(size_of(text) == mant);
	}
}

/* Random texts of unit letters: either refused, or read as strtod reads them. */
static void random_texts_agree_with_strtod(void)
{
	static const char letters[] =
		"0123456789012345678901234567890123456789....eEe+-kMG iBbps/mn";
	struct rng r;
	unsigned accepted = 0;

	rng_init(&r, 2, "texts");
	for (int i = 0; i < 300000; i++) {
		char text[16];
		size_t n = rng_below(&r, sizeof(text));
		for (size_t j = 0; j < n; j++)
			text[j] = letters[rng_below(&r, sizeof(letters) - 1)];
		text[n] = '\0';

		double d = -1;
		struct weir_err e = {""};
		int rc = weir_units_count(text, &d, &e);
		CHECK(rc == 0 ? d >= 0 && isfinite(d) && !e.text[0] : rc == -EINVAL && e.text[0]);
		if (rc == 0) {
			char *end;
			double want = strtod(text, &end);
			while (*end == ' ')
				end++;
			want *= *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
			if (want > 1e-300)
				CHECK_NEAR(d, want, 1e-14);
			accepted++;
		}
		weir_time t = -1;
		rc = weir_units_time(text, &t, NULL);
		CHECK(rc == 0 ? t >= 0 && t < WEIR_NEVER : rc == -EINVAL && t == -1);
		struct weir_rate rate = {-1, WEIR_UNIT_TIME};
		rc = weir_units_rate(text, &rate, NULL);
		CHECK(rc == 0 ? rate.per_second >= 0 && isfinite(rate.per_second)
			      : rc == -EINVAL && rate.per_second == -1);
		int64_t whole;
		rc = weir_units_int(text, &whole, NULL);
		if (rc == 0 && whole < INT64_C(1) << 53 && !strchr(text, '-') &&
			count_of(text) != (double)whole)
			FAIL("\"%s\" is %" PRId64 " as a whole, %.17g as a count", text, whole,
				count_of(text));
	}
	CHECK(accepted > 10000); /* else the test proves nothing */
}

static void shown_texts(void)
{
	char b[32];

#define SHOWN(kind, value, text) CHECK_STR(weir_units_show_##kind(value, b, sizeof(b)), text)
#define RATE(x, u)               ((struct weir_rate){x, WEIR_UNIT_##u})
	SHOWN(time, 0, "0s");
	SHOWN(time, 1, "1ns");
	SHOWN(time, 37200000, "37.2ms");
	SHOWN(time, 999999, "1ms");
	SHOWN(time, -1500, "-1.5us");
	SHOWN(time, WEIR_SEC, "1s");
	SHOWN(time, 90 * WEIR_SEC, "90s");
	SHOWN(time, 100 * WEIR_SEC, "100s");
	SHOWN(time, 120 * WEIR_SEC, "2m");
	SHOWN(time, 5400 * WEIR_SEC, "90m");
	SHOWN(time, 7200 * WEIR_SEC, "2h");
	SHOWN(time, WEIR_NEVER, "never");
	SHOWN(time, INT64_MIN, "-2.562e6h");
	SHOWN(size, 0, "0 B");
	SHOWN(size, 512, "512 B");
	SHOWN(size, 4096, "4 KiB");
	SHOWN(size, 1000, "1 kB");
	SHOWN(size, 1536, "1.5 KiB");
	SHOWN(size, 1048575, "1 MiB");
	SHOWN(size, UINT64_C(100) << 30, "100 GiB");
	SHOWN(size, UINT64_C(400000000), "400 MB");
	SHOWN(rate, RATE(3360, REQUESTS), "3.36k iops");
	SHOWN(rate, RATE(5000, REQUESTS), "5k iops");
	SHOWN(rate, RATE(999.9, REQUESTS), "1k iops");
	SHOWN(rate, RATE(999.5, REQUESTS), "999.5 iops");
	SHOWN(rate, RATE(0.25, REQUESTS), "0.25 iops");
	SHOWN(rate, RATE(0, REQUESTS), "0 iops");
	SHOWN(rate, RATE(20 * 1048576.0, BYTES), "20 MiB/s");
	SHOWN(rate, RATE(4e8, BYTES), "400 MB/s");
	SHOWN(rate, RATE(123456789.3, BYTES), "117.7 MiB/s");
	SHOWN(rate, RATE(5e8, TIME), "500 ms/s");
	SHOWN(rate, RATE(INFINITY, REQUESTS), "inf iops");
	SHOWN(rate, RATE(NAN, BYTES), "nan B/s");
	SHOWN(count, 0, "0");
	SHOWN(count, 1500, "1.5k");
	SHOWN(count, 0.125, "0.125");
	SHOWN(count, 1e-5, "1e-5");
	SHOWN(count, INFINITY, "inf");

	char small[4];
	CHECK_STR(weir_units_show_rate(RATE(3360, REQUESTS), small, sizeof(small)), "3.3");
}

static void within(double got, double want, const char *text)
{
	if (!(fabs(got - want) <= 0.0005 * want))
		FAIL("%.17g is shown as \"%s\", which reads %.17g", want, text, got);
	/* Four digits, a point, an exponent, a unit: not the 17 digits of a double. */
	if (strlen(text) > 20)
		FAIL("\"%s\" is long", text);
}

static void shown_texts_read_back(void)
{
	char b[32];
	struct rng r;

	rng_init(&r, 3, "shown");
	for (int i = 0; i < 100000; i++) {
		unsigned shift = (unsigned)rng_below(&r, 64);
		uint64_t bytes = rng_u64(&r) >> shift;
		weir_time t = (weir_time)(rng_u64(&r) >> 1 >> (shift ? shift - 1 : 0));
		weir_units_show_size(bytes, b, sizeof(b));
		within((double)size_of(b), (double)bytes, b);
		weir_units_show_time(t, b, sizeof(b));
		if (t != WEIR_NEVER)
			within((double)time_of(b), (double)t, b);

		/* Include numbers with few digits, which hit the rounding of units. */
		double magnitude = pow(10, 40 * rng_double(&r) - 15);
		double v = i % 2 ? magnitude : floor(magnitude);
		struct weir_rate rate = {v, (enum weir_unit)(i % WEIR_UNITS)};
		weir_units_show_rate(rate, b, sizeof(b));
		within(rate_of(b).per_second, v, b);
		CHECK_INT(rate_of(b).unit, rate.unit);
		double count = pow(10, 600 * rng_double(&r) - 300);
		weir_units_show_count(count, b, sizeof(b));
		within(count_of(b), count, b);
	}
	CHECK(size_of(weir_units_show_size(UINT64_MAX, b, sizeof(b))) > UINT64_MAX / 2000 * 1999);
	for (uint64_t bytes = 0; bytes < 20000; bytes++)
		within((double)size_of(weir_units_show_size(bytes, b, sizeof(b))), (double)bytes,
			b);
}

/* Rates are shown with as many digits as it takes to tell them apart. */
static void two(struct weir_rate a, struct weir_rate b, const char *want_a, const char *want_b)
{
	char text_a[32], text_b[32];

	weir_units_show_rates(a, b, text_a, text_b, sizeof(text_a));
	CHECK_STR(text_a, want_a);
	CHECK_STR(text_b, want_b);
}

static void two_that_differ_look_different(void)
{
	two(RATE(1000, REQUESTS), RATE(2000, REQUESTS), "1k iops", "2k iops");
	two(RATE(1000, REQUESTS), RATE(1000, REQUESTS), "1k iops", "1k iops");
	two(RATE(1000.4, REQUESTS), RATE(1000.2, REQUESTS), "1000.4 iops", "1000.2 iops");
	two(RATE(1e6, REQUESTS), RATE(1e6 + 1, REQUESTS), "1000000 iops", "1000001 iops");
	two(RATE(1 << 20, BYTES), RATE((1 << 20) + 1, BYTES), "1048576 B/s", "1048577 B/s");
	two(RATE(2.001e6, TIME), RATE(2.0011e6, TIME), "2001000 ns/s", "2001100 ns/s");
	/* Rates that no digits tell apart, and values that are not numbers. */
	two(RATE(1e17, REQUESTS), RATE(nextafter(1e17, 0), REQUESTS), "100000000000000000 iops",
		"99999999999999984 iops");
	two(RATE(1e18, REQUESTS), RATE(nextafter(1e18, 2e18), REQUESTS), "1000P iops",
		"1000P iops");
	two(RATE(-1, REQUESTS), RATE(-2, REQUESTS), "nan iops", "nan iops");
}

/* A locale with a decimal comma, if the machine has one, changes nothing. */
static void locale_is_ignored(void)
{
	static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
	char b[32];
	bool found = false;

	for (size_t i = 0; i < COUNT_OF(commas) && !found; i++)
		found = setlocale(LC_ALL, commas[i]) != NULL;
	CHECK(count_of("1.5") == 1.5);
	CHECK_INT(time_of("1.5ms"), 1500000);
	CHECK_STR(weir_units_show_count(1500, b, sizeof(b)), "1.5k");
	setlocale(LC_ALL, "C");
	if (!found)
		printf("no locale with a decimal comma here\n");
}

int main(void)
{
	RUN(times);
	RUN(sizes);
	RUN(rates);
	RUN(counts_and_ints);
	RUN(bare_numbers_are_told_which_unit);
	RUN(wrong_units_are_refused);
	RUN(invalid_numbers_are_refused);
	RUN(numbers_out_of_range_are_refused);
	RUN(sizes_are_exact);
	RUN(random_texts_agree_with_strtod);
	RUN(shown_texts);
	RUN(shown_texts_read_back);
	RUN(two_that_differ_look_different);
	RUN(locale_is_ignored);
	return 0;
}
