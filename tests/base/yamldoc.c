/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"
#include "base/yamldoc.h"
#include "test.h"

#include <errno.h>
#include <stdarg.h>

static struct yamldoc *parsed(const char *text)
{
	struct yamldoc *doc;
	struct weir_err e;

	if (yamldoc_parse(text, strlen(text), "w.yaml", &doc, &e) < 0)
		FAIL("%s", e.text);
	return doc;
}

/* Check that the text is refused with this message, and the output untouched. */
static void refused_n(const char *text, size_t len, const char *why)
{
	struct yamldoc *doc = NULL;
	struct weir_err e = {""};

	CHECK_INT(yamldoc_parse(text, len, "w.yaml", &doc, &e), -EINVAL);
	CHECK(doc == NULL);
	CHECK_STR(e.text, why);
	CHECK_INT(yamldoc_parse(text, len, "w.yaml", &doc, NULL), -EINVAL);
}

static void refused(const char *text, const char *why)
{
	refused_n(text, strlen(text), why);
}

static const char sample[] = /* as in weir-policy(5) */
	"listen: [\"unix:/run/weir/nbd.sock\", 'tcp:127.0.0.1:10809']\n"
	"resources:\n"
	"  - name: array1\n"
	"    depth: 64          # a comment, µ\n"
	"    capacity: 3.3k iops\n"
	"    cache: yes\n"
	"    order: sfq\n"
	"    share: 0.25\n"
	"    note: ~\n"
	"    other:\n"
	"    text: |\n"
	"      two\n"
	"      lines\n"
	"tenants:\n"
	"  - &prod\n"
	"    name: prod\n"
	"    max: 20 MiB/s\n"
	"    size: 64 KiB\n"
	"    every: 10ms\n"
	"    children:\n"
	"      - {name: db, weight: 3, max: 500}\n"
	"      - {name: web, wieght: 1, \"null\": 'null'}\n"
	"  - *prod\n";

static void a_document_is_read(void)
{
	struct yamldoc *doc = parsed(sample);
	yamldoc_node root = yamldoc_root(doc), listen = yamldoc_get(root, "listen");
	yamldoc_node array = yamldoc_at(yamldoc_get(root, "resources"), 0);
	struct weir_err e = {""};

	CHECK_INT(yamldoc_kind(root), YAMLDOC_MAP);
	CHECK_INT(yamldoc_map_size(root), 3);
	CHECK_INT(yamldoc_kind(listen), YAMLDOC_LIST);
	CHECK_INT(yamldoc_list(listen, &e), 0);
	CHECK_INT(yamldoc_size(listen), 2);
	CHECK_STR(yamldoc_text(yamldoc_at(listen, 1)), "tcp:127.0.0.1:10809");
	CHECK_INT(yamldoc_at(listen, 2).id, 0);
	CHECK(yamldoc_text(listen) == NULL);
	CHECK_INT(yamldoc_map(array, NULL, &e), 0);

	const char *s, *key;
	CHECK_INT(yamldoc_string(array, "name", &s, &e), 0);
	CHECK_STR(s, "array1");
	CHECK_INT(yamldoc_string(array, "text", &s, &e), 0);
	CHECK_STR(s, "two\nlines\n");
	CHECK_STR(yamldoc_text(yamldoc_map_at(array, 1, &key)), "64");
	CHECK_STR(key, "depth");
	CHECK_INT(yamldoc_map_at(array, 9, NULL).id, 0);
	CHECK_INT(yamldoc_map_at(listen, 0, NULL).id, 0);
	CHECK_STR(e.text, "");
	yamldoc_free(doc);
	yamldoc_free(NULL);
}

