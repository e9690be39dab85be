/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: `weir bypass`, open the gate of a running gateway's resource in an emergency. */
#include "cli/common/remote.h"
#include <stdlib.h>

extern const struct verb verb_bypass;

enum { OFF, SOCKET, URL, TOKEN, N_OPTIONS };
static const struct opt options[] = {
	[OFF] = {"off", 'o', NULL, "close the gate again"},
	[SOCKET] = REMOTE_SOCKET,
	[URL] = REMOTE_URL,
	[TOKEN] = REMOTE_TOKEN,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* Print the resources whose gates are open. */
static int list_bypassed(struct remote *r)
{
	json_t *j;
	const json_t *resources;
	int status = remote_ask(r, "GET", "/v1/bypass", NULL, 0, &j);

	if (status >= 0)
		return status;
	resources = json_object_get(j, "bypassed");
	for (size_t i = 0; i < json_array_size(resources); i++)
		printf("%s\n", json_string_value(json_array_get(resources, i)));
	json_decref(j);
	return 0;
}

static int set_bypass(struct remote *r, const char *resource, bool on)
{
	char *escaped = remote_escape(resource), *path = NULL;
	json_t *j;
	int status = 1;

	if (!escaped || asprintf(&path, "/v1/bypass/%s", escaped) < 0)
		opts_no_memory(&verb_bypass);
	else
		status = remote_ask(r, on ? "PUT" : "DELETE", path, NULL, 0, &j);
	if (status < 0) {
		json_int_t n = json_integer_value(json_object_get(j, "released"));

		if (on)
			printf("%s: open; %lld waiting request%s let through\n", resource,
				(long long)n, n == 1 ? "" : "s");
		else
			printf("%s: closed\n", resource);
		json_decref(j);
		status = 0;
	}
	free(escaped);
	free(path);
	return status;
}

static int bypass_main(int argc, char **argv)
{
	const char *values[N_OPTIONS];
	struct remote *r = NULL;
	int n, failed, status = opts_parse(&verb_bypass, argc, argv, values, &n);

	if (status >= 0)
		return status;
	if (values[OFF] && n == 0)
		return opts_fail(&verb_bypass, "--off needs a RESOURCE");
	status = remote_open(&verb_bypass, values[SOCKET], values[URL], values[TOKEN], &r);
	if (status >= 0)
		return status;
	status = n ? 0 : list_bypassed(r);
	for (int i = 1; i <= n; i++) { /* a failure does not stop the others */
		failed = set_bypass(r, argv[i], !values[OFF]);
		status = failed ? failed : status;
	}
	remote_close(r);
	return status;
}

const struct verb verb_bypass = {
	.name = "bypass",
	.summary = "open a resource's gate in an emergency, so that no request waits",
	.usage = "[--off] [OPTION]... [RESOURCE...]",
	.options = options,
	.run = bypass_main,
};
