/* SPDX-License-Identifier: BSD-3-Clause */
/* container: the structure that a member is part of. */
#ifndef WEIR_BASE_CONTAINER_H
#define WEIR_BASE_CONTAINER_H

#include <stddef.h>

/* Return the `type *` whose `member` is at `pointer`. */
#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(void *)(pointer)-offsetof(type, member)))

#endif
