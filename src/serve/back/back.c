/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: open back ends by name. The text before the first colon is the kind of the back end; the
 * rest is parsed by the kind (serve/back/name.h for options).
 */
#include "serve/back/back.h"
#include "serve/back/name.h"
#include "serve/loop/log.h"
#include "serve/back/nbd-uri.h"
#include <errno.h>
#include <string.h>

struct kind {
	const char *name;
	bool whole; /* the kind takes the whole name, a URI, not only the text after the colon */
	int (*open)(const char *, const struct back_config *, struct back **, struct weir_err *);
	int (*check)(const char *rest, struct weir_err *err);
	/* NULL: the size is not known before opening */
	int (*size)(const char *rest, uint64_t *ret_size);
};

static const struct kind kinds[] = {
	{"memory", false, back_memory_open, back_memory_check, back_memory_size},
	{"file", false, back_file_open, back_file_check, back_file_size},
	{"model", false, back_model_open, back_model_check, back_model_size},
	{"nbd", true, back_nbd_open, nbd_uri_check, NULL},
	{"nbds", true, back_nbd_open, nbd_uri_check, NULL},
	{"nbd+unix", true, back_nbd_open, nbd_uri_check, NULL},
	{"nbds+unix", true, back_nbd_open, nbd_uri_check, NULL},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int unknown(const char *name, size_t len, struct weir_err *err)
{
	const char *words[N_KINDS + 1], *near;
	char word[32];

	if (len >= sizeof(word))
		len = sizeof(word) - 1;
	memcpy(word, name, len);
	word[len] = '\0';
	for (size_t i = 0; i < N_KINDS; i++)
		words[i] = kinds[i].name;
	words[N_KINDS] = NULL;
	near = weir_err_near(word, words);
	if (near)
		return weir_err_set(err, -EINVAL,
			"%s: there is no back end '%s' (did you mean '%s:'?)", name, word, near);
	return weir_err_set(err, -EINVAL,
		"%s: a back end begins with memory:, file:, nbd: (or nbds:, nbd+unix:) or model:",
		name);
}

static int find(
	const char *name, const struct kind **ret_kind, const char **ret_rest, struct weir_err *err)
{
	size_t len = strcspn(name, ":");

	for (size_t i = 0; name[len] && i < N_KINDS; i++) {
		if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0) {
			*ret_kind = &kinds[i];
			*ret_rest = kinds[i].whole ? name : name + len + 1;
			return 0;
		}
	}
	return unknown(name, len, err);
}

int back_open(const char *name, const struct back_config *config, struct back **ret_back,
	struct weir_err *err)
{
	const struct kind *kind;
	const char *rest;
	int r = find(name, &kind, &rest, err);

	return r ? r : kind->open(rest, config, ret_back, err);
}

int back_size(const char *name, uint64_t *ret_size)
{
	const struct kind *kind;
	const char *rest;

	if (find(name, &kind, &rest, NULL) < 0 || !kind->size)
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
	const struct kind *kind;
	const char *rest;
	int r = find(name, &kind, &rest, err);

	return r ? r : kind->check(rest, err);
}
