/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/tbf/keys.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
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

#define AT(field) offsetof(struct tbf_settings, field)
static const struct key keys[] = {
	{"depth", KEY_WHOLE, AT(depth), TBF_DEPTH, 1, DEPTH_MAX,
		.help = "The number of requests for which a leaf may save tokens."},
	{"default", KEY_IOPS, AT(other), INFINITY, RATE_MIN, RATE_MAX, .shown = "no limit",
		.help = "The rate of leaves that match no rule."},
	{"rules", KEY_OWN, .read = read_rules, .shown = "none",
		.help = "A list of maps, each with B<match>, paths of tenants with C<*> for any "
			"text, separated "
			"by spaces, and B<rate>, in iops. The first rule that matches a leaf "
			"applies to it; "
			"each leaf gets the whole rate."},
	{0}};

static void check(struct settings *s, struct controller_check *c)
{
	if (!yamldoc_has(c->map, "tbf") && !c->own.id)
		c->refuse(c, c->map,
			"controller tbf needs its rules, as in 'tbf: {rules: [{match: \"*\", rate: "
			"1k iops}]}'");
}

int tbf_settings_make(const struct tbf_settings *s, struct tbf **ret)
{
	struct tbf *t;
	size_t at = 0;
	int r = tbf_new(s->depth, s->other, &t);

	for (uint32_t i = 0; r == 0 && i < s->n_rules; i++) {
		struct tbf_settings_rule rule = tbf_settings_next(s, &at);
		char name[TBF_NAME];

		snprintf(name, sizeof(name), "r%u", (unsigned)i % 1000000u);
		r = tbf_start(t, name, rule.match, rule.rate, "default");
		if (r)
			tbf_free(t);
	}
	if (r == 0)
		*ret = t;
	return r;
}

/* ---- the controller: sets its rules with the policy and never changes them */

static int prepare(void *c, const struct controller_version *v, size_t from, size_t to)
{
	struct tbf *t;
	int r = tbf_settings_make(v->settings, &t);

	if (r)
		return r;
	for (size_t i = from; i < to; i++) {
		struct controller_tenant tenant = v->tenant(v, i);
		double rate;

		if (!tenant.is_leaf)
			continue;
		tbf_match(t, tenant.path, &rate);
		if (!isinf(rate))
			v->rules[i].bucket = (struct weir_bucket_spec){
				WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, rate, tbf_depth(t)};
	}
	tbf_free(t);
	return 0;
}

const struct controller tbf_controller = {
	.name = "tbf",
	.summary = "gives each tenant the rate of the first rule that matches, as Lustre's token "
		   "bucket filter",
	.keys = keys,
	.settings_size = sizeof(struct tbf_settings),
	.check = check,
	.prepare = prepare,
};
