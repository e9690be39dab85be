/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-policy: `weir sim --policy FILE`: a scenario out of a policy file, models of its devices, and loads.
 *
 * Each resource with a load is a device and a host in front of it, both of its name. The policy is read again by the scenario's
 * reader; here it only says which resource a tenant uses, and which model is behind a resource.
 */
#include "base/no-memory.h"
#include "cli/common/files.h"
#include "cli/sim-policy.h"
#include "policy/each.h"
#include "policy/policy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LEN 1024

struct load { /* TENANT[@RESOURCE]:KEY=VALUE,... */
	int tenant;
	size_t resource;
	const char *keys;
};

/* ---- text */

static void put_text(FILE *f, const char *text)
{
	files_put_quoted(f, text, strlen(text));
}

/* Write `KEY=VALUE,...` as `KEY: "VALUE", ...`. Return 0, or -EINVAL with a message. */
static int put_pairs(FILE *f, const char *text, size_t len, struct weir_err *err)
{
	while (len) {
		const char *comma = memchr(text, ',', len);
		size_t n = comma ? (size_t)(comma - text) : len;
		const char *equals = memchr(text, '=', n);

		if (!equals || equals == text)
			return weir_err_set(err, -EINVAL, "'%.*s': give KEY=VALUE, as in size=4KiB",
				(int)n, text);
		fprintf(f, "%.*s: ", (int)(equals - text), text);
		files_put_quoted(f, equals + 1, n - (size_t)(equals - text) - 1);
		fputs(", ", f);
		n += comma != NULL;
		text += n;
		len -= n;
	}
	return 0;
}

/* ---- the models */

static const char *find_model(const struct sim_policy *a, const struct weir_resource *r)
{
	const char *otherwise = NULL;
	size_t len = strlen(r->name);

	for (size_t i = 0; i < a->n_devices; i++) {
		const char *d = a->devices[i];

		if (strncmp(d, "model:", 6) == 0)
			otherwise = d;
		else if (strncmp(d, r->name, len) == 0 && d[len] == '=')
			return d + len + 1;
	}
	if (r->back && strncmp(r->back, "model:", 6) == 0)
		return r->back;
	return otherwise;
}

static int put_device(
	FILE *f, const struct sim_policy *a, const struct weir_resource *r, struct weir_err *err)
{
	const char *model = find_model(a, r);
	size_t len, word;

	if (!model)
		return weir_err_set(err, -EINVAL,
			"resource '%s' has no model behind it: give --device %s=model:ssd, or "
			"another model of weir-back(7)",
			r->name, r->name);
	if (strncmp(model, "model:", 6) != 0)
		return weir_err_set(
			err, -EINVAL, "--device: '%s' is not a model, as in model:ssd", model);
	model += 6;
	len = strcspn(model, "+");
	word = strcspn(model, ",+");
	fputs("  - {name: ", f);
	put_text(f, r->name);
	fprintf(f, ", kind: \"%.*s\", ", (int)word, model);
	if (word < len) {
		int r2 = put_pairs(f, model + word + 1, len - word - 1, err);

		if (r2)
			return r2;
	}
	fputs("}\n", f);
	return 0;
}

/* ---- the loads */

static bool has_limit(const struct weir_policy *p, int tenant)
{
	for (; tenant >= 0; tenant = p->tenants[tenant].parent)
		if (p->tenants[tenant].n_min || p->tenants[tenant].n_max)
			return true;
	return false;
}

static bool is_used_at(const struct weir_policy *p, int tenant, const char *export_)
{
	struct weir_who who = {.export_ = export_};

	return weir_policy_match(p, &who) == tenant;
}

