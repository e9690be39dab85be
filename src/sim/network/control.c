/* SPDX-License-Identifier: BSD-3-Clause */
/* control: meters, the division of a machine's link, the brokers of racks and of the fabric. */
#include "sim/network/network.h"
#include <errno.h>
#include <stdlib.h>

#define SHARES       25       /* periods of a meter between two divisions of a machine's link */
#define REPORT       WEIR_SEC /* T_rack */
#define FABRIC_EVERY 10       /* reports; T_fabric */

static const struct policy_net_share *share(
	const struct sim_network *n, uint32_t service, int level, int dir)
{
	static const struct policy_net_share none = {.max = INFINITY, .weight = 1};
	const struct policy_net *net = n->config->policy->tenants[service].net;

	return net ? &net->share[level][dir] : &none;
}

/* ---- making the brokers */

static int make_broker(struct sim_network *n, int level, int dir, size_t members, weir_time silence,
	struct parley_broker **ret)
{
	struct parley_service *s = calloc(n->n_services + 1, sizeof(*s));
	int r;

	for (uint32_t i = 0; s && i < n->n_services; i++)
		policy_net_service(n->config->policy, i, (enum policy_net_level)level,
			(enum policy_net_dir)dir, &s[i]);
	r = s ? parley_broker_new(s, n->n_services, members, silence, ret) : -ENOMEM;
	free(s);
	return r;
}

static int make_machine(struct sim_network *n, uint32_t number, uint32_t rack)
{
	struct net_machine *m = &n->machines[number];
	const struct net_rack *k = &n->config->racks[rack];
	int r = 0;

	m->rack = rack;
	m->services = calloc(n->n_services + 1, sizeof(*m->services));
	m->usage = calloc(2 * n->n_services + 1, sizeof(*m->usage));
	m->of_fabric = calloc(2 * n->n_services + 1, sizeof(*m->of_fabric));
	if (!m->services || !m->usage || !m->of_fabric)
		return -ENOMEM;
	for (int d = 0; r == 0 && d < POLICY_NET_DIRS; d++) {
		r = make_broker(n, POLICY_NET_MACHINE, d, 1, WEIR_NEVER, &m->own[d]);
		if (r == 0 && n->config->rack)
			r = make_broker(n, POLICY_NET_RACK, d, k->machines,
				n->config->forget ? 2 * REPORT - 1 : PARLEY_RACK, &m->broker[d]);
	}
	for (uint32_t i = 0; r == 0 && i < n->n_services; i++) {
		struct net_service *s = &m->services[i];
		const struct policy_net *net = n->config->policy->tenants[i].net;
		double line = k->rate < INFINITY ? k->rate : 1e15;

		parley_meter_init(&s->meter, line, n->config->ecn);
		for (int d = 0; d < POLICY_NET_DIRS; d++) {
			s->cap[d] = (struct parley_cap){
				INFINITY, share(n, i, POLICY_NET_MACHINE, d)->max, 0};
			s->share[d] = INFINITY;
		}
		s->root.law = (struct parley_limiter){.rate = s->cap[POLICY_NET_OUT].fixed,
			.burst = net && net->burst ? (double)net->burst : 0};
		s->root.law.tokens = s->root.law.burst;
	}
	return r;
}

static int make_fabric(struct sim_network *n)
{
	size_t racks = n->config->n_racks;
	int r = 0;

	n->fabric_cap = calloc(racks * 2 * n->n_services + 1, sizeof(*n->fabric_cap));
	n->fabric_until = calloc(racks + 1, sizeof(*n->fabric_until));
	if (!n->fabric_cap || !n->fabric_until)
		return -ENOMEM;
	for (int d = 0; r == 0 && n->config->fabric && d < POLICY_NET_DIRS; d++)
		r = make_broker(n, POLICY_NET_FABRIC, d, racks, PARLEY_FABRIC, &n->fabric[d]);
	return r;
}

static bool receives(const struct sim_network_config *c, uint32_t machine)
{
	for (size_t g = 0; g < c->n_groups; g++)
		if (machine - c->groups[g].to_first < c->groups[g].to_many)
			return true;
	return false;
}

