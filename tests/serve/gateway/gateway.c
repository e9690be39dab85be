/* SPDX-License-Identifier: BSD-3-Clause */
/* A gateway with back ends in memory, from inside: exports, limits of memory and threads,
 * snapshots, listening, the end. tests/e2e has clients. */
#include "serve/gateway/gateway.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/look.h"
#include "serve/loop/log.h"
#include "policy-parse.h"
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-gateway-XXXXXX", address[64];
static const char *const addresses[] = {address};

#define TWO                                                                                        \
	"resources:\n"                                                                             \
	"  - {name: one, back: \"memory:16M\"}\n"                                                  \
	"  - {name: two, back: \"memory:8M\", capacity: 1000 iops}\n"
#define TENANTS                                                                                    \
	"tenants:\n"                                                                               \
	"  - {name: a, weight: 3, match: {export: \"a*\"}}\n"                                      \
	"  - {name: b, max: 100 iops, match: {client: 10.0.0.0/8}}\n"

static int try_make(const char *text, const struct gateway_options *more, struct gateway **ret,
	struct weir_err *err)
{
	struct gateway_options o = more ? *more : (struct gateway_options){0};

	o.memory = 64 << 20;
	o.listen = addresses;
	o.n_listen = 1;
	return gateway_new(parse(text), text, "test", &o, ret, err);
}

static struct gateway *make(const char *text, const struct gateway_options *more)
{
	struct gateway *g;
	struct weir_err err;

	if (try_make(text, more, &g, &err) < 0)
		FAIL("%s", err.text);
	return g;
}

static void refused(const char *text, int code, const char *why)
{
	struct gateway *g;
	struct weir_err err = {"nothing"};

	CHECK_INT(try_make(text, NULL, &g, &err), code);
	if (!strstr(err.text, why))
		FAIL("\"%s\" does not say \"%s\"", err.text, why);
	CHECK(access(address + 5, F_OK) != 0);
}

/* ---- exports */

static int find(struct gateway *g, const char *name, const char *client, struct front_place *ret)
{
	struct weir_who who = {.export_ = name, .client = client};

	return gateway_find(g, &who, ret);
}

static void exports(void)
{
	struct gateway *g = make(TWO
		"exports:\n"
		"  - {name: a1, resource: one, offset: 4 MiB, size: 2 MiB}\n"
		"  - {name: a2, resource: two, offset: 1 MiB, read_only: true, description: hm}\n"
		"  - {name: other, resource: two, size: 1 MiB}\n" TENANTS,
		NULL);
	struct front_place p;

	CHECK_STR(gateway_export(g, 0), "a1");
	CHECK_STR(gateway_export(g, 2), "other");
	CHECK(!gateway_export(g, 3));
	CHECK_INT(find(g, "a1", NULL, &p), 0);
	CHECK_INT(p.offset, 4 << 20);
	CHECK_INT(p.size, 2 << 20);
	CHECK_INT(p.tenant, 0);
	CHECK(!p.read_only && !p.description);
	CHECK_STR(resource_name(p.resource), "one");
	CHECK_INT(find(g, "a2", NULL, &p), 0);
	CHECK_INT(p.size, 7 << 20);
	CHECK(p.read_only);
	CHECK_STR(p.description, "hm");
	CHECK_STR(resource_name(p.resource), "two");
	CHECK_INT(find(g, "other", NULL, &p), -EACCES);
	CHECK_INT(find(g, "other", "10.1.2.3", &p), 0);
	CHECK_INT(p.tenant, 1);
	CHECK_INT(find(g, "nothing", "10.1.2.3", &p), -ENOENT);
	CHECK_INT(find(g, "", "10.1.2.3", &p), -ENOENT);
	CHECK_INT(find(g, NULL, "10.1.2.3", &p), -ENOENT);
	gateway_free(g);
}

/* Without exports: the resources under their names, whole. */
static void resources_are_exports(void)
{
	struct gateway_options o = {.read_only = true};
	struct gateway *g = make(TWO "default: x\ntenants: [{name: x}]\n", &o);
	struct front_place p;

	CHECK_STR(gateway_export(g, 0), "one");
	CHECK_STR(gateway_export(g, 1), "two");
	CHECK(!gateway_export(g, 2));
	CHECK_INT(find(g, "two", NULL, &p), 0);
	CHECK_INT(p.offset, 0);
	CHECK_INT(p.size, 8 << 20);
	CHECK(p.read_only);
	gateway_free(g);
}

