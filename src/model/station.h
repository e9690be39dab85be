/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * station: the device and link models, by kind.
 *
 * The one place that knows the models by name, for scenarios and for the back end `model:`. A new
 * model is an entry in the table of station.c, and its keys in the table of station-keys.c.
 */
#pragma once

#include "base/field.h"
#include "model/array.h"
#include "model/disk.h"
#include "model/link.h"
#include "model/server.h"
#include "model/ssd.h"

enum station_kind {
	STATION_DISK,
	STATION_ARRAY,
	STATION_SSD,
	STATION_SERVER,
	STATION_LINK,
	STATION_KINDS
};

struct station_config {
	enum station_kind kind;
	int preset;        /* disk, array: 0 or 1 */
	weir_time latency; /* ssd, server: see station_finish */
	union {
		struct disk_config disk;
		struct array_config array;
		struct ssd_config ssd;
		struct server_config server;
		struct link_config link;
	};
};

/* Names of devices, NULL-terminated: "disk", …, "array-small". */
extern const char *const station_names[];
/* Get the defaults of station_names[name]. */
void station_named(int name, struct station_config *ret);
/* Get the model's own defaults, with a preset (0: the kind's usual one). */
void station_defaults(enum station_kind kind, int preset, struct station_config *ret);

/* Return the keys of a kind: fields of a station_config. */
const struct field *station_fields(enum station_kind kind);
/* If the keys that were read, `seen` (bit i: fields[i]), contain a preset: set its defaults, and
 * return true; the caller reads all keys again. */
bool station_preset(struct station_config *c, uint64_t seen);
/* Apply `latency`, of all pages of an ssd or all requests of a server. Return 0, or -EINVAL with a
 * message as that of station_new. */
int station_finish(struct station_config *c, uint64_t seen, struct weir_err *err);

/* Create a station. `name` names its random stream. Return 0; -ENOMEM; -EINVAL with a message that
 * names the key, or the conflicting keys: "seek_full, seek_third: …". */
int station_new(const struct station_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err);

/* Change a server's rate (IOs/s) or a link's (bytes/s), from `now` on. Everything up to `now` must
 * have been stepped. -EINVAL for other kinds. */
int station_set_rate(
	const struct station_config *config, struct device *d, weir_time now, double rate);
bool station_has_rate(enum station_kind kind);

/* Return the number of requests that a device can use at once, at least 1, and the number of bytes
 * that keep all its parts busy; 0: unknown. */
#define STATION_PIECE (UINT64_C(256) << 10) /* bytes of the largest request in a gateway's gate */
uint32_t station_depth(const struct station_config *config, uint64_t *ret_bytes);
