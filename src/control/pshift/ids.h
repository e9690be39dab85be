/* SPDX-License-Identifier: BSD-3-Clause */
/* ids: from a bucket's 64-bit name to its place in a table. Open addressing; O(1). Entries are
 * never removed. */
#ifndef WEIR_CONTROL_PSHIFT_IDS_H
#define WEIR_CONTROL_PSHIFT_IDS_H

#include <stddef.h>
#include <stdint.h>

struct pshift_ids { /* zeroes: empty */
	struct pshift_ids_slot {
		uint64_t id;
		uint32_t place; /* + 1; 0: free */
	} * slots;
	size_t n, room; /* room is a power of 2 */
};

int pshift_ids_add(
	struct pshift_ids *ids, uint64_t id, uint32_t place);      /* 0 or -ENOMEM; a new id */
size_t pshift_ids_find(const struct pshift_ids *ids, uint64_t id); /* or SIZE_MAX */
void pshift_ids_free(struct pshift_ids *ids);

#endif
