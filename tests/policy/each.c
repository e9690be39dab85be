/* SPDX-License-Identifier: BSD-3-Clause */
/* each: templates are refused with their place, and expand to the policy that a person would have spelled out. */
#include "policy/by-size.h"
#include "policy/policy.h"
#include "policy/each.h"
#include "policy/override/override.h"
#include "text.h"
#include "base/rng.h"
#include <errno.h>
#include <stdlib.h>

#define LIST(...)                                                                                  \
	(struct policy_instance[])                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define EXPORT(name)                                                                               \
	{                                                                                          \
		.who = {.export_ = name }                                                          \
	}

static struct weir_policy *expand(struct weir_policy *p, struct policy_instance *list, size_t n)
{
	CHECK_INT(policy_each_expand(p, list, n), 0);
	return p;
}

static const char vms[] =
	"classes:\n"
	"  gold: {weight: 4, max: 100 iops}\n"
	"  silver: {weight: 2, min: 10 iops}\n"
	"resources:\n"
	"  - name: r\n"
	"    capacity: 100 iops\n"
	"    volumes:\n"
	"      - {name: vm-1, back: \"memory:1G\"}\n"
	"      - {name: vm-2, back: \"memory:1G\", class: gold}\n"
	"      - {name: vm-3, back: \"memory:1G\"}\n"
	"      - {name: db, back: \"memory:1G\"}\n"
	"tenants:\n"
	"  - {name: vms, weight: 4, each: {match: {export: \"vm-*\"}, class: silver}}\n"
	"  - {name: db, match: {export: db}}\n"
	"  - {name: rest, match: {export: \"*\"}}\n"
	"default: rest\n";

static void test_expand(void)
{
	struct policy_instance list[] = {
		EXPORT("vm-3"), EXPORT("vm-2"), EXPORT("vm-1"), EXPORT("vm-3"), EXPORT("db")};
	struct weir_policy *p = parse(vms);
	const struct weir_tenant *t;
	int of = -1;

	CHECK_INT(p->n_tenants, 4);
	CHECK_STR(p->tenants[1].path, "vms/others");
	CHECK_INT(policy_each_match(p, &list[0].who, &of), -EAGAIN);
	CHECK_INT(of, 0);
	CHECK_INT(weir_policy_match(p, &list[0].who), 1); /* others, until it is made */
	expand(p, list, 5);
	t = p->tenants;
	CHECK_INT(p->n_tenants, 7);
	CHECK_STR(t[2].path, "vms/vm-1");
	CHECK_STR(t[4].path, "vms/vm-3");
	CHECK_STR(t[5].path, "db");
	CHECK_INT(p->default_tenant, 6);
	CHECK_INT(list[0].tenant, 4);
	CHECK_INT(list[1].tenant, 3);
	CHECK_INT(list[3].tenant, 4);
	CHECK_INT(list[4].tenant, -1);
	CHECK_INT(t[0].first_child, 1);
	CHECK_INT(t[1].next_sibling, 2);
	CHECK_INT(t[4].next_sibling, -1);
	CHECK_INT(t[0].next_sibling, 5);
	CHECK_STR(t[2].class_, "silver");
	CHECK_NEAR(t[2].weight, 2, 0);
	CHECK_STR(t[3].class_, "gold"); /* the volume's class, and nothing of the template's */
	CHECK_NEAR(t[3].weight, 4, 0);
	CHECK_INT(t[3].n_min, 0);
	CHECK_INT(t[3].n_max, 1);
	CHECK_INT(t[0].each->n_made, 3);
	CHECK_INT(policy_each_match(p, &list[0].who, &of), 4);
	CHECK_INT(policy_override_set(p, "vms/vm-3.max", "5k iops", NULL), 0);
	CHECK_INT(policy_override_check(p, NULL, NULL), 0);
	weir_policy_free(p);
}

