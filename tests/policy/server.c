/* SPDX-License-Identifier: BSD-3-Clause */
/* server: AdapTBF and static rules of a resource: keys, defaults, copies, and errors. */
#include "control/adaptbf/keys.h"
#include "control/tbf/keys.h"
#include "policy/policy.h"
#include "policy/text.h"
#include <math.h>

#define SETTINGS(p, i) ((const struct adaptbf_settings *)(p)->resources[i].settings)

static void defaults(void)
{
	struct weir_policy *p = parse("resources: [{name: a, controller: adaptbf}, {name: b}]\n");
	const struct adaptbf_settings *a = p->resources[0].settings;

	CHECK(p->resources[0].controller == &adaptbf_controller);
	CHECK(!p->resources[1].controller);
	CHECK_INT(a->period, 100 * WEIR_MS);
	CHECK(!a->tokens);
	CHECK_NEAR(a->guess, 1000, 1e-9);
	CHECK_NEAR(a->depth, 0, 1e-9);
	CHECK_NEAR(a->headroom, 0.05, 1e-9);
	CHECK_INT(a->forget, 600 * WEIR_SEC);
	CHECK_INT(a->unit, WEIR_UNIT_REQUESTS);
	CHECK_NEAR(a->debt.floor, 0.5, 1e-9);
	CHECK_INT(a->debt.half_life, 60 * WEIR_SEC);
	weir_policy_free(p);
}

static void as_written(void)
{
	struct weir_policy *p = parse("resources:\n"
				      "  - name: a\n"
				      "    controller: adaptbf\n"
				      "    capacity: 3k iops\n"
				      "    adaptbf: {period: 250ms, tokens: hold, depth: 5, guess: "
				      "2k iops, headroom: 0.1, forget: 1min}\n");
	const struct adaptbf_settings *a = p->resources[0].settings;

	CHECK_INT(a->period, 250 * WEIR_MS);
	CHECK(a->tokens);
	CHECK_NEAR(a->depth, 5, 1e-9);
	CHECK_NEAR(a->guess, 2000, 1e-9);
	CHECK_NEAR(a->headroom, 0.1, 1e-9);
	CHECK_INT(a->forget, 60 * WEIR_SEC);
	weir_policy_free(p);
}

static void debts_and_units(void)
{
	static const struct {
		const char *text;
		double floor;
		weir_time half_life;
	} debts[] = {
		{"debt: paper", 0, 0},
		{"debt: {floor: 20%}", 0.2, 60 * WEIR_SEC},
		{"debt: {floor: 0.125, half_life: 2min}", 0.125, 120 * WEIR_SEC},
		{"debt: {floor: 0%, half_life: none}", 0, 0},
		{"debt: {floor: 100%, half_life: 1s}", 1, WEIR_SEC},
		{"debt: {}", 0.5, 60 * WEIR_SEC},
	};
	struct weir_policy *p;

	for (size_t i = 0; i < sizeof(debts) / sizeof(*debts); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			"resources: [{name: a, controller: adaptbf, adaptbf: {%s}}]\n",
			debts[i].text);
		p = parse(text);
		CHECK_NEAR(SETTINGS(p, 0)->debt.floor, debts[i].floor, 1e-9);
		CHECK_INT(SETTINGS(p, 0)->debt.half_life, debts[i].half_life);
		weir_policy_free(p);
	}
	p = parse("resources:\n"
		  "  - {name: a, controller: adaptbf, adaptbf: {unit: bytes}}\n"
		  "  - {name: b, controller: adaptbf, adaptbf: {guess: 40 KiB/s, unit: bytes}}\n");
	CHECK_INT(SETTINGS(p, 0)->unit, WEIR_UNIT_BYTES);
	CHECK_NEAR(SETTINGS(p, 0)->guess, 25600, 1e-9); /* 100 MiB/s, in tokens of 4 KiB */
	CHECK_NEAR(SETTINGS(p, 1)->guess, 10, 1e-9);
	CHECK_INT(p->resources[0].cost, WEIR_UNIT_BYTES); /* unless it says otherwise */
	weir_policy_free(p);
	p = parse("resources:\n"
		  "  - {name: a, cost: time, controller: adaptbf, adaptbf: {unit: bytes}}\n"
		  "  - {name: b, controller: adaptbf, adaptbf: {unit: requests}}\n");
	CHECK_INT(p->resources[0].cost, WEIR_UNIT_TIME); /* with a warning */
	CHECK_INT(p->resources[1].cost, WEIR_UNIT_REQUESTS);
	weir_policy_free(p);
}

#define REFUSED(keys, message)                                                                     \
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {" keys "}}]\n", message)

