/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: the interface of a controller: its keys, its site, its life and its facts.
 *
 * KEYS   A resource of the policy names its controller and has the controller's settings, in a map
 *        of the controller's name (control/keys.h). Only the controller knows the type of its
 *        settings.
 *
 * SITE   A controller sees a gate, its tenants and time through a site: a resource of the gateway,
 *        or a device of the simulator. All calls of an instance come from one thread.
 *
 * LIFE   new; then for each version of the policy prepare … begin; then steps. A swap of the policy
 *        takes several calls, between which requests pass and the version in force continues:
 *          prepare   tenants from … to − 1: all steps that can fail, and their first rules
 *          (the gate gets the new nodes; then knobs of the tenants that stay are set, some at a
 *          time)
 *          take      from now on the tenant has the knobs, including the rule, of this version
 *          leave     it no longer has them: the controller changes, or a new tenant is undone
 *          begin     the swap is done
 *        When the resource gets another controller, the new one's prepare, take and begin come
 *        before the old one's leave and end: a request always has the rules of one of them. When a
 *        swap is undone, the version in force takes its tenants again. begin and end take little
 *        time however many tenants there are: they set no knobs. After end the instance rests,
 *        keeps its state, and may begin again.
 *
 * FACTS  Values that the instance shows (control/facts.h), and the state from which it continues
 *        after a restart.
 *
 * A new controller is a folder under src/control and a line in controllers.c.
 */
#ifndef WEIR_CONTROL_CONTROLLER_H
#define WEIR_CONTROL_CONTROLLER_H

#include "control/facts.h"
#include "control/keys.h"
#include <weir/gate.h>

/* ---- keys */

/* Context in which a controller's settings are checked. */
struct controller_check {
	const char *resource; /* name */
	enum weir_unit cost;  /* unit that the gate's weights share */
	bool has_iops;        /* capacity in requests per second is stated or learned */
	yamldoc_node map;     /* of the resource */
	yamldoc_node own;     /* of the controller; id 0: none */
	/* Record an error at a node. */
	void (*refuse)(struct controller_check *c, yamldoc_node at, const char *message);
	void *arg;
};

/* ---- site */

enum site_level { SITE_ERROR, SITE_WARNING, SITE_INFO, SITE_DEBUG };

struct site_field { /* of an event; a field without a name ends them */
	const char *name;
	const char *text; /* NULL: the number */
	double number;
};

struct site;
struct site_ops {
	/* The clock of the gate; it never goes back. */
	weir_time (*now)(struct site *s);
	/* Return a number that changes whenever a request arrives or completes. */
	uint64_t (*activity)(const struct site *s);
	/* Return true while requests wait or are inside. */
	bool (*busy)(const struct site *s);
	/* Capacity per second that the site has measured; 0: not known yet. */
	double (*capacity)(const struct site *s, enum weir_unit unit);
	/* Mean cost in requests of one request of the node; 1 before the first. */
	double (*mean_cost)(const struct site *s, weir_node node);
	/* CPU time of this thread, in ns; always 0 in virtual time. */
	weir_time (*cpu)(struct site *s);
	/* Call step at that time instead of the time that the last step returned. */
	void (*wake)(struct site *s, weir_time at);
	/* Send a message of malloc'ed bytes to the controllers of the cluster; the site frees
	 * it. */
	void (*send)(struct site *s, uint8_t *message, size_t len);
	/* Write to the log. */
	void (*tell)(struct site *s, enum site_level level, const char *event,
		const struct site_field *f);
	void (*random)(struct site *s, void *ret, size_t len);
};
struct site {
	const struct site_ops *ops;
	const char *name; /* of the resource */
	struct weir_gate *gate;
	const weir_node *nodes; /* by tenant of the version in force */
	/* Set by the controller: call step at once when a request arrives, not only at the time
	 * that the last step returned. */
	bool sleeps;
	/* set by the simulator: check every sum at every step, and list all tenants in the facts */
	bool audits;
};

/* ---- life */

struct controller_rule {                /* the part of a tenant's knobs that is the controller's */
	struct weir_bucket_spec bucket; /* size 0: none */
	struct weir_bucket_spec second; /* the same */
	double scale;                   /* of the tenant's weight; 1: as in the policy */
};

