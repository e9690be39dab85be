/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check-net: whether the mins of links can all be met at once, and which matches of packets tie.
 *
 * LAW     See policy/net.h. A service needs its own min, or its children's together if that is more.
 */
#include "policy/impl.h"
#include "policy/pattern.h"
#include "control/parley/broker.h"
#include "control/parley/delay.h"
#include "control/parley/machine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLACK (1 + 1e-9) /* rates are sums of decimal numbers */

/* ---- capacities */

double policy_net_capacity(
	const struct policy_network *n, enum policy_net_level level, enum policy_net_dir dir)
{
	double rate = 0;

	if (!n || level == POLICY_NET_FABRIC || (level == POLICY_NET_RACK && !n->rack))
		return INFINITY;
	if (level == POLICY_NET_RACK)
		return n->capacity[dir];
	if (!n->n_devices) /* it is for the fabric's broker */
		return INFINITY;
	for (size_t i = 0; i < n->n_devices; i++)
		rate += n->devices[i].rate > 0 ? n->devices[i].rate : INFINITY;
	return rate;
}

void policy_net_service(const struct weir_policy *p, size_t tenant, enum policy_net_level level,
	enum policy_net_dir dir, struct parley_service *ret)
{
	static const struct policy_net_share none = {.max = INFINITY, .weight = 1};
	const struct policy_net *net = p->tenants[tenant].net;
	const struct policy_net_share *at = net ? &net->share[level][dir] : &none,
				      *below = net && level > 0 ? &net->share[level - 1][dir]
								: &none;

	*ret = (struct parley_service){at->min, at->max, at->weight, below->min, below->max,
		below->weight, p->tenants[tenant].parent};
}

double policy_net_bounded(const struct policy_net_share *s, double capacity)
{
	double burst = PARLEY_SETTLE * (double)parley_period(capacity, PARLEY_MTU) / 1e9 * capacity;

	if (!s->bound_time || !(capacity < INFINITY))
		return capacity;
	return capacity * delay_bound_load(capacity, (double)s->bound_time / 1e9, burst,
				  (double)s->bound_size);
}

/* ---- messages */

/* Return the unit of bits that suits a rate of bytes/s. */
static double bits_unit(double rate, const char **ret_name)
{
	static const char *const names[] = {"Gbit/s", "Mbit/s", "kbit/s", "bit/s"};
	double unit = 1e9;

	for (int i = 0;; i++, unit /= 1000)
		if (rate * 8 >= unit || i == 3) {
			*ret_name = names[i];
			return unit;
		}
}

/* Write where a level's link is: "rack r4 down". */
static void place_text(const struct policy_network *n, enum policy_net_level level,
	enum policy_net_dir dir, char *buf, size_t len)
{
	const char *way = level == POLICY_NET_RACK ? dir == POLICY_NET_IN ? " down" : " up"
			  : dir == POLICY_NET_IN   ? " in"
						   : " out";
	const char *name = level == POLICY_NET_RACK      ? n && n->rack ? n->rack : NULL
			   : level == POLICY_NET_MACHINE ? n && n->machine ? n->machine : NULL
							 : NULL;
	static const char *const words[] = {"machine", "rack", "fabric"};

	snprintf(buf, len, "%s%s%s%s", words[level], name ? " " : "", name ? name : "", way);
}

/* ---- mins and maxes of one level in one direction */

struct level {
	struct policy_reading *r;
	enum policy_net_level level;
	enum policy_net_dir dir;
	double capacity;
	char place[128];
	double *needs; /* by tenant */
};

static const struct policy_net_share *share_of(const struct level *l, size_t tenant)
{
	const struct policy_net *net = l->r->policy->tenants[tenant].net;

	return net ? &net->share[l->level][l->dir] : NULL;
}

