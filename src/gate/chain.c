/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/chain.h"
#include "gate/pool.h"
#include <errno.h>
#include <stdlib.h>

void chain_init(struct chain_store *s)
{
	*s = (struct chain_store){.free = CHAIN_NIL};
}

void chain_free(struct chain_store *s)
{
	free(s->blocks);
	chain_init(s);
}

int chain_room(struct chain_store *s, uint32_t blocks)
{
	if (blocks <= s->room)
		return 0;
	struct chain_block *p =
		pool_array(s->blocks, (size_t)s->room * sizeof *p, (size_t)blocks * sizeof *p);

	if (!p)
		return -ENOMEM;
	s->blocks = p;
	s->room = blocks;
	return 0;
}
