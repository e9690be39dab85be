/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-network: run a scenario's `network:` on real links of this machine.
 *
 *   scenario                 live
 *   a machine                a network namespace with a device, and weir shape run
 *   a rack                   a bridge, whose ports have the machines' rates and queues
 *   a flow                   a socket of a process in its machine's namespace, TCP (cubic) or UDP
 *   feedback: false          no shapers
 *
 * METHOD  All rates are divided by `live_rate` and all times are multiplied by `live_time`, since this machine carries some
 *         200 Mbit/s; measured rates and times are scaled back. The shapers' periods are their own, by the rates of devices.
 * DIFFERS A live sender's queue is the kernel's; `period`, `delay`, `timeout`, `window` and `segment` of the scenario do not apply.
 */
#include "cli/live/live-network.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST  2.6e7 /* bytes/s, about 200 Mbit/s: what links of a live network carry in all */
#define WATCH (20 * WEIR_MS) /* between two looks at queues */

/* ---- the plan */

static int refuse(const char *what, struct weir_err *err)
{
	return weir_err_set(err, -EINVAL, "a network with %s cannot run live", what);
}

static int check(const struct sim_network_config *c, struct weir_err *err)
{
	for (size_t g = 0; g < c->n_groups; g++) {
		if (c->groups[g].kind == NET_RPC)
			return refuse("rpc flows", err);
		if (c->groups[g].wander || c->groups[g].on)
			return refuse("flows that are on and off, or wander,", err);
	}
	for (size_t i = 0; i < c->n_racks; i++)
		if (!(c->racks[i].rate / c->live_rate <= MOST))
			return weir_err_set(err, -EINVAL,
				"rack %s: machines of %.4g Mbit/s live, of at most %.4g: set "
				"network.live_rate",
				c->racks[i].name, c->racks[i].rate / c->live_rate * 8e-6,
				MOST * 8e-6);
	if (c->n_changes || c->n_failures)
		return refuse("changes or failures", err);
	if (c->rack || c->fabric)
		return refuse("brokers", err);
	if (c->n_machines > LIVE_SERVERS)
		return weir_err_set(err, -EINVAL, "more than %d machines live", LIVE_SERVERS);
	return 0;
}

static int plan_flows(struct live_net *n, struct weir_err *err)
{
	const struct sim_network_config *c = n->config;
	uint16_t *used = calloc(c->policy->n_tenants + 1, sizeof(*used));

	n->first_flow = calloc(c->n_groups + 1, sizeof(*n->first_flow));
	for (uint32_t g = 0; used && n->first_flow && g < c->n_groups; g++) {
		const struct net_group *w = &c->groups[g];
		uint32_t many = w->from_many * w->to_many * w->many;

		for (uint32_t i = 0; i < many; i++) {
			uint32_t from = w->from_first + i / w->many / w->to_many,
				 to = w->to_first + i / w->many % w->to_many;

			if (from == to)
				continue;
			if (n->n_flows == LIVE_NET_FLOWS) {
				free(used);
				return weir_err_set(
					err, -EINVAL, "more than %d flows live", LIVE_NET_FLOWS);
			}
			n->flows[n->n_flows++] = (struct live_net_flow){.group = g,
				.from = from,
				.to = to,
				.port = (uint16_t)(LIVE_NET_PORT + w->service * LIVE_NET_PORTS +
						   used[w->service]++)};
		}
		n->first_flow[g + 1] = n->n_flows;
	}
	free(used);
	return used && n->first_flow ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
}

static int plan_machines(struct live_net *n, struct weir_err *err)
{
	struct live *l = n->live;
	char name[NET_NAME + 16];

	l->servers = calloc(n->config->n_machines + 1, sizeof(*l->servers));
	n->machines = l->servers;
	if (!l->servers)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t m = 0; m < n->config->n_machines; m++) {
		struct live_server *v = &l->servers[l->n_servers++];

		live_net_name(n, m, name, sizeof(name));
		v->name = live_text(l, "%s", name);
		live_server_paths(l, name, v);
	}
	return l->memory.failed ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* ---- the run */

static int step(void *arg, weir_time now, weir_time *ret_next, struct weir_err *err)
{
	struct live_net *n = arg;
	weir_time sample = (weir_time)((double)n->config->sample * n->config->live_time);
	int r = live_net_check(n, err);

	if (!n->shared->began)
		__atomic_store_n(&n->shared->began, loop_clock() - now, __ATOMIC_RELEASE);
	if (n->config->watch && (double)now >= (double)n->config->settle * n->config->live_time)
		live_net_watch(n);
	if (r == 0 && now - n->sampled >= sample)
		r = live_net_sample(n, now);
	*ret_next = now + WATCH;
	if (n->sampled + sample < *ret_next)
		*ret_next = n->sampled + sample;
	return r;
}

static int run_network(struct live_net *n, const struct sim_options *o, struct weir_err *err)
{
	int r = live_net_make(n, err);

	if (r == 0)
		r = live_net_look_new(n, err);
	if (r == 0 && n->config->feedback)
		r = live_net_shapers(n, err);
	if (r == 0)
		r = live_net_load(n, err);
	if (r == 0)
		r = live_steps(n->live, o, step, n, err);
	if (r == 0 && (r = live_net_look_end(n)) < 0)
		weir_err_set(err, r, "the values of the run: %s", strerror(-r));
	return r;
}

int live_network_run(struct live *l, const struct sim_options *o, struct weir_err *err)
{
	const struct scenario *before = l->s;
	struct live_net n = {
		.live = l, .config = l->s->network, .scenario = *l->s, .id = (int)getpid()};
	int r = check(n.config, err);

	n.scenario.duration = (weir_time)((double)l->s->duration * n.config->live_time);
	n.shared = mmap(
		NULL, sizeof(*n.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	l->s = &n.scenario;
	if (r == 0 && n.shared == MAP_FAILED)
		r = weir_err_set(err, -errno, "shared memory: %s", strerror(errno));
	if (r == 0)
		r = plan_flows(&n, err);
	if (r == 0)
		r = plan_machines(&n, err);
	if (r == 0)
		r = run_network(&n, o, err);
	live_net_unload(&n);
	for (size_t i = 0; i < l->n_servers; i++)
		peer_kill(&l->servers[i].peer);
	live_net_unmake(&n);
	live_net_look_free(&n);
	free(n.first_flow);
	if (n.shared != MAP_FAILED)
		munmap(n.shared, sizeof(*n.shared));
	l->s = before;
	return r;
}
