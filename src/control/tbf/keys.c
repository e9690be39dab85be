/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/tbf/keys.h"
#include <errno.h>
#include <math.h>
#include <string.h>

/* A gate's bucket holds rates from 1/1024 to 2·10¹¹ a second. */
#define RATE_MIN  (1.0 / 1024)
#define RATE_MAX  2e11
#define DEPTH_MAX 1000000

static const char *const rule_keys[] = {"match", "rate", NULL};

/* In the settings a rule is its rate and its text, padded so that the next rule is aligned. */
static size_t padded(size_t len)
{
	return (len + sizeof(double)) / sizeof(double) * sizeof(double);
}

static int append_rule(struct settings *s, double rate, const char *match)
{
	static const char zeros[sizeof(double)];
	size_t len = strlen(match);

	if (key_append(s, &rate, sizeof(rate)) < 0 || key_append(s, match, len) < 0 ||
		key_append(s, zeros, padded(len) - len) < 0)
		return -ENOMEM;
	((struct tbf_settings *)s->data)->n_rules++;
	return 0;
}

struct tbf_settings_rule tbf_settings_next(const struct tbf_settings *s, size_t *at)
{
	const char *rule = (const char *)(s + 1) + *at;
	struct tbf_settings_rule ret = {.match = rule + sizeof(ret.rate)};

	memcpy(&ret.rate, rule, sizeof(ret.rate));
	*at += sizeof(ret.rate) + padded(strlen(ret.match));
	return ret;
}

static int read_rule(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct weir_rate rate;
	const char *match;
	int r = yamldoc_map(n, rule_keys, err);

	if (r || (r = yamldoc_string(n, "match", &match, err)) ||
		(r = yamldoc_rate(n, "rate", &rate, err)))
		return r == -ENOENT ? yamldoc_error(n, err, "needs 'match' and 'rate'") : r;
	if (strspn(match, " ") == strlen(match))
		return yamldoc_error(yamldoc_get(n, "match"), err, "must not be empty");
	if (rate.unit != WEIR_UNIT_REQUESTS || !(rate.per_second >= RATE_MIN) ||
		rate.per_second > RATE_MAX)
		return yamldoc_error(
			yamldoc_get(n, "rate"), err, "must be in iops, and more than 0");
	return append_rule(s, rate.per_second, match);
}

static int read_rules(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	int r = yamldoc_list(n, err);

	for (size_t i = 0; r == 0 && i < yamldoc_size(n); i++)
		r = read_rule(yamldoc_at(n, i), s, err);
	return r;
}

#define AT(field) KEY_AT(struct tbf_settings, field)
static const struct key keys[] = {{"depth", KEY_WHOLE, AT(depth), TBF_DEPTH, 1, DEPTH_MAX},
	{"default", KEY_IOPS, AT(other), INFINITY, RATE_MIN, RATE_MAX, .shown = "no limit"},
	{"rules", KEY_OWN, .read = read_rules, .shown = "none"}, {0}};

static void check(struct settings *s, struct controller_check *c)
{
	if (!yamldoc_has(c->map, "tbf") && !c->own.id)
		c->refuse(c, c->map,
			"controller tbf needs its rules, as in 'tbf: {rules: [{match: \"*\", rate: "
			"1k iops}]}'");
}

/* One word of a pattern, which ends at a space or the end. '*' by going back to the last one. */
static bool matches_word(const char *word, const char *path)
{
	const char *star = NULL, *mark = NULL;

	while (*path) {
		if (*word == '*') {
			star = ++word;
			mark = path;
		} else if (*word && *word != ' ' && *word == *path) {
			word++;
			path++;
		} else if (star) {
			word = star;
			path = ++mark;
		} else {
			return false;
		}
	}
	while (*word == '*')
		word++;
	return *word == '\0' || *word == ' ';
}

static bool matches(const char *pattern, const char *path)
{
	for (size_t len; *pattern; pattern += len + (pattern[len] == ' ')) {
		len = strcspn(pattern, " ");
		if (len && matches_word(pattern, path))
			return true;
	}
	return false;
}

double tbf_settings_rate(const struct tbf_settings *s, const char *path)
{
	size_t at = 0;

	for (uint32_t i = 0; i < s->n_rules; i++) {
		struct tbf_settings_rule rule = tbf_settings_next(s, &at);

		if (matches(rule.match, path))
			return rule.rate;
	}
	return s->other;
}

/* ---- the controller: sets its rules with the policy and never changes them */

static int prepare(void *c, const struct controller_version *v, size_t from, size_t to)
{
	const struct tbf_settings *s = v->settings;

	for (size_t i = from; i < to; i++) {
		struct controller_tenant t = v->tenant(v, i);
		double rate = t.is_leaf ? tbf_settings_rate(s, t.path) : INFINITY;

		if (!isinf(rate))
			v->rules[i].bucket = (struct weir_bucket_spec){
				WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, rate, s->depth};
	}
	return 0;
}

static const struct key_help help[] = {
#include "control/tbf/keys.inc"
	{0}};

const struct controller tbf_controller = {
	.name = "tbf",
	.summary = "gives each tenant the rate of the first rule that matches, as Lustre's token "
		   "bucket filter",
	.keys = keys,
	.help = help,
	.settings_size = sizeof(struct tbf_settings),
	.check = check,
	.prepare = prepare,
};
