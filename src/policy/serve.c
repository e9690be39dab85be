/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve: the keys that only the gateway uses: its addresses, API, TLS, threads and memory, and
 * access to its back ends.
 */
#include "policy/impl.h"
#include "wire/address.h"
#include <stdio.h>
#include <string.h>

static const char *const tls_keys[] = {"cert", "key", "ca", "psk", "required", NULL};
static const char *const upstream_tls_keys[] = {"cert", "key", "ca", "psk", NULL};
static const char *const socket_keys[] = {"unix", "mode", "group", NULL};
static const char *const log_keys[] = {"level", "form", NULL};
static const char *const level_words[] = {"error", "warning", "info", "debug", NULL};
static const char *const form_words[] = {"text", "json", NULL};

/* ---- addresses */

#define ADDRESS_MAX (ADDRESS_PATH + 80)

/* Convert {unix: PATH, mode: 0660, group: NAME} to one text. */
static const char *socket_text(struct policy_reading *r, yamldoc_node n, char text[ADDRESS_MAX])
{
	const char *path = policy_get_string(r, n, "unix"),
		   *mode = yamldoc_text(yamldoc_get(n, "mode"));
	const char *group = policy_get_string(r, n, "group");

	if (!policy_keys(r, n, socket_keys))
		return NULL;
	if (!path) {
		if (!yamldoc_has(n, "unix"))
			policy_refuse(r, n, "needs 'unix', the path of a socket");
		return NULL;
	}
	if (yamldoc_has(n, "mode") && (!mode || address_mode(mode) < 0)) {
		policy_refuse(r, yamldoc_get(n, "mode"), "must be octal, such as 0660");
		return NULL;
	}
	if (strchr(path, '?') || (group && strpbrk(group, "?&"))) {
		policy_refuse(r, n, "must not contain '?' or '&'");
		return NULL;
	}
	snprintf(text, ADDRESS_MAX, "unix:%.*s%s%s%s%s", ADDRESS_PATH, path, mode ? "?mode=" : "",
		mode ? mode : "", group ? (mode ? "&group=" : "?group=") : "", group ? group : "");
	return text;
}

void policy_serve_read_addresses(
	struct policy_reading *r, yamldoc_node n, bool listens, const char ***list, size_t *used)
{
	bool several = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t many = several ? yamldoc_size(n) : 1;

	if (!n.id || !many)
		return;
	*list = policy_alloc(r, many * sizeof(**list));
	for (size_t i = 0; *list && i < many; i++) {
		yamldoc_node one = several ? yamldoc_at(n, i) : n;
		bool map = listens && yamldoc_kind(one) == YAMLDOC_MAP;
		char made[ADDRESS_MAX];
		const char *text = map ? socket_text(r, one, made) : yamldoc_text(one);
		bool clients = list == &r->policy->listen; /* a protocol may be named */
		struct address ignored;
		struct weir_err why;

		if (map && !text)
			continue;
		if (!text)
			policy_refuse(r, one, "must be unix:PATH or tcp:ADDRESS:PORT");
		else if (address_parse(clients ? address_plain(text) : text, &ignored, &why) < 0)
			policy_refuse(r, one, "%s", why.text);
		else if (((*list)[*used] = policy_string(r, text)))
			(*used)++;
	}
}

/* ---- TLS */

void policy_serve_read_tls(struct policy_reading *r, yamldoc_node n, const char *const *keys,
	struct weir_policy_tls *to)
{
	if (!n.id || !policy_keys(r, n, keys))
		return;
	to->cert = policy_get_string(r, n, "cert");
	to->key = policy_get_string(r, n, "key");
	to->ca = policy_get_string(r, n, "ca");
	to->psk = policy_get_string(r, n, "psk");
	if (keys == tls_keys)
		policy_took(r, yamldoc_bool(n, "required", &to->required, &r->err));
	if (yamldoc_has(n, "cert") && !yamldoc_has(n, "key"))
		policy_refuse(r, n, "a cert needs its key");
	else if (yamldoc_has(n, "key") && !yamldoc_has(n, "cert"))
		policy_refuse(r, n, "a key needs its cert");
}

static void read_server_tls(struct policy_reading *r, yamldoc_node n)
{
	struct weir_policy_tls *tls = &r->policy->tls;
	size_t errors = r->remarks->n_errors;

	policy_serve_read_tls(r, n, tls_keys, tls);
	if (n.id && r->remarks->n_errors == errors && !tls->cert && !tls->psk)
		policy_refuse(r, n, "needs cert and key, or psk, to identify the gateway");
}

/* ---- the top level */

