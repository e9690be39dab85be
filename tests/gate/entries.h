/* SPDX-License-Identifier: BSD-3-Clause */
/* A timer and its entries, for tests of timer.h and of its parts. */
#ifndef WEIR_TESTS_GATE_ENTRIES_H
#define WEIR_TESTS_GATE_ENTRIES_H

#include "gate/timer.h"
#include "law.h"

/* An entry is part of something larger. */
union block {
	struct timer_entry entry;
	char bytes[POOL_STRIDE];
};

static inline void entries_start(struct timer *t, union block *blocks, uint32_t n)
{
	*t = (struct timer){0};
	for (uint32_t i = 0; i < n; i++)
		blocks[i].entry = (struct timer_entry){.tick = -1};
	CHECK_INT(calendar_fit(t, &blocks->entry, n), 0);
}

#endif