static void any_name(void)
{
	struct gateway_options o = {.any_name = true};
	struct gateway *g = make("resources: [{name: disk, back: \"memory:1M\"}]\n"
				 "tenants: [{name: all, match: {export: \"*\"}}]\n",
		&o);
	struct front_place p;

	CHECK_STR(gateway_export(g, 0), "");
	CHECK(!gateway_export(g, 1));
	CHECK_INT(find(g, "", NULL, &p), 0);
	CHECK_INT(find(g, "whatever", NULL, &p), 0);
	CHECK_INT(p.size, 1 << 20);
	gateway_free(g);
}

static void wrong(void)
{
	refused("tenants: [{name: a}]\n", -EINVAL, "nothing to serve");
	refused("resources: [{name: a}]\n", -EINVAL, "back end");
	refused("resources: [{name: a, back: \"file:/nowhere/x\"}]\n", -ENOENT, "/nowhere/x");
	refused(TWO "exports: [{name: e, resource: one, offset: 15 MiB, size: 2 MiB}]\n", -EINVAL,
		"export 'e' ends beyond its resource 'one', which has 16 MiB");
	refused(TWO "exports: [{name: e, resource: two, offset: 9 MiB}]\n", -EINVAL, "beyond");
	refused("tls: {cert: /nowhere/cert, key: /nowhere/key}\n" TWO, -ENOENT, "/nowhere/");
}

static void fits(void)
{
	static const struct {
		const char *text, *why;
		size_t stay; /* of the resources */
	} cases[] = {
		{TWO, NULL, 2},
		{TWO "exports: [{name: e, resource: two, size: 8 MiB}]\n", NULL, 2},
		{TWO "exports: [{name: e, resource: two, size: 9 MiB}]\n", "beyond", 2},
		{"resources: [{name: one, back: \"memory:16M\"}]\n", NULL, 1},
		{TWO "  - {name: three, back: \"memory:1M\"}\n", NULL, 2},
		{TWO "  - {name: three, back: \"file:/nowhere/x\"}\n", "/nowhere/x", 0},
		{"tenants: [{name: a, match: {export: x}}]\n", "no resources", 0},
		{"resources: [{name: two, back: \"memory:8M\"}, {name: one, back: "
		 "\"memory:1M\"}]\n",
			NULL, 1},
		{"resources: [{name: two, back: \"memory:8M\"}, {name: one, back: "
		 "\"memory:16M\"}]\n",
			NULL, 2},
	};
	struct gateway *g = make(TWO, NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_policy *p = parse(cases[i].text);
		struct weir_err err = {""};
		struct gateway_resource **list = NULL;
		int rc = gateway_resources_open(g, p, &list, &err);
		size_t stay = 0;

		if (rc == 0)
			rc = gateway_fits(g, p, list, &err);

		CHECK_INT(rc, cases[i].why ? -EINVAL : 0);
		if (cases[i].why && !strstr(err.text, cases[i].why))
			FAIL("\"%s\" does not say \"%s\"", err.text, cases[i].why);
		for (size_t k = 0; list && k < p->n_resources; k++)
			stay += list[k] == gateway_resource(g, p->resources[k].name);
		CHECK_INT(stay, cases[i].stay);
		gateway_resources_drop(g, list, p->n_resources, NULL);
		weir_policy_free(p);
	}
	CHECK_INT(g->n_resources, 2);
	CHECK(!g->resources_leaving);
	gateway_free(g);
}

/* ---- threads and snapshots */