static void values_are_read(void)
{
	struct yamldoc *doc = parsed(sample);
	yamldoc_node root = yamldoc_root(doc);
	yamldoc_node array = yamldoc_at(yamldoc_get(root, "resources"), 0);
	yamldoc_node prod = yamldoc_at(yamldoc_get(root, "tenants"), 1); /* the alias */
	struct weir_err e = {""};
	int64_t depth;
	struct weir_rate rate;
	bool cache;
	double share;
	uint64_t size;
	weir_time every;
	int order;
	static const char *const orders[] = {"fifo", "edf", "sfq", NULL};

	CHECK_INT(yamldoc_int(array, "depth", 1, 64, &depth, &e), 0);
	CHECK_INT(depth, 64);
	CHECK_INT(yamldoc_rate(array, "capacity", &rate, &e), 0);
	CHECK(rate.per_second == 3300 && rate.unit == WEIR_UNIT_REQUESTS);
	CHECK_INT(yamldoc_bool(array, "cache", &cache, &e), 0);
	CHECK(cache);
	CHECK_INT(yamldoc_choice(array, "order", orders, &order, &e), 0);
	CHECK_INT(order, 2);
	CHECK_INT(yamldoc_count(array, "share", &share, &e), 0);
	CHECK(share == 0.25);
	CHECK_INT(yamldoc_rate(prod, "max", &rate, &e), 0);
	CHECK(rate.per_second == 20 * 1048576.0 && rate.unit == WEIR_UNIT_BYTES);
	CHECK_INT(yamldoc_size_of(prod, "size", &size, &e), 0);
	CHECK_INT(size, 65536);
	CHECK_INT(yamldoc_time(prod, "every", &every, &e), 0);
	CHECK_INT(every, 10 * WEIR_MS);
	CHECK_STR(e.text, "");
	yamldoc_free(doc);
}

/* Check that a value is absent: no such key, a null, or not a map. Nothing is set, and there is no
 * message. */
static void absent(yamldoc_node n, const char *key)
{
	static const char *const words[] = {"a", NULL};
	struct weir_err e = {"untouched"};
	const char *s = "s";
	bool b = true;
	double d = 7;
	int64_t i = 7;
	weir_time t = 7;
	uint64_t z = 7;
	struct weir_rate r = {7, WEIR_UNIT_TIME};
	int c = 7;

	CHECK_INT(yamldoc_get(n, key).id, 0);
	CHECK_INT(yamldoc_string(n, key, &s, &e), -ENOENT);
	CHECK_INT(yamldoc_bool(n, key, &b, &e), -ENOENT);
	CHECK_INT(yamldoc_count(n, key, &d, &e), -ENOENT);
	CHECK_INT(yamldoc_int(n, key, 0, 9, &i, &e), -ENOENT);
	CHECK_INT(yamldoc_time(n, key, &t, &e), -ENOENT);
	CHECK_INT(yamldoc_size_of(n, key, &z, &e), -ENOENT);
	CHECK_INT(yamldoc_rate(n, key, &r, &e), -ENOENT);
	CHECK_INT(yamldoc_choice(n, key, words, &c, &e), -ENOENT);
	CHECK(s[0] == 's' && b && d == 7 && i == 7 && t == 7 && z == 7 && r.per_second == 7 &&
		c == 7);
	CHECK_STR(e.text, "untouched");
}

