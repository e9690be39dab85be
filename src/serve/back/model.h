/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: internals of a model back end, shared by its files. Users include back.h.
 *
 *   serve/back/model.c         requests: to the model and to the inner back end; done when both are
 *   serve/back/model-config.c  the name: the model and its parameters
 */
#pragma once

#include <weir/err.h>
#include "model/device.h"

struct back_model_device {
	struct device *device; /* owned */
	bool rotational;
	uint32_t depth;       /* most requests it can use at once */
	uint64_t depth_bytes; /* bytes that keep all its parts busy; 0: unknown */
};

/* Parse "KIND[,KEY=VALUE]…+BACK" into the device and the start of BACK. Errors begin with `model:`
 * and the rest. */
int back_model_device(const char *rest, uint64_t seed, struct back_model_device *ret,
	const char **ret_inner, struct weir_err *err);
