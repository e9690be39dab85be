/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/adaptbf/keys.h"
#include <errno.h>
#include <string.h>

static const char *const debt_keys[] = {"floor", "half_life", NULL};
static const char *const debt_words[] = {"paper", NULL};
static const char *const unit_words[] = {"requests", "bytes", NULL}; /* enum weir_unit */

/* A gate's bucket holds rates from 1/1024 to 2·10¹¹ a second. */
#define RATE_MIN (1.0 / 1024)
#define RATE_MAX 2e11

/* "50%", or 0.5. */
static int read_floor(yamldoc_node map, double *ret, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "floor");
	const char *text = yamldoc_text(n);
	size_t len = text ? strlen(text) : 0;
	bool percent = len && text[len - 1] == '%';
	char number[32];
	double part;

	if (!n.id)
		return -ENOENT;
	if (!len || len >= sizeof(number))
		return yamldoc_error(n, err, "must be a part, as in 50%%");
	memcpy(number, text, len + 1);
	if (percent)
		number[len - 1] = '\0';
	if (weir_units_count(number, &part, NULL) < 0)
		return yamldoc_error(n, err, "\"%s\": must be a part, as in 50%%", text);
	part = percent ? part / 100 : part;
	if (!(part >= 0 && part <= 1))
		return yamldoc_error(n, err, "\"%s\": must be from 0%% to 100%%", text);
	*ret = part;
	return 0;
}

static int read_half_life(yamldoc_node map, weir_time *ret, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "half_life");
	const char *text = yamldoc_text(n);
	weir_time time;
	int r;

	if (text && strcmp(text, "none") == 0) {
		*ret = 0;
		return 0;
	}
	r = yamldoc_time(map, "half_life", &time, err);
	if (r)
		return r;
	if (time < WEIR_SEC)
		return yamldoc_error(n, err, "must be at least 1 s, or none");
	*ret = time;
	return 0;
}

int adaptbf_keys_debt(yamldoc_node map, struct adaptbf_debt *ret, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "debt");
	struct adaptbf_debt debt = ADAPTBF_DEBT;
	int word, r;

	if (!n.id)
		return -ENOENT;
	if (yamldoc_kind(n) != YAMLDOC_MAP) {
		if (yamldoc_kind(n) != YAMLDOC_SCALAR)
			return yamldoc_error(n, err,
				"must be 'paper', or a map as in {floor: 50%%, half_life: 60s}");
		r = yamldoc_choice(map, "debt", debt_words, &word, err);
		debt = (struct adaptbf_debt){0};
	} else if ((r = yamldoc_map(n, debt_keys, err)) == 0 &&
		   (r = yamldoc_optional(read_floor(n, &debt.floor, err))) == 0) {
		r = yamldoc_optional(read_half_life(n, &debt.half_life, err));
	}
	if (r == 0)
		*ret = debt;
	return r;
}

int adaptbf_keys_unit(yamldoc_node map, enum weir_unit *ret, struct weir_err *err)
{
	int word;
	int r = yamldoc_choice(map, "unit", unit_words, &word, err);

	if (r == 0)
		*ret = (enum weir_unit)word;
	return r;
}

int adaptbf_keys_rate(
	yamldoc_node map, const char *key, enum weir_unit unit, double *ret, struct weir_err *err)
{
	struct weir_rate rate;
	int r = yamldoc_rate(map, key, &rate, err);

	if (r)
		return r;
	if (rate.unit != unit || !(rate.per_second >= RATE_MIN) || rate.per_second > RATE_MAX)
		return yamldoc_error(yamldoc_get(map, key), err,
			unit == WEIR_UNIT_BYTES
				? "must be in bytes per second, as tokens are, and more than 0"
				: "must be in iops, and more than 0");
	*ret = rate.per_second / adaptbf_token_size(unit);
	return 0;
}
