/* SPDX-License-Identifier: BSD-3-Clause */
/* no-memory: the shared "out of memory" error. */
#pragma once

#include <weir/err.h>
#include <errno.h>

static inline int no_memory(struct weir_err *err)
{
	return weir_err_set(err, -ENOMEM, "out of memory");
}
