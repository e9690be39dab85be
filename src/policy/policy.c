/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: the policy's memory and remarks, and the top level of its file. */
#include "policy/policy.h"
#include "base/no-memory.h"
#include "policy/by-size.h"
#include "policy/impl.h"
#include "policy/index.h"
#include "base/array.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory */

void *policy_alloc(struct policy_reading *r, size_t size)
{
	void *memory = arena_take(&r->policy->memory, 1, size);

	r->no_memory |= !memory;
	return memory;
}

void *policy_scratch(struct policy_reading *r, size_t n, size_t size)
{
	void *memory = calloc(n + 1, size);

	r->no_memory |= !memory;
	return memory;
}

const char *policy_string(struct policy_reading *r, const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = policy_alloc(r, len);

	return copy ? memcpy(copy, text, len) : NULL;
}

bool policy_grow(struct policy_reading *r, void **array, size_t n, size_t *room, size_t size)
{
	if (array_grow_to(array, room, n + 1, size) == 0)
		return true;
	r->no_memory = true;
	return false;
}

void weir_policy_free(struct weir_policy *p)
{
	if (!p)
		return;
	arena_free(&p->memory);
	free(p->tenants);
	free(p->resources);
	free(p->exports);
	free(p->folders);
	free(p->labs);
	free(p);
}

/* ---- remarks */

static struct weir_err *remark(size_t *n, struct weir_err *kept)
{
	return (*n)++ < WEIR_POLICY_REMARKS ? &kept[*n - 1] : NULL;
}

static struct weir_err *next_error(struct policy_reading *r)
{
	return remark(&r->remarks->n_errors, r->remarks->errors);
}

/* Format the message, cut to the room of a remark. */
#define WORDS(fmt)                                                                                 \
	char words[sizeof(((struct weir_err *)0)->text)];                                          \
	va_list args;                                                                              \
	va_start(args, fmt);                                                                       \
	vsnprintf(words, sizeof(words), fmt, args);                                                \
	va_end(args)

void policy_refuse(struct policy_reading *r, yamldoc_node at, const char *fmt, ...)
{
	WORDS(fmt);
	yamldoc_error(at, next_error(r), "%s", words);
}

void policy_refuse_at(struct policy_reading *r, struct weir_place at, const char *fmt, ...)
{
	WORDS(fmt);
	weir_err_at(next_error(r), 0, at, "%s", words);
}

void policy_warn_at(struct policy_reading *r, struct weir_place at, const char *fmt, ...)
{
	WORDS(fmt);
	weir_err_at(remark(&r->remarks->n_warnings, r->remarks->warnings), 0, at, "%s", words);
}

int policy_took(struct policy_reading *r, int rc)
{
	struct weir_err *to;

	if (rc == -ENOMEM)
		r->no_memory = true;
	else if (rc < 0 && rc != -ENOENT && (to = next_error(r)))
		*to = r->err;
	return rc;
}

/* ---- values */

static bool is_among(const char *key, const char *const *keys)
{
	while (*keys && strcmp(*keys, key) != 0)
		keys++;
	return *keys;
}

/* A limit whose value is missing must not mean "no limit". Unknown keys are refused elsewhere. */
static void refuse_nulls(struct policy_reading *r, yamldoc_node n, const char *const *keys)
{
	for (size_t i = 0; i < yamldoc_map_size(n); i++) {
		const char *key;
		yamldoc_node value = yamldoc_map_at(n, i, &key);

		if (yamldoc_kind(value) == YAMLDOC_NONE && is_among(key, keys))
			policy_refuse(
				r, value, "has no value; leave the key out if that is intended");
	}
}

bool policy_keys(struct policy_reading *r, yamldoc_node n, const char *const *keys)
{
	size_t from = 0;

	while (policy_took(r, yamldoc_map_from(n, keys, &from, &r->err)) != 0)
		if (yamldoc_kind(n) != YAMLDOC_MAP)
			return false;
	refuse_nulls(r, n, keys);
	return true;
}

