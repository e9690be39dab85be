/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route: the paths of an API, each with the role that it needs, in one table.
 *
 * The server checks the role before it reads a body, and calls the handler for routes of the table only. GET /v1/access, which every
 * API has, lists the table.
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include <stdbool.h>
#include <stddef.h>

struct http_route {                /* the first member of a row */
	const char *method, *path; /* GET is also HEAD */
	unsigned name;             /* one of so many bytes at most follows the path; 0: none */
	enum policy_role role;     /* NONE: a request needs no token */
	const char *const *keys;   /* of its query; NULL: any */
};
#define HTTP_KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HTTP_NO_KEYS   ((const char *const[]){NULL})

struct http_routes { /* a static table, whose rows begin with a struct http_route */
	const void *rows;
	size_t n, size; /* of a row, in bytes */
};
/* The table `rows`, an array of structures whose member `is` is the route. */
#define HTTP_ROUTES(table)                                                                         \
	{                                                                                          \
		(table), sizeof(table) / sizeof(*(table)),                                         \
			sizeof(*(table)) + 0 * sizeof((table)->is.role)                            \
	}

#define HTTP_METHOD_MAX 64

const struct http_route *http_route_at(const struct http_routes *t, size_t i);
/* Return true if the path, with any method, is that of the route. */
bool http_route_leads(const struct http_route *r, const char *path);
/* Find the route of a request; NULL: none. */
const struct http_route *http_route_find(
	const struct http_routes *t, const char *method, const char *path);
/* Append the methods that a path has to a list: "GET, PUT". */
void http_route_methods(const struct http_routes *t, const char *path, char list[HTTP_METHOD_MAX]);
/* Say what is wrong with the name in a path that no route has: -EINVAL with a message; 0: the path has none. */
int http_route_misnamed(const struct http_routes *t, const char *path, struct weir_err *err);

/* For a handler: refuse a request whose query has a key that the route does not, or a flag with another value than 0 or 1: a misspelt
 * ?dry=1 must not put a policy in force. Return true if the request is right. */
struct http_request;
struct http_reply;
bool http_route_ready(const struct http_request *q, struct http_reply *ret);
