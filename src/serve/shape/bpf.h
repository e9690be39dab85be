/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf: what the programs in the kernel (shape.bpf.c) and the shaper share.
 *
 * Each of the five fields of a match divides all packets into sets by the rules that the field fits; a packet's rules are
 * those in all five. Rules are in order, the most specific one first.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#endif

#define SHAPE_RULES 4096 /* as POLICY_NET_MATCHES */
#define SHAPE_WORDS (SHAPE_RULES / 64)
#define SHAPE_NODES 4000 /* services and their parents; number 0 is of packets without a service */
#define SHAPE_SLOTS                                                                                \
	4096 /* numbers of classes of nodes; more, so that those that are emptied need not be used again */

enum shape_field {
	SHAPE_CGROUP,
	SHAPE_INTERFACE,
	SHAPE_PORT,
	SHAPE_ADDRESS,
	SHAPE_DSCP,
	SHAPE_FIELDS
};
enum shape_dir { SHAPE_IN, SHAPE_OUT, SHAPE_DIRS }; /* as enum policy_net_dir */

struct shape_set { /* of rules; its number is that of the element of the map `sets` */
	uint64_t bits[SHAPE_WORDS];
};

#define SHAPE_INTERFACES 4096 /* sets of interfaces, as a mark has them; number 0 is of no rule */

/* Minor numbers of classes of HTB: these and a node's slot. */
#define SHAPE_MAJOR    0x5ee00000u
#define SHAPE_DIRECT   0      /* packets that are never shaped */
#define SHAPE_LINK     0x0001 /* all others */
#define SHAPE_RUNTIME  0x1000 /* a node with its runtime cap */
#define SHAPE_DEFAULT  0x2000 /* in it, packets to destinations without a leaf of their own */
#define SHAPE_STATIC   0x3000 /* a node with its static limits */
#define SHAPE_LEAF     0x4000 /* in a node's runtime class, packets to one destination: up to 0xffff */
#define SHAPE_LEAF_END 0xffff

#define SHAPE_STALE  5000000000ull /* ns since the last beat after which classes are static */
#define SHAPE_SAMPLE 10000         /* bytes between two samples, as PARLEY_SAMPLE */
#define SHAPE_FLOWS  16384         /* of heavy ones that the sender's classifier remembers */

/* The upper half of a packet's mark; the lower half is left alone. */
#define SHAPE_MARK_TAG(tag) ((uint32_t)(tag) << 29) /* 1 … 7, of the network namespace */
#define SHAPE_MARK_IN       (1u << 28)              /* counted at the device as of the node … */
#define SHAPE_MARK_AT       16 /* … whose number is here; else: that of its set of interfaces */

struct shape_config {
	uint32_t words;             /* of the sets that are used */
	uint32_t any[SHAPE_FIELDS]; /* the set of packets of which the field is not known */
	uint32_t tag;
	uint32_t cgroups;    /* some rule has a cgroup … */
	uint32_t interfaces; /* … or an interface */
	uint32_t header;     /* bytes before the network's header */
	uint32_t nodes;
	uint16_t tcp, udp,
		fabric; /* ports of either side that are not shaped; 0: none; fabric: of TCP, too */
};

struct shape_count { /* of a node in a direction, at one processor; sums are modulo 2^64 */
	uint64_t bytes, packets, marked, sampled;
};
/* Its place in the map `counts`, which the shaper has in its memory. */
#define SHAPE_COUNT(nodes, processor, node, dir)                                                   \
	((((uint64_t)(processor) * (nodes)) + (node)) * SHAPE_DIRS + (dir))

struct shape_flow {            /* as the machine that sends it names it */
	uint8_t address[16];   /* of its destination; IPv4 as ::ffff:a.b.c.d */
	uint16_t mine, theirs; /* ports; 0: none */
	uint8_t protocol, dscp;
	uint16_t unused; /* 0 */
};
struct shape_sample { /* a packet that arrived */
	uint32_t node;
	uint8_t from[16];
	struct shape_flow flow; /* for the machine that sent it */
};

struct shape_to { /* a destination of a node */
	uint32_t node;
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
};
struct shape_leaf {
	uint64_t until; /* ns of the kernel's monotonic clock; then the leaf is dead */
	uint32_t minor, unused;
};
struct shape_block { /* of addresses, for a trie */
	uint32_t bits;
	uint8_t address[16];
};
