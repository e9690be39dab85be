/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-station: read devices and links, by the keys of their models. */
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <string.h>

static int check_keys(yamldoc_node map, enum station_kind kind, struct weir_err *err)
{
	static const char *const more[] = {"name", "policy", "kind", "capacity", NULL};
	const char *keys[FIELDS_MOST + 1 + sizeof(more) / sizeof(more[0])];
	size_t n = field_keys(station_fields(kind), keys);

	for (int i = 0; more[i] && (i < 2 || kind != STATION_LINK); i++)
		keys[n++] = more[i];
	keys[n] = NULL;
	return yamldoc_map(map, keys, err);
}

static int read_fields(
	yamldoc_node map, struct station_config *c, uint64_t *ret_seen, struct weir_err *err)
{
	const struct field *fields = station_fields(c->kind);

	*ret_seen = 0;
	for (int i = 0; fields[i].key; i++) {
		yamldoc_node n = yamldoc_get(map, fields[i].key);
		struct weir_err why;
		const char *text;
		int r = yamldoc_as_string(n, &text, err);

		if (r == -ENOENT)
			continue;
		if (r == 0 && field_read(&fields[i], text, c, &why) < 0)
			r = yamldoc_error(n, err, "%s", why.text);
		if (r)
			return r;
		*ret_seen |= UINT64_C(1) << i;
	}
	return 0;
}

/* Report errors of the model itself here, where the place is known. */
static int try_model(
	yamldoc_node map, struct station_config *c, uint64_t seen, struct weir_err *err)
{
	struct weir_err why;
	struct device *d;
	int r = station_finish(c, seen, &why);

	if (r == 0)
		r = station_new(c, 1, "check", &d, &why);
	if (r)
		return r == -EINVAL ? scenario_refused(map, why.text, err) : r;
	device_free(d);
	return 0;
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

static int read_kind(yamldoc_node map, struct station_config *ret, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "kind");
	int name, r;

	if (yamldoc_text(n) && strcmp(yamldoc_text(n), "link") == 0)
		return yamldoc_error(n, err, "links belong under 'links', not 'devices'");
	r = yamldoc_choice(map, "kind", station_names, &name, err);
	if (r == 0)
		station_named(name, ret);
	return r != -ENOENT ? r
			    : yamldoc_error(map, err,
				      "a device needs a 'kind': disk, array, ssd or server");
}

int scenario_station_read(
	yamldoc_node map, bool link, struct scenario_station *ret, struct weir_err *err)
{
	struct station_config *c = &ret->config;
	uint64_t seen;
	int r;

	if (yamldoc_kind(map) != YAMLDOC_MAP)
		return yamldoc_error(map, err, "must be a map");
	ret->at = yamldoc_place(map);
	if (link)
		station_defaults(STATION_LINK, 0, c);
	else if ((r = read_kind(map, c, err)))
		return r;
	if ((r = scenario_moved_check(map, SCENARIO_DEVICE, err)) ||
		(r = check_keys(map, c->kind, err)) ||
		(r = scenario_name_read(map, &ret->name, err)) ||
		(r = read_fields(map, c, &seen, err)))
		return r;
	if (station_preset(c, seen) && (r = read_fields(map, c, &seen, err)))
		return r;
	if ((r = try_model(map, c, seen, err)))
		return r;
	return link ? 0 : read_capacity(map, ret, err);
}
