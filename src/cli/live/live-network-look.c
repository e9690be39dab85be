/* SPDX-License-Identifier: BSD-3-Clause */
/* live-network-look: the series and values of a live network, at the simulator's scale and with its names. */
#include "cli/live/live-network.h"
#include "serve/loop/loop.h"
#include "serve/shape/tc.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef WEIR_SHAPE

#define MBIT    (1e6 / 8)
#define LENGTHS 4096 /* packets; more count as so many */

struct live_net_port { /* of the switch, to a machine */
	struct tc_link link;
	uint64_t lengths[LENGTHS];
	uint64_t dropped, sent;
};

/* ---- queues of the switch's ports */

static struct tc tc; /* of the switch's namespace */

/* Open traffic control in another namespace. This process stays in its own. */
static int open_there(const char *path, struct weir_err *err)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
	    there = open(path, O_RDONLY | O_CLOEXEC), r = own < 0 || there < 0 ? -errno : 0;

	if (r == 0 && setns(there, CLONE_NEWNET) < 0)
		r = -errno;
	if (r)
		weir_err_set(err, r, "%s: %s", path, strerror(-r));
	else
		r = tc_open(&tc, err);
	if (own >= 0 && setns(own, CLONE_NEWNET) < 0 && r == 0)
		r = weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (own >= 0)
		close(own);
	if (there >= 0)
		close(there);
	return r;
}

static int open_ports(struct live_net *n, struct weir_err *err)
{
	char space[LIVE_NET_SPACE], name[16];
	int r;

	n->ports = calloc(n->config->n_machines, sizeof(*n->ports));
	if (!n->ports)
		return weir_err_set(err, -ENOMEM, "out of memory");
	snprintf(space, sizeof(space), "/run/netns/weir-live-%d-switch", n->id);
	r = open_there(space, err);
	for (uint32_t m = 0; r == 0 && m < n->config->n_machines; m++) {
		snprintf(name, sizeof(name), "p%u", m);
		r = tc_link(&tc, name, &n->ports[m].link, err);
	}
	return r;
}

static void on_class(void *arg, const struct tc_class_state *c)
{
	struct live_net_port *p = arg;

	p->lengths[c->queued < LENGTHS ? c->queued : LENGTHS - 1]++;
	p->dropped = c->dropped;
	p->sent = c->bytes;
}

void live_net_watch(struct live_net *n)
{
	struct weir_err err;

	for (uint32_t m = 0; m < n->config->n_machines; m++)
		tc_classes(&tc, &n->ports[m].link, on_class, &n->ports[m], &err);
}

static double length_quantile(const struct live_net_port *p, double part)
{
	uint64_t all = 0, sum = 0;
	size_t i = 0;

	for (size_t k = 0; k < LENGTHS; k++)
		all += p->lengths[k];
	while (i < LENGTHS - 1 && (double)(sum += p->lengths[i]) < part * (double)all)
		i++;
	return all ? (double)i : NAN;
}

/* ---- series */

int live_net_look_new(struct live_net *n, struct weir_err *err)
{
	const struct sim_network_config *c = n->config;
	size_t services = c->policy->n_tenants;
	int *s = calloc(
		services + c->n_groups + c->n_machines * services + n->n_flows + 1, sizeof(*s));
	char name[NET_NAME + 16];

	n->series = s;
	n->at_machine = calloc(c->n_machines * services + 1, sizeof(*n->at_machine));
	if (!s || !n->at_machine || metrics_new(&n->live->metrics) < 0)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < services; i++)
		*s++ = metrics_seriesf(
			n->live->metrics, "Mbit/s", "service.%s.in", c->policy->tenants[i].path);
	for (size_t g = 0; g < c->n_groups; g++)
		*s++ = metrics_seriesf(
			n->live->metrics, "Mbit/s", "flows.%s.in", c->groups[g].name);
	for (uint32_t m = 0; m < c->n_machines; m++)
		for (size_t i = 0; i < services; i++) {
			live_net_name(n, m, name, sizeof(name));
			*s++ = metrics_seriesf(n->live->metrics, "Mbit/s", "machine.%s.%s.in", name,
				c->policy->tenants[i].path);
		}
	for (uint32_t f = 0; f < n->n_flows; f++)
		*s++ = metrics_seriesf(n->live->metrics, "Mbit/s", "flow.%s.%u",
			c->groups[n->flows[f].group].name,
			f - n->first_flow[n->flows[f].group] + 1);
	return open_ports(n, err);
}

