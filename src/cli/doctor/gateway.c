/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway: a running gateway, by its status and its volumes (weir-api(7)). */
#include "cli/doctor/doctor.h"
#include "control/facts.h"
#include "serve/show/facts-json.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT   0.9  /* part of the buffers: clients are about to be paused */
#define DRIFT   0.2  /* as far as reality may be off the profile */
#define WAITING 0.95 /* part of the waiting time that is one cause */
#define LONG    60.0 /* s of waiting since the start: less is no subject */

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static double number_of(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static bool is_true(const json_t *j, const char *key)
{
	return json_is_true(json_object_get(j, key));
}

static void look_at_gateway(struct doctor *d, const json_t *status)
{
	const json_t *connections = json_object_get(status, "connections");
	const json_t *buffers = json_object_get(status, "buffers");
	const json_t *remark;
	size_t i;

	if (strcmp(text_of(status, "weir"), WEIR_VERSION) != 0)
		doctor_say(d, DOCTOR_NOTE, "gateway", "restart it after an upgrade",
			"runs version %s, this program is %s", text_of(status, "weir"),
			WEIR_VERSION);
	if (!is_true(status, "enforce"))
		doctor_say(d, DOCTOR_NOTE, "gateway", "state enforce: true to regulate",
			"runs in shadow mode: nothing is held back");
	if (number_of(connections, "refused") > 0)
		doctor_say(d, DOCTOR_WARNING, "gateway", "its log has the reasons (client-refused)",
			"%.0f connections were refused", number_of(connections, "refused"));
	if (number_of(buffers, "used") > SHORT * number_of(buffers, "limit"))
		doctor_say(d, DOCTOR_WARNING, "gateway", "raise `memory`",
			"the data of requests take %.0f of %.0f MiB: clients are paused",
			number_of(buffers, "used") / (1 << 20),
			number_of(buffers, "limit") / (1 << 20));
	json_array_foreach(json_object_get(status, "remarks"), i, remark)
		doctor_say(d, DOCTOR_WARNING, "gateway", NULL, "%s", json_string_value(remark));
}

/* Report the remarks that controllers add to their values. */
static void look_at_controllers(struct doctor *d, const char *subject, const json_t *resource)
{
	const struct facts_kind *kind;
	char text[FACTS_NOTE];

	for (size_t i = 0; (kind = facts_kind(i)); i++) {
		const json_t *part = json_object_get(resource, kind->name);
		void *self =
			json_is_object(part) && kind->self.note ? malloc(kind->self.size) : NULL;
		const char *note;

		if (!self)
			continue;
		facts_json_show(part, resource, &kind->self, self);
		note = kind->self.note(self, text);
		if (*note)
			doctor_say(d, DOCTOR_WARNING, subject, NULL, "%s: %s", kind->label, note);
		free(self);
	}
}

static void look_at_resource(struct doctor *d, const json_t *r, double uptime)
{
	char subject[256];

	snprintf(subject, sizeof(subject), "resource '%s'", text_of(r, "name"));
	if (!is_true(r, "up") || !is_true(r, "healthy"))
		doctor_say(d, DOCTOR_ERROR, subject, NULL, "%s", text_of(r, "state"));
	if (number_of(r, "stalled") > 0)
		doctor_say(d, DOCTOR_ERROR, subject, "weir volume list names them",
			"%.0f volumes do not answer", number_of(r, "stalled"));
	if (number_of(r, "flush_errors") > 0)
		doctor_say(d, DOCTOR_ERROR, subject, "look into the storage's own log",
			"%.0f flushes failed: data that were answered may be lost",
			number_of(r, "flush_errors"));
	if (is_true(r, "bypassed"))
		doctor_say(d, DOCTOR_WARNING, subject, "weir bypass --off",
			"its gate has been open for %.0f s: no policy acts",
			number_of(r, "bypassed_s"));
	if (number_of(r, "drift") > DRIFT)
		doctor_say(d, DOCTOR_WARNING, subject, "run weir profile again",
			"requests take %.0f %% longer than its profile says",
			100 * number_of(r, "drift"));
	if (number_of(r, "mins") > 1)
		doctor_say(d, DOCTOR_WARNING, subject, "lower mins, or move tenants",
			"the mins of its tenants need %.0f %% of its capacity",
			100 * number_of(r, "mins"));
	if (number_of(r, "clients") > 1 && uptime > LONG && number_of(r, "served") > 0 &&
		number_of(r, "full_s") == 0)
		doctor_say(d, DOCTOR_NOTE, subject,
			"where the device is slow, a smaller `depth` lets weights act",
			"its window of %.0f was never full: weights have had nothing to divide",
			number_of(r, "window"));
	look_at_controllers(d, subject, r);
}

/* Return true if almost all of the tenant's waiting was for this cause. */
static bool waits_for(const json_t *waits, const char *cause)
{
	double all = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)waits, key, value) all += json_number_value(value);
	return all > LONG && number_of(waits, cause) > WAITING * all;
}

