/* SPDX-License-Identifier: BSD-3-Clause */
/* container: the structure that a member is part of. */
#pragma once

#include <stddef.h>

/* Return the `type *` whose `member` is at `pointer`. */
#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(void *)(pointer)-offsetof(type, member)))
