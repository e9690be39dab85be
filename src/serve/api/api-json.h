/* SPDX-License-Identifier: BSD-3-Clause */
/* api-json: shared by api-status.c, api-resource.c, facts-json.c and metrics.c: values that JSON
 * may not be able to hold, and the writing of long answers. */
#pragma once

#include "serve/api/api.h"

/* NULL: null. Bytes that are not UTF-8 (a client's export name may have some) become '?'. */
json_t *api_text(const char *s);
json_t *api_real(double value); /* not finite: null */
json_t *api_count(uint64_t n);
json_t *api_seconds(double ns);

/* The values of resources and tenants that are one number or word each, for JSON and /metrics. For
 * groups of tenants /metrics has only the first API_TENANT_LEAVES: their counters would count
 * everything twice in a sum. */
#define API_TENANT_LEAVES 4
#define API_TENANT_FACTS  21
extern const struct facts_table
	api_resource_facts;                       /* of struct snapshot_resource; api-resource.c */
extern const struct facts_table api_tenant_facts; /* of struct snapshot_tenant; api-status.c */

/* Write an object's members, without the braces around them. Takes j. */
void api_write_members(json_t *j, FILE *to);
void api_write(json_t *j, FILE *to); /* on one line; takes j */

/* Write the list of resources: about `items` of them and of rows of their controllers. Return true
 * if there is more. */
bool api_resources_more(struct api_status *s, size_t items, FILE *to);

/* ---- api-plan.c */

json_t *api_plan(const struct snapshot *s);         /* the plan in force, or null */
json_t *api_claims(const struct snapshot_claim *c); /* of a tenant, or null */
