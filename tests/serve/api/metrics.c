/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics: read as Prometheus does, by a small parser of its format, and by promtool if it is
 * installed. */
#include "test.h"
#include "base/rng.h"
#include "control/adaptbf/facts.h"
#include "control/pshift/facts.h"
#include "serve/api/api.h"
#include "serve/snapshot/version.h"
#include <ctype.h>
#include <unistd.h>

/* ---- a snapshot */

static void metrics_write(const struct snapshot *s, const struct metrics_process *p, FILE *to)
{
	struct metrics_cursor c = {.snapshot = s, .process = p};

	while (metrics_more(&c, SIZE_MAX, to))
		;
}

static struct weir_hist hist;
static struct snapshot_tenant tenants[] = {
	{.path = "prod", .weight = 4, .share = 0.8, .served = 99},
	{.path = "prod/d\"b\\\n",
		.leaf = true,
		.weight = 3,
		.share = 0.6,
		.arrivals = 11,
		.served = 10,
		.bytes = 40960,
		.reads = 7,
		.writes = 3,
		.others = 1,
		.queued = 1,
		.oldest_wait = 2500 * WEIR_MS,
		.by_class = {0, 4, 6},
		.wait_ns = {1.5e9, 0, 0, 0, 0.25e9}},
	{.path = "idle", .leaf = true, .weight = 1, .share = 0.2},
};
static struct snapshot_tenant *by_tenant[] = {&tenants[0], &tenants[1], &tenants[2]};
static struct adaptbf_facts_job jobs[] = {{.row = {.key = {"prod/d\"b\\\n"}, .tenant = 1},
	.account = {.tokens = 70,
		.initial = 50,
		.record = -12,
		.demand = 99,
		.active = true,
		.ledger = {.borrowed = 40, .repaid = 28}}}};
static struct adaptbf_facts_self adaptbf = {.tokens = "hold",
	.unit = "requests",
	.state = {.rate = 1250.5, .tokens = 125, .active = 1, .known = 2, .steps = 17}};
static struct snapshot_resource resources[] = {
	{.name = "array",
		.back = "memory:1G",
		.controller = "adaptbf",
		.facts = {&adaptbf_facts, &adaptbf, {{jobs, 1}}},
		.up = true,
		.size = 1 << 30,
		.window = 32.5,
		.window_bytes = 524288,
		.in_flight_bytes = 262144,
		.capacity = {3300, 0},
		.full = 1500000000},
};
static struct snapshot_slo slos[] = {
	{.path = "prod/d\"b\\\n",
		.percentile = 99.9,
		.bound = 10 * WEIR_MS,
		.good = 8,
		.total = 10,
		.window = {{.value = 25 * WEIR_MS, .known = true, .met = false},
			{.value = -1, .known = true, .met = true}}},
	{.path = "idle",
		.percentile = 50,
		.bound = WEIR_SEC,
		.window = {{.value = -1}, {.value = -1}}},
};
static struct snapshot snapshot = {.now = 12500000000,
	.started = 2500000000,
	.version = 7,
	.enforce = true,
	.tenants = by_tenant,
	.n_tenants = 3,
	.slos = slos,
	.n_slos = 2,
	.resources = resources,
	.n_resources = 1,
	.connections = 5};

static char *text;
static size_t len;

/* Set the tenant's latency histogram. */
static void set_total(void)
{
	free(tenants[1].total);
	tenants[1].total = NULL;
	snapshot_hist_add(&tenants[1].total, &hist);
}

static void make(void)
{
	struct metrics_process process = {.cpu = 1.25, .resident = 4096, .fds = 9, .threads = 3};
	struct rng r;
	FILE *f;

	for (size_t t = 0; t < 3; t++)
		for (size_t i = 0; i < WEIR_LIMITS; i++)
			tenants[t].max[i] = INFINITY;
	tenants[1].max[0] = 5000;
	tenants[1].max[5] = 1e6;
	tenants[0].min[0] = 2000;
	weir_hist_clear(&hist);
	rng_init(&r, 1, "metrics");
	for (int i = 0; i < 10000; i++) /* exponential around 2 ms */
		weir_hist_record(&hist, (uint64_t)rng_exp(&r, 2e6));
	set_total();
	free(text);
	f = open_memstream(&text, &len);
	metrics_write(&snapshot, &process, f);
	fclose(f);
}

