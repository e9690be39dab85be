/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern: the syntax of a match's fields: shell globs (* ? [a-z] [!a-z] \*, where * is any run of
 * bytes, slashes too), and blocks of addresses (10.0.0.0/24, fd00::/8, or one address).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define POLICY_PATTERN_MAX 255 /* bytes */

/* One step of a glob: any run of bytes, or one out of a set. */
struct policy_token {
	bool star, literal;
	uint64_t set[4];
};
/* Parse the token at p, which is not the end. Return the text after it, or NULL: the pattern is
 * malformed. */
const char *policy_pattern_next(const char *p, struct policy_token *t);
bool policy_pattern_fits(const char *pattern, const char *text);
/* Return true if a text of only these bytes can fit; false for a malformed pattern. */
bool policy_pattern_can(const char *pattern, const char *bytes);
/* Return true if a text can fit both. Only the first POLICY_PATTERN_MAX tokens of each count. */
bool policy_pattern_overlap(const char *a, const char *b);

struct policy_addresses {
	bool v6;
	uint8_t address[16];
	unsigned bits;
};
bool policy_pattern_block(const char *text, struct policy_addresses *ret);
/* Return true if both have the same family and the same first bits. */
bool policy_pattern_same(
	const struct policy_addresses *a, const struct policy_addresses *b, unsigned bits);
