/* SPDX-License-Identifier: BSD-3-Clause */
/* model-config: create models from their names, with the keys of model/station-keys.c. */
#include "model/station.h"
#include "serve/back/model.h"
#include "serve/back/name.h"
#include "serve/loop/chunk.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(STATION_PIECE == CHUNK_MAX, "pieces of a request in a gate");

static int read_config(
	const char *text, size_t len, struct station_config *ret, struct weir_err *err)
{
	const char *comma = memchr(text, ',', len), *options = comma ? comma + 1 : text + len;
	size_t n_options = (size_t)(text + len - options);
	uint64_t seen;
	char word[32];
	int name, r;

	snprintf(word, sizeof(word), "%.*s", (int)(comma ? comma - text : (ptrdiff_t)len), text);
	r = field_word(word, station_names, &name, err);
	if (r)
		return r;
	station_named(name, ret);
	r = back_options(options, n_options, ',', station_fields(ret->kind), ret, &seen, err);
	if (r == 0 && station_preset(ret, seen))
		r = back_options(
			options, n_options, ',', station_fields(ret->kind), ret, &seen, err);
	return r ? r : station_finish(ret, seen, err);
}

static int make_device(const char *text, size_t len, uint64_t seed, struct back_model_device *ret,
	struct weir_err *err)
{
	struct station_config c;
	int r = read_config(text, len, &c, err);

	if (r)
		return r;
	ret->rotational = c.kind == STATION_DISK || c.kind == STATION_ARRAY;
	ret->depth = station_depth(&c, &ret->depth_bytes);
	return station_new(&c, seed, "model", &ret->device, err);
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
