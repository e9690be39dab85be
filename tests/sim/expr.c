/* SPDX-License-Identifier: BSD-3-Clause */
/* expr: the language of claims: values, units, names, functions, and error messages. */
#include "sim/experiment/expr.h"
#include "test.h"
#include <errno.h>
#include <math.h>

static struct metrics *a, *b, *defined;
static struct expr_run runs[2];
static struct expr_scope scope;
static struct weir_err err;

static void set_up(void)
{
	int s;

	CHECK_INT(metrics_new(&a), 0);
	CHECK_INT(metrics_new(&b), 0);
	CHECK_INT(metrics_new(&defined), 0);
	metrics_put(a, "tenant.h1.vm1.iops", "iops", 300);
	metrics_put(a, "tenant.h1.vm2.iops", "iops", 100);
	metrics_put(a, "tenant.h2.vm1.iops", "iops", 200);
	metrics_put(a, "tenant.h1.db-1.p99", "ms", 12.5);
	metrics_put(b, "zero", "", 0);
	metrics_put(b, "p99.none", "ms", NAN);
	metrics_put(b, "p99.some", "ms", 4);
	s = metrics_series(b, "lat", "ms");
	for (int i = 0; i <= 10; i++)
		metrics_append(b, s, i * 0.1, i);
	metrics_series(b, "empty", "ms");
	metrics_put(defined, "bound", "ms", 7);
	runs[0] = (struct expr_run){"a", a};
	runs[1] = (struct expr_run){"base", b};
	scope = (struct expr_scope){runs, 2, defined};
}

