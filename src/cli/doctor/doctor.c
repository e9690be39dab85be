/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor: `weir doctor`, what will work on this machine, with this policy and gateway, and how to repair the rest. */
#include "base/array.h"
#include "cli/doctor/doctor.h"
#include "serve/loop/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_doctor;

enum { JSON, QUIET, STORE, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "print a JSON list of findings"},
	[QUIET] = {"quiet", 'q', NULL, "print errors and warnings only"},
	[STORE] = {"store", 0, "STORE",
		"also this store: sqlite:FOLDER or etcd:URL,...; else $WEIR_STORE"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

static const char *const levels[] = {"error", "warning", "note", "ok"};

static void free_finding(struct doctor_finding *f)
{
	free(f->subject);
	free(f->text);
	free(f->advice);
}

/* Return true if there is the same finding: two volumes of one resource may lead to it. */
static bool is_said(const struct doctor *d, const struct doctor_finding *f)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->findings[i].subject, f->subject) == 0 &&
			strcmp(d->findings[i].text, f->text) == 0)
			return true;
	return false;
}

void doctor_say(struct doctor *d, enum doctor_level level, const char *subject, const char *advice,
	const char *fmt, ...)
{
	struct doctor_finding f = {.level = level, .subject = strdup(subject)};
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&f.text, fmt, args);
	va_end(args);
	if (n < 0)
		f.text = NULL;
	f.advice = advice ? strdup(advice) : NULL;
	d->no_memory |= !f.subject || !f.text || (advice && !f.advice) ||
			array_grow(&d->findings, &d->room, d->n + 1) < 0;
	if (d->no_memory || is_said(d, &f))
		free_finding(&f);
	else
		d->findings[d->n++] = f;
}

/* ---- the report */

/* Findings of one level stay in the order in which they were found: qsort does not promise that. */
static void print_lines(const struct doctor *d, bool quiet)
{
	for (int level = DOCTOR_ERROR; level <= (quiet ? DOCTOR_WARNING : DOCTOR_OK); level++)
		for (size_t i = 0; i < d->n; i++) {
			const struct doctor_finding *f = &d->findings[i];

			if ((int)f->level == level)
				printf("%-8s %s: %s%s%s\n", levels[level], f->subject, f->text,
					f->advice ? "; " : "", f->advice ? f->advice : "");
		}
}

static int print_json(const struct doctor *d, bool quiet)
{
	json_t *list = json_array();
	int rc = list ? 0 : -1;

	for (int level = DOCTOR_ERROR; level <= (quiet ? DOCTOR_WARNING : DOCTOR_OK); level++)
		for (size_t i = 0; i < d->n && rc == 0; i++) {
			const struct doctor_finding *f = &d->findings[i];

			/* texts of files that are no UTF-8 make no object */
			if ((int)f->level == level)
				rc = json_array_append_new(
					list, json_pack("{s:s, s:s, s:s, s:s?}", "level",
						      levels[level], "subject", f->subject, "text",
						      f->text, "advice", f->advice));
		}
	if (rc == 0)
		rc = json_dumpf(list, stdout, JSON_INDENT(2));
	printf("\n");
	json_decref(list);
	return rc;
}

/* Return the exit status. */
static int report(const struct doctor *d, bool json, bool quiet)
{
	bool failed = false;

	for (size_t i = 0; i < d->n; i++)
		failed |= d->findings[i].level == DOCTOR_ERROR;
	if (!json)
		print_lines(d, quiet);
	else if (print_json(d, quiet) < 0)
		return opts_fail(&verb_doctor, "a finding cannot be written as JSON");
	if (d->no_memory)
		return opts_no_memory(&verb_doctor);
	return failed ? 1 : 0;
}

static void free_findings(struct doctor *d)
{
	for (size_t i = 0; i < d->n; i++)
		free_finding(&d->findings[i]);
	free(d->findings);
}

/* Return the API's unix socket that the policy states, malloc'ed; NULL: none. */
static char *own_socket(const struct weir_policy *p)
{
	for (size_t i = 0; p && i < p->n_api; i++)
		if (strncmp(p->api[i], "unix:", 5) == 0)
			return strndup(p->api[i], strcspn(p->api[i], "?"));
	return NULL;
}

static int doctor_main(const char *const *values, char **operands, int n)
{
	const char *store = values[STORE] ? values[STORE] : getenv("WEIR_STORE");
	bool asked = values[SOCKET] || values[URL];
	struct weir_policy *policy = NULL;
	struct doctor d = {0};
	struct remote *r = NULL;
	char *own;
	int status;

	if (n > 1)
		return opts_fail(&verb_doctor, "takes one FILE, or none");
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT); /* back ends log what becomes a finding */
	if (n)
		d.policy = policy = doctor_policy(&d, operands[0]);
	own = asked ? NULL : own_socket(policy);
	status = own ? remote_open(&verb_doctor, own, NULL, values[TOKEN], NULL, &r)
		     : remote_of_options(&verb_doctor, values + SOCKET, &r);
	if (status < 0) {
		doctor_gateway(&d, r, asked);
		remote_close(r);
		doctor_storage(&d);
		doctor_machine(&d);
		if (store && *store)
			doctor_store(&d, store);
		status = report(&d, values[JSON], values[QUIET]);
	}
	free(own);
	free_findings(&d);
	weir_policy_free(policy);
	return status;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "what will work on this machine, with this policy, and how to repair the rest",
	.usage = "[OPTION]... [FILE]",
	.options = options,
	.run = doctor_main,
};
