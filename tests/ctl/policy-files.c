/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every policy in tests/data/policy/good and in examples is accepted without a warning; every one
 * in bad is refused with just the errors that its "# expect:" lines name, in their order.
 */
#include "ctl/policy.h"
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

static void is_good(const char *folder, const char *name)
{
	size_t len;
	char *text = slurp(folder, name, &len);
	struct weir_policy *p = NULL;
	int rc = weir_policy_parse_all(text, len, name, NULL, NULL, &p, &remarks);

	if (rc != 0)
		FAIL("%s", remarks.errors[0].text);
	if (remarks.n_warnings)
		FAIL("%s", remarks.warnings[0].text);
	weir_policy_free(p);
}

static void is_bad(const char *folder, const char *name)
{
	static const char mark[] = "# expect: ";
	size_t len, n = 0;
	char *text = slurp(folder, name, &len), *line;
	struct weir_policy *p = NULL;
	struct weir_err first;
	int rc = weir_policy_parse_all(text, len, name, NULL, NULL, &p, &remarks);

	CHECK_INT(rc, -EINVAL);
	CHECK(!p);
	CHECK_INT(weir_policy_parse(text, len, name, &p, &first), -EINVAL);
	CHECK_STR(first.text, remarks.errors[0].text);
	for (line = strstr(text, mark); line; line = strstr(line + 1, mark), n++) {
		char want[500];

		snprintf(want, sizeof(want), "%s:%.*s", name, (int)strcspn(line, "\n") - 10,
			line + sizeof(mark) - 1);
		if (n >= remarks.n_errors)
			FAIL("%s: nobody said \"%s\"", name, want);
		if (strncmp(remarks.errors[n].text, want, strlen(want)) != 0)
			FAIL("said: %s\nnot:  %s", remarks.errors[n].text, want);
	}
	if (!n)
		FAIL("%s says nothing of what it expects", name);
	if (remarks.n_errors > n)
		FAIL("%s: not expected: %s", name, remarks.errors[n].text);
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
	is_good(TEST_SOURCE "/examples", "machine.yaml");
	is_good(TEST_SOURCE "/examples", "weights.yaml");
	is_good(TEST_SOURCE "/examples", "limits.yaml");
	is_good(TEST_SOURCE "/examples", "departments.yaml");
}

int main(void)
{
	RUN(test_good);
	RUN(test_bad);
	RUN(test_examples);
	return 0;
}
