/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network: machines in racks, their links, and flows of services under Parley.
 *
 * A scenario with `network:` instead of devices and hosts is run here. The meters, limiters and brokers
 * are those of src/control/parley, the shares those of a policy; simulated are the links, the flows and
 * the messages.
 *
 * METHOD  Store and forward by segments. A link is a FIFO of a fixed rate, so that a segment's departure
 *         is known when it arrives: backlog is (free − now)·rate, and each hop is one event. Backlog over
 *         `mark` marks the segment, over `buffer` drops it. An acknowledgement takes the way back without
 *         queueing, and carries the receiver's feedback, which may be lost apart.
 *         tcp and rpc: a window that grows by one segment for each acknowledged one in slow start, else by
 *         one a round trip; halved at most once a window for loss; a loss with fewer than four segments
 *         in flight is a time-out. A limited sender's segments wait in its limiter and count as in
 *         flight, as in Linux. udp sends at a rate, whatever arrives.
 *
 *   network.c  time and events
 *   path.c     segments, limiters, links
 *   flow.c     what flows send
 *   control.c  meters, machine, rack and fabric brokers, and their failures
 *   report.c   series and values
 *   read.c     the scenario's map
 */
#pragma once

#include "base/heap.h"
#include "base/rng.h"
#include "base/yamldoc.h"
#include "control/parley/broker.h"
#include "control/parley/machine.h"
#include "policy/policy.h"
#include "sim/metrics.h"
#include "sim/sim.h"
#include <weir/hist.h>

#define NET_NAME 64
#define NET_HOPS 4
#define NET_NONE UINT32_MAX

struct net_rack {
	char name[NET_NAME];
	uint32_t machines;
	double rate, up, down; /* bytes/s: of a machine, of the rack; INFINITY: never full */
	double limit;          /* the broker's capacity, each way; INFINITY: the links' */
	uint32_t first;        /* machine */
};

enum net_kind { NET_TCP, NET_UDP, NET_RPC };
enum net_arrivals { NET_EVEN, NET_UNIFORM, NET_POISSON };

struct net_group { /* flows of one kind between the same machines */
	char name[NET_NAME], tenant[NET_NAME], from[NET_NAME], to[NET_NAME];
	int kind, arrivals, sizes; /* enum net_kind, net_arrivals; sizes: 1: exponential */
	uint32_t many;             /* flows of each pair of machines */
	uint32_t batch;            /* rpc: so many begin at once */
	uint32_t window;           /* segments at first */
	uint64_t size;             /* rpc */
	double weight;             /* of its senders: they take so many times what they are told */
	double rate;               /* udp: of each flow; rpc: of all together; bytes/s */
	weir_time start, end, on, off;
	bool wander; /* udp: another destination at each start of `on` */
	/* resolved: */
	uint32_t service, from_first, from_many, to_first, to_many;
};

struct net_change {
	weir_time at;
	uint32_t service;
	double max; /* the fabric's, of what goes out */
};

enum net_fault { NET_FAULT_RACK, NET_FAULT_FABRIC };
struct net_failure {
	int what;          /* enum net_fault */
	uint32_t machines; /* the first of each rack; rack brokers only */
	weir_time from, to;
};

struct sim_network_config { /* weir-scenario(5), "network" */
	uint64_t segment, buffer, mark;
	weir_time delay, period, sample, settle, timeout, message_delay;
	double loss;                 /* of feedback and of brokers' messages */
	double live_rate, live_time; /* live, rates are divided and times multiplied by these */
	double widest;               /* most segments of a window */
	bool adapt;                  /* a slow service's period is longer */
	bool feedback, ecn, rack, fabric, forget;
	bool watch;     /* queues: their lengths are sampled */
	uint32_t split; /* rates of single flows are reported for groups of up to so many */
	struct net_rack *racks;
	struct net_group *groups;
	struct net_change *changes;
	struct net_failure *failures;
	size_t n_racks, n_groups, n_changes, n_failures;
	uint32_t n_machines;
	struct weir_policy *policy; /* owned */
};

int sim_network_read(yamldoc_node map, struct sim_network_config *ret, struct weir_err *err);
void sim_network_config_free(struct sim_network_config *c);
int sim_network_run(const struct sim_network_config *config, weir_time duration, uint64_t seed,
	const struct sim_options *options, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err);

/* ---- for its own files */

struct net_segment {
	uint32_t flow, message, bytes, next;
	uint64_t number; /* of the flow's segments */
	float told;      /* R, with its acknowledgement; 0: none */
	uint8_t stage;   /* 0: leaf, 1: root, 2 …: links */
	bool marked;
};

struct net_queue { /* of a limiter */
	uint32_t first, last;
	uint64_t bytes;
};

struct net_limiter {
	struct parley_limiter law;
	struct net_queue queue;
	weir_time armed, heard; /* armed: 0: not; heard: last feedback */
};

struct net_link {
	double rate, free; /* bytes/s; ns */
	uint64_t buffer, mark;
	uint64_t bytes, drops, marks;
	uint64_t *lengths; /* samples by packets waiting; NULL: not watched */
	const char *way;
	uint32_t of; /* rack or machine */
	bool of_rack;
};
#define NET_LENGTHS 4096 /* packets; more count as so many */

struct net_message {
	weir_time begun;
	uint64_t unsent, missing;
	uint32_t next;
};

struct net_flow {
	uint32_t group, from, to, leaf;
	uint32_t links[NET_HOPS];
	uint8_t n_links;
	double window, threshold;
	uint32_t flying;
	struct net_queue lost;  /* to be sent again */
	uint64_t sent, recover; /* numbers of segments */
	uint64_t got;           /* bytes */
	uint32_t first, last;   /* messages */
	bool on;
};

