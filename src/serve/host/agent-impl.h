/* SPDX-License-Identifier: BSD-3-Clause */
/* agent-impl: what agent*.c share. Nobody else includes it. */
#ifndef WEIR_SERVE_HOST_AGENT_IMPL_H
#define WEIR_SERVE_HOST_AGENT_IMPL_H

#include "control/parda/keys.h"
#include "serve/host/agent.h"
#include "serve/gateway/impl.h"
#include "serve/resource/probe.h"

struct agent_probe { /* agent-probe.c's; while `away`, the resource's thread has all of it but `reads.stop` */
	struct loop_task there, back;
	bool away;
	enum { AGENT_PROBE_NONE, AGENT_PROBE_ASKED, AGENT_PROBE_READING } state;
	bool reads_now; /* what it is away for: to read, or to see whether something is inside */
	bool quiet;     /* the answer to that */
	int rc;
	weir_time since; /* it has asked */
	weir_time watch; /* until when it tells others that a client has come; 0: it need not */
	bool confirming; /* it has nothing inside, and says so if that is still so at the next look */
	uint64_t activity; /* of the resource, at the last look */
	struct resource_probe reads;
};

struct agent_seat { /* one resource's; while `away`, the thread's that has the task */
	struct loop_task there, back;
	struct agent *agent;
	struct gateway_resource *resource;
	struct parda *parda; /* NULL: no controller */
	struct parda_settings config;
	uint64_t hash;   /* of it, as in messages */
	uint64_t number; /* among this host's resources that are that array's */
	bool away;
	enum agent_errand {    /* what the task is sent for */
		AGENT_ASK,     /* an upstream is asked for how long it holds requests */
		AGENT_MEASURE, /* what the gate counted */
		AGENT_SET,     /* the window */
	} errand;
	uint64_t serial;    /* of the agent when it was sent */
	int rc;             /* of the measuring */
	double held;        /* ns: for how long an upstream's limits held a request, on the mean */
	bool fresh;         /* `was` holds what this policy's tenants had; else the first look */
	weir_time at, then; /* of `now` and `was` */
	const struct weir_policy *policy;
	size_t n;                        /* tenants */
	struct resource_load *now, *was; /* n each */
	struct parda_vm *vms;            /* n + 1 */
	struct parda_decision last;
	double held_then; /* `held` of the last step: the main thread's, as that is */
	uint64_t steps;
	struct agent_probe probe;
	bool said_alone, said_any;
	bool said_stranger;
	bool said_too_low, said_wmax, said_unreachable; /* of these bounds and this threshold */
};

struct agent {
	struct gateway *gateway;
	struct peers *peers;          /* NULL: none */
	char host[PEER_NAME_MAX + 1]; /* who we are */
	uint64_t instance;
	uint64_t serial; /* one more with each policy */
	struct loop_timer timer;
	weir_time period;
	struct agent_seat *seats; /* one a resource, in the gateway's order */
	size_t n_seats, n_away;
	struct loop_timer probe_timer;
	size_t n_probing;      /* seats whose probe is away */
	bool told;             /* in this period */
	bool asked;            /* upstreams, for this period's step */
	bool closed, given_up; /* of the farewell */
};

/* Sends the seat's task to the resource's thread, unless it is there. */
void agent_send(struct agent_seat *s, enum agent_errand errand);
/* To the log, after a step. */
void agent_say(struct agent_seat *s);
/* The peers are told what they were last told, once more, and what has changed of it. */
void agent_tell_now(struct agent *a);

/* ---- agent-probe.c */
void agent_probe_init(struct agent_seat *s);
void agent_probe_tick(struct loop_timer *t, weir_time now);
/* A policy is new, or there is something to watch: look soon. */
void agent_probe_wake(struct agent *a);
/* A peer's report, for this seat's array. */
void agent_probe_hear(struct agent_seat *s, const struct parda_report *heard);

void agent_tick(struct loop_timer *t, weir_time now);
void agent_seat_there(struct loop_task *t);
void agent_seat_back(struct loop_task *t);
void agent_receive(void *arg, const struct peer_message *m, weir_time now);

#endif
