/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-config: create models from their names. The keys are those of devices in scenarios
 * (see weir-scenario(5)), plus `latency`, for when only that matters.
 */
#include <weir/clock.h>
#include "model/array.h"
#include "model/disk.h"
#include "model/server.h"
#include "model/ssd.h"
#include "serve/back/model.h"
#include "serve/back/name.h"
#include "serve/loop/chunk.h"
#include <errno.h>
#include <string.h>

struct model_config {
	struct array_config array;
	struct disk_config disk;
	struct ssd_config ssd;
	struct server_config server;
	int raid;          /* array: index of raid_words */
	weir_time latency; /* ssd, server */
};

static const char *const raid_words[] = {"raid0", "raid5", NULL};
static const char *const service_words[] = {"exponential", "fixed", NULL}; /* enum server_service */

#define AT(path) offsetof(struct model_config, path)
#define SPINDLE(m)                                                                                 \
	{"capacity_bytes", BACK_SIZE, AT(m.capacity), NULL}, {"rpm", BACK_REAL, AT(m.rpm), NULL},  \
		{"cylinders", BACK_WHOLE, AT(m.cylinders), NULL},                                  \
		{"seek_track", BACK_TIME, AT(m.seek_track), NULL},                                 \
		{"seek_third", BACK_TIME, AT(m.seek_third), NULL},                                 \
		{"seek_full", BACK_TIME, AT(m.seek_full), NULL},                                   \
		{"settle", BACK_TIME, AT(m.settle), NULL}, {"skew", BACK_TIME, AT(m.skew), NULL},  \
		{"outer", BACK_BYTES_RATE, AT(m.outer), NULL},                                     \
		{"inner", BACK_BYTES_RATE, AT(m.inner), NULL},                                     \
		{"interface", BACK_BYTES_RATE, AT(m.interface), NULL},                             \
		{"overhead", BACK_TIME, AT(m.overhead), NULL},                                     \
		{"segment", BACK_SIZE32, AT(m.segment), NULL},                                     \
		{"order", BACK_WORD, AT(m.order), spindle_order_names},                            \
		{"window", BACK_WHOLE, AT(m.window), NULL},                                        \
	{                                                                                          \
		"age", BACK_TIME, AT(m.age), NULL                                                  \
	}

static const struct back_field disk_fields[] = {SPINDLE(disk.spindle), {NULL, 0, 0, NULL}};

static const struct back_field array_fields[] = {SPINDLE(array.disk),
	{"disks", BACK_WHOLE, AT(array.disks), NULL}, {"raid", BACK_WORD, AT(raid), raid_words},
	{"unit", BACK_SIZE32, AT(array.unit), NULL}, {"lun", BACK_SIZE, AT(array.lun), NULL},
	{"start", BACK_SIZE, AT(array.start), NULL}, {"active", BACK_WHOLE, AT(array.active), NULL},
	{"cost", BACK_TIME, AT(array.cost), NULL}, {"mirror", BACK_TIME, AT(array.mirror), NULL},
	{"bandwidth", BACK_BYTES_RATE, AT(array.bandwidth), NULL},
	{"streams", BACK_WHOLE, AT(array.streams), NULL},
	{"ahead", BACK_WHOLE, AT(array.ahead), NULL},
	{"trigger", BACK_WHOLE, AT(array.trigger), NULL},
	{"cache", BACK_SIZE, AT(array.cache), NULL}, {"low", BACK_REAL, AT(array.low), NULL},
	{"destage", BACK_WHOLE, AT(array.destage), NULL}, {NULL, 0, 0, NULL}};

static const struct back_field ssd_fields[] = {{"latency", BACK_TIME, AT(latency), NULL},
	{"channels", BACK_WHOLE, AT(ssd.channels), NULL}, {"dies", BACK_WHOLE, AT(ssd.dies), NULL},
	{"page", BACK_SIZE32, AT(ssd.page), NULL}, {"read", BACK_TIME, AT(ssd.read), NULL},
	{"program", BACK_TIME, AT(ssd.program), NULL},
	{"channel_rate", BACK_BYTES_RATE, AT(ssd.channel_rate), NULL},
	{"bandwidth", BACK_BYTES_RATE, AT(ssd.bandwidth), NULL},
	{"overhead", BACK_TIME, AT(ssd.overhead), NULL}, {"slots", BACK_WHOLE, AT(ssd.slots), NULL},
	{"gc_every", BACK_WHOLE, AT(ssd.gc_every), NULL},
	{"gc_time", BACK_TIME, AT(ssd.gc_time), NULL},
	{"gc_random", BACK_FLAG, AT(ssd.gc_random), NULL}, {NULL, 0, 0, NULL}};

static const struct back_field server_fields[] = {{"latency", BACK_TIME, AT(latency), NULL},
	{"rate", BACK_IOPS, AT(server.rate), NULL},
	{"servers", BACK_WHOLE, AT(server.servers), NULL},
	{"bandwidth", BACK_BYTES_RATE, AT(server.bytes_per_s), NULL},
	{"service", BACK_WORD, AT(server.service), service_words}, {NULL, 0, 0, NULL}};

/* ---- each kind */

