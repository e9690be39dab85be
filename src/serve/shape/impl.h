/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: shared by the files of the shaper. */
#pragma once

#include "serve/http/http.h"
#include <jansson.h>
#include "serve/loop/daemon.h"
#include "serve/shape/brokers.h"
#include "serve/shape/cgroups.h"
#include "serve/shape/interfaces.h"
#include "serve/shape/leaves.h"
#include "serve/shape/receive.h"
#include "serve/shape/shaper.h"
#include "serve/shape/talk.h"
#include "wire/told.h"

struct shaper_version { /* all that is made from a policy */
	struct weir_policy *policy;
	struct tree *tree;
	struct rules *rules;
	struct program *program;
	struct cgroups *cgroups; /* NULL: no rule has one */
	struct interfaces *interfaces;
	bool scanned;              /* for interfaces */
	struct shaper_use {        /* by node and direction */
		uint64_t bytes;    /* at the last look */
		uint64_t reported; /* at the last round of the brokers */
		double rate;       /* bytes/s, since the look before */
	} (*use)[SHAPE_DIRS];
	double *full, *share; /* by node, bytes/s: if all services sent without end; and now */
	double *demand;       /* by node, bytes/s; INFINITY: packets wait */
	uint32_t *many; /* by node: its classes with packets now, or at the last look before */
	double *cap[SHAPE_DIRS];   /* by node, bytes/s: of brokers; INFINITY: none */
	double *usage[SHAPE_DIRS]; /* the same, since the round before */
	bool reported;             /* usage is known from the next round on */
	bool seen;             /* counters were looked at: rates are known from the next look on */
	struct shaper_queue {  /* by node, of all devices and classes */
		uint64_t sent; /* bytes */
		uint64_t dropped, before;         /* before: at the last look */
		uint64_t gone_sent, gone_dropped; /* of them by leaves that are gone */
		uint32_t queued, told;            /* told: in queues of leaves */
		uint32_t leaves;                  /* that live */
		uint32_t many, many_before;       /* classes with packets */
	} * queue;
	struct receive *receive;
};

struct feedback { /* feedback.c */
	struct feedback_to {
		uint8_t to[16];
		struct told told;
	} * pending; /* FEEDBACK_MOST */
	size_t n;
	uint64_t sent, crowded;   /* rates; for which there was no room in one period */
	uint64_t heard, nonsense; /* rates */
	weir_time said;           /* an error was logged */
};

struct shaper {
	struct shaper_options options;
	struct shaper_version now;
	struct weir_policy *base;   /* as it was read; now.policy has what was set, too */
	char digest[SHAPER_DIGEST]; /* of its text */
	struct gateway_plan *plan;  /* in force; NULL: none */
	uint64_t plan_number;       /* of the last change */
	struct gateway_override *set;
	size_t n_set;
	struct tc tc;
	struct device_state state;
	struct device *devices;
	size_t n_devices;
	double rate; /* of all devices */
	struct loop *loop;
	struct loop_timer tick, meter;
	struct talk *talk; /* NULL: there is no rack, and no feedback */
	struct leaves leaves;
	struct feedback feedback;
	struct daemon daemon;
	struct http *http;
	struct brokers *brokers;           /* NULL: there is no rack */
	weir_time began, looked, reported; /* CLOCK_MONOTONIC */
	unsigned ticks;
	bool ready;
};

/* Make everything of a policy but devices. The version owns the policy, also on error. */
int shaper_version_new(
	struct shaper *s, struct weir_policy *p, struct shaper_version *ret, struct weir_err *err);
void shaper_version_free(struct shaper_version *v);
/* Find the rate of each device of a network, bytes/s. */
int shaper_rates(const struct policy_network *n, double *ret, struct weir_err *err);
/* look.c */
void shaper_look_queues(struct shaper *s, weir_time now);
void shaper_look_counts(struct shaper *s, weir_time now); /* after the queues */
/* feedback.c: meters, what senders are told, and what this machine is told as a sender. */
int shaper_feedback_new(struct shaper *s, struct weir_err *err);
int shaper_feedback_start(struct shaper *s, weir_time now);
void shaper_feedback_free(struct shaper *s);
/* For talk_config.feedback; arg: the shaper. */
void shaper_feedback_hear(
	void *arg, const uint8_t address[16], const uint64_t *words, unsigned n, weir_time now);
struct leaves_on shaper_leaves_on(struct shaper *s);
/* Put a policy in force, which belongs to the shaper from now on, also on error; the old one stays in force if this fails. */
int shaper_change_to(struct shaper *s, struct weir_policy *p, struct weir_err *err);
/* plan.c: give the services of the plan in force their priorities and buckets. */
void shaper_plan_lay(const struct shaper *s, const struct weir_policy *p, struct tree *t);
int shaper_plan_load(struct shaper *s, struct weir_err *err);
void shaper_plan_free(struct shaper *s);
void shaper_get_plan(struct shaper *s, struct http_request *q, struct http_reply *ret);
void shaper_put_plan(struct shaper *s, struct http_request *q, struct http_reply *ret);
void shaper_delete_plan(struct shaper *s, struct http_request *q, struct http_reply *ret);
/* watch.c */
int shaper_take_again(struct shaper *s, struct device *d, struct weir_err *err);
void shaper_look_devices(struct shaper *s);
void shaper_retire(struct shaper *s);
void shaper_scan(struct shaper *s); /* for new interfaces and cgroups */
void shaper_adopt_leaves(struct shaper *s);
/* set.c */
int shaper_set_load(struct shaper *s, struct weir_err *err);
/* Make a copy of a policy with what is set; values that do not fit are left out. */
int shaper_set_lay(struct shaper *s, const struct weir_policy *base, struct weir_policy **ret,
	struct weir_err *err);
void shaper_set_end(struct shaper *s); /* remove a value whose time is over */
void shaper_set_free(struct shaper *s);
json_t *shaper_set_json(const struct shaper *s);
void shaper_get_policy(struct shaper *s, struct http_request *q, struct http_reply *ret);
void shaper_put_set(struct shaper *s, struct http_request *q, struct http_reply *ret);
void shaper_delete_set(struct shaper *s, struct http_request *q, struct http_reply *ret);
/* limits.c: what brokers allow services */
int limits_arrays(struct shaper_version *v); /* 0 or -ENOMEM */
void limits_free(struct shaper_version *v);
int limits_start(struct shaper *s, struct weir_err *err);
int limits_change(
	struct shaper *s, const struct shaper_version *v, double rate, struct weir_err *err);
/* For talk_config; arg: the shaper. */
void limits_usage(void *arg, size_t machine, const char *name, const uint64_t *words, unsigned n,
	weir_time now);
void limits_fabric(void *arg, size_t machine, const char *name, const uint64_t *words, unsigned n,
	weir_time now);
/* Set the caps; with `round` tell the others what is used, and hear their part. */
void limits_tick(struct shaper *s, weir_time now, bool round);
/* api.c */
int shaper_api_start(struct shaper *s, struct weir_err *err);