/* Refuse a max that is below what must be guaranteed, and what no link can carry. */
static void check_max(struct level *l, const struct weir_tenant *t,
	const struct policy_net_share *s, double below)
{
	const char *unit;
	double by = bits_unit(s->max, &unit);

	if (s->max < s->min)
		policy_refuse_at(l->r, s->at,
			"%s: '%s' has a max of %.4g, below its min of %.4g %s", l->place, t->path,
			s->max * 8 / by, s->min * 8 / by, unit);
	else if (s->max * SLACK < below)
		policy_refuse_at(l->r, s->at,
			"%s: '%s' has a max of %.4g, below its children's mins of %.4g %s",
			l->place, t->path, s->max * 8 / by, below * 8 / by, unit);
	else if (s->max < INFINITY && s->max > l->capacity * SLACK)
		policy_refuse_at(l->r, s->at,
			"%s: '%s' has a max of %.4g %s, above the link's %.4g", l->place, t->path,
			s->max * 8 / by, unit, l->capacity * 8 / by);
}

static void check_service(struct level *l, size_t tenant)
{
	const struct weir_tenant *all = l->r->policy->tenants, *t = &all[tenant];
	const struct policy_net_share *s = share_of(l, tenant);
	double below = 0;
	const char *unit;

	for (int c = t->first_child; c >= 0; c = all[c].next_sibling)
		below += l->needs[c];
	l->needs[tenant] = below;
	if (!s)
		return;
	if (s->min > 0 && s->min * SLACK < below) {
		double by = bits_unit(below, &unit);

		policy_refuse_at(l->r, s->at,
			"%s: '%s' has a min of %.4g, below its children's %.4g %s together",
			l->place, t->path, s->min * 8 / by, below * 8 / by, unit);
	}
	check_max(l, t, s, below);
	l->needs[tenant] = s->min > below ? s->min : below;
}

/* Write "dfs 40 + web 45" of the top services; by: their unit. */
static void who_takes_part(const struct level *l, double by, char *buf, size_t len)
{
	const struct weir_policy *p = l->r->policy;
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < p->n_tenants; i++) {
		int n;

		if (p->tenants[i].parent >= 0 || !(l->needs[i] > 0))
			continue;
		n = snprintf(buf + used, len - used, "%s%s %.4g", used ? " + " : "",
			p->tenants[i].path, l->needs[i] * 8 / by);
		if (n < 0 || (size_t)n >= len - used) {
			memcpy(buf + len - 4, "…", 4);
			return;
		}
		used += (size_t)n;
	}
}

static const struct policy_net_share *first_min(const struct level *l)
{
	const struct weir_policy *p = l->r->policy;
	const struct policy_net_share *last = NULL;

	for (size_t i = 0; i < p->n_tenants; i++)
		if (share_of(l, i) && share_of(l, i)->min > 0)
			last = share_of(l, i);
	return last;
}

/* Compare the sum of mins with what the link, and the bounds on it, can carry. */
static void check_sum(struct level *l)
{
	const struct weir_policy *p = l->r->policy;
	double sum = 0, room = l->capacity;
	const struct weir_tenant *binds = NULL;
	char who[200], cap[128] = "";
	const char *unit;

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct policy_net_share *s = share_of(l, i);
		double left = s ? policy_net_bounded(s, l->capacity) : INFINITY;

		sum += p->tenants[i].parent < 0 ? l->needs[i] : 0;
		if (left < room) {
			room = left;
			binds = &p->tenants[i];
		}
		if (s && left <= 0)
			policy_refuse_at(l->r, s->at,
				"%s: the bound of '%s' needs a link %.3g times as fast, even "
				"without "
				"other traffic",
				l->place, p->tenants[i].path, 1 - left / l->capacity);
	}
	if (room <= 0 || sum <= room * SLACK)
		return;
	double by = bits_unit(l->capacity, &unit);

	who_takes_part(l, by, who, sizeof(who));
	if (binds)
		snprintf(cap, sizeof(cap), ", the load that the bound of '%.63s' allows",
			binds->path);
	policy_refuse_at(l->r, first_min(l)->at, "%s: %s over %.4g %s%s", l->place, who,
		room * 8 / by, unit, cap);
}

static void check_level(struct level *l)
{
	const struct weir_policy *p = l->r->policy;

	l->capacity = policy_net_capacity(p->network, l->level, l->dir);
	place_text(p->network, l->level, l->dir, l->place, sizeof(l->place));
	for (size_t i = p->n_tenants; i-- > 0;)
		check_service(l, i);
	if (l->capacity < INFINITY)
		check_sum(l);
}

/* ---- matches */

