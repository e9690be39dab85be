/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-station: the keys of each kind of device and of links, as one table. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum field_type { TIME, SIZE64, SIZE32, WHOLE, WHOLE64, REAL, BYTES_RATE, IOPS, FLAG, WORD };

struct field {
	const char *key;
	enum field_type type;
	size_t offset;            /* in struct station_config */
	const char *const *words; /* WORD: an int, the index */
};

#define AT(path) offsetof(struct station_config, path)
#define SPINDLE(m)                                                                                 \
	{"capacity_bytes", SIZE64, AT(m.capacity), NULL}, {"rpm", REAL, AT(m.rpm), NULL},          \
		{"cylinders", WHOLE, AT(m.cylinders), NULL},                                       \
		{"seek_track", TIME, AT(m.seek_track), NULL},                                      \
		{"seek_third", TIME, AT(m.seek_third), NULL},                                      \
		{"seek_full", TIME, AT(m.seek_full), NULL}, {"settle", TIME, AT(m.settle), NULL},  \
		{"skew", TIME, AT(m.skew), NULL}, {"outer", BYTES_RATE, AT(m.outer), NULL},        \
		{"inner", BYTES_RATE, AT(m.inner), NULL},                                          \
		{"interface", BYTES_RATE, AT(m.interface), NULL},                                  \
		{"overhead", TIME, AT(m.overhead), NULL},                                          \
		{"segment", SIZE32, AT(m.segment), NULL},                                          \
		{"order", WORD, AT(m.order), spindle_order_names},                                 \
		{"window", WHOLE, AT(m.window), NULL},                                             \
	{                                                                                          \
		"age", TIME, AT(m.age), NULL                                                       \
	}

static const char *const service_words[] = {"exponential", "fixed", NULL}; /* enum server_service */

static const struct field disk_fields[] = {SPINDLE(disk.spindle), {NULL, 0, 0, NULL}};

static const struct field array_fields[] = {SPINDLE(array.disk),
	{"disks", WHOLE, AT(array.disks), NULL}, {"unit", SIZE32, AT(array.unit), NULL},
	{"lun", SIZE64, AT(array.lun), NULL}, {"start", SIZE64, AT(array.start), NULL},
	{"active", WHOLE, AT(array.active), NULL}, {"cost", TIME, AT(array.cost), NULL},
	{"mirror", TIME, AT(array.mirror), NULL},
	{"bandwidth", BYTES_RATE, AT(array.bandwidth), NULL},
	{"streams", WHOLE, AT(array.streams), NULL}, {"ahead", WHOLE, AT(array.ahead), NULL},
	{"trigger", WHOLE, AT(array.trigger), NULL}, {"cache", SIZE64, AT(array.cache), NULL},
	{"low", REAL, AT(array.low), NULL}, {"destage", WHOLE, AT(array.destage), NULL},
	{NULL, 0, 0, NULL}};

static const struct field ssd_fields[] = {{"channels", WHOLE, AT(ssd.channels), NULL},
	{"dies", WHOLE, AT(ssd.dies), NULL}, {"page", SIZE32, AT(ssd.page), NULL},
	{"read", TIME, AT(ssd.read), NULL}, {"program", TIME, AT(ssd.program), NULL},
	{"channel_rate", BYTES_RATE, AT(ssd.channel_rate), NULL},
	{"bandwidth", BYTES_RATE, AT(ssd.bandwidth), NULL},
	{"overhead", TIME, AT(ssd.overhead), NULL}, {"slots", WHOLE, AT(ssd.slots), NULL},
	{"gc_every", WHOLE, AT(ssd.gc_every), NULL}, {"gc_time", TIME, AT(ssd.gc_time), NULL},
	{"gc_random", FLAG, AT(ssd.gc_random), NULL}, {NULL, 0, 0, NULL}};

