/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tenant: the tenants of a recording.
 *
 * A gateway's recording (`weir trace record`) has a stream for each tenant and resource, and names them in comments:
 * "# stream 3: prod/db on ssd1".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct trace_name { /* of a stream; not NUL-terminated */
	unsigned long stream;
	const char *tenant, *resource;
	size_t len, resource_len;
};

/* Read the name in a line that ends at `end`; false: it has none. */
bool trace_name_of(const char *line, const char *end, struct trace_name *ret);

/* Find the next name in a text; *at: where to begin, then behind the line. false: there is no more. */
bool trace_name_next(const char **at, const char *end, struct trace_name *ret);

/* Turn the requests of all other tenants into comments, in place, so that lines keep their numbers; those of the same tenant on other
 * resources as well if it has some on `resource` (may be NULL). Return the number of streams that are left; 0: the tenant has none, and
 * the text is as it was; -ENOMEM. */
int trace_keep_tenant(char *text, size_t len, const char *tenant, const char *resource);
