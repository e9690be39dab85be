/* SPDX-License-Identifier: BSD-3-Clause */
/* read: a scenario's `cluster:`; weir-scenario(5) is its manual. */
#include "control/keys.h"
#include "policy/impl.h"
#include "sim/cluster/cluster.h"

#define MOST_SERVERS 20000
#define MOST_BUCKETS 1000000
#define MOST_ENTRIES 10000000 /* 3 GB */
#define MOST_CHANGES 1000
#define MOST_IOPS    1e7

/* Read one number, or the least and the most. */
static int read_active(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct sim_cluster_config *c = s->data;
	bool both = yamldoc_kind(n) == YAMLDOC_LIST;
	double least, most;
	int r;

	if (both && yamldoc_size(n) != 2)
		return yamldoc_error(n, err, "must be a number, or a list of two");
	if ((r = yamldoc_as_count(both ? yamldoc_at(n, 0) : n, &least, err)) ||
		(r = yamldoc_as_count(both ? yamldoc_at(n, 1) : n, &most, err)))
		return r;
	if (!(least >= 1 && most >= least && most <= c->servers))
		return yamldoc_error(n, err, "must be from 1 to the number of servers");
	c->least = (uint32_t)least;
	c->most = (uint32_t)most;
	return 0;
}

/* Read from and to, the last two of a list of n. */
static int read_span(yamldoc_node list, size_t n, weir_time *ret_from, weir_time *ret_to,
	const char *form, struct weir_err *err)
{
	int r;

	if (yamldoc_kind(list) != YAMLDOC_LIST || yamldoc_size(list) != n)
		return yamldoc_error(list, err, "must be a list of %s", form);
	if ((r = yamldoc_as_time(yamldoc_at(list, n - 2), ret_from, err)) ||
		(r = yamldoc_as_time(yamldoc_at(list, n - 1), ret_to, err)))
		return r;
	return *ret_from < *ret_to ? 0 : yamldoc_error(list, err, "must be a list of %s", form);
}

static int read_kill(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct sim_cluster_config *c = s->data;

	return read_span(n, 2, &c->kill, &c->back, "two times: from, to", err);
}

static int read_cut(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	static const char form[] = "three: server, from, to";
	struct sim_cluster_config *c = s->data;
	double server = 0;
	int r = read_span(n, 3, &c->cut_from, &c->cut_to, form, err);

	if (r || (r = yamldoc_as_count(yamldoc_at(n, 0), &server, err)))
		return r;
	if (!(server >= 1 && server <= c->servers))
		return yamldoc_error(n, err, "must be a list of %s", form);
	c->cut = (uint32_t)server;
	return 0;
}

static const char *const arrivals[] = {"even", "poisson", NULL};
static const char *const switches[] = {"nothing", "shifting", "placement", "expiry", NULL};

