/* SPDX-License-Identifier: BSD-3-Clause */
/* status: `weir status`, show the state of a running gateway, a cluster's controller, or a shaper of links. */
#include "cli/common/remote.h"
#include "cli/view/table.h"
#include "cli/view/view.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_status;

enum { JSON, CLIENTS, LEDGER, TENANT, ALL, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 'j', NULL, "print the API's reply, as JSON"},
	[CLIENTS] = {"clients", 'c', NULL, "show the clients instead"},
	[LEDGER] = {"ledger", 'l', NULL, "show loans of tokens between tenants instead"},
	[TENANT] = {"tenant", 't', "PREFIX", "only tenants whose path begins with PREFIX"},
	[ALL] = {"all", 'a', NULL, "idle tenants too, if there are more than 1,000"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* Write an answer of the API as tables. Return 0, -EPROTO (not a status) or -ENOMEM. */
static int write_tables(const json_t *j, const char *const *values, FILE *f)
{
	struct view v;
	int rc = 0;

	if (values[CLIENTS]) {
		view_write_clients(j, f);
	} else if (values[LEDGER]) {
		view_write_ledger(j, f);
	} else if (view_is_shape(j)) {
		view_write_shape(j, f);
	} else if (view_is_control(j)) {
		view_write_control(j, f);
	} else if ((rc = view_make(NULL, j, &v)) == 0) {
		view_write_all(&v, j, true, f);
		view_free(&v);
	}
	return rc;
}

static int print_tables(const json_t *j, const char *const *values)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rc = f ? write_tables(j, values, f) : -ENOMEM;

	if (f)
		fclose(f);
	if (rc == 0)
		table_print_plain(text);
	else
		opts_fail(&verb_status, "%s",
			rc == -ENOMEM ? "out of memory" : "the answer is not from a gateway");
	free(text);
	return rc < 0 ? 1 : 0;
}

/* Return the path of the request. JSON is for programs: it includes everything by default. */
static char *path_of(const char *const *values)
{
	if (!values[CLIENTS] && !values[LEDGER] && !values[JSON])
		return remote_status(values[TENANT], values[ALL]);
	if (values[LEDGER])
		return strdup("/v1/ledger");
	return remote_path(values[CLIENTS] ? "/v1/clients" : "/v1/status", "",
		"?tenant=", values[TENANT] && *values[TENANT] ? values[TENANT] : NULL, NULL);
}

static int status_main(const char *const *values, char **operands, int n)
{
	struct remote *r = NULL;
	char *path;
	json_t *j;
	int status;

	if (n)
		return opts_fail(&verb_status, "takes no operands");
	if (values[CLIENTS] && values[LEDGER])
		return opts_fail(&verb_status, "--clients or --ledger, not both");
	if (values[LEDGER] && (values[TENANT] || values[ALL]))
		return opts_fail(&verb_status, "--ledger shows all tenants");
	path = path_of(values);
	status = remote_of_options(&verb_status, values + SOCKET, &r);
	if (status < 0 && values[JSON]) {
		status = remote_print(r, path, stdout);
		status = status < 0 ? 0 : status;
	} else if (status < 0 && (status = remote_ask(r, "GET", path, NULL, 0, &j)) < 0) {
		status = print_tables(j, values);
		json_decref(j);
	}
	remote_close(r);
	free(path);
	return status;
}

const struct verb verb_status = {
	.name = "status",
	.summary = "show the state of a running gateway, controller or shaper",
	.usage = "[OPTION]...",
	.options = options,
	.run = status_main,
};
