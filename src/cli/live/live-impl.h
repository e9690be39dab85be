/* SPDX-License-Identifier: BSD-3-Clause */
/* live-impl: internal interfaces of the parts of a live run; see live.h. */
#pragma once

#include "base/arena.h"
#include "cli/live/live.h"
#include "cli/common/files.h"
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include "cli/view/view.h"
#include "sim/control/hosts.h"
#include "sim/world/measure-put.h"
#include "sim/scenario/scenario.h"
#include <stdio.h>

#define LIVE_PATH    96 /* bytes of a path in the scratch folder: a socket's has at most 107 */
#define LIVE_SERVERS 64 /* more would measure the machine that they run on */

/* A gateway divides larger requests into pieces, and counts the pieces (docs/architecture.md). */
#define LIVE_PIECE (256u << 10)

/* A command line, built word by word. */
struct live_words {
	char **word; /* NULL-terminated */
	size_t n, room;
	bool failed; /* out of memory */
};
void live_words_add(struct live_words *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void live_words_free(struct live_words *w);

#define LIVE_WINDOW_MAX 65536 /* the largest depth of a policy without --lab */
#define LIVE_DEPTH      80    /* bytes of a depth as text of a policy */

/* One `weir serve`. The devices' come first, in the scenario's order; then the hosts'. */
struct live_server {
	const char *name;     /* of its device or host in the scenario; unique */
	int host;             /* index; -1: the server of a device */
	uint32_t device;      /* index: its own, or that behind it */
	double depth;         /* the window */
	uint64_t depth_bytes; /* the same in bytes; 0: none */
	const char *top;      /* further keys at the top, as YAML; NULL: none */
	uint64_t size;        /* bytes: the end of the last of its exports */
	uint64_t offset;      /* of a host: start of its export on a device that has a gate */
	char socket[LIVE_PATH], api[LIVE_PATH], file[LIVE_PATH], log[LIVE_PATH];
	char profile[LIVE_PATH]; /* of estimates */
	char data[LIVE_PATH];    /* of a server of a cluster with its data in a file */
	uint16_t port;           /* for messages of its peers; 0: none */

	/* while it runs */
	struct peer peer;
	struct remote *remote;
	bool down;                  /* by a fault */
	json_t *begin, *last, *now; /* status at the warm-up's end, at the last sample, and now */
	struct view view;           /* difference of two of them */
};

/* Write the server's window as `depth` of its resource; return text. */
const char *live_depth(const struct live_server *v, char text[LIVE_DEPTH]);

/* A leaf of a host's tenants, and the server at which it is served and counted. */
struct live_tenant {
	uint32_t host;       /* index */
	uint32_t index;      /* in its group's policy */
	const char *path;    /* in that policy */
	size_t server;       /* index: its host's, or the device's where its host has no gateway */
	const char *export_; /* name of its export there */
	const char *server_path; /* its path in that server's policy */
	/*
	 * Its part of the device: [low, low + size) for the model, at `offset` of the export's
	 * resource (live-plan.c).
	 */
	uint64_t low, size, offset;
};

enum live_state { LIVE_WAITS, LIVE_RUNS, LIVE_ENDS };

struct live_client {
	const struct live_tenant *tenant; /* of a cluster: NULL, like the workload */
	struct live_words words;          /* of a cluster: the command line */
	size_t jobs;                      /* … and the number of jobs in it */
	const struct scenario_workload *workload;
	char name[160]; /* HOST/TENANT/WORKLOAD, for messages */
	char log[LIVE_PATH];
	char trace[LIVE_PATH]; /* of an open workload; "": none */
	weir_time start, stop; /* of the run; stop WEIR_NEVER: at its end */
	bool held;             /* stopped by a change, or not yet started by one */
	enum live_state state; /* ENDS: after live_client_end */
	struct peer peer;
};

struct live_relay;
struct world;

struct live {
	const struct scenario *s;
	uint64_t seed;
	struct arena memory; /* of names and texts */
	char dir[FILES_SCRATCH];
	struct live_server *servers;
	size_t n_servers;
	int *host_server; /* of each host; -1: none, its clients use the device's */
	struct live_tenant *tenants;
	size_t n_tenants;
	struct live_client *clients;
	size_t n_clients;
	struct live_relay *relay;     /* NULL: reports are sent directly */
	struct hosts_network network; /* of hosts that hear each other */
	size_t next_fault;
	struct world *world;        /* the simulator's, never run; NULL: of a cluster */
	struct live_server control; /* weir control of a cluster */
	struct metrics *metrics;
	int *series; /* handles, in the order in which a sample writes them */
};

/* ---- live.c: also used by live-cluster.c. */
/* `weir serve`, or `weir control` for l->control. */
int live_server_start(struct live *l, struct live_server *v, struct weir_err *err);
void live_server_kill(struct live_server *v);
/*
 * Check all processes again and again until `is` returns 1; a negative errno ends the wait, and so
 * does the limit, with the message `late`. Return 0, or -ECANCELED after a signal.
 */
typedef int live_condition(void *arg, struct weir_err *err);
int live_wait(struct live *l, live_condition *is, void *arg, weir_time limit, const char *late,
	struct weir_err *err);
/*
 * Call `step` until the duration is over: at the time that it returned, or some tenths of a second
 * earlier. Check all processes meanwhile.
 */
typedef int live_step(void *arg, weir_time now, weir_time *ret_next, struct weir_err *err);
int live_steps(struct live *l, const struct sim_options *o, live_step *step, void *arg,
	struct weir_err *err);

/* ---- live-cluster.c: a scenario that has a cluster instead of devices and hosts. */
int live_cluster_run(struct live *l, const struct sim_options *o, struct weir_err *err);

/* ---- live-plan.c: set up servers, tenants and clients, and write the policies. */
int live_plan(struct live *l, struct weir_err *err);
void live_plan_free(struct live *l);
/* Return the path of a host's tenant at its device's gate. */
const char *live_device_path(const struct live *l, const struct live_tenant *t);
/* Return the next of l->servers, which has room for it, with its paths set. */
struct live_server *live_server_add(struct live *l, const char *name, int host, uint32_t device);
void live_server_paths(const struct live *l, const char *stem, struct live_server *v);

/* ---- live-text.c: YAML of the scenario as text. */
void live_text_node(FILE *f, yamldoc_node n);
/* Write "key: value, " for each key of the map but those in `not`, which ends with NULL. */
void live_text_keys(FILE *f, yamldoc_node map, const char *const * not );
yamldoc_node live_text_device(const struct scenario *s, uint32_t device);
/* Return printf output that lives as long as the run; "" and l->memory.failed: out of memory. */
const char *live_text(struct live *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- live-control.c: peers, the relay and faults of controllers that hear other hosts. */
int live_control(struct live *l, struct weir_err *err);
int live_key(const struct live *l, struct weir_err *err);  /* write DIR/key, which all share */
bool live_controlled(const struct live *l, uint32_t host); /* a controller moves its window */
/*
 * Record the controllers' facts in the last status as metrics with the simulator's names: points of
 * series at `t` (s), or, if it is negative, the values at the end.
 */
int live_control_facts(struct live *l, double t);

/* ---- live-policy.c: write the file of each server. */
int live_policy_write(struct live *l, struct weir_err *err);

/* ---- live-lab.c: traces of open workloads, plans and profiles, made by the simulator before the run. */
int live_lab_check(const struct scenario_gate *g, struct weir_err *err);
int live_lab(struct live *l, struct weir_err *err); /* after clients were added */
/* Write `lab` of a tenant, with its plan; and `lab` and `profile` of the server's resource. */
void live_lab_put_tenant(
	FILE *f, const struct live *l, const struct live_server *v, const char *path);
void live_lab_put_resource(
	FILE *f, const struct live *l, const struct live_server *v, yamldoc_node lab);
/* Write the profile of the server's estimates, if it has any. */
int live_lab_write_profile(const struct live *l, const struct live_server *v, struct weir_err *err);
void live_lab_plans(const struct live *l); /* as metrics */
void live_lab_free(struct live *l);

/* ---- live-client.c */
/* Check that its workload can run live. Return 0, or -EINVAL and a message. */
int live_client_check(const struct live_client *c, struct weir_err *err);
int live_client_start(struct live *l, struct live_client *c, struct weir_err *err);
/* Make it send no more requests; it ends when those under way are answered. */
void live_client_end(struct live_client *c);

/* ---- live-change.c */
int live_change_check(const struct live *l, struct weir_err *err);
int live_change(struct live *l, const struct scenario_moment *m, struct weir_err *err);

/* ---- live-look.c: read the APIs. */
int live_look_new(struct live *l); /* create the series; 0 or a negative errno */
live_condition live_look_asked;    /* a request of each tenant with a running client has arrived */
/* Read the status of all servers, and record a sample that ends at `t`. */
int live_look_sample(struct live *l, weir_time t, struct weir_err *err);
void live_look_begin(struct live *l); /* mark the last status as the warm-up's end */
int live_look_end(struct live *l, struct weir_err *err); /* record the values of the run */
void live_look_free(struct live *l);

/* ---- live-relay.c: relay datagrams between hosts; delay reports, and drop some. */
struct live_relay_config {
	const uint16_t *ports; /* of the hosts, on 127.0.0.1 */
	size_t n;
	weir_time delay; /* of each report */
	double loss;     /* share of them, 0 … 1 */
	uint64_t seed;
};
int live_relay_new(
	const struct live_relay_config *c, struct live_relay **ret, struct weir_err *err);
/* Return the port by which `host` reaches `other`, instead of other's own port. */
uint16_t live_relay_port(const struct live_relay *r, size_t host, size_t other);
void live_relay_free(struct live_relay *r); /* NULL is fine */
