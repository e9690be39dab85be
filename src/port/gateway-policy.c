/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway-policy: the policy in force, and how it becomes another.
 *
 * METHOD  What is in force is `base`, as the file says, and on top of it what `set` changed. A change
 *         makes the whole next policy first and asks everything that could be against it: the reader,
 *         the checks, the sizes of the back ends. Then what must survive a restart is put on disk, and
 *         then it is swapped in, resource by resource; a resource that refuses (it has no memory) has
 *         the others swapped back, and the disk. Only then does the gateway call it the policy.
 *         The tree is borrowed by the resources, so the old one is freed last.
 */
#include "ctl/policy-copy.h"
#include "ctl/policy-override.h"
#include "port/agent.h"
#include "port/cluster.h"
#include "port/gateway-note.h"
#include "port/gateway-slo.h"
#include "port/gateway-state.h"
#include "port/log.h"
#include "port/tls.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A version in the making. */
struct version {
	struct weir_policy *base, *policy;
	struct gateway_override *overrides;
	size_t n_overrides;
	char *text, *name; /* NULL: as before, and so are the credentials */
	struct tls *tls;
};

static void version_free(struct version *v)
{
	weir_policy_free(v->base);
	weir_policy_free(v->policy);
	gateway_state_free(v->overrides, v->n_overrides);
	free(v->text);
	free(v->name);
	tls_free(v->tls);
}

/* ---- base and overrides into one policy */

/* Puts all of them on a copy of the base, or says which one does not fit. */
static int build(struct version *v, struct gateway_note *note, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_err why;
	int rc = remarks ? policy_copy(v->base, &v->policy) : -ENOMEM;

	if (rc < 0)
		weir_err_set(err, rc, "out of memory");
	for (size_t i = 0; rc == 0 && i < v->n_overrides; i++) {
		const struct gateway_override *o = &v->overrides[i];

		rc = policy_override_set(v->policy, o->key, o->value, &why);
		if (rc < 0)
			weir_err_set(err, rc, "%s", why.text);
	}
	if (rc == 0)
		rc = policy_override_check(v->policy, remarks, err);
	for (size_t i = 0; rc == 0 && i < remarks->n_warnings && i < WEIR_POLICY_REMARKS; i++)
		gateway_note_add(note, "%s (warning)", remarks->warnings[i].text);
	free(remarks);
	return rc;
}

/* Those that can be put on the base at all; the others are named and dropped. */
static int drop_unfit(struct version *v, struct gateway_note *note, struct weir_err *err)
{
	struct weir_policy *scratch;
	size_t kept = 0;

	if (policy_copy(v->base, &scratch) < 0)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < v->n_overrides; i++) {
		struct gateway_override *o = &v->overrides[i];
		struct weir_err why;

		if (policy_override_set(scratch, o->key, o->value, &why) == 0) {
			v->overrides[kept++] = *o;
			continue;
		}
		gateway_note_add(
			note, "%s %s, which was set, is dropped: %s", o->key, o->value, why.text);
		free(o->key);
		free(o->value);
	}
	v->n_overrides = kept;
	weir_policy_free(scratch);
	return 0;
}

/* What was set and is not what the new policy says by itself. */
static void say_undone(
	const struct gateway *g, const struct weir_policy *base, struct gateway_note *note)
{
	for (size_t i = 0; i < g->n_overrides; i++) {
		const struct gateway_override *o = &g->overrides[i];
		char is[POLICY_OVERRIDE_TEXT];

		if (policy_override_same(g->policy, base, o->key))
			continue;
		if (policy_override_show(base, o->key, is) == 0)
			gateway_note_add(
				note, "%s %s, which was set, is undone: %s", o->key, o->value, is);
		else
			gateway_note_add(note, "%s %s, which was set, is gone with what it was of",
				o->key, o->value);
	}
}

/* ---- putting it in force */

struct swapping {
	struct gateway *gateway;
	const struct weir_policy *to;
	size_t until; /* rolling back: the first that was not swapped */
	struct weir_err *err;
};

static int swap_one(void *arg, struct gateway_resource *r)
{
	struct swapping *s = arg;
	int rc = resource_swap(r->resource, s->to, s->err);

	return rc < 0 ? rc : gateway_divide_swapped(s->gateway, r, s->to);
}

static int swap_back(void *arg, struct gateway_resource *r)
{
	struct swapping *s = arg;

	if ((size_t)(r - s->gateway->resources) >= s->until)
		return 0;
	if (resource_swap(r->resource, s->to, s->err) < 0)
		log_event(LOG_LEVEL_ERROR, "swap-back-failed", "resource", r->name, "why",
			s->err->text, NULL);
	return gateway_divide_swapped(s->gateway, r, s->to);
}

