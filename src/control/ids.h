/* SPDX-License-Identifier: BSD-3-Clause */
/* ids: from a bucket's 64-bit name to its place in a table. Open addressing; O(1). Nothing leaves. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ids { /* zeroes: empty */
	struct ids_slot {
		uint64_t id;
		uint32_t place; /* + 1; 0: free */
	} * slots;
	size_t n, room; /* room is a power of 2 */
};

int ids_add(struct ids *ids, uint64_t id, uint32_t place); /* 0 or -ENOMEM; a new id */
size_t ids_find(const struct ids *ids, uint64_t id);       /* or SIZE_MAX */
void ids_free(struct ids *ids);
