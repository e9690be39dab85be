/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-show-gateway: the parts of a policy that only the gateway uses, as text and as JSON. */
#include "serve/show/policy-show.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const char *const form_names[] = {"text", "json"};

static void show_list(const char *name, const char *const *list, size_t n, FILE *to)
{
	for (size_t i = 0; i < n; i++)
		fprintf(to, "%s%s%s", i ? ", " : "  ", i ? "" : name, list[i]);
	if (n)
		fputc('\n', to);
}

void policy_show_export(const struct weir_policy *p, size_t i, FILE *to)
{
	const struct weir_export *e = &p->exports[i];
	char a[32], b[32];

	if (e->back) {
		fprintf(to, "%sVOLUME %s: %s behind %s%s%s%s\n", i ? "" : "\n", e->name, e->back,
			p->resources[e->resource].name, e->class_ ? ", class " : "",
			e->class_ ? e->class_ : "", e->read_only ? ", read-only" : "");
		return;
	}
	fprintf(to, "%sEXPORT %s: %s from %s, %s%s\n", i ? "" : "\n", e->name,
		p->resources[e->resource].name, weir_units_show_size(e->offset, a, sizeof(a)),
		e->size ? weir_units_show_size(e->size, b, sizeof(b)) : "up to its end",
		e->read_only ? ", read-only" : "");
}

void policy_show_gateway(const struct weir_policy *p, FILE *to)
{
	char a[32];

	if (!p->n_listen && !p->n_api)
		return;
	fprintf(to, "\nGATEWAY\n");
	show_list("listens on ", p->listen, p->n_listen, to);
	show_list("has its API on ", p->api, p->n_api, to);
	if (p->tls.cert || p->tls.psk)
		fprintf(to, "  speaks TLS%s\n", p->tls.required ? " only" : "");
	if (p->state)
		fprintf(to, "  keeps overrides in %s\n", p->state);
	if (p->recordings)
		fprintf(to, "  records into %s\n", p->recordings);
	if (p->threads)
		fprintf(to, "  has %u threads\n", p->threads);
	if (p->buffers)
		fprintf(to, "  has %s for payloads\n",
			weir_units_show_size(p->buffers, a, sizeof(a)));
}

/* ---- JSON; null: not stated */

static json_t *json_list(const char *const *list, size_t n)
{
	json_t *to = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(to, json_string(list[i]));
	return to;
}

/* Shows where keys are stored, never the keys. */
json_t *policy_show_json_gateway(const struct weir_policy *p)
{
	return json_pack("{s:o, s:o, s:s*, s:s*, s:s*, s:o, s:o, s:{s:s, s:s}, s:{s:s*, s:s*, "
			 "s:s*, s:s*, s:b}}",
		"listen", json_list(p->listen, p->n_listen), "api", json_list(p->api, p->n_api),
		"token", p->token, "state", p->state, "recordings", p->recordings, "threads",
		p->threads ? json_integer(p->threads) : json_string("auto"), "memory",
		p->buffers ? json_integer((json_int_t)p->buffers) : json_null(), "log", "level",
		level_names[p->log_level], "form", form_names[p->log_form], "tls", "cert",
		p->tls.cert, "key", p->tls.key, "ca", p->tls.ca, "psk", p->tls.psk, "required",
		p->tls.required);
}

static json_t *json_some(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

json_t *policy_show_json_reach(const struct weir_resource *r)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:b}", "connections", json_some(r->connections),
		"timeout", r->timeout ? json_real((double)r->timeout / WEIR_SEC) : json_null(),
		"keep", json_some(r->keep), "direct", r->direct, "threads", r->threads, "read_only",
		r->read_only);
}
