/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario: a parsed scenario file. Written by scenario*.c and run/parse.c, read by world*.c.
 *
 * weir-scenario(5) is the manual of the file. Names have been resolved to indices, quantities to numbers, and
 * defaults are filled in. A scenario is never changed by a run.
 */
#pragma once

#include "base/yamldoc.h"
#include "policy/policy.h"
#include <weir/gate.h>
#include "model/estimate.h"
#include "model/trace/trace.h"
#include "model/workload.h"
#include "sim/sim.h"
#include "model/station.h"

#define SCENARIO_SAMPLES 1000000 /* samples per series: 16 MB; a plot shows a thousand */
#define SCENARIO_HOPS    4       /* links on the way to the device, and as many back */

/* The knobs of a tenant at a gate. In a change only those in `given` are set. */
enum scenario_given { /* enum policy_lab_given has the other bits */
	SCENARIO_WEIGHT = 1 << 0,
	SCENARIO_MIN = 1 << 1,
	SCENARIO_MAX = 1 << 2,
	SCENARIO_SLO = 1 << 10,
};
#define SCENARIO_BUCKETS_GIVEN                                                                     \
	(SCENARIO_MIN | SCENARIO_MAX | POLICY_LAB_PROFILE | POLICY_LAB_RTOKENS | POLICY_LAB_LTOKENS)

struct scenario_knobs {
	unsigned given; /* enum scenario_given, enum policy_lab_given */
	double weight;
	struct weir_limit min[WEIR_LIMITS], max[WEIR_LIMITS];
	unsigned n_min, n_max;
	double slo_percentile; /* in a change: at the host's gate */
	weir_time slo_latency;
	struct policy_lab_tenant lab;
};

struct scenario_workload {
	const char *name;
	struct workload_config config; /* its trace is set by scenario_load */
	const char *trace_path;        /* NULL: none */
	enum trace_format format;
	bool skip_bad;
	bool stopped;    /* idle until a change starts it */
	uint64_t spread; /* bytes added to `base` per replica of the host */
	struct trace trace;
	const char *folder;   /* folder of traces, one for each replica of the host; NULL: none */
	double rate_most;     /* highest mean rate of each of them, per second; 0: any */
	struct trace *traces; /* the drawn ones: replica r has number r modulo n_traces */
	uint32_t n_traces;
	bool loaded;
	yamldoc_node node; /* its map */
};

struct scenario_tenant { /* beside weir_tenant of the same index */
	struct scenario_knobs knobs;
	struct scenario_workload *workloads;
	size_t n_workloads;
	struct weir_place at;
};

struct scenario_gate {
	struct weir_gate_config config;
	struct weir_resource resource;   /* of `whole`: the cost of requests, the controller */
	struct weir_policy *whole;       /* owns the resource's strings and the tree */
	yamldoc_node node;               /* of the same; see scenario-policy.c */
	struct yamldoc *doc;             /* of the node, if that is not the scenario's */
	struct weir_policy *policy;      /* the same, for its tree; NULL: one leaf per host */
	struct scenario_tenant *tenants; /* policy->n_tenants of them */
	unsigned given;                  /* keys that were given, enum scenario_gate_given */
	struct estimate *estimate;       /* of the lab's profile, set by scenario_load; or NULL */
};
enum scenario_gate_given {
	SCENARIO_GATE_WINDOW = 1 << 0,
	SCENARIO_GATE_RUN = 1 << 1,
	SCENARIO_GATE_DISTANCE = 1 << 2,
	SCENARIO_GATE_CREDIT = 1 << 3,
	SCENARIO_GATE_WINDOW_BYTES = 1 << 4,
};

struct scenario_station { /* a device or a link */
	const char *name;
	struct station_config config;
	struct scenario_gate *gate; /* NULL: no gate */
	bool capacity_auto;         /* learned during the run */
	struct weir_rate capacity;  /* stated; per_second 0: not stated */
	struct weir_place at;
};

struct scenario_group { /* one entry of `hosts:`, `count` equal hosts */
	const char *name;
	uint32_t count;
	bool numbered; /* `count` was written: the hosts are name1 … nameN */
	struct scenario_gate gate;
	uint32_t device; /* index into stations */
	uint32_t request[SCENARIO_HOPS], reply[SCENARIO_HOPS];
	unsigned n_request, n_reply;
	weir_time retry; /* delay after a link dropped a packet */
	struct weir_place at;
};

struct scenario_host {
	const char *name;
	uint32_t group;
	uint32_t replica; /* 0 … count − 1 */
};

enum scenario_target {
	SCENARIO_ON_TENANT,
	SCENARIO_ON_HOST,
	SCENARIO_ON_DEVICE,
	SCENARIO_ON_WORKLOAD,
	SCENARIO_ON_PLAN /* of all gates whose lab has one */
};

struct scenario_change { /* one entry of a `set:` list */
	enum scenario_target target;
	const char *where;    /* glob for host names; or for names of devices or links */
	const char *tenant;   /* glob for paths */
	const char *workload; /* glob for names */
	bool at_device; /* ON_TENANT: `where` is for devices, and the tenant is at their gates */
	struct scenario_knobs knobs; /* ON_TENANT */
	struct scenario_gate gate;   /* ON_HOST, ON_DEVICE: the keys in `given` */
	double rate;                 /* ON_DEVICE: > 0: the model's new rate, in its own unit */
	bool on_link;                /* ON_DEVICE: `where` is for links */
	bool run;                    /* ON_WORKLOAD */
	struct weir_place at;
	yamldoc_node node; /* its map */
};

struct scenario_moment { /* one entry of `at:` */
	weir_time time;
	struct scenario_change *changes;
	size_t n;
};

