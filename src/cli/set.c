/* SPDX-License-Identifier: BSD-3-Clause */
/* set: `weir set`, change one value of the policy of a running gateway. */
#include "cli/common/remote.h"
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_set;

enum { UNSET, FOR, MESSAGE, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[UNSET] = {"unset", 'u', NULL, "remove the value: the policy file's value holds again"},
	[FOR] = {"for", 0, "TIME", "in a cluster: the value ends after this time, such as 1h"},
	[MESSAGE] = {"message", 'm', "TEXT", "in a cluster: why, for the history"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* Return the words, separated by blanks; malloc'ed. */
static char *join_words(char **words, int n)
{
	size_t len = 1;
	char *text;

	for (int i = 0; i < n; i++)
		len += strlen(words[i]) + 1;
	text = calloc(1, len);
	for (int i = 0; text && i < n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, words[i]);
	}
	return text;
}

static int list_overrides(struct remote *r)
{
	json_t *j;
	const json_t *overrides;
	int status = remote_ask(r, "GET", "/v1/policy", NULL, 0, &j);

	if (status >= 0)
		return status;
	overrides = json_object_get(j, "overrides");
	for (size_t i = 0; i < json_array_size(overrides); i++) {
		const json_t *o = json_array_get(overrides, i);
		printf("%s %s\n", json_string_value(json_object_get(o, "key")),
			json_string_value(json_object_get(o, "value")));
	}
	json_decref(j);
	return 0;
}

static int change_value(
	struct remote *r, const char *key, const char *value, const char *span, const char *message)
{
	json_t *j;
	char *path = remote_path("/v1/set/", key, "?user=", remote_user(), "&for=", span,
		"&message=", message, NULL);
	int status =
		remote_ask(r, value ? "PUT" : "DELETE", path, value, value ? strlen(value) : 0, &j);

	free(path);
	if (status >= 0)
		return status;
	remote_notes(j);
	if (json_is_true(json_object_get(j, "stored")))
		printf("version %lld is stored\n",
			(long long)json_integer_value(json_object_get(j, "version")));
	json_decref(j);
	return 0;
}

static int set_main(const char *const *values, char **operands, int n)
{
	struct remote *r = NULL;
	char *value = NULL;
	int status;

	if (values[UNSET] ? n != 1 : n == 1)
		return opts_fail(&verb_set,
			values[UNSET] ? "--unset needs one KEY, such as db.max"
				      : "needs a KEY and a VALUE, such as: db.max 5k iops");
	if (values[FOR] && n < 2)
		return opts_fail(&verb_set, "--for goes with a KEY and a VALUE");
	status = remote_of_options(&verb_set, values + SOCKET, &r);
	if (status >= 0)
		return status;
	if (n > 1 && !(value = join_words(operands + 1, n - 1)))
		status = opts_no_memory(&verb_set);
	else
		status = n ? change_value(r, operands[0], value, values[FOR], values[MESSAGE])
			   : list_overrides(r);
	free(value);
	remote_close(r);
	return status;
}

const struct verb verb_set = {
	.name = "set",
	.summary = "change one value of a running gateway's policy",
	.usage = "[OPTION]... [KEY VALUE...]\n       weir set --unset KEY",
	.options = options,
	.run = set_main,
};
