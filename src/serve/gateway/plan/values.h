/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values: the values of a plan's file, one after the other. The library reads the rare ones; names and numbers are read here,
 * since 10,000 tenants as the library's objects take five times as long. The grammar is the library's: what this file does not
 * recognise at once is given to it.
 */
#pragma once

#include "serve/gateway/plan/plan.h"
#include <jansson.h>

struct plan_reading {
	struct gateway_plan *plan;
	struct weir_err *err;
	const char *text, *at, *end; /* at: what is not read yet */
	unsigned given;              /* members, as in member_names */
	/* room that is left; a file has more bytes than there are names, stages and buckets in it */
	char *names;
	struct gateway_plan_stage *stages, *first;
	struct weir_bucket_spec *specs;
};

int plan_refuse(struct plan_reading *r, const char *what, const char *why); /* -EINVAL */
int plan_refuse_here(struct plan_reading *r, const char *why); /* the same, with the line */

/* Return the next character that is no space; 0: the end, or a NUL. */
char plan_next(struct plan_reading *r);
/* Read one value; NULL with a message. */
json_t *plan_value(struct plan_reading *r);
int plan_skip(struct plan_reading *r); /* the same, and forget it; 0 or -EINVAL */
/* After an element: return 1 if another one follows, 0 at the end, or -EINVAL. */
int plan_more(struct plan_reading *r, char end);
/* Write a string to r->names, which stays where it is; "" if the value is none. 0 or -EINVAL. */
int plan_string(struct plan_reading *r);
/* Read a number; NAN if the value is none. 0 or -EINVAL. */
int plan_number(struct plan_reading *r, double *ret, bool *ret_whole);

/* Read an object's members: `member` reads the value of keys[i]; others are skipped. *ret_given: a bit for each that was there; 0 if
 * the value is no object. 0 or -EINVAL. */
typedef int plan_member_fn(struct plan_reading *r, unsigned key, void *to);
int plan_object(struct plan_reading *r, const char *const *keys, plan_member_fn *member, void *to,
	unsigned *ret_given);
/* Read a list: `item` reads one value. *ret_list: it is one. 0 or -EINVAL. */
int plan_list(struct plan_reading *r, int (*item)(struct plan_reading *r, void *to), void *to,
	bool *ret_list);
