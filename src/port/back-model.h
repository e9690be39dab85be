/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-model: the inside of a model back end, shared by its files. Users see back.h.
 *
 *   back-model.c         requests: to the model and to the back end inside, and back when both are over
 *   back-model-config.c  the name: which model, with which parameters
 */
#ifndef WEIR_PORT_BACK_MODEL_H
#define WEIR_PORT_BACK_MODEL_H

#include "base/err.h"
#include "model/device.h"

struct back_model_device {
	struct device *device; /* owned */
	bool rotational;
	uint32_t depth;       /* how many requests it can use at once */
	uint64_t depth_bytes; /* how many bytes keep all of its parts busy; 0: not known */
};

/* "KIND[,KEY=VALUE]…+BACK" into the device, and where BACK begins. Errors name `model:` and the rest. */
int back_model_device(const char *rest, uint64_t seed, struct back_model_device *ret,
	const char **ret_inner, struct weir_err *err);

#endif
