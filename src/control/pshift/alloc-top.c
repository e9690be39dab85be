/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  pShift §III-C2 and §IV-D.
 * LAW     At each server only the M buckets with the most tokens and the M with the most spare
 *         demand there, before any move, take part; the others keep their tokens.
 * SYMBOLS M buckets a server; tokens and spare demand in requests.
 * METHOD  The M-th largest of a server's entries is found by selection, O(entries) in all; ties go
 *         by position. The selected entries become a smaller input, which is shifted like any
 *         other.
 * DIFFERS The paper may be read as M over all servers; then M = 2000 removes less than it shows.
 * EXAMPLE M = 1, a server has tokens 5 9 2 and spare demand 4 0 7 of three buckets: the second and
 *         the third are kept.
 */
#include "control/pshift/alloc-impl.h"
#include <errno.h>
#include <string.h>

struct top {
	struct pshift_flow *f;
	const uint32_t *of_first;
	const struct pshift_own *of; /* entries of each server */
	bool *mark;                  /* of each entry: is it kept? */
	int64_t *value;              /* room for 2 × buckets */
	size_t most;
};

/* Mark the `most` largest of the n values, which belong to the entries of[0 … n). */
static void mark_largest(struct top *t, const struct pshift_own *of, size_t n)
{
	int64_t *copy = t->value + n, least;
	size_t left = t->most;

	memcpy(copy, t->value, n * sizeof(*copy));
	least = pshift_largest(copy, n, t->most);
	for (size_t x = 0; x < n; x++) {
		left -= t->value[x] > least;
		t->mark[of[x].e] |= t->value[x] > least;
	}
	for (size_t x = 0; x < n && left > 0; x++) {
		left -= t->value[x] == least;
		t->mark[of[x].e] |= t->value[x] == least;
	}
}

static void mark_server(struct top *t, size_t j)
{
	const struct pshift_own *of = t->of + t->of_first[j];
	size_t n = t->of_first[j + 1] - t->of_first[j];

	for (size_t x = 0; x < n && n <= t->most; x++)
		t->mark[of[x].e] = true;
	if (n <= t->most)
		return;
	for (size_t x = 0; x < n; x++)
		t->value[x] = t->f->tokens[of[x].e];
	mark_largest(t, of, n);
	for (size_t x = 0; x < n; x++)
		t->value[x] = t->f->demand[of[x].e] - t->f->tokens[of[x].e];
	mark_largest(t, of, n);
}

/* Make the reduced input; `kept` are its entries in the whole. */
static int reduce(
	struct pshift *p, const struct top *t, struct pshift_flow *ret, uint32_t **ret_kept)
{
	struct pshift_flow *f = t->f;
	size_t entries = f->first[f->buckets];
	uint32_t *first = pshift_array(p, PSHIFT_TOP_FIRST, f->buckets + 1, sizeof(*first));
	uint32_t *kept = pshift_array(p, PSHIFT_TOP, entries, sizeof(*kept));
	uint32_t *server = pshift_array(p, PSHIFT_TOP_SERVER, entries, sizeof(*server));
	int64_t *demand = pshift_array(p, PSHIFT_TOP_DEMAND, entries, sizeof(*demand));
	int64_t *tokens = pshift_array(p, PSHIFT_TOP_TOKENS, entries, sizeof(*tokens));
	uint32_t n = 0;

	if (!first || !kept || !server || !demand || !tokens)
		return -ENOMEM;
	*ret = *f;
	ret->first = first;
	ret->server = server;
	ret->demand = demand;
	ret->tokens = tokens;
	for (size_t i = 0; i < f->buckets; i++) {
		first[i] = n;
		for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++) {
			kept[n] = e;
			server[n] = f->server[e];
			demand[n] = f->demand[e];
			tokens[n] = f->tokens[e];
			n += t->mark[e];
		}
	}
	first[f->buckets] = n;
	*ret_kept = kept;
	return 0;
}

int pshift_top(struct pshift *p, struct pshift_flow *f, size_t most)
{
	struct top t = {.f = f, .most = most};
	struct pshift_flow small = *f;
	uint32_t *kept = NULL;
	int r = pshift_by_server(p, f);

	if (r)
		return r;
	t.of_first = p->arrays[PSHIFT_OF_FIRST].at;
	t.of = p->arrays[PSHIFT_OF].at;
	t.mark = pshift_array(p, PSHIFT_MARK, f->first[f->buckets], sizeof(*t.mark));
	t.value = pshift_array(p, PSHIFT_TOP_VALUE, 2 * f->buckets, sizeof(*t.value));
	if (!t.mark || !t.value)
		return -ENOMEM;
	memset(t.mark, 0, f->first[f->buckets] * sizeof(*t.mark));
	for (size_t j = 0; j < f->servers; j++)
		mark_server(&t, j);
	r = reduce(p, &t, &small, &kept);
	if (r == 0)
		r = pshift_shift(p, &small);
	for (uint32_t n = 0; r == 0 && n < small.first[small.buckets]; n++)
		f->tokens[kept[n]] = small.tokens[n];
	f->passes = small.passes;
	f->general = small.general;
	return r;
}
