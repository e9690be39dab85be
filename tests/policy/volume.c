/* SPDX-License-Identifier: BSD-3-Clause */
/* volume: volumes that the file does not state become exports; each that does not fit is skipped with its reason. */
#include "policy/index.h"
#include "policy/volume.h"
#include "test.h"

static const char text[] = "resources:\n"
			   "  - name: nvme0\n"
			   "    volumes:\n"
			   "      - {name: db, back: \"file:db.raw\", class: gold}\n"
			   "  - {name: old, back: \"memory:1M\"}\n"
			   "classes: {gold: {weight: 4}}\n";

static struct weir_policy *parse(void)
{
	struct weir_policy *p;
	struct weir_err err;

	if (weir_policy_parse(text, strlen(text), "t.yaml", &p, &err) != 0)
		FAIL("%s", err.text);
	return p;
}

struct skips {
	unsigned n;
	char last[200];
};

static void skipped(void *arg, const struct policy_volume *v, const char *why)
{
	struct skips *s = arg;

	s->n++;
	snprintf(s->last, sizeof(s->last), "%.20s: %s", v->name, why);
}

static void test_add(void)
{
	struct weir_policy *p = parse();
	const struct policy_volume list[] = {
		{"vm-2", "nvme0", "file:2.raw", "silver", false, true, {0}},
		{"vm-1", "nvme0", "file:1.raw", NULL, true, false, {0}},
	};
	struct skips s = {0};
	const struct weir_export *e;

	CHECK_INT(p->n_exports, 2); /* db, and the whole of old */
	CHECK_STR(p->exports[policy_index_export(p, "db")].class_, "gold");
	CHECK_INT(policy_volumes_add(p, list, 2, skipped, &s), 0);
	CHECK_INT(s.n, 0);
	CHECK_INT(p->n_exports, 4);
	e = &p->exports[policy_index_export(p, "vm-2")];
	CHECK_STR(e->back, "file:2.raw");
	CHECK_STR(e->class_, "silver");
	CHECK_INT(e->from, POLICY_EXPORT_FOUND);
	CHECK_INT(e->resource, 0);
	CHECK_INT(e->at.line, 2);
	e = &p->exports[policy_index_export(p, "vm-1")];
	CHECK(!e->class_);
	CHECK(e->read_only);
	CHECK_INT(e->from, POLICY_EXPORT_ADDED);
	CHECK(policy_index_export(p, "db") >= 0);
	weir_policy_free(p);
}

static void skips(const char *name, const char *resource, const char *why)
{
	struct weir_policy *p = parse();
	const struct policy_volume list[] = {{name, resource, "memory:1M", NULL, false, false, {0}},
		{"good", "nvme0", "memory:1M", NULL, false, false, {0}}};
	struct skips s = {0};
	char expected[200];

	CHECK_INT(policy_volumes_add(p, list, 2, skipped, &s), 0);
	snprintf(expected, sizeof(expected), "%.20s: %s", name, why);
	CHECK_INT(s.n, 1);
	CHECK_STR(s.last, expected);
	CHECK_INT(p->n_exports, 3);
	CHECK(policy_index_export(p, "good") >= 0);
	weir_policy_free(p);
}

static void test_unfit(void)
{
	char name[4097];

	memset(name, 'a', sizeof(name));
	name[4096] = 0;
	skips("db", "nvme0", "the policy has an export of that name");
	skips("new", "nvme1", "there is no such resource with volumes");
	skips("new", "old", "there is no such resource with volumes");
	skips("a/b", "nvme0", "contains a slash");
	skips("a\nb", "nvme0", "contains a control character");
	skips("", "nvme0", "is empty");
	skips(name, "nvme0", "has more than 255 bytes");
	skips("good", "nvme0", "another volume has that name");
}

int main(void)
{
	RUN(test_add);
	RUN(test_unfit);
	return 0;
}