struct net_service { /* of one machine */
	struct parley_meter meter;
	struct net_limiter root;
	struct parley_cap cap[POLICY_NET_DIRS];
	double share[POLICY_NET_DIRS]; /* by the machine's own division */
	uint64_t bytes[POLICY_NET_DIRS], at_share[POLICY_NET_DIRS], at_rack[POLICY_NET_DIRS],
		at_sample;
};

struct net_machine {
	uint32_t rack;
	struct net_service *services;
	struct parley_broker *own[POLICY_NET_DIRS];    /* of its link */
	struct parley_broker *broker[POLICY_NET_DIRS]; /* of its rack */
	double *usage;     /* [dir · services + service], of the last second */
	double *of_fabric; /* likewise: Σ of the rack since the last report to the fabric */
};

enum net_event {
	NET_SEGMENT,
	NET_ACK,
	NET_LOST,
	NET_LIMITER, /* leaf; then: root of machine · services + service */
	NET_ROOT,
	NET_GROUP, /* an rpc begins */
	NET_FLOW,  /* udp: the next segment */
	NET_TURN,  /* a flow starts or ends; on or off */
	NET_METERS,
	NET_SHARES,
	NET_REPORT, /* rack */
	NET_DIVIDE,
	NET_FABRIC,
	NET_SAMPLE,
	NET_WATCH,
	NET_CHANGE
};

struct sim_network {
	const struct sim_network_config *config;
	weir_time now, duration;
	struct heap events;
	uint64_t serial, popped;
	uint32_t n_services, n_machines, n_links;
	struct net_machine *machines;
	struct net_link *links; /* machine out, in; rack up, down */
	struct net_limiter *leaves;
	size_t n_leaves, room_leaves;
	struct net_flow *flows;
	size_t n_flows, room_flows;
	uint32_t *first_flow; /* of each group; [n_groups]: the end */
	uint64_t *begun;      /* rpcs of each group */
	struct net_segment *segments;
	size_t n_segments, room_segments;
	uint32_t free_segment;
	struct net_message *messages;
	size_t n_messages, room_messages;
	uint32_t free_message;
	struct parley_broker *fabric[POLICY_NET_DIRS];
	double *fabric_cap;      /* [(rack · dirs + dir) · services + service] */
	weir_time *fabric_until; /* by rack */
	double *scratch;         /* by service */
	struct rng *rngs, rng;   /* of groups; of messages */
	int failed;              /* sticky */

	struct metrics *metrics;
	struct weir_hist *times; /* of rpcs, by group */
	uint64_t *got;           /* bytes of each group since the last sample */
	uint64_t *flow_got;      /* of each flow, at the last sample */
	int *series;             /* by service in; group; link use */
	double *last;            /* by service */
	uint64_t lost_messages;
};

void net_push(struct sim_network *n, weir_time at, enum net_event kind, uint64_t value);
static inline struct net_service *net_service(
	const struct sim_network *n, uint32_t machine, uint32_t service)
{
	return &n->machines[machine].services[service];
}

/* path.c */
int net_path_begin(struct sim_network *n);
void net_path_end(struct sim_network *n);
void net_path_route(const struct sim_network *n, uint32_t from, uint32_t to, struct net_flow *f);
uint32_t net_segment_new(struct sim_network *n); /* NET_NONE: no memory */
void net_segment_free(struct sim_network *n, uint32_t s);
void net_queue_put(struct sim_network *n, struct net_queue *q, uint32_t s);
uint32_t net_queue_get(struct sim_network *n, struct net_queue *q);
void net_path_send(
	struct sim_network *n, uint32_t s); /* a new segment: through leaf, root, links */
void net_path_next(struct sim_network *n, uint32_t s); /* it arrived at the next link, or the end */
/* Return for how long a udp sender must wait for room in its limiters. */
weir_time net_path_blocked(const struct sim_network *n, const struct net_flow *f);
void net_path_leaf(struct sim_network *n, uint32_t leaf); /* a limiter's timer */
void net_path_root(struct sim_network *n, uint64_t root);
void net_limit(struct sim_network *n, struct net_limiter *l, enum net_event kind, uint64_t id,
	double rate); /* set its rate, wake it */

/* flow.c */
int net_flow_begin(struct sim_network *n);
void net_flow_end(struct sim_network *n);
void net_flow_turn(struct sim_network *n, uint32_t flow);
void net_flow_rpc(struct sim_network *n, uint32_t group);
void net_flow_udp(struct sim_network *n, uint32_t flow);
void net_flow_arrived(struct sim_network *n, uint32_t s);
void net_flow_acked(struct sim_network *n, uint32_t s);
void net_flow_lost(struct sim_network *n, uint32_t s); /* the sender notices */

/* control.c */
int net_control_begin(struct sim_network *n);
void net_control_end(struct sim_network *n);
float net_control_received(struct sim_network *n, uint32_t s); /* R to tell; 0: nothing */
void net_control_told(struct sim_network *n, uint32_t flow, double rate);
void net_control_meters(struct sim_network *n, uint32_t machine);
void net_control_shares(struct sim_network *n);
void net_control_report(struct sim_network *n);
void net_control_divide(struct sim_network *n);
void net_control_fabric(struct sim_network *n);
void net_control_change(struct sim_network *n, uint32_t change);

/* report.c */
int net_report_begin(struct sim_network *n);
void net_report_sample(struct sim_network *n);
void net_report_watch(struct sim_network *n);
int net_report_end(struct sim_network *n);
void net_report_free(struct sim_network *n);
