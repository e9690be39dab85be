/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: keys that a policy and a scenario write alike for AdapTBF, read in one place. */
#ifndef WEIR_CONTROL_ADAPTBF_KEYS_H
#define WEIR_CONTROL_ADAPTBF_KEYS_H

#include "base/yamldoc.h"
#include "control/adaptbf/adaptbf.h"

/* `debt` of the map: the word `paper`, or a map with `floor` and `half_life`, each with its default. 0, -ENOENT
 * (absent; *ret is as it was), or -EINVAL. */
int adaptbf_keys_debt(yamldoc_node map, struct adaptbf_debt *ret, struct weir_err *err);

/* `unit` of the map: what a token counts, `requests` or `bytes`. The same. */
int adaptbf_keys_unit(yamldoc_node map, enum weir_unit *ret, struct weir_err *err);

/* A rate in that unit, as tokens per second. The same. */
int adaptbf_keys_rate(
	yamldoc_node map, const char *key, enum weir_unit unit, double *ret, struct weir_err *err);

#endif
