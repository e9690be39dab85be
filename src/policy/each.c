/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * each: read templates, and find the tenant that a template made for a sender.
 *
 * METHOD  The match of a template is its tenant's, so that specificity, ambiguity and the index treat it as a leaf's. The
 *         fields of the match with a pattern are those in which senders differ: the name must contain exactly these. The
 *         tenant of a sender is found by that name; its own match holds the values of the fields, and two senders whose
 *         names are equal by accident are told apart by it: the second shares `others`.
 */
#include "base/hash.h"
#include "policy/each.h"
#include "base/utf8.h"
#include "policy/impl.h"
#include "policy/pattern.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIELDS      4
#define EXPIRE      (600 * WEIR_SEC)
#define EXPIRE_MOST (366 * 24 * 3600 * WEIR_SEC)
#define TENANTS     10000
#define RAW         1024 /* bytes of a name before it is cut: an export's, an identity's and all else */
#define HASHED      17 /* bytes of a hash and the ~ before it */

static const char *const words[FIELDS] = {"export", "client", "uid", "tls"};

/* ---- reading */

static bool is_wild(const char *p, bool client)
{
	struct policy_addresses block;
	struct policy_token t;

	if (p && client && policy_pattern_block(p, &block))
		return block.bits < (block.v6 ? 128 : 32);
	while (p && *p) {
		p = policy_pattern_next(p, &t);
		if (p && !t.literal)
			return true;
	}
	return false;
}

static unsigned wild_fields(const struct weir_match *m)
{
	const char *const fields[FIELDS] = {m->export_, m->client, m->uid, m->tls};
	unsigned by = 0;

	for (unsigned f = 0; f < FIELDS; f++)
		by |= is_wild(fields[f], f == 1) ? 1u << f : 0;
	return by;
}

static void read_match(
	struct policy_reading *r, yamldoc_node n, struct weir_tenant *t, struct weir_each *e)
{
	size_t errors = r->remarks->n_errors;
	yamldoc_node match = yamldoc_get(n, "match");

	if (!yamldoc_has(n, "match"))
		policy_refuse(r, n, "a template needs a match, as in {export: \"vm-*\"}");
	policy_tenant_read_matches(r, match, t);
	if (r->remarks->n_errors == errors && yamldoc_has(n, "match") && !t->n_match)
		policy_refuse(r, match, "a template is of requests, not of packets");
	if (r->remarks->n_errors > errors || !t->n_match)
		return;
	e->by = wild_fields(&t->match[0]);
	if (!e->by)
		policy_refuse(r, match,
			"has no pattern, so the template makes one tenant; write a tenant with "
			"this "
			"match, or a pattern as in {export: \"vm-*\"}");
	for (unsigned k = 0; k < t->n_match; k++)
		if (t->match[k].path)
			policy_refuse_at(r, t->match[k].at, "a template has no match of a path");
		else if (wild_fields(&t->match[k]) != e->by)
			policy_refuse_at(r, t->match[k].at,
				"has patterns in other fields than the first match of the "
				"template");
}

/* Return the field at "{export}", and the text after it; -1: there is none. */
static int placeholder(const char *text, const char **ret_after)
{
	for (int f = 0; f < FIELDS; f++) {
		size_t len = strlen(words[f]);

		if (text[0] == '{' && strncmp(text + 1, words[f], len) == 0 &&
			text[1 + len] == '}') {
			*ret_after = text + len + 2;
			return f;
		}
	}
	return -1;
}

/* Make "{export}-{client}" of the fields. */
static const char *default_name(struct policy_reading *r, unsigned by)
{
	char text[64] = "";

	for (unsigned f = 0; f < FIELDS; f++)
		if (by & 1u << f) {
			strcat(text, *text ? "-{" : "{");
			strcat(strcat(text, words[f]), "}");
		}
	return policy_string(r, text);
}

