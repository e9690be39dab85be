/* SPDX-License-Identifier: BSD-3-Clause */
/* read: a scenario's `cluster:`; weir-scenario(5) is its manual. */
#include "sim/cluster/cluster.h"
#include <errno.h>

#define MOST_SERVERS 20000
#define MOST_BUCKETS 1000000
#define MOST_ENTRIES 10000000 /* 3 GB */
#define MOST_CHANGES 1000

static const char *const keys[] = {"servers", "buckets", "capacity", "noise", "guess", "learn",
	"period", "interval", "slot", "delay", "loss", "reserved", "reservation", "limit", "zipf",
	"demand", "outstanding", "arrivals", "active", "skew", "nested", "changes", "afresh",
	"control", "gates", "kill", "cut", "stand_in", "settle", "files", "without", NULL};
static const char *const switches[] = {"nothing", "shifting", "placement", "expiry", NULL};

static int read_count(yamldoc_node map, const char *key, double least, double most, double *ret,
	struct weir_err *err)
{
	int r = yamldoc_count(map, key, ret, err);

	if (r)
		return yamldoc_optional(r);
	if (!(*ret >= least && *ret <= most))
		return yamldoc_error(
			yamldoc_get(map, key), err, "must be from %g to %g", least, most);
	return 0;
}

static int read_number(
	yamldoc_node map, const char *key, int64_t most, uint32_t *ret, struct weir_err *err)
{
	int64_t n = *ret;
	int r = yamldoc_int(map, key, 1, most, &n, err);

	*ret = (uint32_t)n;
	return yamldoc_optional(r);
}

static int read_iops(yamldoc_node map, const char *key, double *ret, struct weir_err *err)
{
	struct weir_rate rate = {*ret, WEIR_UNIT_REQUESTS};
	int r = yamldoc_rate(map, key, &rate, err);

	if (r)
		return yamldoc_optional(r);
	if (rate.unit != WEIR_UNIT_REQUESTS || !(rate.per_second > 0) || rate.per_second > 1e7)
		return yamldoc_error(
			yamldoc_get(map, key), err, "must be in iops, more than 0 and up to 10M");
	*ret = rate.per_second;
	return 0;
}

/* One number, or the least and the most. */
static int read_active(yamldoc_node map, struct sim_cluster_config *c, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "active");
	double least = c->servers < 8 ? c->servers : 8, most = least;
	int r;

	if (yamldoc_kind(n) == YAMLDOC_LIST) {
		if (yamldoc_size(n) != 2)
			return yamldoc_error(n, err, "must be a number, or a list of two");
		if ((r = yamldoc_as_count(yamldoc_at(n, 0), &least, err)) ||
			(r = yamldoc_as_count(yamldoc_at(n, 1), &most, err)))
			return r;
	} else {
		r = yamldoc_count(map, "active", &least, err);
		if (r && r != -ENOENT)
			return r;
		most = least;
	}
	if (!(least >= 1 && most >= least && most <= c->servers))
		return yamldoc_error(map, err, "active: must be from 1 to the number of servers");
	c->least = (uint32_t)least;
	c->most = c->nested ? c->servers : (uint32_t)most;
	return 0;
}

static int read_kill(yamldoc_node map, struct sim_cluster_config *c, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "kill");
	int r;

	if (yamldoc_kind(n) == YAMLDOC_NONE)
		return 0;
	if (yamldoc_kind(n) != YAMLDOC_LIST || yamldoc_size(n) != 2)
		return yamldoc_error(n, err, "must be a list of two times: from, to");
	if ((r = yamldoc_as_time(yamldoc_at(n, 0), &c->kill, err)) ||
		(r = yamldoc_as_time(yamldoc_at(n, 1), &c->back, err)))
		return r;
	if (c->kill >= c->back)
		return yamldoc_error(n, err, "must be a list of two times: from, to");
	return 0;
}

static int read_cut(yamldoc_node map, struct sim_cluster_config *c, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "cut");
	double server;
	int r;

	if (yamldoc_kind(n) == YAMLDOC_NONE)
		return 0;
	if (yamldoc_kind(n) != YAMLDOC_LIST || yamldoc_size(n) != 3)
		return yamldoc_error(n, err, "must be a list of three: server, from, to");
	if ((r = yamldoc_as_count(yamldoc_at(n, 0), &server, err)) ||
		(r = yamldoc_as_time(yamldoc_at(n, 1), &c->cut_from, err)) ||
		(r = yamldoc_as_time(yamldoc_at(n, 2), &c->cut_to, err)))
		return r;
	if (!(server >= 1 && server <= c->servers) || c->cut_from >= c->cut_to)
		return yamldoc_error(n, err, "must be a list of three: server, from, to");
	c->cut = (uint32_t)server;
	return 0;
}