static void test_max_tenants(void)
{
	struct weir_policy *p =
		parse("tenants: [{name: v, each: {match: {export: \"*\"}, max_tenants: 2}}]\n");
	struct policy_instance list[] = {EXPORT("c"), EXPORT("a"), EXPORT("c"), EXPORT("b")};
	int of;

	expand(p, list, 4);
	CHECK_INT(p->n_tenants, 4);
	CHECK_STR(p->tenants[2].path, "v/a");
	CHECK_STR(p->tenants[3].path, "v/c");
	CHECK_INT(list[3].tenant, -1);
	CHECK_INT(policy_each_match(p, &list[3].who, &of), 1); /* others */
	weir_policy_free(p);
}

/* The specificity order is that of the template's match, also when its tenants exist. */
static void test_order(void)
{
	static const char text[] =
		"tenants:\n"
		"  - {name: v, each: {match: {export: \"vm-*\"}}}\n"
		"  - {name: one, match: {export: \"vm-1*\"}}\n"
		"  - {name: c, each: {match: {client: \"10.0.0.0/8\"}, name: \"c-{client}\"}}\n"
		"  - {name: u, each: {match: {export: home, uid: \"*\"}}}\n";
	struct weir_policy *p = parse(text);
	struct policy_instance list[] = {EXPORT("vm-12"), EXPORT("vm-2"),
		{.who = {.export_ = "x", .client = "10.1.2.3"}},
		{.who = {.export_ = "vm-2", .client = "10.1.2.3"}},
		{.who = {.export_ = "home", .uid = "1000"}}, {.who = {.export_ = "home"}}};
	int of;

	expand(p, list, 6);
	CHECK_INT(list[0].tenant, -1);
	CHECK_STR(p->tenants[weir_policy_match(p, &list[0].who)].path, "one");
	CHECK_STR(p->tenants[list[1].tenant].path, "v/vm-2");
	CHECK_STR(p->tenants[list[2].tenant].path, "c/c-10.1.2.3");
	CHECK_STR(p->tenants[list[3].tenant].path, "v/vm-2"); /* export before client */
	CHECK_STR(p->tenants[list[4].tenant].path, "u/1000");
	CHECK_STR(p->tenants[weir_policy_match(p, &list[4].who)].path, "u/1000");
	CHECK_INT(list[5].tenant, -1);
	CHECK_STR(p->tenants[policy_each_match(p, &list[5].who, &of)].path, "u/others");
	weir_policy_free(p);
}

/* Names that no tenant may have are made safe and stay distinct. */
static void test_names(void)
{
	struct weir_policy *p = parse("tenants: [{name: v, each: {match: {tls: \"*\"}}}]\n");
	char longest[300], name[POLICY_EACH_NAME];
	struct policy_instance list[] = {{.who = {.tls = "a/b"}}, {.who = {.tls = "a_b"}},
		{.who = {.tls = "a\nb"}}, {.who = {.tls = "others"}}, {.who = {.tls = longest}},
		{.who = {.tls = "\xff\xfe"}}, {.who = {.tls = " "}}, {.who = {.tls = "*"}},
		{.who = {.tls = "h\xc3\xa9"}}};
	const size_t n = sizeof(list) / sizeof(*list);
	struct weir_err err;

	memset(longest, 'x', 299);
	longest[299] = '\0';
	expand(p, list, n);
	CHECK_INT(p->n_tenants, 2 + n);
	for (size_t i = 0; i < n; i++) {
		CHECK(list[i].tenant >= 0);
		CHECK_INT(weir_policy_match(p, &list[i].who), list[i].tenant);
	}
	CHECK_INT(policy_override_check(p, NULL, &err), 0);
	CHECK_STR(p->tenants[list[1].tenant].name, "a_b");
	CHECK_STR(p->tenants[list[8].tenant].name, "h\xc3\xa9");
	CHECK(policy_each_name(p->tenants[0].each, &list[4].who, name));
	CHECK_INT(strlen(name), 63);
	CHECK(strncmp(p->tenants[list[0].tenant].name, "a_b~", 4) == 0);
	CHECK(policy_each_absent(p, "v/new"));
	CHECK(!policy_each_absent(p, "v/a_b"));
	CHECK(!policy_each_absent(p, "v/a/b"));
	CHECK(!policy_each_absent(p, "w/x"));
	weir_policy_free(p);
}