int net_control_begin(struct sim_network *n)
{
	const struct sim_network_config *c = n->config;
	int r = 0;

	n->machines = calloc(n->n_machines + 1, sizeof(*n->machines));
	n->scratch = calloc(n->n_services + 1, sizeof(*n->scratch));
	if (!n->machines || !n->scratch)
		return -ENOMEM;
	for (uint32_t k = 0; k < c->n_racks; k++)
		for (uint32_t i = 0; r == 0 && i < c->racks[k].machines; i++)
			r = make_machine(n, c->racks[k].first + i, k);
	if (r || (r = make_fabric(n)))
		return r;
	if (c->feedback) {
		for (uint32_t i = 0; i < n->n_machines; i++)
			if (receives(c, i)) /* machines are not in step */
				net_push(n, 1 + (weir_time)rng_below(&n->rng, (uint64_t)c->period),
					NET_METERS, i);
		net_push(n, SHARES * c->period, NET_SHARES, 0);
	}
	if (c->rack || c->fabric)
		net_push(n, REPORT, NET_REPORT, 0);
	for (uint32_t i = 0; i < c->n_changes; i++)
		net_push(n, c->changes[i].at, NET_CHANGE, i);
	return 0;
}

void net_control_end(struct sim_network *n)
{
	for (uint32_t i = 0; n->machines && i < n->n_machines; i++) {
		struct net_machine *m = &n->machines[i];

		for (int d = 0; d < POLICY_NET_DIRS; d++) {
			parley_broker_free(m->own[d]);
			parley_broker_free(m->broker[d]);
		}
		free(m->services);
		free(m->usage);
		free(m->of_fabric);
	}
	for (int d = 0; d < POLICY_NET_DIRS; d++)
		parley_broker_free(n->fabric[d]);
	free(n->fabric_cap);
	free(n->fabric_until);
	free(n->scratch);
	free(n->machines);
}

/* ---- the machine */

static bool message_lost(struct sim_network *n)
{
	bool lost = n->config->loss > 0 && rng_double(&n->rng) < n->config->loss;

	n->lost_messages += lost;
	return lost;
}

float net_control_received(struct sim_network *n, uint32_t s)
{
	const struct net_segment *g = &n->segments[s];
	const struct net_flow *f = &n->flows[g->flow];
	struct net_service *at = net_service(n, f->to, n->config->groups[f->group].service);

	at->bytes[POLICY_NET_IN] += g->bytes;
	if (!parley_meter_count(&at->meter, g->bytes, g->marked) || !n->config->feedback ||
		at->meter.rcp.rate >= at->meter.rcp.line || message_lost(n))
		return 0;
	return (float)at->meter.rcp.rate;
}

void net_control_told(struct sim_network *n, uint32_t flow, double rate)
{
	uint32_t leaf = n->flows[flow].leaf;

	n->leaves[leaf].heard = n->now;
	net_limit(n, &n->leaves[leaf], NET_LIMITER, leaf,
		rate * n->config->groups[n->flows[flow].group].weight);
}

/* Return what a service may have at a machine: its broker's cap, its static max, its part of the link. */
static double allowed(const struct net_service *s, int dir, weir_time now)
{
	double cap = parley_cap_now(&s->cap[dir], now);

	return cap < s->share[dir] ? cap : s->share[dir];
}

/* End a meter's period, if it is over: slow services need longer ones. */
static void step_meter(struct sim_network *n, struct net_service *s, double rate)
{
	double in = allowed(s, POLICY_NET_IN, n->now), capacity = in < rate ? in : rate;

	parley_meter_turn(&s->meter, capacity, n->config->period,
		n->config->adapt ? parley_period(capacity, (double)n->config->segment) : 0, n->now);
}

void net_control_meters(struct sim_network *n, uint32_t machine)
{
	for (uint32_t k = 0; k < n->n_services; k++)
		if (net_service(n, machine, k)->bytes[POLICY_NET_IN])
			step_meter(n, net_service(n, machine, k),
				PARLEY_LINE * n->config->racks[n->machines[machine].rack].rate);
	net_push(n, n->now + n->config->period, NET_METERS, machine);
}

