/* SPDX-License-Identifier: BSD-3-Clause */
/* http-json: replies in JSON. */
#pragma once

#include "serve/http/http.h"
#include <jansson.h>

#define HTTP_JSON "application/json"
#define HTTP_PROM "text/plain; version=0.0.4; charset=utf-8"

/* Takes ownership of j; NULL: no memory, 500. */
void http_json_give(struct http_reply *ret, unsigned status, json_t *j);
void http_json_fail(struct http_reply *ret, unsigned status, const char *why); /* {"error": why} */
