/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/room.h"
#include "gate/ahead.h"
#include <errno.h>
#include <string.h>

int room_grow(void *array, size_t old_size, size_t size, bool zero)
{
	void *old, *p;

	memcpy(&old, array, sizeof old);
	p = (zero ? pool_array : pool_array_more)(old, old_size, size);
	if (!p)
		return -ENOMEM;
	memcpy(array, &p, sizeof p);
	return 0;
}

int room_places(struct weir_gate *g, uint32_t room)
{
	if (g->order == WEIR_FAIR || room <= g->room_place)
		return 0;
	for (unsigned i = 0; i < 3; i++)
		if (ROOM_GROW(g->place[i], 2 * (size_t)g->room_place, 2 * (size_t)room))
			return -ENOMEM;
	g->room_place = room;
	for (uint32_t l = 0; l < g->n_lanes; l++)
		lane_places(g->lanes[l], g->place[node_class(g->lanes[l]->slot)]);
	return 0;
}

static uint32_t room_words(uint32_t room, unsigned level)
{
	return (uint32_t)(((uint64_t)room + (UINT64_C(1) << (6 * (level + 1))) - 1) >>
			  (6 * (level + 1)));
}

/* Grow the array of nodes. It moves: repoint the buckets that are stored in nodes. */
static int room_nodes(struct weir_gate *g, uint32_t room)
{
	if (ROOM_MORE(g->nodes, g->room, room))
		return -ENOMEM;
	g->home.nodes = (char *)g->nodes;
	g->timer.entries = (char *)&g->nodes->timer;
	for (uint32_t n = 0; n < g->n_nodes; n++)
		if (limits_own(&g->nodes[n].limits))
			g->nodes[n].limits.b = g->nodes[n].own;
	return 0;
}

int room_fit(struct weir_gate *g, uint32_t room)
{
	int r = room_nodes(g, room);

	if (!r)
		r = calendar_fit(&g->timer, &g->nodes->timer, room);
	if (!r)
		r = ROOM_MORE(g->apart, g->room, room);
	if (!r)
		r = ahead_fit(&g->ahead, room);
	if (!r)
		r = room_places(g, room);
	if (!r && g->order == WEIR_EDF)
		r = ROOM_GROW(g->deadline, g->room, room);
	for (unsigned i = 0; !r && i < 3; i++)
		r = ROOM_GROW(
			g->pending[i], g->room ? room_words(g->room, i) : 0, room_words(room, i));
	if (!r && g->stats) {
		r = ROOM_GROW(g->stats->of, g->room, room);
		for (uint32_t n = g->room; !r && n < room; n++)
			g->stats->of[n] = NODE_NIL;
	}
	if (!r)
		g->room = room;
	return r;
}

size_t weir_gate_memory(const struct weir_gate *g)
{
	size_t bytes = sizeof *g + g->pool.bytes +
		       (g->ahead.node ? AHEAD_NOTED * sizeof *g->ahead.node : 0);

	bytes += g->room * (sizeof *g->nodes + sizeof *g->apart) + calendar_memory(&g->timer);
	bytes += g->room / 8 + (g->deadline ? g->room * sizeof *g->deadline : 0);
	bytes += g->room_place * 6 * sizeof **g->place;
	bytes += g->room_lanes * sizeof *g->lanes + g->n_lanes * sizeof **g->lanes;
	for (uint32_t l = 0; l < g->n_lanes; l++)
		bytes += lane_memory(g->lanes[l]);
	for (uint32_t n = 0; n < g->n_nodes; n++)
		if (g->nodes[n].flags & NODE_INNER)
			bytes += sizeof *g->nodes[n].inner +
				 (g->nodes[n].inner->priority
						 ? NODE_PRIORITIES * sizeof(struct lane *)
						 : 0);
	if (g->stats)
		bytes += sizeof *g->stats + g->room * sizeof *g->stats->of +
			 (g->stats->used + g->stats->spare) * sizeof(struct hist_pair);
	return bytes;
}
