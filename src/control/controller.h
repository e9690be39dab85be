/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: the interface of a controller: its keys, its site, its life and its facts.
 *
 * KEYS   A resource of the policy names its controller and has the controller's settings, in a map
 *        of the controller's name (control/keys.h). Only the controller knows the type of its
 *        settings.
 *
 * SITE   A controller sees a gate, its tenants and time through a site: a resource of the gateway, a device of the
 *        simulator, or a gate that is not ours, as the kernel's (serve/drive). All calls of an instance come from one
 *        thread.
 *
 * LIFE   new; then for each version of the policy prepare … begin; then steps. A swap of the policy
 *        takes several calls, between which requests pass and the version in force continues:
 *          prepare   tenants from … to − 1: all steps that can fail, and their first rules
 *          (the gate gets the new nodes; then knobs of the tenants that stay are set, some at a
 *          time)
 *          take      from now on the tenant has the knobs, including the rule, of this version
 *          leave     it no longer has them: the controller changes, or a new tenant is undone
 *          begin     the swap is done
 *        When the resource gets another controller, the new one's prepare, take and begin come before the old one's
 *        leave and end: a request always has the rules of one of them. When a swap is undone, tenants are taken by
 *        the version in force again. begin and end take little time however many tenants there are: they set no
 *        tenant's knobs. After end the instance rests, with all it knows, and may begin again.
 *
 * FACTS  Values that the instance shows (control/facts.h), and the state from which it continues
 *        after a restart.
 *
 * A new controller is a folder under src/control and its name in the list of src/control/meson.build.
 */
#pragma once

#include "control/cluster.h"
#include "control/facts.h"
#include "control/keys.h"
#include "wire/peer.h"
#include <weir/gate.h>

/* ---- keys */

/* Context in which a controller's settings are checked. */
struct controller_check {
	const char *resource; /* name */
	enum weir_unit cost;  /* unit that the gate's weights share */
	bool implied;         /* the policy does not name the controller, but asks for it */
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

struct site_load {       /* of a tenant with clients or requests, since the last call */
	uint32_t tenant; /* a number that stays as long as the version */
	double shares;   /* > 0 */
	uint64_t ios;    /* requests that ended, and their bytes */
	double bytes;
	double latency_ns; /* request·ns inside the resource: of those that ended, … */
	double device_ns;  /* … and of all, over time */
	double wanting_ns; /* device_ns, and those for which a request waited for the window or its turn */
	double held_ns; /* the part of these during which limits of an upstream held requests */
	double min_ios, min_bytes; /* per second: guaranteed here, as it is now; 0: nothing */
};
struct site_loads {
	weir_time span; /* ns, > 0 */
	const struct site_load *rows;
	size_t n;
	double held; /* ns, on the mean: for how long an upstream's limits hold a request */
};

/* A burst of reads of the controller's own. They pass by the gate and count for no tenant. */
struct site_burst {
	uint32_t bytes; /* of a read; the site may make it smaller */
	uint32_t most;  /* reads inside at once, at most */
	bool ended;     /* set by the site if a client has sent a request; no more reads go out */
	/* Return how many reads to send now; they count as inside. If none is inside then, the burst is over. */
	uint32_t (*more)(struct site_burst *b, weir_time now);
	void (*done)(struct site_burst *b, weir_time now, weir_time latency);
	/* The last read came back, of so many. */
	void (*over)(struct site_burst *b, weir_time now, uint64_t reads);
};

struct site_slo { /* requests of a leaf with an slo that ended */
	uint64_t total;
	uint64_t late, near; /* … later than the slo, and than SITE_NEAR of it */
};
#define SITE_NEAR 0.8

struct site;
struct site_ops {
	/* The clock of the gate; it never goes back. */
	weir_time (*now)(struct site *s);
	/* Return a number that changes whenever a request arrives or completes. */
	uint64_t (*activity)(const struct site *s);
	/* Return true while requests wait or are inside. */
	bool (*busy)(const struct site *s);
	/* Capacity per second that the site has measured; 0: not known yet. NULL: it never is. */
	double (*capacity)(const struct site *s, enum weir_unit unit);
	/* Mean cost in requests of one request of the node; 1 before the first. NULL: always 1. */
	double (*mean_cost)(const struct site *s, weir_node node);
	/* Count the requests of a tenant of the version in force; 0 without an slo. NULL at a gate that is not ours. */
	void (*slo)(struct site *s, size_t tenant, struct site_slo *ret);
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

	/* ---- for a controller of the window; NULL where the site has no such gate */

