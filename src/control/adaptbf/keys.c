/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/adaptbf/keys.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static const char *const debt_keys[] = {"floor", "half_life", NULL};
static const char *const without_words[] = {
	"nothing", "lending", "repayment", "bound", NULL}; /* enum lend_without */
static const char *const tokens_words[] = {"first", "hold", NULL};
static const char *const unit_words[] = {"requests", "bytes", NULL}; /* enum weir_unit */

/* A gate's bucket holds rates from 1/1024 to 2·10¹¹ a second. */
#define RATE_MIN (1.0 / 1024)
#define RATE_MAX 2e11

#define GUESS       1000.0      /* requests per second: more than a disk, less than a flash */
#define GUESS_BYTES 104857600.0 /* bytes per second: the same */

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

static int read_debt(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct lend_debt debt = LEND_DEBT;
	const char *text = yamldoc_text(n);
	int r = 0;

	if (text && strcmp(text, "paper") == 0)
		debt = (struct lend_debt){0};
	else if (yamldoc_kind(n) != YAMLDOC_MAP)
		r = yamldoc_error(
			n, err, "must be 'paper', or a map as in {floor: 50%%, half_life: 60s}");
	else if ((r = yamldoc_map(n, debt_keys, err)) == 0 &&
		 (r = yamldoc_optional(read_floor(n, &debt.floor, err))) == 0)
		r = yamldoc_optional(read_half_life(n, &debt.half_life, err));
	if (r == 0)
		((struct adaptbf_settings *)s->data)->debt = debt;
	return r;
}

static int read_guess(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct adaptbf_settings *to = s->data;
	struct weir_rate rate;
	int r = yamldoc_as_rate(n, &rate, err);

	if (r)
		return r;
	if ((int)rate.unit != to->unit || !(rate.per_second >= RATE_MIN) ||
		rate.per_second > RATE_MAX)
		return yamldoc_error(n, err,
			to->unit == WEIR_UNIT_BYTES
				? "must be in bytes per second, as tokens are, and more than 0"
				: "must be in iops, and more than 0");
	to->guess = rate.per_second / lend_token_size((enum weir_unit)to->unit);
	return 0;
}

#define AT(field) KEY_AT(struct adaptbf_settings, field)
const struct key adaptbf_keys[] = {{"period", KEY_TIME, AT(period), 0.1, 0.01, 60},
	{"tokens", KEY_WORD, AT(tokens), .words = tokens_words},
	{"unit", KEY_WORD, AT(unit), .words = unit_words},
	{"depth", KEY_NUMBER, AT(depth), 0, 1, 1e6, .zero = "auto",
		.shown = "3, or the tokens of 20 ms if that is more"},
	{"guess", KEY_OWN, .read = read_guess, .shown = "1k iops, or 100 MiB/s with unit: bytes"},
	{"headroom", KEY_NUMBER, AT(headroom), 0.05, 0, 1, .above = true},
	{"forget", KEY_TIME, AT(forget), 600, 1, INFINITY},
	{"debt", KEY_OWN, .read = read_debt, .shown = "{floor: 50%, half_life: 60s}"},
	{"without", KEY_WORD, AT(without), .lab = true, .words = without_words}, {0}};

void adaptbf_keys_check(struct settings *s, struct controller_check *c)
{
	struct adaptbf_settings *a = s->data;

	if (a->depth > 0 && a->tokens != ADAPTBF_TOKENS_HOLD)
		c->refuse(c, yamldoc_get(c->own, "depth"), "is for 'tokens: hold'");
	if (!yamldoc_has(c->own, "debt"))
		a->debt = LEND_DEBT;
	if (!yamldoc_has(c->own, "guess"))
		a->guess = a->unit == WEIR_UNIT_BYTES ? GUESS_BYTES / LEND_TOKEN_BYTES : GUESS;
}

bool adaptbf_keys_count_bytes(const void *settings)
{
	return ((const struct adaptbf_settings *)settings)->unit == WEIR_UNIT_BYTES;
}

struct lend_config adaptbf_settings_config(const struct adaptbf_settings *s, double capacity)
{
	return (struct lend_config){.period = s->period,
		.rate = capacity > 0 ? capacity : s->guess,
		.learn = capacity <= 0,
		.hold = s->tokens == ADAPTBF_TOKENS_HOLD,
		.headroom = s->headroom,
		.forget = s->forget,
		.debt = s->debt,
		.without = (enum lend_without)s->without};
}
