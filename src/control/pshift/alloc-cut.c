/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  L. R. Ford, D. R. Fulkerson, "Maximal flow through a network", 1956: a cut keeps a flow
 *         from growing. pShift §IV-B calls the shortage the intrinsic error, and leaves it open.
 * LAW     T: the servers that tokens of overloaded servers could still be moved to, by any number
 *         of transfers. In an optimal allocation none of them is underloaded. A bucket with tokens
 *         in T has all its demand outside of T allocated, else it could give there. So its tokens
 *         in T are the least of any allocation; their sum over T is needed, and Σ C^j over T is
 *         available.
 * SYMBOLS needed, capacity in tokens.
 * METHOD  Breadth-first search from the overloaded servers; then servers that share a bucket of T
 *         are one group (union-find). O(entries).
 * EXAMPLE Two buckets ask for 100 each, and have demand at one server of 100 only: that server and
 *         both buckets are a group, 200 needed, 100 available.
 */
#include "control/pshift/alloc-impl.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct cut {
	struct pshift_flow f; /* without tokens of its own */
	const int64_t *tokens;
	const uint32_t *of_first;
	const struct pshift_own *of; /* entries of each server */
	uint32_t *parent;            /* of each server; itself: a root, or in no group */
	uint32_t *queue;
	bool *in_cut, *seen; /* servers, buckets */
	uint32_t *server, *bucket;
	struct pshift_group *groups;
};

static uint32_t root(uint32_t *parent, uint32_t j)
{
	while (parent[j] != j) {
		parent[j] = parent[parent[j]];
		j = parent[j];
	}
	return j;
}

/* A server of the cut has tokens of bucket i: add all servers at which the bucket has spare
 * demand. */
static size_t spread(struct cut *c, uint32_t i, size_t tail)
{
	struct pshift_flow *f = &c->f;

	c->seen[i] = true;
	for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++) {
		uint32_t k = f->server[e];

		if (c->tokens[e] == f->demand[e] || c->in_cut[k])
			continue;
		c->in_cut[k] = true;
		c->queue[tail++] = k;
	}
	return tail;
}

static void search(struct cut *c)
{
	struct pshift_flow *f = &c->f;
	size_t tail = 0;

	for (size_t j = 0; j < f->servers; j++) {
		c->parent[j] = (uint32_t)j;
		c->in_cut[j] = f->gap[j] > 0;
		if (c->in_cut[j])
			c->queue[tail++] = (uint32_t)j;
	}
	memset(c->seen, 0, f->buckets * sizeof(*c->seen));
	for (size_t head = 0; head < tail; head++) {
		uint32_t j = c->queue[head];

		for (uint32_t x = c->of_first[j]; x < c->of_first[j + 1]; x++) {
			uint32_t i = c->of[x].i;

			if (!c->seen[i] && c->tokens[c->of[x].e] > 0)
				tail = spread(c, i, tail);
		}
	}
}

/* Join servers of the cut at which one bucket of the cut has demand. */
static void join(struct cut *c)
{
	struct pshift_flow *f = &c->f;

	for (size_t i = 0; i < f->buckets; i++) {
		uint32_t first = UINT32_MAX;

		for (uint32_t e = f->first[i]; c->seen[i] && e < f->first[i + 1]; e++) {
			uint32_t j = f->server[e];

			if (!c->in_cut[j] || f->demand[e] == 0)
				continue;
			j = root(c->parent, j);
			first = first == UINT32_MAX ? j : root(c->parent, first);
			c->parent[first < j ? j : first] = first < j ? first : j;
		}
	}
}

/* Number the groups in the order of their first servers, which are their roots. */
static size_t number(struct cut *c)
{
	struct pshift_flow *f = &c->f;
	size_t n = 0;

	for (uint32_t j = 0; j < f->servers; j++) {
		uint32_t r = root(c->parent, j);

		if (c->in_cut[j] && r == j) {
			c->groups[n] = (struct pshift_group){0};
			c->server[j] = (uint32_t)n++;
		} else if (c->in_cut[j]) {
			c->server[j] = c->server[r];
		}
	}
	for (size_t j = 0; j < f->servers; j++)
		c->server[j] = c->in_cut[j] ? c->server[j] : (uint32_t)n;
	return n;
}

