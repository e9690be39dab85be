/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-spec: parse a job, `NAME=URI,KEY=VALUE,...`, with one table of keys.
 *
 * A comma ends a value only if a key and '=' follow, so that a URI or a mix of sizes may contain
 * commas.
 */
#include <weir/units.h>
#include "load/load.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void load_job_default(struct load_job *j)
{
	*j = (struct load_job){.name = "load",
		.connections = 1,
		.sizes = {{4096, 1}},
		.n_sizes = 1,
		.reads = 1,
		.zipf = 1,
		.duration = WEIR_NEVER,
		.requests = UINT64_MAX,
		.seed = 1,
		.timeout = 30 * WEIR_SEC,
		.speed = 1};
}

/* ---- kinds of values */

typedef int set_fn(void *to, const char *value, struct weir_err *err);

static int set_text(void *to, const char *value, struct weir_err *err)
{
	*(const char **)to = value;
	return 0;
}

static int set_flag(void *to, const char *value, struct weir_err *err)
{
	if (*value && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return weir_err_set(err, -EINVAL, "'%s' is not yes or no", value);
	*(bool *)to = strcmp(value, "no") != 0;
	return 0;
}

static int set_u64(void *to, const char *value, struct weir_err *err)
{
	int64_t n;
	int r = weir_units_int(value, &n, err);

	if (r == 0 && n < 0)
		r = weir_err_set(err, -EINVAL, "'%s' is negative", value);
	if (r == 0)
		*(uint64_t *)to = (uint64_t)n;
	return r;
}

static int set_u32(void *to, const char *value, struct weir_err *err)
{
	uint64_t n;
	int r = set_u64(&n, value, err);

	if (r == 0 && n > UINT32_MAX)
		r = weir_err_set(err, -EINVAL, "'%s' is too large", value);
	if (r == 0)
		*(uint32_t *)to = (uint32_t)n;
	return r;
}

static int set_time(void *to, const char *value, struct weir_err *err)
{
	return weir_units_time(value, to, err);
}

static int set_bytes(void *to, const char *value, struct weir_err *err)
{
	return weir_units_size(value, to, err);
}

/* "70%" or "70". */
static int set_percent(void *to, const char *value, struct weir_err *err)
{
	char *end;
	double x = strtod(value, &end);

	if (end == value || (*end && strcmp(end, "%") != 0) || !(x >= 0 && x <= 100))
		return weir_err_set(err, -EINVAL, "'%s' is not a share from 0%% to 100%%", value);
	*(double *)to = x / 100;
	return 0;
}

static int set_rate(void *to, const char *value, struct weir_err *err)
{
	struct weir_rate rate = {.unit = WEIR_UNIT_REQUESTS};
	int r = weir_units_count(value, &rate.per_second, NULL);

	if (r < 0)
		r = weir_units_rate(value, &rate, err);
	if (r == 0 && (rate.unit != WEIR_UNIT_REQUESTS || rate.per_second > 1e8))
		r = weir_err_set(
			err, -EINVAL, "'%s' is not a rate of requests, such as 5k iops", value);
	if (r == 0)
		*(double *)to = rate.per_second;
	return r;
}

static int set_arrivals(void *to, const char *value, struct weir_err *err)
{
	if (strcmp(value, "even") != 0 && strcmp(value, "poisson") != 0)
		return weir_err_set(err, -EINVAL, "'%s' is not even or poisson", value);
	*(bool *)to = strcmp(value, "even") == 0;
	return 0;
}

/* ---- values that set several fields: `to` is the job */

static int set_order(void *to, const char *value, struct weir_err *err)
{
	struct load_job *j = to;
	double s = 1;
	char *end;

	if (strcmp(value, "random") == 0) {
		j->order = LOAD_RANDOM;
	} else if (strcmp(value, "sequential") == 0) {
		j->order = LOAD_SEQUENTIAL;
	} else if (strncmp(value, "zipf", 4) == 0 && (!value[4] || value[4] == ':')) {
		if (value[4]) {
			s = strtod(value + 5, &end);
			if (end == value + 5 || *end || !(s >= 0 && s <= 10))
				return weir_err_set(
					err, -EINVAL, "'%s': the exponent must be 0 to 10", value);
		}
		j->order = LOAD_ZIPF;
		j->zipf = s;
	} else {
		return weir_err_set(
			err, -EINVAL, "'%s' is not random, sequential or zipf[:S]", value);
	}
	return 0;
}

/* Parse one part of "4k:70,64k:30": the size, and its share if given. */
static int read_size(const char *text, size_t len, struct load_size *ret, struct weir_err *err)
{
	char piece[64], *colon, *end;
	uint64_t bytes;
	int r;

	if (len >= sizeof(piece))
		return weir_err_set(err, -EINVAL, "a size is too long");
	memcpy(piece, text, len);
	piece[len] = '\0';
	ret->share = 1;
	colon = strchr(piece, ':');
	if (colon) {
		*colon = '\0';
		ret->share = strtod(colon + 1, &end);
		if (end == colon + 1 || (*end && strcmp(end, "%") != 0) || !(ret->share > 0) ||
			!isfinite(ret->share))
			return weir_err_set(err, -EINVAL, "'%s' is not a share", colon + 1);
	}
	r = weir_units_size(piece, &bytes, err);
	if (r == 0 && (bytes == 0 || bytes > UINT32_MAX))
		r = weir_err_set(err, -EINVAL, "'%s' is not the size of a request", piece);
	if (r == 0)
		ret->bytes = (uint32_t)bytes;
	return r;
}

static int set_sizes(void *to, const char *value, struct weir_err *err)
{
	struct load_job *j = to;
	size_t n = 0;
	int r = 0;

	for (const char *p = value; r == 0; p++) {
		size_t len = strcspn(p, ",");

		if (n == LOAD_SIZES)
			return weir_err_set(err, -EINVAL, "more than %d sizes", LOAD_SIZES);
		r = read_size(p, len, &j->sizes[n++], err);
		p += len;
		if (!*p)
			break;
	}
	if (r == 0)
		j->n_sizes = n;
	return r;
}

/* ---- the table */

#define FIELD(f) offsetof(struct load_job, f)

static const struct {
	set_fn *set;
	size_t field;
} setters[] = {
	{set_u32, FIELD(connections)},
	{set_u32, FIELD(depth)},
	{set_rate, FIELD(rate)},
	{set_arrivals, FIELD(even)},
	{set_sizes, 0},
	{set_percent, FIELD(reads)},
	{set_percent, FIELD(fua)},
	{set_order, 0},
	{set_bytes, FIELD(offset)},
	{set_bytes, FIELD(length)},
	{set_u32, FIELD(flush_every)},
	{set_time, FIELD(think)},
	{set_time, FIELD(start)},
	{set_time, FIELD(duration)},
	{set_u64, FIELD(requests)},
	{set_time, FIELD(warm_up)},
	{set_u64, FIELD(seed)},
	{set_flag, FIELD(structured)},
	{set_flag, FIELD(verify)},
	{set_text, FIELD(table)},
	{set_time, FIELD(reconnect)},
	{set_time, FIELD(timeout)},
	{set_text, FIELD(tls_ca)},
	{set_text, FIELD(tls_cert)},
	{set_text, FIELD(tls_key)},
	{set_text, FIELD(tls_psk)},
};
const char *const load_keys[] = {"connections", "depth", "rate", "arrivals", "size", "reads", "fua",
	"order", "offset", "length", "flush-every", "think", "start", "duration", "requests",
	"warm-up", "seed", "structured", "verify", "table", "reconnect", "timeout", "tls-ca",
	"tls-cert", "tls-key", "tls-psk", NULL};
#define N_KEYS (sizeof(setters) / sizeof(setters[0]))
_Static_assert(sizeof(load_keys) / sizeof(load_keys[0]) == N_KEYS + 1, "a setter for each key");

static size_t find_key(const char *key, size_t len) /* N_KEYS: none */
{
	size_t i = 0;

	while (i < N_KEYS && (strncmp(load_keys[i], key, len) != 0 || load_keys[i][len]))
		i++;
	return i;
}

int load_job_set(struct load_job *j, const char *key, const char *value, struct weir_err *err)
{
	size_t i = find_key(key, strlen(key));
	struct weir_err inner = {""};
	int r;

	if (i == N_KEYS) {
		const char *near = weir_err_near(key, load_keys);

		return weir_err_set(
			err, -EINVAL, near ? "no '%s' (did you mean '%s'?)" : "no '%s'", key, near);
	}
	r = setters[i].set((char *)j + setters[i].field, value, &inner);
	return r < 0 ? weir_err_set(err, r, "%s: %s", key, inner.text) : 0;
}

/* ---- a whole job */

/* Return the end of the value: a comma followed by a key and '=', or by a flag; NULL: the end of
 * the text. */
static char *value_end(char *p)
{
	for (; (p = strchr(p, ',')); p++) {
		size_t len = strcspn(p + 1, "=,");

		if (len && p[1 + len] == '=' && strspn(p + 1, "abcdefghijklmnopqrstuvwxyz-") == len)
			return p;
		/* a flag without a value */
		if (find_key(p + 1, len) < N_KEYS && setters[find_key(p + 1, len)].set == set_flag)
			return p;
	}
	return NULL;
}

static bool is_uri(const char *text)
{
	return strncmp(text, "nbd://", 6) == 0 || strncmp(text, "nbds://", 7) == 0 ||
	       strncmp(text, "nbd+unix://", 11) == 0 || strncmp(text, "nbds+unix://", 12) == 0;
}

int load_job_parse(struct load_job *j, char *text, struct weir_err *err)
{
	char *equals = is_uri(text) ? NULL : strchr(text, '='), *uri = text, *comma;
	int r = 0;

	if (equals) {
		*equals = '\0';
		j->name = text;
		uri = equals + 1;
	}
	if (!is_uri(uri) || (equals && equals == text))
		return weir_err_set(err, -EINVAL,
			"'%s' is not a job: [NAME=]URI[,KEY=VALUE]..., with a URI such as "
			"nbd://HOST/EXPORT",
			uri);
	j->uri = uri;
	comma = value_end(uri);
	while (comma && r == 0) {
		char *key = comma + 1, *value = key + strcspn(key, "=,");

		*comma = '\0';
		if (*value == '=') {
			*value++ = '\0';
			comma = value_end(value);
			if (comma)
				*comma = '\0';
			r = load_job_set(j, key, value, err);
		} else { /* a flag, and perhaps more */
			comma = *value ? value : NULL;
			*value = '\0';
			r = load_job_set(j, key, "", err);
		}
	}
	return r;
}
