/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/rules.h"
#include "base/array.h"
#include "policy/pattern.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the order of rules */

struct ranked {
	const struct policy_net_match *match;
	uint16_t owner;
	int rank[POLICY_NET_RANK];
	size_t at; /* in the policy */
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	for (int i = 0; i < POLICY_NET_RANK; i++)
		if (x->rank[i] != y->rank[i])
			return x->rank[i] > y->rank[i] ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static int sort_rules(struct rules *r, const struct weir_policy *p, const uint16_t *node)
{
	struct ranked *all = calloc(SHAPE_RULES, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; node[i] && p->tenants[i].net &&
				     k < p->tenants[i].net->n_match && n < SHAPE_RULES;
			k++, n++) {
			all[n] = (struct ranked){&p->tenants[i].net->match[k], node[i], {0}, n};
			policy_net_rank(all[n].match, all[n].rank);
		}
	qsort(all, n, sizeof(*all), by_rank);
	r->n = n;
	r->match = calloc(n + 1, sizeof(*r->match));
	r->owner = calloc(n + 1, sizeof(*r->owner));
	r->seen = calloc(n + 1, sizeof(*r->seen));
	for (size_t i = 0; r->match && r->owner && i < n; i++) {
		r->match[i] = all[i].match;
		r->owner[i] = all[i].owner;
	}
	free(all);
	return r->match && r->owner && r->seen ? 0 : -ENOMEM;
}

/* ---- sets */

static void set_add(struct shape_set *s, size_t rule)
{
	s->bits[rule / 64] |= 1ull << rule % 64;
}

/* Return the number of the set, which is added if there is none like it; or -ENOMEM. */
static int number_of(struct rules *r, const struct shape_set *s)
{
	for (size_t i = r->n_sets; i-- > 0;)
		if (memcmp(&r->sets[i], s, sizeof(*s)) == 0)
			return (int)i;
	if (r->n_sets == UINT16_MAX || array_grow(&r->sets, &r->room, r->n_sets + 1) < 0)
		return -ENOMEM;
	r->sets[r->n_sets] = *s;
	return (int)r->n_sets++;
}

static bool states(const struct policy_net_match *m, int field)
{
	switch (field) {
	case SHAPE_CGROUP:
		return m->cgroup;
	case SHAPE_INTERFACE:
		return m->interface;
	case SHAPE_PORT:
		return m->port;
	case SHAPE_ADDRESS:
		return m->address;
	default:
		return m->dscp >= 0;
	}
}

static int make_any(struct rules *r)
{
	for (int f = 0; f < SHAPE_FIELDS; f++) {
		struct shape_set s = {{0}};
		int number;

		for (size_t i = 0; i < r->n; i++)
			if (!states(r->match[i], f))
				set_add(&s, i);
		number = number_of(r, &s);
		if (number < 0)
			return number;
		r->any[f] = (uint32_t)number;
	}
	return 0;
}

static int make_ports(struct rules *r)
{
	bool *edge = calloc(65537, sizeof(*edge)); /* another rule begins or ends here */
	int number = (int)r->any[SHAPE_PORT];

	if (!edge)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		if (r->match[i]->port)
			edge[r->match[i]->port] = edge[r->match[i]->port_last + 1] = true;
	for (unsigned port = 0; port < 65536 && number >= 0; port++) {
		if (edge[port]) {
			struct shape_set s = r->sets[r->any[SHAPE_PORT]];

			for (size_t i = 0; i < r->n; i++)
				if (r->match[i]->port && port >= r->match[i]->port &&
					port <= r->match[i]->port_last)
					set_add(&s, i);
			number = number_of(r, &s);
		}
		r->port[port] = (uint16_t)number;
	}
	free(edge);
	return number < 0 ? number : 0;
}

static int make_dscps(struct rules *r)
{
	for (int d = 0; d < 64; d++) {
		struct shape_set s = r->sets[r->any[SHAPE_DSCP]];
		int number;

		for (size_t i = 0; i < r->n; i++)
			if (r->match[i]->dscp == d)
				set_add(&s, i);
		number = number_of(r, &s);
		if (number < 0)
			return number;
		r->dscp[d] = (uint16_t)number;
	}
	return 0;
}

/* ---- addresses */

/* Read the block of a rule as one of IPv6. */
static void read_block(const struct policy_net_match *m, struct rules_block *ret)
{
	struct policy_addresses a;

	policy_pattern_block(m->address, &a);
	memset(ret, 0, sizeof(*ret));
	if (a.v6) {
		memcpy(ret->address, a.address, 16);
		ret->bits = a.bits;
		return;
	}
	ret->address[10] = ret->address[11] = 0xff;
	memcpy(ret->address + 12, a.address, 4);
	ret->bits = 96 + a.bits;
}

static bool in_block(const struct rules_block *b, const uint8_t address[16])
{
	unsigned whole = b->bits / 8, rest = b->bits % 8;

	return memcmp(b->address, address, whole) == 0 &&
	       (!rest || (b->address[whole] ^ address[whole]) >> (8 - rest) == 0);
}

static int make_blocks(struct rules *r)
{
	struct rules_block *all = calloc(r->n + 1, sizeof(*all));
	int number = 0;

	r->blocks = all;
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		if (r->match[i]->address)
			read_block(r->match[i], &all[r->n_blocks++]);
	for (size_t b = 0; b < r->n_blocks && number >= 0; b++) {
		struct shape_set s = r->sets[r->any[SHAPE_ADDRESS]];
		size_t k = 0;

		for (size_t i = 0; i < r->n; i++)
			if (r->match[i]->address) {
				if (all[k].bits <= all[b].bits && in_block(&all[k], all[b].address))
					set_add(&s, i);
				k++;
			}
		number = number_of(r, &s);
		all[b].set = (uint32_t)number;
	}
	return number < 0 ? number : 0;
}

/* ---- from start to end */

int rules_new(const struct weir_policy *p, const uint16_t *node, struct rules **ret)
{
	struct rules *r = calloc(1, sizeof(*r));
	int rc = r ? sort_rules(r, p, node) : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		r->cgroups |= r->match[i]->cgroup != NULL;
		r->interfaces |= r->match[i]->interface != NULL;
	}
	rc = rc ? rc : make_any(r);
	rc = rc ? rc : make_ports(r);
	rc = rc ? rc : make_dscps(r);
	rc = rc ? rc : make_blocks(r);
	if (rc) {
		rules_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free(r->match);
	free(r->owner);
	free(r->sets);
	free(r->blocks);
	free(r->seen);
	free(r);
}

int rules_cgroup(struct rules *r, uint32_t above, const char *path)
{
	struct shape_set s = r->sets[above];
	bool fits = false;

	for (size_t i = 0; i < r->n; i++)
		if (r->match[i]->cgroup && policy_pattern_fits(r->match[i]->cgroup, path)) {
			set_add(&s, i);
			fits = r->seen[i] = true;
		}
	return fits ? number_of(r, &s) : (int)above;
}

int rules_interface(struct rules *r, const char *name)
{
	struct shape_set s = r->sets[r->any[SHAPE_INTERFACE]];

	for (size_t i = 0; i < r->n; i++)
		if (r->match[i]->interface && policy_pattern_fits(r->match[i]->interface, name)) {
			set_add(&s, i);
			r->seen[i] = true;
		}
	return number_of(r, &s);
}

uint16_t rules_find(const struct rules *r, const struct rules_packet *p)
{
	uint32_t address = r->any[SHAPE_ADDRESS];
	unsigned bits = 0;

	for (size_t b = 0; b < r->n_blocks; b++)
		if (r->blocks[b].bits >= bits && in_block(&r->blocks[b], p->address)) {
			bits = r->blocks[b].bits;
			address = r->blocks[b].set;
		}
	for (size_t i = 0; i < r->n; i++) {
		size_t word = i / 64;
		uint64_t all = r->sets[p->cgroup].bits[word] & r->sets[p->interface].bits[word] &
			       r->sets[r->port[p->port]].bits[word] & r->sets[address].bits[word] &
			       r->sets[r->dscp[p->dscp]].bits[word];

		if (all >> i % 64 & 1)
			return r->owner[i];
	}
	return 0;
}