/* Nodes of one file are adjacent: copy the name when it changes. Find the last copy by its text,
 * since documents come and go. */
struct weir_place policy_place(struct policy_reading *r, yamldoc_node n)
{
	struct weir_place at = yamldoc_place(n);

	if (at.file && (!r->file || strcmp(r->file, at.file) != 0))
		r->file = policy_string(r, at.file);
	at.file = at.file ? r->file : NULL;
	return at;
}

const char *policy_get_string(struct policy_reading *r, yamldoc_node map, const char *key)
{
	const char *text;

	if (policy_took(r, yamldoc_string(map, key, &text, &r->err)) != 0)
		return NULL;
	if (!text[0]) {
		policy_refuse(r, yamldoc_get(map, key), "must not be empty");
		return NULL;
	}
	return policy_string(r, text);
}

/* ---- the top level */

static const char *const top_keys[] = {"listen", "classes", "resources", "exports", "tenants",
	"default", "enforce", "api", "token", "access", "state", "recordings", "threads", "memory",
	"log", "tls", "peers", "cluster", "client_timeout", "version", "links", "together",
	"network", NULL};

/* Check the version of the format: another version is refused, however similar it looks. */
static void read_version(struct policy_reading *r, yamldoc_node map)
{
	int64_t version = 1;

	if (policy_took(r, yamldoc_int(map, "version", 0, INT64_MAX, &version, &r->err)) == 0 &&
		version != 1)
		policy_refuse(r, yamldoc_get(map, "version"),
			"must be 1: this program knows no other format");
}

/* Keep the text, to show the policy elsewhere, without that file. */
static void keep_text(struct policy_reading *r, const char *text, size_t len)
{
	char *copy = policy_alloc(r, len + 1);

	if (!copy)
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	r->policy->tenants_text = copy;
}

/* Return the name in messages of a file next to `from`, relative to the same folder. */
static const char *name_beside(struct policy_reading *r, const char *from, const char *name)
{
	const char *slash = strrchr(from, '/');
	size_t folder = slash ? (size_t)(slash - from) + 1 : 0, len = strlen(name);
	char *joined;

	if (!folder || name[0] == '/')
		return name;
	joined = policy_alloc(r, folder + len + 1);
	if (!joined)
		return name;
	memcpy(joined, from, folder);
	memcpy(joined + folder, name, len + 1);
	return joined;
}

/* Read a file of tenants: a list of them, or a map with the key `tenants`. It may not name another file. */
static void read_file(struct policy_reading *r, yamldoc_node root)
{
	static const char *const keys[] = {"tenants", "version", NULL};

	if (yamldoc_kind(root) == YAMLDOC_MAP && policy_keys(r, root, keys)) {
		read_version(r, root);
		root = yamldoc_get(root, "tenants");
	}
	if (root.id)
		policy_tenant_read(r, root);
}

/* Read `tenants: other.yaml`. */
static void read_other(struct policy_reading *r, yamldoc_node from)
{
	const char *name = yamldoc_text(from);
	struct yamldoc *doc;
	struct weir_err err;
	char *text;
	size_t len;
	int rc;

	if (!r->reader) {
		policy_refuse(r, from, "another file ('%s') cannot be read from here", name);
		return;
	}
	rc = r->reader(r->reader_arg, yamldoc_place(from).file, name, &text, &len, &err);
	if (rc < 0) {
		policy_refuse(r, from, "%s", err.text);
		return;
	}
	name = name_beside(r, yamldoc_place(from).file, name);
	rc = yamldoc_parse(text, len, name, &doc, &err);
	if (rc == 0)
		keep_text(r, text, len);
	free(text);
	if (policy_took(r, rc) != 0)
		return;
	yamldoc_node root = yamldoc_root(doc);
	/* Truncated, or not yet written: do not take it for a policy in which all clients are
	 * equal. */
	if (yamldoc_kind(root) == YAMLDOC_MAP && yamldoc_map_size(root) == 0)
		policy_refuse(r, from, "%s is empty", name);
	read_file(r, root);
	yamldoc_free(doc);
}

