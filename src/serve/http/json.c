/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/http/json.h"
#include <string.h>

void http_json_give(struct http_reply *ret, unsigned status, json_t *j)
{
	ret->status = 500;
	ret->type = HTTP_JSON;
	ret->body = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
	json_decref(j);
	if (!ret->body)
		return;
	ret->status = status;
	ret->length = strlen(ret->body);
}

void http_json_fail(struct http_reply *ret, unsigned status, const char *why)
{
	json_t *text = json_string(why);

	http_json_give(ret, status,
		json_pack("{s:o}", "error",
			text ? text : json_string("the message is not valid UTF-8")));
}
