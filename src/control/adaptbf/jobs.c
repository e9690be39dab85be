/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs: the table of known jobs: slots that keep their places, found by id through an open hash
 * table. */
#include "control/adaptbf/impl.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t place(const struct adaptbf *a, uint64_t id)
{
	return (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & (2 * a->room - 1);
}

uint32_t adaptbf_find(const struct adaptbf *a, uint64_t id)
{
	if (!a->room)
		return ADAPTBF_NOBODY;
	for (uint32_t i = place(a, id);; i = (i + 1) & (2 * a->room - 1)) {
		uint32_t slot = a->index[i];

		if (slot == ADAPTBF_NOBODY || a->slots[slot].id == id)
			return slot;
	}
}

static void index_slot(struct adaptbf *a, uint32_t slot)
{
	uint32_t i = place(a, a->slots[slot].id);

	while (a->index[i] != ADAPTBF_NOBODY)
		i = (i + 1) & (2 * a->room - 1);
	a->index[i] = slot;
}

int adaptbf_jobs_room(struct adaptbf *a, size_t more)
{
	size_t need = a->known + more;
	uint32_t room = a->room ? a->room : 16, *index;

	if (need <= a->room)
		return 0;
	while (room < need)
		room *= 2;
	if (ledger_grow(a->ledger, room) || array_resize(&a->slots, room) < 0)
		return -ENOMEM;
	index = malloc(2 * (size_t)room * sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(a->index);
	a->index = index;
	memset(index, 0xff, 2 * (size_t)room * sizeof(*index));
	a->room = room;
	for (uint32_t i = 0; i < a->n_slots; i++) {
		if (a->slots[i].id)
			index_slot(a, i);
	}
	return 0;
}

uint32_t adaptbf_add(struct adaptbf *a, uint64_t id)
{
	uint32_t slot = a->free;

	if (slot == ADAPTBF_NOBODY)
		slot = a->n_slots++;
	else
		a->free = a->slots[slot].next_free;
	a->slots[slot] = (struct adaptbf_slot){.id = id, .fresh = true};
	index_slot(a, slot);
	a->known++;
	return slot;
}

/* Entries behind the gap that would no longer be found move up into it. */
static void cut(struct adaptbf *a, uint32_t slot)
{
	uint32_t mask = 2 * a->room - 1, gap = place(a, a->slots[slot].id);

	while (a->index[gap] != slot)
		gap = (gap + 1) & mask;
	for (uint32_t i = (gap + 1) & mask; a->index[i] != ADAPTBF_NOBODY; i = (i + 1) & mask) {
		uint32_t home = place(a, a->slots[a->index[i]].id);

		if (((i - home) & mask) >= ((i - gap) & mask)) {
			a->index[gap] = a->index[i];
			gap = i;
		}
	}
	a->index[gap] = ADAPTBF_NOBODY;
}

void adaptbf_settle(struct adaptbf *a, weir_time now, uint32_t slot)
{
	struct adaptbf_slot *s = &a->slots[slot];
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

void adaptbf_drop(struct adaptbf *a, weir_time now, uint32_t slot)
{
	adaptbf_settle(a, now, slot);
	cut(a, slot);
	a->slots[slot] = (struct adaptbf_slot){.next_free = a->free};
	a->free = slot;
	a->known--;
}
