/* SPDX-License-Identifier: BSD-3-Clause */
/* api-json: shared by api-status.c, api-resource.c, api-plan.c and metrics.c. */
#pragma once

#include "serve/api/api.h"
#include "serve/show/value.h"

/* The values of resources and tenants that are one number or word each, for JSON and /metrics. For
 * groups of tenants /metrics has only the first API_TENANT_LEAVES: their counters would count
 * everything twice in a sum. */
#define API_TENANT_LEAVES 4
#define API_TENANT_FACTS  21
extern const struct facts_table
	api_resource_facts;                       /* of struct snapshot_resource; api-resource.c */
extern const struct facts_table api_tenant_facts; /* of struct snapshot_tenant; api-status.c */

/* Write the list of resources: about `items` of them and of rows of their controllers. Return true
 * if there is more. */
bool api_resources_more(struct api_status *s, size_t items, FILE *to);

/* ---- api-plan.c */

json_t *api_plan(const struct snapshot *s);         /* the plan in force, or null */
json_t *api_claims(const struct snapshot_claim *c); /* of a tenant, or null */
