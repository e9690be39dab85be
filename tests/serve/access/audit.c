/* SPDX-License-Identifier: BSD-3-Clause */
/* audit: lines of a file that is rotated, and a file that cannot be written. */
#include "test.h"
#include "serve/access/audit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-audit-XXXXXX";
static char path[100], old[100];

static int lines(const char *file, const char *text)
{
	FILE *f = fopen(file, "r");
	char line[1000];
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		json_t *j = json_loads(line, 0, NULL);

		CHECK(j);
		CHECK(json_is_string(json_object_get(j, "time")));
		json_decref(j);
		n += strstr(line, text) != NULL;
	}
	fclose(f);
	return n;
}

static void rotated(void)
{
	struct audit *a;
	struct weir_err err;
	struct stat st;

	CHECK_INT(audit_open(path, &a, &err), 0);
	audit_put(a, json_pack("{s:s}", "who", "anna"));
	audit_put(a, json_pack("{s:s}", "who", "a line\nbreak"));
	CHECK_INT(lines(path, "anna"), 1);
	CHECK_INT(rename(path, old), 0);
	audit_put(a, json_pack("{s:s}", "who", "bert"));
	CHECK_INT(lines(old, "\"who\""), 2);
	CHECK_INT(lines(path, "bert"), 1);
	CHECK_INT(unlink(path), 0);
	audit_put(a, json_pack("{s:s}", "who", "cleo"));
	CHECK_INT(lines(path, "cleo"), 1);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 0007, 0);
	audit_put(a, NULL); /* no memory: logged */
	audit_close(a);
	unlink(path);
	unlink(old);
}

static void unwritable(void)
{
	struct audit *a;
	struct weir_err err;

	CHECK_INT(audit_open(folder, &a, &err), -EISDIR);
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK(audit_open(path, &a, &err) < 0);
	unlink(path);
	CHECK_INT(audit_open("/dev/full", &a, &err), -EINVAL);
	CHECK_INT(audit_open(NULL, &a, &err), 0);
	audit_put(a, json_pack("{s:s}", "who", "anna")); /* to the log */
	audit_close(a);
}

/* A full disk takes a part of a line: the next one can be parsed all the same. */
static void torn(void)
{
	struct rlimit before, small;
	struct audit *a;
	struct weir_err err;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(audit_open(path, &a, &err), 0);
	audit_put(a, json_pack("{s:s}", "who", "anna"));
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){100, before.rlim_max};
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
	audit_put(a, json_pack("{s:s}", "who", "bert, of whom the disk takes a part only"));
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
	audit_put(a, json_pack("{s:s}", "who", "cleo"));
	CHECK_INT(lines(path, "\"who\""), 2);
	CHECK_INT(lines(path, "cleo"), 1);
	audit_close(a);
	unlink(path);
}

/* Count the lines with `text` in what audit_put logs. */
static int logged(struct audit *a, int status, int times, const char *text)
{
	FILE *f = tmpfile();
	int was = dup(STDERR_FILENO), n = 0;
	char line[1000];

	CHECK(f && was >= 0);
	CHECK(dup2(fileno(f), STDERR_FILENO) >= 0);
	for (int i = 0; i < times; i++)
		audit_put(a, json_pack("{s:i}", "status", status));
	CHECK(dup2(was, STDERR_FILENO) >= 0);
	close(was);
	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

/* The log limits refused requests, and no others: a client cannot hide changes behind many requests that are refused. */
static void many(void)
{
	struct audit *a;
	struct weir_err err;

	CHECK_INT(audit_open(NULL, &a, &err), 0);
	CHECK(logged(a, 403, 1000, " audit-refused ") < 1000);
	CHECK_INT(logged(a, 200, 100, " audit "), 100);
	CHECK_INT(logged(a, 500, 20, " audit "), 20); /* may have changed something */
	audit_close(a);
	CHECK_INT(audit_open(path, &a, &err), 0);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(mkdir(path, 0700), 0);
	CHECK(logged(a, 403, 1000, " audit-unwritten ") < 1000);
	CHECK_INT(logged(a, 200, 100, " audit-unwritten "), 100);
	audit_close(a);
	CHECK_INT(rmdir(path), 0);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/audit", folder);
	snprintf(old, sizeof(old), "%s/audit.1", folder);
	RUN(rotated);
	RUN(unwritable);
	RUN(torn);
	RUN(many);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