static int swap_all(struct gateway *g, const struct weir_policy *to, struct weir_err *err)
{
	struct weir_err ignored;
	struct swapping s = {g, to, 0, err};
	size_t failed;
	int rc = gateway_divide_prepare(g, to);

	weir_err_set(err, -ENOMEM, "out of memory"); /* unless a resource says otherwise */
	if (rc < 0 || (rc = gateway_each(g, swap_one, &s, &failed)) >= 0)
		return rc;
	/* The one that failed may have the new tree without its parts. */
	s = (struct swapping){g, g->policy, failed + 1, &ignored};
	gateway_each(g, swap_back, &s, NULL);
	gateway_divide_prepare(g, NULL);
	return rc;
}

static bool same_overrides(const struct gateway *g, const struct version *v)
{
	for (size_t i = 0; i < v->n_overrides && i < g->n_overrides; i++)
		if (strcmp(g->overrides[i].key, v->overrides[i].key) != 0 ||
			strcmp(g->overrides[i].value, v->overrides[i].value) != 0)
			return false;
	return v->n_overrides == g->n_overrides;
}

/* The gateway's own takes the version's place, and the other way round. */
static void exchange(struct gateway *g, struct version *v)
{
	struct version old = {g->base, g->policy, g->overrides, g->n_overrides, NULL, NULL, NULL};

	g->base = v->base;
	g->policy = v->policy;
	g->overrides = v->overrides;
	g->n_overrides = v->n_overrides;
	if (v->text && v->name) {
		old.text = g->text;
		old.name = g->name;
		old.tls = g->tls;
		g->text = v->text;
		g->name = v->name;
		g->tls = v->tls;
	}
	*v = old;
}

static int commit(struct gateway *g, struct version *v, struct weir_err *err)
{
	bool write = g->state && !same_overrides(g, v);
	struct weir_err ignored;
	int rc = 0;

	if (write)
		rc = gateway_state_write(g->state, v->overrides, v->n_overrides, err);
	if (rc < 0)
		return rc;
	rc = swap_all(g, v->policy, err);
	if (rc < 0) {
		if (write)
			gateway_state_write(g->state, g->overrides, g->n_overrides, &ignored);
		return rc;
	}
	exchange(g, v);
	g->version++;
	gateway_divide_policy(g);
	gateway_slo_policy(g);
	agent_policy(g);
	record_policy(g);
	return 0;
}

static void log_change(const struct gateway *g, const char *how)
{
	char version[24];

	log_event(LOG_LEVEL_INFO, "policy", "how", how, "name", g->name, "version",
		log_number(version, (double)g->version), NULL);
}

/* ---- apply */

