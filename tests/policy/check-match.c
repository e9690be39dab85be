/* SPDX-License-Identifier: BSD-3-Clause */
/* check-match: refuses exactly the tenants that a comparison of all pairs would refuse; and
 * compares few pairs of many tenants. */
#include "base/rng.h"
#include "policy/impl.h"
#include "test.h"
#include <stdlib.h>

enum { MANY = 4000, ODD = 2950, RANDOM = 40, ROUNDS = 300 };

static struct weir_policy_remarks remarks;

/* Parse a policy of n tenants, where match(i) writes the match of tenant i. */
static int parse(size_t n, void (*match)(size_t i, FILE *to), struct weir_policy **ret)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rc;

	CHECK(f);
	fputs("tenants:\n", f);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "  - {name: t%zu, match: {", i);
		match(i, f);
		fputs("}}\n", f);
	}
	fclose(f);
	rc = weir_policy_parse_all(text, len, "t.yaml", NULL, NULL, ret, &remarks);
	free(text);
	return rc;
}

/* ---- against brute force */

static struct rng rng;
static struct {
	char export_[8], client[8];
} random_[RANDOM];

/* Draw letters that may also occur in an address. */
static void random_glob(char *to)
{
	static const char letters[] = "aabb*?";
	size_t n = 1 + rng_below(&rng, 5);

	for (size_t i = 0; i < n; i++)
		to[i] = letters[rng_below(&rng, sizeof(letters) - 1)];
	strcpy(to + n, n == 1 && to[0] == '*' ? "a" : "");
}

static void random_match(size_t i, FILE *to)
{
	fprintf(to, "export: \"%s\", client: \"*%s\"", random_[i].export_, random_[i].client);
}

static struct weir_match match_of(size_t i, char *client)
{
	snprintf(client, 10, "*%s", random_[i].client);
	return (struct weir_match){.export_ = random_[i].export_, .client = client};
}

/* Return true if a request can match both i and an earlier tenant, with no more specific one. */
static bool clashes(size_t i)
{
	char mine[10], other[10];
	struct weir_match a = match_of(i, mine);

	for (size_t j = 0; j < i; j++) {
		struct weir_match b = match_of(j, other);

		if (policy_match_compare(&a, &b) == 0 && policy_match_overlap(&a, &b))
			return true;
	}
	return false;
}

static void test_as_brute_force(void)
{
	size_t all = 0;

	rng_init(&rng, 7, "patterns");
	for (int round = 0; round < ROUNDS; round++) {
		struct weir_policy *p = NULL;
		size_t want = 0;

		for (size_t i = 0; i < RANDOM; i++) {
			random_glob(random_[i].export_);
			random_glob(random_[i].client);
		}
		for (size_t i = 0; i < RANDOM; i++)
			want += clashes(i);
		CHECK_INT(parse(RANDOM, random_match, &p) == 0, want == 0);
		CHECK_INT(remarks.n_errors, want);
		weir_policy_free(p);
		all += want;
	}
	CHECK(all > ROUNDS && all < RANDOM * ROUNDS / 2);
}

/* ---- many */

static void by_end(size_t i, FILE *to)
{
	fprintf(to, "client: \"*%zu\"", i + 10000);
}

static void by_second_end(size_t i, FILE *to)
{
	fprintf(to, "export: \"*-data\", client: \"*%zu\"", i + 10000);
}

static void by_second_begin(size_t i, FILE *to)
{
	fprintf(to, "export: \"vol-*\", uid: %zu", i + 10000);
}

static void by_block(size_t i, FILE *to)
{
	fprintf(to, "export: \"vol-*\", client: 10.%zu.%zu.0/24", i / 256, i % 256);
}

static void all_clash(size_t i, FILE *to)
{
	fprintf(to, "export: \"*%zu*\"", i + 10000);
}

static void by_middle(size_t i, FILE *to)
{
	fprintf(to, "export: \"?%zu?\"", i + 10000);
}

/* If all pairs were compared, they would be refused as too many. */
static void test_many(void)
{
	static void (*const good[])(size_t, FILE *) = {
		by_end, by_second_end, by_second_begin, by_block};
	struct weir_policy *p;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (parse(MANY, good[i], &p) != 0)
			FAIL("%s", remarks.errors[0].text);
		weir_policy_free(p);
	}
	CHECK(parse(MANY, all_clash, &p) < 0);
	CHECK_INT(remarks.n_errors, MANY - 1);
}

static void test_too_many(void)
{
	struct weir_policy *p;

	CHECK(parse(ODD, by_middle, &p) < 0);
	CHECK_INT(remarks.n_errors, 1);
	CHECK(strstr(remarks.errors[0].text, "too many similar matches"));
}

int main(void)
{
	RUN(test_as_brute_force);
	RUN(test_many);
	RUN(test_too_many);
	return 0;
}
