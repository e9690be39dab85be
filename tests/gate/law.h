/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law: shared code of the random tests of the law (law-*.c).
 *
 * Each is a program that runs many random cases from one seed: argv[1], or WEIR_SEED, or 1. The
 * seed is printed first, and with the case when one fails, so that a failure can be repeated.
 */
#ifndef WEIR_TESTS_GATE_LAW_H
#define WEIR_TESTS_GATE_LAW_H

#include "base/rng.h"
#include <weir/gate.h>
#include "test.h"

static struct rng law_rng;
static uint64_t law_seed, law_operations;
static char law_name[64];
static bool law_ended;

static inline void law_at_exit(void)
{
	if (!law_ended)
		fprintf(stderr, "that was seed %llu, case %s, after %llu operations\n",
			(unsigned long long)law_seed, law_name, (unsigned long long)law_operations);
}

static inline void law_start(int argc, char **argv, const char *name)
{
	const char *text = argc > 1 ? argv[1] : getenv("WEIR_SEED");

	law_seed = text && *text ? strtoull(text, NULL, 0) : 1;
	printf("%s: seed %llu\n", name, (unsigned long long)law_seed);
	fflush(stdout);
	atexit(law_at_exit);
	rng_init(&law_rng, law_seed, name);
}

/* Start case `i` of a kind with a random stream of its own, so that it can be run alone. */
static inline void law_case(const char *kind, unsigned i)
{
	snprintf(law_name, sizeof law_name, "%s/%u", kind, i);
	rng_init(&law_rng, law_seed, law_name);
}

static inline int law_end(uint64_t least)
{
	printf("%llu operations\n", (unsigned long long)law_operations);
	CHECK(law_operations >= least);
	law_ended = true;
	return 0;
}

static inline uint64_t law_below(uint64_t n)
{
	return rng_below(&law_rng, n);
}
static inline uint64_t law_between(uint64_t a, uint64_t b)
{
	return a + rng_below(&law_rng, b - a + 1);
}
static inline bool law_chance(double p)
{
	return rng_double(&law_rng) < p;
}
static inline double law_log(double a, double b) /* log-uniform */
{
	return a * pow(b / a, rng_double(&law_rng));
}

static inline void law_set(struct weir_gate *g, weir_time now, const struct weir_knob *k, size_t n)
{
	struct weir_err err = {""};

	if (weir_gate_set(g, now, k, n, &err))
		FAIL("%s", err.text);
}

static inline void law_knob(
	struct weir_gate *g, weir_time now, weir_node node, enum weir_knob_kind kind, double value)
{
	law_set(g, now, &(struct weir_knob){.node = node, .kind = kind, .value = value}, 1);
}

static inline weir_node law_leaf(struct weir_gate *g, weir_node parent, double weight)
{
	weir_node n;

	CHECK_INT(weir_gate_add(g, parent, &n), 0);
	law_knob(g, 0, n, WEIR_KNOB_WEIGHT, weight);
	return n;
}

#endif