static void set_root(struct sim_network *n, uint32_t machine, uint32_t service)
{
	struct net_service *s = net_service(n, machine, service);

	net_limit(n, &s->root, NET_ROOT, (uint64_t)machine * n->n_services + service,
		allowed(s, POLICY_NET_OUT, n->now));
}

/* Divide a machine's link among its services. */
static void divide_machine(struct sim_network *n, uint32_t number, int dir)
{
	struct net_machine *m = &n->machines[number];
	double *usage = n->scratch;

	for (uint32_t k = 0; k < n->n_services; k++) {
		struct net_service *s = &m->services[k];

		usage[k] = (double)(s->bytes[dir] - s->at_share[dir]) * 1e9 /
			   (double)(SHARES * n->config->period);
		s->at_share[dir] = s->bytes[dir];
	}
	parley_broker_hear(m->own[dir], 0, usage, n->now);
	parley_broker_step(m->own[dir],
		(dir == POLICY_NET_IN ? PARLEY_LINE : 1) * n->config->racks[m->rack].rate, n->now);
	for (uint32_t k = 0; k < n->n_services; k++)
		m->services[k].share[dir] = parley_broker_cap(m->own[dir], 0, k);
}

void net_control_shares(struct sim_network *n)
{
	for (uint32_t i = 0; i < n->n_machines; i++) {
		if (n->n_services > 1) {
			divide_machine(n, i, POLICY_NET_IN);
			divide_machine(n, i, POLICY_NET_OUT);
		}
		for (uint32_t k = 0; k < n->n_services; k++)
			set_root(n, i, k);
	}
	net_push(n, n->now + SHARES * n->config->period, NET_SHARES, 0);
}

/* ---- the rack */

static bool is_dead(const struct sim_network *n, int what, uint32_t machine)
{
	for (size_t i = 0; i < n->config->n_failures; i++) {
		const struct net_failure *f = &n->config->failures[i];
		uint32_t of_rack =
			what == NET_FAULT_FABRIC
				? 0
				: machine - n->config->racks[n->machines[machine].rack].first;

		if (f->what == what && n->now >= f->from && n->now < f->to &&
			(what == NET_FAULT_FABRIC || of_rack < f->machines))
			return true;
	}
	return false;
}

/* Measure a machine's usage since the last report. */
static void measure(struct sim_network *n, uint32_t number)
{
	struct net_machine *m = &n->machines[number];

	for (int d = 0; d < POLICY_NET_DIRS; d++)
		for (uint32_t k = 0; k < n->n_services; k++) {
			struct net_service *s = &m->services[k];

			m->usage[d * (int)n->n_services + (int)k] =
				(double)(s->bytes[d] - s->at_rack[d]) * 1e9 / (double)REPORT;
			m->of_fabric[d * (int)n->n_services + (int)k] +=
				(double)(s->bytes[d] - s->at_rack[d]);
			s->at_rack[d] = s->bytes[d];
		}
}

/* Send a machine's usage to the brokers of its rack, its own too. */
static void report(struct sim_network *n, uint32_t number)
{
	const struct net_machine *m = &n->machines[number];
	const struct net_rack *k = &n->config->racks[m->rack];

	for (uint32_t to = k->first; to < k->first + k->machines; to++) {
		if (is_dead(n, NET_FAULT_RACK, to) || (to != number && message_lost(n)))
			continue;
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			parley_broker_hear(n->machines[to].broker[d], number - k->first,
				m->usage + d * (int)n->n_services, n->now);
	}
}

void net_control_report(struct sim_network *n)
{
	for (uint32_t i = 0; i < n->n_machines; i++)
		measure(n, i);
	for (uint32_t i = 0; n->config->rack && i < n->n_machines; i++)
		if (!is_dead(n, NET_FAULT_RACK, i))
			report(n, i);
	net_push(n, n->now + n->config->message_delay, NET_DIVIDE, 0);
	if (n->config->fabric && n->now / REPORT % FABRIC_EVERY == 0)
		net_push(n, n->now + 2 * n->config->message_delay, NET_FABRIC, 0);
	net_push(n, n->now + REPORT, NET_REPORT, 0);
}

