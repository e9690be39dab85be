/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/ids.h"
#include <errno.h>
#include <stdlib.h>

/* Ids may be small numbers: mixed, so that neighbours do not crowd. */
static size_t home_of(const struct ids *ids, uint64_t id)
{
	return (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (ids->room - 1);
}

static size_t place_of(const struct ids *ids, uint64_t id)
{
	size_t at = home_of(ids, id);

	while (ids->slots[at].place && ids->slots[at].id != id)
		at = (at + 1) & (ids->room - 1);
	return at;
}

int ids_reserve(struct ids *ids, size_t n)
{
	struct ids old = *ids;

	if (2 * n <= old.room)
		return 0;
	ids->room = old.room ? 2 * old.room : 16;
	while (ids->room < 2 * n)
		ids->room *= 2;
	ids->slots = calloc(ids->room, sizeof(*ids->slots));
	if (!ids->slots) {
		*ids = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].place)
			ids->slots[place_of(ids, old.slots[i].id)] = old.slots[i];
	free(old.slots);
	return 0;
}

int ids_add(struct ids *ids, uint64_t id, uint32_t place)
{
	if (ids_reserve(ids, ids->n + 1))
		return -ENOMEM;
	ids->slots[place_of(ids, id)] = (struct ids_slot){id, place + 1};
	ids->n++;
	return 0;
}

/* Entries behind the gap that would no longer be found move up into it. */
void ids_remove(struct ids *ids, uint64_t id)
{
	size_t mask = ids->room - 1, gap = place_of(ids, id);

	for (size_t i = (gap + 1) & mask; ids->slots[i].place; i = (i + 1) & mask)
		if (((i - home_of(ids, ids->slots[i].id)) & mask) >= ((i - gap) & mask)) {
			ids->slots[gap] = ids->slots[i];
			gap = i;
		}
	ids->slots[gap].place = 0;
	ids->n--;
}

size_t ids_find(const struct ids *ids, uint64_t id)
{
	const struct ids_slot *s;

	if (!ids->room)
		return SIZE_MAX;
	s = &ids->slots[place_of(ids, id)];
	return s->place ? s->place - 1 : SIZE_MAX;
}

void ids_free(struct ids *ids)
{
	free(ids->slots);
	*ids = (struct ids){0};
}
