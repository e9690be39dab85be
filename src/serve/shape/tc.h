/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tc: the kernel's traffic control of one network namespace, by netlink (linux/pkt_sched.h).
 *
 * All functions return 0 or a negative errno with a message, which names what the kernel refused. They need CAP_NET_ADMIN.
 */
#pragma once

#include <weir/err.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TC_KIND    16  /* bytes of the name of a kind of queue */
#define TC_OPTIONS 512 /* bytes of options of a queue that can be put back */

struct mnl_socket;
struct tc {
	struct mnl_socket *socket;
	uint32_t seq;
};
int tc_open(struct tc *t, struct weir_err *err);
void tc_close(struct tc *t);

struct tc_link {
	int index;
	char name[IFNAMSIZ];
	unsigned mtu;      /* bytes */
	uint32_t segments; /* of one packet that the stack hands to the device, at most */
	unsigned header;   /* bytes before the network's header */
};
/* Read a device; -ENODEV. */
int tc_link(struct tc *t, const char *name, struct tc_link *ret, struct weir_err *err);
struct tc_link_list {
	struct tc_link *links; /* malloc'ed */
	size_t n, room;
	bool failed; /* for want of memory */
};
/* List all devices. After an error the list has those that were read; its owner frees them. */
int tc_links(struct tc *t, struct tc_link_list *ret, struct weir_err *err);
int tc_set_segments(struct tc *t, const struct tc_link *l, uint32_t segments, struct weir_err *err);
/* The rate that the driver states, bytes/s; 0: none. */
double tc_link_rate(const char *name);

struct tc_queue { /* a root qdisc */
	char kind[TC_KIND];
	uint32_t handle; /* 0: the kernel's default */
	bool classes;    /* it has some, which `options` do not hold */
	bool clsact;     /* the device has a clsact or an ingress qdisc besides */
	uint8_t options[TC_OPTIONS];
	size_t len; /* of options; larger than TC_OPTIONS: not kept */
};
int tc_root(struct tc *t, const struct tc_link *l, struct tc_queue *ret, struct weir_err *err);
/* Make HTB the root. -EEXIST: another root is there that is not the kernel's default, and `replace` is false. */
int tc_root_add(
	struct tc *t, const struct tc_link *l, uint32_t handle, bool replace, struct weir_err *err);
/* Put back what tc_root read. */
int tc_root_put(
	struct tc *t, const struct tc_link *l, const struct tc_queue *q, struct weir_err *err);
/* The kernel's default comes back. */
int tc_root_delete(struct tc *t, const struct tc_link *l, uint32_t handle, struct weir_err *err);

struct tc_class { /* of HTB */
	uint32_t id, parent;
	double rate, ceil;               /* bytes/s: what it is guaranteed, and what it may have */
	uint32_t rate_burst, ceil_burst; /* bytes */
	uint32_t quantum;  /* bytes: its part of what the parent's other classes leave */
	unsigned priority; /* 0 … 7: the lowest number has all that others may borrow first */
};
/* Make or change a class. */
int tc_class(struct tc *t, const struct tc_link *l, const struct tc_class *c, struct weir_err *err);
/* Packets in its queue are lost. */
int tc_class_delete(struct tc *t, const struct tc_link *l, uint32_t id, struct weir_err *err);
/* Limit the queue of a class to so many bytes. An older limit is changed, and no packet below the new one is lost. */
int tc_class_queue(
	struct tc *t, const struct tc_link *l, uint32_t id, uint32_t limit, struct weir_err *err);

/* Make HTB the queue of a class, with all of its packets in class 1. -EEXIST: it has one that was made. */
int tc_inner_add(
	struct tc *t, const struct tc_link *l, uint32_t id, uint32_t qdisc, struct weir_err *err);
struct weir_bucket_spec;
/* Limit a class by token buckets of bytes, each a qdisc with the major number `first` and those after it, and its queue to so many
 * bytes. Done again with as many buckets it changes them; packets are not lost. */
int tc_class_buckets(struct tc *t, const struct tc_link *l, uint32_t id, uint16_t first,
	const struct weir_bucket_spec *b, unsigned n, uint32_t segment, uint32_t limit,
	struct weir_err *err);

struct tc_class_state {
	uint32_t id, parent;
	bool limited;   /* tc_class_queue or tc_class_buckets was called … */
	uint16_t first; /* … with this major number plus the number of buckets - 1 */
	uint64_t bytes, packets, dropped;
	uint32_t queued; /* packets */
};
int tc_classes(struct tc *t, const struct tc_link *l,
	void (*each)(void *arg, const struct tc_class_state *c), void *arg, struct weir_err *err);

struct tc_filter { /* a program or another filter on what arrives at a device or leaves it */
	char kind[TC_KIND], name[64];
	uint32_t priority;
	bool out;
};
/* Also -ENOENT: there is no clsact or ingress qdisc. */
int tc_filters(struct tc *t, const struct tc_link *l,
	int (*each)(void *arg, const struct tc_filter *f), void *arg, struct weir_err *err);
