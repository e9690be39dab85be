/* SPDX-License-Identifier: BSD-3-Clause */
/* volume-view: volumes for a list, and the URIs at which clients reach them. */
#include "policy/each.h"
#include "policy/index.h"
#include "serve/gateway/impl.h"
#include "serve/snapshot/version.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write the tenant that every client of an export has, or will have once the template made it; "": it depends on the client. */
static void name_tenant(const struct weir_policy *p, const char *export_, char *ret, size_t room)
{
	struct weir_who who = {.export_ = export_};
	char name[POLICY_EACH_NAME];
	int of, tenant = policy_each_match(p, &who, &of);
	const struct weir_tenant *t = tenant >= 0 ? &p->tenants[tenant] : NULL;

	*ret = '\0';
	if (tenant == -EAGAIN && policy_each_name(p->tenants[of].each, &who, name))
		snprintf(ret, room, "%s/%s", p->tenants[of].path, name);
	else if (t && (!t->others || policy_each_name(p->tenants[t->parent].each, &who, name)))
		snprintf(ret, room, "%s", t->path);
}

const char *gateway_volume_trouble(const struct gateway_volume *v)
{
	static const char *const away[] = {[BACK_UP] = NULL,
		[BACK_STARTING] = "its back end was not reached yet",
		[BACK_LOST] = "its back end is lost: requests wait",
		[BACK_FAILED] = "its back end failed: requests fail until it is back"};
	const struct back *b = back_real(v->back);

	if (atomic_load(&b->shrunk))
		return BACK_SHRUNK "; no new client is accepted";
	if (away[b->state])
		return away[b->state];
	return atomic_load(&v->counts.stalled) ? "it is stalled: requests inside are not completed"
					       : b->trouble;
}

static void view(
	const struct gateway *g, const struct weir_export *e, struct gateway_volume_view *to)
{
	static const char *const from[] = {"file", "api", "dir"};
	const struct gateway_volume *v = gateway_volume_find(g, e->name);

	*to = (struct gateway_volume_view){.name = e->name,
		.resource = g->policy->resources[e->resource].name,
		.back = e->back,
		.class_ = e->class_,
		.from = from[e->from],
		.open = v != NULL};
	name_tenant(g->policy, e->name, to->tenant, sizeof(to->tenant));
	if (!*to->tenant && !policy_match_serves(g->policy, e->name))
		to->trouble = "no tenant matches it: its clients are refused";
	if (!v)
		return;
	to->trouble = gateway_volume_trouble(v) ? gateway_volume_trouble(v) : to->trouble;
	to->size = v->known ? v->size : 0;
	to->clients = atomic_load_explicit(&v->counts.clients, memory_order_relaxed);
	to->requests = atomic_load_explicit(&v->counts.requests, memory_order_relaxed);
	to->bytes = atomic_load_explicit(&v->counts.bytes, memory_order_relaxed);
}

bool gateway_volume_view(
	struct gateway *g, const char *name, size_t i, struct gateway_volume_view *ret)
{
	const struct weir_policy *p = g->policy;
	int found = name ? policy_index_export(p, name) : -1;

	if (!name)
		found = i < p->n_exports ? (int)i : -1;
	if (found < 0)
		return false;
	*ret = (struct gateway_volume_view){0};
	if (p->exports[found].back)
		view(g, &p->exports[found], ret);
	return !name || ret->name;
}

const char *gateway_volume_unserved(const struct gateway *g, size_t i)
{
	return i < g->unserved.n ? g->unserved.lines[i] : NULL;
}

const char *gateway_volume_remark(const struct gateway *g, size_t i)
{
	const struct gateway_note *n = &g->in_force->remarks;

	return i < n->n ? n->lines[i] : NULL;
}

/* ---- URIs */

static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-._~/", c);

		fprintf(f, plain ? "%c" : "%%%02X", c);
	}
}

/* HOST:PORT, with this machine's name where it listens at every address. */
static void put_host(FILE *f, const char *address)
{
	static const char *const any[] = {"0.0.0.0:", "[::]:", "*:"};
	char name[256] = "localhost";

	for (size_t i = 0; i < sizeof(any) / sizeof(*any); i++)
		if (strncmp(address, any[i], strlen(any[i])) == 0) {
			gethostname(name, sizeof(name) - 1);
			fprintf(f, "%s:%s", name, address + strlen(any[i]));
			return;
		}
	fputs(address, f);
}

static void put_uri(FILE *f, const char *address, bool tls, const char *export_)
{
	bool local = strncmp(address, "unix:", 5) == 0;

	fprintf(f, "nbd%s%s://", tls ? "s" : "", local ? "+unix" : "");
	if (!local)
		put_host(f, address + strlen("tcp:"));
	fputc('/', f);
	put_escaped(f, export_);
	if (local) {
		fputs("?socket=", f);
		put_escaped(f, address + 5);
	}
}

char *gateway_uri(const struct gateway *g, const char *export_)
{
	const struct gateway_listener *l = NULL;
	bool tls = g->tls && g->policy->tls.required;
	char *text = NULL;
	size_t len;
	FILE *f;

	for (size_t i = 0; i < g->n_listeners && !l; i++)
		if (g->listeners[i]->front == gateway_fronts[0] &&
			(strncmp(g->listeners[i]->address, "unix:", 5) == 0 ||
				strncmp(g->listeners[i]->address, "tcp:", 4) == 0))
			l = g->listeners[i];
	f = l ? open_memstream(&text, &len) : NULL;
	if (!f)
		return NULL;
	put_uri(f, l->address, tls, export_);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
