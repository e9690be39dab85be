/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: AdapTBF's settings, as in the policy file; control/lend/lend.h and gate.h define
 * their effect. */
#pragma once

#include "control/lend/lend.h"
#include "control/controller.h"

#define ADAPTBF_TOKENS_HOLD 1

struct adaptbf_settings {
	weir_time period;
	int tokens; /* ADAPTBF_TOKENS_HOLD, or first */
	int unit;   /* enum weir_unit: of a token */
	double depth;
	double guess; /* tokens per second: capacity, until it is learned */
	double headroom;
	weir_time forget;
	struct lend_debt debt;
	int without; /* enum lend_without */
};

extern const struct controller adaptbf_controller;
extern const struct key adaptbf_keys[];
void adaptbf_keys_check(struct settings *s, struct controller_check *c);
bool adaptbf_keys_count_bytes(const void *settings);

/* Return the part of a configuration that settings determine. capacity: tokens per second; 0: to be
 * learned. */
struct lend_config adaptbf_settings_config(const struct adaptbf_settings *s, double capacity);
