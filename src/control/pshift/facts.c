/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pshift/facts.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- the description */

#define SELF(member)   FACT_AT(struct pshift_facts_self, member)
#define STATUS(member) FACT_AT(struct pshift_facts_self, status.member)
static const struct fact self_facts[] = {
	{NULL, "leased", "1: leased; 0: blind, held or static.", SELF(leased)},
	{"state", .title = "STATE", SELF(state)},
	{"period", "period", "Number of the QoS period; 0: none is known.", STATUS(period)},
	{"last_period", SELF(last_period)},
	{"granted", "granted_period", "Period in which a controller was last heard.",
		STATUS(granted)},
	{"generation", STATUS(generation)},
	{"interval_s", .unit = FACTS_SECONDS, STATUS(interval)},
	{"capacity", "capacity", "Capacity that it reports, tokens a second.",
		.unit = FACTS_TOKEN_RATE, SELF(capacity)},
	{"reports", "reports_total", "Messages to the controllers.", STATUS(reports)},
	{"entries", STATUS(entries)},
	{"taken", "grants_total", "Accepted messages of controllers.", STATUS(taken)},
	{"refused", STATUS(refused)},
	{"looks", SELF(looks)},
	{"busy_s", "busy_seconds_total", "CPU time of reading the gate and granting.",
		.unit = FACTS_SECONDS, SELF(busy)},
	{"leases_all", SELF(leases_all)},
};

#define LEASE(member) .unit = FACTS_TOKENS, FACT_AT(struct pshift_facts_lease, member)
static const struct fact lease_facts[] = {
	{"last_used", LEASE(last)},
	{"used", "used_tokens", "Used in this period.", "USED", LEASE(tokens.used)},
	{"claim", "claim_tokens", "The tenant is served first until so many were used.", "RESERVED",
		LEASE(tokens.claim)},
	{"cap", "cap_tokens", "The tenant is served until so many were used.", "LIMIT",
		.none = FACTS_NO_LIMIT, LEASE(tokens.cap)},
	{"reserved", "reserved_tokens", "Claim of each period to come.", "NEXT RESERVED",
		LEASE(tokens.reserved)},
	{"limit", "limit_tokens", "Cap of each period to come.", "NEXT LIMIT",
		.none = FACTS_NO_LIMIT, LEASE(tokens.limit)},
	{"r_tokens", "r_tokens", "First claims at the gate.", LEASE(tokens.r)},
	{"l_tokens", "l_tokens", "Rights to be served at the gate.", .none = FACTS_NO_LIMIT,
		LEASE(tokens.l)},
	{"closed_loop", FACT_AT(struct pshift_facts_lease, tokens.closed)},
};
_Static_assert(LEASE_NO_LIMIT == INT64_MAX, "FACTS_NO_LIMIT");

#define LINK(member) FACT_AT(struct cluster_link, member)
static const struct fact link_facts[] = {
	{"up", "controller_up", "1: connected, and both sides have proven that they have the key.",
		LINK(up)},
	{.title = "STATE", LINK(state)},
	{"since_s", .unit = FACTS_SECONDS, .none = FACTS_NOT_ZERO, LINK(since)},
	{"lost", LINK(lost)},
	{"why", LINK(why)},
};

/* ---- filling */

static void finish_link(void *row)
{
	struct cluster_link *l = row;

	l->state = l->up ? "up" : "lost";
}

static const char *link_note(const void *row, char text[FACTS_NOTE])
{
	const struct cluster_link *l = row;

	return l->up ? "" : l->why ? l->why : "-";
}

static void count_leases(const struct pshift_facts_of *of, size_t *ret_all, size_t *ret_active)
{
	*ret_all = *ret_active = 0;
	for (size_t i = 0; i < of->n; i++) {
		struct pshift_facts_bucket b;

		of->bucket(of->arg, i, false, &b);
		*ret_all += b.here;
		*ret_active += b.here && b.active;
	}
}

static void fill_leases(const struct pshift_facts_of *of, const struct facts_site *site,
	bool active, struct facts_rows *to)
{
	struct pshift_facts_lease *leases = to->rows;

	for (size_t i = 0; i < of->n; i++) {
		struct pshift_facts_lease *l = &leases[to->n];
		struct pshift_facts_bucket b;

		of->bucket(of->arg, i, false, &b);
		if (!b.here || (active && !b.active))
			continue;
		of->bucket(of->arg, i, true, &b);
		pshift_server_tokens(of->server, i, &l->tokens);
		l->tokens.used += b.more;
		l->last = b.last;
		l->row = (struct facts_row){
			.key = {site->path(site->arg, b.tenant)}, .tenant = b.tenant};
		to->n++;
	}
}

static void fill(const void *arg, const struct facts_site *site, struct facts *ret)
{
	const struct pshift_facts_of *of = arg;
	struct pshift_facts_self *s = arena_take(site->memory, 1, sizeof(*s));
	struct facts_rows *to = &ret->tables[0];
	size_t all, active;

	if (!s)
		return;
	pshift_server_status(of->server, &s->status);
	s->state = lease_state_name(s->status.state);
	s->leased = s->status.state == LEASE_LEASED;
	s->capacity = of->capacity;
	s->last_period = of->last_period;
	s->looks = of->looks;
	s->busy = of->busy;
	count_leases(of, &all, &active);
	s->leases_all = all;
	ret->kind = &pshift_facts;
	ret->self = s;
	if (all <= PSHIFT_FACTS_LEASES)
		active = all;
	to->rows = arena_take(site->memory, active + 1, sizeof(struct pshift_facts_lease));
	if (to->rows && !of->unlisted)
		fill_leases(of, site, active < all, to);
}

const struct facts_kind pshift_facts = {
	.name = "pshift",
	.label = "pShift",
	.self = {.facts = self_facts,
		.n_facts = COUNT(self_facts),
		.size = sizeof(struct pshift_facts_self)},
	.tables = {{.name = "leases",
		.keys = {{"tenant", "tenant", "TENANT"}},
		.tenants = true,
		.facts = lease_facts,
		.n_facts = COUNT(lease_facts),
		.size = sizeof(struct pshift_facts_lease)}},
	.whole = {.name = "controllers",
		.keys = {{"address", "controller", "CONTROLLER"}, {"server", "resource", "SERVER"}},
		.facts = link_facts,
		.n_facts = COUNT(link_facts),
		.size = sizeof(struct cluster_link),
		.finish = finish_link,
		.note = link_note},
	.fill = fill,
};
