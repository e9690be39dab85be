/* SPDX-License-Identifier: BSD-3-Clause */
/* An array of entries in the order in which they were put, and an open hash of indices. */
#include "base/hash.h"
#include "sim/metrics.h"
#include "base/array.h"
#include <weir/err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_NAME 256 /* bytes of a formatted name, including the NUL */

#define METRICS_GROWTH(room, least) ((room) ? (room) + (room) / 2 : (least))

struct entry {
	char *name;
	uint64_t hash;
	uint32_t unit; /* index into `units` */
	bool is_series;
	uint32_t n, room; /* of a series */
	union {
		double value;
		struct metrics_point *points; /* of a series */
	};
};

struct metrics {
	struct entry *entries;
	size_t n, room;
	uint32_t *slots; /* index + 1; 0: empty */
	size_t n_slots;  /* a power of two, > n · 4/3 */
	char **units;    /* each once: a run has ten or so, and thousands of entries */
	uint32_t n_units;
	int failed; /* the first error */
};

static int note(struct metrics *m, int r)
{
	if (r < 0 && !m->failed)
		m->failed = r;
	return r;
}

int metrics_failed(const struct metrics *m)
{
	return m->failed;
}

int metrics_new(struct metrics **ret)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->n_slots = 64;
	m->slots = calloc(m->n_slots, sizeof(*m->slots));
	if (!m->slots) {
		free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		free(m->entries[i].name);
		if (m->entries[i].is_series)
			free(m->entries[i].points);
	}
	for (uint32_t i = 0; i < m->n_units; i++)
		free(m->units[i]);
	free(m->units);
	free(m->entries);
	free(m->slots);
	free(m);
}

static char clean_char(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return c;
	if (c == '/' || c == '.')
		return '.';
	return c == '-' ? c : '_';
}

/* Of the cleaned name, so that "a b" and "a_b" are one. */
static uint64_t hash_of(const char *name)
{
	uint64_t h = HASH_BEGIN;

	for (; *name; name++)
		h = hash_more(h, (const char[]){clean_char(*name)}, 1);
	return h;
}

static bool is_same_name(const char *cleaned, const char *name)
{
	while (*name && *cleaned == clean_char(*name))
		cleaned++, name++;
	return !*cleaned && !*name;
}

/* Return the slot that holds the name, or the empty one where it belongs. */
static size_t slot_of(const struct metrics *m, const char *name, uint64_t hash)
{
	size_t s = hash & (m->n_slots - 1);

	while (m->slots[s]) {
		const struct entry *e = &m->entries[m->slots[s] - 1];

		if (e->hash == hash && is_same_name(e->name, name))
			break;
		s = (s + 1) & (m->n_slots - 1);
	}
	return s;
}

static struct entry *find_entry(const struct metrics *m, const char *name)
{
	size_t s = slot_of(m, name, hash_of(name));

	return m->slots[s] ? &m->entries[m->slots[s] - 1] : NULL;
}

static int grow_slots(struct metrics *m)
{
	size_t n_slots = m->n_slots * 2;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		size_t s = m->entries[i].hash & (n_slots - 1);

		while (slots[s])
			s = (s + 1) & (n_slots - 1);
		slots[s] = (uint32_t)i + 1;
	}
	free(m->slots);
	m->slots = slots;
	m->n_slots = n_slots;
	return 0;
}

static int reserve_entry(struct metrics *m)
{
	size_t room = METRICS_GROWTH(m->room, 64);

	if ((m->n + 1) * 4 > m->n_slots * 3 && grow_slots(m) < 0)
		return -ENOMEM;
	if (m->n < m->room)
		return 0;
	if (array_resize(&m->entries, room) < 0)
		return -ENOMEM;
	m->room = room;
	return 0;
}

/* Return the index of a unit, added if it is new; or -ENOMEM. */
static int64_t unit_index(struct metrics *m, const char *unit)
{
	for (uint32_t i = 0; i < m->n_units; i++)
		if (strcmp(m->units[i], unit) == 0)
			return i;
	if (array_resize(&m->units, m->n_units + 1) < 0 || !(m->units[m->n_units] = strdup(unit)))
		return -ENOMEM;
	return m->n_units++;
}

static struct entry *add_entry(struct metrics *m, const char *name, const char *unit)
{
	int64_t index = unit_index(m, unit ? unit : "");
	struct entry e = {.hash = hash_of(name), .unit = (uint32_t)index};