/* Two senders of one name are told apart. */
static void test_same_name(void)
{
	struct weir_policy *p =
		parse("tenants: [{name: v, each: {match: {export: \"*\", tls: \"*\"}}}]\n");
	struct policy_instance list[] = {
		{.who = {.export_ = "a-b", .tls = "c"}}, {.who = {.export_ = "a", .tls = "b-c"}}};

	expand(p, list, 2);
	CHECK_STR(p->tenants[list[0].tenant].name, "a-b-c");
	CHECK_INT(list[1].tenant, -1);
	CHECK_INT(weir_policy_match(p, &list[1].who), 1);
	weir_policy_free(p);
}

static struct weir_policy *copy_of(const struct weir_policy *p)
{
	struct weir_policy *copy;

	CHECK_INT(policy_copy(p, &copy), 0);
	return copy;
}

static const char thirty[] = "resources: [{name: r, back: \"memory:1G\", capacity: 100 iops}]\n"
			     "tenants:\n"
			     "  - {name: v, each: {match: {export: \"*\"}, min: 30 iops}}\n"
			     "  - {name: db, min: 20 iops, match: {export: db}}\n";

/* Those that had their min keep it; the others get what fits, in order. */
static void test_fit(void)
{
	struct weir_policy *p = parse(thirty), *was = parse(thirty);
	struct policy_instance list[] = {EXPORT("a"), EXPORT("b"), EXPORT("c")};

	expand(was, &list[2], 1);
	expand(p, list, 3);
	CHECK_INT(policy_override_check(p, NULL, NULL), -EINVAL);
	CHECK_INT(policy_each_fit(p, list, 3, was, false), 0);
	CHECK_INT(policy_override_check(p, NULL, NULL), 0);
	CHECK_INT(p->tenants[list[0].tenant].n_min, 1);
	CHECK_INT(p->tenants[list[1].tenant].n_min, 0);
	CHECK_STR(p->tenants[list[1].tenant].min_off,
		"t.yaml:1:52: the mins add up to 110 iops, over the capacity of 'r', 100 iops");
	CHECK_INT(p->tenants[list[2].tenant].n_min, 1);
	weir_policy_free(was);
	was = copy_of(p);
	weir_policy_free(p);
	CHECK(was->tenants[list[1].tenant].min_off);
	weir_policy_free(was);
	p = parse(thirty);
	expand(p, list, 2);
	CHECK_INT(policy_each_fit(p, list, 2, NULL, false), 0);
	CHECK_INT(p->tenants[list[1].tenant].n_min, 1);
	CHECK(!p->tenants[list[1].tenant].min_off);
	weir_policy_free(p);
}

static void set(struct weir_policy *p, const char *key, const char *value)
{
	CHECK_INT(policy_override_set(p, key, value, NULL), 0);
}

/* Each min is judged alone: a smaller one after a larger one that does not fit is kept, and the reason is the true one. */
static void test_fit_alone(void)
{
	struct weir_policy *p = parse(thirty);
	struct policy_instance list[] = {
		EXPORT("d"), EXPORT("b"), EXPORT("a"), EXPORT("c"), EXPORT("e")};

	expand(p, list, 5);
	set(p, "v/d.max", "7 iops");
	set(p, "v/b.min", "90 iops");
	set(p, "v/c.min", "95 iops");
	set(p, "v/e.min", "5 iops");
	CHECK_INT(policy_each_fit(p, list, 5, NULL, false), 0);
	CHECK_INT(policy_override_check(p, NULL, NULL), 0);
	CHECK(strstr(p->tenants[list[0].tenant].min_off,
		"the max of 'v/d', 7 iops, is below its min, 30 iops"));
	CHECK(strstr(p->tenants[list[1].tenant].min_off, "over the capacity of 'r'"));
	CHECK(strstr(p->tenants[list[3].tenant].min_off, "over the capacity of 'r'"));
	CHECK_INT(p->tenants[list[2].tenant].n_min, 1);
	CHECK_INT(p->tenants[list[4].tenant].n_min, 1);
	weir_policy_free(p);
}

