/* SPDX-License-Identifier: BSD-3-Clause */
/* yamldoc-impl: shared by yamldoc.c and yamldoc-make.c. */
#pragma once

#include "base/yamldoc-load.h"
#include <stdint.h>

struct yamldoc_link {
	int parent;        /* 0: the root */
	int slot;          /* index of the item or pair in the parent */
	uint8_t height;    /* levels below and including this one */
	uint8_t state;     /* of the walk */
	uint64_t expanded; /* nodes below and including this one, aliases followed */
};

struct yamldoc {
	struct yamldoc_values values;
	char *name;
	struct yamldoc_link *links; /* by id − 1 */
	size_t links_room;
};