void policy_net_rank(const struct policy_net_match *m, int ret[POLICY_NET_RANK])
{
	const char *globs[] = {m->cgroup, m->interface};
	struct policy_addresses block;
	struct policy_token t;

	memset(ret, 0, POLICY_NET_RANK * sizeof(*ret));
	for (int f = 0; f < 2; f++)
		for (const char *p = globs[f]; p && *p;) {
			p = policy_pattern_next(p, &t);
			ret[1 + f] += t.literal ? 2 : 0;
			ret[1 + f] |= 1;
		}
	if (m->port)
		ret[3] = 65536 - (m->port_last - m->port);
	if (m->address && policy_pattern_block(m->address, &block))
		ret[4] = 1 + (int)block.bits;
	ret[5] = m->dscp >= 0;
	for (int f = 1; f < POLICY_NET_RANK; f++)
		ret[0] += ret[f] > 0;
}

static bool overlap(const struct policy_net_match *a, const struct policy_net_match *b)
{
	struct policy_addresses x, y;

	if (a->port && b->port && (a->port > b->port_last || b->port > a->port_last))
		return false;
	if (a->dscp >= 0 && b->dscp >= 0 && a->dscp != b->dscp)
		return false;
	if (a->address && b->address && policy_pattern_block(a->address, &x) &&
		policy_pattern_block(b->address, &y) &&
		!policy_pattern_same(&x, &y, x.bits < y.bits ? x.bits : y.bits))
		return false;
	return (!a->cgroup || !b->cgroup || policy_pattern_overlap(a->cgroup, b->cgroup)) &&
	       (!a->interface || !b->interface ||
		       policy_pattern_overlap(a->interface, b->interface));
}

struct owned {
	const struct policy_net_match *match;
	const struct weir_tenant *owner;
	int rank[POLICY_NET_RANK];
};

static void check_pair(struct policy_reading *r, const struct owned *a, const struct owned *b)
{
	if (a->owner == b->owner || memcmp(a->rank, b->rank, sizeof(a->rank)) != 0 ||
		!overlap(a->match, b->match))
		return;
	if (a->rank[0] == 1 && a->match->port && a->match->port == a->match->port_last)
		policy_refuse_at(r, b->match->at, "port %u is in '%s', too (line %u)",
			a->match->port, a->owner->path, a->match->at.line);
	else
		policy_refuse_at(r, b->match->at,
			"'%s' and '%s' (line %u) can match the same packet, and neither is more "
			"specific",
			b->owner->path, a->owner->path, a->match->at.line);
}

static void check_matches(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	struct owned *all = policy_scratch(r, POLICY_NET_MATCHES, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; all && i < p->n_tenants; i++)
		for (unsigned k = 0; p->tenants[i].net && k < p->tenants[i].net->n_match; k++) {
			struct owned *one = &all[n];

			one->match = &p->tenants[i].net->match[k];
			one->owner = &p->tenants[i];
			if (n++ == POLICY_NET_MATCHES) {
				policy_refuse_at(r, one->match->at,
					"more than %d matches of packets", POLICY_NET_MATCHES);
				free(all);
				return;
			}
			policy_net_rank(one->match, one->rank);
			if (p->tenants[i].first_child >= 0)
				policy_refuse_at(r, one->match->at,
					"'%s' has children, and only tenants without match packets",
					p->tenants[i].path);
			for (size_t j = 0; j + 1 < n; j++)
				check_pair(r, &all[j], one);
		}
	free(all);
}

/* ---- all of it */

static const struct weir_tenant *first_service(const struct weir_policy *p)
{
	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].net)
			return &p->tenants[i];
	return NULL;
}

void policy_check_net(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	const struct weir_tenant *first = first_service(p);
	double *needs = first ? policy_scratch(r, p->n_tenants, sizeof(*needs)) : NULL;

	if (!needs)
		return;
	for (int i = 0; i < POLICY_NET_LEVELS * POLICY_NET_DIRS; i++)
		check_level(&(struct level){.r = r,
			.level = (enum policy_net_level)(i / POLICY_NET_DIRS),
			.dir = (enum policy_net_dir)(i % POLICY_NET_DIRS),
			.needs = needs});
	free(needs);
	check_matches(r);
	if (!p->network)
		policy_warn_at(r, first->net->at,
			"there is no 'network', so that no link of this machine is shaped");
}
