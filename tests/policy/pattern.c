/* SPDX-License-Identifier: BSD-3-Clause */
/* pattern: which texts a glob matches. Overlap and blocks: policy/match.c. */
#include "policy/pattern.h"
#include "test.h"

static void glob(const char *pattern, const char *text, bool want)
{
	if (policy_pattern_fits(pattern, text) != want)
		FAIL("\"%s\" %s \"%s\"", pattern, want ? "does not fit" : "fits", text);
}

static void test_globs(void)
{
	glob("", "", true);
	glob("", "a", false);
	glob("*", "", true);
	glob("*", "a/b", true);
	glob("db-*", "db-1", true);
	glob("db-*", "db-", true);
	glob("db-*", "db", false);
	glob("a?c", "abc", true);
	glob("a?c", "ac", false);
	glob("*a*b*c", "xxaxxbxxbxc", true);
	glob("*a*b*c", "xxaxxcxxb", false);
	glob("a**b", "ab", true);
	glob("[a-c]x", "bx", true);
	glob("[a-c]x", "dx", false);
	glob("[!a-c]x", "dx", true);
	glob("[!a-c]x", "ax", false);
	glob("[]x]", "]", true);
	glob("[a-]", "-", true);
	glob("\\*", "*", true);
	glob("\\*", "a", false);
	glob("aXb", "axb", false);
	glob("a\xff*", "a\xff\xfe", true);
}

static void test_can(void)
{
	CHECK(policy_pattern_can("10*", "01"));
	CHECK(policy_pattern_can("", "01"));
	CHECK(policy_pattern_can("?[!2-9]*[a0]", "01"));
	CHECK(!policy_pattern_can("12", "01"));
	CHECK(!policy_pattern_can("1[2-9]", "01"));
	CHECK(!policy_pattern_can("1[0", "01"));
}

int main(void)
{
	RUN(test_globs);
	RUN(test_can);
	return 0;
}
