/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/ids.h"
#include <errno.h>
#include <stdlib.h>

/* Ids may be small numbers: mixed, so that neighbours do not crowd. */
static size_t place_of(const struct ids *ids, uint64_t id)
{
	uint64_t h = id * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(h >> 32) & (ids->room - 1);

	while (ids->slots[at].place && ids->slots[at].id != id)
		at = (at + 1) & (ids->room - 1);
	return at;
}

static int grow(struct ids *ids)
{
	struct ids old = *ids;

	ids->room = old.room ? 2 * old.room : 16;
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
	if (2 * (ids->n + 1) > ids->room && grow(ids))
		return -ENOMEM;
	ids->slots[place_of(ids, id)] = (struct ids_slot){id, place + 1};
	ids->n++;
	return 0;
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
