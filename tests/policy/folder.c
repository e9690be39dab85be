/* SPDX-License-Identifier: BSD-3-Clause */
/* folder: the name of a file's volume, and the file of a volume's name, which is its inverse. */
#include "policy/folder.h"
#include "test.h"
#include <errno.h>

static struct weir_folder folder(const char *match, const char *name)
{
	return (struct weir_folder){.dir = "/vm", .match = match, .name = name};
}

/* A file is such a volume (NULL: none), and the volume such a file again. */
static void gives(const char *match, const char *name, const char *file, const char *volume)
{
	struct weir_folder f = folder(match, name);
	char text[POLICY_FOLDER_NAME], again[POLICY_FOLDER_NAME];
	int rc = policy_folder_volume(&f, file, text);

	if (!volume) {
		CHECK_INT(rc, -ENOENT);
		return;
	}
	CHECK_INT(rc, 0);
	CHECK_STR(text, volume);
	CHECK_INT(policy_folder_file(&f, volume, again), 0);
	CHECK_STR(again, file);
}

static void test_names(void)
{
	gives("*.raw", "vm-{stem}", "17.raw", "vm-17");
	gives("*.raw", "vm-{stem}", "a.b.raw", "vm-a.b");
	gives("*.raw", "{name}", "17.raw", "17.raw");
	gives("*.raw", "vm-{stem}.img", "17.raw", "vm-17.img");
	gives("lv-*", "{stem}", "lv-3", "lv-3");
	gives("*", "{stem}", "disk", "disk");
	gives("*.raw", "vm-{stem}", "17.img", NULL);
	gives("*", "{stem}", ".17.raw.new", NULL);
	gives("*", "{name}", ".", NULL);
}

static void no_file(const char *match, const char *name, const char *volume)
{
	struct weir_folder f = folder(match, name);
	char text[POLICY_FOLDER_NAME];

	CHECK_INT(policy_folder_file(&f, volume, text), -ENOENT);
}

static void test_no_file(void)
{
	char long_[300];

	memset(long_, 'a', sizeof(long_));
	long_[299] = 0;
	no_file("*.raw", "vm-{stem}", "17");
	no_file("*.raw", "vm-{stem}", "vm-");
	no_file("lv-*", "{stem}", "17");
	no_file("*", "{stem}", "a.b"); /* its stem is a */
	no_file("*.raw", "{stem}", ".hidden");
	no_file("*.raw", "{stem}", long_);
	no_file("?.raw", "{stem}", "17");
}

static void test_long(void)
{
	struct weir_folder f = folder("*", "volume-{name}");
	char file[256], name[POLICY_FOLDER_NAME];

	memset(file, 'a', sizeof(file));
	file[255] = 0;
	CHECK_INT(policy_folder_volume(&f, file, name), -ENAMETOOLONG);
}

static void test_bad(void)
{
	CHECK(!policy_folder_bad("vm-{stem}"));
	CHECK(policy_folder_bad("vm"));
	CHECK(policy_folder_bad("{stem}{name}"));
	CHECK(policy_folder_bad("{x}{stem}"));
	CHECK(policy_folder_bad("a/{stem}"));
}

static void test_can(void)
{
	struct weir_folder f = folder("*.raw", "vm-{stem}");

	CHECK(policy_folder_can(&f, "vm-*"));
	CHECK(policy_folder_can(&f, "vm-17"));
	CHECK(policy_folder_can(&f, NULL));
	CHECK(!policy_folder_can(&f, "db"));
}

int main(void)
{
	RUN(test_names);
	RUN(test_no_file);
	RUN(test_long);
	RUN(test_bad);
	RUN(test_can);
	return 0;
}
