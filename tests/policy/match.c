/* SPDX-License-Identifier: BSD-3-Clause */
/* match: blocks, which match wins, and overlap against brute force. */
#include "base/rng.h"
#include "policy/impl.h"
#include "policy/pattern.h"
#include "test.h"
#include <errno.h>

#define M(...) ((struct weir_match){__VA_ARGS__})

static bool overlap(const char *a, const char *b)
{
	struct weir_match x = {.path = a}, y = {.path = b};

	CHECK_INT(policy_match_overlap(&x, &y), policy_match_overlap(&y, &x));
	return policy_match_overlap(&x, &y);
}

/* Matches that tie over a request must be neighbours when sorted by key. */
static void keys_of_ties(const char *a, const char *b, int *ties)
{
	struct weir_match x = {.path = a}, y = {.path = b};
	struct policy_match_key kx, ky;

	policy_match_key(&x, &kx);
	policy_match_key(&y, &ky);
	CHECK_INT(policy_match_key_order(&kx, &ky) > 0, policy_match_key_order(&ky, &kx) < 0);
	if (policy_match_compare(&x, &y) != 0)
		return;
	++*ties;
	if (policy_match_key_order(&kx, &ky) != 0)
		FAIL("\"%s\" and \"%s\" tie, but their keys differ", a, b);
}

/* Random globs over {a, b}: if they overlap at all, then in a text of at most as many letters as
 * both have together, so trying those decides. */
static void test_overlap_against_brute_force(void)
{
	static const char letters[] = "aabb*?";
	int yes = 0, ties = 0;
	struct rng rng;

	rng_init(&rng, 3, "overlap");
	for (int round = 0; round < 3000; round++) {
		char p[2][6];
		bool found = false;

		for (int k = 0; k < 2; k++) {
			size_t n = rng_below(&rng, 5);

			for (size_t i = 0; i < n; i++)
				p[k][i] = letters[rng_below(&rng, 6)];
			p[k][n] = '\0';
		}
		for (unsigned len = 0; len <= 8 && !found; len++)
			for (unsigned bits = 0; bits < 1u << len && !found; bits++) {
				char text[9] = "";

				for (unsigned i = 0; i < len; i++)
					text[i] = bits >> i & 1 ? 'a' : 'b';
				found = policy_pattern_fits(p[0], text) &&
					policy_pattern_fits(p[1], text);
			}
		if (overlap(p[0], p[1]) != found)
			FAIL("\"%s\" and \"%s\" %s", p[0], p[1],
				found ? "overlap" : "do not overlap");
		yes += found;
		if (found)
			keys_of_ties(p[0], p[1], &ties);
	}
	CHECK(ties > 50);
	keys_of_ties("a\\bc*", "abc*", &ties);
	CHECK_INT(policy_match_compare(&M(.path = "a\\bc*"), &M(.path = "abc*")), 0);
	CHECK(yes > 500 && yes < 2500);
	CHECK(overlap("[a-m]x", "[m-z]x"));
	CHECK(!overlap("[a-l]x", "[m-z]x"));
	CHECK(!overlap("[!a]", "a"));
}

static int compare(struct weir_match a, struct weir_match b)
{
	CHECK_INT(policy_match_compare(&a, &b), -policy_match_compare(&b, &a));
	return policy_match_compare(&a, &b);
}

static void test_specificity(void)
{
	CHECK_INT(
		compare(M(.export_ = "web-*", .client = "10.0.0.0/24"), M(.export_ = "web-1")), 1);
	CHECK_INT(compare(M(.export_ = "web-1"), M(.export_ = "web-*")), 1);
	CHECK_INT(compare(M(.export_ = "db"), M(.export_ = "db*")), 1);
	CHECK_INT(compare(M(.export_ = "d*"), M(.export_ = "*d*d*d")), 1);
	CHECK_INT(compare(M(.export_ = "a*c"), M(.export_ = "a*")), 1);
	CHECK_INT(compare(M(.export_ = "a*"), M(.export_ = "*")), 1);
	CHECK_INT(compare(M(.export_ = "*"), M(.path = "*")), 0);
	CHECK_INT(compare(M(.export_ = "*", .client = "*", .uid = "*"), M(.path = "x*")), -1);
	CHECK_INT(compare(M(.export_ = "a*"), M(.client = "10.0.0.1")), 1);
	CHECK_INT(compare(M(.client = "10.0.0.0/24"), M(.client = "10.0.0.0/8")), 1);
	CHECK_INT(compare(M(.client = "10.0.0.0/8"), M(.client = "10.0.0.*")), 1);
	CHECK_INT(compare(M(.client = "10.0.0.1"), M(.client = "10.0.0.1/32")), 0);
	CHECK_INT(compare(M(.uid = "1000"), M(.uid = "1001")), 0);
}

static void test_keys_of_blocks(void)
{
	struct policy_match_key a, b;

	policy_match_key(&M(.client = "10.3.0.0/9"), &a);
	policy_match_key(&M(.client = "10.100.9.9/9"), &b);
	CHECK_INT(policy_match_key_order(&a, &b), 0);
	policy_match_key(&M(.client = "10.200.0.0/9"), &b);
	CHECK(policy_match_key_order(&a, &b) != 0);
	policy_match_key(
		&M(.client = "a03::/9"), &b); /* the same bytes, of the other address family */
	CHECK(policy_match_key_order(&a, &b) != 0);
}

static void client(const char *pattern, const char *address, bool want)
{
	struct weir_match m = {.client = pattern};
	struct weir_tenant t = {.match = &m, .n_match = 1, .first_child = -1};
	struct weir_policy p = {.tenants = &t, .n_tenants = 1, .default_tenant = -1};
	struct weir_who who = {.client = address};

	if (weir_policy_match(&p, &who) != (want ? 0 : -ENOENT))
		FAIL("%s %s %s", pattern, want ? "does not hold" : "holds", address);
}

