/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: the one plug of a controller: its keys, its site, its life and its facts.
 *
 * KEYS   A resource of the policy names its controller and has the controller's settings, in a map of the controller's
 *        name (control/keys.h). The settings are opaque to all but the controller.
 *
 * SITE   A controller sees a gate, its tenants and time through a site: a resource of the gateway, a device of the
 *        simulator, or a gate that is not ours, as the kernel's (serve/drive). All calls of an instance come from one
 *        thread.
 *
 * LIFE   new, then for each version of the policy prepare … begin, then steps. A swap of the policy takes several
 *        calls, between which requests pass and the version in force goes on:
 *          prepare   tenants from … to − 1: all that can fail, and the rules with which they begin
 *          (the gate gets the new nodes; then knobs of the tenants that stay are set, some at a time)
 *          take      the knobs of a tenant, its rule among them, are those of the version from now on
 *          leave     they are no longer: the resource has another controller, or a new tenant was undone
 *          begin     the swap is done
 *        When the resource gets another controller, the new one's prepare, take and begin come before the old one's
 *        leave and end: a request always has the rules of one of them. When a swap is undone, tenants are taken by
 *        the version in force again. begin and end take little time however many tenants there are: they set no
 *        knobs. After end the instance rests, with all it knows, and may begin again.
 *
 * FACTS  What the instance shows (control/facts.h); also what a restart goes on from.
 *
 * A new controller is a folder under src/control and its name in the list of src/control/meson.build.
 */
#ifndef WEIR_CONTROL_CONTROLLER_H
#define WEIR_CONTROL_CONTROLLER_H

#include "control/facts.h"
#include "control/keys.h"
#include <weir/gate.h>

/* ---- keys */

/* What a controller's settings are checked against. */
struct controller_check {
	const char *resource; /* name */
	enum weir_unit cost;  /* what the gate's weights share */
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
	/* A number that changes whenever a request comes or goes. */
	uint64_t (*activity)(const struct site *s);
	/* Return true while requests wait or are inside. */
	bool (*busy)(const struct site *s);
	/* Capacity per second that the site has measured; 0: not known yet. NULL: it never is. */
	double (*capacity)(const struct site *s, enum weir_unit unit);
	/* Mean cost in requests of one request of the node; 1 before the first. NULL: always 1. */
	double (*mean_cost)(const struct site *s, weir_node node);
	/* CPU time of this thread, in ns; always 0 in virtual time, or NULL. */
	weir_time (*cpu)(struct site *s);
	/* Call step at that time instead of the time that the last step returned. */
	void (*wake)(struct site *s, weir_time at);
	/* Send a message of malloc'ed bytes to the controllers of the cluster; the site frees it. This and random may be NULL
	 * at a site that has no controllers with in_cluster. */
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
	/* Set by the controller: call step at once when a request comes, and not only at the time that the last step
	 * returned. */
	bool sleeps;
	bool audits; /* by the simulator: look at every sum at every step, and list all tenants in the facts */
	/* Where `gate` only holds the knobs of a gate that is not ours (serve/drive): the counters of that one. */
	int (*stats)(struct site *s, weir_node leaf, struct weir_gate_stats *ret);
	bool hides_queue; /* these do not tell how many requests wait */
};

static inline weir_time site_cpu_time(struct site *s)
{
	return s->ops->cpu ? s->ops->cpu(s) : 0;
}
/* The counters of a leaf, as weir_gate_get_stats. */
static inline int site_stats(
	struct site *s, weir_time now, weir_node leaf, struct weir_gate_stats *ret)
{
	return s->stats ? s->stats(s, leaf, ret) : weir_gate_get_stats(s->gate, now, leaf, ret);
}

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
	/* Fill n numbers: a tenant's share of all, times the sum of the weights at the top. 0 or -ENOMEM. */
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
	bool has_peers;   /* hears the hosts that the policy names in `peers` */
	bool in_cluster;  /* its resources are servers of the policy's `cluster` */
	/* Complete settings whose keys were read, and check them together; may be NULL. */
	void (*check)(struct settings *s, struct controller_check *c);
	/* Return true if these settings share bytes, so that the gate's weights should, too; may be NULL. */
	bool (*counts_bytes)(const void *settings);

	/* All below may be NULL. new: a resting instance; 0 or -ENOMEM. Without new there is no instance, and the
	 * others get NULL. */
	int (*new)(struct site *s, void **ret);
	void (*free)(void *c);
	/* The rules of tenants from … to − 1, in order, of the next version; from 0 again for another one. They are
	 * none until it sets them. 0 or -ENOMEM. */
	int (*prepare)(void *c, const struct controller_version *v, size_t from, size_t to);
	void (*take)(void *c, const struct controller_version *v, size_t i, weir_node node);
	void (*leave)(void *c, const struct controller_version *v, size_t i);
	void (*begin)(void *c, const struct controller_version *v);
	void (*end)(void *c);
	/* Where rules change between swaps: the rule that tenant i has now, or would have in the next version. */
	void (*rule)(
		void *c, const struct controller_version *v, size_t i, struct controller_rule *ret);
	/* Return when to be called again; WEIR_NEVER: when the site is woken. */
	weir_time (*step)(void *c, weir_time now);
	/* News from the cluster's controllers. */
	void (*hear)(void *c, const struct controller_news *news);

	/* The facts: of tenants of the version in force, or, with `state`, all that a restart needs. */
	const struct facts_kind *facts;
	void (*look)(const void *c, const struct facts_site *site, bool tenants, bool state,
		struct facts *ret);
	/* Capacity per second that the controller has learned; 0: it has not. */
	double (*learned)(const void *c, enum weir_unit unit);
	/* Go on from facts of a moment on the site's clock, before the first step. -EINVAL: they do not fit together;
	 * -EBUSY: it has stepped already; -ENOMEM. On error the instance is as before. */
	int (*restore)(void *c, const struct facts *from, weir_time then);
	uint64_t (*steps)(const void *c); /* so far */
};

/* The table, which ends with NULL. */
extern const struct controller *const controllers[];

/* NULL if there is none of that name. */
const struct controller *controller_find(const char *name);

#endif