static void absence_is_ordinary(void)
{
	struct yamldoc *doc = parsed(sample);
	yamldoc_node root = yamldoc_root(doc);
	yamldoc_node array = yamldoc_at(yamldoc_get(root, "resources"), 0);
	struct weir_err e;

	absent(array, "nothing");
	absent(array, "note");  /* ~ */
	absent(array, "other"); /* nothing after the colon */
	absent(yamldoc_get(root, "listen"), "name");
	absent(yamldoc_get(array, "name"), "name");
	absent((yamldoc_node){doc, 0}, "name");
	absent((yamldoc_node){NULL, 0}, "name");

	CHECK(yamldoc_has(array, "name") && yamldoc_has(array, "note"));
	CHECK(yamldoc_has(array, "other") && !yamldoc_has(array, "nothing"));
	CHECK(!yamldoc_has((yamldoc_node){NULL, 0}, "name"));
	CHECK_INT(yamldoc_error(array, &e, "needs a note"), -EINVAL);
	CHECK_STR(e.text, "w.yaml:3:5: resources[0]: needs a note");
	CHECK_INT(yamldoc_error(root, &e, "nothing is missing"), -EINVAL);
	CHECK_STR(e.text, "w.yaml:1:1: nothing is missing");

	/* A quoted null is text. */
	yamldoc_node web =
		yamldoc_at(yamldoc_get(yamldoc_at(yamldoc_get(root, "tenants"), 0), "children"), 1);
	CHECK_STR(yamldoc_text(yamldoc_get(web, "null")), "null");
	yamldoc_free(doc);

	doc = parsed("[~, null, Null, NULL, '', a]");
	for (size_t i = 0; i < 4; i++) {
		yamldoc_node n = yamldoc_at(yamldoc_root(doc), i);
		CHECK(yamldoc_kind(n) == YAMLDOC_NONE && yamldoc_text(n) == NULL);
		CHECK_INT(yamldoc_place(n).line, 1);
	}
	CHECK_STR(yamldoc_text(yamldoc_at(yamldoc_root(doc), 4)), "");
	yamldoc_free(doc);
}

