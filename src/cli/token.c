/* SPDX-License-Identifier: BSD-3-Clause */
/* token: `weir token`, make, list and remove the tokens of an API: of a running server, or in its file. */
#include "base/field.h"
#include "cli/common/remote.h"
#include "cli/view/table.h"
#include "serve/access/tokens.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct verb verb_token;

enum { ROLE, FOR, FILE_, JSON, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[ROLE] = {"role", 'r', "ROLE", "add: read, operate or admin"},
	[FOR] = {"for", 0, "TIME", "add: the token ends after that, such as 30d"},
	[FILE_] = {"file", 'f', "FILE", "the file of the tokens, without a server: STATE/tokens"},
	[JSON] = {"json", 'j', NULL, "list: JSON"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"add", "list", "rm", NULL};

static int fail(int code, const struct weir_err *err)
{
	opts_fail(&verb_token, "%s", err->text);
	return code == -EINVAL || code == -ENOENT ? 2 : 1;
}

/* ---- add */

static int rm(const char *const *values, struct remote *r, const char *name);

/* Print a new token; if that fails, remove the token, which is not known then. */
static int print_secret(
	const char *const *values, struct remote *r, const char *name, const char *secret)
{
	if (secret && printf("%s\n", secret) >= 0 && fflush(stdout) == 0)
		return 0;
	opts_fail(&verb_token, "the token '%s' cannot be printed (%s): it is removed", name,
		secret ? strerror(errno) : "there is none");
	clearerr(stdout);    /* it is said */
	rm(values, r, name); /* a failure is printed */
	return 1;
}

static int add_to_file(const char *const *values, const char *name, weir_time t)
{
	char secret[TOKENS_SECRET];
	int r = policy_role_read(values[ROLE]), rc;
	struct weir_err err;

	if (r < 0)
		return opts_fail(&verb_token, "--role: must be read, operate or admin");
	rc = tokens_add(values[FILE_], name, (enum policy_role)r, t ? time(NULL) + t / WEIR_SEC : 0,
		secret, &err);
	if (rc < 0)
		return fail(rc, &err);
	rc = print_secret(values, NULL, name, secret);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

static int add(const char *const *values, struct remote *r, const char *name)
{
	struct weir_err err;
	weir_time t = 0;
	json_t *j;
	char *path;
	int status;

	if (!values[ROLE])
		return opts_fail(&verb_token, "add needs --role: read, operate or admin");
	if (values[FOR] && (weir_units_time(values[FOR], &t, &err) < 0 || t < WEIR_SEC))
		return opts_fail(&verb_token, "--for: must be a time of 1s or more, such as 30d");
	if (!r)
		return add_to_file(values, name, t);
	path = remote_path("/v1/tokens/", name, "?role=", values[ROLE], "&for=", values[FOR], NULL);
	status = remote_ask(r, "PUT", path, NULL, 0, &j);
	free(path);
	if (status >= 0)
		return status;
	status = print_secret(values, r, name, json_string_value(json_object_get(j, "token")));
	json_decref(j);
	return status;
}

/* ---- list */

static void put_time(struct table *t, int64_t s, bool is_end)
{
	time_t at = s;
	char text[40];
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
	table_cell(t, "%s%s", s ? text : "-", is_end && s && s <= time(NULL) ? " (ended)" : "");
}

static json_t *list_of_file(const char *file, struct weir_err *err)
{
	json_t *list = json_array();
	struct tokens_list l;

	if (tokens_read(file, &l, err) < 0) {
		json_decref(list);
		return NULL;
	}
	for (size_t i = 0; i < l.n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:I}", "name", l.all[i].name, "role",
				      policy_role_name(l.all[i].role), "made",
				      (json_int_t)l.all[i].made, "end", (json_int_t)l.all[i].end));
	tokens_list_free(&l);
	return json_pack("{s:o}", "tokens", list);
}

static int list(const char *const *values, struct remote *r)
{
	static const char *const heads[] = {"TOKEN", "ROLE", "MADE", "END (UTC)", NULL};
	struct weir_err err;
	struct table t;
	const json_t *one;
	size_t i;
	json_t *j;
	int status = -1;

	if (r)
		status = remote_ask(r, "GET", "/v1/tokens", NULL, 0, &j);
	else if (!(j = list_of_file(values[FILE_], &err)))
		status = fail(-EINVAL, &err);
	if (status >= 0)
		return status;
	if (values[JSON]) {
		json_dumpf(j, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		table_begin(&t, heads, 0);
		json_array_foreach(json_object_get(j, "tokens"), i, one)
		{
			table_cell(&t, "%s", json_string_value(json_object_get(one, "name")));
			table_cell(&t, "%s", json_string_value(json_object_get(one, "role")));
			put_time(&t, json_integer_value(json_object_get(one, "made")), false);
			put_time(&t, json_integer_value(json_object_get(one, "end")), true);
		}
		table_print(&t);
	}
	json_decref(j);
	return 0;
}

/* ---- rm */

static int rm(const char *const *values, struct remote *r, const char *name)
{
	struct weir_err err;
	json_t *j;
	char *path;
	int rc;

	if (!r) {
		rc = tokens_remove(values[FILE_], name, &err);
		return rc < 0 ? fail(rc, &err) : 0;
	}
	path = remote_path("/v1/tokens/", name, NULL);
	rc = remote_ask(r, "DELETE", path, NULL, 0, &j);
	free(path);
	if (rc >= 0)
		return rc;
	json_decref(j);
	return 0;
}

static int token_main(const char *const *values, char **operands, int n)
{
	int which = n ? field_index(subverbs, operands[0]) : -1, status = -1;
	struct remote *r = NULL;

	if (which < 0)
		return opts_fail(&verb_token, "needs add NAME, list, or rm NAME");
	if (n != (which == 1 ? 1 : 2))
		return opts_fail(&verb_token, "%s %s", operands[0],
			which == 1 ? "takes no operand" : "needs a NAME");
	if ((values[ROLE] || values[FOR]) && which != 0)
		return opts_fail(&verb_token, "--role and --for go with add");
	if (values[FILE_] && (values[SOCKET] || values[URL]))
		return opts_fail(&verb_token, "--file, or --socket or --url, not both");
	if (!values[FILE_])
		status = remote_of_options(&verb_token, values + SOCKET, &r);
	if (status >= 0)
		return status;
	signal(SIGPIPE, SIG_IGN); /* add must see that its output is not read */
	if (which == 0)
		status = add(values, r, operands[1]);
	else if (which == 1)
		status = list(values, r);
	else
		status = rm(values, r, operands[1]);
	remote_close(r);
	return status;
}

const struct verb verb_token = {
	.name = "token",
	.summary = "make, list and remove the tokens of an API, each with a role",
	.usage = "add NAME --role ROLE [--for TIME] [OPTION]...\n"
		 "       weir token list [--json] [OPTION]...\n"
		 "       weir token rm NAME [OPTION]...",
	.options = options,
	.run = token_main,
};
