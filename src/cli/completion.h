/* SPDX-License-Identifier: BSD-3-Clause */
/* completion: shell completion, generated from the verbs' option tables. */
#pragma once

#include "cli/common/verb.h"
#include <stdio.h>

/* Write the bash script. `verbs` is NULL-terminated; `own` are the options before any verb. */
void completion_bash(FILE *to, const struct verb *const *verbs, const struct opt *own);
