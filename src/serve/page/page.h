/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page: the page for browsers, which is part of the program. Its sources are in web/; what npm makes of them is web/dist, and the
 * build embeds that. It holds no data: it asks the API of the server that it comes from.
 */
#pragma once

#include "serve/http/http.h"

extern const struct http_file page_files[];
extern const size_t page_n_files;
