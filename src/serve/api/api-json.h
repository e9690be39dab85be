/* SPDX-License-Identifier: BSD-3-Clause */
/* api-json: what api-status.c and api-resource.c share: values that JSON may not be able to hold, and how a long
 * answer is written. Only those files include this header. */
#ifndef WEIR_SERVE_API_API_JSON_H
#define WEIR_SERVE_API_API_JSON_H

#include "serve/api/api.h"

/* NULL: null. What is no UTF-8 (a client's export name may be) has '?' in its place. */
json_t *api_text(const char *s);
json_t *api_real(double value); /* not finite: null */
json_t *api_count(uint64_t n);
json_t *api_seconds(double ns);

/* Counters whose names are those of their fields. */
struct api_counter {
	const char *name;
	size_t at;
	bool wide; /* 64 bits; else 32 */
};
#define API_COUNTER(type, field)                                                                   \
	{                                                                                          \
		.name = #field, .at = offsetof(type, field),                                       \
		.wide = sizeof(((type *)0)->field) == sizeof(uint64_t)                             \
	}
void api_counters(json_t *j, const void *of, const struct api_counter *list, size_t n);

/* An object's members, without the braces around them. Takes j. */
void api_write_members(json_t *j, FILE *to);
void api_write(json_t *j, FILE *to); /* on one line; takes j */

/* The list of resources: about so many of them, their jobs and their leases; true: there is more. */
bool api_resources_more(struct api_status *s, size_t items, FILE *to);

#endif