static void spread(void)
{
	struct gateway_options o = {.threads = 8};
	struct gateway *g = make(TWO TENANTS, &o);
	struct snapshot_tenant room;
	const struct snapshot_tenant *t;
	struct snapshot *s;

	CHECK_INT(g->n_workers, 2); /* one per resource */
	gateway_count(g, 3, 2, 1);
	s = look_at(g);
	CHECK_INT(s->version, 1);
	CHECK(s->enforce);
	CHECK_INT(s->n_tenants, 2);
	CHECK(!s->tenants[0] && !s->tenants[1]); /* idle */
	t = snapshot_tenant(s, 0, &room);
	CHECK_STR(t->path, "a");
	CHECK_NEAR(t->share, 0.75, 1e-9);
	CHECK(isinf(t->max[0]));
	t = snapshot_tenant(s, 1, &room);
	CHECK(t->leaf);
	CHECK_NEAR(t->max[0], 100, 1e-9);
	CHECK_INT(s->n_resources, 2);
	CHECK_STR(s->resources[1].name, "two");
	CHECK_STR(s->resources[1].back, "memory:8M");
	CHECK_INT(s->resources[1].size, 8 << 20);
	CHECK_INT(s->resources[0].thread, 0);
	CHECK_INT(s->resources[1].thread, 1);
	CHECK(s->resources[0].up && s->resources[1].up);
	CHECK(s->resources[1].capacity_stated);
	CHECK_INT(s->connections, 3);
	CHECK_INT(s->refused, 2);
	CHECK_INT(s->broken, 1);
	CHECK_INT(s->memory, 0);
	CHECK_INT(s->memory_budget, 64 << 20);
	CHECK(s->now >= s->started);
	CHECK_INT(s->n_clients, 0);
	for (int i = 0; i < 1000; i++)
		CHECK(snapshot_client(s));
	CHECK(!snapshot_client(s));
	snapshot_free(s);
	snapshot_free(NULL);
	gateway_free(g);
}

static int index_of(void *arg, struct gateway_resource *r)
{
	struct gateway *g = arg;

	CHECK(pthread_equal(pthread_self(), r->worker->thread));
	return r == g->resources[1] ? -EXDEV : 0;
}

static void each(void)
{
	struct gateway *g = make(TWO, NULL);
	size_t index = 99;

	CHECK_INT(gateway_each(g, index_of, g, &index), -EXDEV);
	CHECK_INT(index, 1);
	CHECK(gateway_resource(g, "two") == g->resources[1]);
	CHECK(!gateway_resource(g, "three"));
	gateway_free(g);
}

/* ---- listening and the end */

static void taken(void)
{
	struct gateway *g = make(TWO, NULL), *second;
	struct stat st;
	struct weir_err err;

	CHECK_INT(try_make(TWO, NULL, &second, &err), -EADDRINUSE);
	CHECK(strstr(err.text, address + 5));
	CHECK_INT(stat(address + 5, &st), 0); /* the first one's socket still exists */
	gateway_free(g);
	CHECK(stat(address + 5, &st) != 0);
}

static void stop_due(struct loop_timer *t, weir_time now)
{
	raise(SIGTERM);
}

static void run_and_stop(void)
{
	struct gateway *g = make(TWO TENANTS, NULL);
	struct loop_timer t = {.due = stop_due};

	CHECK_INT(loop_set(gateway_loop(g), &t, loop_clock()), 0);
	CHECK_INT(gateway_run(g), 0);
	CHECK(g->stopping && !g->given_up && !g->stuck);
	CHECK_INT(g->n_listeners, 0);
	gateway_free(g);
}

static void record_errors(void)
{
	struct gateway *g = make(TWO TENANTS, NULL);
	uint64_t recorded = 7, dropped = 7;
	struct weir_err err;
	char path[80];

	snprintf(path, sizeof(path), "%s/trace", folder);
	CHECK_INT(gateway_record_stop(g, &recorded, &dropped), -ENOENT);
	CHECK_INT(recorded, 7);
	CHECK_INT(gateway_record(g, "/nowhere/trace", 0, &err), -ENOENT);
	CHECK(strstr(err.text, "/nowhere/trace"));
	CHECK_INT(gateway_record(g, path, 0, &err), 0);
	CHECK_INT(gateway_record(g, path, 0, &err), -EBUSY);
	CHECK_INT(gateway_record_stop(g, &recorded, &dropped), 0);
	CHECK_INT(recorded, 0);
	CHECK_INT(dropped, 0);
	CHECK_INT(gateway_record(g, path, 0, &err), -EEXIST); /* never overwrites a file */
	CHECK_INT(unlink(path), 0);
	CHECK_INT(gateway_record(g, path, 0, &err), 0);
	gateway_free(g); /* ends it */
	CHECK_INT(unlink(path), 0);
}

int main(void)
{
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder));
	snprintf(address, sizeof(address), "unix:%s/nbd.sock", folder);
	RUN(exports);
	RUN(resources_are_exports);
	RUN(any_name);
	RUN(wrong);
	RUN(fits);
	RUN(spread);
	RUN(each);
	RUN(taken);
	RUN(run_and_stop);
	RUN(record_errors);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
