/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-site: policies and command lines of the servers that are measured. */
#include "bench/bench-site.h"
#include "cli/common/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void site_path(const struct site *s, const char *name, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%s", s->dir, name);
}

void site_socket(const struct site *s, enum site_server which, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%d.sock", s->dir, (int)which);
}

/* PARDA with its default period, for a back end that is never as slow as its threshold: with time
 * the window would grow to wmax; a benchmark has no time for that. */
#define PARDA "auto, controller: parda, threshold: 1s, parda: {wmin: " WIDE ", wmax: " WIDE "}"
#define WIDE  "1024"

/* Write the policy of a gated server: `back` behind one gate, an export per tenant. `depth`: as
 * many requests as the back end serves at once, so that the gate keeps it busy and nothing queues
 * behind the gate; other keys of the resource may follow. */
static int write_policy(const struct site *s, const char *name, const char *back, const char *depth,
	unsigned tenants, struct weir_err *err)
{
	char path[128];
	FILE *f;
	int r;

	site_path(s, name, path, sizeof(path));
	r = files_create(path, &f, err);
	if (r < 0)
		return r;
	fprintf(f, "resources: [{name: r, back: \"%s\", depth: %s}]\nexports:\n", back, depth);
	for (unsigned i = 0; i < tenants; i++)
		fprintf(f, "  - {name: e%u, resource: r, offset: %llu B, size: %llu B}\n", i,
			i * SITE_REGION, SITE_REGION);
	fputs("tenants:\n", f);
	for (unsigned i = 0; i < tenants; i++)
		fprintf(f,
			"  - {name: t%u, weight: %u, min: 1k iops, max: 10M iops, match: {export: "
			"e%u}}\n",
			i, tenants > 2 ? 1 + i % 4 : 1, i);
	return files_close(f, path, 0, err);
}

static int write_policies(const struct site *s, struct weir_err *err)
{
	char back[200], path[128];
	int r = write_policy(s, "memory.yaml", "memory:4G", "auto", SITE_TENANTS, err);

	if (r == 0)
		/* Eight at once, 100 µs each. */
		r = write_policy(s, "model.yaml",
			"model:server,latency=100us,servers=8,service=fixed+memory:1G", "8", 2,
			err);
	site_path(s, "file.img", path, sizeof(path));
	snprintf(back, sizeof(back), "file:%s", path);
	if (r == 0)
		r = write_policy(s, "file.yaml", back, "auto", SITE_TENANTS, err);
	site_socket(s, SITE_UPSTREAM, path, sizeof(path));
	snprintf(back, sizeof(back), "nbd+unix:///r?socket=%s", path);
	if (r == 0)
		r = write_policy(s, "proxy.yaml", back, "auto", SITE_TENANTS, err);
	if (r == 0)
		r = write_policy(s, "wide.yaml", "memory:4G", WIDE, SITE_TENANTS, err);
	if (r == 0)
		r = write_policy(s, "parda.yaml", "memory:4G", PARDA, SITE_TENANTS, err);
	return r;
}

struct command {
	const char *argv[16];
	char socket[128], listen[140], first[160], second[160];
};

static void set_argv(struct command *c, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		c->argv[i] = argv[i];
}

