/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: names into back ends. The kind of a back end is what stands before the first colon; the rest
 * is its own (serve/back/name.h for options). backs.inc has one BACK(name) per line, made by the build from the list in
 * meson.build.
 */
#include "serve/back/back.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAMES 32 /* of all kinds, at most */

#define BACK(name) extern const struct back_kind back_##name##_kind;
#include "serve/back/backs.inc"
#undef BACK

#define BACK(name) &back_##name##_kind,
static const struct back_kind *const kinds[] = {
#include "serve/back/backs.inc"
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int refuse_name(const char *name, size_t len, struct weir_err *err)
{
	const char *words[NAMES + 1] = {NULL}, *near;
	char word[32], all[160];
	size_t n = 0, used = 0;

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (size_t i = 0; i < N_KINDS; i++)
		for (const char *const *one = kinds[i]->names; *one && n < NAMES; one++) {
			words[n++] = *one;
			used += (size_t)snprintf(
				all + used, sizeof(all) - used, "%s%s:", n == 1 ? "" : ", ", *one);
		}
	near = weir_err_near(word, words);
	if (near)
		return weir_err_set(err, -EINVAL,
			"%s: there is no back end '%s' (did you mean '%s:'?)", name, word, near);
	return weir_err_set(err, -EINVAL, "%s: a back end begins with one of %s", name, all);
}

static int find_kind(const char *name, const struct back_kind **ret_kind, const char **ret_rest,
	struct weir_err *err)
{
	size_t len = strcspn(name, ":");

	for (size_t i = 0; name[len] && i < N_KINDS; i++)
		for (const char *const *one = kinds[i]->names; *one; one++)
			if (strlen(*one) == len && memcmp(*one, name, len) == 0) {
				*ret_kind = kinds[i];
				*ret_rest = kinds[i]->whole ? name : name + len + 1;
				return 0;
			}
	return refuse_name(name, len, err);
}

int back_open(const char *name, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	const struct back_kind *kind;
	const char *rest;
	int r = find_kind(name, &kind, &rest, err);

	return r ? r : kind->open(rest, config, ret_back, err);
}

int back_size(const char *name, uint64_t *ret_size)
{
	const struct back_kind *kind;
	const char *rest;

	if (find_kind(name, &kind, &rest, NULL) < 0 || !kind->size)
		return -ENODATA;
	return kind->size(rest, ret_size);
}

void back_flush_failed(struct back *b, const char *name, int error, weir_time now)
{
	char answers[24];

	b->flush_errors++;
	b->flush_unsaid++;
	if (b->flush_errors > 1 && now - b->flush_said < WEIR_SEC)
		return;
	log_event(LOG_LEVEL_ERROR, "flush-failed", "back", name, "why", strerror(-error), "answers",
		log_number(answers, (double)b->flush_unsaid), NULL);
	b->flush_said = now;
	b->flush_unsaid = 0;
}

int back_check(const char *name, struct weir_err *err)
{
	const struct back_kind *kind;
	const char *rest;
	int r = find_kind(name, &kind, &rest, err);

	return r ? r : kind->check(rest, err);
}
