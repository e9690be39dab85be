/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario: what a scenario file says, as structures. Written by scenario*.c, read by world*.c.
 *
 * weir-scenario(5) is the manual of the file. Here every name has become an index, every quantity a
 * number, and every default is filled in. A scenario is never changed by a run.
 */
#ifndef WEIR_SIM_SCENARIO_SCENARIO_H
#define WEIR_SIM_SCENARIO_SCENARIO_H

#include "base/yamldoc.h"
#include <weir/policy.h>
#include <weir/gate.h>
#include "model/trace.h"
#include "model/workload.h"
#include "sim/sim.h"
#include "sim/station.h"

#define SCENARIO_PROFILES    8       /* profile buckets a tenant */
#define SCENARIO_WINDOW_NONE 1e6     /* `window: none`: more than any keeps in flight */
#define SCENARIO_SAMPLES     1000000 /* of each series: 16 MB; a picture shows a thousand */
#define SCENARIO_HOPS        4       /* links on the way to the device, and as many back */

/* What a tenant may be told at a gate. In a change, only what `given` names is meant. */
enum scenario_given {
	SCENARIO_WEIGHT = 1 << 0,
	SCENARIO_MIN = 1 << 1,
	SCENARIO_MAX = 1 << 2,
	SCENARIO_PRIORITY = 1 << 3,
	SCENARIO_DEADLINE = 1 << 4,
	SCENARIO_PROFILE = 1 << 5,
	SCENARIO_RTOKENS = 1 << 6,
	SCENARIO_LTOKENS = 1 << 7,
	SCENARIO_RGRANT = 1 << 8,
	SCENARIO_LGRANT = 1 << 9,
};
#define SCENARIO_BUCKETS_GIVEN                                                                     \
	(SCENARIO_MIN | SCENARIO_MAX | SCENARIO_PROFILE | SCENARIO_RTOKENS | SCENARIO_LTOKENS)

struct scenario_knobs {
	unsigned given; /* enum scenario_given */
	double weight;
	struct weir_limit min[WEIR_LIMITS], max[WEIR_LIMITS];
	unsigned n_min, n_max;
	int priority;       /* 0 … 63; -1: none */
	weir_time deadline; /* order EDF; 0: none */
	struct weir_bucket_spec profile[SCENARIO_PROFILES];
	unsigned n_profile;
	struct weir_bucket_spec rtokens, ltokens; /* size 0: none */
	double rgrant, lgrant;                    /* in a change: tokens added once */
};

struct scenario_workload {
	const char *name;
	struct workload_config config; /* its trace is set by scenario_load */
	const char *trace_path;        /* NULL: none */
	enum trace_format format;
	bool skip_bad;
	bool stopped;    /* does nothing until a change starts it */
	uint64_t spread; /* bytes added to `base` per replica of the host */
	struct trace trace;
	const char
		*folder;  /* of traces, of which each replica of the host has another; NULL: none */
	double rate_most; /* of them: a second on the mean, of each; 0: any */
	struct trace
		*traces; /* what was drawn, n_traces of them: replica r has r modulo n_traces */
	uint32_t n_traces;
	bool loaded;
	yamldoc_node node; /* its map */
};

struct scenario_tenant { /* beside weir_tenant of the same index */
	struct scenario_knobs knobs;
	struct scenario_workload *workloads;
	size_t n_workloads;
	const char **for_; /* at a device's gate: which hosts' tenants are meant; globs */
	size_t n_for;
	struct weir_place at;
};

enum scenario_per { SCENARIO_PER_HOST, SCENARIO_PER_TENANT };

struct scenario_gate {
	struct weir_gate_config config;
	struct weir_resource costs;      /* io_unit, flush_cost, trim_cost: what a request costs */
	weir_time estimate_io;           /* device time a request is estimated at … */
	double estimate_rate;            /* … plus its bytes ÷ this, per second; 0: nothing */
	struct weir_policy *policy;      /* its tree; no tenants: one leaf per `per` */
	struct scenario_tenant *tenants; /* policy->n_tenants of them */
	enum scenario_per per;
	unsigned given; /* of a change: which of the below were named, enum scenario_gate_given */
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
	struct scenario_gate *gate; /* devices only; NULL: none in front */
	bool capacity_auto;         /* learned while it runs */
	struct weir_rate capacity;  /* stated; per_second 0: not */
	struct weir_place at;
};

struct scenario_group { /* one entry of `hosts:`, `count` hosts alike */
	const char *name;
	uint32_t count;
	bool numbered; /* `count` was written: the hosts are name1 … nameN */
	struct scenario_gate gate;
	uint32_t device; /* index into stations */
	uint32_t request[SCENARIO_HOPS], reply[SCENARIO_HOPS];
	unsigned n_request, n_reply;
	weir_time retry; /* after a link dropped it */
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
	SCENARIO_ON_WORKLOAD
};