/* A change to a policy in force, with tenants a and b and then more, is refused if it takes a min from one of them. */
static void changed(const char *key, const char *value, const char *error)
{
	struct policy_instance list[] = {EXPORT("a"), EXPORT("b"), EXPORT("c")};
	struct weir_policy *p = parse(thirty), *was = parse(thirty);
	struct weir_err err = {.text = ""};

	expand(was, list, 3);
	CHECK_INT(policy_each_fit(was, list, 3, NULL, false), 0);
	CHECK(was->tenants[list[2].tenant].min_off);
	expand(p, list, 3);
	set(p, key, value);
	CHECK_INT(policy_each_fit(p, list, 3, was, true), 0);
	CHECK_INT(policy_override_check(p, NULL, &err), error ? -EINVAL : 0);
	if (error && !strstr(err.text, error))
		CHECK_STR(err.text, error);
	for (int i = 0; i < 2; i++)
		CHECK(!p->tenants[list[i].tenant].min_off);
	weir_policy_free(p);
	weir_policy_free(was);
}

static void test_fit_changed(void)
{
	changed("v/a.max", "7 iops", "the max of 'v/a', 7 iops, is below its min, 30 iops");
	changed("v/c.max", "7 iops", "the max of 'v/c', 7 iops, is below its min, 30 iops");
	changed("v/a.min", "90 iops", "the mins add up to 140 iops");
	changed("db.min", "60 iops", "the mins add up to 120 iops");
	changed("r.capacity", "50 iops", "the mins add up to 80 iops");
	changed("v.max", "10 iops", "below the mins of its children together, 60 iops");
	changed("v/c.min", "20 iops", NULL);
	changed("v/a.min", "31 iops", NULL);
}

/* A tenant that had a fault of its own when it was made does not block later changes. */
static void test_fit_own_fault(void)
{
	struct policy_instance list[] = {EXPORT("a"), EXPORT("b")};
	struct weir_policy *p = parse(thirty), *was = parse(thirty);

	for (int i = 0; i < 2; i++) {
		expand(i ? p : was, list, 2);
		set(i ? p : was, "v/a.max", "7 iops");
	}
	CHECK_INT(policy_each_fit(was, list, 2, NULL, false), 0);
	set(p, "v/b.weight", "2");
	CHECK_INT(policy_each_fit(p, list, 2, was, true), 0);
	CHECK_INT(policy_override_check(p, NULL, NULL), 0);
	CHECK(p->tenants[list[0].tenant].min_off);
	CHECK(!p->tenants[list[1].tenant].min_off);
	weir_policy_free(p);
	weir_policy_free(was);
}

/* A min by size that grows loses its place before the mins that are in force. */
static void test_fit_grown(void)
{
	static const char text[] =
		"resources: [{name: r, back: \"memory:9G\", capacity: 100 iops}]\n"
		"exports: [{name: a, size: %s GiB}, {name: b, offset: 8 GiB, size: 1 GiB}]\n"
		"tenants: [{name: v, each: {match: {export: \"*\"}, min: 30 iops/GiB}}]\n";
	struct policy_instance list[] = {EXPORT("a"), EXPORT("b")};
	struct weir_policy *both[2];

	for (int i = 0; i < 2; i++) {
		char now[512];

		sprintf(now, text, i ? "3" : "1");
		both[i] = expand(parse(now), list, 2);
		policy_size_resolve(both[i], NULL, NULL);
		CHECK_INT(policy_each_fit(both[i], list, 2, i ? both[0] : NULL, false), 0);
		CHECK(!both[i]->tenants[list[1].tenant].min_off);
		CHECK_INT(both[i]->tenants[list[0].tenant].min_off != NULL, i);
	}
	weir_policy_free(both[0]);
	weir_policy_free(both[1]);
}

