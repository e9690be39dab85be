/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-live: `weir policy apply` and `show` of a running gateway. */
#include "prog/policy-verb.h"
#include "prog/files.h"
#include "prog/remote.h"
#include "ctl/policy-override.h"
#include "port/http.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail_memory(void)
{
	opts_fail(&verb_policy, "out of memory");
	return 1;
}

/* ---- apply */

/* The whole name, since the gateway reads what stands beside it, and has another folder. */
static char *full_name(const char *file)
{
	char *name = strcmp(file, "-") == 0 ? strdup("standard input") : realpath(file, NULL);
	char *escaped = name ? remote_escape(name) : NULL;

	free(name);
	return escaped;
}

static int send_policy(struct remote *r, const char *file, const char *text, size_t len, bool keep,
	bool dry, json_t **ret_reply)
{
	char *name = full_name(file), *path = NULL;
	int status;

	if (!name || asprintf(&path, "/v1/policy?keep=%d&dry=%d&name=%s", keep, dry, name) < 0)
		status = fail_memory();
	else
		status = remote_ask(r, "PUT", path, text, len, ret_reply);
	free(name);
	free(path);
	return status;
}

int policy_apply(const struct policy_live *q, const char *file, bool keep, bool dry)
{
	struct weir_err err;
	struct remote *r;
	json_t *reply;
	char *text;
	size_t len;
	int status;

	if (files_read(file, HTTP_BODY_MAX, &text, &len, &err) < 0)
		return opts_fail(&verb_policy, "%s", err.text);
	status = remote_open(&verb_policy, q->socket, q->url, q->token_file, &r);
	if (status < 0) {
		status = send_policy(r, file, text, len, keep, dry, &reply);
		remote_close(r);
	}
	free(text);
	if (status >= 0)
		return status;
	remote_notes(reply);
	if (dry)
		printf("nothing was changed (--dry-run)\n");
	else
		printf("policy version %lld is in force\n",
			(long long)json_integer_value(json_object_get(reply, "version")));
	json_decref(reply);
	return 0;
}

/* ---- show */

static const char *word(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static int put_overrides(struct weir_policy *p, const json_t *reply)
{
	const json_t *list = json_object_get(reply, "overrides");
	struct weir_err err;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		if (policy_override_set(p, word(o, "key"), word(o, "value"), &err) < 0) {
			opts_fail(&verb_policy, "%s", err.text);
			return 1;
		}
	}
	return -1;
}

/* A file that the policy names: what the gateway had read, which may be on another machine, and the file
 * another by now. */
static int read_told(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	const char *text = json_string_value(json_object_get(arg, "tenants_text"));

	(void)from;
	if (!text)
		return weir_err_set(
			err, -ENOENT, "%s: the gateway does not say what is in it", name);
	*ret_text = strdup(text);
	if (!*ret_text)
		return weir_err_set(err, -ENOMEM, "out of memory");
	*ret_len = strlen(text);
	return 0;
}

/* What is in force, read again here: the file's text with what `weir set` changed. */
static int read_reply(json_t *reply, struct weir_policy **ret_policy)
{
	static struct weir_policy_remarks remarks;
	const char *text = word(reply, "text");
	struct weir_policy *p;
	int rc, status;

	rc = weir_policy_parse_all(
		text, strlen(text), word(reply, "name"), read_told, reply, &p, &remarks);
	if (rc < 0) {
		opts_fail(&verb_policy, "%s",
			rc == -ENOMEM ? "out of memory" : remarks.errors[0].text);
		return 1;
	}
	status = put_overrides(p, reply);
	if (status >= 0)
		weir_policy_free(p);
	else
		*ret_policy = p;
	return status;
}

static void print_overrides(const json_t *reply)
{
	const json_t *list = json_object_get(reply, "overrides");

	printf("\nPolicy version %lld.%s\n",
		(long long)json_integer_value(json_object_get(reply, "version")),
		json_array_size(list) ? " Changed by weir set:" : "");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		printf("  %s %s\n", word(o, "key"), word(o, "value"));
	}
}

int policy_show_live(const struct policy_live *q, bool json)
{
	struct weir_policy *p = NULL;
	struct remote *r;
	json_t *reply;
	int status = remote_open(&verb_policy, q->socket, q->url, q->token_file, &r), rc;

	if (status >= 0)
		return status;
	status = remote_ask(r, "GET", "/v1/policy", NULL, 0, &reply);
	remote_close(r);
	if (status >= 0)
		return status;
	status = read_reply(reply, &p);
	if (status < 0) {
		rc = json ? policy_show_json(p) : policy_show_table(p);
		status = rc < 0 ? fail_memory() : 0;
		if (rc == 0 && !json)
			print_overrides(reply);
		weir_policy_free(p);
	}
	json_decref(reply);
	return status;
}