struct controller_tenant {
	const char *path; /* lives as long as the version */
	bool is_leaf;
	double weight;
};

struct controller_cluster { /* of a version, for a controller with in_cluster */
	const char *name;
	weir_time period;
};
struct controller_tokens {          /* a leaf in the cluster; tokens a period */
	bool here;                  /* at this server … */
	unsigned parts;             /* … which is one of so many */
	int64_t reservation, limit; /* over all servers; limit INT64_MAX: none */
};

struct controller_version { /* of the policy: in force, or the next */
	size_t n;           /* tenants; parents before children */
	bool next;
	const void *settings;
	double capacity[2];            /* per second, stated: requests, bytes; 0: not stated */
	struct controller_rule *rules; /* by tenant; NULL if the controller has no prepare */
	struct controller_cluster cluster;
	struct controller_tenant (*tenant)(const struct controller_version *v, size_t i);
	struct controller_tokens (*tokens)(const struct controller_version *v, size_t i);
	/* Fill n numbers: a tenant's share of all, times the sum of the weights at the top. 0 or
	 * -ENOMEM. */
	int (*shares)(const struct controller_version *v, double *ret);
	/* the site's own */
	const void *of, *at;
	const char *server;
};

struct controller_news {
	enum { CONTROLLER_MESSAGE, CONTROLLER_MET, CONTROLLER_LOST } kind;
	uint64_t from;       /* LOST: the instance of the controller to which the link is down */
	const void *message; /* MESSAGE: a struct of the link's codec, as lease_message */
};

struct controller {
	const char *name;       /* as in `controller: NAME`, and of its map */
	const char *summary;    /* a phrase for the manual */
	const struct key *keys; /* ends with a key without a name */
	size_t settings_size;
	bool sets_window; /* the policy's depth holds until its first step */
	bool has_peers;   /* receives the reports of the hosts in the policy's `peers` */
	bool in_cluster;  /* its resources are servers of the policy's `cluster` */
	/* Complete settings whose keys were read, and check them together; may be NULL. */
	void (*check)(struct settings *s, struct controller_check *c);
	/* Return true if these settings share bytes, so that the gate's weights should, too; may be
	 * NULL. */
	bool (*counts_bytes)(const void *settings);

	/* All functions below may be NULL. new: make a resting instance; 0 or -ENOMEM. Without new
	 * there is no instance, and the others get NULL. */
	int (*new)(struct site *s, void **ret);
	void (*free)(void *c);
	/* Set the rules of tenants from … to − 1 of the next version, in order; from = 0 starts
	 * another version. A tenant has no rule until prepare sets one. 0 or -ENOMEM. */
	int (*prepare)(void *c, const struct controller_version *v, size_t from, size_t to);
	void (*take)(void *c, const struct controller_version *v, size_t i, weir_node node);
	void (*leave)(void *c, const struct controller_version *v, size_t i);
	void (*begin)(void *c, const struct controller_version *v);
	void (*end)(void *c);
	/* For a controller that changes rules between swaps: get the rule that tenant i has now, or
	 * would have in the next version. */
	void (*rule)(
		void *c, const struct controller_version *v, size_t i, struct controller_rule *ret);
	/* Return the time of the next call; WEIR_NEVER: call when the site is woken. */
	weir_time (*step)(void *c, weir_time now);
	/* Pass news from the cluster's controllers. */
	void (*hear)(void *c, const struct controller_news *news);

	/* The facts: of tenants of the version in force, or, with `state`, all that a restart
	 * needs. */
	const struct facts_kind *facts;
	void (*look)(const void *c, const struct facts_site *site, bool tenants, bool state,
		struct facts *ret);
	/* Return the capacity per second that the controller has learned; 0: none yet. */
	double (*learned)(const void *c, enum weir_unit unit);
	/* Continue from facts of the moment `then` on the site's clock, before the first step.
	 * -EINVAL: the facts are inconsistent; -EBUSY: the controller has stepped already; -ENOMEM.
	 * On error the instance is unchanged. */
	int (*restore)(void *c, const struct facts *from, weir_time then);
	uint64_t (*steps)(const void *c); /* so far */
};

/* The table, which ends with NULL. */
extern const struct controller *const controllers[];

/* Return the controller of that name, or NULL. */
const struct controller *controller_find(const char *name);

#endif
