/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: PARDA's settings, as a person writes them; control/parda/parda.h says what each does. */
#ifndef WEIR_CONTROL_PARDA_KEYS_H
#define WEIR_CONTROL_PARDA_KEYS_H

#include "control/controller.h"
#include "control/parda/parda.h"

struct parda_settings {
	char array[KEY_TEXT_SIZE]; /* the hosts' name for the resource */
	bool find;                 /* threshold: auto */
	bool probe;
	weir_time threshold, threshold_max; /* with `find`, threshold is threshold_max */
	double gamma, epsilon, wmin, wmax, alpha;
	int estimate;  /* 1: local */
	int smoothing; /* enum parda_smoothing */
	int idle;      /* enum parda_idle */
	int start;     /* 1: at the resource's depth */
	int stranger;  /* 1: ignored */
	int without;   /* the part that is switched off; 0: none */
	double unit;   /* slots per share, where epsilon is 0 */
	weir_time burst, tau;
	uint32_t age;
	uint64_t slot, size_fixed; /* bytes */
};

extern const struct controller parda_controller;

/* The part of a configuration that settings determine. `period` is the time between two steps. */
struct parda_config parda_settings_config(const struct parda_settings *s, weir_time period);

#endif