static const struct field server_fields[] = {{"servers", WHOLE, AT(server.servers), NULL},
	{"rate", IOPS, AT(server.rate), NULL},
	{"bandwidth", BYTES_RATE, AT(server.bytes_per_s), NULL},
	{"service", WORD, AT(server.service), service_words}, {NULL, 0, 0, NULL}};

static const struct field link_fields[] = {{"rate", BYTES_RATE, AT(link.rate), NULL},
	{"delay", TIME, AT(link.delay), NULL}, {"strict", FLAG, AT(link.strict), NULL},
	{"buffer", SIZE64, AT(link.buffer), NULL}, {"ecn_bytes", SIZE64, AT(link.ecn_bytes), NULL},
	{"ecn_packets", WHOLE64, AT(link.ecn_packets), NULL}, {NULL, 0, 0, NULL}};

static const struct field *const fields[STATION_KINDS] = {
	[STATION_DISK] = disk_fields,
	[STATION_ARRAY] = array_fields,
	[STATION_SSD] = ssd_fields,
	[STATION_SERVER] = server_fields,
	[STATION_LINK] = link_fields,
};

/* ---- reading by the table */

static int read_u32(yamldoc_node map, const struct field *f, void *to, struct weir_err *err)
{
	uint64_t bytes;
	int64_t whole;
	int r = f->type == WHOLE ? yamldoc_int(map, f->key, 0, UINT32_MAX, &whole, err)
				 : yamldoc_size_of(map, f->key, &bytes, err);

	if (r)
		return r;
	if (f->type == SIZE32 && bytes > UINT32_MAX)
		return yamldoc_error(yamldoc_get(map, f->key), err, "must be at most 4 GiB");
	*(uint32_t *)to = f->type == WHOLE ? (uint32_t)whole : (uint32_t)bytes;
	return 0;
}

static int read_rate(yamldoc_node map, const struct field *f, void *to, struct weir_err *err)
{
	enum weir_unit unit = f->type == IOPS ? WEIR_UNIT_REQUESTS : WEIR_UNIT_BYTES;
	struct weir_rate rate;
	int r = yamldoc_rate(map, f->key, &rate, err);

	if (r)
		return r;
	if (rate.unit != unit)
		return yamldoc_error(yamldoc_get(map, f->key), err, "must be in %s",
			f->type == IOPS ? "iops, as in '400 iops'" : "bytes or bits per second");
	*(double *)to = rate.per_second;
	return 0;
}

static int read_field(
	yamldoc_node map, const struct field *f, struct station_config *c, struct weir_err *err)
{
	void *to = (char *)c + f->offset;
	int word, r;

	switch (f->type) {
	case TIME:
		return yamldoc_time(map, f->key, to, err);
	case SIZE64:
		return yamldoc_size_of(map, f->key, to, err);
	case SIZE32:
	case WHOLE:
		return read_u32(map, f, to, err);
	case WHOLE64:
		return yamldoc_int(
			map, f->key, 0, INT64_MAX, to, err); /* same size, never negative */
	case REAL:
		return yamldoc_count(map, f->key, to, err);
	case BYTES_RATE:
	case IOPS:
		return read_rate(map, f, to, err);
	case FLAG:
		return yamldoc_bool(map, f->key, to, err);
	default:
		r = yamldoc_choice(map, f->key, f->words, &word, err);
		if (r == 0)
			*(int *)to = word;
		return r;
	}
}

static int read_preset(yamldoc_node map, struct station_config *c, struct weir_err *err)
{
	static const char *const array_words[] = {"cx3", "cx3-small", NULL};
	static const char *const disk_words[] = {"15k", "10k", NULL};
	int word = 0, r;

	if (c->kind == STATION_ARRAY) {
		r = yamldoc_choice(map, "preset", array_words, &word, err);
		if (r == 0)
			c->array = word ? array_cx3_small() : array_cx3();
		return yamldoc_optional(r);
	}
	r = yamldoc_choice(map, "preset", disk_words, &word, err);
	if (r == 0)
		c->disk.spindle = word ? spindle_10k() : spindle_defaults();
	return yamldoc_optional(r);
}

