/* SPDX-License-Identifier: BSD-3-Clause */
/* tokens: added, found, ended, removed; a damaged file; two that add at once. */
#include "test.h"
#include "serve/access/tokens.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-tokens-XXXXXX";
static char path[100];

static int find(struct tokens *t, const char *secret, int64_t now, struct tokens_entry *e)
{
	unsigned char hash[TOKENS_HASH];

	tokens_hash(secret, hash);
	return tokens_find(t, hash, now, e);
}

static void put_file(const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fputs(text, f);
	CHECK_INT(fclose(f), 0);
}

static void life(void)
{
	char anna[TOKENS_SECRET], bert[TOKENS_SECRET], text[4000];
	int64_t end = time(NULL) + 100;
	struct tokens_list l;
	struct tokens_entry e;
	struct tokens *t;
	struct weir_err err;
	struct stat st;
	FILE *f;

	CHECK_INT(tokens_open(path, &t), 0);
	CHECK_INT(find(t, "weir_x", 0, &e), -ENOENT); /* no file yet */
	CHECK_INT(tokens_add(path, "anna", POLICY_ROLE_OPERATE, end, anna, &err), 0);
	CHECK_INT(find(t, anna, end - 1, &e), 0);
	CHECK_STR(e.name, "anna");
	CHECK_INT(e.role, POLICY_ROLE_OPERATE);
	CHECK_INT(find(t, anna, end, &e), -ETIME);
	CHECK_STR(e.name, "anna");
	CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_READ, 0, bert, &err), 0);
	CHECK_INT(find(t, bert, INT64_MAX, &e), 0);
	CHECK(strcmp(anna, bert) != 0);
	CHECK(strlen(anna) >= 40);
	CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_READ, 0, bert, &err), -EEXIST);
	CHECK_STR(bert, "");
	CHECK_INT(tokens_add(path, "a b", POLICY_ROLE_READ, 0, bert, &err), -EINVAL);
	CHECK_INT(tokens_add(path, "", POLICY_ROLE_READ, 0, bert, &err), -EINVAL);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	f = fopen(path, "r");
	CHECK(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	CHECK(!strstr(text, anna)); /* only its hash */
	CHECK_INT(tokens_remove(path, "anna", &err), 0);
	CHECK_INT(find(t, anna, 0, &e), -ENOENT);
	CHECK_INT(tokens_remove(path, "anna", &err), -ENOENT);
	CHECK_INT(tokens_read(path, &l, &err), 0);
	CHECK_INT(l.n, 1);
	tokens_list_free(&l);
	tokens_close(t);
	unlink(path);
}

/* A damaged file has no tokens, and is not overwritten. */
static void damaged(void)
{
	static const char *const wrong[] = {"", "[", "{}", "[1]", "[{\"name\": \"a\"}]",
		"[{\"name\": \"a\", \"role\": \"root\", \"hash\": \"00\", \"made\": 0, \"end\": "
		"0}]",
		"[{\"name\": \"a\", \"role\": \"read\", \"hash\": \"00\", \"made\": 0, \"end\": "
		"0}]",
		"[{\"name\": \"a\", \"role\": \"read\", \"hash\": 5, \"made\": 0, \"end\": 0}]"};
	char secret[TOKENS_SECRET], other[TOKENS_SECRET];
	struct tokens_entry e;
	struct tokens *t;
	struct weir_err err;

	CHECK_INT(tokens_open(path, &t), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CHECK_INT(tokens_add(path, "anna", POLICY_ROLE_ADMIN, 0, secret, &err), 0);
		CHECK_INT(find(t, secret, 0, &e), 0);
		put_file(wrong[i]);
		CHECK_INT(find(t, secret, 0, &e), -ENOENT);
		CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_ADMIN, 0, other, &err), -EINVAL);
		CHECK_INT(unlink(path), 0);
	}
	CHECK_INT(mkdir(path, 0700), 0);
	CHECK_INT(find(t, secret, 0, &e), -ENOENT);
	CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_ADMIN, 0, other, &err), -EINVAL);
	CHECK_INT(rmdir(path), 0);
	tokens_close(t);
}