static int read_without(yamldoc_node map, struct sim_cluster_config *c, struct weir_err *err)
{
	int i = SIM_CLUSTER_WITHOUT_NOTHING;
	int r = yamldoc_choice(map, "without", switches, &i, err);

	c->without = (enum sim_cluster_without)i;
	return yamldoc_optional(r);
}

static int read_arrivals(yamldoc_node map, bool *ret_poisson, struct weir_err *err)
{
	static const char *const words[] = {"even", "poisson", NULL};
	int i = 0, r = yamldoc_choice(map, "arrivals", words, &i, err);

	*ret_poisson = i == 1;
	return yamldoc_optional(r);
}

static int check(yamldoc_node map, const struct sim_cluster_config *c, struct weir_err *err)
{
	if (c->period <= 0 || c->slot <= 0 || c->slot > c->period / 20 || c->interval > c->period)
		return yamldoc_error(map, err,
			"period, interval, slot: a period has 20 slots or more, and an interval or "
			"more");
	/* as in a policy: multiples of it, and of its tokens, stay in their range */
	if (c->period > 60 * WEIR_SEC)
		return yamldoc_error(yamldoc_get(map, "period"), err, "must be at most 60 s");
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
	struct sim_cluster_config c = {.servers = 1,
		.buckets = 1,
		.capacity = 1000,
		.guess = 1,
		.period = 5 * WEIR_SEC,
		.slot = 5 * WEIR_MS,
		.delay = 500 * WEIR_US,
		.zipf = 0.5,
		.control = true,
		.stand_in = true};
	int64_t outstanding = 0;
	int r;

	if ((r = yamldoc_map(map, keys, err)) ||
		(r = read_number(map, "servers", MOST_SERVERS, &c.servers, err)) ||
		(r = read_number(map, "buckets", MOST_BUCKETS, &c.buckets, err)) ||
		(r = read_iops(map, "capacity", &c.capacity, err)) ||
		(r = read_count(map, "noise", 0, 1, &c.noise, err)) ||
		(r = read_count(map, "guess", 0.01, 100, &c.guess, err)) ||
		(r = yamldoc_optional(yamldoc_bool(map, "learn", &c.learn, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "period", &c.period, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "interval", &c.interval, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "slot", &c.slot, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "delay", &c.delay, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "settle", &c.settle, err))) ||
		(r = read_count(map, "loss", 0, 1, &c.loss, err)) ||
		(r = read_count(map, "reserved", 0, 10, &c.reserved, err)) ||
		(r = yamldoc_kind(yamldoc_get(map, "reservation")) == YAMLDOC_NONE
				? 0
				: read_iops(map, "reservation", &c.reservation, err)) ||
		(r = read_count(map, "limit", 0, 1000, &c.limit, err)) ||
		(r = read_count(map, "zipf", 0, 10, &c.zipf, err)) ||
		(r = read_count(map, "demand", 0, 1000, &c.demand, err)) ||
		(r = yamldoc_optional(
			 yamldoc_int(map, "outstanding", 0, 10000, &outstanding, err))) ||
		(r = read_count(map, "skew", 0, 10, &c.skew, err)) ||
		(r = yamldoc_optional(yamldoc_bool(map, "nested", &c.nested, err))) ||
		(r = read_count(map, "changes", 0, MOST_CHANGES, &c.changes, err)) ||
		(r = yamldoc_optional(yamldoc_bool(map, "afresh", &c.afresh, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "control", &c.control, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "gates", &c.gates, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "stand_in", &c.stand_in, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "files", &c.files, err))) ||
		(r = read_arrivals(map, &c.poisson, err)) || (r = read_active(map, &c, err)) ||
		(r = read_kill(map, &c, err)) || (r = read_cut(map, &c, err)) ||
		(r = read_without(map, &c, err)))
		return r;
	c.outstanding = (uint32_t)outstanding;
	if (!c.settle)
		c.settle = c.period + c.period / 2; /* the first one, in which nothing was known */
	if ((r = check(map, &c, err)))
		return r;
	*ret = c;
	return 0;
}
