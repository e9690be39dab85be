/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-site: policies and command lines of the servers that are measured. */
#include "bench/bench-site.h"
#include "cli/common/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PARDA with its default period, for a back end that is never as slow as its threshold: with time
 * the window would grow to wmax; a benchmark has no time for that. */
#define PARDA "auto, controller: parda, threshold: 1s, parda: {wmin: " WIDE ", wmax: " WIDE "}"
#define WIDE  "1024"

/* %s is the folder. */
#define SERVE(name, ...)                                                                           \
	name,                                                                                      \
	{                                                                                          \
		"weir", "serve", "--api", "none", "--log-level", "error", "--threads", "1",        \
			"--listen", "unix:%s/" name ".sock", __VA_ARGS__                           \
	}
#define GATED(name) SERVE(name, "%s/" name ".yaml")
#define NBDKIT(name, ...)                                                                          \
	name,                                                                                      \
	{                                                                                          \
		"nbdkit", "-f", "-U", "%s/" name ".sock", __VA_ARGS__                              \
	}

static const struct server {
	const char *name; /* of its socket, and of its policy */
	const char *argv[14];
	const char *back, *depth; /* of a policy, which is written for it; NULL: none */
	unsigned tenants;
	bool volumes; /* each tenant has a volume, with a back end of its own; else a part of one */
	const char *buckets; /* of each tenant in a plan; NULL: there is no plan */
} servers[SITE_SERVERS] = {
	[SITE_BARE] = {SERVE("bare", "--bare", "%s/gated.yaml"), .back = NULL},
	[SITE_GATED] = {GATED("gated"), "memory:4G", "auto", SITE_TENANTS, .volumes = false},
	[SITE_PLANNED] = {GATED("planned"), "memory:4G", "128, profile: planned.profile",
		SITE_TENANTS, .buckets = "[100, 0.1], [50, 1], [20, 2], [10, 4]"},
	[SITE_PLANNED_SHORT] = {GATED("short"), "memory:4G", "128, profile: planned.profile",
		SITE_TENANTS, .buckets = "[0.9, 0.02], [0.8, 0.05], [0.7, 0.2], [0.6, 0.9]"},
	[SITE_NBDKIT] = {NBDKIT("nbdkit", "memory", "4G"), .back = NULL},
	/* a rate that is never reached: the cost of the filter itself */
	[SITE_NBDKIT_RATE] = {NBDKIT("rate", "--filter=rate", "memory", "4G", "rate=1000G"),
		.back = NULL},
	[SITE_QEMU] = {"qemu",
		{"qemu-nbd", "-k", "%s/qemu.sock", "-f", "raw", "-t", "-e", "16", "--aio=io_uring",
			"%s/qemu.img"},
		.back = NULL},
	/* one export, by any name */
	[SITE_UPSTREAM] = {SERVE("upstream", "--bare", "memory:4G"), .back = NULL},
	[SITE_PROXY] = {GATED("proxy"), "nbd+unix:///r?socket=%s/upstream.sock", "auto",
		SITE_TENANTS, .volumes = false},
	[SITE_NBDKIT_PROXY] = {NBDKIT("nbdkit-proxy", "nbd", "socket=%s/upstream.sock",
				       "export=e0"),
		.back = NULL},
	/* eight at once, 100 µs each */
	[SITE_MODEL] = {GATED("model"),
		"model:server,latency=100us,servers=8,service=fixed+memory:1G", "8", 2,
		.volumes = false},
	[SITE_WIDE] = {GATED("wide"), "memory:4G", WIDE, SITE_TENANTS, .volumes = false},
	[SITE_PARDA] = {GATED("parda"), "memory:4G", PARDA, SITE_TENANTS, .volumes = false},
	/* files that are cached */
	[SITE_FILE] = {GATED("file"), "file:%s/file.img", "auto", SITE_TENANTS, .volumes = false},
	[SITE_NBDKIT_FILE] = {NBDKIT("nbdkit-file", "file", "%s/nbdkit.img"), .back = NULL},
	[SITE_VOLUMES] = {GATED("volumes"), "memory:256k", "auto", SITE_MOST, .volumes = true},
	[SITE_VOLUME] = {GATED("volume"), "memory:256000k", "auto", 1, .volumes = true},
};

void site_socket(const struct site *s, enum site_server which, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%s.sock", s->dir, servers[which].name);
}

void site_file(const struct site *s, char *ret, size_t len)
{
	snprintf(ret, len, "%s/file.img", s->dir);
}

static void write_exports(const struct server *v, const char *back, FILE *f)
{
	if (v->volumes)
		fprintf(f, "resources:\n  - name: r\n    depth: %s\n    volumes:\n", v->depth);
	else
		fprintf(f, "resources: [{name: r, back: \"%s\", depth: %s}]\nexports:\n", back,
			v->depth);
	for (unsigned i = 0; i < v->tenants; i++)
		if (v->volumes)
			fprintf(f, "    - {name: e%u, back: \"%s\"}\n", i, back);
		else
			fprintf(f, "  - {name: e%u, resource: r, offset: %llu B, size: %llu B}\n",
				i, i * SITE_REGION, SITE_REGION);
}

