/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: static rules, as in the policy file; control/tbf/tbf.h defines the effect of a rule. */
#ifndef WEIR_CONTROL_TBF_KEYS_H
#define WEIR_CONTROL_TBF_KEYS_H

#include "control/controller.h"
#include "control/tbf/tbf.h"

struct tbf_settings { /* the rules follow, in order: tbf_settings_next */
	uint32_t depth;
	uint32_t n_rules;
	double other; /* requests per second of keys that match no rule; INFINITY: no limit */
};

struct tbf_settings_rule {
	double rate; /* requests per second, of each key that matches */
	const char *match;
};
/* Return the next rule; *at is 0 for the first one. */
struct tbf_settings_rule tbf_settings_next(const struct tbf_settings *s, size_t *at);

extern const struct controller tbf_controller;

/* Make a filter with these rules. 0 or -ENOMEM. */
int tbf_settings_make(const struct tbf_settings *s, struct tbf **ret);

#endif