/* ---- the format: every line is a comment of its family or a sample of it */

struct sample {
	char name[100], labels[300];
	double value;
};
static struct sample samples[2000];
static size_t n_samples;

static const char *read_labels(const char *p, char *into)
{
	const char *from = p;

	while (*p != '}') {
		CHECK(isalpha(*p) || *p == '_');
		while (isalnum(*p) || *p == '_')
			p++;
		CHECK(*p++ == '=');
		CHECK(*p++ == '"');
		for (; *p != '"'; p++) {
			CHECK(*p && *p != '\n');
			if (*p == '\\') {
				p++;
				CHECK(*p == '\\' || *p == '"' || *p == 'n');
			}
		}
		p++;
		if (*p == ',')
			p++;
		else
			CHECK(*p == '}');
	}
	CHECK(p - from < 300);
	memcpy(into, from, (size_t)(p - from));
	into[p - from] = 0;
	return p + 1;
}

static const char *read_sample(const char *p, struct sample *s)
{
	size_t n = 0;
	char *end;

	*s = (struct sample){0};
	CHECK(isalpha(*p));
	while (isalnum(*p) || *p == '_' || *p == ':')
		s->name[n++] = *p++;
	if (*p == '{')
		p = read_labels(p + 1, s->labels);
	CHECK(*p++ == ' ');
	s->value = strtod(p, &end);
	CHECK(end > p && *end == '\n');
	return end + 1;
}

static bool belongs(const char *sample, const char *family, const char *type)
{
	size_t n = strlen(family);

	if (strncmp(sample, family, n) != 0)
		return false;
	if (strcmp(type, "histogram") != 0)
		return !sample[n];
	return strcmp(sample + n, "_bucket") == 0 || strcmp(sample + n, "_sum") == 0 ||
	       strcmp(sample + n, "_count") == 0;
}

static void format(void)
{
	char family[100] = "", type[20] = "", name[100];
	static char families[100][100];
	size_t n_families = 0;

	n_samples = 0;
	for (const char *p = text; *p;) {
		if (*p != '#') {
			CHECK(n_samples < 2000);
			p = read_sample(p, &samples[n_samples]);
			if (!belongs(samples[n_samples].name, family, type))
				FAIL("%s stands under %s", samples[n_samples].name, family);
			n_samples++;
			continue;
		}
		CHECK_INT(sscanf(p, "# HELP %99s", family), 1);
		for (size_t i = 0; i < n_families; i++)
			CHECK(strcmp(families[i], family) != 0); /* each once */
		strcpy(families[n_families++], family);
		p = strchr(p, '\n') + 1;
		CHECK_INT(sscanf(p, "# TYPE %99s %19s", name, type), 2);
		CHECK_STR(name, family);
		CHECK(!strcmp(type, "counter") || !strcmp(type, "gauge") ||
			!strcmp(type, "histogram"));
		/* By convention a counter, and nothing else, is called _total. */
		CHECK_INT(strlen(name) > 6 && !strcmp(name + strlen(name) - 6, "_total"),
			!strcmp(type, "counter"));
		p = strchr(p, '\n') + 1;
	}
	CHECK(n_families > 30);
	for (size_t i = 0; i < n_samples; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(samples[i].name, samples[k].name) ||
				strcmp(samples[i].labels, samples[k].labels));
}

static double value(const char *name, const char *labels)
{
	for (size_t i = 0; i < n_samples; i++)
		if (!strcmp(samples[i].name, name) && !strcmp(samples[i].labels, labels))
			return samples[i].value;
	FAIL("no %s{%s}", name, labels);
}

static bool absent(const char *name, const char *labels)
{
	for (size_t i = 0; i < n_samples; i++)
		if (!strcmp(samples[i].name, name) && !strcmp(samples[i].labels, labels))
			return false;
	return true;
}