static int new_array(const struct model_config *c, uint64_t seen, uint64_t seed,
	struct back_model_device *ret, struct weir_err *err)
{
	struct array_config a = c->array;

	a.raid = c->raid ? ARRAY_RAID5 : ARRAY_RAID0;
	*ret = (struct back_model_device){.rotational = true, .depth = a.active};
	return array_new(&a, seed, "model", &ret->device, err);
}

static int new_disk(const struct model_config *c, uint64_t seen, uint64_t seed,
	struct back_model_device *ret, struct weir_err *err)
{
	*ret = (struct back_model_device){.rotational = true, .depth = c->disk.spindle.window};
	return disk_new(&c->disk, seed, "model", &ret->device, err);
}

/* latency: of a page in flash, read or written. It is the first field of the table. */
static int new_ssd(const struct model_config *c, uint64_t seen, uint64_t seed,
	struct back_model_device *ret, struct weir_err *err)
{
	struct ssd_config s = c->ssd;
	uint64_t bytes;

	if (seen & 1)
		s.read = s.program = c->latency;
	/* A page for each die, or a piece of a request, and as much again waiting. */
	bytes = (uint64_t)s.channels * s.dies * s.page;
	bytes = 2 * (bytes > CHUNK_MAX ? bytes : CHUNK_MAX);
	*ret = (struct back_model_device){.depth = s.channels * s.dies, .depth_bytes = bytes};
	return ssd_new(&s, seed, "model", &ret->device, err);
}

/* latency: of every request, once in service; it excludes `rate`. */
static int new_server(const struct model_config *c, uint64_t seen, uint64_t seed,
	struct back_model_device *ret, struct weir_err *err)
{
	const struct back_field *service = &server_fields[4];
	struct server_config s = c->server;

	if (seen & 1) {
		if (seen & 2)
			return weir_err_set(err, -EINVAL, "latency and rate exclude each other");
		if (c->latency <= 0)
			return weir_err_set(err, -EINVAL, "latency: must be > 0");
		s.rate = 1e9 / (double)c->latency * s.servers;
		if (!(seen & UINT64_C(1) << (service - server_fields)))
			s.service = SERVER_FIXED;
	}
	*ret = (struct back_model_device){.depth = s.servers};
	return server_new(&s, seed, "model", &ret->device, err);
}

static void small_array(struct model_config *c)
{
	c->array = array_cx3_small();
}

static void slow_disk(struct model_config *c)
{
	c->disk.spindle = spindle_10k();
}

static const struct kind {
	const char *name;
	const struct back_field *fields;
	void (*preset)(struct model_config *c);
	int (*make)(const struct model_config *c, uint64_t seen, uint64_t seed,
		struct back_model_device *ret, struct weir_err *err);
} kinds[] = {
	{"array", array_fields, NULL, new_array},
	{"array-small", array_fields, small_array, new_array},
	{"disk", disk_fields, NULL, new_disk},
	{"disk-10k", disk_fields, slow_disk, new_disk},
	{"ssd", ssd_fields, NULL, new_ssd},
	{"server", server_fields, NULL, new_server},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- the name */

static const struct kind *find_kind(const char *word, size_t len, struct weir_err *err)
{
	const char *words[N_KINDS + 1], *near;
	char text[32];

	for (size_t i = 0; i < N_KINDS; i++) {
		words[i] = kinds[i].name;
		if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
			return &kinds[i];
	}
	words[N_KINDS] = NULL;
	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, word, len);
	text[len] = '\0';
	near = weir_err_near(text, words);
	if (near)
		weir_err_set(err, 0, "no model '%s' (did you mean '%s'?)", text, near);
	else
		weir_err_set(err, 0,
			"no model '%s'; valid are array, array-small, disk, disk-10k, ssd, server",
			text);
	return NULL;
}

static int make_device(const char *text, size_t len, uint64_t seed, struct back_model_device *ret,
	struct weir_err *err)
{
	const char *comma = memchr(text, ',', len);
	size_t word = comma ? (size_t)(comma - text) : len;
	const struct kind *k = find_kind(text, word, err);
	struct model_config c = {.array = array_cx3(),
		.disk = disk_defaults(),
		.ssd = ssd_defaults(),
		.server = server_defaults(),
		.raid = 1};
	uint64_t seen = 0;
	int r = 0;

	if (!k)
		return -EINVAL;
	if (k->preset)
		k->preset(&c);
	if (comma)
		r = back_options(comma + 1, len - word - 1, ',', k->fields, &c, &seen, err);
	return r ? r : k->make(&c, seen, seed, ret, err);
}

int back_model_device(const char *rest, uint64_t seed, struct back_model_device *ret,
	const char **ret_inner, struct weir_err *err)
{
	const char *plus = strchr(rest, '+');
	struct back_model_device d;
	struct weir_err why;
	int r;

	if (!plus || !plus[1])
		return weir_err_set(err, -EINVAL,
			"model:%s: needs a back end after a '+', as in 'model:ssd+memory:1G'",
			rest);
	r = make_device(rest, (size_t)(plus - rest), seed, &d, &why);
	if (r)
		return weir_err_set(err, r, "model:%.*s: %s", (int)(plus - rest), rest, why.text);
	*ret = d;
	*ret_inner = plus + 1;
	return 0;
}
