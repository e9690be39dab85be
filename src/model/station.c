/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/station.h"
#include <errno.h>

const char *const station_names[] = {
	"disk", "array", "ssd", "server", "disk-10k", "array-small", NULL};

void station_named(int name, struct station_config *ret)
{
	static const struct {
		enum station_kind kind;
		int preset;
	} of[] = {{STATION_DISK, 0}, {STATION_ARRAY, 0}, {STATION_SSD, 0}, {STATION_SERVER, 0},
		{STATION_DISK, 1}, {STATION_ARRAY, 1}};

	station_defaults(of[name].kind, of[name].preset, ret);
}

void station_defaults(enum station_kind kind, int preset, struct station_config *ret)
{
	*ret = (struct station_config){.kind = kind, .preset = preset};
	switch (kind) {
	case STATION_DISK:
		ret->disk.spindle = preset ? spindle_10k() : spindle_defaults();
		break;
	case STATION_ARRAY:
		ret->array = preset ? array_cx3_small() : array_cx3();
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

uint32_t station_depth(const struct station_config *config, uint64_t *ret_bytes)
{
	const struct ssd_config *s = &config->ssd;
	uint64_t bytes = 0;
	uint32_t depth;

	switch (config->kind) {
	case STATION_ARRAY:
		depth = config->array.active;
		break;
	case STATION_DISK:
		depth = config->disk.spindle.window;
		break;
	case STATION_SSD:
		/* A page for each die, or a piece of a request, and as much again waiting. */
		depth = s->channels * s->dies;
		bytes = (uint64_t)depth * s->page;
		bytes = 2 * (bytes > STATION_PIECE ? bytes : STATION_PIECE);
		break;
	default:
		depth = config->server.servers;
	}
	*ret_bytes = bytes;
	return depth ? depth : 1;
}
