/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-live: `weir policy apply` and `show` for a running gateway. */
#include "base/no-memory.h"
#include "cli/policy-verb.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "serve/http/http.h"
#include "base/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- apply */

static int add_named(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	struct policy_sent *s = arg;
	int rc = files_read_beside(NULL, from, name, ret_text, ret_len, err);

	if (rc < 0)
		return rc;
	if (array_resize(&s->text, s->len + *ret_len + 1) < 0) {
		free(*ret_text);
		return no_memory(err);
	}
	memcpy(s->text + s->len, *ret_text, *ret_len);
	s->len += *ret_len;
	s->tenants = *ret_len;
	return 0;
}

/* Return true if the policy may name a file. Most do not, and need not be parsed here. */
static bool may_name_file(const struct policy_sent *s)
{
	const char *at = s->text;

	while ((at = strstr(at, "tenants:"))) {
		at += strlen("tenants:");
		at += strspn(at, " \t");
		if (*at && !strchr("\r\n#[", *at))
			return true;
	}
	return false;
}

/* Append the file that the policy names. Errors are ignored: the gateway reports them. */
static void add_files(struct policy_sent *s, const char *name)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p;
	char *copy = may_name_file(s) ? strdup(s->text) : NULL;

	if (copy && policy_parse_lab(copy, s->len, name, true, add_named, s, &p, &remarks) == 0)
		weir_policy_free(p);
	free(copy);
}

static int send_policy(struct remote *r, const char *name, const struct policy_sent *s,
	const struct policy_change *c, json_t **ret_reply)
{
	char tenants[32], base[32], *path;
	int status;

	if (s->len > HTTP_BODY_MAX)
		return opts_fail(&verb_policy,
			"%s: too large for the gateway's API; change its policy file and "
			"send it SIGHUP",
			name);
	snprintf(tenants, sizeof(tenants), "%zu", s->tenants);
	snprintf(base, sizeof(base), "%llu", (unsigned long long)c->base);
	path = remote_path("/v1/policy?keep=", c->keep ? "1" : "0", "&dry=", c->dry ? "1" : "0",
		"&name=", name, "&tenants=", tenants, "&user=", remote_user(),
		"&message=", c->message, "&base=", c->base ? base : NULL, NULL);
	status = remote_ask(r, "PUT", path, s->text, s->len, ret_reply);
	free(path);
	return status;
}

static int apply_live(const char *const *at, const char *name, const struct policy_sent *s,
	const struct policy_change *c)
{
	struct remote *r;
	json_t *reply;
	int status = remote_of_options(&verb_policy, at, &r);

	if (status >= 0)
		return status;
	status = send_policy(r, name, s, c, &reply);
	remote_close(r);
	if (status >= 0)
		return status;
	remote_notes(reply);
	if (c->dry)
		printf("nothing was changed (--dry-run)\n");
	else
		printf(json_is_true(json_object_get(reply, "stored"))
				? "version %lld is stored\n"
				: "policy version %lld is in force\n",
			(long long)json_integer_value(json_object_get(reply, "version")));
	json_decref(reply);
	return 0;
}

int policy_apply(
	const char *const *at, const char *store, const char *file, const struct policy_change *c)
{
	struct policy_sent s = {0};
	struct weir_err err;
	char *name;
	int status;

	if (files_read(file, HTTP_BODY_MAX, &s.text, &s.len, &err) < 0)
		return opts_fail(&verb_policy, "%s", err.text);
	name = strcmp(file, "-") == 0 ? strdup("standard input") : realpath(file, NULL);
	if (!name) {
		status = opts_no_memory(&verb_policy);
	} else {
		add_files(&s, name);
		status = store ? policy_store_apply(store, &s, name, c)
			       : apply_live(at, name, &s, c);
	}
	free(name);
	free(s.text);
	return status;
}

/* ---- show */

/*
 * Show the policy in force as the gateway prints it: it may be large, and is not parsed again here.
 */
int policy_show_live(const char *const *at, bool json)
{
	struct remote *r;
	int status = remote_of_options(&verb_policy, at, &r);

	if (status >= 0)
		return status;
	status = remote_print(r, json ? "/v1/policy?show=json" : "/v1/policy?show=table", stdout);
	remote_close(r);
	return status < 0 ? 0 : status;
}

/* ---- history */

int policy_history_live(const char *const *at, size_t most, bool json)
{
	char number[24], *path;
	struct remote *r;
	json_t *reply, *all;
	int status = remote_of_options(&verb_policy, at, &r);

	if (status >= 0)
		return status;
	snprintf(number, sizeof(number), "%zu", most);
	path = remote_path("/v1/versions?number=", number, NULL);
	status = remote_ask(r, "GET", path, NULL, 0, &reply);
	free(path);
	remote_close(r);
	if (status >= 0)
		return status;
	all = json_object_get(reply, "versions");
	for (size_t i = json_array_size(all); !json && i-- > 0;) {
		char *text = json_dumps(json_array_get(all, i), JSON_COMPACT);
		struct record v = {0};

		if (text && record_read(text, strlen(text), &v) == 0)
			policy_show_version(&v);
		record_free(&v);
		free(text);
	}
	if (json) {
		json_dumpf(all, stdout, JSON_INDENT(1));
		putchar('\n');
	}
	json_decref(reply);
	return 0;
}
