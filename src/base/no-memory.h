/* SPDX-License-Identifier: BSD-3-Clause */
/* no-memory: the shared "out of memory" error. */
#ifndef WEIR_BASE_NO_MEMORY_H
#define WEIR_BASE_NO_MEMORY_H

#include <weir/err.h>
#include <errno.h>

static inline int no_memory(struct weir_err *err)
{
	return weir_err_set(err, -ENOMEM, "out of memory");
}

#endif