/* Check that the name tells the tenants apart. */
static void check_name(struct policy_reading *r, yamldoc_node n, const char *name, unsigned by)
{
	char literal[POLICY_EACH_NAME] = "x";
	size_t used = 1;
	unsigned has = 0;

	for (const char *c = name; *c;) {
		int f = placeholder(c, &c);

		if (f < 0 && (*c == '{' || *c == '}')) {
			policy_refuse(r, n, "valid are {export}, {client}, {uid} and {tls}");
			return;
		}
		if (f >= 0)
			has |= 1u << f;
		else if (used + 2 < sizeof(literal))
			literal[used++] = *c++;
		else
			break;
	}
	if (used + 2 == sizeof(literal))
		policy_refuse(r, n, "has more than 60 bytes beside its fields");
	literal[used] = 'x';
	literal[used + 1] = '\0';
	if (policy_tenant_name_bad(literal))
		policy_refuse(r, n, "%s", policy_tenant_name_bad(literal));
	for (unsigned f = 0; f < FIELDS; f++)
		if (by & ~has & 1u << f)
			policy_refuse(r, n,
				"needs {%s}: without it all tenants that differ in '%s' of the "
				"match "
				"would have one name",
				words[f], words[f]);
		else if (has & ~by & 1u << f)
			policy_refuse(r, n,
				"has {%s}, but the match has no pattern for it: add %s: \"*\" to "
				"the "
				"match",
				words[f], words[f]);
}

static void read_numbers(struct policy_reading *r, yamldoc_node n, struct weir_each *e)
{
	int64_t most = TENANTS;

	e->expire_after = EXPIRE;
	/* A shorter time might end between a client's handshake and its first request. */
	if (policy_took(r, yamldoc_time(n, "expire_after", &e->expire_after, &r->err)) == 0 &&
		(e->expire_after < WEIR_SEC || e->expire_after > EXPIRE_MOST))
		policy_refuse(r, yamldoc_get(n, "expire_after"), "must be from 1s to 366 days");
	policy_took(r, yamldoc_int(n, "max_tenants", 1, 100000, &most, &r->err));
	e->max_tenants = (uint32_t)most;
}

void policy_each_read(struct policy_reading *r, yamldoc_node tenant, struct weir_tenant *t)
{
	static const char *const keys[] = {
		"match", "class", POLICY_CLASS_KEYS, "name", "expire_after", "max_tenants", NULL};
	yamldoc_node n = yamldoc_get(tenant, "each");
	const struct weir_tenant blank = {
		.parent = -1, .first_child = -1, .next_sibling = -1, .weight = 1};
	struct weir_each *e;

	if (!n.id || !policy_keys(r, n, keys) || !(e = policy_alloc(r, sizeof(*e))))
		return;
	if (t->n_match)
		policy_refuse_at(r, t->match[0].at,
			"'%s' has tenants below it, and only tenants without take requests: move "
			"its "
			"match into each",
			t->path);
	e->at = policy_place(r, n);
	e->own = e->leaf = blank;
	e->given = policy_class_read_keys(r, n, &e->own);
	policy_class_join(r, n, policy_class_get(r, n), &e->own, e->given, &e->leaf);
	read_match(r, n, t, e);
	read_numbers(r, n, e);
	e->name = yamldoc_has(n, "name") ? policy_get_string(r, n, "name") : default_name(r, e->by);
	if (e->name && e->by && yamldoc_has(n, "name"))
		check_name(r, yamldoc_get(n, "name"), e->name, e->by);
	if (e->name)
		t->each = e;
}

/* ---- checking */

static void append(char *to, size_t room, const char *text)
{
	size_t used = strlen(to);

	snprintf(to + used, room - used, "%s", text);
}

/* Write a pattern that fits every name that the template makes for this match. */
static void name_pattern(
	const struct weir_each *e, const struct weir_match *m, char *ret, size_t room)
{
	const char *const fields[FIELDS] = {m->export_, "*", m->uid, m->tls};

	*ret = '\0';
	for (const char *c = e->name; *c;) {
		int f = placeholder(c, &c);
		char one[3] = {'\\', *c, '\0'};

		if (f >= 0)
			append(ret, room, fields[f] ? fields[f] : "*");
		else
			append(ret, room, strchr("*?[\\", *c++) ? one : one + 1);
	}
}

static void check_child(
	struct policy_reading *r, const struct weir_tenant *t, const struct weir_tenant *child)
{
	char pattern[RAW];

