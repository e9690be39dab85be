/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/snapshot/version.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void version_free(struct gateway_version *v)
{
	gateway_claims_free(&v->claims);
	gateway_plan_drop(v->plan);
	gateway_note_free(&v->untrue);
	if (v->owner) {
		gateway_version_drop(v->owner);
		free(v);
		return;
	}
	weir_policy_free(v->policy);
	free(v->bounds);
	free(v->of_parent);
	free(v->of_all);
	free(v->text);
	free(v->name);
	gateway_note_free(&v->remarks);
	gateway_profiles_free(&v->profiles);
	free(v);
}

static int derive(struct gateway_version *v, const struct weir_policy *p)
{
	struct policy_show s = {p, v->bounds, v->of_parent, v->of_all, NULL, 0};
	int rc = weir_policy_bounds(p, v->bounds);

	if (rc < 0)
		return rc;
	weir_policy_share(p, v->of_parent, v->of_all);
	return policy_show_widths(&s, &v->show);
}

int gateway_version_new(struct weir_policy *p, const char *text, const char *name,
	struct gateway_version **ret_version)
{
	struct gateway_version *v = calloc(1, sizeof(*v));
	size_t n = p->n_tenants + 1;

	if (!v)
		return -ENOMEM;
	atomic_init(&v->references, 1);
	v->bounds = calloc(n, sizeof(*v->bounds));
	v->of_parent = calloc(n, sizeof(*v->of_parent));
	v->of_all = calloc(n, sizeof(*v->of_all));
	v->text = strdup(text);
	v->name = strdup(name);
	if (!v->bounds || !v->of_parent || !v->of_all || !v->text || !v->name || derive(v, p) < 0) {
		version_free(v);
		return -ENOMEM;
	}
	v->policy = p;
	*ret_version = v;
	return 0;
}

int gateway_version_share(struct gateway_version *v, struct gateway_version **ret_version)
{
	struct gateway_version *to = malloc(sizeof(*to));

	if (!to)
		return -ENOMEM;
	*to = (struct gateway_version){.owner = gateway_version_hold(v->owner ? v->owner : v),
		.policy = v->policy,
		.bounds = v->bounds,
		.of_parent = v->of_parent,
		.of_all = v->of_all,
		.show = v->show,
		.text = v->text,
		.name = v->name,
		.remarks = v->remarks,
		.profiles = v->profiles};
	memcpy(to->digest, v->digest, sizeof(to->digest));
	atomic_init(&to->references, 1);
	*ret_version = to;
	return 0;
}

struct gateway_version *gateway_version_hold(struct gateway_version *v)
{
	atomic_fetch_add_explicit(&v->references, 1, memory_order_relaxed);
	return v;
}

void gateway_version_drop(struct gateway_version *v)
{
	if (v && atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) == 1)
		version_free(v);
}