/* Read `log: debug` or `log: {level: debug, form: json}`. */
static void read_log(struct policy_reading *r, yamldoc_node root)
{
	yamldoc_node n = yamldoc_get(root, "log");
	struct weir_policy *p = r->policy;
	int level = p->log_level, form = p->log_form;

	if (yamldoc_kind(n) == YAMLDOC_SCALAR) {
		policy_took(r, yamldoc_choice(root, "log", level_words, &level, &r->err));
	} else if (n.id && policy_keys(r, n, log_keys)) {
		policy_took(r, yamldoc_choice(n, "level", level_words, &level, &r->err));
		policy_took(r, yamldoc_choice(n, "form", form_words, &form, &r->err));
	}
	p->log_level = (enum weir_policy_log_level)level;
	p->log_form = (enum weir_policy_log_form)form;
}

static void read_threads(struct policy_reading *r, yamldoc_node root)
{
	const char *text = yamldoc_text(yamldoc_get(root, "threads"));
	int64_t threads = 0;

	if (text && strcmp(text, "auto") == 0)
		return;
	/* More threads than the largest machine has cores are a mistake. */
	policy_took(r, yamldoc_int(root, "threads", 1, 1024, &threads, &r->err));
	r->policy->threads = (unsigned)threads;
}

static void read_client_timeout(struct policy_reading *r, yamldoc_node root)
{
	yamldoc_node n = yamldoc_get(root, "client_timeout");
	const char *text = yamldoc_text(n);
	weir_time *to = &r->policy->client_timeout;

	if (text && strcmp(text, "none") == 0)
		*to = 0;
	else if (policy_took(r, yamldoc_time(root, "client_timeout", to, &r->err)) == 0 && *to <= 0)
		policy_refuse(r, n, "must be more than 0, or none");
}

void policy_serve_read(struct policy_reading *r, yamldoc_node root)
{
	struct weir_policy *p = r->policy;

	policy_serve_read_addresses(r, yamldoc_get(root, "listen"), true, &p->listen, &p->n_listen);
	policy_serve_read_addresses(r, yamldoc_get(root, "api"), true, &p->api, &p->n_api);
	p->token = policy_get_string(r, root, "token");
	policy_access_read(r, root);
	p->state = policy_get_string(r, root, "state");
	p->recordings = policy_get_string(r, root, "recordings");
	read_threads(r, root);
	read_client_timeout(r, root);
	/* Each thread needs room for some of the largest pieces, 256 KiB each. */
	if (policy_took(r, yamldoc_size_of(root, "memory", &p->buffers, &r->err)) == 0 &&
		p->buffers < 16 << 20)
		policy_refuse(r, yamldoc_get(root, "memory"), "must be at least 16 MiB");
	read_log(r, root);
	read_server_tls(r, yamldoc_get(root, "tls"));
}

/* ---- of a resource and an export */

void policy_serve_read_resource(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	int64_t connections = 0;
	bool lock = true;

	policy_took(r, yamldoc_int(n, "connections", 1, 16, &connections, &r->err));
	to->connections = (unsigned)connections;
	if (policy_took(r, yamldoc_time(n, "timeout", &to->timeout, &r->err)) == 0 &&
		to->timeout <= 0)
		policy_refuse(r, yamldoc_get(n, "timeout"), "must be more than 0");
	if (policy_took(r, yamldoc_time(n, "stall", &to->stall, &r->err)) == 0 &&
		to->stall < POLICY_STALL_LEAST)
		policy_refuse(r, yamldoc_get(n, "stall"), "must be 100ms or more");
	/* At least two of the largest pieces: one kept and one arriving. */
	if (policy_took(r, yamldoc_size_of(n, "keep", &to->keep, &r->err)) == 0 &&
		to->keep < WEIR_POLICY_KEEP_LEAST)
		policy_refuse(r, yamldoc_get(n, "keep"), "must be at least 1 MiB");
	policy_took(r, yamldoc_bool(n, "direct", &to->direct, &r->err));
	policy_took(r, yamldoc_bool(n, "threads", &to->threads, &r->err));
	policy_took(r, yamldoc_bool(n, "read_only", &to->read_only, &r->err));
	policy_took(r, yamldoc_bool(n, "lock", &lock, &r->err));
	to->shared = !lock;
	policy_serve_read_tls(r, yamldoc_get(n, "tls"), upstream_tls_keys, &to->tls);
}

void policy_serve_read_export(struct policy_reading *r, yamldoc_node n, struct weir_export *to)
{
	const struct policy_class *c = policy_class_get(r, n);

	to->class_ = c ? c->name : NULL;
	policy_took(r, yamldoc_bool(n, "read_only", &to->read_only, &r->err));
	to->description = policy_get_string(r, n, "description");
	/* An export's description has at most 4096 bytes in the protocol. */
	if (to->description && strlen(to->description) > 1024)
		policy_refuse(r, yamldoc_get(n, "description"), "has more than 1024 bytes");
}