/* A change keeps the owner, the group and the mode of the file, and a file made by root is the folder's owner's: a gateway of another
 * user goes on reading it. A link in the place of the new file is not followed. */
static void owned(void)
{
	char secret[TOKENS_SECRET], new[110], other[110];
	struct weir_err err;
	struct stat st;

	snprintf(new, sizeof(new), "%s.new", path);
	snprintf(other, sizeof(other), "%s/other", folder);
	CHECK_INT(tokens_add(path, "anna", POLICY_ROLE_READ, 0, secret, &err), 0);
	CHECK_INT(chmod(path, 0640), 0);
	CHECK_INT(symlink(other, new), 0);
	CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_READ, 0, secret, &err), 0);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0640);
	CHECK_INT(stat(other, &st), -1);
	if (geteuid() == 0) {
		CHECK_INT(chown(path, 65533, 65532), 0);
		CHECK_INT(tokens_remove(path, "bert", &err), 0);
		CHECK_INT(stat(path, &st), 0);
		CHECK_INT(st.st_uid, 65533);
		CHECK_INT(st.st_gid, 65532);
		CHECK_INT(st.st_mode & 07777, 0640);
		CHECK_INT(unlink(path), 0);
		CHECK_INT(chown(folder, 65531, 65530), 0);
		CHECK_INT(tokens_add(path, "anna", POLICY_ROLE_READ, 0, secret, &err), 0);
		CHECK_INT(stat(path, &st), 0);
		CHECK_INT(st.st_uid, 65531);
		CHECK_INT(st.st_gid, 65530);
		CHECK_INT(st.st_mode & 07777, 0600);
		CHECK_INT(chown(folder, 0, 0), 0);
	}
	unlink(path);
}

/* All users may write it: none of its tokens is taken, and it is not changed. */
static void written_by_all(void)
{
	char secret[TOKENS_SECRET], more[TOKENS_SECRET];
	struct tokens_list l;
	struct tokens_entry e;
	struct tokens *t;
	struct weir_err err;

	CHECK_INT(tokens_open(path, &t), 0);
	CHECK_INT(tokens_add(path, "anna", POLICY_ROLE_ADMIN, 0, secret, &err), 0);
	CHECK_INT(find(t, secret, 0, &e), 0);
	CHECK_INT(chmod(path, 0602), 0);
	CHECK_INT(find(t, secret, 0, &e), -ENOENT);
	CHECK_INT(tokens_read(path, &l, &err), -EINVAL);
	CHECK(strstr(err.text, "writable by all users; use chmod 600"));
	CHECK_INT(tokens_add(path, "bert", POLICY_ROLE_ADMIN, 0, more, &err), -EINVAL);
	CHECK_INT(chmod(path, 0600), 0);
	CHECK_INT(find(t, secret, 0, &e), 0);
	tokens_close(t);
	unlink(path);
}

#define EACH 20
static void *adds(void *arg)
{
	char name[40], secret[TOKENS_SECRET];
	struct weir_err err;

	for (int i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "%s-%d", (const char *)arg, i);
		CHECK_INT(tokens_add(path, name, POLICY_ROLE_READ, 0, secret, &err), 0);
	}
	return NULL;
}

static void at_once(void)
{
	static char one[] = "one", two[] = "two";
	struct tokens_list l;
	struct weir_err err;
	pthread_t other;

	CHECK_INT(pthread_create(&other, NULL, adds, one), 0);
	adds(two);
	CHECK_INT(pthread_join(other, NULL), 0);
	CHECK_INT(tokens_read(path, &l, &err), 0);
	CHECK_INT(l.n, 2 * EACH);
	tokens_list_free(&l);
	unlink(path);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tokens", folder);
	RUN(life);
	RUN(damaged);
	RUN(owned);
	RUN(written_by_all);
	RUN(at_once);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
