/* SPDX-License-Identifier: BSD-3-Clause */
/* completion: shell completion, written from the verbs' option tables. */
#ifndef WEIR_PROG_COMPLETION_H
#define WEIR_PROG_COMPLETION_H

#include "prog/verb.h"
#include <stdio.h>

/* The bash script. `verbs` ends with NULL; `own` are the options that stand before any verb. */
void completion_bash(FILE *to, const struct verb *const *verbs, const struct opt *own);

#endif