/* Against the law, one by one: a min is kept if the limits are valid with it and with those kept before it. */
static void test_law_fit(void)
{
	struct rng rng;

	rng_init(&rng, 1, "fit");
	for (int round = 0; round < 200; round++) {
		struct policy_instance list[12];
		char names[12][4], value[32];
		struct weir_policy *p = parse(thirty), *q = parse(thirty);
		size_t n = 1 + rng_below(&rng, 12);

		for (size_t i = 0; i < n; i++) {
			sprintf(names[i], "e%u", (unsigned)(i * 7 % 12));
			list[i] = (struct policy_instance){.who = {.export_ = names[i]}};
		}
		expand(p, list, n);
		expand(q, list, n);
		for (size_t i = 0; i < n; i++) {
			char key[16];

			sprintf(key, "v/%s.min", names[i]);
			sprintf(value, "%u iops", 1 + (unsigned)rng_below(&rng, 40));
			set(p, key, value);
			set(q, key, "none");
		}
		CHECK_INT(policy_each_fit(p, list, n, NULL, false), 0);
		for (size_t i = 0; i < n; i++) {
			struct weir_tenant *t = &q->tenants[list[i].tenant];
			const struct weir_tenant *is = &p->tenants[list[i].tenant];

			t->min[0] = is->min[0];
			t->n_min = 1;
			if (policy_override_check(q, NULL, NULL) < 0)
				t->n_min = 0;
			CHECK_INT(is->n_min, t->n_min);
			CHECK_INT(is->min_off == NULL, t->n_min);
		}
		weir_policy_free(p);
		weir_policy_free(q);
	}
}

/* A volume that was removed has no tenant; users of one export do not depend on it. */
static void test_gone(void)
{
	struct weir_policy *p =
		parse("tenants:\n"
		      "  - {name: v, each: {match: {export: \"vm-*\"}, min: 1 iops}}\n"
		      "  - {name: u, each: {match: {uid: \"*\"}}}\n");
	struct policy_instance list[] = {
		EXPORT("vm-a"), EXPORT("vm-b"), {.who = {.export_ = "x", .uid = "1"}}};

	list[0].gone = list[2].gone = true;
	expand(p, list, 3);
	CHECK_INT(list[0].tenant, -1);
	CHECK_INT(weir_policy_find(p, "v/vm-a"), -ENOENT);
	CHECK_STR(p->tenants[list[1].tenant].path, "v/vm-b");
	CHECK_STR(p->tenants[list[2].tenant].path, "u/1");
	weir_policy_free(p);
}

/* A volume that exists is at its resource, although a folder of another one could have a file of that name. */
static void test_fit_beside_folder(void)
{
	struct weir_policy *p = parse(
		"resources:\n"
		"  - {name: r, capacity: 100 iops, volumes: [\n"
		"      {name: vm-a, back: \"memory:1M\"}, {name: vm-b, back: \"memory:1M\"}]}\n"
		"  - {name: d, volumes: [{dir: /vm, name: \"{name}\"}]}\n"
		"tenants: [{name: v, each: {match: {export: \"vm-*\"}, min: 60 iops}}]\n");
	struct policy_instance list[] = {EXPORT("vm-a"), EXPORT("vm-b")};

	expand(p, list, 2);
	CHECK_INT(policy_each_fit(p, list, 2, NULL, false), 0);
	CHECK(!p->tenants[list[0].tenant].min_off);
	CHECK(p->tenants[list[1].tenant].min_off);
	weir_policy_free(p);
}

static void test_by_size(void)
{
	struct weir_policy *p =
		parse("resources: [{name: r, back: \"memory:4G\"}]\n"
		      "exports: [{name: a, size: 1 GiB}, {name: b, offset: 1 GiB, size: 2 GiB}]\n"
		      "tenants: [{name: v, each: {match: {export: \"*\"}, max: 10 iops/GiB}}]\n");
	struct policy_instance list[] = {EXPORT("a"), EXPORT("b")};

	expand(p, list, 2);
	policy_size_resolve(p, NULL, NULL);
	CHECK_NEAR(p->tenants[list[0].tenant].max[0].rate, 10, 1e-9);
	CHECK_NEAR(p->tenants[list[1].tenant].max[0].rate, 20, 1e-9);
	CHECK_INT(p->tenants[1].n_max, 0); /* others */
	weir_policy_free(p);
}