static void mistakes_are_placed(void)
{
	static const char *const keys[] = {"name", "weight", "max", NULL};
	struct yamldoc *doc = parsed(sample);
	yamldoc_node root = yamldoc_root(doc), tenants = yamldoc_get(root, "tenants");
	yamldoc_node prod = yamldoc_at(tenants, 0), children = yamldoc_get(prod, "children");
	struct weir_err e;
	struct weir_rate rate = {7, WEIR_UNIT_TIME};

	CHECK_INT(yamldoc_map(yamldoc_at(children, 0), keys, &e), 0);
	CHECK_INT(yamldoc_map(yamldoc_at(children, 1), keys, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:22:21: tenants[0].children[1]: unknown key 'wieght' "
			  "(did you mean 'weight'?)");
	CHECK_INT(yamldoc_map(prod, keys, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:18:5: tenants[0]: unknown key 'size' (known: name, weight, max)");
	CHECK_INT(yamldoc_map(tenants, keys, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:15:3: tenants: must be a map (key: value)");
	CHECK_INT(yamldoc_list(prod, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:15:5: tenants[0]: must be a list");
	CHECK_INT(yamldoc_rate(yamldoc_at(children, 0), "max", &rate, &e), -EINVAL);
	CHECK_STR(e.text,
		"w.yaml:21:36: tenants[0].children[0].max: \"500\": needs a unit: iops, B/s, "
		"KiB/s, MiB/s, GiB/s, MB/s, GB/s, Mbit/s, Gbit/s");
	CHECK(rate.per_second == 7);

	/* The path of an alias is that of its target. */
	CHECK_INT(yamldoc_error(yamldoc_at(tenants, 1), &e, "no %s", "good"), -EINVAL);
	CHECK_STR(e.text, "w.yaml:15:5: tenants[0]: no good");
	/* Without a node there is no place. */
	yamldoc_error((yamldoc_node){doc, 0}, &e, "lost");
	CHECK_STR(e.text, "w.yaml: lost");
	yamldoc_error((yamldoc_node){NULL, 0}, &e, "lost");
	CHECK_STR(e.text, "lost");
	CHECK_INT(yamldoc_error(prod, NULL, "unread"), -EINVAL);
	CHECK_INT(yamldoc_map(prod, keys, NULL), -EINVAL);
	yamldoc_free(doc);
}

static void every_unknown_key_can_be_heard_of(void)
{
	static const char *const keys[] = {"name", "max", NULL};
	struct yamldoc *doc = parsed("{nam: 1, name: 2, maxx: 3, max: 4}");
	struct weir_err e;
	size_t from = 0;

	CHECK_INT(yamldoc_map_from(yamldoc_root(doc), keys, &from, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:1:2: unknown key 'nam' (did you mean 'name'?)");
	CHECK_INT(from, 1);
	CHECK_INT(yamldoc_map_from(yamldoc_root(doc), keys, &from, &e), -EINVAL);
	CHECK_STR(e.text, "w.yaml:1:19: unknown key 'maxx' (did you mean 'max'?)");
	CHECK_INT(from, 3);
	CHECK_INT(yamldoc_map_from(yamldoc_root(doc), keys, &from, &e), 0);
	CHECK_INT(
		yamldoc_map_from(yamldoc_get(yamldoc_root(doc), "max"), keys, &from, &e), -EINVAL);
	CHECK_INT(from, 3);
	yamldoc_free(doc);
}

static void wrong_values_are_refused(void)
{
	static const char *const orders[] = {"fifo", "edf", "sfq", NULL};
	struct yamldoc *doc = parsed("{i: 70, n: -1, f: 1.5, b: maybe, o: fofi, p: random, l: [1], "
				     "m: {a: 1}, t: 5, z: 5q, c: many, B: FALSE, y: On}");
	yamldoc_node n = yamldoc_root(doc);
	struct weir_err e;
	int64_t i = 7;
	bool b = true;
	double d = 7;
	weir_time t = 7;
	uint64_t z = 7;
	const char *s = NULL;
	int c = 7;

#define WRONG(call, why)                                                                           \
	do {                                                                                       \
		CHECK_INT(call, -EINVAL);                                                          \
		CHECK_STR(e.text, "w.yaml:1:" why);                                                \
	} while (0)
	WRONG(yamldoc_int(n, "i", 1, 64, &i, &e), "5: i: \"70\": must be at most 64");
	WRONG(yamldoc_int(n, "n", 0, 64, &i, &e), "12: n: \"-1\": must be at least 0");
	WRONG(yamldoc_int(n, "f", 0, 64, &i, &e), "19: f: \"1.5\": must be a whole number");
	WRONG(yamldoc_int(n, "l", 0, 64, &i, &e), "57: l: must be a whole number, not a list");
	WRONG(yamldoc_bool(n, "b", &b, &e), "27: b: \"maybe\": must be true or false");
	WRONG(yamldoc_bool(n, "m", &b, &e), "65: m: must be true or false, not a map");
	WRONG(yamldoc_choice(n, "o", orders, &c, &e),
		"37: o: \"fofi\": must be one of fifo, edf, sfq (did you mean fifo?)");
	WRONG(yamldoc_choice(n, "p", orders, &c, &e),
		"46: p: \"random\": must be one of fifo, edf, sfq");
	WRONG(yamldoc_choice(n, "l", orders, &c, &e), "57: l: must be text, not a list");
	WRONG(yamldoc_string(n, "m", &s, &e), "65: m: must be text, not a map");
	WRONG(yamldoc_time(n, "t", &t, &e), "76: t: \"5\": needs a unit: ns, us, ms, s, m, h, d");
	WRONG(yamldoc_time(n, "l", &t, &e), "57: l: must be a time, not a list");
	WRONG(yamldoc_size_of(n, "z", &z, &e),
		"82: z: \"5q\": unknown unit \"q\"; it may be B, KiB, "
		"MiB, GiB, TiB or kB, MB, GB, TB");
	WRONG(yamldoc_count(n, "c", &d, &e),
		"89: c: \"many\": must be a number, such as 1500 or 1.5k");
	CHECK(i == 7 && b && d == 7 && t == 7 && z == 7 && !s && c == 7);

	CHECK_INT(yamldoc_int(n, "n", -1, 64, &i, &e), 0);
	CHECK_INT(i, -1);
	CHECK_INT(yamldoc_bool(n, "B", &b, &e), 0);
	CHECK(!b);
	CHECK_INT(yamldoc_bool(n, "y", &b, &e), 0);
	CHECK(b);
	yamldoc_free(doc);
}

static void paths_are_cut_at_the_front(void)
{
	struct yamldoc *doc = parsed("alpha: {beta: [1, {gamma: 2}]}");
	yamldoc_node n = yamldoc_get(
		yamldoc_at(yamldoc_get(yamldoc_get(yamldoc_root(doc), "alpha"), "beta"), 1),
		"gamma");
	char buf[32];

	CHECK_STR(yamldoc_path(n, buf, sizeof(buf)), "alpha.beta[1].gamma");
	CHECK_STR(yamldoc_path(n, buf, 20), "….beta[1].gamma"); /* room for the mark of the cut */
	CHECK_STR(yamldoc_path(n, buf, 15), "…[1].gamma");
	CHECK_STR(yamldoc_path(n, buf, 6), "…");
	CHECK_STR(yamldoc_path(n, buf, 2), "");
	CHECK_STR(yamldoc_path(n, buf, 1), "");
	CHECK_STR(yamldoc_path(yamldoc_root(doc), buf, sizeof(buf)), "");
	CHECK_STR(yamldoc_path((yamldoc_node){doc, 0}, buf, sizeof(buf)), "");
	yamldoc_free(doc);
}

static void nothing_is_an_empty_map(void)
{
	static const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n",
		"~", "null\n", "{}", "%YAML 1.1\n---\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct yamldoc *doc = parsed(texts[i]);
		yamldoc_node root = yamldoc_root(doc);
		struct weir_err e;
		CHECK_INT(yamldoc_kind(root), YAMLDOC_MAP);
		CHECK_INT(yamldoc_map_size(root), 0);
		yamldoc_error(root, &e, "tenants is missing");
		CHECK(strstr(e.text, "tenants is missing"));
		CHECK(strncmp(e.text, "w.yaml:1:1: ", 12) == 0);
		yamldoc_free(doc);
	}
}

static void invalid_documents_are_refused(void)
{
	refused("a: 1\nb: 2\na: 3\n", "w.yaml:3:1: key 'a' is given twice; first in line 1");
	refused("x:\n  - {a: 1, 'a': 2}\n",
		"w.yaml:2:12: x[0]: key 'a' is given twice; first in line 2");
	refused("? [a]\n: 1\n", "w.yaml:1:1: its keys must be plain words, not lists or maps");
	refused("? {a: 1}\n: 1\n", "w.yaml:1:1: its keys must be plain words, not lists or maps");
	refused("a\n---\nb\n", "w.yaml:2:1: a second document; only one is allowed");
	refused("a: 1\n---\n[", "w.yaml:2:1: a second document; only one is allowed");
	refused("[&a 1,\n &a 2]", "w.yaml:2:2: anchor 'a' is given twice; first in line 1");
	refused("a: !mine 1\n", "w.yaml:1:4: a: tag \"!mine\" is not supported");
	refused("a: \"x\\0y\"\n", "w.yaml:1:4: a: must not contain a NUL character");
	refused("\"x\\0y\": 1\n", "w.yaml:1:1: must not contain a NUL character");
	refused("a: [1, 2\n", "w.yaml:2:1: did not find expected ',' or ']', while parsing a flow "
			      "sequence (line 1)");
	refused("a: *b\n", "w.yaml:1:4: found undefined alias");
	refused("a:\n\tb: 1\n", "w.yaml:2:1: found character that cannot start any token: a tab; "
				"indent with spaces");
	refused("a: @x\n",
		"w.yaml:1:4: found character that cannot start any token, while scanning "
		"for the next token (line 1)");
	refused("a: 1\nµ: \xFF\n", "w.yaml:2:4: invalid leading UTF-8 octet");
	refused_n("a: 1\nb: \0\n", 10, "w.yaml:2:4: control characters are not allowed");
	refused_n("\xFF\xFE"
		  "a\0:\0 \0"
		  "1\0",
		10, "w.yaml:1:1: invalid leading UTF-8 octet");
	refused_n("a: \xC2", 4, "w.yaml:1:4: incomplete UTF-8 octet sequence");
}

static void explicit_standard_tags_are_allowed(void)
{
	struct yamldoc *doc = parsed("{a: !!str 5, b: ! 6, c: !!map {d: 1}}");

	CHECK_STR(yamldoc_text(yamldoc_get(yamldoc_root(doc), "a")), "5");
	CHECK_STR(yamldoc_text(yamldoc_get(yamldoc_root(doc), "b")), "6");
	yamldoc_free(doc);
}

/* Generated texts. */
struct text {
	size_t len;
	char bytes[300000];
};
static struct text made;

__attribute__((format(printf, 1, 2))) static void put(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(made.bytes + made.len, sizeof(made.bytes) - made.len, fmt, args);
	va_end(args);
	CHECK(n >= 0 && (size_t)n < sizeof(made.bytes) - made.len);
	made.len += (size_t)n;
}

/* Write n anchors, each with `times` aliases to the one before. */
static void put_chain(unsigned n, unsigned times)
{
	made.len = 0;
	put("- &a0 [x]\n");
	for (unsigned i = 1; i < n; i++) {
		put("- &a%u [", i);
		for (unsigned j = 0; j < times; j++)
			put("%s*a%u", j ? ", " : "", i - 1);
		put("]\n");
	}
}

/* Parse the generated text. Return NULL if it is accepted, else the message. */
static const char *parse_made(void)
{
	static struct weir_err e;
	struct yamldoc *doc;

	int r = yamldoc_parse(made.bytes, made.len, "w.yaml", &doc, &e);
	if (r == 0)
		yamldoc_free(doc);
	else
		CHECK_INT(r, -EINVAL);
	return r ? e.text : NULL;
}

static void deep_nesting_is_refused(void)
{
	static const unsigned depths[] = {YAMLDOC_DEPTH, YAMLDOC_DEPTH + 1, 900, 100000};

	for (size_t i = 0; i < 4; i++) {
		made.len = 0;
		for (unsigned j = 0; j < depths[i]; j++)
			put("[");
		for (unsigned j = 0; j < depths[i]; j++)
			put("]");
		const char *why = parse_made();
		CHECK((why == NULL) == (i == 0));
		if (why)
			CHECK_STR(why, "w.yaml:1:65: nested more than 64 deep");
	}
	/* Block style too, one level per line. */
	made.len = 0;
	for (int i = 0; i < 100; i++)
		put("%*sa:\n", i, "");
	CHECK_STR(parse_made(), "w.yaml:65:65: nested more than 64 deep");
}

static void aliases_are_bounded(void)
{
	refused("&a [*a]", "w.yaml:1:5: this alias refers to the value that contains it (line 1)");
	refused("a: &x\n  b: {c: *x}\n",
		"w.yaml:2:10: this alias refers to the value that contains it (line 1)");
	refused("a: &x [1, &y [*x]]\nb: *y\n",
		"w.yaml:1:15: this alias refers to the value that contains it (line 1)");
	refused("&a {*a : 1}",
		"w.yaml:1:5: this alias refers to the value that contains it (line 1)");
	refused("[&a [x], {*a : 1}]",
		"w.yaml:1:10: [1]: its keys must be plain words, not lists or maps");
	/* A closed list, and a scalar of the same name, are fine. */
	yamldoc_free(parsed("[&a [x], *a, [*a], {b: *a}, &w word, [*w]]"));

	/* Levels through aliases count as if written out: the list, 62 or 63 anchors, x. */
	put_chain(62, 1);
	CHECK(parse_made() == NULL);
	put_chain(63, 1);
	CHECK_STR(parse_made(), "w.yaml:63:3: [62]: nested more than 64 deep");

	/* Anchor i expands to 3·2^i − 1 nodes, the list to twice its last: 786 thousand, then two
	 * million. */
	put_chain(18, 2);
	CHECK(parse_made() == NULL);
	put_chain(19, 2);
	CHECK(strstr(parse_made(), "expand to too many nodes"));
	put_chain(60, 9);
	CHECK(strstr(parse_made(), "expand to too many nodes"));

	for (unsigned anchors = 1000; anchors <= 1001; anchors++) {
		made.len = 0;
		for (unsigned i = 0; i < anchors; i++)
			put("- &a%u x\n", i);
		CHECK(anchors == 1000 ? parse_made() == NULL
				      : strstr(parse_made(), "more than 1000 anchors") != NULL);
	}
}

/* Duplicates among very many keys are found without comparing all pairs. */
static void large_maps_are_checked(void)
{
	enum { KEYS = 20000 };

	made.len = 0;
	for (unsigned i = 0; i < KEYS; i++)
		put("k%u: 1\n", i * 7919u % KEYS);
	CHECK(parse_made() == NULL);
	put("k7919: 1\n");
	CHECK_STR(parse_made(), "w.yaml:20001:1: key 'k7919' is given twice; first in line 2");
}

/* Read everything in every way; nothing may crash, and every refusal has a message. */
static unsigned read_all(yamldoc_node n, unsigned depth)
{
	static const char *const keys[] = {"name", "weight", "max", "children", NULL};
	struct weir_err e = {""};
	struct weir_rate rate;
	weir_time t;
	double d;
	bool b;
	char path[20];
	unsigned nodes = 1;

	CHECK(depth <= YAMLDOC_DEPTH);
	CHECK(yamldoc_kind(n) == YAMLDOC_NONE || yamldoc_place(n).line > 0);
	CHECK(strlen(yamldoc_path(n, path, sizeof(path))) < sizeof(path));
	if (yamldoc_map(n, keys, &e) < 0)
		CHECK(e.text[0]);
	if (yamldoc_rate(n, "max", &rate, &e) == -EINVAL ||
		yamldoc_bool(n, "cache", &b, &e) == -EINVAL ||
		yamldoc_as_time(n, &t, &e) == -EINVAL || yamldoc_as_count(n, &d, &e) == -EINVAL)
		CHECK(strncmp(e.text, "w.yaml:", 7) == 0);
	for (size_t i = 0; i < yamldoc_map_size(n); i++) {
		const char *key = NULL;
		nodes += read_all(yamldoc_map_at(n, i, &key), depth + 1);
		CHECK(key);
	}
	for (size_t i = 0; i < yamldoc_size(n); i++)
		nodes += read_all(yamldoc_at(n, i), depth + 1);
	return nodes;
}

static size_t mutate(struct rng *r, char *text, size_t len, size_t room)
{
	static const char spice[] = "[]{}:,-&*!|>'\"%@`#?~\n\t \\0\xC2\xFF";
	unsigned edits = 1 + (unsigned)rng_below(r, 6);

	while (edits--) {
		size_t at = rng_below(r, len + 1), n = rng_below(r, 12);
		switch (rng_below(r, 4)) {
		case 0: /* another byte */
			if (at < len)
				text[at] = (char)rng_below(r, 256);
			break;
		case 1: /* one with a meaning in YAML */
			if (at < len)
				text[at] = spice[rng_below(r, sizeof(spice))];
			break;
		case 2: /* a piece removed */
			n = n < len - at ? n : len - at;
			memmove(text + at, text + at + n, len - at - n);
			len -= n;
			break;
		default: /* a piece duplicated */
			n = n < len - at ? n : len - at;
			if (len + n <= room) {
				memmove(text + at + n, text + at, len - at);
				len += n;
			}
		}
	}
	return rng_below(r, 20) ? len : rng_below(r, len + 1); /* or cut short */
}

static void mutations_do_no_harm(void)
{
	struct rng r;
	unsigned accepted = 0, nodes = 0;

	rng_init(&r, 4, "mutations");
	for (int i = 0; i < 10000; i++) {
		size_t room = sizeof(sample) + 100;
		char *text = malloc(room); /* on the heap, so that overreads are detected */
		memcpy(text, sample, sizeof(sample) - 1);
		size_t len = mutate(&r, text, sizeof(sample) - 1, room);
		char *exact = malloc(len ? len : 1);
		memcpy(exact, text, len);

		struct yamldoc *doc = NULL;
		struct weir_err e = {""};
		int rc = yamldoc_parse(exact, len, "w.yaml", &doc, &e);
		if (rc == 0) {
			accepted++;
			nodes += read_all(yamldoc_root(doc), 1);
		} else {
			CHECK_INT(rc, -EINVAL);
			CHECK(doc == NULL);
			CHECK(strncmp(e.text, "w.yaml:", 7) == 0);
		}
		yamldoc_free(doc);
		free(exact);
		free(text);
	}
	/* Neither all accepted nor all refused, else the test proves little. */
	CHECK(accepted > 1000 && accepted < 9000 && nodes > 10 * accepted);
}

/* A value that is made of others: they keep their places, and it has that of the value that it is like. */
static void values_can_be_made(void)
{
	static const char text[] = "under: {a: 1, m: {x: 1, y: 2}, l: [1, 2]}\n"
				   "over: {b: 2, m: {y: 3, z: 4}, l: [9], n: ~}\n";
	struct yamldoc *doc;
	struct weir_err err;
	yamldoc_node under, over, both, list, m;
	struct yamldoc_pair pair = {.key = "name"};

	CHECK_INT(yamldoc_parse(text, sizeof(text) - 1, "m.yaml", &doc, &err), 0);
	under = yamldoc_get(yamldoc_root(doc), "under");
	over = yamldoc_get(yamldoc_root(doc), "over");
	CHECK_INT(yamldoc_make_over(doc, under, over, &both), 0);
	CHECK_INT(yamldoc_map_size(both), 5);
	CHECK_STR(yamldoc_text(yamldoc_get(both, "a")), "1");
	CHECK_STR(yamldoc_text(yamldoc_get(both, "b")), "2");
	CHECK_INT(yamldoc_size(yamldoc_get(both, "l")), 1); /* a list is replaced */
	m = yamldoc_get(both, "m");
	CHECK_INT(yamldoc_map_size(m), 3);
	CHECK_STR(yamldoc_text(yamldoc_get(m, "x")), "1");
	CHECK_STR(yamldoc_text(yamldoc_get(m, "y")), "3");
	CHECK_STR(yamldoc_text(yamldoc_get(m, "z")), "4");
	CHECK_INT(yamldoc_map_size(under), 3); /* both are as they were */
	CHECK_STR(yamldoc_text(yamldoc_get(yamldoc_get(under, "m"), "y")), "2");
	yamldoc_error(yamldoc_get(m, "x"), &err, "so");
	CHECK_STR(err.text, "m.yaml:1:22: under.m.x: so");
	yamldoc_error(m, &err, "so");
	CHECK_STR(err.text, "m.yaml:2:17: over.m: so");
	/* Many, so that the document's memory moves while nodes are held. */
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(yamldoc_make_text(doc, over, "made", &pair.value), 0);
		CHECK_INT(yamldoc_make_map(doc, over, &pair, 1, &m), 0);
		CHECK_INT(yamldoc_make_list(doc, under, &m, 1, &list), 0);
	}
	CHECK_STR(yamldoc_text(yamldoc_get(yamldoc_at(list, 0), "name")), "made");
	CHECK_STR(yamldoc_text(yamldoc_get(both, "a")), "1");
	CHECK_INT(yamldoc_place(list).line, 1);
	CHECK_INT(yamldoc_make_map(doc, over, NULL, 0, &m), 0);
	CHECK_INT(yamldoc_map_size(m), 0);
	CHECK_INT(yamldoc_kind(m), YAMLDOC_MAP);
	yamldoc_free(doc);
}

int main(void)
{
	RUN(a_document_is_read);
	RUN(values_are_read);
	RUN(absence_is_ordinary);
	RUN(mistakes_are_placed);
	RUN(every_unknown_key_can_be_heard_of);
	RUN(wrong_values_are_refused);
	RUN(paths_are_cut_at_the_front);
	RUN(nothing_is_an_empty_map);
	RUN(invalid_documents_are_refused);
	RUN(explicit_standard_tags_are_allowed);
	RUN(deep_nesting_is_refused);
	RUN(aliases_are_bounded);
	RUN(large_maps_are_checked);
	RUN(mutations_do_no_harm);
	RUN(values_can_be_made);
	return 0;
}
