/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  Sorted lists: tenants by path; exports by name; matches by the first of their fields that
 *         is a plain name (or one address). Matches without such a field are in a separate list,
 *         which is short where it matters: a policy with ten thousand tenants names their exports,
 *         certificates or clients one by one, or has one pattern per group.
 * COST    O(n log n) once; a client that lists ten thousand exports costs ten thousand lookups of
 *         O(log n + patterns), not of O(n).
 */
#include "policy/index.h"
#include "policy/pattern.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct policy_index {
	const struct weir_tenant **tenants; /* by path */
	size_t n_tenants;
	const struct weir_export **exports; /* by name */
	uint32_t *run; /* the last of the exports from here on that are of one resource */
	struct policy_index_entry *plain; /* by field and key */
	size_t n_plain;
	struct policy_index_entry *other; /* in the order of the policy */
	size_t n_other;
};

static bool is_plain(const char *pattern)
{
	return pattern && !strpbrk(pattern, "*?[\\");
}

static int by_path(const void *a, const void *b)
{
	const struct weir_tenant *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int by_name(const void *a, const void *b)
{
	const struct weir_export *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int compare_keys(uint32_t field, const char *key, const struct policy_index_entry *e)
{
	if (field != e->field)
		return field < e->field ? -1 : 1;
	return strcmp(key, e->key);
}

static int by_key(const void *a, const void *b)
{
	const struct policy_index_entry *x = a;

	return compare_keys(x->field, x->key, b);
}

/* ---- keys of matches */

/* fields that are most likely unique to one tenant come first */
enum { EXPORT, TLS, UID, PATH, CLIENT };

#define ADDRESS_KEY 40

/* An address can be written in several ways: use its bytes. Return false if it is no address. */
static bool address_key(const char *text, char ret[ADDRESS_KEY])
{
	struct policy_addresses a;
	size_t n;

	if (strchr(text, '/') || !policy_pattern_block(text, &a))
		return false;
	n = (size_t)a.bits / 8;
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", a.address[i]);
	snprintf(ret + 2 * n, ADDRESS_KEY - 2 * n, "/%zu", n);
	return true;
}

/* Return the exact value that the field requires, or NULL for a pattern, or any value. */
static const char *key_of(struct policy_reading *r, const struct weir_match *m, uint32_t field)
{
	const char *const fields[] = {m->export_, m->tls, m->uid, m->path, m->client};
	const char *text = fields[field];
	char key[ADDRESS_KEY];

	if (!is_plain(text))
		return NULL;
	if (field != CLIENT)
		return text;
	if (address_key(text, key))
		return policy_string(r, key);
	return strchr(text, '/') ? NULL : text;
}

static void add(struct policy_reading *r, struct policy_index *x, const struct weir_match *m,
	uint32_t tenant, uint32_t match)
{
	struct policy_index_entry e = {NULL, 0, tenant, match};

	while (e.field <= CLIENT && !(e.key = key_of(r, m, e.field)))
		e.field++;
	if (e.key)
		x->plain[x->n_plain++] = e;
	else
		x->other[x->n_other++] = e;
}

void policy_index_make(struct policy_reading *r)
{
	struct weir_policy *p = r->policy;
	struct policy_index *x = policy_alloc(r, sizeof(*x));
	size_t n = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		n += p->tenants[i].made ? 0 : p->tenants[i].n_match;
	if (r->no_memory || !(x->exports = policy_alloc(r, p->n_exports * sizeof(*x->exports))) ||
		!(x->run = policy_alloc(r, p->n_exports * sizeof(*x->run))) ||
		!(x->tenants = policy_alloc(r, p->n_tenants * sizeof(*x->tenants))) ||
		!(x->plain = policy_alloc(r, n * sizeof(*x->plain))) ||
		!(x->other = policy_alloc(r, n * sizeof(*x->other))))
		return;
	for (size_t i = 0; i < p->n_exports; i++)
		x->exports[i] = &p->exports[i];
	x->n_tenants = p->n_tenants;
	for (size_t i = 0; i < p->n_tenants; i++)
		x->tenants[i] = &p->tenants[i];
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match && !p->tenants[i].made; k++)
			add(r, x, &p->tenants[i].match[k], (uint32_t)i, k);
	qsort(x->tenants, p->n_tenants, sizeof(*x->tenants), by_path);
	qsort(x->exports, p->n_exports, sizeof(*x->exports), by_name);
	for (size_t i = p->n_exports; i-- > 0;)
		x->run[i] = i + 1 < p->n_exports &&
					    x->exports[i]->resource == x->exports[i + 1]->resource
				    ? x->run[i + 1]
				    : (uint32_t)i;
	qsort(x->plain, x->n_plain, sizeof(*x->plain), by_key);
	p->index = x;
}

int policy_index_tenant(const struct weir_policy *p, const char *path)
{
	const struct weir_tenant wanted = {.path = path}, *key = &wanted, **found;
	const struct policy_index *x = p->index;

	found = bsearch(&key, x->tenants, x->n_tenants, sizeof(*x->tenants), by_path);
	if (found)
		return (int)(*found - p->tenants);
	for (size_t i = x->n_tenants; i < p->n_tenants; i++) /* added since */
		if (strcmp(p->tenants[i].path, path) == 0)
			return (int)i;
	return -ENOENT;
}

int policy_index_export(const struct weir_policy *p, const char *name)
{
	const struct weir_export wanted = {.name = name}, *key = &wanted, **found;

	if (p->index) {
		found = bsearch(
			&key, p->index->exports, p->n_exports, sizeof(*p->index->exports), by_name);
		return found ? (int)(*found - p->exports) : -ENOENT;
	}
	for (size_t i = 0; i < p->n_exports; i++)
		if (strcmp(p->exports[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* Return the first export, by name, that is not before these `len` bytes. */
static size_t lower_export(const struct weir_policy *p, const char *begin, size_t len)
{
	size_t from = 0, to = p->n_exports;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strncmp(p->index->exports[middle]->name, begin, len) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Names are unique. */
static size_t place_of(const struct weir_policy *p, int export_)
{
	const char *name = p->exports[export_].name;

	return lower_export(p, name, strlen(name) + 1);
}

/* Find the last result again, and continue after it. */
static int next_by_name(const struct weir_policy *p, const char *pattern, int after)
{
	const struct weir_export **exports = p->index->exports;
	size_t len = strcspn(pattern, "*?[\\"), i = lower_export(p, pattern, len);

	if (after >= 0)
		i = place_of(p, after) + 1;
	for (; i < p->n_exports && strncmp(exports[i]->name, pattern, len) == 0; i++)
		if (policy_pattern_fits(pattern, exports[i]->name))
			return (int)(exports[i] - p->exports);
	return -ENOENT;
}

int policy_index_next(const struct weir_policy *p, const char *pattern, int after)
{
	if (is_plain(pattern)) {
		int found = policy_index_export(p, pattern);

		return found > after ? found : -ENOENT;
	}
	if (p->index)
		return next_by_name(p, pattern ? pattern : "*", after);
	for (size_t i = (size_t)after + 1; i < p->n_exports; i++) /* -1 and 1 are 0 */
		if (!pattern || policy_pattern_fits(pattern, p->exports[i].name))
			return (int)i;
	return -ENOENT;
}

/* Return true if every name with the pattern's literal beginning fits it. */
static bool is_beginning(const char *pattern)
{
	return !pattern || strcmp(pattern + strcspn(pattern, "*?[\\"), "*") == 0;
}

int policy_index_other(const struct weir_policy *p, const char *pattern, int after)
{
	if (p->index && after >= 0 && is_beginning(pattern))
		after = (int)(p->index->exports[p->index->run[place_of(p, after)]] - p->exports);
	return policy_index_next(p, pattern, after);
}

/* Return the first in [0, n) that is not before the key. */
static size_t lower(
	const struct policy_index_entry *list, size_t n, uint32_t field, const char *key)
{
	size_t from = 0;

	while (from < n) {
		size_t middle = from + (n - from) / 2;

		if (compare_keys(field, key, &list[middle]) > 0)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

static struct policy_index_span span(const struct policy_index *x, uint32_t field, const char *key)
{
	size_t from = key ? lower(x->plain, x->n_plain, field, key) : 0, to = from;

	while (key && to < x->n_plain && compare_keys(field, key, &x->plain[to]) == 0)
		to++;
	return (struct policy_index_span){x->plain + from, to - from};
}

void policy_index_matches(const struct weir_policy *p, const struct weir_who *who,
	struct policy_index_span ret[POLICY_INDEX_SPANS])
{
	const struct policy_index *x = p->index;
	char client[ADDRESS_KEY];
	const char *const keys[] = {who->export_, who->tls, who->uid, who->path,
		who->client && address_key(who->client, client) ? client : who->client};

	for (uint32_t f = 0; f <= CLIENT; f++)
		ret[f] = span(x, f, keys[f]);
	ret[CLIENT + 1] = (struct policy_index_span){x->other, x->n_other};
}
