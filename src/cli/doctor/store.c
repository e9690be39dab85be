/* SPDX-License-Identifier: BSD-3-Clause */
/* store: the store of a cluster, asked for one key. */
#include "cli/doctor/doctor.h"
#include "serve/store/store.h"
#include <string.h>

struct asked {
	struct doctor *doctor;
	struct loop *loop;
	const char *name;
};

static void answered(
	void *arg, int rc, const struct store_result *result, const struct weir_err *err)
{
	struct asked *a = arg;

	if (rc < 0)
		doctor_say(a->doctor, DOCTOR_ERROR, "store", NULL, "%s: %s", a->name, err->text);
	else
		doctor_say(a->doctor, DOCTOR_OK, "store", NULL, "%s answers, at revision %llu",
			a->name, (unsigned long long)result->revision);
	loop_stop(a->loop);
}

void doctor_store(struct doctor *d, const char *name)
{
	struct store_request q = {.kind = STORE_LIST, .prefix = "", .names = true, .limit = 1};
	struct asked a = {.doctor = d};
	struct store *s = NULL;
	struct weir_err err;

	if (!store_made(name)) {
		doctor_say(d, DOCTOR_ERROR, "store", "weir cluster init makes one",
			"%s: there is none", name);
		return;
	}
	if (loop_new(&a.loop) < 0) {
		d->no_memory = true;
		return;
	}
	if (store_open(a.loop, name, &s, &err) < 0) {
		doctor_say(d, DOCTOR_ERROR, "store", NULL, "%s", err.text);
	} else {
		a.name = store_name(s);
		store_ask(s, &q, answered, &a);
		loop_run(a.loop);
	}
	store_close(s);
	loop_free(a.loop);
}