static int read_raid(yamldoc_node map, struct station_config *c, struct weir_err *err)
{
	static const char *const words[] = {"raid0", "raid5", NULL};
	int word, r = yamldoc_choice(map, "raid", words, &word, err);

	if (r == 0)
		c->array.raid = word ? ARRAY_RAID5 : ARRAY_RAID0;
	return yamldoc_optional(r);
}

#define MOST_KEYS 48

static int check_keys(yamldoc_node map, enum station_kind kind, struct weir_err *err)
{
	const char *keys[MOST_KEYS];
	size_t n = 0;

	keys[n++] = "name";
	if (kind != STATION_LINK) {
		keys[n++] = "kind";
		keys[n++] = "policy";
		keys[n++] = "capacity";
	}
	if (kind == STATION_ARRAY)
		keys[n++] = "raid";
	if (kind == STATION_ARRAY || kind == STATION_DISK)
		keys[n++] = "preset";
	for (const struct field *f = fields[kind]; f->key; f++)
		keys[n++] = f->key;
	keys[n] = NULL;
	return yamldoc_map(map, keys, err);
}

/* Report errors of the model itself here, where the place is known. */
static int try_model(yamldoc_node map, const struct station_config *c, struct weir_err *err)
{
	static const char *const keys[][2] = {
		{"capacity", "capacity_bytes"}, {"bytes_per_s", "bandwidth"}, {NULL, NULL}};
	struct weir_err why;
	struct device *d;
	int r = station_new(c, 1, "check", &d, &why);

	if (r == -EINVAL)
		return scenario_refused(map, why.text, keys, err);
	if (r == 0)
		device_free(d);
	return r;
}

static int read_capacity(yamldoc_node map, struct scenario_station *s, struct weir_err *err)
{
	const char *text = yamldoc_text(yamldoc_get(map, "capacity"));

	if (text && strcmp(text, "auto") == 0) {
		s->capacity_auto = true;
		return 0;
	}
	return yamldoc_optional(yamldoc_rate(map, "capacity", &s->capacity, err));
}

static int read_kind(yamldoc_node map, int *ret, struct weir_err *err)
{
	static const char *const words[] = {
		"disk", "array", "ssd", "server", NULL}; /* enum station_kind */
	yamldoc_node n = yamldoc_get(map, "kind");
	int r;

	if (yamldoc_text(n) && strcmp(yamldoc_text(n), "link") == 0)
		return yamldoc_error(n, err, "links belong under 'links', not 'devices'");
	r = yamldoc_choice(map, "kind", words, ret, err);
	if (r != -ENOENT)
		return r;
	return yamldoc_error(map, err, "a device needs a 'kind': disk, array, ssd or server");
}

int scenario_station_read(
	yamldoc_node map, bool link, struct scenario_station *ret, struct weir_err *err)
{
	int kind = STATION_LINK, r;

	if (yamldoc_kind(map) != YAMLDOC_MAP)
		return yamldoc_error(map, err, "must be a map");
	ret->at = yamldoc_place(map);
	if (!link && (r = read_kind(map, &kind, err)))
		return r;
	station_defaults((enum station_kind)kind, &ret->config);
	if ((r = scenario_moved_check(map, SCENARIO_DEVICE, err)) ||
		(r = check_keys(map, ret->config.kind, err)) ||
		(r = scenario_name_read(map, &ret->name, err)))
		return r;
	if ((kind == STATION_ARRAY || kind == STATION_DISK) &&
		(r = read_preset(map, &ret->config, err)))
		return r;
	if (kind == STATION_ARRAY && (r = read_raid(map, &ret->config, err)))
		return r;
	for (const struct field *f = fields[kind]; f->key; f++) {
		if ((r = yamldoc_optional(read_field(map, f, &ret->config, err))))
			return r;
	}
	if ((r = try_model(map, &ret->config, err)))
		return r;
	return link ? 0 : read_capacity(map, ret, err);
}