/* Give a service the least of what the rack's policy and the fabric's broker allow it in the rack. */
static void take_fabric(struct sim_network *n, struct net_machine *m, int dir, uint32_t service)
{
	const struct policy_net_share *s = share(n, service, POLICY_NET_RACK, dir);
	double cap = n->fabric_cap[((size_t)m->rack * 2 + (size_t)dir) * n->n_services + service];
	double max = n->fabric_until[m->rack] > n->now && cap < s->max ? cap : s->max;

	parley_broker_set(m->broker[dir], service, s->min < max ? s->min : max, max, s->weight);
}

static void divide_rack(struct sim_network *n, uint32_t number, int dir)
{
	struct net_machine *m = &n->machines[number];
	const struct net_rack *rack = &n->config->racks[m->rack];
	double link = dir == POLICY_NET_IN ? rack->down : rack->up;

	for (uint32_t k = 0; k < n->n_services; k++)
		take_fabric(n, m, dir, k);
	parley_broker_step(m->broker[dir], rack->limit < link ? rack->limit : link, n->now);
	for (uint32_t k = 0; k < n->n_services; k++) {
		m->services[k].cap[dir].runtime =
			parley_broker_cap(m->broker[dir], number - rack->first, k);
		m->services[k].cap[dir].until = n->now + PARLEY_RACK;
	}
}

void net_control_divide(struct sim_network *n)
{
	for (uint32_t i = 0; n->config->rack && i < n->n_machines; i++) {
		if (is_dead(n, NET_FAULT_RACK, i))
			continue;
		divide_rack(n, i, POLICY_NET_IN);
		divide_rack(n, i, POLICY_NET_OUT);
		for (uint32_t k = 0; k < n->n_services; k++)
			set_root(n, i, k);
	}
}

/* ---- the fabric */

/* Sum what the machines of a rack used since the last report. */
static void report_rack(struct sim_network *n, uint32_t rack, int dir)
{
	const struct net_rack *k = &n->config->racks[rack];
	double *usage = n->scratch;

	for (uint32_t s = 0; s < n->n_services; s++) {
		usage[s] = 0;
		for (uint32_t m = k->first; m < k->first + k->machines; m++) {
			double *at = &n->machines[m].of_fabric[dir * (int)n->n_services + (int)s];

			usage[s] += *at * 1e9 / (double)(FABRIC_EVERY * REPORT);
			*at = 0;
		}
	}
	if (!message_lost(n))
		parley_broker_hear(n->fabric[dir], rack, usage, n->now);
}

void net_control_fabric(struct sim_network *n)
{
	size_t racks = n->config->n_racks;

	for (uint32_t r = 0; r < racks; r++)
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			report_rack(n, r, d);
	if (is_dead(n, NET_FAULT_FABRIC, 0))
		return;
	for (int d = 0; d < POLICY_NET_DIRS; d++)
		parley_broker_step(n->fabric[d], INFINITY, n->now);
	for (uint32_t r = 0; r < racks; r++) {
		if (message_lost(n))
			continue;
		n->fabric_until[r] = n->now + PARLEY_FABRIC;
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			for (uint32_t s = 0; s < n->n_services; s++)
				n->fabric_cap[((size_t)r * 2 + (size_t)d) * n->n_services + s] =
					parley_broker_cap(n->fabric[d], r, s);
	}
}

void net_control_change(struct sim_network *n, uint32_t change)
{
	const struct net_change *c = &n->config->changes[change];
	const struct policy_net_share *s = share(n, c->service, POLICY_NET_FABRIC, POLICY_NET_OUT);

	if (n->fabric[POLICY_NET_OUT])
		parley_broker_set(n->fabric[POLICY_NET_OUT], c->service, s->min, c->max, s->weight);
}
