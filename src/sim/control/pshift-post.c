/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-post: the messages of a simulated cluster, as bytes, late or lost. */
#include "sim/control/pshift-cluster.h"
#include <errno.h>
#include <stdlib.h>

static int make_room(struct pshift_cluster *c)
{
	size_t room = c->room_parcels ? 2 * c->room_parcels : 256;
	void *a, *b;

	if (c->n_parcels < c->room_parcels)
		return 0;
	a = realloc(c->parcels, room * sizeof(*c->parcels));
	b = a ? realloc(c->free_parcels, room * sizeof(*c->free_parcels)) : NULL;
	c->parcels = a ? a : c->parcels;
	c->free_parcels = b ? b : c->free_parcels;
	if (!a || !b)
		return -ENOMEM;
	c->room_parcels = room;
	return 0;
}

/* Return an empty parcel; NULL: no memory. */
static struct pshift_parcel *take(struct pshift_cluster *c, size_t bytes, uint32_t *ret_index)
{
	struct pshift_parcel *p;

	if (c->n_free) {
		*ret_index = c->free_parcels[--c->n_free];
	} else {
		if (make_room(c))
			return NULL;
		c->parcels[c->n_parcels] = (struct pshift_parcel){0};
		*ret_index = (uint32_t)c->n_parcels++;
	}
	p = &c->parcels[*ret_index];
	if (p->room < bytes) {
		free(p->bytes);
		p->bytes = malloc(bytes);
		p->room = p->bytes ? bytes : 0;
	}
	return p->bytes ? p : NULL;
}

static bool is_cut(const struct pshift_cluster *c, uint32_t server)
{
	const struct pshift_cluster_config *g = &c->config;

	return g->cut == server + 1 && c->now >= g->cut_from && c->now < g->cut_to;
}

void pshift_post_send(struct pshift_cluster *c, uint32_t server, uint32_t leader, bool up,
	const struct lease_message *m)
{
	weir_time at = c->now + c->config.delay;
	uint32_t i;
	struct pshift_parcel *p = take(c, LEASE_FRAME(m->n), &i);

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
		c->free_parcels[c->n_free++] = i;
		return;
	}
	if (heap_push(&c->under_way,
		    (struct heap_item){.key = at, .serial = c->posted++, .value = i}))
		c->failed = -ENOMEM;
}

#define FOR_EVER (1 << 20) /* periods */

static int to_server(struct pshift_cluster *c, struct pshift_site *s)
{
	int r = pshift_site_look(s);

	if (c->config.without == PSHIFT_CLUSTER_WITHOUT_EXPIRY && c->in.kind == LEASE_GRANT)
		c->in.grant.hold = FOR_EVER;
	if (r == 0 && pshift_server_receive(s->server, c->now + s->offset, &c->in) == PEER_TAKEN)
		r = pshift_site_look(s);
	return r;
}

int pshift_post_deliver(struct pshift_cluster *c)
{
	int r = 0;

	while (r == 0 && c->under_way.n && heap_min(&c->under_way)->key <= c->now) {
		uint32_t i = (uint32_t)heap_pop(&c->under_way).value;
		const struct pshift_parcel *p = &c->parcels[i];
		uint32_t server = p->server;
		struct pshift_control *leader = pshift_cluster_leader(c, p->leader);
		bool up = p->up;

		r = lease_read(p->bytes, p->n, &c->in) == PEER_TAKEN ? 0 : -EPROTO;
		c->free_parcels[c->n_free++] = i;
		if (r == 0 && up && leader)
			pshift_control_receive(leader, c->now, &c->in);
		else if (r == 0 && !up)
			r = to_server(c, &c->sites[server]);
	}
	return r;
}

void pshift_post_end(struct pshift_cluster *c)
{
	for (size_t i = 0; i < c->n_parcels; i++)
		free(c->parcels[i].bytes);
	heap_free(&c->under_way);
	lease_message_free(&c->in);
	free(c->parcels);
	free(c->free_parcels);
}
