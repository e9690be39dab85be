/* SPDX-License-Identifier: BSD-3-Clause */
/* index: finds exactly what a search of everything finds. */
#include "base/rng.h"
#include "policy/policy.h"
#include "policy/index.h"
#include "policy-parse.h"
#include <errno.h>

#define EXPORTS 300

/* Make exports e0 … e299, every third with a tenant of its own, every fifth by client; patterns
 * for the rest. */
static struct weir_policy *make(void)
{
	struct weir_policy *p;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs("resources: [{name: d}]\nexports:\n", f);
	for (int i = 0; i < EXPORTS; i++)
		fprintf(f, "  - {name: e%d, offset: %d MiB, size: 1 MiB}\n", i, i);
	fputs("tenants:\n  - {name: ten, match: {export: \"e1*\"}}\n"
	      "  - {name: lan, match: {client: 10.0.0.0/8}}\n"
	      "  - {name: host, match: [{client: 10.2.0.1}, {client: \"2001:db8:0:0::1\"}]}\n"
	      "  - {name: cert, match: [{tls: alice}, {tls: bob, uid: \"1000\"}]}\n"
	      "  - {name: user, match: {uid: \"1000\"}}\n",
		f);
	for (int i = 0; i < EXPORTS; i += 3)
		fprintf(f, "  - {name: t%d, match: [{export: e%d%s}, {path: /%d}]}\n", i, i,
			i % 5 ? "" : ", client: 10.1.0.0/16", i);
	fclose(f);
	p = parse(text);
	free(text);
	return p;
}

static void compare(struct weir_policy *p)
{
	const struct policy_index *index = p->index;
	struct rng rng;

	rng_init(&rng, 1, "policy-index");
	for (int i = 0; i < 2000; i++) {
		static const char *const clients[] = {
			NULL, "10.1.2.3", "10.2.0.1", "192.0.2.1", "2001:db8::1"};
		static const char *const names[] = {NULL, "alice", "bob", "carol"};
		static const char *const uids[] = {NULL, "1000", "0"};
		char name[16];
		struct weir_who who = {.export_ = name,
			.client = clients[rng_below(&rng, 5)],
			.tls = names[rng_below(&rng, 4)],
			.uid = uids[rng_below(&rng, 3)],
			.path = "/3"};
		int by_index, by_looking;

		snprintf(name, sizeof(name), "e%d", (int)rng_below(&rng, EXPORTS + 50));
		if (i % 100 == 0)
			who.export_ = NULL;
		p->index = index;
		CHECK(index != NULL);
		by_index = weir_policy_match(p, &who);
		CHECK_INT(policy_index_export(p, name),
			atoi(name + 1) < EXPORTS ? atoi(name + 1) : -ENOENT);
		p->index = NULL;
		by_looking = weir_policy_match(p, &who);
		CHECK_INT(policy_index_export(p, name),
			atoi(name + 1) < EXPORTS ? atoi(name + 1) : -ENOENT);
		CHECK_INT(by_index, by_looking);
	}
	p->index = index;
}

static void test_same(void)
{
	struct weir_policy *p = make(), *copy;

	compare(p);
	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p); /* a copy's index points into the copy */
	compare(copy);
	weir_policy_free(copy);
}

/* Mark the exports that a pattern matches, each once. Return their number. */
static int mark(const struct weir_policy *p, const char *pattern, bool marks[EXPORTS])
{
	int e = -1, n = 0;

	memset(marks, 0, EXPORTS * sizeof(*marks));
	while ((e = policy_index_next(p, pattern, e)) >= 0) {
		CHECK(!marks[e]);
		marks[e] = true;
		n++;
	}
	return n;
}

static void test_next(void)
{
	static const struct {
		const char *pattern;
		int fits;
	} all[] = {{NULL, EXPORTS}, {"*", EXPORTS}, {"e*", EXPORTS}, {"e1*", 111}, {"e?", 10},
		{"e2[0-5]", 6}, {"*9", 30}, {"e\\1*", 111}, {"e299", 1}, {"e299*", 1}, {"e300", 0},
		{"f*", 0}, {"a*", 0}, {"[e]7*", 11}};
	struct weir_policy *p = make();
	const struct policy_index *index = p->index;
	bool by_index[EXPORTS], by_looking[EXPORTS];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		p->index = index;
		CHECK_INT(mark(p, all[i].pattern, by_index), all[i].fits);
		p->index = NULL;
		CHECK_INT(mark(p, all[i].pattern, by_looking), all[i].fits);
		CHECK(memcmp(by_index, by_looking, sizeof(by_index)) == 0);
	}
	p->index = index;
	weir_policy_free(p);
}