#define AT(member) KEY_AT(struct sim_cluster_config, member)
static const struct key keys[] = {{"servers", KEY_WHOLE, AT(servers), 1, 1, MOST_SERVERS},
	{"buckets", KEY_WHOLE, AT(buckets), 1, 1, MOST_BUCKETS},
	{"capacity", KEY_IOPS, AT(capacity), 1000, 0, MOST_IOPS, .above = true},
	{"noise", KEY_NUMBER, AT(noise), 0, 0, 1}, {"guess", KEY_NUMBER, AT(guess), 1, 0.01, 100},
	{"learn", KEY_FLAG, AT(learn)}, {"slot", KEY_TIME, AT(slot), 0.005},
	{"delay", KEY_TIME, AT(delay), 0.0005}, {"settle", KEY_TIME, AT(settle)},
	{"loss", KEY_NUMBER, AT(loss), 0, 0, 1}, {"reserved", KEY_NUMBER, AT(reserved), 0, 0, 10},
	{"reservation", KEY_IOPS, AT(reservation), 0, 0, MOST_IOPS, .above = true},
	{"limit", KEY_NUMBER, AT(limit), 0, 0, 1000}, {"zipf", KEY_NUMBER, AT(zipf), 0.5, 0, 10},
	{"demand", KEY_NUMBER, AT(demand), 0, 0, 1000},
	{"outstanding", KEY_WHOLE, AT(outstanding), 0, 0, 10000},
	{"arrivals", KEY_WORD, AT(poisson), .words = arrivals},
	{"skew", KEY_NUMBER, AT(skew), 0, 0, 10}, {"nested", KEY_FLAG, AT(nested)},
	{"changes", KEY_NUMBER, AT(changes), 0, 0, MOST_CHANGES}, {"afresh", KEY_FLAG, AT(afresh)},
	{"control", KEY_FLAG, AT(control), 1}, {"gates", KEY_FLAG, AT(gates)},
	{"files", KEY_FLAG, AT(files)}, {"without", KEY_WORD, AT(without), .words = switches},
	{"active", KEY_OWN, .read = read_active}, /* after servers */
	{"kill", KEY_OWN, .read = read_kill}, {"cut", KEY_OWN, .read = read_cut}, {0}};
static const char *const more_keys[] = {"period", "interval", "stand_in", NULL};

static void read_policy(struct policy_reading *r, yamldoc_node map, void *to)
{
	struct weir_policy_cluster *c = &r->policy->cluster;
	struct sim_cluster_config *config = to;

	policy_cluster_read_times(r, map, c);
	policy_cluster_read_stand_in(r, yamldoc_get(map, "stand_in"), c);
	config->period = c->period;
	config->interval = c->interval;
	config->stand_in = !c->no_stand_in;
}

static int check(yamldoc_node map, const struct sim_cluster_config *c, struct weir_err *err)
{
	if (c->slot <= 0 || c->slot > c->period / 20)
		return yamldoc_error(map, err, "period, slot: a period has 20 slots or more");
	if ((c->reserved > 0) == (c->reservation > 0))
		return yamldoc_error(map, err, "needs 'reserved' or 'reservation', not both");
	if ((c->demand > 0) == (c->outstanding > 0))
		return yamldoc_error(map, err, "needs 'demand' or 'outstanding', not both");
	if (c->gates && c->afresh)
		return yamldoc_error(map, err, "afresh: not with gates, which forget no request");
	if (c->limit > 0 && (double)c->buckets * c->servers > MOST_ENTRIES)
		return yamldoc_error(map, err, "buckets × servers: more than %d", MOST_ENTRIES);
	if ((double)c->buckets * c->most * (1 + c->changes) > MOST_ENTRIES)
		return yamldoc_error(
			map, err, "buckets × active × changes: more than %d", MOST_ENTRIES);
	if (c->capacity * ((double)c->slot / (double)WEIR_SEC) * c->servers > 1e7)
		return yamldoc_error(map, err, "capacity × slot × servers: more than 10M requests");
	return 0;
}

int sim_cluster_read(yamldoc_node map, struct sim_cluster_config *ret, struct weir_err *err)
{
	const char *names[KEYS_MOST];
	struct sim_cluster_config c;
	struct settings s = {&c, sizeof(c)};
	int r = yamldoc_map(map, keys_names(keys, false, true, more_keys, names), err);

	keys_default(keys, &c, sizeof(c));
	for (const struct key *k = keys; r == 0 && k->name; k++)
		r = yamldoc_optional(key_read(k, map, &s, err));
	if (r == 0)
		r = policy_part_read(read_policy, map, &c, err);
	if (r)
		return r;
	if (!c.least)
		c.least = c.most = c.servers < 8 ? c.servers : 8;
	if (c.nested)
		c.most = c.servers;
	if (!c.settle)
		c.settle = c.period + c.period / 2; /* the first one, before any report */
	r = check(map, &c, err);
	if (r == 0)
		*ret = c;
	return r;
}
