/* SPDX-License-Identifier: BSD-3-Clause */
/* value: values that JSON may not be able to hold, and the writing of long answers. */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* NULL: null. Bytes that are not UTF-8 (a client's export name may have some) become '?'. */
json_t *show_text(const char *s);
json_t *show_real(double value); /* not finite: null */
json_t *show_count(uint64_t n);
json_t *show_seconds(double ns);

/* Write an object's members, without the braces around them. Takes j. */
void show_write_members(json_t *j, FILE *to);
void show_write(json_t *j, FILE *to); /* on one line; takes j */