	if (index < 0 || reserve_entry(m) < 0)
		return NULL;
	e.name = strdup(name);
	if (!e.name)
		return NULL;
	for (char *c = e.name; *c; c++)
		*c = clean_char(*c);
	m->slots[slot_of(m, name, e.hash)] = (uint32_t)m->n + 1;
	m->entries[m->n] = e;
	return &m->entries[m->n++];
}

int metrics_put(struct metrics *m, const char *name, const char *unit, double value)
{
	struct entry *e;

	if (!*name)
		return note(m, -EINVAL);
	e = find_entry(m, name);
	if (!e)
		e = add_entry(m, name, unit);
	if (!e || e->is_series)
		return note(m, e ? -EINVAL : -ENOMEM);
	e->value = value;
	return 0;
}

__attribute__((format(printf, 2, 0))) static int write_name(
	char name[METRICS_NAME], const char *fmt, va_list ap)
{
	int n = vsnprintf(name, METRICS_NAME, fmt, ap);

	return n < 0 || n >= METRICS_NAME ? -ENAMETOOLONG : 0;
}

int metrics_putf(struct metrics *m, const char *unit, double value, const char *name_fmt, ...)
{
	char name[METRICS_NAME];
	va_list ap;
	int r;

	va_start(ap, name_fmt);
	r = write_name(name, name_fmt, ap);
	va_end(ap);
	return r < 0 ? note(m, r) : metrics_put(m, name, unit, value);
}

int metrics_series(struct metrics *m, const char *name, const char *unit)
{
	struct entry *e;

	if (!*name)
		return note(m, -EINVAL);
	e = find_entry(m, name);
	if (!e) {
		e = add_entry(m, name, unit);
		if (!e)
			return note(m, -ENOMEM);
		e->is_series = true;
		e->points = NULL;
	}
	if (!e->is_series)
		return note(m, -EINVAL);
	return (int)(e - m->entries);
}

int metrics_seriesf(struct metrics *m, const char *unit, const char *name_fmt, ...)
{
	char name[METRICS_NAME];
	va_list ap;
	int r;

	va_start(ap, name_fmt);
	r = write_name(name, name_fmt, ap);
	va_end(ap);
	return r < 0 ? note(m, r) : metrics_series(m, name, unit);
}

int metrics_append(struct metrics *m, int series, double t, double value)
{
	struct entry *e;

	if (series < 0 || (size_t)series >= m->n || !m->entries[series].is_series)
		return note(m, -EINVAL);
	e = &m->entries[series];
	if (e->n && !(t >= e->points[e->n - 1].t))
		return note(m, -EINVAL);
	if (e->n == e->room) {
		size_t room = METRICS_GROWTH((size_t)e->room, 8);

		if (room > UINT32_MAX || array_resize(&e->points, room) < 0)
			return note(m, -ENOMEM);
		e->room = (uint32_t)room;
	}
	e->points[e->n++] = (struct metrics_point){t, value};
	return 0;
}

int metrics_get(const struct metrics *m, const char *name, double *ret)
{
	const struct entry *e = find_entry(m, name);

	if (!e)
		return -ENOENT;
	if (e->is_series)
		return -EINVAL;
	*ret = e->value;
	return 0;
}

static struct metrics_entry entry_of(const struct metrics *m, const struct entry *e)
{
	return (struct metrics_entry){.name = e->name,
		.unit = m->units[e->unit],
		.is_series = e->is_series,
		.value = e->is_series ? 0 : e->value,
		.points = e->is_series ? e->points : NULL,
		.n = e->n};
}

bool metrics_find(const struct metrics *m, const char *name, struct metrics_entry *ret)
{
	const struct entry *e = find_entry(m, name);

	if (!e)
		return false;
	*ret = entry_of(m, e);
	return true;
}

size_t metrics_count(const struct metrics *m)
{
	return m->n;
}

struct metrics_entry metrics_at(const struct metrics *m, size_t i)
{
	return entry_of(m, &m->entries[i]);
}

const char *metrics_near(const struct metrics *m, const char *name)
{
	const char **names = calloc(m->n + 1, sizeof(*names));
	const char *near;

	if (!names)
		return NULL;
	for (size_t i = 0; i < m->n; i++)
		names[i] = m->entries[i].name;
	near = weir_err_near(name, names);
	free(names);
	return near;
}
