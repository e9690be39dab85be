/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of yamldoc that knows libyaml's parser: bytes in, one libyaml document out. */
#ifndef WEIR_BASE_YAMLDOC_LOAD_H
#define WEIR_BASE_YAMLDOC_LOAD_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

/* One document, with a root that is no null, for the caller to yaml_document_delete. -EINVAL with a
 * message, or -ENOMEM without. */
int yamldoc_load(const char *text, size_t len, const char *name, yaml_document_t *ret_yaml,
	struct weir_err *err);

bool yamldoc_is_null(const yaml_node_t *y); /* a plain ~, null or nothing */

#endif