/* Clients that share `others` have the bound of a max by size. */
static void test_others(void)
{
	struct weir_policy *p = parse(
		"tenants:\n"
		"  - {name: v, each: {match: {export: \"v*\"}, burst: 2k iops for 1s, max: [\n"
		"      {rate: 1 iops/GiB, at_least: 950 iops, at_most: 1k iops}, 1 MiB/s/GiB]}}\n"
		"  - {name: w, each: {match: {export: \"w*\"}, max: {rate: 1 iops/GiB, at_least: 9 "
		"iops}}}\n");
	const struct weir_tenant *t = &p->tenants[weir_policy_find(p, "v/others")];

	CHECK_INT(t->n_max, 1);
	CHECK_NEAR(t->max[0].rate, 1000, 0);
	CHECK_NEAR(t->max[0].burst_rate, 2000, 0);
	t = &p->tenants[weir_policy_find(p, "w/others")];
	CHECK_INT(t->n_max, 1);
	CHECK_NEAR(t->max[0].rate, 9, 0);
	weir_policy_free(p);
}

static void test_refused(void)
{
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, min: 300 iops, max: 77 "
		"iops}}]\n",
		"the max of 'v/{export}', 77 iops, is below its min, 300 iops");
	refused("tenants: [{name: v, each: {match: {export: vm}}}]\n",
		"t.yaml:1:35: tenants[0].each.match: has no pattern");
	refused("tenants: [{name: v, each: {class: x, match: {export: \"*\"}}}]\n", "no class 'x'");
	refused("tenants: [{name: v, each: {weight: 2}}]\n", "a template needs a match");
	refused("tenants: [{name: v, match: {export: a}, each: {match: {export: \"*\"}}}]\n",
		"t.yaml:1:28: 'v' has tenants below it");
	refused("tenants: [{name: v, each: {match: {export: \"*\", client: \"10.*\"}, name: "
		"\"{export}\"}}]\n",
		"needs {client}");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, name: \"{export}-{uid}\"}}]\n",
		"add uid: \"*\" to the match");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, name: \"{exprt}\"}}]\n",
		"valid are {export}");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, name: \"a/{export}\"}}]\n",
		"must not contain '/'");
	refused("tenants: [{name: v, each: {match: {export: \"*\", path: x}}}]\n",
		"no match of a path");
	refused("tenants: [{name: v, each: {match: [{export: \"a*\"}, {uid: \"1*\"}]}}]\n",
		"in other fields than the first");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, expire_after: 1ms}}]\n",
		"from 1s");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}, max_tenants: 0}}]\n",
		"max_tenants");
	refused("tenants: [{name: v, each: {match: {export: \"vm-*\"}}, children: [{name: vm-1, "
		"match: {export: x}}]}]\n",
		"t.yaml:1:65: the template of 'v' (line 1) may make a second tenant 'v/vm-1'");
	refused("tenants: [{name: v, each: {match: {export: \"vm-*\"}}, children: [{name: others, "
		"match: {export: x}}]}]\n",
		"a second tenant 'v/others'");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}}}, {name: w, match: {export: "
		"\"*\"}}]\n",
		"'w' matches the same as 'v'");
	refused("tenants: [{name: v, each: {match: {client: \"10.*\"}, max: 3 iops/GiB}}]\n",
		"names its export");
	refused("tenants: [{name: v, each: {match: {export: \"*\"}}}]\ndefault: v\n",
		"has children");
}

/* ---- by hand */

/* Write the tenants of a template as a person would. */
static struct weir_policy *spelled_out(const char *const *names, size_t n)
{
	char text[8192] = "tenants:\n  - {name: solo, weight: 3, match: {export: solo}}\n"
			  "  - name: v\n    weight: 2\n    min: 50 iops\n    children:\n";

