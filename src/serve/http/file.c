/* SPDX-License-Identifier: BSD-3-Clause */
/* http-file: the files of a page. */
#include "serve/http/impl.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct http_file *http_file_find(const struct http *h, const char *path)
{
	for (size_t i = 0; i < h->n_files; i++)
		if (strcmp(h->files[i].path, path) == 0)
			return &h->files[i];
	return NULL;
}

/* The page may load its own files and ask its own server, nothing else, and no other page may frame it. */
#define FILE_POLICY                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "    \
	"data:; "                                                                                  \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Return true if the client takes gzip: it is in the list, and not with the weight 0. */
static bool takes_gzip(const char *list)
{
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strspn(at, " \t");
		const char *q;

		at += n;
		n = strcspn(at, ";, \t");
		if (n != 4 || strncasecmp(at, "gzip", n) != 0)
			continue;
		q = at + n + strspn(at + n, "; \t");
		return strncasecmp(q, "q=", 2) != 0 || strtod(q + 2, NULL) > 0;
	}
	return false;
}

enum MHD_Result http_file_send(struct MHD_Connection *c, const struct http_file *f)
{
	const char *accepts =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	bool packed = takes_gzip(accepts);
	struct MHD_Response *r = MHD_create_response_from_buffer(packed ? f->n_packed : f->length,
		(void *)(uintptr_t)(packed ? f->packed : f->text), MHD_RESPMEM_PERSISTENT);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", f->type);
	if (packed)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	MHD_add_response_header(r, "Vary", "Accept-Encoding");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	MHD_add_response_header(r, "Content-Security-Policy", FILE_POLICY);
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	done = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}
