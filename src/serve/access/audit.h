/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * audit: the record of changes, one JSON object per line, in a file; without a file, in the log.
 *
 * A file that was renamed or removed is made anew with the next line, so that no signal is needed to rotate it. A line that the file
 * does not take goes to the log, as an error; no part of it stays in the file. In the log a request that was refused (a "status" of
 * 4xx) is the event audit-refused, which the log limits; other lines are not limited.
 */
#pragma once

#include <weir/err.h>
#include <jansson.h>

struct audit;
/* path NULL: the log. 0, -ENOMEM, or another errno with a message: the file cannot be written. */
int audit_open(const char *path, struct audit **ret_audit, struct weir_err *err);
void audit_close(struct audit *a); /* NULL is fine */
/* Write a record, which is taken; "time" is added. NULL: there was no memory for it, which is logged. */
void audit_put(struct audit *a, json_t *record);