#define DB "tenant=\"prod/d\\\"b\\\\\\n\""
static void values(void)
{
	CHECK_NEAR(value("weir_uptime_seconds", ""), 10, 1e-12);
	CHECK_NEAR(value("weir_policy_version", ""), 7, 0);
	CHECK_NEAR(value("weir_connections_total", ""), 5, 0);
	CHECK_NEAR(value("process_cpu_seconds_total", ""), 1.25, 0);
	CHECK_NEAR(value("weir_tenant_served_total", DB), 10, 0);
	CHECK_NEAR(value("weir_tenant_requests_total", DB ",op=\"write\""), 3, 0);
	CHECK_NEAR(value("weir_tenant_requests_total", DB ",op=\"other\""), 1, 0);
	CHECK_NEAR(value("weir_tenant_dispatched_total", DB ",class=\"rest\""), 6, 0);
	CHECK_NEAR(value("weir_tenant_wait_seconds_total", DB ",cause=\"window\""), 1.5, 1e-12);
	CHECK_NEAR(value("weir_tenant_wait_seconds_total", DB ",cause=\"turn\""), 0.25, 1e-12);
	CHECK_NEAR(value("weir_tenant_oldest_wait_seconds", DB), 2.5, 1e-12);
	CHECK_NEAR(value("weir_tenant_slo_requests_total", DB), 10, 0);
	CHECK_NEAR(value("weir_tenant_slo_good_total", DB), 8, 0);
	CHECK_NEAR(value("weir_tenant_slo_percentile", DB), 99.9, 1e-12);
	CHECK_NEAR(value("weir_tenant_slo_bound_seconds", DB), 0.01, 1e-12);
	CHECK_NEAR(value("weir_tenant_slo_seconds", DB ",window=\"1m\""), 0.025, 1e-12);
	CHECK(absent("weir_tenant_slo_seconds", DB ",window=\"1h\""));
	CHECK_NEAR(value("weir_tenant_slo_met", DB ",window=\"1m\""), 0, 0);
	CHECK_NEAR(value("weir_tenant_slo_met", DB ",window=\"1h\""), 1, 0);
	CHECK(absent("weir_tenant_slo_met", "tenant=\"idle\",window=\"1m\""));
	CHECK_NEAR(value("weir_tenant_max", DB ",unit=\"requests\",ops=\"all\""), 5000, 0);
	CHECK_NEAR(value("weir_tenant_max", DB ",unit=\"bytes\",ops=\"writes\""), 1e6, 0);
	CHECK_NEAR(
		value("weir_tenant_min", "tenant=\"prod\",unit=\"requests\",ops=\"all\""), 2000, 0);
	CHECK_NEAR(value("weir_tenant_share", "tenant=\"prod\""), 0.8, 1e-12);
	CHECK_NEAR(value("weir_resource_window", "resource=\"array\""), 32.5, 0);
	CHECK_NEAR(value("weir_resource_window_bytes", "resource=\"array\""), 524288, 0);
	CHECK_NEAR(value("weir_resource_in_flight_bytes", "resource=\"array\""), 262144, 0);
	CHECK_NEAR(value("weir_resource_full_seconds_total", "resource=\"array\""), 1.5, 1e-12);
	CHECK_NEAR(
		value("weir_resource_capacity", "resource=\"array\",unit=\"requests\""), 3300, 0);
	CHECK_NEAR(value("weir_adaptbf_rate", "resource=\"array\""), 1250.5, 0);
	CHECK_NEAR(value("weir_adaptbf_steps_total", "resource=\"array\""), 17, 0);
	CHECK_NEAR(value("weir_adaptbf_tokens", "resource=\"array\"," DB), 70, 0);
	CHECK_NEAR(value("weir_adaptbf_demand", "resource=\"array\"," DB), 99, 0);
	CHECK_NEAR(value("weir_adaptbf_record", "resource=\"array\"," DB), -12, 0);
	CHECK_NEAR(value("weir_adaptbf_borrowed_tokens_total", "resource=\"array\"," DB), 40, 0);
	CHECK_NEAR(value("weir_adaptbf_repaid_tokens_total", "resource=\"array\"," DB), 28, 0);
	/* Missing values are left out; a group is not counted in addition to its leaves. */
	CHECK(absent("weir_resource_capacity", "resource=\"array\",unit=\"bytes\""));
	CHECK(absent("weir_tenant_served_total", "tenant=\"prod\""));
	CHECK(absent("weir_tenant_max", "tenant=\"idle\",unit=\"requests\",ops=\"all\""));
	CHECK(absent("weir_tenant_latency_seconds_count", "tenant=\"idle\""));
}

