/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: open the gate of a resource in an emergency, and close it again; logged. */
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>

struct asked {
	struct resource *resource;
	bool on;
	uint32_t released;
};

static int turn(void *arg, struct worker *w)
{
	struct asked *a = arg;

	a->released = resource_bypass(a->resource, a->on);
	return 0;
}

static int unknown(const struct gateway *g, const char *name, struct weir_err *err)
{
	const char **names = calloc(g->n_resources + 1, sizeof(*names)), *near = NULL;

	for (size_t i = 0; names && i < g->n_resources; i++)
		names[i] = g->resources[i]->name;
	if (names)
		near = weir_err_near(name, names);
	free(names);
	return weir_err_set(err, -ENOENT, "no resource '%s'%s%s%s", name,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

int gateway_bypass(struct gateway *g, const char *resource, bool on, uint32_t *ret_released,
	struct weir_err *err)
{
	struct gateway_resource *r = gateway_resource(g, resource);
	struct asked a = {.on = on};
	char released[24];

	if (!r)
		return unknown(g, resource, err);
	a.resource = r->resource;
	worker_call(r->worker, turn, &a);
	*ret_released = a.released;
	if (r->bypassed == on)
		return 0;
	r->bypassed = on;
	log_event(on ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, on ? "bypass" : "bypass-off", "resource",
		r->name, "released", on ? log_number(released, a.released) : NULL, NULL);
	return 0;
}

void gateway_bypass_left(struct gateway *g, const struct gateway_resource *old)
{
	uint32_t released;
	struct weir_err err;

	if (!old->bypassed)
		return;
	if (gateway_resource(g, old->name))
		gateway_bypass(g, old->name, true, &released, &err);
	else
		log_event(LOG_LEVEL_INFO, "bypass-off", "resource", old->name, "why",
			"the resource was removed", NULL);
}

const char *gateway_bypassed(const struct gateway *g, size_t i)
{
	for (size_t k = 0; k < g->n_resources; k++)
		if (g->resources[k]->bypassed && i-- == 0)
			return g->resources[k]->name;
	return NULL;
}
