/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change-new: a requested change, from the caller's arguments. serve/gateway/change.c puts it in force.
 */
#include "serve/gateway/change.h"
#include "serve/gateway/volume-edit.h"
#include "serve/store/state.h"
#include <stdlib.h>
#include <string.h>

void gateway_change_free(struct gateway_change *c)
{
	if (!c)
		return;
	gateway_draft_free(&c->draft);
	gateway_note_free(&c->note);
	gateway_instances_free(&c->instances);
	free(c->states);
	free(c->text);
	free(c->name);
	free(c->key);
	free(c->value);
	free(c->gone);
	free(c->made);
	state_free(c->sets, c->n_sets);
	free((char *)c->volume.name);
	free((char *)c->volume.resource);
	free((char *)c->volume.back);
	free((char *)c->volume.class_);
	free(c);
}

struct gateway_change *gateway_change_apply(
	char *text, size_t len, size_t tenants, const char *name, bool keep, bool dry)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c || !(c->name = strdup(name))) {
		free(text);
		free(c);
		return NULL;
	}
	c->kind = CHANGE_APPLY;
	c->text = text;
	c->tenants_len = tenants < len ? tenants : 0;
	c->len = len - c->tenants_len;
	c->keep = keep;
	c->dry = dry;
	return c;
}

struct gateway_change *gateway_change_set(const char *key, const char *value)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = CHANGE_SET;
	c->key = strdup(key);
	c->value = value ? strdup(value) : NULL;
	if (!c->key || (value && !c->value)) {
		gateway_change_free(c);
		return NULL;
	}
	return c;
}

struct gateway_change *gateway_change_plan(char *text, size_t len, bool dry)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c) {
		free(text);
		return NULL;
	}
	c->kind = CHANGE_PLAN;
	c->text = text;
	c->len = len;
	c->dry = dry;
	return c;
}

struct gateway_change *gateway_change_plan_of_cluster(
	char *text, size_t len, uint64_t number, const char *tenants)
{
	struct gateway_change *c = gateway_change_plan(text, len, false);

	if (c) {
		c->number = number;
		memcpy(c->tenants_digest, tenants, GATEWAY_DIGEST);
	}
	return c;
}

struct gateway_change *gateway_change_reload(void)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (c)
		c->kind = CHANGE_RELOAD;
	return c;
}

struct gateway_change *gateway_change_follow(const struct gateway_override *sets, size_t n)
{
	struct gateway_change *c = gateway_change_reload();

	if (!c)
		return NULL;
	c->follow = true;
	if (state_copy(sets, n, NULL, NULL, &c->sets, &c->n_sets) == 0)
		return c;
	gateway_change_free(c);
	return NULL;
}

void gateway_change_dry(struct gateway_change *c)
{
	if (c)
		c->dry = true;
}

/* Copy a text that may be NULL. */
static bool copied(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

struct gateway_change *gateway_change_volume(const struct gateway_volume_request *q)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = CHANGE_VOLUME;
	c->volume = *q;
	c->volume.name = c->volume.resource = c->volume.back = c->volume.class_ = NULL;
	if (copied(&c->volume.name, q->name) && copied(&c->volume.resource, q->resource) &&
		copied(&c->volume.back, q->back) && copied(&c->volume.class_, q->class_))
		return c;
	gateway_change_free(c);
	return NULL;
}
