/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: PARDA's settings, as a person writes them; control/parda/parda.h says what each does. */
#pragma once

#include "control/controller.h"
#include "control/parda/parda.h"

enum parda_without { /* a part of PARDA that an experiment switches off */
	PARDA_WITHOUT_NOTHING,
	PARDA_WITHOUT_AGEING,    /* a host that is silent is never forgotten */
	PARDA_WITHOUT_WINDOWS,   /* eq. 2: the windows stay as they are */
	PARDA_WITHOUT_WEIGHTING, /* each host's latency counts the same, whatever its requests */
	PARDA_WITHOUT_HELD,      /* time for which an upstream's limits hold counts as latency */
};

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
	int without;   /* enum parda_without: the part that is switched off */
	double unit;   /* slots per share, where epsilon is 0 */
	double window; /* slots to begin with; 0: as `start` states */
	weir_time burst, tau;
	uint32_t age;
	uint64_t slot, size_fixed; /* bytes */
};

extern const struct controller parda_controller; /* controller.c */
extern const struct key parda_keys[];
void parda_settings_check(struct settings *s, struct controller_check *c);

/* The part of a configuration that settings determine. `period` is the time between two steps. */
struct parda_config parda_settings_config(const struct parda_settings *s, weir_time period);
