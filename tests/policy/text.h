/* SPDX-License-Identifier: BSD-3-Clause */
/* tests/policy/text.h: for tests of policy texts, which are accepted, or refused for one reason. */
#ifndef WEIR_TESTS_POLICY_TEXT_H
#define WEIR_TESTS_POLICY_TEXT_H

#include "policy/policy.h"
#include "test.h"

static struct weir_policy_remarks remarks;

static inline struct weir_policy *parse(const char *text)
{
	struct weir_policy *p = NULL;

	if (weir_policy_parse_all(text, strlen(text), "t.yaml", NULL, NULL, &p, &remarks) != 0)
		FAIL("%s", remarks.errors[0].text);
	return p;
}

static inline void refused(const char *text, const char *why)
{
	struct weir_policy *p = NULL;

	CHECK(weir_policy_parse_all(text, strlen(text), "t.yaml", NULL, NULL, &p, &remarks) < 0);
	CHECK_INT(remarks.n_errors, 1);
	if (!strstr(remarks.errors[0].text, why))
		FAIL("'%s' does not say '%s'", remarks.errors[0].text, why);
}

#endif
