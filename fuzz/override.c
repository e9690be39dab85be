/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set any key and value, one line each, in a policy: it is refused with a message and changes
 * nothing, or the value that is then shown can be set again and means the same.
 */
#include "policy/override/override.h"
#include "fuzz.h"
#include <string.h>

static const char text[] =
	"resources: [{name: r, capacity: 10k iops}]\n"
	"tenants:\n"
	"  - {name: p, children: [{name: a, min: 1k iops, max: 4k iops, burst: 8k iops for 10s}]}\n"
	"  - {name: b, weight: 2}\n";

static struct weir_policy *parse(void)
{
	struct weir_policy *p;
	struct weir_err err;

	MUST(weir_policy_parse(text, strlen(text), "fuzz", &p, &err) == 0);
	return p;
}

static void set(const char *key, const char *value)
{
	struct weir_policy *p = parse(), *q = parse();
	char shown[POLICY_OVERRIDE_TEXT], again[POLICY_OVERRIDE_TEXT];
	struct weir_err err = {""};

	if (policy_override_set(p, key, value, &err) < 0) {
		MUST(err.text[0]);
		MUST(policy_override_show(p, key, shown) < 0 || policy_override_same(p, q, key));
	} else {
		MUST(policy_override_show(p, key, shown) == 0);
		(void)policy_override_check(p, NULL, &err);
		/* Values are shown to within 0.05 %, so a burst just above its max may be
		 * refused. */
		if (policy_override_set(q, key, shown, &err) == 0) {
			MUST(policy_override_show(q, key, again) == 0);
			MUST(strcmp(shown, again) == 0);
		}
	}
	weir_policy_free(p);
	weir_policy_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char line[2][600] = {"", ""};
	const uint8_t *end = memchr(data, '\n', len);
	size_t first = end ? (size_t)(end - data) : len;

	if (first >= sizeof(line[0]) || (end && len - first > sizeof(line[1])))
		return 0;
	memcpy(line[0], data, first);
	if (end)
		memcpy(line[1], end + 1, len - first - 1);
	set(line[0], line[1]);
	return 0;
}
