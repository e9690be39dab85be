/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/station.h"
#include <errno.h>

void station_defaults(enum station_kind kind, struct station_config *ret)
{
	*ret = (struct station_config){.kind = kind};
	switch (kind) {
	case STATION_DISK:
		ret->disk = disk_defaults();
		break;
	case STATION_ARRAY:
		ret->array = array_defaults();
		break;
	case STATION_SSD:
		ret->ssd = ssd_defaults();
		break;
	case STATION_SERVER:
		ret->server = server_defaults();
		break;
	default:
		ret->link = link_defaults();
		break;
	}
}

int station_new(const struct station_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err)
{
	switch (config->kind) {
	case STATION_DISK:
		return disk_new(&config->disk, seed, name, ret, err);
	case STATION_ARRAY:
		return array_new(&config->array, seed, name, ret, err);
	case STATION_SSD:
		return ssd_new(&config->ssd, seed, name, ret, err);
	case STATION_SERVER:
		return server_new(&config->server, seed, name, ret, err);
	default:
		return link_new(&config->link, ret, err);
	}
}

bool station_has_rate(enum station_kind kind)
{
	return kind == STATION_SERVER || kind == STATION_LINK;
}

int station_set_rate(
	const struct station_config *config, struct device *d, weir_time now, double rate)
{
	if (config->kind == STATION_SERVER)
		return server_set_rate(d, now, rate);
	if (config->kind == STATION_LINK)
		return link_set_rate(d, now, rate);
	return -EINVAL;
}

#define PIECE (UINT64_C(256) << 10) /* bytes of the largest request that passes a gateway's gate */

void station_depth(
	const struct station_config *config, enum weir_unit cost, struct weir_gate_config *ret_gate)
{
	uint64_t bytes = 0;

	switch (config->kind) {
	case STATION_ARRAY:
		ret_gate->window = config->array.active;
		break;
	case STATION_DISK:
		ret_gate->window = config->disk.spindle.window;
		break;
	case STATION_SSD:
		/* A page for each die, or a piece of a request, and as much again waiting. */
		ret_gate->window = config->ssd.channels * config->ssd.dies;
		bytes = (uint64_t)config->ssd.channels * config->ssd.dies * config->ssd.page;
		bytes = 2 * (bytes > PIECE ? bytes : PIECE);
		break;
	default:
		ret_gate->window = config->server.servers;
	}
	if (ret_gate->window < 1)
		ret_gate->window = 1;
	if (cost == WEIR_UNIT_TIME && !ret_gate->window_bytes)
		ret_gate->window_bytes = bytes;
}
