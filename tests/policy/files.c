/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every policy in tests/data/policy/good and in examples is accepted, with exactly the warnings of
 * its "# warns:" lines; every one in bad is refused with exactly the errors of its "# expect:"
 * lines; both in their order.
 */
#include "policy/policy.h"
#include "test.h"
#include <dirent.h>
#include <errno.h>

static struct weir_policy_remarks remarks;

static char *slurp(const char *folder, const char *name, size_t *ret_len)
{
	static char text[1 << 16];
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		FAIL("%s: %s", path, strerror(errno));
	*ret_len = fread(text, 1, sizeof(text) - 1, f);
	text[*ret_len] = '\0';
	fclose(f);
	return text;
}

/* Check that the lines of `text` that begin with `mark` are the n remarks `said`, in their
 * order. Return their number. */
static size_t just(
	const char *name, const char *text, const char *mark, const struct weir_err *said, size_t n)
{
	size_t seen = 0;

	for (const char *line = strstr(text, mark); line; line = strstr(line + 1, mark), seen++) {
		const char *words = line + strlen(mark);
		char want[500];

		snprintf(want, sizeof(want), "%s:%.*s", name, (int)strcspn(words, "\n"), words);
		if (seen >= n)
			FAIL("%s: no remark \"%s\"", name, want);
		if (strncmp(said[seen].text, want, strlen(want)) != 0)
			FAIL("said: %s\nnot:  %s", said[seen].text, want);
	}
	if (n > seen)
		FAIL("%s: not expected: %s", name, said[seen].text);
	return seen;
}

static void is_good(const char *folder, const char *name)
{
	size_t len;
	char *text = slurp(folder, name, &len);
	struct weir_policy *p = NULL;
	int rc = weir_policy_parse_all(text, len, name, NULL, NULL, &p, &remarks);

	if (rc != 0)
		FAIL("%s", remarks.errors[0].text);
	just(name, text, "# warns: ", remarks.warnings, remarks.n_warnings);
	weir_policy_free(p);
}

/* An example may have an slo, which nothing enforces. */
static void is_example(const char *folder, const char *name)
{
	size_t len;
	char *text = slurp(folder, name, &len);
	struct weir_policy *p = NULL;
	int rc = weir_policy_parse_all(text, len, name, NULL, NULL, &p, &remarks);

	if (rc != 0)
		FAIL("%s", remarks.errors[0].text);
	if (remarks.n_warnings > 1 || (remarks.n_warnings && !strstr(remarks.warnings[0].text,
								     "only measured and reported")))
		FAIL("%s", remarks.warnings[0].text);
	weir_policy_free(p);
}

static void is_bad(const char *folder, const char *name)
{
	size_t len;
	char *text = slurp(folder, name, &len);
	struct weir_policy *p = NULL;
	struct weir_err first;
	int rc = weir_policy_parse_all(text, len, name, NULL, NULL, &p, &remarks);

	CHECK_INT(rc, -EINVAL);
	CHECK(!p);
	CHECK_INT(weir_policy_parse(text, len, name, &p, &first), -EINVAL);
	CHECK_STR(first.text, remarks.errors[0].text);
	if (!just(name, text, "# expect: ", remarks.errors, remarks.n_errors))
		FAIL("%s says nothing of what it expects", name);
}

static void each(const char *folder, void (*check)(const char *, const char *), int least)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	if (!d)
		FAIL("%s: %s", folder, strerror(errno));
	while ((e = readdir(d))) {
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, ".yaml") != 0)
			continue;
		check(folder, e->d_name);
		n++;
	}
	closedir(d);
	CHECK(n >= least);
}

static void test_good(void)
{
	each(TEST_SOURCE "/tests/data/policy/good", is_good, 6);
}

static void test_bad(void)
{
	each(TEST_SOURCE "/tests/data/policy/bad", is_bad, 30);
}

static void test_examples(void)
{
	is_example(TEST_SOURCE "/examples", "machine.yaml");
	is_example(TEST_SOURCE "/examples", "weights.yaml");
	is_example(TEST_SOURCE "/examples", "each.yaml");
	is_example(TEST_SOURCE "/examples", "limits.yaml");
	is_example(TEST_SOURCE "/examples", "departments.yaml");
}

int main(void)
{
	RUN(test_good);
	RUN(test_bad);
	RUN(test_examples);
	return 0;
}
