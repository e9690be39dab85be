/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "serve/drive/cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART_MIN                                                                                   \
	0.05 /* of a limit, for reads and for writes: a tenant that turns is seen in a step */

static int open_file(const struct drive_cgroup *c, const char *tenant, const char *name, int flags,
	struct weir_err *err)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s/%s", c->root, tenant, name) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", tenant);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -EAGAIN;
	return fd < 0 ? weir_err_set(err, -errno, "%s: %s", path, strerror(errno)) : fd;
}

/* ---- io.stat: a line a device, "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0" */

static uint64_t value_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void take_line(const char *line, struct drive_cgroup_mix *mix, struct drive_count *ret)
{
	uint64_t reads = value_of(line, " rios="), writes = value_of(line, " wios=");
	uint64_t all = reads + writes - mix->reads - mix->writes;

	if (reads >= mix->reads && writes >= mix->writes && all)
		mix->part = (double)(reads - mix->reads) / (double)all;
	mix->reads = reads;
	mix->writes = writes;
	ret->arrived = ret->served = reads + writes;
	ret->bytes = value_of(line, " rbytes=") + value_of(line, " wbytes=");
	ret->again = fabs(mix->part - mix->told) > PART_MIN;
}

static int count(void *driver, size_t tenant, const char *path, struct drive_count *ret,
	struct weir_err *err)
{
	struct drive_cgroup *c = driver;
	int fd = open_file(c, path, "io.stat", O_RDONLY, err), r = 0;
	size_t n = strlen(c->device);
	char *line = NULL;
	size_t room = 0;
	FILE *f;

	if (fd < 0 && fd != -EAGAIN)
		return fd;
	*ret = (struct drive_count){0};
	if (fd < 0)
		return 0;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return no_memory(err);
	}
	while (getline(&line, &room, f) > 0)
		if (strncmp(line, c->device, n) == 0 && line[n] == ' ')
			take_line(line, &c->mix[tenant], ret);
	if (ferror(f))
		r = weir_err_set(err, -EIO, "%s/%s/io.stat: cannot be read", c->root, path);
	free(line);
	fclose(f);
	return r;
}

/* ---- io.max: "8:0 rbps=max wbps=max riops=100 wiops=20" */

/* The limit of reads or writes: their own, or their part of the common one, rounded up: a job that uses all of its
 * tokens must be seen to do so. */
static double limit_of(const struct drive_rule *rule, enum weir_unit unit, uint8_t ops, double part)
{
	double all = rule->most[weir_limit_slot(unit, WEIR_OPS_ALL)] * part;

	return ceil(fmin(all, rule->most[weir_limit_slot(unit, ops)]));
}

static int print_limit(char *to, size_t room, const char *key, double rate)
{
	return isinf(rate) ? snprintf(to, room, " %s=max", key)
			   : snprintf(to, room, " %s=%.0f", key, rate);
}

static int limit(void *driver, const struct drive_rule *rule, struct weir_err *err)
{
	const struct drive_cgroup *c = driver;
	struct drive_cgroup_mix *mix = &c->mix[rule->tenant];
	double part = mix->reads || mix->writes ? mix->part : 0.5;
	int fd = open_file(c, rule->path, "io.max", O_WRONLY | O_TRUNC, err), r = 0;
	char text[256];
	int n = snprintf(text, sizeof(text), "%.31s", c->device);

	if (fd < 0)
		return fd;
	for (int write_side = 0; write_side < 2; write_side++) {
		uint8_t ops = write_side ? WEIR_OPS_WRITES : WEIR_OPS_READS;
		double own = fmax(write_side ? 1 - part : part, PART_MIN);

		n += print_limit(text + n, sizeof(text) - (size_t)n, write_side ? "wbps" : "rbps",
			limit_of(rule, WEIR_UNIT_BYTES, ops, own));
		n += print_limit(text + n, sizeof(text) - (size_t)n, write_side ? "wiops" : "riops",
			limit_of(rule, WEIR_UNIT_REQUESTS, ops, own));
	}
	text[n++] = '\n';
	if (write(fd, text, (size_t)n) != n)
		r = weir_err_set(err, errno ? -errno : -EIO, "%s/%s/io.max: %s", c->root,
			rule->path, strerror(errno));
	if (r == 0)
		mix->told = part;
	close(fd);
	return r;
}

const struct drive_ops drive_cgroup_ops = {
	.name = "cgroup", .hides_queue = true, .count = count, .limit = limit};