static void debts_and_units_that_are_none(void)
{
	REFUSED("debt: papers", "paper");
	REFUSED("debt: [1]", "must be 'paper', or a map as in {floor: 50%, half_life: 60s}");
	REFUSED("debt: {flor: 50%}", "did you mean 'floor'");
	REFUSED("debt: {floor: 101%}", "must be from 0% to 100%");
	REFUSED("debt: {floor: 50}", "must be from 0% to 100%");
	REFUSED("debt: {floor: -1%}", "must be");
	REFUSED("debt: {floor: half}", "must be a part, as in 50%");
	REFUSED("debt: {floor: '%'}", "must be a part, as in 50%");
	REFUSED("debt: {half_life: 10ms}", "at least 1 s, or none");
	REFUSED("debt: {half_life: forever}", "half_life");
	REFUSED("unit: pages", "requests");
	REFUSED("unit: bytes, guess: 1k iops", "must be in bytes per second, as tokens are");
}

static void check_rules(const struct weir_policy *p)
{
	const struct tbf_settings *t = p->resources[0].settings;
	struct tbf_settings_rule rule;
	size_t at = 0;

	CHECK(p->resources[0].controller == &tbf_controller);
	CHECK_INT(t->depth, 4);
	CHECK_NEAR(t->other, 10, 1e-9);
	CHECK_INT(t->n_rules, 2);
	rule = tbf_settings_next(t, &at);
	CHECK_STR(rule.match, "job1 job2");
	CHECK_NEAR(rule.rate, 100, 1e-9);
	rule = tbf_settings_next(t, &at);
	CHECK_STR(rule.match, "big/*");
	CHECK_NEAR(rule.rate, 5000, 1e-9);
	CHECK(tbf_settings_rate(t, "job1") == 100 && tbf_settings_rate(t, "job2") == 100);
	CHECK(tbf_settings_rate(t, "big/one/two") == 5000 && tbf_settings_rate(t, "big/") == 5000);
	CHECK(tbf_settings_rate(t, "job") == 10 && tbf_settings_rate(t, "job12") == 10);
	CHECK(tbf_settings_rate(t, "big") == 10 && tbf_settings_rate(t, "job1 job2") == 10);
}

static void rules(void)
{
	struct weir_policy *p = parse("resources:\n"
				      "  - name: a\n"
				      "    controller: tbf\n"
				      "    tbf: {depth: 4, default: 10 iops, rules: [{match: job1 "
				      "job2, rate: 100 iops},\n"
				      "      {match: big/*, rate: 5k iops}]}\n");
	const struct tbf_settings *t;
	struct weir_policy *copy;

	check_rules(p);
	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	check_rules(copy); /* its own memory */
	weir_policy_free(copy);
	p = parse("resources: [{name: a, controller: tbf, tbf: {rules: []}}]\n");
	t = p->resources[0].settings;
	CHECK(isinf(t->other));
	CHECK_INT(t->depth, 3);
	CHECK_INT(t->n_rules, 0);
	weir_policy_free(p);
	p = parse("resources: [{name: a, controller: tbf, tbf: {default: 2 iops, rules: [{match: "
		  "'a*c*e', rate: 1 "
		  "iops}, {match: '*', rate: 7 iops}]}}]\n");
	t = p->resources[0].settings;
	CHECK(tbf_settings_rate(t, "abcbcde") == 1 && tbf_settings_rate(t, "ace") == 1);
	CHECK(tbf_settings_rate(t, "abcbcdef") == 7);
	weir_policy_free(p);
}

static void invalid_servers_are_refused(void)
{
	refused("resources: [{name: a, controller: adaptbfx}]\n", "adaptbf");
	refused("resources: [{name: a, adaptbf: {period: 1s}}]\n", "controller: adaptbf");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {period: 1ms}}]\n", "10ms");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {tokens: last}}]\n", "tokens");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {depth: 3}}]\n", "hold");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {guess: 1 MiB/s}}]\n", "iops");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {headroom: 2}}]\n",
		"at most 1");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {forget: 10ms}}]\n", "1s");
	refused("resources: [{name: a, controller: adaptbf, adaptbf: {perod: 1s}}]\n", "perod");
	refused("resources: [{name: a, controller: adaptbf, threshold: 5ms}]\n", "parda");
	refused("resources: [{name: a, controller: tbf}]\n", "needs its rules");
	refused("resources: [{name: a, tbf: {rules: []}}]\n", "controller: tbf");
	refused("resources: [{name: a, controller: tbf, tbf: {rules: [{match: a}]}}]\n", "rate");
	refused("resources: [{name: a, controller: tbf, tbf: {rules: [{rate: 1 iops}]}}]\n",
		"match");
	refused("resources: [{name: a, controller: tbf, tbf: {rules: [{match: '  ', rate: 1 "
		"iops}]}}]\n",
		"must not be empty");
	refused("resources: [{name: a, controller: tbf, tbf: {rules: [{match: a, rate: 1 "
		"MiB/s}]}}]\n",
		"iops");
	refused("resources: [{name: a, controller: tbf, tbf: {depth: 0, rules: []}}]\n", "depth");
}

int main(void)
{
	RUN(defaults);
	RUN(as_written);
	RUN(debts_and_units);
	RUN(debts_and_units_that_are_none);
	RUN(rules);
	RUN(invalid_servers_are_refused);
	return 0;
}