static void look_at_tenant(struct doctor *d, const json_t *t)
{
	const json_t *hour = json_object_get(json_object_get(t, "slo"), "hour");
	const json_t *waits = json_object_get(t, "wait_s");
	char subject[1100];

	if (!is_true(t, "leaf"))
		return;
	snprintf(subject, sizeof(subject), "tenant '%s'", text_of(t, "path"));
	if (json_is_false(json_object_get(hour, "met")))
		doctor_say(d, DOCTOR_WARNING, subject, "weir plan says whether it can be kept",
			"misses its slo of the last hour: %.0f of %.0f requests in time",
			number_of(hour, "good"), number_of(hour, "total"));
	if (is_true(t, "min_off"))
		doctor_say(d, DOCTOR_WARNING, subject, NULL,
			"its min does not fit beside the others'");
	if (number_of(t, "errors") > 0)
		doctor_say(d, DOCTOR_WARNING, subject, NULL, "%.0f requests failed",
			number_of(t, "errors"));
	if (waits_for(waits, "max"))
		doctor_say(d, DOCTOR_NOTE, subject, "raise it, if that is not meant",
			"waits for its own max and for nothing else");
}

static void look_at_volumes(struct doctor *d, const json_t *volumes)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(volumes, "volumes"), i, v)
	{
		char subject[300];

		snprintf(subject, sizeof(subject), "volume '%s'", text_of(v, "name"));
		if (*text_of(v, "trouble"))
			doctor_say(d, DOCTOR_ERROR, subject, NULL, "%s", text_of(v, "trouble"));
		else if (json_is_string(json_object_get(v, "tenant")) && !*text_of(v, "tenant"))
			doctor_say(
				d, DOCTOR_NOTE, subject, NULL, "no tenant matches its name alone");
	}
	json_array_foreach(json_object_get(volumes, "unserved"), i, v)
		doctor_say(d, DOCTOR_ERROR, "volumes", NULL, "%s", json_string_value(v));
}

void doctor_gateway(struct doctor *d, struct remote *r, bool asked)
{
	struct weir_err err;
	const json_t *one;
	json_t *status, *volumes;
	size_t i;
	int rc = remote_try(r, "GET", "/v1/status?active=1", NULL, 0, &status, &err);

	if (rc < 0) {
		doctor_say(d, asked || rc != -ENOENT ? DOCTOR_ERROR : DOCTOR_NOTE, "gateway", NULL,
			"%s", err.text);
		return;
	}
	d->served = true;
	look_at_gateway(d, status);
	json_array_foreach(json_object_get(status, "resources"), i, one)
		look_at_resource(d, one, number_of(status, "uptime_s"));
	json_array_foreach(json_object_get(status, "tenants"), i, one) look_at_tenant(d, one);
	doctor_say(d, DOCTOR_OK, "gateway", NULL, "answers; policy version %.0f, %.0f clients",
		number_of(status, "policy_version"), number_of(status, "clients"));
	json_decref(status);
	if (remote_try(r, "GET", "/v1/volumes", NULL, 0, &volumes, &err) < 0)
		return; /* an API without volumes: weir shape's, or weir control's */
	look_at_volumes(d, volumes);
	json_decref(volumes);
}
