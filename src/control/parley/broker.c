/* SPDX-License-Identifier: BSD-3-Clause */
/* METHOD  Nodes in breadth-first order: the link, services level by level, the leaves. One allocation. */
#include "control/parley/broker.h"
#include "control/parley/waterfill.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT_CAP  0.75     /* of the cap: a service that uses so much would want more */
#define GROWTH  1048576. /* the factor's end: 20 rounds at the cap */
#define ENGAGED 0.5      /* of a service's max: from this usage on all its leaves are limited … */
#define HOLD    10       /* … until it was below for so many rounds */
#define ENDLESS 1e30     /* bytes/s: more than any link */
#define LEAST   1e-9     /* relative: rates within it are equal */

struct leaf { /* of one service at one member */
	double usage, cap, factor;
};

struct parley_broker {
	struct parley_service *services;
	size_t n_services, members;
	unsigned *engaged; /* by service: rounds that its leaves stay limited */
	uint32_t *leaf,
		*order; /* by service: the node of its first leaf, or 0; services by their nodes */
	weir_time silence, *heard; /* by member */
	struct leaf *leaves;       /* [service · members + member] */
	struct waterfill_tree tree;
	double *min, *max, *weight; /* by node, as the tree reads them */
	uint32_t *parents, *first, *many;
	uint32_t *node; /* by service */
	size_t n_nodes;
};

void parley_broker_free(struct parley_broker *b)
{
	if (!b)
		return;
	free(b->services);
	free(b->heard);
	free(b->engaged);
	free(b->leaf);
	free(b->leaves);
	free(b->min);
	free(b->parents);
	free(b);
}

/* Give the children of a parent service (-1: the link) at node `at` the next nodes, or its leaves. */
static void add_children(struct parley_broker *b, int parent, uint32_t at, size_t *listed)
{
	b->parents[b->tree.parents++] = at;
	b->first[at] = (uint32_t)b->n_nodes;
	for (size_t i = 0; i < b->n_services; i++)
		if (b->services[i].parent == parent) {
			b->node[i] = (uint32_t)b->n_nodes++;
			b->order[(*listed)++] = (uint32_t)i;
		}
	if (parent >= 0 && b->n_nodes == b->first[at]) {
		b->leaf[parent] = (uint32_t)b->n_nodes;
		b->n_nodes += b->members;
	}
	b->many[at] = (uint32_t)b->n_nodes - b->first[at];
}

/* Lay out the nodes breadth first: services in the order of their nodes. */
static void lay_out(struct parley_broker *b)
{
	size_t listed = 0;

	b->n_nodes = 1;
	add_children(b, -1, 0, &listed);
	for (size_t i = 0; i < listed; i++)
		add_children(b, (int)b->order[i], b->node[b->order[i]], &listed);
}

static double *slice(double **from, size_t n)
{
	double *at = *from;

	*from += n;
	return at;
}

static int make_arrays(struct parley_broker *b, size_t n)
{
	double *doubles = calloc(11 * n, sizeof(*doubles));
	uint32_t *words = calloc(4 * n, sizeof(*words));

	b->min = doubles;
	b->parents = words;
	if (!doubles || !words)
		return -ENOMEM;
	slice(&doubles, n);
	b->max = slice(&doubles, n);
	b->weight = slice(&doubles, n);
	b->first = words + n;
	b->many = words + 2 * n;
	b->node = words + 3 * n;
	b->tree.min = b->min;
	b->tree.least = slice(&doubles, n);
	b->tree.want = slice(&doubles, n);
	b->tree.given = slice(&doubles, n);
	b->tree.all = (struct waterfill){.n = n,
		.min = b->tree.least,
		.max = b->max,
		.demand = b->tree.want,
		.weight = b->weight,
		.rate = slice(&doubles, n),
		.base = slice(&doubles, n),
		.room = slice(&doubles, n)};
	b->tree.all.kept = slice(&doubles, 2 * n);
	b->tree.parent = b->parents;
	b->tree.first = b->first;
	b->tree.many = b->many;
	return 0;
}