/* Make the command line of a server. Servers of a file get one that is cached. */
static void make_command(const struct site *s, enum site_server which, struct command *c)
{
	char upstream[128];

	memset(c, 0, sizeof(*c));
	site_socket(s, which, c->socket, sizeof(c->socket));
	snprintf(c->listen, sizeof(c->listen), "unix:%s", c->socket);
	site_socket(s, SITE_UPSTREAM, upstream, sizeof(upstream));
	const char *policy = which == SITE_PROXY         ? "proxy.yaml"
			     : which == SITE_MODEL       ? "model.yaml"
			     : which == SITE_WIDE        ? "wide.yaml"
			     : which == SITE_PARDA       ? "parda.yaml"
			     : which == SITE_FILE        ? "file.yaml"
			     : which == SITE_QEMU        ? "qemu.img"
			     : which == SITE_NBDKIT_FILE ? "nbdkit.img"
							 : "memory.yaml";

	site_path(s, policy, c->first, sizeof(c->first));
	snprintf(c->second, sizeof(c->second), "socket=%s", upstream);
#define ARGV(...) set_argv(c, (const char *const[]){__VA_ARGS__, NULL})
	switch (which) {
	case SITE_UPSTREAM: /* one export, by any name */
		ARGV("weir", "serve", "--bare", "--api", "none", "--log-level", "error",
			"--threads", "1", "--listen", c->listen, "memory:4G");
		break;
	case SITE_BARE:
		ARGV("weir", "serve", "--bare", "--api", "none", "--log-level", "error",
			"--threads", "1", "--listen", c->listen, c->first);
		break;
	case SITE_GATED:
	case SITE_PROXY:
	case SITE_MODEL:
	case SITE_WIDE:
	case SITE_PARDA:
	case SITE_FILE:
		ARGV("weir", "serve", "--api", "none", "--log-level", "error", "--threads", "1",
			"--listen", c->listen, c->first);
		break;
	case SITE_NBDKIT:
		ARGV("nbdkit", "-f", "-U", c->socket, "memory", "4G");
		break;
	case SITE_NBDKIT_RATE: /* a rate that is never reached: the cost of the filter itself */
		ARGV("nbdkit", "-f", "-U", c->socket, "--filter=rate", "memory", "4G",
			"rate=1000G");
		break;
	case SITE_NBDKIT_FILE:
		ARGV("nbdkit", "-f", "-U", c->socket, "file", c->first);
		break;
	case SITE_NBDKIT_PROXY:
		ARGV("nbdkit", "-f", "-U", c->socket, "nbd", c->second, "export=e0");
		break;
	default:
		ARGV("qemu-nbd", "-k", c->socket, "-f", "raw", "-t", "-e", "16", "--aio=io_uring",
			c->first);
	}
#undef ARGV
}

int site_start(
	struct site *s, enum site_server which, bool pin, struct peer *ret, struct weir_err *err)
{
	struct command c;
	char log[128];

	make_command(s, which, &c);
	site_path(s, "log", log, sizeof(log));
	int r = peer_start(ret, c.argv, pin && s->pin ? SITE_CORE : -1, c.socket, log, err);

	s->missing[which] = r == -ENOENT;
	return r;
}

bool site_ours(enum site_server which)
{
	return which != SITE_NBDKIT && which != SITE_NBDKIT_RATE && which != SITE_QEMU &&
	       which != SITE_NBDKIT_PROXY && which != SITE_NBDKIT_FILE;
}

bool site_divided(enum site_server which)
{
	return site_ours(which) && which != SITE_UPSTREAM;
}

static int make_file(const struct site *s, const char *name, struct weir_err *err)
{
	char path[128];

	site_path(s, name, path, sizeof(path));
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 || ftruncate(fd, 4ll << 30) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r < 0 ? weir_err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int site_new(struct site *s, struct weir_err *err)
{
	static const char *const files[] = {"qemu.img", "file.img", "nbdkit.img"};
	int r = 0;

	snprintf(s->dir, sizeof(s->dir), "/tmp/weir-bench-XXXXXX");
	if (!mkdtemp(s->dir))
		return weir_err_set(err, -errno, "%s: %s", s->dir, strerror(errno));
	s->pin = sysconf(_SC_NPROCESSORS_ONLN) >= 2;
	for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(*files); i++)
		r = make_file(s, files[i], err);
	return r < 0 ? r : write_policies(s, err);
}

void site_free(const struct site *s)
{
	static const char *const files[] = {"memory.yaml", "model.yaml", "proxy.yaml", "wide.yaml",
		"parda.yaml", "file.yaml", "qemu.img", "file.img", "nbdkit.img", "log"};
	char path[128];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		site_path(s, files[i], path, sizeof(path));
		unlink(path);
	}
	for (int i = 0; i < SITE_SERVERS; i++) {
		site_socket(s, (enum site_server)i, path, sizeof(path));
		unlink(path);
	}
	rmdir(s->dir);
}
