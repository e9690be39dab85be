/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge: what the buckets of a simulated cluster got in each period, beside what any allocation
 * could have given them.
 *
 * METHOD  When a period has ended, all is known: the arrivals at each server, or the possible
 *         arrivals of a closed loop, and the capacity of each server. A textbook push-relabel
 *         (bench/reference/maxflow.h), which shares no code with the allocator that is judged,
 *         places the reservations on that: the unplaced rest is the intrinsic error (§IV-B), and
 *         the buckets on the source's side of its minimum cut are those that cannot all be met. A
 *         bucket is due its reservation, or its demand if that is less. To count the buckets that
 *         miss 5 % of it for that reason (the intrinsic error in the unit of the error), unplaced
 *         tokens are put where their buckets have demand left: each full server then takes from all
 *         in turn, and those with the most tokens there lack them: min(tokens, θ) each, with Σ over
 *         them the server's capacity.
 */
#include "base/arena.h"
#include "bench/reference/maxflow.h"
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW 16 /* buckets that are shown one by one */

struct sim_judge {
	struct arena memory;  /* of the arrays by bucket and by server … */
	struct arena entries; /* … and of these three, which have room: */
	size_t room;
	uint32_t *first, *server;
	int64_t *demand, *tokens, *capacity;
	int64_t *due;     /* by bucket: its reservation, or its demand if that is less */
	int64_t *excess;  /* by server: tokens beyond its capacity */
	bool *can_be;     /* by bucket: an allocation exists that meets it and all others marked */
	double *theta;    /* by server: tokens of one bucket that it can serve (θ) */
	uint64_t *served; /* by bucket, of the period */
	maxflow_input in;
	/* summed over the periods that count */
	uint64_t periods, buckets, able; /* able: buckets that some allocation can meet */
	uint64_t reached95, able95, able99, over;
	uint64_t unable95;         /* miss 5 % with the best allocation */
	uint64_t steady, steady99; /* while the controller is killed: buckets that do not move */
	uint64_t asked, placed;
	double most_of_limit;
	double rate[FEW], least[FEW], most[FEW]; /* of few buckets: requests a second */
	/* when the first of them began, and the last ended */
	struct judge_mark {
		uint64_t served, messages[2], bytes[2];
	} begin, end;
};

int sim_judge_begin(struct sim_cluster *c)
{
	struct sim_judge *j = calloc(1, sizeof(*j));
	size_t b = c->config.buckets, servers = c->config.servers;

	if (!j)
		return -ENOMEM;
	c->judge = j;
	j->first = arena_take(&j->memory, b + 2, sizeof(*j->first));
	j->due = arena_take(&j->memory, b, sizeof(*j->due));
	j->can_be = arena_take(&j->memory, b, sizeof(*j->can_be));
	j->served = arena_take(&j->memory, b, sizeof(*j->served));
	j->capacity = arena_take(&j->memory, servers, sizeof(*j->capacity));
	j->theta = arena_take(&j->memory, servers, sizeof(*j->theta));
	j->excess = arena_take(&j->memory, servers, sizeof(*j->excess));
	for (size_t i = 0; i < FEW; i++)
		j->least[i] = INFINITY;
	return j->memory.failed ? -ENOMEM : 0;
}

void sim_judge_end(struct sim_cluster *c)
{
	if (!c->judge)
		return;
	arena_free(&c->judge->memory);
	arena_free(&c->judge->entries);
	free(c->judge);
}

static int make_room(struct sim_judge *j, size_t n)
{
	if (n <= j->room)
		return 0;
	arena_free(&j->entries);
	j->server = arena_take(&j->entries, n, sizeof(*j->server));
	j->demand = arena_take(&j->entries, n, sizeof(*j->demand));
	j->tokens = arena_take(&j->entries, n, sizeof(*j->tokens));
	j->room = j->entries.failed ? 0 : n;
	return j->entries.failed ? -ENOMEM : 0;
}

/* ---- a period */

static int64_t demand_of(const struct sim_cluster *c, const struct sim_place *p)
{
	double could = c->config.capacity * (double)p->open / (double)WEIR_SEC;
	int64_t came = (int64_t)(p->arrived - p->arrived0 + p->queued0);

	return could > (double)came ? (int64_t)could : came;
}

