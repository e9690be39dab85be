/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger-json: what AdapTBF knows at the resources, as JSON, for the API and for the file that a restart
 * reads. weir-api(7), GET /v1/ledger, is the manual of it. Pure: no clock, no file.
 *
 * Tokens are whole; times are in seconds before the look (`…_ago_s`), so that another clock can read them.
 */
#ifndef WEIR_SERVE_API_LEDGER_JSON_H
#define WEIR_SERVE_API_LEDGER_JSON_H

#include "serve/host/steward.h"
#include <jansson.h>

/* A list, one entry an image. NULL: out of memory. */
json_t *ledger_json(const struct steward_image *images, size_t n);

/* What a token counts, as a word. */
const char *ledger_json_unit(enum weir_unit unit);

/* The numbers of one, as they stand there: of the whole, of a job. */
void ledger_json_state(json_t *to, const struct adaptbf_state *s);
void ledger_json_job(json_t *to, const struct adaptbf_account *a);

/* The way back: images whose clock is 0 at the look. -EINVAL and why (a literal); -ENOMEM. */
int ledger_json_read(
	const json_t *list, struct steward_image **ret_images, size_t *ret_n, const char **ret_why);
void ledger_json_free(struct steward_image *images, size_t n);

#endif
