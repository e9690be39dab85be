/* SPDX-License-Identifier: BSD-3-Clause */
/* report-impl: for those who make texts, as report.h has them. */
#ifndef WEIR_SIM_EXPERIMENT_REPORT_IMPL_H
#define WEIR_SIM_EXPERIMENT_REPORT_IMPL_H

#include "sim/experiment/report.h"
#include <stdio.h>

/* Closes a stream of open_memstream(text, …), which sets its text only then. 0, or -ENOMEM: not all of it is
 * there, and the text is freed. */
int report_finish(FILE *f, char **text, char **ret);

#endif
