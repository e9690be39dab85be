/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair, one hold and one R-bucket, has code of its own in limits.h: its answers and charges
 * equal those of the general code. */
#include "gate/limits.h"
#include "law.h"

struct both { /* the same, in both forms */
	struct bucket short_way[2], general[2];
	struct limits a, b;
};

static void start(struct limits *l, struct bucket *own, const struct weir_bucket_spec *specs)
{
	bucket_init(&own[0], &specs[0]);
	bucket_init(&own[1], &specs[1]);
	*l = (struct limits){.b = own, .n_hold = 1, .n_r = 1, .r = 1, .l = 2, .n = 2, .two = true};
	limits_pair(l);
}

static struct weir_bucket_spec any_spec(enum weir_bucket_kind kind)
{
	return (struct weir_bucket_spec){.kind = kind,
		.unit = (enum weir_unit)law_below(WEIR_UNITS),
		.rate = law_log(0.1, 1e7),
		.size = ceil(law_log(1, 1e6))};
}

static void same_levels(const struct both *t)
{
	CHECK_INT(t->a.stamp, t->b.stamp);
	CHECK_INT(t->a.r_stamp, t->b.r_stamp);
	for (unsigned i = 0; i < 2; i++)
		CHECK(t->short_way[i].lack == t->general[i].lack);
}

/* A request arrives, and passes when it is admitted, or some time later. */
static void one(struct both *t, weir_time *now)
{
	struct weir_req r = {.submitted = *now,
		.requests = (uint32_t)law_between(1, 3),
		.bytes = (uint32_t)law_log(1, 2e6),
		.time = (uint32_t)law_log(1, 2e6)};
	weir_time when = limits_when_all(t->general, 1, &r, t->b.stamp), reserved;

	CHECK(limits_narrow(t->short_way, &r));
	if (when > *now && when < WEIR_NEVER) {
		CHECK(limits_held_pair(t->short_way, &r, when - 1 - t->a.stamp));
		*now = when;
	}
	CHECK(!limits_held_pair(t->short_way, &r, *now - t->a.stamp));
	reserved = limits_reserved(&t->b, &r);
	CHECK_INT(limits_reserved_pair(&t->a, t->short_way, &r), reserved);
	if (reserved > *now && reserved < *now + 1000 * WEIR_SEC && law_chance(0.5))
		*now = reserved;
	limits_charge(&t->b, &r, reserved <= *now, *now);
	if (law_chance(0.5))
		limits_charge_pair(&t->a, t->short_way, &r, reserved <= *now, *now);
	else
		limits_charge_either(&t->a, t->short_way, &r, reserved <= *now, *now);
	same_levels(t);
	law_operations++;
}

static void as_the_general_way(void)
{
	for (unsigned k = 0; k < 300; k++) {
		law_case("pair", k);
		const struct weir_bucket_spec specs[] = {
			any_spec(WEIR_HOLD), any_spec(WEIR_RTOKENS)};
		double span = law_log(1, 1e10);
		struct both t;
		weir_time now = 0;

		start(&t.a, t.short_way, specs);
		start(&t.b, t.general, specs);
		CHECK(t.a.pair);
		for (unsigned i = 0; i < 200 && t.b.pair; i++) {
			one(&t, &now);
			now += (weir_time)law_log(1, span);
		}
	}
}

/* Two buckets are a pair only while both are narrow. */
static void both_are_narrow(void)
{
	const struct weir_bucket_spec narrow = {.rate = 100, .size = 100},
				      wide = {.rate = 100, .size = 1e9},
				      none = {.rate = 0, .size = 100},
				      slow = {.rate = 0.06, .size = 100},
				      fast = {.rate = 1.1e8, .size = 100};
	struct bucket own[2];
	struct limits l;

	start(&l, own, (const struct weir_bucket_spec[]){narrow, narrow});
	CHECK(l.pair);
	start(&l, own, (const struct weir_bucket_spec[]){wide, narrow});
	CHECK(!l.pair);
	start(&l, own, (const struct weir_bucket_spec[]){narrow, wide});
	CHECK(!l.pair);
	start(&l, own, (const struct weir_bucket_spec[]){narrow, none});
	CHECK(!l.pair);
	start(&l, own, (const struct weir_bucket_spec[]){narrow, slow});
	CHECK(!l.pair);
	start(&l, own, (const struct weir_bucket_spec[]){fast, narrow});
	CHECK(!l.pair);
}

/* A debt that is too large for a pair ends it, until the debt is repaid. */
static void a_large_debt_ends_it(void)
{
	const struct weir_bucket_spec bytes = {.unit = WEIR_UNIT_BYTES, .rate = 1e6, .size = 1e6};
	struct weir_req r = {.requests = 1, .bytes = 4000000000u, .time = 1};
	struct bucket own[2];
	struct limits l;

	start(&l, own, (const struct weir_bucket_spec[]){bytes, bytes});
	limits_charge(&l, &r, false, 0);
	CHECK(!l.pair);
	r.bytes = 1;
	r.submitted = 5000 * WEIR_SEC;
	limits_charge(&l, &r, false, r.submitted);
	CHECK(l.pair);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "pair");
	RUN(as_the_general_way);
	RUN(both_are_narrow);
	RUN(a_large_debt_ends_it);
	return law_end(30000);
}