/* List the places of all servers in the order of buckets. */
static int gather(struct sim_cluster *c)
{
	struct sim_judge *j = c->judge;
	size_t n = 0;
	int r;

	for (uint32_t s = 0; s < c->config.servers; s++)
		n += c->servers[s].n;
	r = make_room(j, n);
	if (r)
		return r;
	memset(j->first, 0, (c->config.buckets + 2) * sizeof(*j->first));
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t k = 0; k < c->servers[s].n; k++)
			j->first[c->servers[s].places[k].bucket + 2]++;
	for (size_t i = 2; i < c->config.buckets + 2; i++)
		j->first[i] += j->first[i - 1];
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t k = 0; k < c->servers[s].n; k++) {
			const struct sim_place *p = &c->servers[s].places[k];
			uint32_t at = j->first[p->bucket + 1]++;

			j->server[at] = s;
			j->demand[at] = demand_of(c, p);
		}
	return 0;
}

static void fill_input(struct sim_cluster *c)
{
	struct sim_judge *j = c->judge;
	double can = c->config.capacity * (double)c->config.period / (double)WEIR_SEC;

	for (uint32_t s = 0; s < c->config.servers; s++)
		j->capacity[s] = (int64_t)can;
	for (uint32_t i = 0; i < c->config.buckets; i++) {
		int64_t demand = 0;

		for (uint32_t p = j->first[i]; p < j->first[i + 1]; p++)
			demand += j->demand[p];
		j->due[i] = c->buckets[i].reservation < demand ? c->buckets[i].reservation : demand;
	}
	j->in = (maxflow_input){.servers = c->config.servers,
		.buckets = c->config.buckets,
		.capacity = j->capacity,
		.reservation = j->due,
		.first = j->first,
		.server = j->server,
		.demand = j->demand};
}

/* Those that the source still reaches are on its side of the minimum cut: in some largest flow each of them
 * lacks something. */
static void find_able(struct sim_judge *j, struct maxflow *g)
{
	uint32_t *queue = g->queue, *seen = g->level, head = 0, tail = 0;

	memset(seen, 0, g->nodes * sizeof(*seen));
	seen[0] = 1;
	queue[tail++] = 0;
	while (head < tail) {
		uint32_t v = queue[head++];

		for (uint32_t a = g->first[v]; a < g->first[v + 1]; a++) {
			if (g->room[a] == 0 || seen[g->to[a]])
				continue;
			seen[g->to[a]] = 1;
			queue[tail++] = g->to[a];
		}
	}
	for (size_t i = 0; i < j->in.buckets; i++)
		j->can_be[i] = !seen[2 + i];
}

/* Place the tokens that are due and unplaced where their bucket has demand left: at servers that are full. */
static void put_rest(struct sim_judge *j)
{
	for (size_t s = 0; s < j->in.servers; s++)
		j->excess[s] = -j->capacity[s];
	for (size_t i = 0; i < j->in.buckets; i++) {
		int64_t rest = j->due[i];

		for (uint32_t p = j->first[i]; p < j->first[i + 1]; p++)
			rest -= j->tokens[p];
		for (uint32_t p = j->first[i]; p < j->first[i + 1]; p++) {
			int64_t more = j->demand[p] - j->tokens[p];

			more = more < rest ? more : rest;
			j->tokens[p] += more;
			rest -= more;
			j->excess[j->server[p]] += j->tokens[p];
		}
	}
}

/* Compute what the best allocation could serve, and mark the buckets that none can meet. */
static int best(struct sim_cluster *c, int64_t *ret_asked, int64_t *ret_placed)
{
	struct sim_judge *j = c->judge;
	struct maxflow g;
	int r = gather(c);

	if (r)
		return r;
	fill_input(c);
	r = maxflow_new(&j->in, &g);
	if (r)
		return r;
	*ret_placed = maxflow_push_relabel(&g);
	*ret_asked = 0;
	for (size_t i = 0; i < j->in.buckets; i++)
		*ret_asked += j->due[i];
	maxflow_tokens(&j->in, &g, j->tokens);
	find_able(j, &g);
	maxflow_free(&g);
	put_rest(j);
	return 0;
}

static double done_at(const struct sim_judge *j, size_t entries, uint32_t server, double most)
{
	double sum = 0;

	for (size_t p = 0; p < entries; p++)
		if (j->server[p] == server)
			sum += fmin((double)j->tokens[p], most);
	return sum;
}

