/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/page/page.h"

/* For each file NAME: NAME_text and NAME_packed. */
#include "page.inc"

#define FILE_AT(path, type, name)                                                                  \
	{                                                                                          \
		path, type, name##_text, name##_packed, sizeof(name##_text), sizeof(name##_packed) \
	}

const struct http_file page_files[] = {
	FILE_AT("/", "text/html; charset=utf-8", index_html),
	FILE_AT("/page.css", "text/css; charset=utf-8", page_css),
	FILE_AT("/page.js", "text/javascript; charset=utf-8", page_js),
};
const size_t page_n_files = sizeof(page_files) / sizeof(*page_files);
