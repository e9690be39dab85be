/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-parse.h: for tests that need a valid policy. */
#ifndef WEIR_TESTS_POLICY_PARSE_H
#define WEIR_TESTS_POLICY_PARSE_H

#include "policy/policy.h"
#include "test.h"

static inline struct weir_policy *parse(const char *text)
{
	struct weir_policy *p;
	struct weir_err err;

	if (weir_policy_parse(text, strlen(text), "t.yaml", &p, &err) < 0)
		FAIL("%s\n%s", err.text, text);
	return p;
}

#endif
