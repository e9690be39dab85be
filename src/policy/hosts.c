/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts: the other hosts with which this one shares resources. */
#include "policy/impl.h"
#include "wire/peer.h"
#include <string.h>

static const char *const peers_keys[] = {"to", "listen", "key", "cluster", "host", "period", NULL};

#define PERIOD (2 * WEIR_SEC) /* PARDA's; much less is noise */

/* Read one address or a list. serve/peer/peer.h checks whether they can be used. */
static void read_to(struct policy_reading *r, yamldoc_node n)
{
	struct weir_policy_peers *to = &r->policy->peers;
	bool several = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t many = several ? yamldoc_size(n) : 1;

	if (!n.id || !many)
		return;
	to->to = policy_alloc(r, many * sizeof(*to->to));
	to->to_at = policy_alloc(r, many * sizeof(*to->to_at));
	for (size_t i = 0; to->to && to->to_at && i < many; i++) {
		yamldoc_node one = several ? yamldoc_at(n, i) : n;
		const char *text = yamldoc_text(one);

		if (!text || !strchr(text, ':'))
			policy_refuse(
				r, one, "must be an address, as in udp:HOST:PORT or file:PATH");
		else if ((to->to[to->n_to] = policy_string(r, text)))
			to->to_at[to->n_to++] = policy_place(r, one);
	}
}

void policy_hosts_read(struct policy_reading *r, yamldoc_node root)
{
	struct weir_policy_peers *to = &r->policy->peers;
	yamldoc_node n = yamldoc_get(root, "peers");

	to->period = PERIOD;
	if (n.id && yamldoc_kind(n) != YAMLDOC_MAP) {
		read_to(r, n);
		return;
	}
	if (!n.id || !policy_keys(r, n, peers_keys))
		return;
	read_to(r, yamldoc_get(n, "to"));
	to->listen = policy_get_string(r, n, "listen");
	to->listen_at = policy_place(r, yamldoc_get(n, "listen"));
	to->key = policy_get_string(r, n, "key");
	to->cluster = policy_get_string(r, n, "cluster");
	to->host = policy_get_string(r, n, "host");
	if (to->host && peer_name_check(to->host) < 0)
		policy_refuse(r, yamldoc_get(n, "host"),
			"must be a name of 1 to %d bytes, without spaces", PEER_NAME_MAX);
	if (policy_took(r, yamldoc_time(n, "period", &to->period, &r->err)) == 0 &&
		(to->period < 100 * WEIR_MS || to->period > 60 * WEIR_SEC))
		policy_refuse(r, yamldoc_get(n, "period"), "must be from 100 ms to 60 s");
}

double weir_policy_shares(const struct weir_policy *p, size_t leaf)
{
	const struct weir_tenant *t = &p->tenants[leaf];
	double shares = 1;

	for (; t->parent >= 0; t = &p->tenants[t->parent]) {
		double all = 0;

		for (int i = p->tenants[t->parent].first_child; i >= 0;
			i = p->tenants[i].next_sibling)
			all += p->tenants[i].weight;
		shares *= t->weight / all;
	}
	return shares * t->weight;
}