/* The resources of the exports that fit a pattern, found with few looks where it is only a beginning. */
static void test_other(void)
{
	static const struct {
		const char *pattern;
		unsigned resources; /* a bit for each */
		int looks;          /* at most */
	} all[] = {{NULL, 7, 3}, {"*", 7, 3}, {"e*", 7, 3}, {"a*", 1, 1}, {"em5*", 2, 1},
		{"e?1", 7, 3}, {"*7", 7, 30}, {"ex", 0, 0}, {"em42", 2, 1}};
	const struct policy_index *index;
	struct weir_policy *p;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs("resources: [{name: a}, {name: b}, {name: c}]\nexports:\n", f);
	for (int i = 0; i < 300; i++)
		fprintf(f, "  - {name: %s%d, resource: %c, size: 1 MiB, offset: %d MiB}\n",
			i < 100   ? "el"
			: i < 200 ? "em"
				  : "en",
			i % 100, "abc"[i / 100], i);
	fputs("  - {name: a1, resource: a, size: 1 MiB, offset: 1000 MiB}\ntenants: [{name: t, "
	      "match: {tls: x}}]\n",
		f);
	fclose(f);
	p = parse(text);
	free(text);
	index = p->index;
	for (size_t i = 0; i < 2 * sizeof(all) / sizeof(*all); i++) {
		unsigned found = 0;
		int e = -1, looks = 0;

		p->index = i % 2 ? NULL : index;
		for (; (e = policy_index_other(p, all[i / 2].pattern, e)) >= 0; looks++)
			found |= 1u << p->exports[e].resource;
		CHECK_INT(found, all[i / 2].resources);
		if (p->index && looks > all[i / 2].looks)
			FAIL("%s: %d looks", all[i / 2].pattern, looks);
	}
	p->index = index;
	weir_policy_free(p);
}

static void test_only_possible_matches(void)
{
	struct weir_policy *p = make();
	struct policy_index_span spans[POLICY_INDEX_SPANS];
	size_t n = 0;

	policy_index_matches(p, &(struct weir_who){.export_ = "e3"}, spans);
	CHECK_INT(spans[0].n, 1);
	CHECK_STR(p->tenants[spans[0].at[0].tenant].path, "t3");
	for (int i = 0; i < POLICY_INDEX_SPANS; i++)
		n += spans[i].n;
	CHECK_INT(n, 3); /* and ten, lan: patterns */
	policy_index_matches(
		p, &(struct weir_who){.export_ = "e4", .client = "2001:db8::1"}, spans);
	CHECK_INT(spans[0].n, 0);
	CHECK_INT(spans[4].n, 1);
	CHECK_STR(p->tenants[spans[4].at[0].tenant].path, "host");
	weir_policy_free(p);
}

/* A name with a backslash or a bracket is a pattern, which may match other names. */
static void test_patterns(void)
{
	struct weir_policy *p = parse("tenants:\n  - {name: a, match: {export: \"a\\\\*b\"}}\n"
				      "  - {name: b, match: {export: \"[ab]\"}}\n");
	struct weir_who who = {.export_ = "a*b"};

	CHECK_INT(weir_policy_match(p, &who), 0);
	who.export_ = "b";
	CHECK_INT(weir_policy_match(p, &who), 1);
	who.export_ = "a\\*b";
	CHECK_INT(weir_policy_match(p, &who), -ENOENT);
	weir_policy_free(p);
}

static void test_nothing(void)
{
	struct weir_policy *p = parse("");
	struct weir_who who = {.export_ = "a"};

	CHECK_INT(weir_policy_match(p, &who), -ENOENT);
	CHECK_INT(policy_index_export(p, "a"), -ENOENT);
	CHECK_INT(policy_copy_everybody(p), 0); /* adds a tenant after the existing ones */
	CHECK_INT(weir_policy_match(p, &who), 0);
	CHECK_INT(weir_policy_find(p, "everybody"), 0);
	weir_policy_free(p);
}

static void test_paths(void)
{
	struct weir_policy *p = parse("tenants:\n  - {name: z}\n  - name: a\n    children: "
				      "[{name: z}, {name: b}]\n");

	for (size_t i = 0; i < p->n_tenants; i++)
		CHECK_INT(weir_policy_find(p, p->tenants[i].path), i);
	CHECK_INT(weir_policy_find(p, "b"), -ENOENT);
	CHECK_INT(weir_policy_find(p, "a/c"), -ENOENT);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_same);
	RUN(test_next);
	RUN(test_other);
	RUN(test_only_possible_matches);
	RUN(test_patterns);
	RUN(test_nothing);
	RUN(test_paths);
	return 0;
}
