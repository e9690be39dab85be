/* SPDX-License-Identifier: BSD-3-Clause */
/* api-json: what api-status.c, api-resource.c, facts-json.c and metrics.c share: values that JSON may not be able to hold, and how a long
 * answer is written. Only those files include this header. */
#ifndef WEIR_SERVE_API_API_JSON_H
#define WEIR_SERVE_API_API_JSON_H

#include "serve/api/api.h"

/* NULL: null. What is no UTF-8 (a client's export name may be) has '?' in its place. */
json_t *api_text(const char *s);
json_t *api_real(double value); /* not finite: null */
json_t *api_count(uint64_t n);
json_t *api_seconds(double ns);

/* The values of resources and tenants that are one number or word each, for JSON and /metrics. Of groups of tenants,
 * /metrics has only the first API_TENANT_LEAVES: their counters would count everything twice in a sum. */
#define API_TENANT_LEAVES 4
#define API_TENANT_FACTS  19
extern const struct facts_table
	api_resource_facts;                       /* of struct snapshot_resource; api-resource.c */
extern const struct facts_table api_tenant_facts; /* of struct snapshot_tenant; api-status.c */

/* An object's members, without the braces around them. Takes j. */
void api_write_members(json_t *j, FILE *to);
void api_write(json_t *j, FILE *to); /* on one line; takes j */

/* The list of resources: about so many of them and of rows of their controllers; true: there is more. */
bool api_resources_more(struct api_status *s, size_t items, FILE *to);

#endif
