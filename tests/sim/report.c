/* SPDX-License-Identifier: BSD-3-Clause */
/* report: tables that line up, numbers that read well, CSV that keeps every digit. */
#include "sim/experiment/report.h"
#include "test.h"
#include <math.h>

static const char *const cells[] = {
	"who", "iops", "why", "µs-1", "12", "max", "b", "3456", "", "short"};

static void test_table(void)
{
	struct report_table t = {.columns = 3};
	char *text;

	report_cells(&t, cells, sizeof(cells) / sizeof(*cells));
	WRITE_TEXT(text, CHECK_INT(report_table_text(&t, 1, to), 0));
	CHECK_STR(text, " who    iops  why\n"
			" µs-1     12  max\n"
			" b      3456\n"
			" short\n");
	free(text);
	t.columns = 3;
	report_cells(&t, cells, sizeof(cells) / sizeof(*cells));
	WRITE_TEXT(text, CHECK_INT(report_table_markdown(&t, to), 0));
	CHECK_STR(text,
		"| who | iops | why |\n|---|--:|---|\n| µs-1 | 12 | max |\n| b | 3456 |  |\n"
		"| short |  |  |\n");
	free(text);
}

static void test_markdown_bar(void)
{
	struct report_table t = {.columns = 1};
	char *text;

	report_cell(&t, "|W_i − W_j|");
	WRITE_TEXT(text, CHECK_INT(report_table_markdown(&t, to), 0));
	CHECK_STR(text, "| \\|W_i − W_j\\| |\n|---|\n");
	free(text);
}

static void test_number(void)
{
	char buf[32];

	CHECK_STR(report_number(3362.4, buf, sizeof(buf)), "3362");
	CHECK_STR(report_number(999.7, buf, sizeof(buf)), "1000");
	CHECK_STR(report_number(123.456, buf, sizeof(buf)), "123.5");
	CHECK_STR(report_number(37.16, buf, sizeof(buf)), "37.2");
	CHECK_STR(report_number(1.504, buf, sizeof(buf)), "1.50");
	CHECK_STR(report_number(0.98144, buf, sizeof(buf)), "0.981");
	CHECK_STR(report_number(0.0000123, buf, sizeof(buf)), "1.2e-05");
	CHECK_STR(report_number(0.00123, buf, sizeof(buf)), "0.0012");
	CHECK_STR(report_number(0, buf, sizeof(buf)), "0");
	CHECK_STR(report_number(-0.0, buf, sizeof(buf)), "0");
	CHECK_STR(report_number(4, buf, sizeof(buf)), "4");
	CHECK_STR(report_number(-2.5, buf, sizeof(buf)), "-2.50");
}

static void test_summary(void)
{
	struct metrics *m;
	char *text;

	CHECK_INT(metrics_new(&m), 0);
	metrics_put(m, "tenant.h1.vm1.iops", "iops", 1234);
	metrics_put(m, "tenant.h1.vm1.ios", "requests", 617);
	metrics_put(m, "tenant.h1.vm1.max", "ms", 123456);
	metrics_put(m, "tenant.h1.vm1.p99_9", "ms", 5.5);
	metrics_put(m, "events", "", 12);
	metrics_put(m, "tenant.h2.vm1.iops", "iops", 7);
	metrics_put(m, "gate.h1.window", "requests", 32);
	metrics_put(m, "gate.h1.rate", "B/s", 2.5e6);
	metrics_put(m, "total.iops", "iops", 1241);
	metrics_put(m, "tenant.h2.vm1.p99_9", "ms", NAN); /* nothing to measure */
	metrics_put(m, "total.mean", "ms", NAN);
	CHECK(metrics_series(m, "tenant.h1.vm1.latency", "ms") >= 0);
	WRITE_TEXT(text, CHECK_INT(report_summary(m, to), 0));
	CHECK_STR(text, "Tenants: throughput, and time from arrival to completion [ms]\n"
			"          IOPS  p99.9     max\n"
			"  h1.vm1  1234   5.50  123456\n"
			"  h2.vm1     7      –       –\n"
			"\n"
			"gate  window  rate [MB/s]\n"
			"h1        32         2.50\n"
			"\n"
			"events        12\n"
			"total.iops  1241  iops\n"
			"total.mean     –  ms\n");
	free(text);
	WRITE_TEXT(text, report_values_csv(m, to));
	CHECK(strstr(text, "name,unit,value\ntenant.h1.vm1.iops,iops,1234\n") == text);
	CHECK(strstr(text, "\ntenant.h2.vm1.p99_9,ms,\n") != NULL);
	CHECK(!strstr(text, "latency"));
	free(text);
	metrics_free(m);
}

static void test_series(void)
{
	struct metrics *m;
	struct metrics_entry e;
	char *text;
	int s;

	CHECK_INT(metrics_new(&m), 0);
	s = metrics_series(m, "tenant.a.latency", "ms");
	metrics_append(m, s, 0.1, 1.0 / 3);
	metrics_append(m, s, 0.2, 12345678);
	CHECK(metrics_find(m, "tenant.a.latency", &e));
	WRITE_TEXT(text, report_series_csv(&e, to));
	CHECK_STR(text, "t_s,tenant.a.latency_ms\n0.1,0.333333333333\n0.2,12345678\n");
	free(text);
	metrics_free(m);
}

int main(void)
{
	RUN(test_table);
	RUN(test_markdown_bar);
	RUN(test_number);
	RUN(test_summary);
	RUN(test_series);
	return 0;
}