static void read_tenants(struct policy_reading *r, yamldoc_node tenants)
{
	if (yamldoc_kind(tenants) == YAMLDOC_SCALAR && yamldoc_text(tenants)[0])
		read_other(r, tenants);
	else if (tenants.id)
		policy_tenant_read(r, tenants);
}

static void read_default(struct policy_reading *r, yamldoc_node n)
{
	struct weir_policy *p = r->policy;
	const char *path = yamldoc_text(n);
	int i;

	if (!n.id)
		return;
	if (!path) {
		policy_refuse(r, n, "must be the path of one tenant, or 'refuse'");
		return;
	}
	if (strcmp(path, "refuse") == 0)
		return;
	i = weir_policy_find(p, path);
	if (i < 0) {
		policy_refuse(r, n, "no tenant '%s' (a path is written 'parent/child')", path);
	} else if (p->tenants[i].first_child >= 0) {
		policy_refuse(
			r, n, "'%s' has children, and only tenants without take requests", path);
	} else {
		p->tenants[i].is_default = true;
		p->default_tenant = i;
	}
}

bool policy_key_is_resources(const char *key)
{
	const char *near = policy_resource_near(key);

	if (!near || is_among(key, top_keys))
		return false;
	return strcmp(near, key) == 0 || !weir_err_near(key, top_keys);
}

static void read_top(struct policy_reading *r, yamldoc_node root)
{
	if (!policy_keys(r, root, top_keys))
		return;
	read_version(r, root);
	policy_took(r, yamldoc_bool(root, "enforce", &r->policy->enforce, &r->err));
	policy_serve_read(r, root);
	policy_hosts_read(r, root);
	policy_cluster_read(r, root);
	policy_class_read(r, yamldoc_get(root, "classes"));
	policy_resource_read(r, yamldoc_get(root, "resources"));
	policy_net_read(r, yamldoc_get(root, "network"));
	policy_plan_read_links(r, yamldoc_get(root, "links"));
	policy_resource_read_exports(r, yamldoc_get(root, "exports"));
	read_tenants(r, yamldoc_get(root, "tenants"));
	policy_plan_read_together(r, yamldoc_get(root, "together"));
	read_default(r, yamldoc_get(root, "default"));
}

/* ---- what is called from outside */

static int begin(struct policy_reading *r, struct weir_policy_remarks *remarks, bool lab,
	weir_policy_reader *reader, void *reader_arg)
{
	*r = (struct policy_reading){
		.remarks = remarks, .reader = reader, .reader_arg = reader_arg};
	remarks->n_errors = remarks->n_warnings = 0;
	r->policy = calloc(1, sizeof(*r->policy));
	if (!r->policy)
		return -ENOMEM;
	r->policy->lab = lab;
	r->policy->enforce = true;
	r->policy->default_tenant = -1;
	r->policy->log_level = WEIR_POLICY_LOG_INFO;
	r->policy->client_timeout = 30 * WEIR_SEC; /* the kernel's NBD client */
	return 0;
}

static int end(struct policy_reading *r, struct weir_policy **ret_policy)
{
	if (!r->no_memory)
		policy_index_make(r);
	if (!r->no_memory) {
		policy_size_resolve(r->policy, NULL, NULL);
		policy_check(r);
	}
	if (!r->no_memory && r->remarks->n_errors == 0) {
		*ret_policy = r->policy;
		return 0;
	}
	weir_policy_free(r->policy);
	if (r->no_memory && r->remarks->n_errors == 0)
		weir_err_set(next_error(r), 0, "out of memory");
	return r->no_memory ? -ENOMEM : -EINVAL;
}

/* Parse a text and read it with `read`. */
static void read_text(struct policy_reading *r, const struct policy_text *t,
	void (*read)(struct policy_reading *r, yamldoc_node root))
{
	struct yamldoc *doc;

	if (policy_took(r, yamldoc_parse(t->text, t->len, t->name, &doc, &r->err)) == 0) {
		read(r, yamldoc_root(doc));
		yamldoc_free(doc);
	}
}

