/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-dense: pShift as written in the paper, with the token movement map, to measure against.
 *
 * Numbers are at most 2³¹ − 1 here, and so are their sums over a server: an entry of the map has
 * four bytes, since S² B of them must fit in memory. It is not used to allocate tokens.
 */
#pragma once

#include "control/pshift/alloc.h"

struct pshift_dense_options {
	/* After a move update only the buckets that moved (§III-B2), instead of the whole vectors
	 * of all edges (Algorithm 5, and the O(|S||B|) of §III-C1). */
	bool changed_only;
};

/* Allocate tokens. rtokens: one for each entry of `in`, or NULL. ret_map: the token movement map
 * before the first move, servers × servers, TMS_{j,k} at j · servers + k; or NULL. Return 0;
 * -ERANGE: a number is too large; -ENOMEM. */
int pshift_dense(const struct pshift_input *in, const struct pshift_dense_options *options,
	int64_t *rtokens, int64_t *ret_map, int64_t *ret_phi);