struct sim_controller_ops;
struct scenario_controller { /* of a resource, or of a device whose capacity is learned */
	const char *name;
	const struct sim_controller_ops *ops;
	weir_time period;                 /* between steps: a phase, if the controller has phases */
	uint32_t station;                 /* its device */
	uint32_t host;                    /* whose gate it has; UINT32_MAX: the device's */
	const struct scenario_gate *gate; /* its resource's; NULL: none */
	struct weir_place at;
};

struct scenario {
	const char *name;  /* its `name:`, or the file's */
	const char *about; /* its `description:`, or "" */
	uint64_t seed;     /* also of the traces that scenario_load draws from a folder */
	weir_time duration, warmup, sample; /* sample 0: no series */
	struct scenario_station *stations;  /* the devices, then the links */
	uint32_t n_devices, n_stations;
	struct scenario_group *groups;
	uint32_t n_groups;
	struct scenario_host *hosts;
	uint32_t n_hosts;
	struct scenario_moment *moments; /* in order of time */
	size_t n_moments;
	struct scenario_controller *controllers;
	size_t n_controllers;
	struct sim_cluster_config *cluster; /* replaces stations, hosts and the rest; or NULL */
	struct sim_network_config *network; /* the same; or NULL */
	struct sim_systems_config *systems; /* the same; or NULL */
	struct yamldoc *doc;                /* owns the strings that were not allocated here */
	char *file;                         /* its name, for messages */
	char *names;                        /* the hosts' names */
	weir_policy_reader *reader;         /* of policies that are files; or NULL */
	void *reader_arg;
	scenario_read *read; /* of scenario_load */
	void *read_arg;
};

/* ---- the parts of the reader. All return 0, or -EINVAL / -ENOMEM with a message. */

/* scenario-set.c: apply the overrides and return the text, malloc'ed; line numbers do not change. */
int scenario_override(const char *text, size_t len, const char *name,
	const struct scenario_set *sets, size_t n, char **ret_text, size_t *ret_len,
	struct weir_err *err);

/* scenario-workload.c */
int scenario_workloads_read(
	yamldoc_node list, struct scenario_workload **ret, size_t *ret_n, struct weir_err *err);
void scenario_workloads_free(struct scenario_workload *w, size_t n);

/* Check the configuration by the model; its errors are reported at the workload's map, or the trace's file. */
int scenario_workload_check(
	yamldoc_node map, const struct workload_config *config, struct weir_err *err);
int scenario_workload_load(
	struct scenario_workload *w, scenario_read *read, void *arg, struct weir_err *err);

/* scenario-traces.c: draw the traces of w->folder, one for each of `count` replicas. */
int scenario_traces_draw(struct scenario_workload *w, uint32_t count, uint64_t seed,
	scenario_read *read, void *arg, struct weir_err *err);

/* scenario-station.c */
int scenario_station_read(
	yamldoc_node map, bool link, struct scenario_station *ret, struct weir_err *err);

/* scenario-policy.c: the policy of a host, whose device was read, and its clients; the policy of a device, if it has one. */
int scenario_host_policy_read(
	yamldoc_node host, struct scenario *s, struct scenario_group *g, struct weir_err *err);
int scenario_device_policy_read(yamldoc_node map, struct scenario *s,
	struct scenario_station *device, struct weir_err *err);

void scenario_gate_clear(struct scenario_gate *g);
/* Refuse a key that this map had before scenarios contained policies, and name the new one. */
enum scenario_place {
	SCENARIO_TOP,
	SCENARIO_DEVICE,
	SCENARIO_HOST,
	SCENARIO_POLICY,
	SCENARIO_TENANT,
	SCENARIO_CHANGE
};
int scenario_moved_check(yamldoc_node map, enum scenario_place place, struct weir_err *err);

/* scenario-change.c: read `at:`, after hosts and stations. */
int scenario_moments_read(yamldoc_node root, struct scenario *s, struct weir_err *err);
void scenario_moments_free(struct scenario *s);

/* scenario-hosts.c: read `hosts`, after stations. */
int scenario_hosts_read(yamldoc_node root, struct scenario *s, struct weir_err *err);
/* Check that a gate with tenants has one for every tenant of a host that uses it. */
int scenario_leaves_check(const struct scenario *s, struct weir_err *err);
/* Return the leaf of a device's gate that takes the requests of a host's tenant: the first that matches, in the
 * order of the file; or -ENOENT. */
int scenario_leaf_for(const struct scenario_gate *g, const char *host, const char *path);

/* scenario.c: read `devices` and `links`. */
int scenario_stations_read(yamldoc_node root, struct scenario *s, struct weir_err *err);
/* Return the station of this name among those from `from` to before `to`; or -ENOENT. */
int scenario_station_find(const struct scenario *s, const char *name, uint32_t from, uint32_t to);

/* Return true if a change's glob matches the name. */
bool scenario_fits(const char *glob, const char *name);

/* Read the name of a host, tenant, device …: letters, digits, '-', '_'. */
int scenario_name_read(yamldoc_node map, const char **ret, struct weir_err *err);
/* Report an error of a model, as "KEY: why" or "KEY, KEY: why" (conflicting keys): `why` at the first of the keys
 * that is in the map; the whole text at the map if none is. */
int scenario_refused(yamldoc_node map, const char *text, struct weir_err *err);
/* Get the length of a list; 0 if it is absent. */
int scenario_list(yamldoc_node root, const char *key, size_t *ret_n, struct weir_err *err);
/* Check that every key of the map is in one of the two lists. */
int scenario_keys(
	yamldoc_node map, const char *const *a, const char *const *b, struct weir_err *err);