/* Write the policy of a gated server: its back end behind one gate, an export per tenant. `depth`:
 * as many requests as the back end serves at once, so that the gate keeps it busy and nothing
 * queues behind the gate; other keys of the resource may follow. */
static int write_policy(const struct site *s, const struct server *v, struct weir_err *err)
{
	char path[128], back[160];
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "%s/%s.yaml", s->dir, v->name);
	snprintf(back, sizeof(back), v->back, s->dir);
	r = files_create(path, &f, err);
	if (r < 0)
		return r;
	if (v->buckets)
		fprintf(f, "state: \"%s/%s\"\n", s->dir, v->name);
	write_exports(v, back, f);
	fputs("tenants:\n", f);
	for (unsigned i = 0; i < v->tenants; i++)
		fprintf(f,
			"  - {name: t%u, weight: %u, min: 1k iops, max: 10M iops, match: {export: "
			"e%u}}\n",
			i, v->tenants > 2 ? 1 + i % 4 : 1, i);
	return files_close(f, path, 0, err);
}

static const char profile[] = "profile: 1\ndepth: 128\nsizes: [4 KiB, 1 MiB]\n"
			      "read: {work: [{work: [2us, 200us]}]}\n"
			      "write: {work: [{work: [2us, 200us]}]}\n";
static const char no_digest[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* Write the state of a server with a plan. Every request fits its profile, and is charged to all buckets. */
static int write_plan(const struct site *s, const struct server *v, struct weir_err *err)
{
	char path[128];
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "%s/planned.profile", s->dir);
	r = files_write(path, profile, strlen(profile), err);
	snprintf(path, sizeof(path), "%s/%s", s->dir, v->name);
	if (r == 0 && mkdir(path, 0700) < 0)
		r = weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "%s/%s/plan.json", s->dir, v->name);
	if (r == 0)
		r = files_create(path, &f, err);
	if (r < 0)
		return r;
	fprintf(f,
		"{\"number\": 1, \"applied\": 0, \"plan\": {\"version\": 1, \"policy\": \"%s\", "
		"\"profiles\": {}, \"tenants\": [",
		no_digest);
	for (unsigned i = 0; i < SITE_TENANTS; i++)
		fprintf(f,
			"%s{\"name\": \"t%u\", \"slo\": {\"percentile\": 99, \"latency\": 1}, "
			"\"bound\": 1, \"stages\": [{\"name\": \"r\", \"unit\": \"time\", "
			"\"priority\": %u, \"buckets\": [%s]}]}",
			i ? ", " : "", i, i, v->buckets);
	fputs("]}}\n", f);
	return files_close(f, path, 0, err);
}

int site_start(
	struct site *s, enum site_server which, bool pin, struct peer *ret, struct weir_err *err)
{
	const struct server *v = &servers[which];
	char words[14][160], socket[128], log[128];
	const char *argv[15] = {NULL};
	int r;

	for (size_t i = 0; i < 14 && v->argv[i]; i++) {
		snprintf(words[i], sizeof(words[i]), v->argv[i], s->dir);
		argv[i] = words[i];
	}
	site_socket(s, which, socket, sizeof(socket));
	snprintf(log, sizeof(log), "%s/log", s->dir);
	r = peer_start(ret, argv, pin && s->pin ? SITE_CORE : -1, socket, log, err);
	s->missing[which] = r == -ENOENT;
	return r;
}

bool site_ours(enum site_server which)
{
	return servers[which].argv[0] && strcmp(servers[which].argv[0], "weir") == 0;
}

bool site_divided(enum site_server which)
{
	return site_ours(which) && which != SITE_UPSTREAM && which != SITE_VOLUME;
}

uint64_t site_region(enum site_server which)
{
	return servers[which].volumes ? SITE_SMALL : SITE_REGION;
}

static int make_file(const struct site *s, const char *name, struct weir_err *err)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 || ftruncate(fd, 4ll << 30) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r < 0 ? weir_err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int site_new(struct site *s, struct weir_err *err)
{
	static const char *const files[] = {"qemu.img", "file.img", "nbdkit.img"};
	int r = files_make_scratch("bench", s->dir, err);

	s->pin = sysconf(_SC_NPROCESSORS_ONLN) >= 2;
	for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(*files); i++)
		r = make_file(s, files[i], err);
	for (size_t i = 0; r == 0 && i < SITE_SERVERS; i++)
		if (servers[i].back)
			r = write_policy(s, &servers[i], err);
	for (size_t i = 0; r == 0 && i < SITE_SERVERS; i++)
		if (servers[i].buckets)
			r = write_plan(s, &servers[i], err);
	return r;
}
