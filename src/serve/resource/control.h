/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controllers at a resource (control/controller.h), and the resource as their site.
 *
 * A resource has one controller at a time. The instance of a controller that was switched off
 * rests, and continues when it is switched on again. All on the resource's thread.
 */
#pragma once

#include "control/controller.h"
#include "policy/policy.h"
#include "serve/loop/loop.h"

struct resource;
struct snapshot;
struct snapshot_resource;

/* Take a message for the cluster's controllers, malloc'ed and owned by the callee. Returns at
 * once. */
typedef void resource_control_post(void *arg, uint8_t *message, size_t len);

/* Takes a report for the peers. Returns at once. */
typedef void resource_control_publish(void *arg, const struct peer_report *report, bool at_once);

struct resource_peers {          /* of a host whose controllers have peers; all 0: it has none */
	uint64_t host, instance; /* controller_peers */
	weir_time period;        /* between two steps … */
	weir_time first;         /* … of which one is at this time */
	resource_control_publish *publish;
	void *arg;
};

struct resource_control { /* an instance */
	struct site site;
	struct resource *resource;
	const struct controller *kind;
	void *instance; /* NULL: the kind has no instances */
	struct loop_timer timer;
	struct loop_turn turn; /* steps when a request comes, while the controller sleeps */
	bool turning;          /* `turn` is added */
	uint64_t activity;     /* of the resource, at the last turn */
	void *report;          /* of a peer: room for one, if the kind has reports */
};

/* Return the instance of a kind; NULL: the kind was never on, or has no instances. */
void *resource_control_instance(const struct resource *r, const struct controller *kind);
/* Make a resting instance of a kind, unless there is one. 0 or -ENOMEM. */
int resource_control_make(struct resource *r, const struct controller *kind);
void resource_control_free(struct resource *r);

/* The parts of a swap (serve/resource/policy.c). Each does nothing if the kind has no such
 * function. */
int resource_control_prepare(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t from, size_t to);
void resource_control_take(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i, weir_node node);
void resource_control_leave(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i);
void resource_control_rule(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i);
/* The swap is done: end r->control, unless it stays, and begin `next`. */
void resource_control_switch(
	struct resource *r, const struct controller *next, const struct controller_version *v);

/* Give news to the controller in force, if it hears any. */
void resource_control_hear(struct resource *r, const struct controller_news *news);
/* Set where messages go from now on; NULL: nowhere. */
void resource_control_connect(struct resource *r, resource_control_post *post, void *arg);

/* Before the first policy, and when the host's messages end: NULL. */
void resource_control_peers(struct resource *r, const struct resource_peers *p);
/* A message of a peer, for the controller in force: its reports for this resource, or that the peer leaves. */
void resource_control_receive(struct resource *r, const struct peer_message *m);
/* The name of a resource among peers, as peer_hash; 0: the resource's controller has none. */
uint64_t resource_control_topic(const struct weir_resource *spec);

/* Add the facts of the controller in force to a snapshot. */
void resource_control_look(struct resource *r, struct snapshot *s, struct snapshot_resource *to);

/* ---- state that is kept across a restart, of the controller that has some */

/* Get the facts that a restart needs. -ENOENT: the controller was never on here; -ENOMEM. */
int resource_control_facts(struct resource *r, struct arena *memory, struct facts *ret);
uint64_t resource_control_steps(const struct resource *r); /* 0: it was never on */
/* Continue from facts of some time ago; see controller.restore. */
int resource_control_restore(struct resource *r, const struct facts *from, weir_time ago);
