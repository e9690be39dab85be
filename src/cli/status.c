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
	[SOCKET] = REMOTE_SOCKET,
	[URL] = REMOTE_URL,
	[TOKEN] = REMOTE_TOKEN,
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

static int print_tables(const json_t *now)
{
	struct view v;
	char *text = NULL;
	size_t len;
	FILE *f;
	int rc;

	if (view_is_control(now))
		return print_list(now, view_write_control);
	rc = view_make(NULL, now, &v);

	if (rc < 0) {
		opts_fail(&verb_status, "%s",
			rc == -ENOMEM ? "out of memory" : "the answer is not from a gateway");
		return 1;
	}
	f = open_memstream(&text, &len);
	if (f) {
		view_write_head(now, f);
		fputc('\n', f);
		view_write_resources(&v, f);
		fputc('\n', f);
		view_write_tenants(&v, f);
		view_write_idle(&v, f);
		view_write_slo(now, f);
		view_write_facts(now, f);
		fclose(f);
		print_plain(text);
	}
	free(text);
	view_free(&v);
	return f ? 0 : 1;
}

/* Return the path of the request. JSON is for programs: it includes everything by default. */
static char *path_of(const char *const *values)
{
	char *escaped = NULL, *path = NULL;

	if (!values[CLIENTS] && !values[LEDGER] && !values[JSON])
		return remote_status(values[TENANT], values[ALL]);
	if (values[LEDGER])
		return strdup("/v1/ledger");
	escaped = remote_escape(values[TENANT] ? values[TENANT] : "");
	if (escaped && asprintf(&path, "/v1/%s%s%s", values[CLIENTS] ? "clients" : "status",
			       *escaped ? "?tenant=" : "", escaped) < 0)
		path = NULL;
	free(escaped);
	return path;
}

static int status_main(int argc, char **argv)
{
	const char *values[N_OPTIONS];
	struct remote *r = NULL;
	char *path;
	json_t *j;
	int n, status = opts_parse(&verb_status, argc, argv, values, &n);

	if (status >= 0)
		return status;
	if (n)
		return opts_fail(&verb_status, "takes no operands");
	if (values[CLIENTS] && values[LEDGER])
		return opts_fail(&verb_status, "--clients or --ledger, not both");
	if (values[LEDGER] && (values[TENANT] || values[ALL]))
		return opts_fail(&verb_status, "--ledger shows all tenants");
	path = path_of(values);
	if (!path)
		return opts_no_memory(&verb_status);
	status = remote_open(&verb_status, values[SOCKET], values[URL], values[TOKEN], &r);
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