/* Find the resource whose exports belong to the tenant. Return its index; -1: none, or several. */
static int find_resource(const struct weir_policy *p, int tenant)
{
	int found = -1;

	if (p->n_resources == 1)
		return 0;
	for (size_t i = 0; i < p->n_exports; i++) {
		if (!is_used_at(p, tenant, p->exports[i].name))
			continue;
		if (found >= 0 && found != p->exports[i].resource)
			return -1;
		found = p->exports[i].resource;
	}
	for (size_t i = 0; p->n_exports == 0 && i < p->n_resources; i++) {
		if (!is_used_at(p, tenant, p->resources[i].name))
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

static int read_tenant(
	const struct weir_policy *p, const char *path, struct load *ret, struct weir_err *err)
{
	ret->tenant = weir_policy_find(p, path);
	if (ret->tenant < 0 && !p->n_tenants)
		return weir_err_set(err, -EINVAL, "--load: the policy has no tenants");
	if (ret->tenant < 0) {
		const char **names = calloc(p->n_tenants + 1, sizeof(*names)), *near = NULL;

		for (size_t i = 0; names && i < p->n_tenants; i++)
			names[i] = p->tenants[i].path;
		if (names)
			near = weir_err_near(path, names);
		free(names);
		return weir_err_set(err, -EINVAL, "--load: no tenant '%s'%s%s%s", path,
			near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	}
	if (p->tenants[ret->tenant].first_child >= 0)
		return weir_err_set(err, -EINVAL,
			"--load: '%s' has children, and only tenants without have clients", path);
	return 0;
}

/* Split a load. Return false if it names no tenant. */
static bool split_load(
	const char *text, char name[NAME_LEN], char **ret_resource, const char **ret_keys)
{
	size_t len = strcspn(text, ":");

	if (!len || len >= NAME_LEN)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	*ret_keys = text + len + (text[len] == ':');
	*ret_resource = strrchr(name, '@');
	if (*ret_resource)
		*(*ret_resource)++ = '\0';
	return true;
}

/* Make the tenants of templates that have loads. */
static int make_each(const struct sim_policy *a, struct weir_policy *p, struct weir_err *err)
{
	char(*names)[NAME_LEN] = calloc(a->n_loads + 1, sizeof(*names)), *resource;
	const char **paths = calloc(a->n_loads + 1, sizeof(*paths)), *keys;
	int r = names && paths ? 0 : no_memory(err);
	struct weir_err why;
	size_t n = 0;

	for (size_t i = 0; r == 0 && i < a->n_loads; i++)
		if (split_load(a->loads[i], names[n], &resource, &keys)) {
			paths[n] = names[n];
			n++;
		}
	if (r == 0 && policy_each_make(p, paths, n, &why) < 0)
		r = weir_err_set(err, -EINVAL, "--load: %s", why.text);
	free(names);
	free(paths);
	return r;
}

static int read_load(
	const struct weir_policy *p, const char *text, struct load *ret, struct weir_err *err)
{
	char name[NAME_LEN], *at;
	int r;

	if (!split_load(text, name, &at, &ret->keys))
		return weir_err_set(err, -EINVAL,
			"--load: give TENANT:KEY=VALUE,..., as in prod/db:outstanding=8,size=4KiB");
	r = read_tenant(p, name, ret, err);
	if (r)
		return r;
	if (at) {
		const struct weir_resource *found = weir_policy_resource(p, at);

		if (!found)
			return weir_err_set(err, -EINVAL, "--load: no resource '%s'", at);
		ret->resource = (size_t)(found - p->resources);
		return 0;
	}
	r = find_resource(p, ret->tenant);
	if (r < 0)
		return weir_err_set(err, -EINVAL,
			"--load: which resource does '%s' use? give %s@RESOURCE", name, name);
	ret->resource = (size_t)r;
	return 0;
}

static int check_loads(
	const struct weir_policy *p, const struct load *loads, size_t n, struct weir_err *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (loads[i].tenant == loads[k].tenant &&
				loads[i].resource != loads[k].resource &&
				has_limit(p, loads[i].tenant))
				return weir_err_set(err, -EINVAL,
					"--load: '%s' has limits, which hold over its resources "
					"together: only one of them can be simulated",
					p->tenants[loads[i].tenant].path);
	return 0;
}

/* ---- the scenario */

static int put_clients(FILE *f, const struct weir_policy *p, const struct load *loads, size_t n,
	size_t resource, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &=
				loads[k].tenant != loads[i].tenant || loads[k].resource != resource;
		if (loads[i].resource != resource || !first)
			continue;
		fputs("      ", f);
		put_text(f, p->tenants[loads[i].tenant].path);
		fputs(": [", f);
		for (size_t k = i; r == 0 && k < n; k++) {
			if (loads[k].tenant != loads[i].tenant || loads[k].resource != resource)
				continue;
			fputs("{", f);
			r = put_pairs(f, loads[k].keys, strlen(loads[k].keys), err);
			fputs("}, ", f);
		}
		fputs("]\n", f);
	}
	return r;
}

static int put_scenario(FILE *f, const struct sim_policy *a, const struct weir_policy *p,
	const struct load *loads, size_t n, struct weir_err *err)
{
	const char *slash = strrchr(a->file, '/'), *name = slash ? slash + 1 : a->file;
	int r = 0;

	fputs("name: ", f);
	put_text(f, a->file);
	fprintf(f, "\nduration: %s\nwarmup: %s\ndevices:\n", a->duration ? a->duration : "60s",
		a->duration ? "0s" : "5s");
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; r == 0 && i < p->n_resources; i++) {
			bool used = false;

			for (size_t k = 0; k < n; k++)
				used |= loads[k].resource == i;
			if (!used)
				continue;
			if (!pass) {
				r = put_device(f, a, &p->resources[i], err);
				continue;
			}
			fputs("  - name: ", f);
			put_text(f, p->resources[i].name);
			fputs("\n    device: ", f);
			put_text(f, p->resources[i].name);
			fputs("\n    policy: ", f);
			put_text(f, name);
			fputs("\n    clients:\n", f);
			r = put_clients(f, p, loads, n, i, err);
		}
		fputs(pass ? "" : "hosts:\n", f);
	}
	return r;
}

