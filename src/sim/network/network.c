/* SPDX-License-Identifier: BSD-3-Clause */
/* network: time and events. */
#include "sim/network/network.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIND_BITS 5
#define PROGRESS  (1u << 20) /* events between two calls of the progress callback */

void net_push(struct sim_network *n, weir_time at, enum net_event kind, uint64_t value)
{
	int r = heap_push(&n->events,
		(struct heap_item){at, n->serial++, value << KIND_BITS | (uint64_t)kind});

	if (r)
		n->failed = r;
}

static void handle(struct sim_network *n, enum net_event kind, uint64_t value)
{
	uint32_t id = (uint32_t)value;

	switch (kind) {
	case NET_SEGMENT:
		net_path_next(n, id);
		break;
	case NET_ACK:
		net_flow_acked(n, id);
		break;
	case NET_LOST:
		net_flow_lost(n, id);
		break;
	case NET_LIMITER:
		net_path_leaf(n, id);
		break;
	case NET_ROOT:
		net_path_root(n, value);
		break;
	case NET_GROUP:
		net_flow_rpc(n, id);
		break;
	case NET_FLOW:
		net_flow_udp(n, id);
		break;
	case NET_TURN:
		net_flow_turn(n, id);
		break;
	case NET_METERS:
		net_control_meters(n, id);
		break;
	case NET_SHARES:
		net_control_shares(n);
		break;
	case NET_REPORT:
		net_control_report(n);
		break;
	case NET_DIVIDE:
		net_control_divide(n);
		break;
	case NET_FABRIC:
		net_control_fabric(n);
		break;
	case NET_SAMPLE:
		net_report_sample(n);
		break;
	case NET_WATCH:
		net_report_watch(n);
		break;
	case NET_CHANGE:
		net_control_change(n, id);
		break;
	}
}

static void network_free(struct sim_network *n)
{
	net_report_free(n);
	net_control_end(n);
	net_flow_end(n);
	net_path_end(n);
	heap_free(&n->events);
	free(n);
}

static int network_new(const struct sim_network_config *config, weir_time duration, uint64_t seed,
	struct sim_network **ret)
{
	struct sim_network *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->config = config;
	n->duration = duration;
	n->n_machines = config->n_machines;
	n->n_services = (uint32_t)config->policy->n_tenants;
	n->n_links = 2 * (n->n_machines + (uint32_t)config->n_racks);
	n->free_segment = n->free_message = NET_NONE;
	heap_init(&n->events, NULL);
	rng_init(&n->rng, seed, "network/messages");
	n->rngs = calloc(config->n_groups + 1, sizeof(*n->rngs));
	r = n->rngs ? 0 : -ENOMEM;
	for (size_t g = 0; r == 0 && g < config->n_groups; g++) {
		char stream[NET_NAME + 16] = "network/";

		strcat(stream, config->groups[g].name);
		rng_init(&n->rngs[g], seed, stream);
	}
	if (r || (r = net_path_begin(n)) || (r = net_flow_begin(n)) || (r = net_control_begin(n)) ||
		(r = net_report_begin(n)))
		network_free(n);
	else
		*ret = n;
	return r;
}

static int run_events(struct sim_network *n, const struct sim_options *o)
{
	const struct heap_item *first;

	while (!n->failed && (first = heap_min(&n->events)) && first->key < n->duration) {
		struct heap_item e = heap_pop(&n->events);

		n->now = e.key;
		handle(n, (enum net_event)(e.value & ((1u << KIND_BITS) - 1)),
			e.value >> KIND_BITS);
		if (++n->popped % PROGRESS == 0 && o && o->progress &&
			o->progress((double)n->now / (double)n->duration, o->progress_arg))
			return -ECANCELED;
	}
	n->now = n->duration;
	return n->failed;
}

int sim_network_run(const struct sim_network_config *config, weir_time duration, uint64_t seed,
	const struct sim_options *options, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err)
{
	struct sim_network *n;
	int r = network_new(config, duration, seed, &n);

	if (r)
		return weir_err_set(err, r, "network: %s", strerror(-r));
	r = run_events(n, options);
	if (r == 0)
		r = net_report_end(n);
	if (r == 0) {
		*ret = n->metrics;
		n->metrics = NULL;
		if (ret_cost)
			*ret_cost = (struct sim_cost){n->popped, 0};
	} else {
		weir_err_set(err, r, "network, at %.3f s: %s", (double)n->now / 1e9,
			r == -ECANCELED ? "stopped" : strerror(-r));
	}
	network_free(n);
	return r;
}
