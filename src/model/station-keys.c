/* SPDX-License-Identifier: BSD-3-Clause */
/* station-keys: the keys of each model, in a scenario and in the name of a back end. */
#include "model/station.h"
#include <errno.h>

#define AT(path) offsetof(struct station_config, path)
#define SPINDLE(m)                                                                                 \
	{"capacity_bytes", FIELD_SIZE, AT(m.capacity), NULL},                                      \
		{"rpm", FIELD_REAL, AT(m.rpm), NULL},                                              \
		{"cylinders", FIELD_WHOLE, AT(m.cylinders), NULL},                                 \
		{"seek_track", FIELD_TIME, AT(m.seek_track), NULL},                                \
		{"seek_third", FIELD_TIME, AT(m.seek_third), NULL},                                \
		{"seek_full", FIELD_TIME, AT(m.seek_full), NULL},                                  \
		{"settle", FIELD_TIME, AT(m.settle), NULL},                                        \
		{"skew", FIELD_TIME, AT(m.skew), NULL},                                            \
		{"outer", FIELD_BYTES_RATE, AT(m.outer), NULL},                                    \
		{"inner", FIELD_BYTES_RATE, AT(m.inner), NULL},                                    \
		{"interface", FIELD_BYTES_RATE, AT(m.interface), NULL},                            \
		{"overhead", FIELD_TIME, AT(m.overhead), NULL},                                    \
		{"segment", FIELD_SIZE32, AT(m.segment), NULL},                                    \
		{"order", FIELD_WORD, AT(m.order), spindle_order_names},                           \
		{"window", FIELD_WHOLE, AT(m.window), NULL},                                       \
	{                                                                                          \
		"age", FIELD_TIME, AT(m.age), NULL                                                 \
	}

static const char *const disk_presets[] = {"15k", "10k", NULL};
static const char *const array_presets[] = {"cx3", "cx3-small", NULL};
static const char *const raid_words[] = {"raid0", "raid5", NULL};          /* enum array_raid */
static const char *const service_words[] = {"exponential", "fixed", NULL}; /* enum server_service */

static const struct field disk_fields[] = {
	{"preset", FIELD_WORD, AT(preset), disk_presets}, SPINDLE(disk.spindle), {0}};

static const struct field array_fields[] = {{"preset", FIELD_WORD, AT(preset), array_presets},
	SPINDLE(array.disk), {"disks", FIELD_WHOLE, AT(array.disks), NULL},
	{"raid", FIELD_WORD, AT(array.raid), raid_words},
	{"unit", FIELD_SIZE32, AT(array.unit), NULL}, {"lun", FIELD_SIZE, AT(array.lun), NULL},
	{"start", FIELD_SIZE, AT(array.start), NULL},
	{"active", FIELD_WHOLE, AT(array.active), NULL}, {"cost", FIELD_TIME, AT(array.cost), NULL},
	{"mirror", FIELD_TIME, AT(array.mirror), NULL},
	{"bandwidth", FIELD_BYTES_RATE, AT(array.bandwidth), NULL},
	{"streams", FIELD_WHOLE, AT(array.streams), NULL},
	{"ahead", FIELD_WHOLE, AT(array.ahead), NULL},
	{"trigger", FIELD_WHOLE, AT(array.trigger), NULL},
	{"cache", FIELD_SIZE, AT(array.cache), NULL}, {"low", FIELD_REAL, AT(array.low), NULL},
	{"destage", FIELD_WHOLE, AT(array.destage), NULL}, {0}};

static const struct field ssd_fields[] = {{"latency", FIELD_TIME, AT(latency), NULL},
	{"channels", FIELD_WHOLE, AT(ssd.channels), NULL},
	{"dies", FIELD_WHOLE, AT(ssd.dies), NULL}, {"page", FIELD_SIZE32, AT(ssd.page), NULL},
	{"read", FIELD_TIME, AT(ssd.read), NULL}, {"program", FIELD_TIME, AT(ssd.program), NULL},
	{"channel_rate", FIELD_BYTES_RATE, AT(ssd.channel_rate), NULL},
	{"bandwidth", FIELD_BYTES_RATE, AT(ssd.bandwidth), NULL},
	{"overhead", FIELD_TIME, AT(ssd.overhead), NULL},
	{"slots", FIELD_WHOLE, AT(ssd.slots), NULL},
	{"gc_every", FIELD_WHOLE, AT(ssd.gc_every), NULL},
	{"gc_time", FIELD_TIME, AT(ssd.gc_time), NULL},
	{"gc_random", FIELD_FLAG, AT(ssd.gc_random), NULL}, {0}};

static const struct field server_fields[] = {{"latency", FIELD_TIME, AT(latency), NULL},
	{"rate", FIELD_IOPS, AT(server.rate), NULL},
	{"servers", FIELD_WHOLE, AT(server.servers), NULL},
	{"bandwidth", FIELD_BYTES_RATE, AT(server.bytes_per_s), NULL},
	{"service", FIELD_WORD, AT(server.service), service_words}, {0}};

static const struct field link_fields[] = {{"rate", FIELD_BYTES_RATE, AT(link.rate), NULL},
	{"delay", FIELD_TIME, AT(link.delay), NULL}, {"strict", FIELD_FLAG, AT(link.strict), NULL},
	{"mtu", FIELD_SIZE, AT(link.mtu), NULL}, {"buffer", FIELD_SIZE, AT(link.buffer), NULL},
	{"ecn_bytes", FIELD_SIZE, AT(link.ecn_bytes), NULL},
	{"ecn_packets", FIELD_WHOLE64, AT(link.ecn_packets), NULL}, {0}};

static const struct field *const fields[STATION_KINDS] = {
	[STATION_DISK] = disk_fields,
	[STATION_ARRAY] = array_fields,
	[STATION_SSD] = ssd_fields,
	[STATION_SERVER] = server_fields,
	[STATION_LINK] = link_fields,
};

const struct field *station_fields(enum station_kind kind)
{
	return fields[kind];
}

static bool is_seen(const struct station_config *c, uint64_t seen, const char *key)
{
	int i = field_find(fields[c->kind], key);

	return i >= 0 && seen >> i & 1;
}

bool station_preset(struct station_config *c, uint64_t seen)
{
	if (!is_seen(c, seen, "preset"))
		return false;
	station_defaults(c->kind, c->preset, c);
	return true;
}

int station_finish(struct station_config *c, uint64_t seen, struct weir_err *err)
{
	if (!is_seen(c, seen, "latency"))
		return 0;
	if (c->kind == STATION_SSD) {
		c->ssd.read = c->ssd.program = c->latency;
		return 0;
	}
	if (is_seen(c, seen, "rate"))
		return weir_err_set(err, -EINVAL, "latency, rate: only one of them may be given");
	if (c->latency <= 0)
		return weir_err_set(err, -EINVAL, "latency: must be > 0");
	c->server.rate = 1e9 / (double)c->latency * c->server.servers;
	if (!is_seen(c, seen, "service"))
		c->server.service = SERVER_FIXED;
	return 0;
}
