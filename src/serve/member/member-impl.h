/* SPDX-License-Identifier: BSD-3-Clause */
/* member-impl: shared by member*.c. */
#pragma once

#include "serve/member/member.h"

#define MEMBER_TENANTS "the cluster's policy" /* the name of a file, in a member's policy */

/* Keep a copy of a version in the state folder (NULL: do not); a failure is logged. */
void member_keep(const char *state, const struct versions_text *v);
