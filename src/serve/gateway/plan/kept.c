/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/plan/kept.h"
#include "base/no-memory.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int plan_kept_write(
	const char *folder, const char *name, const struct plan_kept *k, struct weir_err *err)
{
	char *all;
	int rc, len = asprintf(&all,
			"{\"number\": %" PRIu64 ", \"applied\": %.3f, \"digest\": \"%s\", "
			"\"tenants\": \"%s\", \"plan\": %s}\n",
			k->number, k->applied, k->digest, k->tenants, k->text ? k->text : "null");

	if (len < 0)
		return no_memory(err);
	rc = state_file_write(folder, name, "the plan", all, (size_t)len, err);
	free(all);
	return rc;
}

struct reading {
	uint64_t number;
	struct gateway_plan *plan;
};

/* Read a digest, unless it is missing or empty. 0 or -EINVAL. */
static int read_digest(const json_t *root, const char *key, char ret[GATEWAY_DIGEST])
{
	const char *text = json_string_value(json_object_get(root, key));

	if (!text || !*text)
		return 0;
	if (strlen(text) != GATEWAY_DIGEST - 1)
		return -EINVAL;
	memcpy(ret, text, GATEWAY_DIGEST);
	return 0;
}

static int read_plan(const json_t *from, struct gateway_plan **ret)
{
	char *text = json_dumps(from, JSON_COMPACT);
	struct weir_err ignored;
	int rc = text ? gateway_plan_read(text, strlen(text), ret, &ignored) : -ENOMEM;

	free(text);
	return rc;
}

static int read_root(json_t *root, void *arg)
{
	struct reading *r = arg;
	const json_t *plan = json_object_get(root, "plan");
	json_int_t number = json_integer_value(json_object_get(root, "number"));
	struct gateway_plan *p = NULL;
	int rc = number < 0 || !plan ? -EINVAL : 0;

	if (rc == 0 && !json_is_null(plan))
		rc = read_plan(plan, &p);
	if (p && (read_digest(root, "digest", p->digest) < 0 ||
			 read_digest(root, "tenants", p->tenants_digest) < 0)) {
		gateway_plan_drop(p);
		rc = -EINVAL;
	}
	if (rc < 0)
		return rc;
	if (p) {
		p->number = (uint64_t)number;
		p->applied = json_number_value(json_object_get(root, "applied"));
	}
	*r = (struct reading){(uint64_t)number, p};
	return 0;
}

int plan_kept_read(const char *folder, const char *name, uint64_t *ret_number,
	struct gateway_plan **ret_plan, struct weir_err *err)
{
	struct reading r = {0};
	int rc = state_file_load(folder, name, "plan", read_root, &r, err);

	if (rc < 0)
		return rc;
	*ret_number = r.number;
	*ret_plan = r.plan;
	return 0;
}