int policy_parse_more(const struct policy_text *policy, const struct policy_text *more,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	size_t *ret_first, struct weir_policy_remarks *ret_remarks)
{
	struct policy_reading r;
	int rc = begin(&r, ret_remarks, false, reader, reader_arg);

	if (rc < 0)
		return rc;
	read_text(&r, policy, read_top);
	*ret_first = r.policy->n_tenants;
	read_text(&r, more, read_file);
	return end(&r, ret_policy);
}

int policy_parse_tenants(const struct policy_text *tenants, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks)
{
	struct policy_reading r;
	int rc = begin(&r, ret_remarks, false, NULL, NULL);

	if (rc < 0)
		return rc;
	r.tenants_only = true;
	read_text(&r, tenants, read_file);
	return end(&r, ret_policy);
}

int policy_parse_lab(const char *text, size_t len, const char *name, bool lab,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks)
{
	struct policy_reading r;
	int rc = begin(&r, ret_remarks, lab, reader, reader_arg);

	if (rc < 0)
		return rc;
	read_text(&r, &(struct policy_text){text, len, name}, read_top);
	return end(&r, ret_policy);
}

int weir_policy_parse_all(const char *text, size_t len, const char *name,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks)
{
	return policy_parse_lab(
		text, len, name, false, reader, reader_arg, ret_policy, ret_remarks);
}

/* Pass on the first error of the remarks, and free them. */
static int first_error(int rc, struct weir_policy_remarks *remarks, struct weir_err *err)
{
	if (rc < 0 && err) {
		if (remarks && remarks->n_errors)
			*err = remarks->errors[0];
		else
			no_memory(err);
	}
	free(remarks);
	return rc;
}

int weir_policy_parse(const char *text, size_t len, const char *name,
	struct weir_policy **ret_policy, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = malloc(sizeof(*remarks));
	int rc = remarks ? weir_policy_parse_all(text, len, name, NULL, NULL, ret_policy, remarks)
			 : -ENOMEM;

	return first_error(rc, remarks, err);
}

int policy_node_parse(yamldoc_node root, weir_policy_reader *reader, void *reader_arg,
	struct weir_policy **ret_policy, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = malloc(sizeof(*remarks));
	struct policy_reading r;
	int rc = remarks ? begin(&r, remarks, true, reader, reader_arg) : -ENOMEM;

	if (rc == 0) {
		read_top(&r, root);
		rc = end(&r, ret_policy);
	}
	return first_error(rc, remarks, err);
}

int policy_part_read(void (*read)(struct policy_reading *r, yamldoc_node n, void *to),
	yamldoc_node n, void *to, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = malloc(sizeof(*remarks));
	struct policy_reading r;
	int rc = remarks ? begin(&r, remarks, true, NULL, NULL) : -ENOMEM;

	if (rc == 0) {
		read(&r, n, to);
		rc = r.no_memory ? -ENOMEM : remarks->n_errors ? -EINVAL : 0;
		weir_policy_free(r.policy);
	}
	return first_error(rc, remarks, err);
}

int weir_policy_find(const struct weir_policy *p, const char *path)
{
	if (p->index)
		return policy_index_tenant(p, path);
	for (size_t i = 0; i < p->n_tenants; i++)
		if (strcmp(p->tenants[i].path, path) == 0)
			return (int)i;
	return -ENOENT;
}

size_t weir_policy_tenants(const struct weir_policy *p)
{
	return p->n_tenants;
}

const struct weir_tenant *weir_policy_tenant(const struct weir_policy *p, size_t i)
{
	return &p->tenants[i];
}

const struct weir_resource *weir_policy_resource(const struct weir_policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (!name || strcmp(p->resources[i].name, name) == 0)
			return &p->resources[i];
	return NULL;
}
