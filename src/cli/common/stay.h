/* SPDX-License-Identifier: BSD-3-Clause */
/* stay: what the command lines of programs that stay (`weir serve`, `weir control`) have in common. */
#ifndef WEIR_CLI_COMMON_STAY_H
#define WEIR_CLI_COMMON_STAY_H

#include <weir/err.h>
#include <weir/policy.h>
#include "cli/common/verb.h"

struct stay_list { /* of words, cut out of `text`; zero it */
	char *text;
	const char **words;
	size_t n;
};
void stay_list_free(struct stay_list *l);
/* Addresses with commas between: -1, or the exit status, with the reason said. */
int stay_addresses(
	const struct verb *v, const char *option, const char *text, struct stay_list *ret);
/* --log-level: an enum log_level, or -1 where text is NULL: the policy's. As above. */
int stay_level(const struct verb *v, const char *text, int *ret_level);
void stay_log(int level, const struct weir_policy *p, bool json); /* opens it */
int stay_pidfile(const char *path, struct weir_err *err);

#endif
