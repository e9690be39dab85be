/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: `weir bypass`, open the gate of a running gateway's resource in an emergency. */
#include "cli/common/remote.h"
#include <stdlib.h>

extern const struct verb verb_bypass;

enum { OFF, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[OFF] = {"off", 'o', NULL, "close the gate again"},
	REMOTE_ROWS,
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
	json_int_t n;
	json_t *j;
	char *path = remote_path("/v1/bypass/", resource, NULL);
	int status = remote_ask(r, on ? "PUT" : "DELETE", path, NULL, 0, &j);

	free(path);
	if (status >= 0)
		return status;
	n = json_integer_value(json_object_get(j, "released"));
	if (on)
		printf("%s: open; %lld waiting request%s let through\n", resource, (long long)n,
			n == 1 ? "" : "s");
	else
		printf("%s: closed\n", resource);
	json_decref(j);
	return 0;
}

static int bypass_main(const char *const *values, char **operands, int n)
{
	struct remote *r = NULL;
	int failed, status;

	if (values[OFF] && n == 0)
		return opts_fail(&verb_bypass, "--off needs a RESOURCE");
	status = remote_of_options(&verb_bypass, values + SOCKET, &r);
	if (status >= 0)
		return status;
	status = n ? 0 : list_bypassed(r);
	for (int i = 0; i < n; i++) { /* a failure does not stop the others */
		failed = set_bypass(r, operands[i], !values[OFF]);
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
