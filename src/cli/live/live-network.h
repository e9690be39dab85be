/* SPDX-License-Identifier: BSD-3-Clause */
/* live-network: run a scenario's `network:` on real links; see live-network.c. */
#pragma once

#include "cli/live/live-impl.h"
#include "sim/network/network.h"

#define LIVE_NET_FLOWS 256
#define LIVE_NET_PORT  10000 /* of the first flow of the first service */
#define LIVE_NET_PORTS 1000  /* of a service */
#define LIVE_NET_SPACE 64    /* bytes of the path of a network namespace */

struct live_net_flow {
	uint32_t group, from, to; /* machines */
	uint16_t port;            /* of both sides */
	uint64_t got;             /* at the last sample: bytes on the wire */
};

/* Memory that the processes which send and receive share with the harness. */
struct live_net_shared {
	weir_time began;              /* loop_clock; 0: not yet */
	uint64_t got[LIVE_NET_FLOWS]; /* bytes on the wire */
	bool ready[LIVE_NET_FLOWS];   /* its receiver listens */
};

struct live_net {
	struct live *live;
	const struct sim_network_config *config;
	struct scenario scenario; /* with the run's times */
	struct live_server *machines;
	struct live_net_flow flows[LIVE_NET_FLOWS];
	uint32_t n_flows, *first_flow; /* by group; [n_groups]: the end */
	struct live_net_shared *shared;
	struct peer *load; /* processes that send and receive */
	size_t n_load;
	struct live_net_port *ports; /* of machines: to them; NULL: not watched */
	uint64_t *at_machine;        /* [machine · services + service], at the last sample */
	int *series;
	weir_time sampled;
	int id;    /* of this process: in the names of namespaces */
	bool made; /* there are some */
};

/* live-network-rack.c: machines in network namespaces, and switches between them. */
int live_net_make(struct live_net *n, struct weir_err *err);
void live_net_unmake(struct live_net *n);
void live_net_space(const struct live_net *n, uint32_t machine, char ret[LIVE_NET_SPACE]);
/* "10.9.0.1" */
void live_net_address(uint32_t machine, char ret[20]);
/* "rack.1" */
void live_net_name(const struct live_net *n, uint32_t machine, char *ret, size_t len);
/* Start a shaper on each machine. */
int live_net_shapers(struct live_net *n, struct weir_err *err);

/* live-network-load.c: flows, by processes of this one. */
int live_net_load(struct live_net *n, struct weir_err *err);
void live_net_unload(struct live_net *n);
/* Fail if one has ended. */
int live_net_check(struct live_net *n, struct weir_err *err);

/* live-network-look.c: what arrives, with the simulator's names. */
int live_net_look_new(struct live_net *n, struct weir_err *err);
void live_net_watch(struct live_net *n);
int live_net_sample(struct live_net *n, weir_time now);
int live_net_look_end(struct live_net *n);
void live_net_look_free(struct live_net *n);

int live_network_run(struct live *l, const struct sim_options *o, struct weir_err *err);
