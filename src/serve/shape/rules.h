/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules: the matches of a policy's services as tables for the classifier in the kernel (serve/shape/bpf.h).
 *
 * METHOD  Rules are sorted, the most specific first. For each field every value has the number of a set: the rules that fit
 *         it, or do not state it. A packet's service is the owner of the first rule in all five of its sets. Sets of
 *         cgroups and interfaces are added as these appear.
 * COST    A packet takes 5 lookups and at most one pass over 5·n/64 words, for n rules.
 *
 * Makes no system call.
 */
#pragma once

#include "policy/policy.h"
#include "serve/shape/bpf.h"

struct rules_block { /* a prefix of addresses, IPv4 as ::ffff:0:0/96 */
	uint8_t address[16];
	unsigned bits;
	uint32_t set;
};

struct rules {
	const struct policy_net_match **match; /* by rule */
	uint16_t *owner;                       /* node by rule */
	size_t n;
	struct shape_set *sets;
	size_t n_sets, room; /* `room`: allocated */
	uint32_t any[SHAPE_FIELDS];
	uint16_t port[65536], dscp[64]; /* sets */
	struct rules_block *blocks;
	size_t n_blocks;
	bool cgroups, interfaces; /* some rule has one */
	bool *seen;               /* by rule: a cgroup or an interface that exists fits it */
};

/* node: by tenant, the number of its service; 0: it has none. All are borrowed. 0 or -ENOMEM. */
int rules_new(const struct weir_policy *p, const uint16_t *node, struct rules **ret);
void rules_free(struct rules *r);

/* The set of the cgroup `path` (relative to the root, without a slash in front) inside a cgroup with the set `above`, or of
 * an interface. Return `above`, or any[SHAPE_INTERFACE], if no rule names it; -ENOMEM. */
int rules_cgroup(struct rules *r, uint32_t above, const char *path);
int rules_interface(struct rules *r, const char *name);

struct rules_packet {
	uint32_t cgroup, interface; /* sets */
	uint16_t port;
	uint8_t address[16];
	uint8_t dscp;
};
/* Return the node that the classifier finds for a packet; 0: none. For tests, and to explain. */
uint16_t rules_find(const struct rules *r, const struct rules_packet *p);