	for (unsigned k = 0; k < t->n_match && !child->others && !child->made; k++) {
		name_pattern(t->each, &t->match[k], pattern, sizeof(pattern));
		if (!policy_pattern_fits(pattern, child->name))
			continue;
		policy_refuse_at(r, child->at,
			"the template of '%s' (line %u) may make a second tenant '%s': choose "
			"another name",
			t->path, t->each->at.line, child->path);
		return;
	}
}

/* Check the limits of every tenant that the template makes. */
static void check_leaf(struct policy_reading *r, const struct weir_tenant *t)
{
	struct weir_tenant leaf = t->each->leaf;
	char path[RAW];

	snprintf(path, sizeof(path), "%s/%s", t->path, t->each->name);
	leaf.path = path;
	leaf.parent = -1;
	policy_check_leaf(r, &leaf);
}

void policy_each_check(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		if (!t->each)
			continue;
		check_leaf(r, t);
		if (p->cluster.n_servers)
			policy_refuse_at(r, t->each->at,
				"a cluster has no templates: all of its machines must know the "
				"same "
				"tenants");
		for (int c = t->first_child; c >= 0; c = p->tenants[c].next_sibling)
			check_child(r, t, &p->tenants[c]);
	}
}

/* ---- names */

static bool is_good(const char *raw)
{
	if (policy_tenant_name_bad(raw) || strcmp(raw, POLICY_EACH_OTHERS) == 0)
		return false;
	for (const unsigned char *c = (const unsigned char *)raw; *c;) {
		size_t n = utf8_shown(c);

		if (!n)
			return false;
		c += n;
	}
	return true;
}

/* Cut the name, replace what no name may have, and add a hash of all of it. */
static void make_safe(const char *raw, char ret[POLICY_EACH_NAME])
{
	uint64_t hash = hash_more(HASH_BEGIN, raw, strlen(raw));
	size_t used = 0;

	for (const unsigned char *c = (const unsigned char *)raw; *c;) {
		size_t n = *c == '/' || (*c == ' ' && !used) ? 0 : utf8_shown(c);

		if (used + (n ? n : 1) + HASHED >= POLICY_EACH_NAME)
			break;
		if (n)
			memcpy(ret + used, c, n);
		else
			ret[used] = '_';
		used += n ? n : 1;
		c += n ? n : 1;
	}
	snprintf(ret + used, POLICY_EACH_NAME - used, "~%016llx", (unsigned long long)hash);
}

bool policy_each_name(
	const struct weir_each *e, const struct weir_who *who, char ret_name[POLICY_EACH_NAME])
{
	const char *const fields[FIELDS] = {who->export_, who->client, who->uid, who->tls};
	char raw[RAW] = "";

	for (const char *c = e->name; *c;) {
		int f = placeholder(c, &c);
		char one[2] = {*c, '\0'};

		if (f < 0)
			c++;
		else if (!fields[f] || !*fields[f])
			return false;
		append(raw, sizeof(raw), f < 0 ? one : fields[f]);
	}
	if (is_good(raw))
		memcpy(ret_name, raw, strlen(raw) + 1);
	else
		make_safe(raw, ret_name);
	return true;
}

/* ---- finding */

static int find_child(const struct weir_policy *p, int parent, const char *name)
{
	char path[POLICY_DEPTH_MAX * 64];

	if (snprintf(path, sizeof(path), "%s/%s", p->tenants[parent].path, name) >=
		(int)sizeof(path))
		return -ENOENT;
	return weir_policy_find(p, path);
}

int policy_each_match(const struct weir_policy *p, const struct weir_who *who, int *ret_template)
{
	int i = policy_match_owner(p, who), found;
	const struct weir_each *e = i >= 0 ? p->tenants[i].each : NULL;
	char name[POLICY_EACH_NAME];

	if (!e)
		return i;
	if (!policy_each_name(e, who, name))
		return p->tenants[i].first_child; /* others */
	found = find_child(p, i, name);
	if (found >= 0)
		return p->tenants[found].made && policy_match_fits(p->tenants[found].match, who)
			       ? found
			       : p->tenants[i].first_child;
	if (e->n_made >= e->max_tenants)
		return p->tenants[i].first_child;
	*ret_template = i;
	return -EAGAIN;
}

int weir_policy_match(const struct weir_policy *p, const struct weir_who *who)
{
	int of = -1, i = policy_each_match(p, who, &of);

	return i == -EAGAIN ? p->tenants[of].first_child : i;
}
