/* SPDX-License-Identifier: BSD-3-Clause */
/* controllers: the table of controllers. controllers.inc has one CONTROLLER(name) per line, made by the build from the list
 * in control/meson.build. */
#include "control/controller.h"

#ifndef CONTROLLERS_MORE
#define CONTROLLERS_MORE /* a test adds one: tests/control/example */
#endif

#define CONTROLLER(name) extern const struct controller name##_controller;
#include "control/controllers.inc"
CONTROLLERS_MORE
#undef CONTROLLER

#define CONTROLLER(name) &name##_controller,
const struct controller *const controllers[] = {
#include "control/controllers.inc"
	CONTROLLERS_MORE NULL};
_Static_assert(sizeof(controllers) / sizeof(*controllers) <= FACTS_KINDS_MAX + 1, "room for all");

const struct controller *controller_in_cluster(void)
{
	size_t i = 0;

	while (!controllers[i]->in_cluster)
		i++;
	return controllers[i];
}

const struct facts_kind *facts_kind(size_t i)
{
	for (size_t k = 0; controllers[k]; k++)
		if (controllers[k]->facts && i-- == 0)
			return controllers[k]->facts;
	return NULL;
}

size_t facts_index(const struct facts_kind *kind)
{
	size_t i = 0;

	while (facts_kind(i) != kind)
		i++;
	return i;
}

const struct facts_kind *facts_stateful(void)
{
	for (size_t k = 0; controllers[k]; k++)
		if (controllers[k]->restore)
			return controllers[k]->facts;
	return NULL;
}
