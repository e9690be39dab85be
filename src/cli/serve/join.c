/* SPDX-License-Identifier: BSD-3-Clause */
/* join: `weir serve --join`, a member of a cluster: its tenants are those of the version in a store. */
#include "base/no-memory.h"
#include "cli/common/files.h"
#include "cli/serve/serve.h"
#include "serve/member/content.h"
#include "serve/host/control.h"
#include "serve/member/member-impl.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT (10 * WEIR_SEC) /* for the store */

struct serve_join {
	struct token token;
	char *file, *local; /* its own file: the path and the text */
	char name[64];
	struct versions_text version;
};

void serve_join_free(struct serve_join *j)
{
	if (!j)
		return;
	token_free(&j->token);
	versions_text_free(&j->version);
	free(j->file);
	free(j->local);
	free(j);
}

static int set_name(struct serve_join *j, const char *name, struct weir_err *err)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (!name && gethostname(host, sizeof(host) - 1) == 0)
		name = host;
	if (!name || !*name || strlen(name) >= sizeof(j->name) ||
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
			strlen(name))
		return weir_err_set(err, -EINVAL,
			"--name: the name of a member has up to 63 letters, digits, '-', '_' and "
			"'.'");
	memcpy(j->name, name, strlen(name) + 1);
	return 0;
}

/* Read the own file, which must not have tenants, to know its state folder. */
static int read_local(struct serve_join *j, const char *path, const char **state, char **keep,
	struct weir_err *err)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p;
	size_t n;
	int rc;

	j->file = realpath(path, NULL);
	if (!j->file)
		return weir_err_set(err, -EINVAL, "%s: %s", path, strerror(errno));
	rc = files_read(j->file, FILES_WRITTEN, &j->local, &n, err);
	if (rc < 0)
		return -EINVAL;
	rc = policy_parse_lab(j->local, n, j->file, false, files_read_beside, NULL, &p, &remarks);
	if (rc < 0) {
		*err = remarks.errors[0];
		return rc;
	}
	if (p->n_tenants)
		rc = weir_err_set(err, -EINVAL,
			"%s: a member's own file has no tenants: they are the cluster's", path);
	if (rc == 0 && !*state && p->state) {
		*keep = strdup(p->state);
		*state = *keep;
		rc = *keep ? 0 : no_memory(err);
	}
	weir_policy_free(p);
	return rc;
}

/* Make the policy of the own file and the version. */
static int make_policy(struct serve_join *j, struct serve_policy *ret, struct weir_err *err)
{
	static struct weir_policy_remarks remarks;
	struct serve_policy p = {.name = j->file, .text = member_text(j->local)};
	int rc;

	if (!p.text)
		return no_memory(err);
	rc = content_parse_at(j->local, j->file, j->version.text, record_length(&j->version.record),
		j->version.record.name, &p.policy, &remarks);
	if (rc < 0) {
		*err = remarks.errors[0];
		free(p.text);
		return rc;
	}
	*ret = p;
	return 0;
}

static int join_read(const char *token, const char *local, const char *name,
	struct member_options o, struct serve_join **ret_join, struct serve_policy *ret,
	struct weir_err *err)
{
	struct serve_join *j = calloc(1, sizeof(*j));
	char *keep = NULL;
	int rc = j ? files_read_token(token, &j->token, err) : no_memory(err);

	if (rc == 0)
		rc = set_name(j, name, err);
	if (rc == 0)
		rc = read_local(j, local, &o.state, &keep, err);
	if (rc == 0) {
		o.token = &j->token;
		o.name = o.bare ? NULL : j->name;
		o.file = j->file;
		rc = member_first(&o, WAIT, &j->version, err);
	}
	if (rc == 0)
		rc = make_policy(j, ret, err);
	free(keep);
	if (rc < 0)
		serve_join_free(j);
	else
		*ret_join = j;
	return rc;
}

int serve_join_read(const char *token, const char *local, const char *name, const char *state,
	bool check, struct serve_join **ret_join, struct serve_policy *ret, struct weir_err *err)
{
	return join_read(token, local, name, (struct member_options){.state = state, .bare = check},
		ret_join, ret, err);
}

int serve_join_control(const char *token, const char *local, struct serve_join **ret_join,
	struct control_join *ret_control, struct serve_policy *ret, struct weir_err *err)
{
	struct serve_join *j;
	int rc = join_read(token, local, NULL, (struct member_options){.bare = true}, &j, ret, err);

	if (rc < 0)
		return rc;
	content_sets(ret->policy, &j->version.record, loop_date());
	ret_control->store = j->token.store;
	ret_control->local = j->local;
	ret_control->version = &j->version;
	*ret_join = j;
	return 0;
}

int serve_join_start(struct serve_join *j, struct gateway *g, const char *state,
	struct member **ret_member, struct weir_err *err)
{
	const struct member_options o = {.token = &j->token,
		.name = j->name,
		.file = j->file,
		.local = j->local,
		.state = state,
		.reader = files_read_beside};

	return member_start(g, &o, &j->version, ret_member, err);
}