	for (size_t i = 0; i < n; i++)
		sprintf(text + strlen(text),
			"      - {name: %s, weight: 3, max: 70 iops, burst: 90 iops for 1s, match: "
			"{export: %s}}\n",
			names[i], names[i]);
	strcat(text, "      - {name: lit, match: {export: lit}}\n");
	return parse(text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void compare(const struct weir_policy *p, const struct weir_policy *q, const char *path)
{
	struct weir_bounds a[64], b[64];
	double pa[64], pb[64], of[64], ob[64];
	int i = weir_policy_find(p, path), k = weir_policy_find(q, path);

	CHECK(i >= 0 && k >= 0);
	CHECK_INT(weir_policy_bounds(p, a), 0);
	CHECK_INT(weir_policy_bounds(q, b), 0);
	weir_policy_share(p, pa, of);
	weir_policy_share(q, pb, ob);
	CHECK_NEAR(of[i], ob[k], 1e-12);
	for (int s = 0; s < WEIR_LIMITS; s++) {
		CHECK_NEAR(a[i].min[s], b[k].min[s], 1e-9);
		CHECK(a[i].max[s] == b[k].max[s]);
	}
	CHECK(p->tenants[i].max[0].burst_rate == q->tenants[k].max[0].burst_rate);
}

static void test_law_same(void)
{
	static const char text[] =
		"classes: {c: {weight: 3, max: 70 iops, burst: 90 iops for 1s}}\n"
		"tenants:\n"
		"  - {name: solo, weight: 3, match: {export: solo}}\n"
		"  - {name: v, weight: 2, min: 50 iops, each: {match: {export: \"e*\"}, class: "
		"c},\n"
		"     children: [{name: lit, match: {export: lit}}]}\n";
	struct rng rng;

	rng_init(&rng, 1, "each");
	for (int round = 0; round < 50; round++) {
		struct policy_instance list[20] = {0};
		char store[20][8];
		const char *names[20];
		size_t n = 1 + rng_below(&rng, 12), distinct = 0;
		struct weir_policy *p = parse(text), *q, *copy;

		for (size_t i = 0; i < n; i++) {
			sprintf(store[i], "e%u", (unsigned)rng_below(&rng, 30));
			list[i].who.export_ = names[i] = store[i];
		}
		CHECK_INT(policy_copy(p, &copy), 0);
		weir_policy_free(p);
		p = expand(copy, list, n);
		qsort(names, n, sizeof(*names), by_text);
		for (size_t i = 0; i < n; i++)
			if (!i || strcmp(names[i], names[i - 1]) != 0)
				names[distinct++] = names[i];
		q = spelled_out(names, distinct);
		CHECK_INT(p->n_tenants, q->n_tenants + 1);
		for (size_t i = 0; i < q->n_tenants; i++)
			compare(p, q, q->tenants[i].path);
		for (unsigned i = 0; i < 30; i++) {
			char name[8];
			struct weir_who who = {.export_ = name};
			int a, b;

			sprintf(name, "e%u", i);
			a = weir_policy_match(p, &who);
			b = weir_policy_match(q, &who);
			CHECK_STR(p->tenants[a].path, b < 0 ? "v/others" : q->tenants[b].path);
		}
		weir_policy_free(p);
		weir_policy_free(q);
	}
}

int main(void)
{
	RUN(test_expand);
	RUN(test_max_tenants);
	RUN(test_order);
	RUN(test_names);
	RUN(test_same_name);
	RUN(test_fit);
	RUN(test_fit_alone);
	RUN(test_fit_changed);
	RUN(test_fit_own_fault);
	RUN(test_fit_grown);
	RUN(test_law_fit);
	RUN(test_gone);
	RUN(test_fit_beside_folder);
	RUN(test_by_size);
	RUN(test_others);
	RUN(test_refused);
	RUN(test_law_same);
	return 0;
}
