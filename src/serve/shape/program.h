/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program: the classifier in the kernel (shape.bpf.c) of one version of the policy: its maps, and where it is attached.
 *
 * The kernel holds a program that is attached to a device after this process has ended, and then gives every packet a static
 * class. Programs at cgroups end with the process. A version replaces the one before at a device without a gap.
 */
#pragma once

#include "serve/shape/rules.h"
#include "serve/shape/tree.h"
#include <weir/err.h>

struct program_config {
	const struct rules *rules;
	size_t nodes;              /* of the tree */
	unsigned tag;              /* 1 … 7, of marks */
	unsigned header;           /* bytes before the network's header, of all devices */
	uint16_t tcp, udp, fabric; /* ports that are not shaped; 0: none; fabric: of TCP, too */
};

struct program;
/* Load the programs and fill the maps. 0, or a negative errno and a message: -EPERM, … */
int program_new(const struct program_config *c, struct program **ret, struct weir_err *err);
/* Use these slots and marks of the tree; before it is attached. */
void program_slots(struct program *p, const struct tree *t);
/* What is attached to a device stays. */
void program_free(struct program *p);

/* Classify and count at a device from now on. */
int program_attach(struct program *p, int index, struct weir_err *err);
/* Take the programs of any version off a device; with `clsact`, the clsact qdisc, too. */
int program_detach(int index, bool clsact, struct weir_err *err);
/* The priority at which the programs are attached. */
#define PROGRAM_PRIORITY 24288

/* Tell the classifier that the shaper is alive at `now`, of CLOCK_MONOTONIC; 0: it is not. */
void program_beat(struct program *p, uint64_t now);
/* Mark what comes from a device, and move what goes into it, as of the set with this number: below SHAPE_INTERFACES, 0 is of no
 * rule. Attached programs stay when this process ends. */
void program_interface_set(struct program *p, unsigned number, uint32_t set);
int program_interface(struct program *p, int index, uint32_t number);
void program_interface_gone(struct program *p, int index);
int program_attach_interface(struct program *p, int index, struct weir_err *err);
/* Add a set that came after program_new. */
int program_set(struct program *p, uint32_t number, const struct shape_set *s);
int program_cgroup(struct program *p, uint64_t id, uint32_t set);
void program_cgroup_gone(struct program *p, uint64_t id);
/* Count what arrives at sockets in a cgroup and below it, until program_leave_cgroup. */
struct bpf_link;
int program_enter_cgroup(struct program *p, int fd, struct bpf_link **ret);
void program_leave_cgroup(struct bpf_link *l);
/* Get a node's counters in a direction. No system call. */
struct shape_count program_count(const struct program *p, size_t node, enum shape_dir dir);
/* Give all samples of what arrived since the last call to `each`. */
void program_samples(
	struct program *p, void (*each)(void *arg, const struct shape_sample *s), void *arg);
/* Find the node of a heavy flow that goes out, if only the classifier could tell it. 0, or -ENOENT. */
int program_flow(const struct program *p, const struct shape_flow *f, uint32_t *ret);
/* Send a node's packets to an address through a leaf's class, until its time; or no longer. */
int program_leaf(struct program *p, const struct shape_to *to, const struct shape_leaf *l);
void program_leaf_gone(struct program *p, const struct shape_to *to);
/* Run the program of a direction on a packet, from its Ethernet header on, so many times. *ret_ns: the mean. For benchmarks. */
int program_measure(struct program *p, enum shape_dir dir, const void *packet, size_t n, int times,
	double *ret_ns);
