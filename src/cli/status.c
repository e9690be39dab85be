/* SPDX-License-Identifier: BSD-3-Clause */
/* status: `weir status`, show the state of a running gateway, or of a cluster's controller. */
#include "cli/common/remote.h"
#include "cli/view/table.h"
#include "cli/view/view.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_status;

enum { JSON, CLIENTS, LEDGER, TENANT, ALL, SOCKET, URL, TOKEN, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 'j', NULL, "print the API's reply, as JSON"},
	[CLIENTS] = {"clients", 'c', NULL, "show the clients instead"},
	[LEDGER] = {"ledger", 'l', NULL, "show loans of tokens between tenants instead"},
	[TENANT] = {"tenant", 't', "PREFIX", "only tenants whose path begins with PREFIX"},
	[ALL] = {"all", 'a', NULL, "idle tenants too, if there are more than 1,000"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* Print the lines without the marks of headings. */
static void print_plain(char *text)
{
	for (char *p = text; *p; p++) {
		size_t n = strcspn(p, (char[]){TABLE_HEAD, 0});

		fwrite(p, 1, n, stdout);
		p += n;
		if (!*p)
			break;
	}
}

static int print_list(const json_t *j, void (*write)(const json_t *, FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		write(j, f);
		fclose(f);
		print_plain(text);
	}
	free(text);
	return f ? 0 : 1;
}

static struct view shown;

static void write_tables(const json_t *now, FILE *f)
{
	view_write_head(now, f);
	fputc('\n', f);
	view_write_resources(&shown, f);
	fputc('\n', f);
	view_write_tenants(&shown, f);
	view_write_idle(&shown, f);
	view_write_slo(now, f);
	view_write_facts(now, f);
}

static int print_tables(const json_t *now)
{
	int rc, status;

	if (view_is_control(now))
		return print_list(now, view_write_control);
	rc = view_make(NULL, now, &shown);
	if (rc < 0) {
		opts_fail(&verb_status, "%s",
			rc == -ENOMEM ? "out of memory" : "the answer is not from a gateway");
		return 1;
	}
	status = print_list(now, write_tables);
	view_free(&shown);
	return status;
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
		status = values[CLIENTS]  ? print_list(j, view_write_clients)
			 : values[LEDGER] ? print_list(j, view_write_ledger)
					  : print_tables(j);
		json_decref(j);
	}
	remote_close(r);
	free(path);
	return status;
}

const struct verb verb_status = {
	.name = "status",
	.summary = "show the state of a running gateway or controller",
	.usage = "[OPTION]...",
	.options = options,
	.run = status_main,
};