int live_net_sample(struct live_net *n, weir_time now)
{
	const struct sim_network_config *c = n->config;
	size_t services = c->policy->n_tenants;
	double span = (double)(now - n->sampled) / 1e9, t = (double)now / 1e9 / c->live_time,
	       scale = c->live_rate / span / MBIT;
	int *of_service = n->series, *of_group = of_service + services,
	    *of_machine = of_group + c->n_groups, *of_flow = of_machine + c->n_machines * services;
	struct metrics *to = n->live->metrics;

	for (size_t i = 0; i < c->n_machines * services; i++)
		n->at_machine[i] = 0;
	for (uint32_t f = 0; f < n->n_flows; f++) {
		struct live_net_flow *w = &n->flows[f];
		uint64_t got = __atomic_load_n(&n->shared->got[f], __ATOMIC_RELAXED);

		metrics_append(to, of_flow[f], t, (double)(got - w->got) * scale);
		n->at_machine[w->to * services + c->groups[w->group].service] += got - w->got;
	}
	for (size_t g = 0; g < c->n_groups; g++) {
		uint64_t sum = 0;

		for (uint32_t f = n->first_flow[g]; f < n->first_flow[g + 1]; f++) {
			uint64_t got = __atomic_load_n(&n->shared->got[f], __ATOMIC_RELAXED);

			sum += got - n->flows[f].got;
			n->flows[f].got = got;
		}
		metrics_append(to, of_group[g], t, (double)sum * scale);
	}
	for (size_t i = 0; i < services; i++) {
		uint64_t sum = 0;

		for (uint32_t m = 0; m < c->n_machines; m++) {
			uint64_t got = n->at_machine[m * services + i];

			metrics_append(to, of_machine[m * services + i], t, (double)got * scale);
			sum += got;
		}
		metrics_append(to, of_service[i], t, (double)sum * scale);
	}
	n->sampled = now;
	return metrics_failed(to);
}

int live_net_look_end(struct live_net *n)
{
	char name[NET_NAME + 16];

	for (uint32_t m = 0; m < n->config->n_machines; m++) {
		const struct live_net_port *p = &n->ports[m];

		live_net_name(n, m, name, sizeof(name));
		metrics_putf(n->live->metrics, "packets", length_quantile(p, 0.5), "link.%s.in.p50",
			name);
		metrics_putf(n->live->metrics, "packets", length_quantile(p, 0.99),
			"link.%s.in.p99", name);
		metrics_putf(
			n->live->metrics, "segments", (double)p->dropped, "link.%s.in.drops", name);
	}
	return metrics_failed(n->live->metrics);
}

void live_net_look_free(struct live_net *n)
{
	if (tc.socket)
		tc_close(&tc);
	free(n->ports);
	free(n->series);
	free(n->at_machine);
}

#else /* this build has no shaper, so that no network can run live */

int live_net_look_new(struct live_net *n, struct weir_err *err)
{
	return weir_err_set(
		err, -EOPNOTSUPP, "this build has no weir shape: it lacks libbpf or clang");
}

void live_net_watch(struct live_net *n)
{
}

int live_net_sample(struct live_net *n, weir_time now)
{
	return 0;
}

int live_net_look_end(struct live_net *n)
{
	return 0;
}

void live_net_look_free(struct live_net *n)
{
}

#endif