struct scenario_change { /* one entry of a `set:` list */
	enum scenario_target target;
	const char *where;    /* glob over host names; or over devices' and links' */
	const char *tenant;   /* glob over paths */
	const char *workload; /* glob over names */
	bool at_device; /* ON_TENANT: `where` means devices, and the tenant is of their gates */
	struct scenario_knobs knobs; /* ON_TENANT */
	struct scenario_gate gate;   /* ON_HOST, ON_DEVICE: what `given` says */
	double rate;                 /* ON_DEVICE: > 0: the model's new rate, in its own unit */
	bool on_link;                /* ON_DEVICE: `where` means links */
	bool run;                    /* ON_WORKLOAD */
	struct weir_place at;
};

struct scenario_moment { /* one entry of `at:` */
	weir_time time;
	struct scenario_change *changes;
	size_t n;
};

struct sim_controller_ops;
struct scenario_controller { /* one entry of `controllers:`, or one that a device asked for */
	const struct sim_controller_ops *ops;
	weir_time period;  /* between steps: a phase, where the controller has those */
	yamldoc_node node; /* its map, for ops->init; id 0: none */
	uint32_t station;  /* that asked; UINT32_MAX: none */
	struct weir_place at;
};

struct scenario {
	const char *name, *about;
	uint64_t seed;
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
	struct pshift_cluster_config
		*cluster;    /* instead of stations, hosts and the rest; or NULL */
	struct yamldoc *doc; /* owns the strings that were not made here */
	char *file;          /* its name, for messages */
	char *names;         /* the hosts' names; and the parts of changes' targets */
};

/* ---- the parts of the reader, for each other. All: 0 or -EINVAL / -ENOMEM with a message. */

/* scenario-set.c: the text with the overrides applied, malloc'ed; lines stay where they were. */
int scenario_override(const char *text, size_t len, const char *name,
	const struct scenario_set *sets, size_t n, char **ret_text, size_t *ret_len,
	struct weir_err *err);

/* scenario-gate.c: the keys of a gate, which stand in a host, or in a device's `gate:`. */
extern const char *const scenario_gate_keys[];
int scenario_gate_read(yamldoc_node map, struct scenario_gate *ret, struct weir_err *err);
int scenario_tenants_read(
	yamldoc_node host, bool server, struct scenario_gate *gate, struct weir_err *err);
int scenario_knobs_read(yamldoc_node map, struct scenario_knobs *ret, struct weir_err *err);
extern const char *const scenario_knob_keys[];
void scenario_gate_clear(struct scenario_gate *g);

/* scenario-workload.c */
int scenario_workloads_read(
	yamldoc_node list, struct scenario_workload **ret, size_t *ret_n, struct weir_err *err);
void scenario_workloads_free(struct scenario_workload *w, size_t n);

int scenario_workload_load(
	struct scenario_workload *w, scenario_read *read, void *arg, struct weir_err *err);

/* scenario-traces.c: draws the traces of w->folder, one for each of `count` replicas. */
int scenario_traces_draw(struct scenario_workload *w, uint32_t count, uint64_t seed,
	scenario_read *read, void *arg, struct weir_err *err);

/* scenario-station.c */
int scenario_station_read(
	yamldoc_node map, bool link, struct scenario_station *ret, struct weir_err *err);

/* scenario-change.c: `at:`; needs hosts and stations to have been read. */
int scenario_moments_read(yamldoc_node root, struct scenario *s, struct weir_err *err);
void scenario_moments_free(struct scenario *s);

/* scenario-hosts.c: `hosts`; needs stations to have been read. */
int scenario_hosts_read(yamldoc_node root, struct scenario *s, struct weir_err *err);
/* Everybody who comes to a gate with tenants must be one of them. */
int scenario_leaves_check(const struct scenario *s, struct weir_err *err);
/* Which leaf of a device's gate takes the requests of a host's tenant: the first that means it, in the
 * order of the file; -ENOENT. */
int scenario_leaf_for(const struct scenario_gate *g, const char *host, const char *path);

/* scenario.c: the station of this name among those from `from` to before `to`; -ENOENT. */
int scenario_station_find(const struct scenario *s, const char *name, uint32_t from, uint32_t to);

/* Whether a change's target is this one. */
bool scenario_fits(const char *glob, const char *name);

/* A name of a host, tenant, device …: letters, digits, '-', '_'. */
int scenario_name_check(yamldoc_node name, struct weir_err *err);
int scenario_name_read(yamldoc_node map, const char **ret, struct weir_err *err);
/* What a model refuses of the map, as "KEY: why" or "KEY, KEY: why" (those that do not go together): at the first
 * of them that is written there, as why; at the map, whole, if none is. `keys`, or NULL: {the model's word,
 * the file's} of those that differ, up to a pair of NULL. */
int scenario_refused(
	yamldoc_node map, const char *text, const char *const (*keys)[2], struct weir_err *err);
/* The device that a controller's map names by `device`, which may be left out where there is only one. */
int scenario_device_of(
	const struct scenario *s, yamldoc_node map, uint32_t *ret, struct weir_err *err);
/* How many the list has; 0: there is none. */
int scenario_list(yamldoc_node root, const char *key, size_t *ret_n, struct weir_err *err);
/* Is every key of the map in one of the two lists? */
int scenario_keys(
	yamldoc_node map, const char *const *a, const char *const *b, struct weir_err *err);

#endif
