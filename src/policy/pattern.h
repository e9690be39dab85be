/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern: what the fields of a match are written in: shell globs (* ? [a-z] [!a-z] \*, where * is any
 * run of bytes, slashes too), and blocks of addresses (10.0.0.0/24, fd00::/8, or one address).
 */
#ifndef WEIR_POLICY_PATTERN_H
#define WEIR_POLICY_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#define POLICY_PATTERN_MAX 255 /* bytes */

/* One step of a glob: any run of bytes, or one out of a set. */
struct policy_token {
	bool star, literal;
	uint64_t set[4];
};
/* The token at p, which is not the end; what follows it, or NULL: the pattern is broken. */
const char *policy_pattern_next(const char *p, struct policy_token *t);
bool policy_pattern_fits(const char *pattern, const char *text);
/* Whether a text of only these bytes can fit; false for a broken pattern. */
bool policy_pattern_can(const char *pattern, const char *bytes);
/* Whether there can be a text that fits both. Of each at most POLICY_PATTERN_MAX tokens count. */
bool policy_pattern_overlap(const char *a, const char *b);

struct policy_addresses {
	bool v6;
	uint8_t address[16];
	unsigned bits;
};
bool policy_pattern_block(const char *text, struct policy_addresses *ret);
/* Are the first bits the same, of the same family? */
bool policy_pattern_same(
	const struct policy_addresses *a, const struct policy_addresses *b, unsigned bits);

#endif