static int parse(struct gateway *g, const char *text, size_t len, const char *name,
	struct version *v, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	int rc;

	if (!remarks)
		return weir_err_set(err, -ENOMEM, "out of memory");
	rc = weir_policy_parse_all(text, len, name, g->reader, g->reader_arg, &v->base, remarks);
	if (rc < 0)
		weir_err_set(err, rc, "%s", remarks->n_errors ? remarks->errors[0].text : "?");
	free(remarks);
	if (rc < 0)
		return rc;
	v->text = strndup(text, len);
	v->name = strdup(name);
	if (!v->text || !v->name || policy_copy_everybody(v->base) < 0)
		return weir_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int prepare(struct gateway *g, struct version *v, bool keep, struct gateway_note *note,
	struct weir_err *err)
{
	int rc = 0;

	if (keep) {
		rc = gateway_state_copy(
			g->overrides, g->n_overrides, NULL, NULL, &v->overrides, &v->n_overrides);
		rc = rc < 0 ? weir_err_set(err, rc, "out of memory") : drop_unfit(v, note, err);
	} else {
		say_undone(g, v->base, note);
	}
	if (rc == 0)
		rc = build(v, note, err);
	if (rc == 0) /* read also when no name changed: what is in the files may be new */
		rc = gateway_tls_read(v->policy, &v->tls, err);
	if (rc == -ENOENT || rc == -EACCES) /* a file that it names: the policy is wrong */
		rc = -EINVAL;
	if (rc == 0)
		rc = agent_fits(g, v->policy, err);
	if (rc == 0)
		rc = cluster_fits(g, v->policy, err);
	return rc < 0 ? rc : gateway_fits(g, v->policy, err);
}

static int apply(struct gateway *g, const char *text, size_t len, const char *name, bool keep,
	bool dry, struct gateway_note *note, struct weir_err *err)
{
	struct version v = {0};
	int rc = parse(g, text, len, name, &v, err);

	if (rc == 0)
		rc = prepare(g, &v, keep, note, err);
	if (rc == 0)
		gateway_note_changes(note, g->policy, v.policy);
	if (rc == 0 && !dry) {
		rc = commit(g, &v, err);
		if (rc == 0)
			log_change(g, "apply");
	}
	version_free(&v);
	return rc;
}

/* Notes are the caller's on success only. */
static int finish(int rc, struct gateway_note *note, struct gateway_note *ret_note)
{
	if (rc == 0 && ret_note)
		*ret_note = *note;
	else
		gateway_note_free(note);
	return rc;
}

int gateway_apply(struct gateway *g, const char *text, size_t len, const char *name, bool keep,
	bool dry, struct gateway_note *ret_note, struct weir_err *err)
{
	struct gateway_note note = {0};

	return finish(apply(g, text, len, name, keep, dry, &note, err), &note, ret_note);
}

/* As a restart would have it: the file as it is now, and what was set. */
int gateway_reload(struct gateway *g, struct gateway_note *ret_note, struct weir_err *err)
{
	struct gateway_note note = {0};
	char *text;
	size_t len;
	int rc;

	if (!g->reader)
		return weir_err_set(err, -ENOTSUP, "there is no policy file to read again");
	rc = g->reader(g->reader_arg, "", g->file, &text, &len, err);
	if (rc < 0)
		return rc;
	rc = apply(g, text, len, g->file, true, false, &note, err);
	free(text);
	return finish(rc, &note, ret_note);
}

/* ---- set */

static bool is_set(const struct gateway *g, const char *key)
{
	for (size_t i = 0; i < g->n_overrides; i++)
		if (strcmp(g->overrides[i].key, key) == 0)
			return true;
	return false;
}

static int set(struct gateway *g, const char *key, const char *value, struct gateway_note *note,
	struct weir_err *err)
{
	struct version v = {0};
	int rc;

	if (!value && !is_set(g, key))
		return weir_err_set(err, -ENOENT, "%s was not set", key);
	rc = policy_copy(g->base, &v.base);
	if (rc == 0)
		rc = gateway_state_copy(
			g->overrides, g->n_overrides, key, value, &v.overrides, &v.n_overrides);
	if (rc < 0)
		weir_err_set(err, rc, "out of memory");
	else
		rc = build(&v, note, err);
	if (rc == 0)
		gateway_note_changes(note, g->policy, v.policy);
	if (rc == 0)
		rc = commit(g, &v, err);
	if (rc == 0)
		log_change(g, "set");
	if (rc == 0 && !g->state)
		gateway_note_add(note, "not kept across a restart: there is no state folder");
	version_free(&v);
	return rc;
}

int gateway_set(struct gateway *g, const char *key, const char *value,
	struct gateway_note *ret_note, struct weir_err *err)
{
	struct gateway_note note = {0};

	return finish(set(g, key, value, &note, err), &note, ret_note);
}

bool gateway_override(
	const struct gateway *g, size_t i, const char **ret_key, const char **ret_value)
{
	if (i >= g->n_overrides)
		return false;
	*ret_key = g->overrides[i].key;
	*ret_value = g->overrides[i].value;
	return true;
}

/* ---- start */

/* One by one, each if it is right with those before it. */
static int start_one_by_one(struct version *v, struct weir_err *err)
{
	struct gateway_override *all = v->overrides;
	size_t n = v->n_overrides, kept = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		struct gateway_override one = all[i];
		struct weir_err why;

		all[i] = (struct gateway_override){0};
		all[kept] = one;
		weir_policy_free(v->policy);
		v->policy = NULL;
		v->n_overrides = kept + 1;
		rc = build(v, NULL, &why);
		if (rc == 0) {
			kept++;
			continue;
		}
		log_event(LOG_LEVEL_WARNING, "set-dropped", "key", one.key, "value", one.value,
			"why", why.text, NULL);
		all[kept] = (struct gateway_override){0};
		free(one.key);
		free(one.value);
	}
	v->n_overrides = kept;
	if (rc == 0)
		return 0;
	weir_policy_free(v->policy);
	v->policy = NULL;
	return build(v, NULL, err);
}

static int start(struct gateway *g, struct version *v, struct weir_err *err)
{
	struct weir_err ignored;
	int rc;

	if (policy_copy_everybody(g->policy) < 0 || policy_copy(g->policy, &v->base) < 0)
		return weir_err_set(err, -ENOMEM, "out of memory");
	if (!g->state)
		return build(v, NULL, err);
	rc = gateway_state_read(g->state, &v->overrides, &v->n_overrides, err);
	if (rc < 0)
		return rc;
	if (build(v, NULL, &ignored) == 0)
		return 0;
	return start_one_by_one(v, err);
}

int gateway_policy_start(struct gateway *g, struct weir_err *err)
{
	struct version v = {0};
	int rc;

	g->file = strdup(g->name);
	rc = g->file ? start(g, &v, err) : weir_err_set(err, -ENOMEM, "out of memory");
	if (rc == 0)
		exchange(g, &v);
	version_free(&v);
	return rc;
}

void gateway_policy_stop(struct gateway *g)
{
	weir_policy_free(g->base);
	gateway_state_free(g->overrides, g->n_overrides);
	free(g->file);
	g->base = NULL;
	g->overrides = NULL;
	g->n_overrides = 0;
	g->file = NULL;
}