/* Cumulative, and close to the exponential distribution. */
static void histogram(void)
{
	double last = 0;
	int n = 0;

	for (size_t i = 0; i < n_samples; i++) {
		const char *le = strstr(samples[i].labels, "le=\"");
		if (strcmp(samples[i].name, "weir_tenant_latency_seconds_bucket") != 0)
			continue;
		CHECK(samples[i].value >= last);
		last = samples[i].value;
		if (strncmp(le + 4, "+Inf", 4) != 0)
			CHECK(fabs(last / 10000 - (1 - exp(-atof(le + 4) / 2e-3))) < 0.02);
		n++;
	}
	CHECK_INT(n, 18);
	CHECK_NEAR(last, 10000, 0);
	CHECK_NEAR(value("weir_tenant_latency_seconds_count", DB), 10000, 0);
	CHECK_NEAR(value("weir_tenant_latency_seconds_sum", DB), (double)hist.sum / 1e9, 1e-9);
	/* A value just below a bound and one just above: on its two sides, for every bound. */
	for (double at = 50e3; at < 2e10; at *= 10) {
		struct weir_hist keep = hist;
		char labels[100];
		weir_hist_clear(&hist);
		weir_hist_record(&hist, (uint64_t)(at * 0.98));
		weir_hist_record(&hist, (uint64_t)(at * 1.02));
		set_total();
		FILE *f;
		free(text);
		f = open_memstream(&text, &len);
		metrics_write(&snapshot, NULL, f);
		fclose(f);
		format();
		snprintf(labels, sizeof(labels), DB ",le=\"%g\"", at / 1e9);
		if (at < 1e10)
			CHECK_NEAR(value("weir_tenant_latency_seconds_bucket", labels), 1, 0);
		hist = keep;
		set_total();
	}
}

static void promtool(void)
{
	FILE *p;

	if (system("command -v promtool >/dev/null") != 0) {
		printf("promtool is not here\n");
		return;
	}
	make();
	p = popen("promtool check metrics", "w");
	CHECK(p);
	fwrite(text, 1, len, p);
	CHECK_INT(pclose(p), 0);
}

/* ---- the same as JSON */

