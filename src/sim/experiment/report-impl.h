/* SPDX-License-Identifier: BSD-3-Clause */
/* report-impl: shared by the files that write texts for report.h. */
#ifndef WEIR_SIM_EXPERIMENT_REPORT_IMPL_H
#define WEIR_SIM_EXPERIMENT_REPORT_IMPL_H

#include "sim/experiment/report.h"
#include <stdio.h>

/* Close a stream of open_memstream(text, …), which sets its text only then. Return 0, or -ENOMEM if
 * the text is incomplete; it is freed then. */
int report_finish(FILE *f, char **text, char **ret);

#endif
