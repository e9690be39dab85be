/* SPDX-License-Identifier: BSD-3-Clause */
/* json-text: JSON written as text, for answers too long to be built as a tree first. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Write n bytes of a string, escaped, without its quotes: so a long one can be written in pieces.
 * Must be UTF-8. */
void json_text_escape(const char *s, size_t n, FILE *to);
void json_text_string(const char *s, FILE *to); /* with quotes; NULL: null */
void json_text_real(double value, FILE *to);    /* not finite: null */
