/* SPDX-License-Identifier: BSD-3-Clause */
/* cgroup: AdapTBF drives the limits of control groups, in a folder in which the test plays the kernel: every 10 ms of
 * virtual time each job does as much as its io.max and the device let it; io.stat has counted it when the drive looks. */
#include "serve/drive/cgroup.h"
#include "policy-parse.h"
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOBS 3
#define TICK (10 * WEIR_MS)
#define RATE 1000.0 /* requests a second that the device does */

static char root[] = "/tmp/weir-cgroup-XXXXXX";
static const char *const paths[JOBS] = {"batch", "prod/db", "prod/web"};

struct job {
	double wants;      /* requests a second; INFINITY: it is busy */
	double reads_part; /* of its requests */
	double reads, writes;
	double allowed; /* requests a second, by its io.max */
} jobs[JOBS];

/* ---- the kernel */

static const char *file_of(int job, const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s/%s", root, paths[job], name);
	return path;
}

static void write_file(int job, const char *name, const char *text)
{
	FILE *f = fopen(file_of(job, name), "w");

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_stat(int job)
{
	char text[300];
	uint64_t reads = (uint64_t)jobs[job].reads, writes = (uint64_t)jobs[job].writes;

	snprintf(text, sizeof(text),
		"18:0 rbytes=9 wbytes=9 rios=999999 wios=999999 dbytes=0 dios=0\n"
		"8:0 rbytes=%llu wbytes=%llu rios=%llu wios=%llu dbytes=0 dios=0\n",
		(unsigned long long)reads * 4096, (unsigned long long)writes * 4096,
		(unsigned long long)reads, (unsigned long long)writes);
	write_file(job, "io.stat", text);
}

/* The limit of a key; INFINITY: max, or none was ever written. */
static double limit_of(int job, const char *key)
{
	char text[300] = "", *at;
	FILE *f = fopen(file_of(job, "io.max"), "r");

	CHECK(f);
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	if (!text[0])
		return INFINITY;
	CHECK(strncmp(text, "8:0 ", 4) == 0 && text[strlen(text) - 1] == '\n');
	at = strstr(text, key);
	CHECK(at);
	at += strlen(key);
	return strncmp(at, "max", 3) == 0 ? INFINITY : atof(at);
}

/* Requests a second that a job may do: reads and writes alternate by their parts, and each kind has its limit. */
static double allowed(int job)
{
	const struct job *j = &jobs[job];
	double reads = j->reads_part > 0 ? limit_of(job, "riops=") / j->reads_part : INFINITY;
	double writes =
		j->reads_part < 1 ? limit_of(job, "wiops=") / (1 - j->reads_part) : INFINITY;

	return fmin(reads, writes);
}

/* The busy jobs share the device equally, up to their limits. */
static void tick(void)
{
	double left = RATE * TICK / WEIR_SEC, limit[JOBS], done[JOBS] = {0};

	for (int i = 0; i < JOBS; i++)
		limit[i] = fmin(jobs[i].wants, jobs[i].allowed) * TICK / WEIR_SEC;
	for (int round = 0; round < JOBS; round++) {
		int n = 0;

		for (int i = 0; i < JOBS; i++)
			n += done[i] < limit[i];
		for (int i = 0; i < JOBS && n; i++) {
			double some = fmin(left / n, limit[i] - done[i]);

			if (some > 0)
				done[i] += some;
		}
		left = RATE * TICK / WEIR_SEC;
		for (int i = 0; i < JOBS; i++)
			left -= done[i];
	}
	for (int i = 0; i < JOBS; i++) {
		jobs[i].reads += done[i] * jobs[i].reads_part;
		jobs[i].writes += done[i] * (1 - jobs[i].reads_part);
	}
}

/* ---- the world */

static struct drive *d;
static struct weir_policy *policy;
static struct drive_cgroup_mix mix[JOBS + 1];
static struct drive_cgroup driver = {root, "8:0", mix};
static weir_time now, next;

/* Run for some seconds; each job's requests a second go to ret. */
static void run_world(double seconds, double ret[JOBS])
{
	weir_time until = now + (weir_time)(seconds * WEIR_SEC);
	struct weir_err err;

	for (int i = 0; i < JOBS; i++)
		ret[i] = jobs[i].reads + jobs[i].writes;
	for (; now < until; now += TICK) {
		tick();
		if (now < next)
			continue;
		for (int i = 0; i < JOBS; i++)
			write_stat(i);
		if (drive_step(d, now, &next, &err) != 0)
			FAIL("%s", err.text);
		for (int i = 0; i < JOBS; i++)
			jobs[i].allowed = allowed(i);
	}
	for (int i = 0; i < JOBS; i++)
		ret[i] = (jobs[i].reads + jobs[i].writes - ret[i]) / seconds;
	printf("%.0f %.0f %.0f\n", ret[0], ret[1], ret[2]);
}

static void make_groups(void)
{
	char path[200];

	CHECK(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/prod", root);
	CHECK_INT(mkdir(path, 0700), 0);
	for (int i = 0; i < JOBS; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, paths[i]);
		CHECK_INT(mkdir(path, 0700), 0);
		write_file(i, "io.max", "");
		write_stat(i);
	}
}

static void start_drive(const char *controller)
{
	char text[600];
	struct weir_err err;

	snprintf(text, sizeof(text),
		"resources: [{name: sda, capacity: 1k iops, %s}]\n"
		"tenants:\n"
		"  - {name: batch, weight: 1}\n"
		"  - {name: prod, weight: 3, children: [{name: db, weight: 2}, {name: web}]}\n",
		controller);
	policy = parse(text);
	if (drive_new(policy, weir_policy_resource(policy, NULL), &drive_cgroup_ops, &driver, &d,
		    &err) < 0)
		FAIL("%s", err.text);
}

static void end_drive(void)
{
	drive_free(d);
	weir_policy_free(policy);
}

/* ---- the tests */

/* All busy: 1:2:1 by the tree's weights. One wants less: its tokens are lent. It wants all again: it has its share and
 * more, for it is repaid. It is idle: it has no limit. The mix of reads and writes differs, and changes. */
static void test_adaptbf(void)
{
	double rate[JOBS];

	start_drive("controller: adaptbf, adaptbf: {tokens: hold}");
	for (int i = 0; i < JOBS; i++)
		jobs[i] =
			(struct job){.wants = INFINITY, .reads_part = i * 0.5, .allowed = INFINITY};
	run_world(2, rate);
	run_world(3, rate);
	CHECK(fabs(rate[0] - 250) <= 13 && fabs(rate[1] - 500) <= 25 && fabs(rate[2] - 250) <= 13);
	CHECK(limit_of(0, "riops=") < 20 && limit_of(0, "wiops=") > 200);
	CHECK(isinf(limit_of(0, "rbps=")) && isinf(limit_of(0, "wbps=")));
	jobs[1].wants = 50;
	run_world(1, rate);
	run_world(4, rate);
	/* Not all is lent: a job that uses all that it kept asks for its share again, since what waits is not known. */
	CHECK(fabs(rate[1] - 50) <= 2.5 && fmin(rate[0], rate[2]) >= 300 &&
		fabs(rate[0] - rate[2]) <= 25);
	jobs[1].wants = INFINITY;
	jobs[0].reads_part = 1;
	run_world(2, rate);
	CHECK(rate[1] >= 550 && rate[0] + rate[1] + rate[2] >= 900);
	CHECK(limit_of(0, "riops=") > 50 && limit_of(0, "wiops=") < 20);
	jobs[1].wants = 0;
	run_world(1, rate);
	CHECK(isinf(limit_of(1, "riops=")));
	end_drive();
}

/* A group that is not there is no error, and gets its rule when it comes. A file that cannot be written is one. */
static void test_groups(void)
{
	char gone[sizeof(root) + 30], away[sizeof(root) + 30];
	struct weir_err err;

	start_drive("controller: tbf, tbf: {default: 77 iops}");
	snprintf(gone, sizeof(gone), "%s/batch", root);
	snprintf(away, sizeof(away), "%s/away", root);
	CHECK_INT(rename(gone, away), 0);
	CHECK_INT(drive_step(d, now, &next, &err), 0);
	CHECK(limit_of(1, "riops=") + limit_of(1, "wiops=") <= 77 + 2);
	CHECK_INT(rename(away, gone), 0);
	CHECK_INT(unlink(file_of(0, "io.max")), 0);
	CHECK_INT(mkdir(file_of(0, "io.max"), 0700), 0);
	CHECK_INT(drive_step(d, now, &next, &err), -EISDIR);
	CHECK(strstr(err.text, "batch/io.max: Is a directory"));
	CHECK_INT(rmdir(file_of(0, "io.max")), 0);
	write_file(0, "io.max", "");
	CHECK_INT(drive_step(d, now, &next, &err), 0);
	CHECK(limit_of(0, "riops=") == 77);
	end_drive();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

int main(void)
{
	make_groups();
	RUN(test_adaptbf);
	RUN(test_groups);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}
