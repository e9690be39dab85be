/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * station: the device and link models, by kind.
 *
 * The one place in the simulator that knows the models by name. A new model is an entry in the
 * table of station.c, and its keys in the table of scenario-station.c.
 */
#ifndef WEIR_SIM_STATION_H
#define WEIR_SIM_STATION_H

#include "model/array.h"
#include "model/disk.h"
#include "model/link.h"
#include "model/server.h"
#include "model/ssd.h"
#include <weir/gate.h>

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
	union {
		struct disk_config disk;
		struct array_config array;
		struct ssd_config ssd;
		struct server_config server;
		struct link_config link;
	};
};

/* Get the model's own defaults. */
void station_defaults(enum station_kind kind, struct station_config *ret);

/* Create a station. `name` names its random stream. Return 0; -ENOMEM; -EINVAL with a message that
 * names the field, or the conflicting fields: "seek_full, seek_third: …". */
int station_new(const struct station_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err);

/* Change a server's rate (IOs/s) or a link's (bytes/s), from `now` on. Everything up to `now` must
 * have been stepped. -EINVAL for other kinds. */
int station_set_rate(
	const struct station_config *config, struct device *d, weir_time now, double rate);
/* Set the window of a gate in front of it, as `depth: auto` of a policy does. */
void station_depth(const struct station_config *config, enum weir_unit cost,
	struct weir_gate_config *ret_gate);
bool station_has_rate(enum station_kind kind);

#endif