static double eval(const char *text)
{
	double v;

	if (expr_eval(text, &scope, &v, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(expr_check(text, NULL), 0);
	return v;
}

static void refuse(const char *text, int code, const char *part)
{
	double v = 42;
	int r;

	err.text[0] = '\0';
	r = expr_eval(text, &scope, &v, &err);
	if (r != code || !strstr(err.text, part))
		FAIL("'%s' gave %d, \"%s\", not %d with \"%s\"", text, r, err.text, code, part);
	CHECK(v == 42); /* set only on success */
}

static void test_arithmetic(void)
{
	CHECK_NEAR(eval("1 + 2*3"), 7, 0);
	CHECK_NEAR(eval("(1 + 2) * 3"), 9, 0);
	CHECK_NEAR(eval("8 / 2 / 2"), 2, 0);
	CHECK_NEAR(eval("10 - 2 - 3"), 5, 0);
	CHECK_NEAR(eval("-3 * -2 + - 1"), 5, 0);
	CHECK_NEAR(eval(" 1.5k "), 1500, 0);
	CHECK_NEAR(eval("40%"), 0.4, 1e-12);
	CHECK_NEAR(eval("30ms"), 30, 0);
	CHECK_NEAR(eval("2s + 500us"), 2000.5, 1e-12);
	CHECK_NEAR(eval("16KiB"), 16384, 0);
}

static void test_names(void)
{
	CHECK_NEAR(eval("a.tenant.h1.vm1.iops / a.tenant.h1.vm2.iops"), 3, 0);
	CHECK_NEAR(eval("a.tenant.h1.db-1.p99 - bound"), 5.5, 0);
	CHECK_NEAR(eval("a.tenant.h1.vm1.iops -a.tenant.h1.vm2.iops"), 200, 0);
	CHECK_NEAR(eval("sum(a.tenant.*.vm1.iops)"), 500, 0);
	CHECK_NEAR(eval("sum(a.tenant.*.*.iops, 1)"), 601, 0);
	scope.n_runs = 1; /* one run: its name is optional */
	CHECK_NEAR(eval("tenant.h2.vm1.iops"), 200, 0);
	scope.n_runs = 2;
}

static void test_functions(void)
{
	CHECK_NEAR(eval("min(3, 1, 2)"), 1, 0);
	CHECK_NEAR(eval("max(3, 1 + 4, 2)"), 5, 0);
	CHECK_NEAR(eval("mean(1, 2, 6)"), 3, 0);
	CHECK_NEAR(eval("abs(2 - 5)"), 3, 0);
	CHECK_NEAR(eval("ratio(6, 4)"), 1.5, 0);
	CHECK_NEAR(eval("median(9, 1, 4)"), 4, 0);
	CHECK_NEAR(eval("median(9, 1, 4, 2)"), 3, 0);
	CHECK_NEAR(eval("below(1, 2) + below(2, 2) + below(3, 2)"), 1, 0);
	CHECK_NEAR(eval("spread(90, 100, 110)"), 0.2, 1e-12);
	CHECK_NEAR(eval("jain(5, 5, 5)"), 1, 1e-12);
	CHECK_NEAR(eval("jain(1, 0, 0, 0)"), 0.25, 1e-12);
	CHECK_NEAR(eval("mean(base.lat)"), 5, 1e-12);
	CHECK_NEAR(eval("mean(base.lat, 200ms, 0.6s)"), 4, 1e-12);
	CHECK_NEAR(eval("max(base.lat, 0s, 0.3s)"), 3, 0);
	CHECK_NEAR(eval("min(base.lat, 0.3s, 1s)"), 3, 0);
	CHECK_NEAR(eval("last(base.lat) * 2"), 20, 0);
}

static void test_refused(void)
{
	refuse("1 / (2 - 2)", -EDOM, "column 3");
	refuse("1 / base.zero", -EDOM, "divides by zero");
	refuse("ratio(1, base.zero)", -EDOM, "divides by zero");
	refuse("spread(base.zero)", -EDOM, "mean is zero");
	refuse("jain(base.zero, 0)", -EDOM, "zero");
	refuse("2 * base.p99.none", -EDOM, "p99.none: nothing was measured");
	refuse("max(base.p99.*)", -EDOM, "p99.none: nothing was measured");
	refuse("mean(base.lat, 5s, 6s)", -EDOM, "no value");
	refuse("last(base.empty)", -EDOM, "no value");
	refuse("a.tenant.h1.vm1.iop", -ENOENT, "did you mean 'a.tenant.h1.vm1.iops'");
	refuse("bas.lat + 1", -ENOENT, "did you mean 'base'");
	refuse("bond", -ENOENT, "did you mean 'bound'");
	refuse("q.tenant", -ENOENT, "run's name");
	refuse("sum(a.host.*.iops)", -ENOENT, "a.host.*.iops");
	refuse("1 + a.tenant.*.vm1.iops", -EINVAL, "as an argument");
	refuse("1 +", -EINVAL, "column 4");
	refuse("", -EINVAL, "ends too early");
	refuse("(1 + 2", -EINVAL, "')'");
	refuse("1 2", -EINVAL, "column 3");
	refuse("3 parsecs", -EINVAL, "column 3");
	refuse("3parsecs", -EINVAL, "units");
	refuse("1.2.3", -EINVAL, "column 1");
	refuse("men(1, 2)", -EINVAL, "did you mean 'min'");
	refuse("min()", -EINVAL, "needs an argument");
	refuse("abs(1, 2)", -EINVAL, "one argument");
	refuse("ratio(1)", -EINVAL, "two arguments");
	refuse("below(1)", -EINVAL, "two arguments");
	refuse("base.lat * 2", -EINVAL, "a series");
	refuse("base.lat", -EINVAL, "a series");
	refuse("jain(base.lat)", -EINVAL, "mean and last");
	refuse("mean(base.lat, 1, 2)", -EINVAL, "need a unit");
	refuse("mean(base.lat, 1s)", -EINVAL, "from and to");
	refuse("mean(1, base.lat)", -EINVAL, "may be a series");
	refuse("last(3)", -EINVAL, "takes a series");
	refuse("1$b", -EINVAL, "column 2");
	refuse("a", -ENOENT, "is a run");
}

static void test_limits(void)
{
	char deep[1001], name[400];

	memset(deep, '(', 1000);
	deep[1000] = '\0';
	refuse(deep, -EINVAL, "too many");
	memset(deep, '-', 1000);
	refuse(deep, -EINVAL, "too many");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refuse(name, -EINVAL, "too long");
	memset(name, '1', sizeof(name) - 1);
	refuse(name, -EINVAL, "too long");
}

static void test_series(void)
{
	struct metrics_entry e;

	CHECK_INT(expr_series("base.lat", &scope, &e, &err), 0);
	CHECK_INT(e.n, 11);
	CHECK_INT(expr_series("base.zero", &scope, &e, &err), -EINVAL);
	CHECK_INT(expr_series("base.none", &scope, &e, &err), -ENOENT);
}

int main(void)
{
	set_up();
	RUN(test_arithmetic);
	RUN(test_names);
	RUN(test_functions);
	RUN(test_refused);
	RUN(test_limits);
	RUN(test_series);
	metrics_free(a);
	metrics_free(b);
	metrics_free(defined);
	return 0;
}
