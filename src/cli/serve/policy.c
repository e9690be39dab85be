/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: the operand of `weir serve`: a policy file, or the name of a back end, from which a
 * policy is made.
 */
#include "base/no-memory.h"
#include "cli/serve/serve.h"
#include "plan/planning.h"
#include "serve/back/back.h"
#include "serve/gateway/gateway.h"
#include "serve/peer/peer.h"
#include "serve/loop/stream.h"
#include "cli/common/files.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Return true if the operand is the name of a back end, with a "SCHEME:"; an existing file is a
 * file, whatever its name.
 */
static bool is_back_name(const char *operand)
{
	return strchr(operand, ':') && access(operand, F_OK) != 0;
}

/* Make the policy of a back end, with one tenant for all clients. */
static int make_text(const char *back, char **ret_text, struct weir_err *err)
{
	size_t len;
	FILE *f;
	int rc = back_check(back, err);

	if (rc < 0)
		return rc;
	f = open_memstream(ret_text, &len);
	if (!f)
		return no_memory(err);
	fputs("resources:\n  - {name: disk, depth: auto, back: ", f);
	files_put_quoted(f, back, strlen(back));
	fputs("}\ntenants:\n  - {name: everybody, match: {export: \"*\"}}\n", f);
	return fclose(f) == 0 ? 0 : no_memory(err);
}

static void print_warnings(const struct weir_policy_remarks *remarks)
{
	for (size_t i = 0; i < remarks->n_warnings && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s (warning)\n", remarks->warnings[i].text);
}

static int parse_policy(struct serve_policy *s, bool lab, struct weir_err *err)
{
	static struct weir_policy_remarks remarks;
	int rc = policy_parse_lab(s->text, strlen(s->text), s->name, lab, files_read_beside, NULL,
		&s->policy, &remarks);

	print_warnings(&remarks);
	if (rc < 0)
		*err = remarks.errors[0];
	else if ((rc = policy_lab_served(s->policy, err)) < 0)
		weir_policy_free(s->policy);
	return rc;
}

int serve_policy_read(const char *operand, bool lab, struct serve_policy *ret, struct weir_err *err)
{
	struct serve_policy s = {.name = operand, .back_only = is_back_name(operand)};
	size_t len;
	int rc = s.back_only ? make_text(operand, &s.text, err)
			     : files_read(operand, FILES_WRITTEN, &s.text, &len, err);

	if (rc < 0)
		return rc;
	rc = parse_policy(&s, lab, err);
	if (rc < 0) {
		free(s.text);
		return rc;
	}
	*ret = s;
	return 0;
}

/* Check each peer by itself, then all together. */
static int check_peers(const struct weir_policy_peers *p, struct weir_err *err)
{
	const char **all = calloc(p->n_to + 1, sizeof(*all)); /* ends with NULL */
	struct weir_err why;
	int rc = 0;

	if (!all)
		return no_memory(err);
	for (size_t i = 0; rc == 0 && i < p->n_to; i++) {
		const char *const one[] = {all[i] = p->to[i], NULL};

		if (peer_check(one, &why) < 0)
			rc = weir_err_at(err, -EINVAL, p->to_at[i], "peers: %s", why.text);
	}
	if (rc == 0 && p->n_to && peer_check(all, &why) < 0)
		rc = weir_err_at(err, -EINVAL, p->to_at[0], "%s", why.text);
	if (rc == 0 && p->listen && peer_listen_check(p->listen, &why) < 0)
		rc = weir_err_at(err, -EINVAL, p->listen_at, "peers: listen: %s", why.text);
	free(all);
	return rc;
}

int serve_policy_names(const struct weir_policy *p, struct weir_err *err)
{
	if (gateway_backs_check(p, err) < 0)
		return -EINVAL;
	if (gateway_files_once(p, err) < 0)
		return -EINVAL;
	return check_peers(&p->peers, err);
}

/* An NBD client is identified by its export, address, user and TLS name. */
static int check_matches(const struct weir_policy *p, struct weir_err *err)
{
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match; k++)
			if (p->tenants[i].match[k].path)
				return weir_err_at(err, -EINVAL, p->tenants[i].match[k].at,
					"'%s' matches a path, which NBD requests do not have",
					p->tenants[i].path);
	return 0;
}

static int check_exports(const struct weir_policy *p, struct weir_err *err)
{
	for (size_t i = 0; i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];
		const struct weir_resource *r = &p->resources[e->resource];
		uint64_t size;

		if (r->back && back_size(r->back, &size) == 0 &&
			gateway_export_fits(e, r->name, size, err) < 0)
			return -EINVAL;
	}
	return 0;
}

/* Return the n-th file of the policy with a secret; NULL: not given. */
#define SECRETS 6 /* in addition to two of each resource */
static const char *secret_file(const struct weir_policy *p, const char *token, size_t n)
{
	const char *const own[SECRETS] = {token ? token : p->token, p->access.tls.key, p->tls.key,
		p->tls.psk, p->peers.key, p->cluster.key};
	const struct weir_policy_tls *tls;

	if (n < SECRETS)
		return own[n];
	tls = &p->resources[(n - SECRETS) / 2].tls;
	return (n - SECRETS) % 2 ? tls->psk : tls->key;
}

const char *serve_policy_bare_secret(const struct weir_policy *p, const char *token)
{
	for (size_t n = 0; n < SECRETS + 2 * p->n_resources; n++) {
		const char *file = secret_file(p, token, n);
		struct stat st;

		if (file && stat(file, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH))
			return file;
	}
	return NULL;
}

static int check_sockets(const struct weir_policy *p, struct weir_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_listen; i++)
		rc = gateway_listen_check(p->listen[i], err);
	for (size_t i = 0; rc == 0 && i < p->n_api; i++)
		rc = stream_listen_check(p->api[i], err);
	return rc;
}

int serve_policy_check(const struct weir_policy *p, struct weir_err *err)
{
	int rc = serve_policy_names(p, err);

	if (rc == 0)
		rc = check_sockets(p, err);

	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		if (!p->resources[i].back && !p->resources[i].volumes)
			return weir_err_at(err, -EINVAL, p->resources[i].at,
				"resource '%s' has neither a back end nor volumes",
				p->resources[i].name);
	if (rc == 0 && p->n_resources == 0)
		rc = weir_err_set(err, -EINVAL, "no resources to serve");
	if (rc == 0)
		rc = check_matches(p, err);
	if (rc == 0)
		rc = check_exports(p, err);
	return rc == 0 ? gateway_lets_in(p, err) : rc;
}

void serve_policy_digest(const struct serve_policy *p, char ret[65])
{
	planning_digest(p->text, strlen(p->text), p->policy->tenants_text, ret);
}
