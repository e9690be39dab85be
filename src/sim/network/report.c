/* SPDX-License-Identifier: BSD-3-Clause */
/* report: what arrives, by service, group and machine; caps; links; completion times. */
#include "sim/network/network.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MBIT     (1e6 / 8)
#define WATCH    131700 /* ns between two samples of queues: in step with no packet */
#define MTU      1500
#define MACHINES 128 /* most machines whose services have a series each */

enum { SERVICES, GROUPS, CELLS, FLOWS, PARTS };

static bool by_machine(const struct sim_network *n)
{
	return n->n_machines <= MACHINES;
}

/* Name a machine: "rack.1". */
static void machine_name(const struct sim_network *n, uint32_t m, char *buf, size_t len)
{
	const struct net_rack *k = &n->config->racks[n->machines[m].rack];

	snprintf(buf, len, "%s.%u", k->name, m - k->first + 1);
}

static bool is_split(const struct sim_network *n, uint32_t flow)
{
	uint32_t g = n->flows[flow].group;

	return n->first_flow[g + 1] - n->first_flow[g] <= n->config->split;
}

int net_report_begin(struct sim_network *n)
{
	size_t cells = (size_t)n->n_machines * n->n_services * 2;
	size_t all = n->n_services + n->config->n_groups + cells + n->n_flows;
	int r = metrics_new(&n->metrics), *s;

	n->series = calloc(all + 1, sizeof(*n->series));
	n->last = calloc(n->n_services + 1, sizeof(*n->last));
	n->got = calloc(n->config->n_groups + 1, sizeof(*n->got));
	n->flow_got = calloc(n->n_flows + 1, sizeof(*n->flow_got));
	if (r || !n->series || !n->last || !n->got || !n->flow_got)
		return r ? r : -ENOMEM;
	s = n->series;
	for (uint32_t i = 0; i < n->n_services; i++)
		*s++ = metrics_seriesf(
			n->metrics, "Mbit/s", "service.%s.in", n->config->policy->tenants[i].path);
	for (uint32_t g = 0; g < n->config->n_groups; g++)
		*s++ = metrics_seriesf(
			n->metrics, "Mbit/s", "flows.%s.in", n->config->groups[g].name);
	for (uint32_t m = 0; by_machine(n) && m < n->n_machines; m++)
		for (uint32_t i = 0; i < n->n_services; i++) {
			char name[NET_NAME + 16];

			machine_name(n, m, name, sizeof(name));
			*s++ = metrics_seriesf(n->metrics, "Mbit/s", "machine.%s.%s.in", name,
				n->config->policy->tenants[i].path);
			*s++ = metrics_seriesf(n->metrics, "Mbit/s", "machine.%s.%s.cap", name,
				n->config->policy->tenants[i].path);
		}
	for (uint32_t f = 0; f < n->n_flows; f++)
		*s++ = is_split(n, f) ? metrics_seriesf(n->metrics, "Mbit/s", "flow.%s.%u",
						n->config->groups[n->flows[f].group].name,
						f - n->first_flow[n->flows[f].group] + 1)
				      : 0;
	net_push(n, n->config->sample, NET_SAMPLE, 0);
	if (n->config->watch)
		net_push(n, n->config->settle + WATCH, NET_WATCH, 0);
	return metrics_failed(n->metrics);
}

void net_report_free(struct sim_network *n)
{
	metrics_free(n->metrics);
	free(n->series);
	free(n->last);
	free(n->got);
	free(n->flow_got);
	free(n->times);
}

/* Return the least limit that a service has at a machine for what comes in, Mbit/s; 0: it has none. */
static double cap_now(const struct sim_network *n, const struct net_service *s)
{
	double cap = parley_cap_now(&s->cap[POLICY_NET_IN], n->now);

	cap = cap < s->share[POLICY_NET_IN] ? cap : s->share[POLICY_NET_IN];
	return cap < INFINITY ? cap / MBIT : 0;
}

void net_report_sample(struct sim_network *n)
{
	double t = (double)n->now / 1e9, to_mbit = 1e9 / (double)n->config->sample / MBIT;
	int *s = n->series;

	for (uint32_t i = 0; i < n->n_services; i++)
		n->last[i] = 0;
	for (uint32_t m = 0; m < n->n_machines; m++)
		for (uint32_t i = 0; i < n->n_services; i++) {
			const struct net_service *at = net_service(n, m, i);

			n->last[i] += (double)(at->bytes[POLICY_NET_IN] - at->at_sample);
		}
	for (uint32_t i = 0; i < n->n_services; i++)
		metrics_append(n->metrics, *s++, t, n->last[i] * to_mbit);
	for (uint32_t g = 0; g < n->config->n_groups; g++) {
		metrics_append(n->metrics, *s++, t, (double)n->got[g] * to_mbit);
		n->got[g] = 0;
	}
	for (uint32_t m = 0; m < n->n_machines; m++)
		for (uint32_t i = 0; i < n->n_services; i++) {
			struct net_service *at = net_service(n, m, i);

			if (by_machine(n)) {
				metrics_append(n->metrics, *s++, t,
					(double)(at->bytes[POLICY_NET_IN] - at->at_sample) *
						to_mbit);
				metrics_append(n->metrics, *s++, t, cap_now(n, at));
			}
			at->at_sample = at->bytes[POLICY_NET_IN];
		}
	for (uint32_t f = 0; f < n->n_flows; f++, s++) {
		if (is_split(n, f))
			metrics_append(n->metrics, *s, t,
				(double)(n->flows[f].got - n->flow_got[f]) * to_mbit);
		n->flow_got[f] = n->flows[f].got;
	}
	if (metrics_failed(n->metrics))
		n->failed = metrics_failed(n->metrics);
	net_push(n, n->now + n->config->sample, NET_SAMPLE, 0);
}