static void test_clients(void)
{
	client("10.0.0.0/24", "10.0.0.255", true);
	client("10.0.0.0/24", "10.0.1.0", false);
	client("10.0.0.0/9", "10.127.3.4", true);
	client("10.0.0.0/9", "10.128.3.4", false);
	client("0.0.0.0/0", "255.1.2.3", true);
	client("0.0.0.0/0", "::1", false);
	client("10.0.0.1", "10.0.0.1", true);
	client("10.0.0.1", "10.0.0.10", false);
	client("10.0.*", "10.0.3.3", true);
	client("::1", "0:0:0:0:0:0:0:1", true);
	client("::1", "::2", false);
	client("fd00::/8", "fdab:1::5", true);
	client("fd00::/8", "fe80::1", false);
	client("2001:db8::/33", "2001:db8:7fff::", true);
	client("2001:db8::/33", "2001:db8:8000::", false);
	client("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", true);
	client("1::8", "1:0:0:0:0:0:0:8", true);
	client("1::", "1:0:0:0:0:0:0:0", true);
	client("::ffff:10.0.0.1", "::ffff:a00:1", true);
	client("::/0", "1:2:3:4:5:6:7:8", true);
	client("10.0.0.0/24", "unix", false);
	client("unix", "unix", true);
	client("10.0.0.0/24", NULL, false);
	client("*", NULL, true);
}

static void test_bad_patterns(void)
{
	static const char *const bad[] = {"10.0.0.0/33", "10.0.0/8", "::/129", "1:2/3", "1:::2/3",
		"::1::/4", "12345::/3", "10.0.0.0/", "1:2:3:4:5:6:7:8:9/3", ":1::/3", "256.0.0.0/8",
		"1:2:3:4:5:6:7::8/4"};
	static const char *const no_address[] = {
		"10.0.0.300", "10.0.0", "host7", "web-*", "FD00::*", "10.0.0.7%eth0", "x%eth0"};
	static const char *const address[] = {"10.0.0.7", "FD00::7", "fd00::*", "10.*", "*",
		"10.0.0.[1-9]", "*.7", "fe80::1%eth0", "fe80::*%eth[01]", "fe80::[!%]*"};
	static const char *const no_number[] = {"foo", "-1", "root", "1000a", "0100", "00", "0?"};
	static const char *const number[] = {"0", "1000", "10??", "*", "1[0-5]*", "0*"};
	const char *field, *why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct weir_match m = {.client = bad[i]};

		if (!policy_match_bad(&m, &field, &why))
			FAIL("%s is taken for a block", bad[i]);
		CHECK_STR(field, "client");
	}
	for (size_t i = 0; i < sizeof(no_address) / sizeof(*no_address); i++)
		if (!policy_match_bad(&M(.client = no_address[i]), &field, &why))
			FAIL("%s is taken for an address", no_address[i]);
	for (size_t i = 0; i < sizeof(address) / sizeof(*address); i++)
		if (policy_match_bad(&M(.client = address[i]), &field, &why))
			FAIL("%s: %s", address[i], why);
	for (size_t i = 0; i < sizeof(no_number) / sizeof(*no_number); i++)
		if (!policy_match_bad(&M(.uid = no_number[i]), &field, &why))
			FAIL("%s is taken for a number", no_number[i]);
	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++)
		if (policy_match_bad(&M(.uid = number[i]), &field, &why))
			FAIL("%s: %s", number[i], why);
	CHECK(policy_match_bad(&M(.path = "/a[b"), &field, &why));
	CHECK(policy_match_bad(&M(.path = "/a\\"), &field, &why));
	CHECK(!policy_match_bad(&M(.path = "/a/[!b]*", .client = "fd00::/8"), &field, &why));
}

static int tenant_of(const struct weir_policy *p, const char *export_, const char *address)
{
	struct weir_who who = {.export_ = export_, .client = address};

	return weir_policy_match(p, &who);
}

static void test_most_specific_wins(void)
{
	static const char text[] =
		"default: rest\n"
		"tenants:\n"
		"  - {name: web, match: {export: \"web-*\"}}\n"
		"  - {name: lan, match: {export: \"web-*\", client: 10.0.0.0/24}}\n"
		"  - {name: one, match: [{export: web-1}, {export: \"x?\"}]}\n"
		"  - {name: rest}\n";
	struct weir_policy *p;
	struct weir_err err;

	if (weir_policy_parse(text, sizeof(text) - 1, "t", &p, &err) != 0)
		FAIL("%s", err.text);
	CHECK_INT(tenant_of(p, "web-2", "10.1.0.1"), 0);
	CHECK_INT(tenant_of(p, "web-2", "10.0.0.1"), 1);
	CHECK_INT(tenant_of(p, "web-1", "10.0.0.1"), 1);
	CHECK_INT(tenant_of(p, "web-1", "10.1.0.1"), 2);
	CHECK_INT(tenant_of(p, "x9", NULL), 2);
	CHECK_INT(tenant_of(p, "db", "10.0.0.1"), 3);
	CHECK_INT(tenant_of(p, NULL, NULL), 3);
	p->default_tenant = -1;
	CHECK_INT(tenant_of(p, "db", "10.0.0.1"), -ENOENT);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_overlap_against_brute_force);
	RUN(test_specificity);
	RUN(test_keys_of_blocks);
	RUN(test_clients);
	RUN(test_bad_patterns);
	RUN(test_most_specific_wins);
	return 0;
}