static void count(struct cut *c, const struct pshift_input *in, size_t n)
{
	struct pshift_flow *f = &c->f;

	for (size_t j = 0; j < f->servers; j++) {
		struct pshift_group *g = &c->groups[c->server[j]];

		if (c->server[j] == n)
			continue;
		g->servers++;
		g->capacity += in->capacity[j];
		g->needed += in->capacity[j] + f->gap[j];
	}
	for (size_t i = 0; i < f->buckets; i++) {
		c->bucket[i] = (uint32_t)n;
		for (uint32_t e = f->first[i]; c->seen[i] && e < f->first[i + 1]; e++) {
			if (c->tokens[e] > 0 && c->in_cut[f->server[e]])
				c->bucket[i] = c->server[f->server[e]];
		}
		if (c->bucket[i] < n)
			c->groups[c->bucket[i]].buckets++;
	}
}

static int begin(
	struct pshift *p, const struct pshift_input *in, const int64_t *rtokens, struct cut *c)
{
	int r;

	*c = (struct cut){.f = {.servers = in->servers,
				  .buckets = in->buckets,
				  .first = in->first,
				  .server = in->server,
				  .demand = in->demand},
		.tokens = rtokens};
	c->f.gap = pshift_array(p, PSHIFT_GAP, in->servers, sizeof(*c->f.gap));
	c->parent = pshift_array(p, PSHIFT_PARENT, in->servers, sizeof(*c->parent));
	c->queue = pshift_array(p, PSHIFT_QUEUE, in->servers, sizeof(*c->queue));
	c->in_cut = pshift_array(p, PSHIFT_LEVEL, in->servers, sizeof(uint32_t));
	c->seen = pshift_array(p, PSHIFT_MARK, in->buckets, sizeof(*c->seen));
	c->server = pshift_array(p, PSHIFT_GROUP_SERVER, in->servers, sizeof(*c->server));
	c->bucket = pshift_array(p, PSHIFT_GROUP_BUCKET, in->buckets, sizeof(*c->bucket));
	c->groups = pshift_array(p, PSHIFT_GROUPS, in->servers, sizeof(*c->groups));
	if (!c->f.gap || !c->parent || !c->queue || !c->in_cut || !c->seen || !c->server ||
		!c->bucket || !c->groups)
		return -ENOMEM;
	r = pshift_by_server(p, &c->f);
	c->of_first = p->arrays[PSHIFT_OF_FIRST].at;
	c->of = p->arrays[PSHIFT_OF].at;
	return r;
}

int pshift_explain(struct pshift *p, const struct pshift_input *in, const int64_t *rtokens,
	struct pshift_cut *ret)
{
	struct cut c;
	int r = begin(p, in, rtokens, &c);
	size_t n;

	if (r)
		return r;
	for (size_t j = 0; j < in->servers; j++)
		c.f.gap[j] = -in->capacity[j];
	for (size_t e = 0; e < in->first[in->buckets]; e++)
		c.f.gap[in->server[e]] += rtokens[e];
	search(&c);
	join(&c);
	n = number(&c);
	count(&c, in, n);
	*ret = (struct pshift_cut){n, c.groups, c.server, c.bucket};
	return 0;
}

/* ---- in words */

#define NAMED 3 /* of a list, then a number */

struct text {
	char *buf;
	size_t len, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...);

static void add(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	if (t->used + 1 >= t->len)
		return;
	va_start(args, fmt);
	n = vsnprintf(t->buf + t->used, t->len - t->used, fmt, args);
	va_end(args);
	if (n > 0)
		t->used += (size_t)n < t->len - t->used ? (size_t)n : t->len - t->used - 1;
}

/* Write "a", "a and b", "a, b and c", "a, b, c and 4 more": those of `n` in group g. */
static void add_list(struct text *t, const uint32_t *group, size_t n, size_t g, size_t members,
	pshift_name *name, void *arg)
{
	size_t named = members <= NAMED ? members : NAMED, shown = 0;

	for (size_t i = 0; i < n && shown < named; i++) {
		if (group[i] != g)
			continue;
		if (shown > 0)
			add(t, shown + 1 == members ? " and " : ", ");
		add(t, "%s", name(arg, i));
		shown++;
	}
	if (members > named)
		add(t, " and %zu more", members - named);
}

char *pshift_words(const struct pshift_input *in, const struct pshift_cut *cut, size_t g,
	pshift_name *server_name, pshift_name *bucket_name, void *arg, char *buf, size_t len)
{
	const struct pshift_group *group = &cut->groups[g];
	struct text t = {buf, len, 0};

	if (len > 0)
		*buf = '\0';
	add_list(&t, cut->bucket, in->buckets, g, group->buckets, bucket_name, arg);
	add(&t, " need%s %" PRId64 " at ", group->buckets == 1 ? "s" : "", group->needed);
	add_list(&t, cut->server, in->servers, g, group->servers, server_name, arg);
	add(&t, ", which can do %" PRId64 ": %" PRId64 " short", group->capacity,
		group->needed - group->capacity);
	return buf;
}