#define HALVINGS 50 /* of the largest number of tokens: to less than one */

/* θ of the servers that have more tokens than they can do; few, if any. */
static void share_excess(struct sim_cluster *c)
{
	struct sim_judge *j = c->judge;
	size_t entries = j->first[c->config.buckets];

	for (uint32_t s = 0; s < c->config.servers; s++) {
		double lo = 0, hi = (double)j->capacity[s];

		j->theta[s] = INFINITY;
		if (j->excess[s] <= 0)
			continue;
		for (int k = 0; k < HALVINGS && hi - lo > 0.5; k++) {
			double mid = (lo + hi) / 2;

			if (done_at(j, entries, s, mid) <= (double)j->capacity[s])
				lo = mid;
			else
				hi = mid;
		}
		j->theta[s] = lo;
	}
}

static double best_of(const struct sim_judge *j, uint32_t bucket)
{
	double sum = 0;

	for (uint32_t p = j->first[bucket]; p < j->first[bucket + 1]; p++)
		sum += fmin((double)j->tokens[p], j->theta[j->server[p]]);
	return sum;
}

/* Return true if the controller was killed in this period, or took over again. */
static bool is_touched(const struct sim_cluster *c)
{
	const struct sim_cluster_config *g = &c->config;

	return g->back > g->kill + 1 && c->now > g->kill && c->now - 2 * g->period < g->back;
}

/* Return true if the bucket has not moved since a period before the kill. */
static bool is_steady(const struct sim_cluster *c, const struct sim_bucket *b)
{
	return !b->moved || b->moves[b->moved - 1] < c->config.kill - c->config.period;
}

/* Return a number of requests in so many periods as requests a second. */
static double rate_of(const struct sim_cluster *c, double served, uint64_t periods)
{
	return c->scale * served * (double)WEIR_SEC /
	       (double)(c->config.period * (weir_time)periods);
}

static void count_bucket(struct sim_cluster *c, uint32_t i, bool able)
{
	struct sim_judge *j = c->judge;
	const struct sim_bucket *b = &c->buckets[i];
	double served = (double)j->served[i], due = (double)j->due[i];
	double rate = rate_of(c, served, 1);

	j->buckets++;
	j->able += able;
	j->reached95 += served >= 0.95 * due;
	j->unable95 += best_of(j, i) < 0.95 * due;
	j->able95 += able && served >= 0.95 * due;
	j->able99 += able && served >= 0.99 * due;
	if (able && is_touched(c) && is_steady(c, b)) {
		j->steady++;
		j->steady99 += served >= 0.99 * due;
	}
	if (b->limit != LEASE_NO_LIMIT) {
		j->over += served > (double)b->limit;
		j->most_of_limit = fmax(j->most_of_limit, served / (double)b->limit);
	}
	if (i >= FEW)
		return;
	j->rate[i] += rate;
	j->least[i] = fmin(j->least[i], rate);
	j->most[i] = fmax(j->most[i], rate);
}

static void next_period(struct sim_cluster *c)
{
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t k = 0; k < c->servers[s].n; k++) {
			struct sim_place *p = &c->servers[s].places[k];

			if (c->config.afresh)
				p->queued = 0;
			p->served0 = p->served;
			p->arrived0 = p->arrived;
			p->queued0 = p->queued;
			p->open = 0;
		}
}

static void put_point(struct sim_cluster *c, int series, double value)
{
	metrics_append(c->metrics, series, (double)c->now / (double)WEIR_SEC, value);
}

static int put_series(struct sim_cluster *c, double met, double intrinsic)
{
	put_point(c, metrics_seriesf(c->metrics, "", "%s.met", c->kind), met);
	put_point(c, metrics_seriesf(c->metrics, "", "%s.intrinsic_then", c->kind), intrinsic);
	for (uint32_t i = 0; i < FEW && i < c->config.buckets; i++)
		put_point(c, metrics_seriesf(c->metrics, "iops", "bucket.%u.throughput", i + 1),
			rate_of(c, (double)c->judge->served[i], 1));
	return metrics_failed(c->metrics);
}

