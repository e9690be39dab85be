/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimate: a profile's values at its own sizes and lines between them; sequences are recognised, several at a time; errors
 * have their place.
 */
#include "model/estimate.h"
#include <errno.h>
#include "test.h"

static const char profile[] = "profile: 1\n"
			      "depth: 8\n"
			      "device: 64 GiB\n"
			      "sizes: [4 KiB, 64 KiB, 1 MiB]\n"
			      "read:\n"
			      "  inside: {p50: 5ms, max: 20ms}\n"
			      "  work:\n"
			      "    - {distance: 0, work: [40us, 600us, 10ms]}\n"
			      "    - {distance: 1 GiB, work: [5ms, 6ms, 16ms]}\n"
			      "    - {work: [9ms, 10ms, 20ms]}\n"
			      "write:\n"
			      "  work: [{work: [1ms, 2ms, 12ms]}]\n";

static struct estimate read_good(void)
{
	struct weir_err err;
	struct estimate e;

	if (estimate_read(profile, strlen(profile), "p", &e, &err) < 0)
		FAIL("%s", err.text);
	return e;
}

static void values(void)
{
	struct estimate e = read_good();
	struct estimate_past past = {.last = UINT64_C(1) << 40};
	const uint64_t far = UINT64_C(10) << 30;

	CHECK_INT(e.depth, 8);
	CHECK_NEAR(e.inside[0].max, 20e6, 0);
	CHECK_NEAR(e.inside[0].p50, 5e6, 0);
	CHECK_NEAR(e.inside[1].max, 0, 0);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 4096), 9e6, 1e-12);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 65536), 10e6, 1e-12);
	CHECK_NEAR(estimate_work(&e, NULL, 1, 0, 1 << 20), 12e6, 1e-12);
	/* half way between 4 and 64 KiB, on a line; beyond the last size as before it */
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 34 << 10), 9.5e6, 1e-9);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 8 << 20), 20e6 + 7 * 16.0 / 15 * 10e6, 1e-9);
	CHECK_NEAR(estimate_work(&e, &past, 0, far, 4096), 9e6, 1e-12);
	CHECK_NEAR(estimate_work(&e, &past, 0, far + 4096, 4096), 40e3, 1e-12);
	CHECK_NEAR(estimate_work(&e, &past, 0, far + (1 << 20), 4096), 5e6, 1e-12);
	CHECK_NEAR(estimate_work(&e, &past, 0, far + (1 << 20), 4096), 5e6, 1e-12); /* again */
	CHECK_NEAR(estimate_work(&e, &past, 2, 0, 0), 1e6 - 1e6 / 15, 1e-9);        /* a flush */
}

static void several_sequences(void)
{
	struct estimate e = read_good();
	struct estimate_past past = {0};

	for (uint64_t i = 0; i < 100; i++)
		for (uint64_t k = 0; k < ESTIMATE_PAST; k++)
			CHECK_NEAR(estimate_work(&e, &past, 0,
					   (k + 1) * (UINT64_C(4) << 30) + i * 65536, 65536),
				i ? 600e3 : 10e6, 1e-12);
}

static void constant(void)
{
	struct estimate e;

	estimate_constant(&e, 1000, 2);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 4096), 1000 + 8192, 1e-12);
	CHECK_NEAR(estimate_work(&e, NULL, 1, 0, UINT32_MAX), 1000 + 2.0 * UINT32_MAX, 1e-9);
	CHECK_NEAR(estimate_work(&e, NULL, 1, 0, 0), 1000, 1e-9);
}

static void refused(const char *from, const char *to, const char *why)
{
	char text[2048];
	const char *at = strstr(profile, from);
	struct estimate e;
	struct weir_err err;

	CHECK(at != NULL);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - profile), profile, to,
		at + strlen(from));
	CHECK_INT(estimate_read(text, strlen(text), "p", &e, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("%s, not %s", err.text, why);
}

static void bad_input(void)
{
	refused("profile: 1\n", "", "p:1:1: is no profile");
	refused("depth: 8", "depth: 0", "depth");
	refused("64 KiB", "4 KiB", "p:4:16: sizes[1]: sizes must grow");
	refused("[40us, 600us, 10ms]", "[40us, 600us]", "a time for each of the 3 sizes");
	refused("600us", "0us", "must be more than 0");
	refused("    - {work: [9ms, 10ms, 20ms]}\n", "", "the last row is for any distance");
	refused("distance: 1 GiB", "distance: 0", "distances must grow");
	refused("write", "wirte", "did you mean 'write'");
	refused("max: 20ms", "max: 20", "20");
	refused("p50", "p51", "did you mean 'p50'");
}

/* A larger request may take less; beyond the largest size it takes no less than that. */
static void work_may_fall(void)
{
	static const char falling[] = "profile: 1\ndepth: 1\nsizes: [4 KiB, 16 KiB, 64 KiB]\n"
				      "read: {work: [{work: [20us, 12us, 8us]}]}\nwrite: {work: "
				      "[{work: [1us, 2us, 4us]}]}\n";
	struct estimate e;
	struct weir_err err;

	CHECK_INT(estimate_read(falling, sizeof(falling) - 1, "p", &e, &err), 0);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 4 << 10), 20e3, 1e-9);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 16 << 10), 12e3, 1e-9);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 1 << 20), 8e3, 1e-9);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 256 << 20), 8e3, 1e-9);
	CHECK(estimate_most(&e, 0, 64 << 10) >= 20e3);
	CHECK_NEAR(estimate_most(&e, 1, 64 << 10), 4e3, 1e-9);
}

int main(void)
{
	RUN(work_may_fall);
	RUN(values);
	RUN(several_sequences);
	RUN(constant);
	RUN(bad_input);
	return 0;
}
