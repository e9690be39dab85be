/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: a device under the shaper: taken over, changed, and given back as it was.
 *
 * STATE  Before anything is changed, what will be changed is written to a file, FOLDER/NETNS/NAME.json: the root qdisc, the size
 *        of segments, and whether there was a clsact qdisc. device_restore needs the file only for these; it finds the
 *        shaper's own qdisc and programs by their numbers, so that a lost file leaves nothing of the shaper behind.
 *        A device that has the shaper's qdisc already is taken over as it is: no packet in its queues is lost.
 * GUARD  A root qdisc that is neither the kernel's default nor the shaper's own is refused without `replace`, and other
 *        programs on the device without `beside`.
 */
#pragma once

#include "serve/shape/program.h"
#include "serve/shape/tree.h"

struct device_guard {
	bool replace, beside;
};

/* A folder of this network namespace for the files of state, made if it is missing; with a lock that is held until the
 * process ends. -EBUSY with a message: another shaper holds it. */
struct device_state {
	char folder[256];
	int lock;
};
int device_state_open(const char *folder, struct device_state *ret, struct weir_err *err);
void device_state_close(struct device_state *s);
/* A number of this network namespace. */
uint64_t device_namespace(void);

struct device {
	const char *name;
	double rate;      /* bytes/s, each way */
	bool open;        /* as tree_link */
	double part;      /* of the rates of all devices */
	size_t index;     /* in the policy's network */
	uint32_t *quanta; /* of runtime classes, by node; owned; NULL before it is taken */
	double *caps;     /* the same: caps of brokers, bytes/s of all devices; INFINITY: none */
	struct tc_link link;
	struct device_class {
		bool made, limited; /* it is there; it has a queue of the shaper's */
		bool inner;         /* there are classes in it: at the last device_look */
		bool wanted;        /* of the tree in force */
		uint16_t first;     /* as tc_class_state */
		uint16_t above;     /* minor number of the class that it is in */
		uint32_t queued;    /* packets: at the last device_look */
	} * classes;                /* by minor number; owned; NULL before device_look */
	bool lost;                  /* the device is gone, or another program has its root */
	unsigned retiring;          /* calls of device_retire that are due, at least */
};

/* Find what `device_take` would refuse. 0; -EBUSY with a message that names it. */
int device_check(
	struct tc *t, const struct tc_link *l, const struct device_guard *g, struct weir_err *err);
/* Read the device and its classes. d->name is set. */
int device_look(struct device *d, struct tc *t, struct weir_err *err);
/* For tree_slots: of a device that was looked at. */
enum tree_slot device_slot(
	const struct device *d, uint16_t slot, uint16_t above, const struct tree_node *n);
/* Make HTB the device's root, with classes for all services; then let the program choose among them. d->name, rate and part
 * are set. Classes of other services than these stay until device_retire. On error the device is as it was. */
int device_take(struct device *d, struct tc *t, const struct tree *tree, struct program *p,
	const struct device_state *s, const struct device_guard *g, struct weir_err *err);
/* Make the runtime classes follow shares and caps, bytes/s by node, where they differ by more than DEVICE_BAND. many: as tree_quanta. */
#define DEVICE_BAND 0.02
int device_share(struct device *d, struct tc *t, const struct tree *tree, const double *share,
	const uint32_t *many, const double *caps, struct weir_err *err);
/* Make or change the class of a destination of a node. resize: its queue, too, without losing a packet. */
int device_leaf(struct device *d, struct tc *t, const struct tree *tree, size_t node,
	uint16_t minor, double rate, bool resize, struct weir_err *err);
/* Delete it, if it is there. Packets in its queue are lost. */
int device_leaf_gone(struct device *d, struct tc *t, uint16_t minor);
/* Delete classes that are not wanted and have no packets; call it each few ms while d->retiring. The first call does nothing: packets
 * may be on the way to such a class. */
int device_retire(struct device *d, struct tc *t, struct weir_err *err);
void device_free(struct device *d);
/* Return true if the device's root is the shaper's. */
bool device_held(struct tc *t, const struct tc_link *l);

/* The programs at a device. */
struct device_others {
	char name[80]; /* of the first one that is not the shaper's; "": there is none */
	bool ours;     /* one of the shaper's is there */
};
int device_others(
	struct tc *t, const struct tc_link *l, struct device_others *ret, struct weir_err *err);
/* Give back one device, if it has anything of the shaper's. */
int device_give_back(struct tc *t, const struct device_state *s, const struct tc_link *l,
	bool *ret_ours, struct weir_err *err);
/* Give back all devices of this network namespace, with or without files of state. *ret_n: how many were the shaper's. The
 * first error counts; the others are tried. */
int device_restore(
	struct tc *t, const struct device_state *s, unsigned *ret_n, struct weir_err *err);
