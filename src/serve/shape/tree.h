/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree: the services of a policy, and the classes of HTB that keep their shares of what a device sends.
 *
 * LAW     Each service has two classes in the link's, with its max as their ceil. All borrow from the link's class, which
 *         divides what it has among the leaves that have packets by their quanta.
 *         Static: quanta are as the shares x of control/parley/waterfill.h if all services had packets without end. Of those
 *         that have packets each gets at least x·C/Σ x ≥ x, which is at least its min.
 *         Runtime: quanta are as the shares by the demand of now, so that weights hold, whatever is idle; and the ceil is at
 *         most the caps of brokers. A service without packets has its static quantum: it gets about its share from its
 *         first packet on. Inside is a class for all destinations, and one for each that has a limit of its own; those with
 *         packets divide the service's quantum.
 *         Packets of no service have a class with weight 1.
 * DIFFERS Parley sets rate = ceil = the runtime share. Then services may send more than the link has until the next
 *         division, and what one leaves is lost to the others until then. HTB's own guarantee (rate = min) is not used: a class
 *         that has it loses its turn in the division of the rest (measured: 50 of 60 where min and weight ask for 60).
 *
 *         A link whose rate is the driver's word has no ceiling: HTB would add nothing where the device itself is full, since packets
 *         then wait in the classes, and take much where the word is none, as that of a veth pair (10 Gbit/s; it carries what the processor
 *         does). A ceiling there needs a stated rate, or a bound on completion times, which is a cap on the load.
 * NUMBERS HTB can neither move a class into another one nor make one that has a queue hold classes, and a class that is deleted
 *         loses its packets. So a service keeps the number of its classes when the policy changes, and one that has another
 *         parent than before gets a number that no class has.
 *
 * Makes no system call.
 */
#pragma once

#include "policy/policy.h"
#include "serve/shape/bpf.h"
#include "serve/shape/tc.h"

#define TREE_DEPTH 5 /* services in services; HTB has 8 levels */

struct tree_node {        /* a service, or a tenant that has services in it */
	const char *path; /* "" for node 0, packets of no service */
	size_t tenant;
	uint16_t parent; /* 0: none */
	uint16_t slot;   /* the number of its classes, below SHAPE_SLOTS; of node 0: 0 */
	unsigned depth;  /* 0: at the top */
	bool leaf;
	double weight;                          /* at this machine, for what it sends */
	uint8_t priority, n_buckets;            /* of a plan, at one device … */
	int planned;                            /* … whose index + 1 this is; 0: none */
	uint8_t mark;                           /* DSCP of its packets + 1; 0: as they are */
	const struct weir_bucket_spec *buckets; /* bytes; borrowed */
	double min, max; /* the same, bytes/s; min: at least its children's */
	uint64_t burst;  /* bytes; 0: not stated */
};

struct tree {
	struct tree_node *nodes; /* parents first; node 0 is of packets without a service */
	size_t n;
	uint16_t *of;                  /* by tenant: its node, 0: none; of leaves only */
	double load;                   /* of the link, at most: the bounds of completion times */
	bool planned;                  /* a plan has some: all others have the lowest priority */
	uint16_t by_slot[SHAPE_SLOTS]; /* its node, 0: none */
};

/* The policy has a `network`, and is borrowed. 0, -ENOMEM, or -EINVAL with a message: too many or too deep services. */
int tree_new(const struct weir_policy *p, struct tree **ret, struct weir_err *err);
void tree_free(struct tree *t);

/* Choose the slots; without a call they are as the nodes' numbers. before: the tree in force, NULL: none. state: of a slot on the
 * devices, for this node in the slot `above` (0: the link). Slots that move would lose packets, and are the last choice. */
enum tree_slot { TREE_FREE, TREE_FITS, TREE_MOVES };
typedef enum tree_slot tree_slot_state(
	void *arg, uint16_t slot, uint16_t above, const struct tree_node *n);
void tree_slots(struct tree *t, const struct tree *before, tree_slot_state *state, void *arg);

struct tree_link {
	double rate; /* bytes/s */
	bool open; /* the rate is the driver's word, and the device itself keeps to it: no class does */
	double part; /* of the rates of all devices: so much of each min and max is this one's */
	uint32_t segment; /* bytes of the largest packet */
	size_t index;     /* of the device */
};

/* Priorities of HTB that a plan has; then comes that of all others. */
#define TREE_PRIORITIES 7
#define TREE_BUCKETS    4 /* of a service */
/* The buckets of a node at a device; 0: it has none there. */
unsigned tree_node_buckets(const struct tree_node *n, size_t device);
/* Divide a capacity, bytes/s, by the demands of leaves, or, with NULL, as if all were endless. ret: by node. 0 or -ENOMEM. */
int tree_shares(const struct tree *t, double capacity, const double *demand, double *ret);
/* Turn the shares of leaves into the quanta of their classes, bytes: of at least one segment each, and at most TREE_QUANTUM. HTB gives
 * each class for a destination a quantum of its own in a turn, so that those with packets, `many` by node, divide the service's;
 * NULL: one each. ret: by node. */
#define TREE_QUANTUM 256
void tree_quanta(const struct tree *t, uint32_t segment, const double *share, const uint32_t *many,
	uint32_t *ret);
/* The largest segment, in packets, that takes at most 100 µs at the slowest max, or the link's rate. */
uint32_t tree_segments(const struct tree *t, double rate, unsigned mtu);
/* Bytes that the queue of a class may hold: 100 ms at its ceil, within bounds. */
uint32_t tree_queue(double ceil);

/* Fill in the class of the link, and those of a node but for the quantum: its runtime class (cap: bytes/s, INFINITY: none), the
 * one in it for all destinations, one for a single destination, or its static class. A node with children has no class for destinations. */
void tree_link_class(const struct tree *t, const struct tree_link *l, struct tc_class *ret);
void tree_runtime_class(const struct tree *t, const struct tree_link *l, size_t node, double cap,
	struct tc_class *ret);
void tree_default_class(const struct tree *t, const struct tree_link *l, size_t node, double cap,
	struct tc_class *ret);
/* rate: bytes/s, its ceil. */
void tree_leaf_class(const struct tree *t, const struct tree_link *l, size_t node, uint16_t minor,
	double rate, struct tc_class *ret);
void tree_static_class(
	const struct tree *t, const struct tree_link *l, size_t node, struct tc_class *ret);
