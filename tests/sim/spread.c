/* SPDX-License-Identifier: BSD-3-Clause */
/* spread: means and intervals over seeds, and how they are shown. */
#include "sim/experiment/spread.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static const char text[] = "id: t\ntitle: t\nsource: s\nruns: [{name: a, scenario: s.yaml}]\n"
			   "claims: [{what: w, value: \"1\", band: [11, 20], unit: ms},\n"
			   "  {what: <v>, value: \"1\", band: [0, none]}]\n";

/* Add the values of both claims; NAN: not known. */
static void add(struct experiment_spread *s, struct experiment_result *r, double a, double b)
{
	r->outcomes[0] = (struct experiment_outcome){.judged = true,
		.known = true,
		.ok = a >= 11 && a <= 20,
		.value = a,
		.lo = 11,
		.hi = 20};
	r->outcomes[1] = (struct experiment_outcome){.judged = true,
		.known = !isnan(b),
		.ok = b >= 0,
		.value = b,
		.lo = 0,
		.hi = INFINITY};
	spread_add(s, r);
}

static void test_spread(void)
{
	struct experiment *e;
	struct weir_err err;
	struct experiment_outcome outcomes[2];
	struct experiment_result r = {.outcomes = outcomes};
	struct experiment_spread *s;
	char shown[EXPERIMENT_SHOWN];

	CHECK_INT(experiment_parse(text, sizeof(text) - 1, "e.yaml", &e, &err), 0);
	s = spread_new(e);
	r.spread = s;
	add(s, &r, 10, NAN);
	CHECK(isnan(spread_interval(&s->claims[0])));
	CHECK_STR(experiment_value(e, &r, 0, shown), "10 ms");
	CHECK_STR(experiment_verdict(&r, 0, shown), "MISS");
	CHECK_STR(experiment_value(e, &r, 1, shown), "?");
	add(s, &r, 12, 1e9);
	add(s, &r, 14, 1e9 + 2);
	CHECK_NEAR(s->claims[0].mean, 12, 1e-12);
	CHECK_NEAR(spread_interval(&s->claims[0]), 4.303 * 2 / sqrt(3), 1e-9);
	CHECK_NEAR(s->claims[0].least, 10, 0);
	CHECK_NEAR(s->claims[0].most, 14, 0);
	CHECK_STR(experiment_verdict(&r, 0, shown), "2 of 3");
	CHECK_STR(experiment_value(e, &r, 0, shown), "12 ± 4.97 ms");
	CHECK(!experiment_held(&r, 0));
	/* One value is not known: the others still have a mean, and the claim does not hold. */
	CHECK_INT(s->claims[1].n, 2);
	CHECK_NEAR(spread_interval(&s->claims[1]), 12.706, 1e-3);
	CHECK_STR(experiment_verdict(&r, 1, shown), "2 of 3");
	/* From 31 values on the quantile is that of the normal distribution. */
	for (int i = 0; i < 28; i++)
		add(s, &r, i % 2 ? 11 : 13, 1);
	CHECK_INT(s->claims[0].n, 31);
	CHECK_NEAR(
		spread_interval(&s->claims[0]), 1.96 * sqrt(s->claims[0].squares / 30 / 31), 1e-12);
	free(s);
	experiment_free(e);
}

int main(void)
{
	test_spread();
	return 0;
}
