/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/field.h"
#include "cli/common/stay.h"
#include "serve/loop/confine.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void stay_list_free(struct stay_list *l)
{
	free(l->text);
	free(l->words);
}

static int split_words(const struct verb *v, const char *text, struct stay_list *ret)
{
	size_t room = 1;
	char *rest, *word;

	for (const char *p = text; *p; p++)
		room += *p == ',';
	ret->text = strdup(text);
	ret->words = calloc(room, sizeof(*ret->words));
	if (!ret->text || !ret->words)
		return opts_no_memory(v);
	for (word = strtok_r(ret->text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		ret->words[ret->n++] = word;
	return -1;
}

int stay_addresses(const struct verb *v, const char *option, const char *text, stay_check_fn *check,
	struct stay_list *ret)
{
	struct weir_err err;
	int status = split_words(v, text, ret);

	for (size_t i = 0; status < 0 && i < ret->n; i++)
		if (check(ret->words[i], &err) < 0)
			status = opts_fail(v, "--%s: %s", option, err.text);
	if (status < 0 && ret->n == 0)
		status = opts_fail(v, "--%s: needs an address", option);
	return status;
}

int stay_level(const struct verb *v, const char *text, int *ret_level)
{
	static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
	int level = text ? field_index(levels, text) : -1;

	if (text && level < 0)
		return opts_fail(v, "--log-level: must be error, warning, info or debug");
	*ret_level = level;
	return -1;
}

void stay_log(int level, const struct weir_policy *p, bool json)
{
	log_open(level >= 0 ? (enum log_level)level : (enum log_level)p->log_level,
		json || p->log_form == WEIR_POLICY_LOG_JSON ? LOG_FORM_JSON : LOG_FORM_TEXT);
}

void stay_confine(void)
{
	struct weir_err err;

	if (confine(&err) < 0)
		log_event(LOG_LEVEL_INFO, "not-confined", "why", err.text, NULL);
}

int stay_pidfile(const char *path, struct weir_err *err)
{
	/* Often written by root into another user's folder: a link there could lead anywhere. */
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	struct stat st;
	int e;

	if (fd < 0) {
		e = errno;
		return weir_err_set(err, -e, "%s: %s", path,
			e == ELOOP ? "is a symbolic link, which is refused for a pidfile"
				   : strerror(e));
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		e = EINVAL;
	else
		e = ftruncate(fd, 0) < 0 || dprintf(fd, "%ld\n", (long)getpid()) < 0 ? errno : 0;
	close(fd);
	if (e == EINVAL)
		return weir_err_set(err, -e, "%s: not a regular file with one name", path);
	return e ? weir_err_set(err, -e, "%s: %s", path, strerror(e)) : 0;
}
