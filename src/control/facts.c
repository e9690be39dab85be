/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/facts.h"
#include <math.h>

/* ---- values */

static const void *at(const struct fact *f, const void *row)
{
	return (const char *)row + f->offset;
}

static bool is_time(const struct fact *f)
{
	return f->unit == FACTS_SECONDS || f->unit == FACTS_AGO;
}

bool facts_is_whole(const struct fact *f)
{
	return f->type <= FACTS_I32 && !is_time(f);
}

int64_t facts_whole(const struct fact *f, const void *row)
{
	uint64_t u;

	switch (f->type) {
	case FACTS_I64:
		return *(const int64_t *)at(f, row);
	case FACTS_U32:
		return *(const uint32_t *)at(f, row);
	case FACTS_I32:
		return *(const int32_t *)at(f, row);
	case FACTS_U64:
		u = *(const uint64_t *)at(f, row);
		return u > INT64_MAX ? INT64_MAX : (int64_t)u;
	default:
		return 0;
	}
}

double facts_stored(const struct fact *f, const void *row)
{
	switch (f->type) {
	case FACTS_U64:
		return (double)*(const uint64_t *)at(f, row);
	case FACTS_REAL:
		return *(const double *)at(f, row);
	case FACTS_BOOL:
		return *(const bool *)at(f, row);
	case FACTS_TEXT:
		return NAN;
	default:
		return (double)facts_whole(f, row);
	}
}

double facts_value(const struct fact *f, const void *row)
{
	if (f->none == FACTS_NO_LIMIT && facts_whole(f, row) == INT64_MAX)
		return INFINITY;
	return facts_stored(f, row) / (is_time(f) ? 1e9 : 1);
}

bool facts_known(const struct fact *f, const void *row)
{
	double value = facts_value(f, row);

	if (f->type == FACTS_TEXT)
		return facts_text(f, row) != NULL;
	return isfinite(value) && (f->none != FACTS_NOT_ZERO || value > 0);
}

const char *facts_text(const struct fact *f, const void *row)
{
	return *(const char *const *)at(f, row);
}

/* ---- setting them */

bool facts_set_whole(const struct fact *f, void *row, int64_t value)
{
	void *to = (char *)row + f->offset;

	switch (f->type) {
	case FACTS_U64:
		*(uint64_t *)to = (uint64_t)value;
		return value >= 0;
	case FACTS_I64:
		*(int64_t *)to = value;
		return true;
	case FACTS_U32:
		*(uint32_t *)to = (uint32_t)value;
		return value >= 0 && value <= UINT32_MAX;
	case FACTS_I32:
		*(int32_t *)to = (int32_t)value;
		return value >= INT32_MIN && value <= INT32_MAX;
	case FACTS_BOOL:
		*(bool *)to = value;
		return value == 0 || value == 1;
	default:
		return false;
	}
}

/* The largest accepted time, a thousand years: far from overflow. */
#define SECONDS_MAX 3e10

bool facts_set_real(const struct fact *f, void *row, double value)
{
	if (is_time(f) && !(fabs(value) < SECONDS_MAX))
		return false;
	if (is_time(f)) /* JSON has seconds with twelve digits: keep µs */
		value = (double)llround(value * 1e6) * 1e3;
	if (f->type != FACTS_REAL)
		return is_time(f) && facts_set_whole(f, row, (int64_t)value);
	*(double *)(void *)((char *)row + f->offset) = value;
	return true;
}

void facts_set_text(const struct fact *f, void *row, const char *value)
{
	*(const char **)(void *)((char *)row + f->offset) = value;
}
