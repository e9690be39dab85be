/* SPDX-License-Identifier: BSD-3-Clause */
/* post: the messages of a simulated cluster, as bytes, late or lost. */
#include "base/array.h"
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <stdlib.h>

/* Return an empty message; NULL: no memory. */
static struct sim_message *take_message(struct sim_cluster *c, size_t bytes, uint32_t *ret_index)
{
	struct sim_message *p;

	if (c->n_free) {
		*ret_index = c->free_slots[--c->n_free];
	} else {
		if (array_grow(&c->slots, &c->room_slots, c->n_slots + 1) < 0 ||
			array_grow(&c->free_slots, &c->room_free, c->n_slots + 1) < 0)
			return NULL;
		c->slots[c->n_slots] = (struct sim_message){0};
		*ret_index = (uint32_t)c->n_slots++;
	}
	p = &c->slots[*ret_index];
	if (p->room < bytes) {
		free(p->bytes);
		p->bytes = malloc(bytes);
		p->room = p->bytes ? bytes : 0;
	}
	return p->bytes ? p : NULL;
}

static bool is_cut(const struct sim_cluster *c, uint32_t server)
{
	const struct sim_cluster_config *g = &c->config;

	return g->cut == server + 1 && c->now >= g->cut_from && c->now < g->cut_to;
}

void sim_post_send(struct sim_cluster *c, uint32_t server, uint32_t leader, bool up,
	const struct lease_message *m)
{
	weir_time at = c->now + c->config.delay;
	uint32_t i;
	struct sim_message *p = take_message(c, LEASE_FRAME(m->n), &i);

	c->messages[!up] += !leader;
	if (!p) {
		c->failed = -ENOMEM;
		return;
	}
	p->server = server;
	p->leader = leader;
	p->up = up;
	p->n = lease_write(p->bytes, m);
	c->bytes[!up] += leader ? 0 : p->n + PEER_SEAL;
	if (rng_double(&c->rng) < c->config.loss ||
		is_cut(c, server) != (leader && is_cut(c, leader - 1))) {
		c->free_slots[c->n_free++] = i;
		return;
	}
	if (heap_push(&c->under_way,
		    (struct heap_item){.key = at, .serial = c->posted++, .value = i}))
		c->failed = -ENOMEM;
}

#define FOR_EVER (1 << 20) /* periods */

static int to_server(struct sim_cluster *c, struct sim_server *s)
{
	int r = sim_server_look(s);

	if (c->config.without == SIM_CLUSTER_WITHOUT_EXPIRY && c->in.kind == LEASE_GRANT)
		c->in.grant.hold = FOR_EVER;
	if (r == 0 && c->machine->receive(s->machine, c->now + s->offset, &c->in) == PEER_TAKEN)
		r = sim_server_look(s);
	return r;
}

int sim_post_deliver(struct sim_cluster *c)
{
	int r = 0;

	while (r == 0 && c->under_way.n && heap_min(&c->under_way)->key <= c->now) {
		uint32_t i = (uint32_t)heap_pop(&c->under_way).value;
		const struct sim_message *p = &c->slots[i];
		uint32_t server = p->server;
		void *leader = sim_cluster_leader(c, p->leader);
		bool up = p->up;

		r = lease_read(p->bytes, p->n, &c->in) == PEER_TAKEN ? 0 : -EPROTO;
		c->free_slots[c->n_free++] = i;
		if (r == 0 && up && leader)
			c->lead->receive(leader, c->now, &c->in);
		else if (r == 0 && !up)
			r = to_server(c, &c->servers[server]);
	}
	return r;
}

void sim_post_end(struct sim_cluster *c)
{
	for (size_t i = 0; i < c->n_slots; i++)
		free(c->slots[i].bytes);
	heap_free(&c->under_way);
	lease_message_free(&c->in);
	free(c->slots);
	free(c->free_slots);
}
