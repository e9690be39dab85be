/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ask whether the tenants of any body fit: the body is refused with a message, or answered; no file is read for it; and no replayed
 * request is later than its bound.
 */
#include "fuzz.h"
#include "plan/ask.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static const char policy[] =
	"resources: [{name: r, depth: 4}, {name: q, depth: 1}]\n"
	"links: [{name: in, rate: 10 MB/s, levels: 2}, {name: out, rate: 1 Gbit/s, mtu: 1500 B}]\n"
	"tenants:\n"
	"  - {name: a, slo: p90 < 1s, trace: a.trace, path: [in, r, out], match: {export: a}}\n"
	"  - {name: b, trace: b.trace, path: [r], match: {export: b}}\n"
	"  - {name: c, path: [r, out], match: {export: c}}\n";
static const char trace[] =
	"# weir-trace 1\n0 R 0 4096 0\n0 W 4096 65536 0\n1000 R 0 512 0\n900000000 W 0 1048576 0\n";

static int read_own(void *arg, const char *from, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	MUST(strcmp(name, "a.trace") == 0 || strcmp(name, "b.trace") == 0);
	*ret_text = strdup(trace);
	*ret_len = strlen(trace);
	return *ret_text ? 0 : -ENOMEM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct planning_ask ask = {
		.policy = {policy, sizeof(policy) - 1, "own"}, .reader = read_own, .admit = true};
	struct weir_err err = {""};
	struct planning p;
	json_t *json;
	int rc = len < 1 << 16 ? planning_ask(&ask, (const char *)data, len, &p, &json, &err) : -1;

	if (len >= 1 << 16)
		return 0;
	MUST(rc == 0 || err.text[0]);
	if (rc < 0)
		return 0;
	MUST(json_is_boolean(json_object_get(json, "feasible")));
	MUST(json_array_size(json_object_get(json, "tenants")) == p.in.n_tenants);
	for (uint32_t i = 0; p.replayed && i < p.in.n_tenants; i++)
		MUST(p.replayed[i].max <= meister_latency(&p.plan.system, i) * (1 + 1e-6) + 1e-6);
	json_decref(json);
	planning_free(&p);
	return 0;
}
