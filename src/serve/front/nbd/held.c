/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held: the answers about weir:held (wire/nbd.h).
 *
 * LAW     (request·ns for which limits held its tenant's requests) / (requests that returned), both
 *         since the last query. By Little's law that is the mean per request, whichever of the
 *         tenant's clients sent it: a tenant has one queue.
 * EXAMPLE A max of 100 iops and 64 outstanding: 64 request·s are held in a second, by 100 requests:
 *         640 ms.
 */
#include "serve/front/nbd/nbd.h"

static uint32_t mean_us(const struct front_held *now, const struct front_held *was)
{
	double ns = now->ns - was->ns, us;

	if (!(ns > 0) || now->served < was->served) /* a recreated node begins at 0 */
		return 0;
	us = ns / WEIR_US / (now->served > was->served ? (double)(now->served - was->served) : 1);
	return us < NBD_HELD_MOST ? (uint32_t)us : NBD_HELD_MOST;
}

bool front_nbd_held(struct front_nbd_conn *c)
{
	const struct nbd_request *q = &c->request;
	uint32_t block = c->conn.info->block_min ? c->conn.info->block_min : 1;
	struct front_held now;

	if (!c->tells_held)
		return false;
	if (!c->base_allocation ||
		(q->offset == 0 && q->length == block && q->flags & NBD_REQ_ONE)) {
		c->conn.gate->held(c->conn.client.resource, &c->conn.client, &now);
		c->told = mean_us(&now, &c->asked);
		c->asked = now;
		return true;
	}
	return false;
}
