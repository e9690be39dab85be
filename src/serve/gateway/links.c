/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/links.h"
#include "serve/gateway/impl.h"

static const struct gateway_link *const *first(const struct gateway *g)
{
	static const struct gateway_link *const none[] = {NULL};

	return g->options.links ? g->options.links : none;
}

int gateway_links_open(struct gateway *g, struct weir_err *err)
{
	int rc = 0;

	for (const struct gateway_link *const *l = first(g); rc >= 0 && *l; l++)
		if ((*l)->open)
			rc = (*l)->open(g, err);
	return rc;
}

int gateway_links_start(struct gateway *g, struct weir_err *err)
{
	int rc = 0;

	for (const struct gateway_link *const *l = first(g); rc >= 0 && *l; l++)
		if ((*l)->start)
			rc = (*l)->start(g, err);
	return rc;
}

int gateway_links_prepare(struct gateway_resource *r)
{
	int rc = 0;

	for (const struct gateway_link *const *l = first(r->gateway); rc >= 0 && *l; l++)
		if ((*l)->prepare)
			rc = (*l)->prepare(r);
	return rc;
}

void gateway_links_join(struct gateway_resource *r)
{
	for (const struct gateway_link *const *l = first(r->gateway); *l; l++)
		if ((*l)->join)
			(*l)->join(r);
}

void gateway_links_leave(struct gateway_resource *r)
{
	for (const struct gateway_link *const *l = first(r->gateway); *l; l++)
		if ((*l)->leave)
			(*l)->leave(r);
}

void gateway_links_forget(struct gateway_resource *r)
{
	for (const struct gateway_link *const *l = first(r->gateway); *l; l++)
		if ((*l)->forget)
			(*l)->forget(r);
}

int gateway_links_fit(const struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	int rc = 0;

	for (const struct gateway_link *const *l = first(g); rc >= 0 && *l; l++)
		if ((*l)->fits)
			rc = (*l)->fits(g, p, err);
	return rc;
}

void gateway_links_policy(struct gateway *g)
{
	for (const struct gateway_link *const *l = first(g); *l; l++)
		if ((*l)->policy)
			(*l)->policy(g);
}

void gateway_links_stop(struct gateway *g)
{
	for (const struct gateway_link *const *l = first(g); *l; l++)
		if ((*l)->stop)
			(*l)->stop(g);
}

void gateway_links_look(const struct gateway *g, struct snapshot *s)
{
	for (const struct gateway_link *const *l = first(g); *l; l++)
		if ((*l)->look)
			(*l)->look(g, s);
}
