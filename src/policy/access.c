/* SPDX-License-Identifier: BSD-3-Clause */
/* access: the key `access`: which client of the API has which role, and how it proves itself. */
#include "policy/impl.h"
#include "base/field.h"
#include "wire/address.h"
#include <errno.h>
#include <string.h>

static const char *const access_keys[] = {"tls", "tokens", "audit", "clients", NULL};
static const char *const tls_keys[] = {"cert", "key", "ca", NULL};
static const char *const client_keys[] = {"user", "group", "cert", "role", NULL};
static const char *const roles[] = {"read", "operate", "admin", NULL}; /* POLICY_ROLE_READ on */

const char *policy_role_name(enum policy_role r)
{
	return r >= POLICY_ROLE_READ && r < POLICY_ROLES ? roles[r - POLICY_ROLE_READ] : "none";
}

int policy_role_read(const char *name)
{
	int i = field_index(roles, name);

	return i < 0 ? -EINVAL : i + POLICY_ROLE_READ;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool policy_access_same(const struct policy_access *a, const struct policy_access *b)
{
	bool same = policy_tls_same(&a->tls, &b->tls) && same_text(a->tokens, b->tokens) &&
		    same_text(a->audit, b->audit) && a->n_clients == b->n_clients;

	for (size_t i = 0; same && i < a->n_clients; i++) {
		const struct policy_access_client *x = &a->clients[i], *y = &b->clients[i];

		same = same_text(x->user, y->user) && same_text(x->group, y->group) &&
		       same_text(x->cert, y->cert) && x->role == y->role;
	}
	return same;
}

static void read_client(struct policy_reading *r, yamldoc_node n, struct policy_access_client *to)
{
	int role = -1;

	if (!policy_keys(r, n, client_keys))
		return;
	to->user = policy_get_string(r, n, "user");
	to->group = policy_get_string(r, n, "group");
	to->cert = policy_get_string(r, n, "cert");
	if (yamldoc_has(n, "user") + yamldoc_has(n, "group") + yamldoc_has(n, "cert") != 1)
		policy_refuse(r, n, "needs one of user, group and cert");
	if (policy_took(r, yamldoc_choice(n, "role", roles, &role, &r->err)) == -ENOENT)
		policy_refuse(r, n, "needs a role: read, operate or admin");
	to->role = role < 0 ? POLICY_ROLE_NONE : (enum policy_role)(role + POLICY_ROLE_READ);
	if (to->cert && !r->policy->access.tls.ca)
		policy_refuse(r, n, "a certificate is verified by 'ca' in 'tls', which is missing");
}

static void read_clients(struct policy_reading *r, yamldoc_node n, struct policy_access *to)
{
	size_t many = yamldoc_size(n);

	if (!n.id)
		return;
	if (yamldoc_kind(n) != YAMLDOC_LIST) {
		policy_refuse(r, n, "must be a list, such as [{group: ops, role: operate}]");
		return;
	}
	to->clients = policy_alloc(r, many * sizeof(*to->clients));
	for (size_t i = 0; to->clients && i < many; i++) {
		to->clients[i] = (struct policy_access_client){0};
		read_client(r, yamldoc_at(n, i), &to->clients[to->n_clients++]);
	}
}

static bool has_cert(const struct policy_access *a)
{
	for (size_t i = 0; i < a->n_clients; i++)
		if (a->clients[i].cert)
			return true;
	return false;
}

/* A client of the API may change the policy. A unix socket has its file's permissions; a client by TCP must prove that it may, and
 * TCP beyond this machine needs TLS. */
static void check_tcp(struct policy_reading *r, yamldoc_node root)
{
	const struct weir_policy *p = r->policy;
	bool proves = yamldoc_has(root, "token") || p->access.tokens || has_cert(&p->access);
	struct weir_err ignored;
	struct address a;

	for (size_t i = 0; i < p->n_api; i++) {
		if (address_parse(p->api[i], &a, &ignored) < 0 || a.is_unix)
			continue;
		if (!proves)
			policy_refuse(r, yamldoc_get(root, "api"),
				"on TCP it needs a token: the name of a file that holds it, or "
				"tokens "
				"or certificates in 'access'");
		else if (!address_is_local(&a) && !yamldoc_has(yamldoc_get(root, "access"), "tls"))
			policy_refuse(r, yamldoc_get(root, "api"),
				"%s: on TCP beyond this machine it needs TLS: access: {tls: {cert: "
				"FILE, key: FILE}}",
				p->api[i]);
		else
			continue;
		return;
	}
}

void policy_access_read(struct policy_reading *r, yamldoc_node root)
{
	yamldoc_node n = yamldoc_get(root, "access"), tls = yamldoc_get(n, "tls");
	struct policy_access *to = &r->policy->access;

	if (n.id && policy_keys(r, n, access_keys)) {
		policy_serve_read_tls(r, tls, tls_keys, &to->tls);
		if (tls.id && !yamldoc_has(tls, "cert"))
			policy_refuse(r, tls, "needs cert and key, to identify the gateway");
		to->tokens = policy_get_string(r, n, "tokens");
		to->audit = policy_get_string(r, n, "audit");
		read_clients(r, yamldoc_get(n, "clients"), to);
	}
	check_tcp(r, root);
}
