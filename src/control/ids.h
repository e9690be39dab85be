/* SPDX-License-Identifier: BSD-3-Clause */
/* ids: from the 64-bit name of a bucket or a job to its place in a table. Open addressing; O(1). */
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

int ids_reserve(struct ids *ids, size_t n);                /* room for n ids in all; 0 or -ENOMEM */
int ids_add(struct ids *ids, uint64_t id, uint32_t place); /* 0 or -ENOMEM; a new id */
void ids_remove(struct ids *ids, uint64_t id);             /* a known id */
size_t ids_find(const struct ids *ids, uint64_t id);       /* or SIZE_MAX */
void ids_free(struct ids *ids);
