/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts-json: facts of controllers as JSON, and back: for the API, for weir status, and for the
 * file that a restart reads. Pure: no clock, no file.
 *
 * A row is an object of its keys and facts. Times are in seconds; times before the snapshot end in
 * _ago_s, so that another clock can read them. A value that is not known is null.
 */
#pragma once

#include "control/facts.h"
#include <jansson.h>

/* Return the facts of a row that are shown in that place (FACTS_IN_STATUS, FACTS_IN_STATE). NULL:
 * out of memory. */
json_t *facts_json_row(const struct facts_table *t, const void *row, enum facts_place place);
/* The same for an instance, with the lists of its tables. */
json_t *facts_json(const struct facts *f, enum facts_place place);

/* Read a row of a status. A missing or invalid value is 0, or not known. Text is borrowed from the
 * JSON. Facts that are FACTS_OF_RESOURCE are read from `resource`. */
void facts_json_show(
	const json_t *j, const json_t *resource, const struct facts_table *t, void *ret_row);

/* The same for an instance with its rows, whose text is borrowed, too. If memory runs out, rows are
 * missing (memory->failed). */
void facts_json_show_all(const json_t *j, const json_t *resource, const struct facts_kind *kind,
	struct arena *memory, struct facts *ret);

/* Read all facts that a restart needs, with memory of their own. -EINVAL: some are missing or of
 * another type; -ENOMEM. */
int facts_json_read(
	const json_t *j, const struct facts_kind *kind, struct arena *memory, struct facts *ret);
