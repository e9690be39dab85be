/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the models' keys: each key has a place of its own, and presets and latency do what they say. */
#include "model/station.h"
#include "test.h"
#include <errno.h>

static struct station_config named(const char *name)
{
	struct station_config c = {0};
	struct weir_err err;
	int i = -1;

	CHECK_INT(field_word(name, station_names, &i, &err), 0);
	station_named(i, &c);
	return c;
}

static int read_once(struct station_config *c, const char *const (*pairs)[2], uint64_t *seen,
	struct weir_err *err)
{
	const struct field *fields = station_fields(c->kind);
	int r = 0;

	for (*seen = 0; r == 0 && pairs[0][0]; pairs++) {
		int f = field_find(fields, pairs[0][0]);

		CHECK(f >= 0);
		*seen |= UINT64_C(1) << f;
		r = field_read(&fields[f], pairs[0][1], c, err);
	}
	return r;
}

/* Read pairs of key and value as a scenario and the name of a back end do. */
static int read_pairs(struct station_config *c, const char *const (*pairs)[2], struct weir_err *err)
{
	uint64_t seen;
	int r = read_once(c, pairs, &seen, err);

	if (r == 0 && station_preset(c, seen))
		r = read_once(c, pairs, &seen, err);
	return r ? r : station_finish(c, seen, err);
}

static void names_are_kinds_with_presets(void)
{
	CHECK(named("disk-10k").kind == STATION_DISK);
	CHECK(named("disk-10k").disk.spindle.rpm == 10000);
	CHECK(named("disk").disk.spindle.rpm == 15000);
	CHECK_INT(named("array").array.disks, 10);
	CHECK_INT(named("array-small").array.disks, 5);
}

static void no_two_keys_share_a_place(void)
{
	for (int kind = 0; kind < STATION_KINDS; kind++) {
		const struct field *f = station_fields(kind);
		const char *keys[FIELDS_MOST + 1];

		CHECK(field_keys(f, keys) < FIELDS_MOST);
		for (int i = 0; f[i].key; i++) {
			CHECK_INT(field_find(f, f[i].key), i);
			CHECK(f[i].offset < sizeof(struct station_config));
			CHECK((f[i].type == FIELD_WORD) == (f[i].words != NULL));
			for (int k = 0; k < i; k++)
				CHECK(f[k].offset != f[i].offset);
		}
	}
}

static void a_preset_comes_before_the_other_keys(void)
{
	static const char *const pairs[][2] = {
		{"active", "3"}, {"preset", "cx3-small"}, {"raid", "raid0"}, {NULL, NULL}};
	struct station_config c = named("array");
	struct weir_err err;

	CHECK_INT(read_pairs(&c, pairs, &err), 0);
	CHECK_INT(c.array.disks, 5);
	CHECK_INT(c.array.active, 3);
	CHECK(c.array.raid == ARRAY_RAID0);
}

static void latency_sets_the_times(void)
{
	static const char *const one[][2] = {{"latency", "2ms"}, {"servers", "4"}, {NULL, NULL}};
	static const char *const page[][2] = {{"latency", "70us"}, {NULL, NULL}};
	static const char *const both[][2] = {{"latency", "2ms"}, {"rate", "1k"}, {NULL, NULL}};
	struct station_config server = named("server"), ssd = named("ssd"), c = named("server");
	struct weir_err err;

	CHECK_INT(read_pairs(&server, one, &err), 0);
	CHECK(server.server.rate == 2000 && server.server.service == SERVER_FIXED);
	CHECK_INT(read_pairs(&ssd, page, &err), 0);
	CHECK(ssd.ssd.read == 70000 && ssd.ssd.program == 70000);
	CHECK_INT(read_pairs(&c, both, &err), -EINVAL);
	CHECK_STR(err.text, "latency, rate: only one of them may be given");
}

int main(void)
{
	RUN(names_are_kinds_with_presets);
	RUN(no_two_keys_share_a_place);
	RUN(a_preset_comes_before_the_other_keys);
	RUN(latency_sets_the_times);
	return 0;
}