int parley_broker_new(const struct parley_service *services, size_t n_services, size_t members,
	weir_time silence, struct parley_broker **ret)
{
	struct parley_broker *b = calloc(1, sizeof(*b));

	for (size_t i = 0; b && i < n_services; i++)
		if (services[i].parent >= (int)i) {
			free(b);
			return -EINVAL;
		}
	if (!b)
		return -ENOMEM;
	b->n_services = n_services;
	b->members = members;
	b->silence = silence;
	b->services = calloc(n_services + 1, sizeof(*b->services));
	b->heard = calloc(members + 1, sizeof(*b->heard));
	b->leaves = calloc(n_services * members + 1, sizeof(*b->leaves));
	b->engaged = calloc(n_services + 1, sizeof(*b->engaged));
	b->leaf = calloc(2 * n_services + 1, sizeof(*b->leaf));
	b->order = b->leaf ? b->leaf + n_services : NULL;
	if (!b->engaged || !b->leaf || !b->services || !b->heard || !b->leaves ||
		make_arrays(b, 1 + n_services * (1 + members)) < 0) {
		parley_broker_free(b);
		return -ENOMEM;
	}
	memcpy(b->services, services, n_services * sizeof(*services));
	for (size_t i = 0; i < n_services * members; i++)
		b->leaves[i] = (struct leaf){0, INFINITY, 1};
	lay_out(b);
	b->tree.all.n = b->n_nodes;
	b->max[0] = INFINITY;
	b->weight[0] = 1;
	*ret = b;
	return 0;
}

void parley_broker_adopt(struct parley_broker *b, size_t service, const struct parley_broker *from,
	size_t from_service)
{
	size_t n = from->members < b->members ? from->members : b->members;

	memcpy(b->leaves + service * b->members, from->leaves + from_service * from->members,
		n * sizeof(*b->leaves));
	memcpy(b->heard, from->heard, n * sizeof(*b->heard));
	b->engaged[service] = from->engaged[from_service];
}

void parley_broker_set(
	struct parley_broker *b, size_t service, double min, double max, double weight)
{
	b->services[service].min = min;
	b->services[service].max = max;
	b->services[service].weight = weight;
}

void parley_broker_hear(struct parley_broker *b, size_t member, const double *usage, weir_time now)
{
	b->heard[member] = now;
	for (size_t s = 0; s < b->n_services; s++)
		b->leaves[s * b->members + member].usage = usage[s];
}

/* Return what a leaf wants, and update its factor. */
static double wants(const struct parley_broker *b, size_t service, size_t member, weir_time now)
{
	struct leaf *l = &b->leaves[service * b->members + member];

	if (now - b->heard[member] > b->silence)
		return b->services[service].leaf_min;
	if (l->cap < INFINITY && l->usage >= AT_CAP * l->cap) {
		l->factor = l->factor < GROWTH ? 2 * l->factor : GROWTH;
		return (l->usage > l->cap ? l->usage : l->cap) * l->factor;
	}
	l->factor = 1;
	return l->usage;
}

static void set_nodes(struct parley_broker *b, size_t service, weir_time now)
{
	const struct parley_service *s = &b->services[service];
	uint32_t first = b->leaf[service]; /* 0: it has children */
	uint32_t at = b->node[service];

	b->min[at] = s->min;
	b->max[at] = s->max;
	b->weight[at] = s->weight;
	for (size_t m = 0; first && m < b->members; m++) {
		b->tree.least[first + m] = s->leaf_min;
		b->max[first + m] = s->leaf_max;
		b->weight[first + m] = s->leaf_weight;
		b->tree.want[first + m] = wants(b, service, m, now);
	}
}

/* Set the caps of a service's leaves from the division. */
static void set_caps(struct parley_broker *b, size_t service)
{
	const struct parley_service *s = &b->services[service];
	uint32_t first = b->leaf[service]; /* 0: it has children */
	struct leaf *l = &b->leaves[service * b->members];
	double used = 0, given = 0, wanted = 0;

	for (size_t m = 0; first && m < b->members; m++) {
		used += l[m].usage;
		given += b->tree.all.rate[first + m];
		wanted += b->tree.want[first + m] < s->leaf_max ? b->tree.want[first + m]
								: s->leaf_max;
	}
	if (used > ENGAGED * s->max)
		b->engaged[service] = HOLD;
	else if (b->engaged[service])
		b->engaged[service]--;
	for (size_t m = 0; first && m < b->members; m++) {
		double rate = b->tree.all.rate[first + m];
		double left =
			given < wanted * (1 - LEAST) ? 0 : (s->max - given) / (double)b->members;

		l[m].cap = INFINITY;
		if (rate < b->tree.want[first + m] * (1 - LEAST))
			l[m].cap = rate;
		if (s->max < INFINITY && b->engaged[service])
			l[m].cap = rate + left;
	}
}

bool parley_broker_step(struct parley_broker *b, double capacity, weir_time now)
{
	bool scaled;

	for (size_t s = 0; s < b->n_services; s++)
		set_nodes(b, s, now);
	scaled = waterfill_tree(&b->tree, capacity < ENDLESS ? capacity : ENDLESS);
	for (size_t s = 0; s < b->n_services; s++)
		set_caps(b, s);
	return scaled;
}

double parley_broker_cap(const struct parley_broker *b, size_t member, size_t service)
{
	return b->leaves[service * b->members + member].cap;
}

double parley_broker_rate(const struct parley_broker *b, size_t service)
{
	return b->tree.all.rate[b->node[service]];
}