static json_t *status_of(struct api_status *s)
{
	json_error_t why;
	char *out;
	size_t n;
	FILE *f = open_memstream(&out, &n);
	json_t *j;

	while (api_status_more(s, 1, f)) /* one by one gives the same as all at once */
		;
	fclose(f);
	api_status_end(s);
	j = json_loadb(out, n, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		FAIL("%s in %s", why.text, out);
	free(out);
	return j;
}

static void status(void)
{
	struct api_status s = {.snapshot = &snapshot, .histograms = true};
	json_t *j = status_of(&s), *t, *lat, *buckets;
	json_int_t sum = 0;

	CHECK(j);
	CHECK_INT(json_integer_value(json_object_get(j, "policy_version")), 7);
	t = json_array_get(json_object_get(j, "tenants"), 1);
	CHECK_STR(json_string_value(json_object_get(t, "path")), "prod/d\"b\\\n");
	CHECK_INT(json_integer_value(json_object_get(t, "served")), 10);
	CHECK_STR(json_string_value(json_object_get(t, "waits_for")), "window");
	CHECK_NEAR(json_number_value(json_object_get(json_object_get(t, "max"), "iops")), 5000, 0);
	CHECK(!json_object_get(json_object_get(t, "max"), "bytes"));
	lat = json_object_get(t, "latency");
	CHECK_INT(json_integer_value(json_object_get(lat, "count")), 10000);
	buckets = json_object_get(lat, "buckets");
	for (size_t i = 1; i < json_array_size(buckets); i += 2)
		sum += json_integer_value(json_array_get(buckets, i));
	CHECK_INT(sum, 10000);
	t = json_array_get(json_object_get(j, "tenants"), 2);
	CHECK(json_is_null(json_object_get(t, "waits_for")));
	CHECK(json_is_null(json_object_get(t, "latency")));
	t = json_array_get(json_object_get(j, "resources"), 0);
	CHECK_STR(json_string_value(json_object_get(t, "controller")), "adaptbf");
	CHECK(json_is_null(json_object_get(t, "parda")));
	t = json_object_get(t, "adaptbf");
	CHECK_INT(json_integer_value(json_object_get(t, "period_tokens")), 125);
	t = json_array_get(json_object_get(t, "jobs"), 0);
	CHECK_INT(json_integer_value(json_object_get(t, "record")), -12);
	CHECK_INT(json_integer_value(json_object_get(t, "borrowed")), 40);
	json_decref(j);
}

/* Return the largest size of one call; *ret_text is the whole text, which the caller frees. */
static size_t in_pieces(bool (*more)(void *cursor, FILE *to), void *cursor, char **ret_text)
{
	size_t n, at = 0, most = 0;
	FILE *f = open_memstream(ret_text, &n);
	bool again;

	do {
		again = more(cursor, f);
		fflush(f);
		most = n - at > most ? n - at : most;
		at = n;
	} while (again);
	fclose(f);
	return most;
}

static bool status_piece(void *cursor, FILE *to)
{
	return api_status_more(cursor, 64, to);
}

static bool metrics_piece(void *cursor, FILE *to)
{
	return metrics_more(cursor, 64, to);
}

static size_t count_text(const char *in, const char *what)
{
	size_t n = 0;

	for (; (in = strstr(in, what)); in++)
		n++;
	return n;
}

/* Lists of controllers are written some at a time, as tenants are: no piece grows with their
 * length. */
static void many_jobs_and_leases(void)
{
	enum { MANY = 2000 };
	struct snapshot s = snapshot;
	struct pshift_facts_self p = {.leases_all = MANY + 7};
	struct adaptbf_facts_job *jobs_all = calloc(MANY, sizeof(*jobs_all));
	struct pshift_facts_lease *leases = calloc(MANY, sizeof(*leases));
	struct snapshot_resource two[2] = {resources[0], resources[0]};
	struct api_status status = {.snapshot = &s};
	struct metrics_cursor cursor = {.snapshot = &s};
	json_t *j, *r, *list;
	char *out;

	for (size_t i = 0; i < MANY; i++) {
		jobs_all[i].row.key[0] = "job";
		jobs_all[i].account.tokens = (int64_t)i;
		leases[i].row.key[0] = "lease";
		leases[i].tokens.used = (int64_t)i;
		leases[i].tokens.limit = LEASE_NO_LIMIT;
	}
	two[0].facts.tables[0] = (struct facts_rows){jobs_all, MANY};
	two[1].facts = (struct facts){&pshift_facts, &p, {{leases, MANY}}};
	s.resources = two;
	s.n_resources = 2;
	CHECK(in_pieces(status_piece, &status, &out) < 65536);
	api_status_end(&status);
	j = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	CHECK(j);
	r = json_array_get(json_object_get(j, "resources"), 0);
	list = json_object_get(json_object_get(r, "adaptbf"), "jobs");
	CHECK_INT(json_array_size(list), MANY);
	r = json_array_get(list, MANY - 1);
	CHECK_INT(json_integer_value(json_object_get(r, "tokens")), MANY - 1);
	r = json_array_get(json_object_get(j, "resources"), 1);
	CHECK(json_is_null(json_object_get(r, "adaptbf")));
	r = json_object_get(r, "pshift");
	CHECK_INT(json_integer_value(json_object_get(r, "leases_all")), MANY + 7);
	list = json_object_get(r, "leases");
	CHECK_INT(json_array_size(list), MANY);
	r = json_array_get(list, MANY - 1);
	CHECK_INT(json_integer_value(json_object_get(r, "used")), MANY - 1);
	CHECK(json_is_null(json_object_get(r, "limit")));
	json_decref(j);
	free(out);
	CHECK(in_pieces(metrics_piece, &cursor, &out) < 65536);
	CHECK_INT(count_text(out, "\nweir_adaptbf_tokens{"), MANY);
	CHECK_INT(count_text(out, "\nweir_adaptbf_regained_tokens_total{"), MANY);
	CHECK_INT(count_text(out, "\nweir_pshift_limit_tokens{"), MANY);
	CHECK_INT(count_text(out, "tenant=\"lease\"} +Inf\n"), MANY);
	CHECK_INT(count_text(out, "# TYPE weir_adaptbf_record "), 1);
	CHECK_INT(count_text(out, "# TYPE weir_pshift_used_tokens "), 1);
	free(out);
	free(jobs_all);
	free(leases);
}

/* An idle tenant is written as text directly: it must equal one that is built as JSON. */
static void idle(void)
{
	struct weir_err err;
	struct weir_policy *p;
	struct gateway_version *v;
	struct snapshot_tenant room, *none[2] = {NULL}, *made[2];
	struct snapshot s = snapshot;
	struct api_status a = {.snapshot = &s}, b = a;
	static const char from[] =
		"tenants: [{name: 'a\"b\\c', weight: 2.5, max: 5k iops, min: 100 iops}, {name: b}]";
	json_t *one, *two;

	CHECK_INT(weir_policy_parse(from, strlen(from), "p", &p, &err), 0);
	CHECK_INT(gateway_version_new(p, from, "p", &v), 0);
	s.of = v;
	s.n_slos = 0;
	s.n_tenants = 2;
	s.tenants = none;
	one = status_of(&a);
	for (size_t i = 0; i < 2; i++) {
		made[i] = malloc(sizeof(room));
		*made[i] = *snapshot_tenant(&s, i, &room);
	}
	s.tenants = made;
	two = status_of(&b);
	CHECK_INT(json_integer_value(json_object_get(one, "tenants_active")), 0);
	CHECK_INT(json_integer_value(json_object_get(two, "tenants_active")), 2);
	CHECK(json_equal(json_object_get(one, "tenants"), json_object_get(two, "tenants")));
	json_decref(one);
	json_decref(two);
	free(made[0]);
	free(made[1]);
	gateway_version_drop(v);
}

/* Only some tenants, and where the next page begins. */
static void selected(void)
{
	static const uint32_t some[] = {0, 2};
	struct api_status s = {
		.snapshot = &snapshot, .select = some, .n_select = 2, .next = "idle"};
	struct metrics_cursor c = {.snapshot = &snapshot, .select = some, .n_select = 2};
	json_t *j = status_of(&s), *list = json_object_get(j, "tenants");
	FILE *f;

	CHECK_INT(json_array_size(list), 2);
	CHECK_STR(json_string_value(json_object_get(json_array_get(list, 1), "path")), "idle");
	CHECK_STR(json_string_value(json_object_get(j, "next")), "idle");
	CHECK_INT(json_integer_value(json_object_get(j, "tenants_all")), 3);
	json_decref(j);
	free(text);
	f = open_memstream(&text, &len);
	while (metrics_more(&c, 1, f))
		;
	fclose(f);
	format();
	CHECK_NEAR(value("weir_tenant_share", "tenant=\"idle\""), 0.2, 1e-9);
	CHECK(absent("weir_tenant_share", DB));
}

static void clients(void)
{
	struct snapshot_client c = {.export_ = "db\xff", .name = "unix:1", .since = 11500000000};
	struct snapshot s = {.now = 12500000000, .clients = &c, .n_clients = 1};
	json_t *j = api_clients(&s, NULL), *first;

	CHECK(j);
	first = json_array_get(json_object_get(j, "clients"), 0);
	CHECK_STR(json_string_value(json_object_get(first, "export")), "db?");
	CHECK_NEAR(json_number_value(json_object_get(first, "connected_s")), 1, 1e-9);
	CHECK(json_is_null(json_object_get(first, "tls")));
	json_decref(j);
}

int main(void)
{
	make();
	RUN(format);
	RUN(values);
	RUN(histogram);
	RUN(promtool);
	RUN(status);
	RUN(many_jobs_and_leases);
	RUN(idle);
	RUN(selected);
	RUN(clients);
	free(text);
	free(tenants[1].total);
	return 0;
}