	/* -EAGAIN: the first call for this version, from which the next one counts; -ENOMEM. */
	int (*loads)(struct site *s, struct site_loads *ret);
	/* Set the number of requests that may be inside; it holds until the next call. */
	void (*set_window)(struct site *s, double window);
	/* Ask the upstream for how long its limits hold requests: a later call of `loads` has the answer. */
	void (*ask_upstream)(struct site *s);
	/* Start a burst, of which there is one at a time. -EBUSY: clients have requests here; -ENOSPC: the resource is
	 * too small; -ENOMEM. */
	int (*read)(struct site *s, struct site_burst *b);
	/* Call nothing of a burst any more, if it is under way: it is about to be freed. */
	void (*forget)(struct site *s, struct site_burst *b);
	/* Return true if no host has requests that wait or are inside. NULL: only the peers can tell. */
	bool (*all_quiet)(const struct site *s);
	/* Tell the peers, with the next message, or at once. The report has the controller's report_size. */
	void (*publish)(struct site *s, const void *report, bool at_once);
};
struct site {
	const struct site_ops *ops;
	const char *name; /* of the resource */
	struct weir_gate *gate;
	const weir_node *nodes; /* by tenant of the version in force */
	/* Set by the controller: call step at once when a request arrives, not only at the time
	 * that the last step returned. */
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
static inline struct site_slo site_slo_count(struct site *s, size_t tenant)
{
	struct site_slo ret = {0};

	if (s->ops->slo)
		s->ops->slo(s, tenant, &ret);
	return ret;
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
	double slo_percentile; /* 0: no slo */
	weir_time slo_latency;
};

struct controller_cluster { /* of a version, for a controller with in_cluster */
	const char *name;
	weir_time period;
};
struct controller_peers {  /* of a version, for a controller with has_peers */
	uint64_t host;     /* a number for this host, the same at every start */
	uint64_t instance; /* … and another at every start; never 0 */
	uint64_t number;   /* of this resource among those of the host with the same topic */
	weir_time period;  /* between two reports */
	weir_time first;   /* when the first step is due */
	uint32_t most;     /* hosts; 0: not known */
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
	double depth;                  /* requests, stated; 0: not stated */
	struct controller_rule *rules; /* by tenant; NULL if the controller has no prepare */
	struct controller_cluster cluster;
	struct controller_peers peers;
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
	enum {
		CONTROLLER_MESSAGE, /* from a controller of the cluster */
		CONTROLLER_MET,     /* a link to one is up */
		CONTROLLER_LOST,    /* a link to one is down */
		CONTROLLER_REPORT,  /* from a peer */
		CONTROLLER_LEFT,    /* a peer stops */
	} kind;
	/* the highest generation of the cluster's controllers that this server obeyed, as its host keeps it; 0: not known */
	uint64_t obeyed;
	uint64_t from;       /* LOST: the instance of the controller; LEFT: controller_peers.host */
	uint64_t instance;   /* LEFT: of the peer */
	const void *message; /* MESSAGE: a struct lease_message; REPORT: the controller's report */
};

struct controller {
	const char *name;            /* as in `controller: NAME`, and of its map */
	const char *summary;         /* a phrase for the manual */
	const struct key *keys;      /* ends with a key without a name */
	const struct key_help *help; /* of each key; ends as the keys do */
	size_t settings_size;
	bool sets_window; /* the policy's depth holds until its first step */
	bool in_shadow;   /* runs also if the policy is not enforced; the site then sets no knobs */
	/* It hears the hosts that the policy names in `peers`, once a period. `topic` is the hosts' name for the
	 * resource, or NULL: the resource's own. A report is a struct, which a network carries as a peer_report. */
	bool has_peers;
	size_t report_size;
	const char *(*topic)(const void *settings);
	struct peer_report (*encode)(const void *report, const struct controller_peers *from);
	void (*decode)(const struct peer_message *m, const struct peer_report *r, void *ret);
	/* Its resources are servers of the policy's `cluster`, and these are the machines of that. */
	bool in_cluster;
	const struct cluster_lead *lead;
	const struct cluster_server *server;
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
	/* News from the cluster's controllers, or from peers. */
	void (*hear)(void *c, const struct controller_news *news);

	/* The facts: of tenants of the version in force, or, with `state`, all that a restart
	 * needs. */
	const struct facts_kind *facts;
	void (*look)(const void *c, const struct facts_site *site, bool tenants, bool state,
		struct facts *ret);
	/* Return the capacity per second that the controller has learned; 0: none yet. */
	double (*learned)(const void *c, enum weir_unit unit);
	/* Continue from facts of the moment `then` on the site's clock, in place of what the instance
	 * has, which has had no requests yet. -EINVAL: the facts are inconsistent; -ENOMEM. On error the instance is unchanged. */
	int (*restore)(void *c, const struct facts *from, weir_time then);
	uint64_t (*steps)(const void *c); /* so far, if state is kept or peers are told of them */
};

/* The table, which ends with NULL. */
extern const struct controller *const controllers[];

/* The one of clusters. */
const struct controller *controller_in_cluster(void);
