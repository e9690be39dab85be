/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/controller.h"
#include "sim/control/learner.h"
#include "sim/control/parda-hosts.h"
#include <stddef.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Controllers that know more than one gate; all others are device_controller's. */
static const struct sim_controller_ops *const kinds[] = {&learner_capacity, &parda_hosts_ops};

const struct sim_controller_ops *sim_controller_find(const char *name)
{
	for (size_t i = 0; i < N(kinds); i++) {
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	}
	return NULL;
}