static int make_text(
	const struct sim_policy *a, const struct weir_policy *p, char **ret, struct weir_err *err)
{
	struct load *loads = calloc(a->n_loads + 1, sizeof(*loads));
	char *text = NULL;
	size_t len;
	FILE *f = loads ? open_memstream(&text, &len) : NULL;
	int r = f ? 0 : no_memory(err);

	if (r == 0 && !a->n_loads)
		r = weir_err_set(err, -EINVAL,
			"--policy needs a --load, as in --load prod/db:outstanding=8,size=4KiB");
	for (size_t i = 0; r == 0 && i < a->n_loads; i++)
		r = read_load(p, a->loads[i], &loads[i], err);
	if (r == 0)
		r = check_loads(p, loads, a->n_loads, err);
	if (r == 0)
		r = put_scenario(f, a, p, loads, a->n_loads, err);
	if (f && fclose(f) != 0)
		r = no_memory(err);
	free(loads);
	if (r) {
		free(text);
		return r;
	}
	*ret = text;
	return 0;
}

/* A policy without resources, which has only tenants, stands in front of one device. */
static int add_resource(struct weir_policy *p)
{
	if (p->n_resources)
		return 0;
	free(p->resources);
	p->resources = calloc(1, sizeof(*p->resources));
	if (!p->resources)
		return -ENOMEM;
	policy_resource_default("device", &p->resources[0]);
	p->n_resources = 1;
	return 0;
}

int sim_policy_text(const struct sim_policy *a, char **ret_text, struct weir_err *err)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p;
	char *text;
	size_t len;
	int r = files_read(a->file, FILES_WRITTEN, &text, &len, err);

	if (r)
		return r;
	r = policy_parse_lab(text, len, a->file, true, files_read_beside, NULL, &p, &remarks);
	free(text);
	if (r) {
		*err = remarks.errors[0];
		return r;
	}
	r = add_resource(p) ? no_memory(err) : make_each(a, p, err);
	if (r == 0)
		r = make_text(a, p, ret_text, err);
	weir_policy_free(p);
	return r;
}
