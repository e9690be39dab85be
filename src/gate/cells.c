/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/cells.h"
#include <errno.h>
#include <stdlib.h>

int cells_init(struct cells_store *s, uint32_t blocks)
{
	*s = (struct cells_store){.room = blocks + 1, .used = 1};
	s->blocks = pool_array(NULL, 0, s->room * sizeof *s->blocks);
	return s->blocks ? 0 : -ENOMEM;
}

void cells_free(struct cells_store *s)
{
	free(s->blocks);
	*s = (struct cells_store){0};
}

size_t cells_memory(const struct cells_store *s)
{
	return s->room * sizeof *s->blocks;
}
