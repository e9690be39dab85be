/* SPDX-License-Identifier: BSD-3-Clause */
/* controller: a resource's controller and the controller's settings, by its table of keys. */
#include "control/controller.h"
#include "policy/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTROLLERS 32

const char **policy_controller_keys(const char *const *more, const char **names, size_t room)
{
	size_t n = 0;

	while (more[n])
		n++;
	memcpy(names, more, n * sizeof(*names));
	for (size_t i = 0; controllers[i]; i++) {
		for (const struct key *k = controllers[i]->keys; k->name; k++)
			if (k->beside && n < room - 2)
				names[n++] = k->name;
		if (controllers[i]->keys->name && n < room - 2)
			names[n++] = controllers[i]->name;
	}
	names[n] = NULL;
	return names;
}

/* Return false if the map's `controller` was refused. */
static bool read_kind(struct policy_reading *r, yamldoc_node n, const struct controller **ret)
{
	const char *words[CONTROLLERS] = {"none"};
	struct weir_err err;
	int word = 0, rc;

	for (size_t i = 0; controllers[i] && i + 2 < CONTROLLERS; i++)
		words[i + 1] = controllers[i]->name;
	rc = policy_took(r, yamldoc_choice(n, "controller", words, &word, &err), &err);
	*ret = word ? controllers[word - 1] : NULL;
	return rc == 0 || !yamldoc_has(n, "controller");
}

/* Refuse a key of another controller, or its map. */
static void refuse_others(struct policy_reading *r, yamldoc_node n, const struct controller *is)
{
	for (size_t i = 0; controllers[i]; i++) {
		const struct controller *c = controllers[i];

		if (c == is)
			continue;
		if (yamldoc_has(n, c->name))
			policy_refuse(r, n, "%s is for 'controller: %s'", c->name, c->name);
		for (const struct key *k = c->keys; k->name; k++)
			if (k->beside && yamldoc_has(n, k->name))
				policy_refuse(r, n, "%s is for 'controller: %s'", k->name, c->name);
	}
}

static void refuse(struct controller_check *c, yamldoc_node at, const char *message)
{
	policy_refuse(c->arg, at, "%s", message);
}

static void read_keys(struct policy_reading *r, const struct controller *c,
	struct controller_check *check, struct settings *s)
{
	const char *names[KEYS_MOST];
	struct weir_err err;

	if (check->own.id &&
		!policy_keys(r, check->own, keys_names(c->keys, false, false, NULL, names)))
		return;
	for (const struct key *k = c->keys; k->name; k++)
		policy_took(r, key_read(k, k->beside ? check->map : check->own, s, &err), &err);
	if (c->check)
		c->check(s, check);
}

void policy_controller_read(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	const struct controller *c;
	struct controller_check check = {.resource = to->name,
		.cost = to->cost,
		.has_iops = to->capacity_auto || to->capacity[WEIR_UNIT_REQUESTS].per_second > 0,
		.map = n,
		.refuse = refuse,
		.arg = r};
	struct settings s = {0};

	if (!read_kind(r, n, &c))
		return;
	to->controller = c;
	refuse_others(r, n, c);
	if (!c)
		return;
	check.own = yamldoc_get(n, c->name);
	s.len = c->settings_size;
	s.data = calloc(1, s.len + 1);
	if (!s.data) {
		r->no_memory = true;
		return;
	}
	keys_default(c->keys, s.data, s.len);
	read_keys(r, c, &check, &s);
	policy_settings_set(r, to, s.data, s.len);
	free(s.data);
}

bool policy_controller_counts_bytes(const struct weir_resource *r)
{
	return r->settings && r->controller->counts_bytes &&
	       r->controller->counts_bytes(r->settings);
}

void policy_settings_set(
	struct policy_reading *r, struct weir_resource *to, const void *settings, size_t len)
{
	void *copy = policy_alloc(r, len + 1);

	if (copy && len)
		memcpy(copy, settings, len);
	to->settings = copy;
	to->settings_len = len;
}
