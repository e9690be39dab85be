/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  A template is a text before, {stem} or {name}, and a text behind. The file of a volume is found by trying: the text
 *         in between, alone and with the ending of the pattern; the first that gives the volume's name again is it.
 */
#include "policy/folder.h"
#include "policy/pattern.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct template
{
	const char *before, *behind;
	size_t n_before;
	bool stem;
};

/* Return false if there is no {stem} or {name} in it. */
static bool split(const char *name, struct template *ret)
{
	const char *stem = strstr(name, "{stem}"), *whole = strstr(name, "{name}");
	const char *at = stem ? stem : whole;

	if (!at)
		return false;
	*ret = (struct template){name, at + 6, (size_t)(at - name), stem != NULL};
	return true;
}

const char *policy_folder_bad(const char *name)
{
	struct template t;

	if (!split(name, &t))
		return "needs {stem} or {name}: else all files have one name";
	if (strpbrk(t.behind, "{}") || memchr(name, '{', t.n_before) ||
		memchr(name, '}', t.n_before))
		return "has more braces than one {stem} or {name}";
	return strchr(name, '/') ? "contains a slash" : NULL;
}

static int join_name(const char *a, size_t n, const char *b, size_t m, const char *c,
	char ret[POLICY_FOLDER_NAME])
{
	int len = snprintf(ret, POLICY_FOLDER_NAME, "%.*s%.*s%s", (int)n, a, (int)m, b, c ? c : "");

	return len < POLICY_FOLDER_NAME ? 0 : -ENAMETOOLONG;
}

int policy_folder_volume(
	const struct weir_folder *f, const char *file, char ret_name[POLICY_FOLDER_NAME])
{
	const char *dot = strrchr(file, '.');
	size_t len = strlen(file);
	struct template t;

	if (*file == '.' || !split(f->name, &t) || !policy_pattern_fits(f->match, file))
		return -ENOENT;
	if (t.stem && dot)
		len = (size_t)(dot - file);
	return join_name(t.before, t.n_before, file, len, t.behind, ret_name);
}

/* Return the ending of a pattern of files, as ".raw"; "" if it has none. */
static const char *ending(const char *match)
{
	const char *dot = strrchr(match, '.');

	return dot && !strpbrk(dot, "*?[\\") ? dot : "";
}

int policy_folder_file(
	const struct weir_folder *f, const char *name, char ret_file[POLICY_FOLDER_NAME])
{
	const char *tries[] = {"", ending(f->match)};
	size_t len = strlen(name), n_behind;
	struct template t;

	if (!split(f->name, &t))
		return -ENOENT;
	n_behind = strlen(t.behind);
	if (len <= t.n_before + n_behind || strncmp(name, t.before, t.n_before) != 0 ||
		strcmp(name + len - n_behind, t.behind) != 0)
		return -ENOENT;
	for (int i = 0; i < 2; i++) {
		char again[POLICY_FOLDER_NAME];

		if (join_name(name + t.n_before, len - t.n_before - n_behind, tries[i],
			    strlen(tries[i]), NULL, ret_file) == 0 &&
			policy_folder_volume(f, ret_file, again) == 0 && strcmp(again, name) == 0)
			return 0;
	}
	return -ENOENT;
}

bool policy_folder_can(const struct weir_folder *f, const char *pattern)
{
	char names[POLICY_FOLDER_NAME];
	struct template t;

	return !pattern || !split(f->name, &t) ||
	       join_name(t.before, t.n_before, "*", 1, t.behind, names) < 0 ||
	       policy_pattern_overlap(pattern, names);
}
