/* SPDX-License-Identifier: BSD-3-Clause */
/* live-impl: the parts of a live run, for each other; see live.h. */
#ifndef WEIR_CLI_LIVE_LIVE_IMPL_H
#define WEIR_CLI_LIVE_LIVE_IMPL_H

#include "cli/live/live.h"
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include "cli/view/view.h"
#include "sim/measure-put.h"
#include "sim/scenario/scenario.h"
#include <stdio.h>

#define LIVE_PATH    96 /* bytes of a path in the scratch folder: a socket's has at most 107 */
#define LIVE_SERVERS 64 /* more would measure the machine they run on */

/* A command line that grows. */
struct live_words {
	char **word; /* NULL behind the last */
	size_t n, room;
};
int live_words_add(struct live_words *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* 0 or -ENOMEM */
void live_words_free(struct live_words *w);

#define LIVE_WINDOW_MAX                                                                            \
	65536         /* the largest depth that a policy takes; `none` in a scenario is more */
#define LIVE_DEPTH 80 /* bytes that hold a depth as a policy's file has it */

/* One `weir serve`. The device's are the first, in the scenario's order; then the hosts'. */
struct live_server {
	const char *name;     /* its device's or its host's: the scenario's, unlike each other's */
	char *own_name;       /* the same, where the scenario has none for it; or NULL */
	int host;             /* index; -1: it is the device itself */
	uint32_t device;      /* which it is, or stands before */
	double depth;         /* the window */
	uint64_t depth_bytes; /* the same in bytes; 0: none */
	char *keys;           /* more keys of its resource, as YAML; NULL: none */
	char *top;            /* more keys at the top, as YAML; NULL: none */
	uint64_t size;        /* bytes: the end of the last of its exports */
	uint64_t offset;      /* a host's: where its export begins on a device that has a gate */
	char socket[LIVE_PATH], api[LIVE_PATH], file[LIVE_PATH], log[LIVE_PATH];
	char data[LIVE_PATH]; /* of a server of a cluster whose data are in files */
	uint16_t port;        /* where it hears its peers; 0: nowhere */

	/* while it runs */
	struct peer peer;
	struct remote *remote;
	bool down; /* by a fault */
	json_t *begin, *last,
		*now;     /* looks: at the warm-up's end, at the last sample, and just now */
	struct view view; /* of the two that are compared */
};

/* The server's window as `depth` of its resource; returns text. */
const char *live_depth(const struct live_server *v, char text[LIVE_DEPTH]);

/* A leaf of a host's tenants, and where it is served and counted. */
struct live_tenant {
	uint32_t host;     /* index */
	uint32_t index;    /* in its group's policy */
	const char *path;  /* there */
	size_t server;     /* index: its host's, or the device's where its host has no gateway */
	char *export_;     /* its name there */
	char *server_path; /* what it is called in that server's policy */
	/* Its part of the device: [low, low + size) for the model, found at `offset` (live-plan.c). */
	uint64_t low, size, offset;
};

enum live_state { LIVE_WAITS, LIVE_RUNS, LIVE_ENDS };

struct live_client {
	const struct live_tenant *tenant; /* of a cluster: NULL, like the workload, and: */
	struct live_words words;          /* what is run */
	size_t jobs;                      /* in them */
	const struct scenario_workload *workload;
	char name[160]; /* HOST/TENANT/WORKLOAD, for messages */
	char log[LIVE_PATH];
	weir_time start, stop; /* of the run; stop WEIR_NEVER: at its end */
	bool held;             /* by a change; or not yet started by one */
	enum live_state state; /* ENDS: it was told to (live_client_end) */
	struct peer peer;
};

struct live_daemon { /* the controller of a cluster */
	char file[LIVE_PATH], socket[LIVE_PATH], api[LIVE_PATH], log[LIVE_PATH];
	struct peer peer;
	struct remote *remote;
};

struct live_fault { /* a gateway that is gone for a while */
	int server;
	weir_time from, to; /* of the run */
	enum { LIVE_FAULT_TO_COME, LIVE_FAULT_ON, LIVE_FAULT_OVER } state;
};

struct live_relay;

struct live {
	const struct scenario *s;
	uint64_t seed;
	char dir[32];
	struct live_server *servers;
	size_t n_servers;
	int *host_server; /* of each host; -1: it has none, its clients go to the device's */
	struct live_tenant *tenants;
	size_t n_tenants;
	struct live_client *clients;
	size_t n_clients;
	struct live_relay *relay; /* NULL: reports go straight */
	struct live_fault *faults;
	size_t n_faults;
	struct live_daemon control;
	struct metrics *metrics;
	int *series; /* handles, in the order in which a sample writes them */
};

/* ---- live.c: for a run of another kind. */
int live_server_start(struct live_server *v, struct weir_err *err);
int live_check(struct live *l, struct weir_err *err); /* is everybody there who should be? */
bool live_interrupted(void);                          /* by a signal */
void live_sleep_until(weir_time at);                  /* by loop_clock; or a signal */

/* ---- live-cluster.c: a scenario that has a cluster instead of devices and hosts. */
int live_cluster_run(struct live *l, const struct sim_options *o, struct weir_err *err);

/* ---- live-plan.c: fills in servers, tenants and clients, and writes the policies. */
int live_plan(struct live *l, struct weir_err *err);
void live_plan_free(struct live *l);
/* The next of l->servers, which has room for it, with its paths. */
struct live_server *live_server_add(struct live *l, const char *name, int host, uint32_t device);

/* ---- live-text.c: YAML of the scenario, into YAML of a policy. */
struct live_key {
	const char *key; /* of the scenario; NULL ends the table */
	const char *
		as; /* what it is called in the policy; NULL: not copied, it is dealt with elsewhere */
};
/* "key: value, " of each key in the table, in the map's order; one that is not in it is refused, as
 * something that cannot run live. 0 or -EINVAL. */
int live_text_keys(FILE *f, yamldoc_node map, const struct live_key *keys, struct weir_err *err);
void live_text_string(FILE *f, const char *text); /* quoted */
/* The nodes of a host's group and of a device. */
yamldoc_node live_text_host(const struct scenario *s, uint32_t group);
yamldoc_node live_text_device(const struct scenario *s, uint32_t device);
/* printf into *to, malloc'ed, behind what is there; 0 or -ENOMEM. */
int live_text_add(char **to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- live-control.c: keys of servers, for each controller of the scenario. */
int live_control(struct live *l, struct weir_err *err);
int live_control_key(const struct live *l, struct weir_err *err); /* DIR/key, which all share */
bool live_controlled(const struct live *l, uint32_t host); /* a controller moves its window */
uint32_t live_control_device(const struct scenario *s, const struct scenario_controller *c);
bool live_control_moves(/* of parda: the host's window */
	const struct scenario *s, const struct scenario_controller *c, uint32_t host);
/* What controllers say of themselves in the last looks, as metrics: points of series at `t` (s), or at
 * the end the values of the run. */
int live_control_say(struct live *l, double t, bool end);

/* ---- live-say.c: of each kind. */
typedef int live_say(struct live *l, const struct scenario_controller *c, double t, bool end);
live_say live_say_parda, live_say_adaptbf, live_say_capacity;

/* ---- live-policy.c: the file of each server. */
int live_policy_write(struct live *l, struct weir_err *err);

/* ---- live-client.c */
/* Whether its workload can run: 0, or -EINVAL and what of it cannot. */
int live_client_check(const struct live_client *c, struct weir_err *err);
int live_client_start(struct live *l, struct live_client *c, struct weir_err *err);
/* Tells it to ask for nothing more; it ends when what it has under way is answered. */
void live_client_end(struct live_client *c);

/* ---- live-fault.c */
int live_fault_plan(
	struct live *l, yamldoc_node map, struct weir_err *err); /* a controller's `faults` */
weir_time live_fault_next(
	const struct live *l, weir_time now); /* when something is due; WEIR_NEVER */

/* ---- live-change.c */
int live_change_check(const struct live *l, struct weir_err *err);
int live_change(struct live *l, const struct scenario_moment *m, struct weir_err *err);

/* ---- live-look.c: the APIs. */
int live_look_new(struct live *l); /* the series; 0 or a negative errno */
/* 1: of each tenant with a client that runs something has arrived; 0: not yet; or a negative errno. */
int live_look_asked(struct live *l, struct weir_err *err);
/* All servers are asked; a sample that ends at `t` is written. */
int live_look_sample(struct live *l, weir_time t, struct weir_err *err);
void live_look_begin(struct live *l);                    /* the last look was the warm-up's end */
int live_look_end(struct live *l, struct weir_err *err); /* the values, up to the last look */
void live_look_free(struct live *l);

/* ---- live-relay.c: between hosts that speak by datagrams; reports are late, and some are lost. */
struct live_relay_config {
	const uint16_t *ports; /* of the hosts, on 127.0.0.1 */
	size_t n;
	weir_time delay; /* of each report */
	double loss;     /* share of them, 0 … 1 */
	uint64_t seed;
};
int live_relay_new(
	const struct live_relay_config *c, struct live_relay **ret, struct weir_err *err);
/* Where `host` reaches `other`, instead of at other's own port. */
uint16_t live_relay_port(const struct live_relay *r, size_t host, size_t other);
void live_relay_free(struct live_relay *r); /* NULL is fine */
/* A free UDP port on 127.0.0.1, and the socket that has it. */
int live_relay_bind(uint16_t *ret_port, int *ret_fd);

#endif
