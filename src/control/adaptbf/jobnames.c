/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"
#include "control/adaptbf/jobnames.h"
#include "base/array.h"
#include <stdlib.h>
#include <string.h>

/* Names come from the policy and are short. */
static size_t place(const struct jobnames *j, const char *name)
{
	uint64_t h = hash_more(HASH_BEGIN, name, strlen(name));

	return (size_t)(h ^ h >> 32) & (j->table_room - 1);
}

static void index_name(struct jobnames *j, uint32_t id)
{
	size_t i = place(j, j->names[id - 1]);

	while (j->table[i])
		i = (i + 1) & (j->table_room - 1);
	j->table[i] = id;
}

static void fill_table(struct jobnames *j)
{
	memset(j->table, 0, j->table_room * sizeof(*j->table));
	for (size_t i = 0; i < j->n; i++)
		if (j->names[i])
			index_name(j, (uint32_t)i + 1);
}

/* Make room for one more name. */
static bool grow(struct jobnames *j)
{
	/* Numbers are 32 bits in the table. */
	if (j->n >= UINT32_MAX / 4 || array_grow(&j->names, &j->room, j->n + 1) < 0)
		return false;
	if (2 * (j->used + 1) >= j->table_room) {
		size_t room = j->table_room ? 2 * j->table_room : 64;
		uint32_t *table = malloc(room * sizeof(*table));

		if (!table)
			return false;
		free(j->table);
		j->table = table;
		j->table_room = room;
		fill_table(j);
	}
	return true;
}

uint64_t jobnames_find(const struct jobnames *j, const char *name)
{
	if (!j->table_room)
		return 0;
	for (size_t i = place(j, name);; i = (i + 1) & (j->table_room - 1)) {
		uint32_t id = j->table[i];

		if (!id || strcmp(j->names[id - 1], name) == 0)
			return id;
	}
}

uint64_t jobnames_add(struct jobnames *j, const char *name)
{
	uint64_t id = jobnames_find(j, name);
	char *copy;
	size_t i = j->n;

	if (id)
		return id;
	if (!grow(j) || !(copy = strdup(name)))
		return 0;
	if (j->used < j->n) { /* a number is free */
		for (i = j->low; j->names[i]; i++)
			;
		j->low = i + 1;
	} else {
		j->n++;
	}
	j->names[i] = copy;
	j->used++;
	index_name(j, (uint32_t)i + 1);
	return i + 1;
}

const char *jobnames_name(const struct jobnames *j, uint64_t id)
{
	return id >= 1 && id <= j->n ? j->names[id - 1] : NULL;
}

/* Remove the name from the table. Entries behind the gap that would no longer be found move up into
 * it. */
static void cut(struct jobnames *j, uint32_t id)
{
	size_t mask = j->table_room - 1, gap = place(j, j->names[id - 1]);

	while (j->table[gap] != id)
		gap = (gap + 1) & mask;
	for (size_t i = (gap + 1) & mask; j->table[i]; i = (i + 1) & mask) {
		size_t home = place(j, j->names[j->table[i] - 1]);

		if (((i - home) & mask) >= ((i - gap) & mask)) {
			j->table[gap] = j->table[i];
			gap = i;
		}
	}
	j->table[gap] = 0;
}

void jobnames_sweep(struct jobnames *j, size_t n, bool (*keep)(uint64_t id, void *arg), void *arg)
{
	for (n = n < j->n ? n : j->n; n > 0; n--) {
		size_t i = j->swept < j->n ? j->swept : 0;

		j->swept = i + 1;
		if (!j->names[i] || keep(i + 1, arg))
			continue;
		cut(j, (uint32_t)i + 1);
		free(j->names[i]);
		j->names[i] = NULL;
		j->used--;
		if (i < j->low)
			j->low = i;
	}
}

void jobnames_free(struct jobnames *j)
{
	for (size_t i = 0; i < j->n; i++)
		free(j->names[i]);
	free(j->names);
	free(j->table);
	*j = (struct jobnames){0};
}
