/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: shares of links: the policy's `network` and a tenant's `net`.
 *
 * A tenant with `net`, or with a match of packets, is a service. Its shares are stated apart for the
 * machine, the rack and the fabric, and for what comes in and what goes out; the most constrained one
 * holds. Gates do not use them: links are shaped by a shaper of the machine.
 *
 * LAW     At each level and in each direction the mins of the top services fit into the capacity, and a
 *         parent's min, if it has one, holds its children's. A `bound` on completion times of a link
 *         is a cap on its load (control/parley/delay.h), into which the mins must fit, too.
 *         A packet belongs to the service of the most specific match: more fields; else, in the first
 *         of cgroup, interface, port, address and dscp in which two differ, the narrower one. Two
 *         services may not tie over a packet.
 */
#pragma once

#include <weir/err.h>
#include <stddef.h>
#include <stdint.h>

enum policy_net_level { POLICY_NET_MACHINE, POLICY_NET_RACK, POLICY_NET_FABRIC, POLICY_NET_LEVELS };
enum policy_net_dir { POLICY_NET_IN, POLICY_NET_OUT, POLICY_NET_DIRS };

struct policy_net_share {
	double min, max, weight; /* bytes/s; 0: no guarantee; INFINITY: no limit */
	uint64_t bound_size;     /* messages of so many bytes end … */
	weir_time bound_time;    /* … within this time; 0: none stated */
	struct weir_place at;
};

struct policy_net_match {                         /* fields that are set must all match */
	const char *address, *cgroup, *interface; /* a block; patterns; NULL: any */
	uint16_t port, port_last;                 /* of this machine's side; 0: any */
	int dscp;                                 /* 0 … 63; -1: any */
	struct weir_place at;
};
#define POLICY_NET_MATCHES 4096 /* of one machine: they are compared pairwise */
/* Rank a match: the number of its fields; then each of cgroup, interface, port, address and dscp, 0: any, the narrower the
 * higher. Of two matches the one that is higher in the first of these in which they differ is the more specific one. */
#define POLICY_NET_RANK 6
void policy_net_rank(const struct policy_net_match *m, int ret[POLICY_NET_RANK]);

struct policy_net { /* of a tenant */
	struct policy_net_share share[POLICY_NET_LEVELS][POLICY_NET_DIRS];
	uint64_t burst; /* bytes that a limited service may send at once; 0: not stated */
	const struct policy_net_match *match;
	unsigned n_match;
	struct weir_place at;
};

struct policy_device {
	const char *name;
	double rate; /* bytes/s, each way; 0: what its driver states */
	struct weir_place at;
};

struct policy_network { /* of the top level */
	struct policy_device *devices;
	size_t n_devices;
	const char *machine;              /* name; NULL: the host's */
	const char *rack, *rack_key;      /* NULL: no rack is stated */
	double capacity[POLICY_NET_DIRS]; /* of the rack: down, up */
	double nic; /* bytes/s that a machine of the rack carries at most; 0: what this one does */
	const char **machines; /* addresses of those of the rack */
	size_t n_machines;
	const char *fabric;      /* the broker's address; NULL: none */
	const char *fabric_key;  /* NULL: that of the rack */
	weir_time fabric_period; /* between its divisions; 0: not stated */
	weir_time period;        /* of the meters of what arrives; 0: by the devices' rates */
	struct weir_place at, rack_at;
};

struct weir_policy;
/* Return the index of a device of `network`, or a negative number. */
int policy_net_device(const struct weir_policy *p, const char *name);
/* Return the capacity of a level in a direction, bytes/s; INFINITY: it has none, or it is not known. */
double policy_net_capacity(
	const struct policy_network *n, enum policy_net_level level, enum policy_net_dir dir);
/* Describe a tenant for a broker of a level (control/parley/broker.h), with its shares of the level below as those of a member. */
struct parley_service;
void policy_net_service(const struct weir_policy *p, size_t tenant, enum policy_net_level level,
	enum policy_net_dir dir, struct parley_service *ret);
/* Return what a share's bound leaves of a capacity, bytes/s; not above 0: no load is low enough. */
double policy_net_bounded(const struct policy_net_share *s, double capacity);