int sim_judge_period(struct sim_cluster *c)
{
	struct sim_judge *j = c->judge;
	uint64_t able = j->able, able95 = j->able95, all = j->buckets;
	int64_t asked, placed;
	int r = best(c, &asked, &placed);

	if (r)
		return r;
	memset(j->served, 0, c->config.buckets * sizeof(*j->served));
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t k = 0; k < c->servers[s].n; k++) {
			const struct sim_place *p = &c->servers[s].places[k];

			j->served[p->bucket] += p->served - p->served0;
		}
	j->end = (struct judge_mark){.served = c->served,
		.messages = {c->messages[0], c->messages[1]},
		.bytes = {c->bytes[0], c->bytes[1]}};
	if (c->now <= c->config.settle) {
		j->begin = j->end;
		next_period(c);
		return 0;
	}
	j->periods++;
	j->asked += (uint64_t)asked;
	j->placed += (uint64_t)placed;
	share_excess(c);
	for (uint32_t i = 0; i < c->config.buckets; i++)
		count_bucket(c, i, j->can_be[i]);
	next_period(c);
	able = j->able - able;
	return put_series(c, able ? (double)(j->able95 - able95) / (double)able : 1,
		1 - (double)able / (double)(j->buckets - all));
}

/* ---- the whole */

static void put_messages(struct sim_cluster *c)
{
	static const char *const ways[] = {"reports", "grants"};
	struct sim_judge *j = c->judge;
	double periods = (double)j->periods, servers = (double)c->config.servers;

	for (int k = 0; k < 2; k++) {
		double n = (double)(j->end.messages[k] - j->begin.messages[k]) / periods;
		double bytes = (double)(j->end.bytes[k] - j->begin.bytes[k]) / periods;

		metrics_putf(c->metrics, "a period", n, "%s.%s", c->kind, ways[k]);
		metrics_putf(c->metrics, "B a period", bytes, "%s.%s_bytes", c->kind, ways[k]);
		metrics_putf(c->metrics, "a period and server", n / servers, "%s.%s_each", c->kind,
			ways[k]);
		metrics_putf(c->metrics, "B a period and server", bytes / servers,
			"%s.%s_bytes_each", c->kind, ways[k]);
	}
}

static void put_few(struct sim_cluster *c)
{
	const struct sim_judge *j = c->judge;

	for (uint32_t i = 0; i < FEW && i < c->config.buckets; i++) {
		metrics_putf(c->metrics, "iops", j->rate[i] / (double)j->periods, "bucket.%u.iops",
			i + 1);
		metrics_putf(c->metrics, "iops", j->least[i], "bucket.%u.least", i + 1);
		metrics_putf(c->metrics, "iops", j->most[i], "bucket.%u.most", i + 1);
	}
}

int sim_judge_report(struct sim_cluster *c)
{
	struct sim_judge *j = c->judge;
	struct cluster_status s = {0};
	double buckets = (double)j->buckets, able = (double)j->able;

	if (!j->periods)
		return -ENODATA;
	if (c->control)
		c->lead->status(c->control, &s);
	const struct {
		const char *name, *unit;
		double value;
	} values[] = {{"reached95", "", (double)j->reached95 / buckets},
		{"able95", "", able > 0 ? (double)j->able95 / able : 1},
		{"able99", "", able > 0 ? (double)j->able99 / able : 1},
		{"steady", "", (double)j->steady},
		{"steady99", "", j->steady ? (double)j->steady99 / (double)j->steady : 1},
		{"error", "", 1 - (double)j->reached95 / buckets},
		{"intrinsic", "", 1 - able / buckets},
		{"intrinsic_error", "", (double)j->unable95 / buckets},
		{"short", "", 1 - (double)j->placed / (double)(j->asked ? j->asked : 1)},
		{"over", "", (double)j->over / buckets}, {"most_of_limit", "", j->most_of_limit},
		{"periods", "", (double)j->periods},
		{"throughput", "iops",
			rate_of(c, (double)(j->end.served - j->begin.served), j->periods)},
		{"rounds", "", (double)s.rounds},
		{"interval", "ms", (double)s.interval / (double)WEIR_MS}};

	put_messages(c);
	for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
		metrics_putf(c->metrics, values[k].unit, values[k].value, "%s.%s", c->kind,
			values[k].name);
	put_few(c);
	return metrics_failed(c->metrics);
}
