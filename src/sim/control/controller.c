/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/controller.h"
#include "base/no-memory.h"
#include "sim/control/device.h"
#include "sim/control/learner.h"
#include "sim/control/hosts.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Besides those of control/controller.h. */
static const struct sim_controller_ops *const kinds[] = {&learner_capacity};
#define NAMES 32

const struct sim_controller_ops *sim_controller_find(const char *name)
{
	for (size_t i = 0; i < N(kinds); i++) {
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	}
	return NULL;
}

int controller_choose(yamldoc_node map, const struct sim_controller_ops **ret, struct weir_err *err)
{
	const char *names[NAMES + 1] = {NULL};
	size_t n = N(kinds);
	int i, r;

	for (size_t k = 0; k < N(kinds); k++)
		names[k] = kinds[k]->name;
	for (size_t k = 0; controllers[k] && n < NAMES; k++)
		if (!controllers[k]->in_cluster)
			names[n++] = controllers[k]->name;
	r = yamldoc_choice(map, "kind", names, &i, err);
	if (r)
		return r;
	if ((size_t)i < N(kinds))
		*ret = kinds[i];
	else
		*ret = controller_find(names[i])->has_peers ? &hosts_controller
							    : &device_controller;
	return 0;
}

/* ---- settings */

struct refusal {
	struct weir_err *err;
	int r;
};

/* The first error counts. */
static void refuse(struct controller_check *c, yamldoc_node at, const char *message)
{
	struct refusal *to = c->arg;

	if (to->r == 0)
		to->r = yamldoc_error(at, to->err, "%s", message);
}

int controller_settings_block(const struct controller *c, yamldoc_node map, const char *const *more,
	struct settings *ret, struct weir_err *err)
{
	/* A scenario's gates are apart from the controller: `slot` is written where bytes are shared. */
	struct refusal refusal = {.err = err};
	struct controller_check check = {
		.cost = yamldoc_has(map, "slot") ? WEIR_UNIT_BYTES : WEIR_UNIT_REQUESTS,
		.has_iops = true,
		.map = map,
		.own = map,
		.refuse = refuse,
		.arg = &refusal};
	struct settings s = {.data = calloc(1, c->settings_size), .len = c->settings_size};
	const char *names[KEYS_MOST], *all[KEYS_MOST];
	int r;

	if (!s.data)
		return no_memory(err);
	keys_default(c->keys, s.data, s.len);
	r = yamldoc_map(map,
		keys_names(c->keys, true, true, keys_names(c->keys, false, true, more, names), all),
		err);
	for (const struct key *k = c->keys; r == 0 && k->name; k++)
		r = yamldoc_optional(key_read(k, map, &s, err));
	if (r == 0 && c->check)
		c->check(&s, &check);
	if (r == 0)
		r = refusal.r;
	if (r) {
		free(s.data);
		return r == -ENOMEM ? no_memory(err) : r;
	}
	*ret = s;
	return 0;
}
