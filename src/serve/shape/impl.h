/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: shared by the files of the shaper. */
#pragma once

#include "serve/http/http.h"
#include "serve/loop/daemon.h"
#include "serve/shape/cgroups.h"
#include "serve/shape/shaper.h"

struct shaper_version { /* all that is made from a policy */
	struct weir_policy *policy;
	struct tree *tree;
	struct rules *rules;
	struct program *program;
	struct cgroups *cgroups; /* NULL: no rule has one */
	struct shaper_use {      /* by node and direction */
		uint64_t bytes;  /* at the last look */
		double rate;     /* bytes/s, since the look before */
	} (*use)[SHAPE_DIRS];
	double *full, *share;  /* by node, bytes/s: if all services sent without end; and now */
	double *demand;        /* by node, bytes/s; INFINITY: packets wait */
	bool seen;             /* counters were looked at: rates are known from the next look on */
	struct shaper_queue {  /* by node, of all devices and classes */
		uint64_t sent; /* bytes */
		uint64_t dropped, before; /* before: at the last look */
		uint32_t queued;
	} * queue;
};

struct shaper {
	struct shaper_options options;
	struct shaper_version now;
	struct tc tc;
	struct device_state state;
	struct device *devices;
	size_t n_devices;
	double rate; /* of all devices */
	struct loop *loop;
	struct loop_timer tick;
	struct daemon daemon;
	struct http *http;
	weir_time began, looked; /* CLOCK_MONOTONIC */
	unsigned ticks;
	bool ready;
};

/* Make everything of a policy but devices. The version owns the policy, also on error. */
int shaper_version_new(
	struct shaper *s, struct weir_policy *p, struct shaper_version *ret, struct weir_err *err);
void shaper_version_free(struct shaper_version *v);
/* Find the rate of each device of a network, bytes/s. */
int shaper_rates(const struct policy_network *n, double *ret, struct weir_err *err);
/* api.c */
int shaper_api_start(struct shaper *s, struct weir_err *err);
