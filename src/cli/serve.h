/* SPDX-License-Identifier: BSD-3-Clause */
/* serve: what the files of `weir serve` share. */
#ifndef WEIR_CLI_SERVE_H
#define WEIR_CLI_SERVE_H

#include <weir/err.h>
#include <weir/policy.h>
#include <stdbool.h>

struct serve_policy {
	const char *name; /* the operand */
	char *text;       /* malloc'ed */
	struct weir_policy *policy;
	bool back_only; /* the operand is a back end's name: the text was made up */
};

/* Reads the operand, a file or a back end's name; warnings go to standard error. -EINVAL: it is
 * wrong; else it could not be read. */
int serve_policy_read(const char *operand, struct serve_policy *ret, struct weir_err *err);
/* Are the back ends and peers that it names ones that there could be? Errors have their place. */
int serve_policy_names(const struct weir_policy *p, struct weir_err *err);
/* A file with a key, or a token, that everybody can read or write; NULL: there is none. token: the file that
 * an option names instead of the policy's, or NULL. */
const char *serve_policy_bare_secret(const struct weir_policy *p, const char *token);
/* Could it be served, as far as can be told without opening anything? */
int serve_policy_check(const struct weir_policy *p, struct weir_err *err);

#endif
