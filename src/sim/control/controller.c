/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/controller.h"
#include "sim/control/adaptbf-server.h"
#include "sim/control/learner.h"
#include "sim/control/parda-hosts.h"
#include <stddef.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct sim_controller_ops *const controllers[] = {
	&adaptbf_server_ops, &learner_capacity, &parda_hosts_ops, &tbf_server_ops};

const struct sim_controller_ops *controller_find(const char *name)
{
	for (size_t i = 0; i < N(controllers); i++) {
		if (strcmp(controllers[i]->name, name) == 0)
			return controllers[i];
	}
	return NULL;
}

int controller_choose(yamldoc_node map, const struct sim_controller_ops **ret, struct weir_err *err)
{
	const char *names[N(controllers) + 1] = {NULL};
	int i, r;

	for (size_t k = 0; k < N(controllers); k++)
		names[k] = controllers[k]->name;
	r = yamldoc_choice(map, "kind", names, &i, err);
	if (r == 0)
		*ret = controllers[i];
	return r;
}