void net_report_watch(struct sim_network *n)
{
	for (uint32_t i = 0; i < n->n_links; i++) {
		struct net_link *l = &n->links[i];
		double ahead = l->free - (double)n->now;
		double packets = ahead > 0 ? ceil(ahead * l->rate / 1e9 / MTU) : 0;

		if (l->lengths)
			l->lengths[packets < NET_LENGTHS ? (size_t)packets : NET_LENGTHS - 1]++;
	}
	net_push(n, n->now + WATCH, NET_WATCH, 0);
}

static double length_quantile(const struct net_link *l, double part)
{
	uint64_t all = 0, sum = 0;
	size_t i = 0;

	for (size_t k = 0; k < NET_LENGTHS; k++)
		all += l->lengths[k];
	while (i < NET_LENGTHS - 1 && (double)(sum += l->lengths[i]) < part * (double)all)
		i++;
	return all ? (double)i : NAN;
}

static void put_link(struct sim_network *n, const struct net_link *l)
{
	char name[2 * NET_NAME];

	if (!(l->rate < INFINITY))
		return;
	if (l->of_rack)
		snprintf(name, sizeof(name), "%s", n->config->racks[l->of].name);
	else
		machine_name(n, l->of, name, sizeof(name));
	metrics_putf(n->metrics, "", (double)l->bytes * 1e9 / (double)n->now / l->rate,
		"link.%s.%s.load", name, l->way);
	metrics_putf(n->metrics, "segments", (double)l->drops, "link.%s.%s.drops", name, l->way);
	metrics_putf(n->metrics, "segments", (double)l->marks, "link.%s.%s.marks", name, l->way);
	if (l->lengths) {
		metrics_putf(n->metrics, "packets", length_quantile(l, 0.99), "link.%s.%s.p99",
			name, l->way);
		metrics_putf(n->metrics, "packets", length_quantile(l, 0.5), "link.%s.%s.p50", name,
			l->way);
	}
}

static void put_times(struct sim_network *n, uint32_t group)
{
	const struct net_group *g = &n->config->groups[group];
	const struct weir_hist *h = &n->times[group];
	static const double percents[] = {50, 99, 99.9};
	static const char *const names[] = {"p50", "p99", "p999"};

	if (g->kind != NET_RPC)
		return;
	metrics_putf(n->metrics, "", (double)n->begun[group], "rpc.%s.begun", g->name);
	metrics_putf(n->metrics, "", (double)h->count, "rpc.%s.done", g->name);
	metrics_putf(
		n->metrics, "ms", h->count ? weir_hist_mean(h) / 1e6 : NAN, "rpc.%s.mean", g->name);
	metrics_putf(
		n->metrics, "ms", h->count ? (double)h->max / 1e6 : NAN, "rpc.%s.max", g->name);
	for (size_t i = 0; i < 3; i++)
		metrics_putf(n->metrics, "ms",
			h->count ? (double)weir_hist_percentile(h, percents[i]) / 1e6 : NAN,
			"rpc.%s.%s", g->name, names[i]);
}

/* Put the caps at the end: those of each service at each machine, of what comes in and goes out. */
static void put_caps(struct sim_network *n, uint32_t m)
{
	char name[NET_NAME + 16];

	machine_name(n, m, name, sizeof(name));
	for (uint32_t i = 0; i < n->n_services; i++) {
		const struct net_service *s = net_service(n, m, i);
		double in = parley_cap_now(&s->cap[POLICY_NET_IN], n->now);
		double out = parley_cap_now(&s->cap[POLICY_NET_OUT], n->now);
		const char *path = n->config->policy->tenants[i].path;

		metrics_putf(n->metrics, "Mbit/s", in < INFINITY ? in / MBIT : NAN, "cap.%s.%s.in",
			name, path);
		metrics_putf(n->metrics, "Mbit/s", out < INFINITY ? out / MBIT : NAN,
			"cap.%s.%s.out", name, path);
		if (n->machines[m].broker[POLICY_NET_IN])
			metrics_putf(n->metrics, "Mbit/s",
				parley_broker_rate(n->machines[m].broker[POLICY_NET_IN], i) / MBIT,
				"share.%s.%s.in", name, path);
	}
}

int net_report_end(struct sim_network *n)
{
	for (uint32_t g = 0; g < n->config->n_groups; g++)
		put_times(n, g);
	for (uint32_t i = 0; i < n->n_links && n->n_machines <= 128; i++)
		put_link(n, &n->links[i]);
	for (uint32_t m = 0; by_machine(n) && m < n->n_machines; m++)
		put_caps(n, m);
	metrics_put(n->metrics, "messages.lost", "", (double)n->lost_messages);
	return metrics_failed(n->metrics);
}
