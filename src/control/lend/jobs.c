/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs: the table of known jobs: slots that keep their places, found by id. */
#include "control/lend/impl.h"
#include "base/array.h"
#include <errno.h>

_Static_assert((uint32_t)SIZE_MAX == LEND_NOBODY, "an unknown id");

uint32_t lend_find(const struct lend *a, uint64_t id)
{
	return (uint32_t)ids_find(&a->index, id);
}

int lend_jobs_room(struct lend *a, size_t more)
{
	size_t need = a->known + more;
	uint32_t room = a->room ? a->room : 16;

	if (need <= a->room)
		return 0;
	while (room < need)
		room *= 2;
	if (ledger_grow(a->ledger, room) || array_resize(&a->slots, room) < 0 ||
		ids_reserve(&a->index, room))
		return -ENOMEM;
	a->room = room;
	return 0;
}

uint32_t lend_add(struct lend *a, uint64_t id)
{
	uint32_t slot = a->free;

	if (slot == LEND_NOBODY)
		slot = a->n_slots++;
	else
		a->free = a->slots[slot].next_free;
	a->slots[slot] = (struct lend_slot){.id = id, .fresh = true};
	(void)ids_add(&a->index, id, slot); /* there is room */
	a->known++;
	return slot;
}

void lend_settle(struct lend *a, weir_time now, uint32_t slot)
{
	struct lend_slot *s = &a->slots[slot];
	int64_t debt, claim;

	ledger_drop(a->ledger, now, slot, &debt, &claim);
	a->state.tombstone += s->record;
	if (s->record < 0)
		a->state.written_off -= s->record;
	else
		a->state.forfeited += s->record;
	s->record = 0;
	s->remainder = s->reclaim = 0;
	s->fresh = true;
}

void lend_drop(struct lend *a, weir_time now, uint32_t slot)
{
	lend_settle(a, now, slot);
	ids_remove(&a->index, a->slots[slot].id);
	a->slots[slot] = (struct lend_slot){.next_free = a->free};
	a->free = slot;
	a->known--;
}
