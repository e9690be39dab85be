/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keys: static rules, as Lustre's token bucket filter has them: the first rule that matches a leaf limits it.
 *
 * A leaf gets a hold bucket with the rule's rate and a size of `depth`. tests/control/tbf holds it against Lustre's filter:
 * where the server has room, both let the same requests pass at the same times.
 */
#pragma once

#include "control/controller.h"

#define TBF_DEPTH 3 /* Lustre's */

struct tbf_settings { /* the rules follow, in order: tbf_settings_next */
	uint32_t depth;
	uint32_t n_rules;
	double other; /* requests per second of leaves that match no rule; INFINITY: no limit */
};

struct tbf_settings_rule {
	double rate; /* requests per second, of each leaf that matches */
	const char
		*match; /* paths in which '*' stands for any text; several with a space between */
};
/* Return the next rule; *at is 0 for the first one. */
struct tbf_settings_rule tbf_settings_next(const struct tbf_settings *s, size_t *at);
/* Return the rate of a leaf: of the first rule that matches, or `other`. */
double tbf_settings_rate(const struct tbf_settings *s, const char *path);

extern const struct controller tbf_controller;
