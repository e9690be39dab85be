/* SPDX-License-Identifier: BSD-3-Clause */
/* stay: the command line options that the servers `weir serve` and `weir control` share. */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include "cli/common/verb.h"

struct stay_list { /* of words, cut out of `text`; zero it */
	char *text;
	const char **words;
	size_t n;
};
void stay_list_free(struct stay_list *l);
/* Split addresses at commas and check each. Return -1, or the exit status after an error
 * message. */
typedef int stay_check_fn(const char *address, struct weir_err *err);
int stay_addresses(const struct verb *v, const char *option, const char *text, stay_check_fn *check,
	struct stay_list *ret);
/* Parse --log-level: an enum log_level, or -1 if text is NULL, for the policy's. Return as
 * above. */
int stay_level(const struct verb *v, const char *text, int *ret_level);
void stay_log(int level, const struct weir_policy *p, bool json); /* open the log */
#define STAY_NO_CONFINE "keep all system calls and core files, for debuggers"
void stay_confine(void); /* see serve/loop/confine.h; a failure is logged */
int stay_pidfile(const char *path, struct weir_err *err);
