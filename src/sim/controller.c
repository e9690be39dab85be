/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/controller.h"
#include "sim/adaptbf-server.h"
#include "sim/learner.h"
#include "sim/parda-hosts.h"
#include <stddef.h>
#include <string.h>

static const struct sim_controller_ops *const controllers[] = {
	&adaptbf_server_ops, &learner_capacity, &parda_hosts_ops, &tbf_server_ops};

const struct sim_controller_ops *controller_find(const char *name)
{
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		if (strcmp(controllers[i]->name, name) == 0)
			return controllers[i];
	}
	return NULL;
}
