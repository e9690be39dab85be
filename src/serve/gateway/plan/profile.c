/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/plan/profile.h"
#include "base/no-memory.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_MAX (1u << 20) /* bytes: of 8 rows of 14 sizes it has some thousand */

void gateway_digest(const char *text, size_t len, char ret[GATEWAY_DIGEST])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)text, len);
	sodium_bin2hex(ret, GATEWAY_DIGEST, hash, sizeof(hash));
}

static void drop(struct gateway_profile *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
		return;
	free(p->name);
	free(p->path);
	free(p);
}

void gateway_profiles_free(struct gateway_profiles *p)
{
	for (size_t i = 0; i < p->n; i++)
		drop(p->all[i]);
	free(p->all);
	*p = (struct gateway_profiles){0};
}

/* Return the path of a file beside the one in which its name stands, malloc'ed. */
static char *beside(struct weir_place at, const char *name)
{
	const char *slash = at.file ? strrchr(at.file, '/') : NULL;
	char *path;

	if (name[0] == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - at.file), at.file, name) < 0 ? NULL : path;
}

static int read_file(const char *path, char *text, size_t *ret_len, struct weir_err *err)
{
	FILE *f = fopen(path, "re");
	int rc = 0;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	*ret_len = fread(text, 1, PROFILE_MAX, f);
	if (ferror(f))
		rc = weir_err_set(err, -EIO, "%s: cannot be read", path);
	else if (*ret_len == PROFILE_MAX)
		rc = weir_err_set(err, -EFBIG, "%s: too large for a profile", path);
	fclose(f);
	return rc;
}

/* Read the profile of a resource; path: malloc'ed and taken. */
static int read_profile(const struct weir_resource *of, char *path, struct gateway_profile **ret,
	struct weir_err *err)
{
	struct gateway_profile *p = calloc(1, sizeof(*p));
	char *text = malloc(PROFILE_MAX);
	struct weir_err why = {"out of memory"};
	size_t len = 0;
	int rc = p && text && path ? 0 : -ENOMEM;

	if (rc == 0) {
		atomic_init(&p->references, 1);
		p->name = strdup(of->profile);
		rc = p->name ? read_file(path, text, &len, &why) : -ENOMEM;
	}
	if (rc == 0) {
		gateway_digest(text, len, p->digest);
		rc = estimate_read(text, len, path, &p->table, &why);
	}
	free(text);
	if (rc < 0) {
		free(p ? p->name : NULL);
		free(p);
		free(path);
		return weir_err_at(err, rc == -ENOMEM ? rc : -EINVAL, of->profile_at,
			"resource '%s': profile: %s", of->name, why.text);
	}
	p->path = path;
	*ret = p;
	return 0;
}

static struct gateway_profile *find(const struct gateway_profiles *was, const char *name)
{
	for (size_t i = 0; i < was->n; i++)
		if (was->all[i] && strcmp(was->all[i]->name, name) == 0)
			return was->all[i];
	return NULL;
}

static int make_one(const struct weir_resource *of, const struct gateway_profiles *was, bool own,
	bool reread, struct gateway_profile **ret, struct weir_err *err)
{
	struct gateway_profile *has = find(was, of->profile);

	if (has && !reread) {
		atomic_fetch_add_explicit(&has->references, 1, memory_order_relaxed);
		*ret = has;
		return 0;
	}
	if (!has && !own)
		return weir_err_at(err, -EINVAL, of->profile_at,
			"resource '%s': profile: another file than before: only the gateway's own "
			"policy file may name it (change that, and send SIGHUP)",
			of->name);
	return read_profile(
		of, own ? beside(of->profile_at, of->profile) : strdup(has->path), ret, err);
}

int gateway_profiles_make(const struct weir_policy *p, const struct gateway_profiles *was, bool own,
	bool reread, struct gateway_profiles *ret, struct weir_err *err)
{
	struct gateway_profiles to = {
		.all = calloc(p->n_resources + 1, sizeof(*to.all)), .n = p->n_resources};
	int rc = to.all ? 0 : no_memory(err);

	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		if (p->resources[i].profile)
			rc = make_one(&p->resources[i], was, own, reread, &to.all[i], err);
	if (rc < 0) {
		to.n = to.all ? to.n : 0;
		gateway_profiles_free(&to);
		return rc;
	}
	*ret = to;
	return 0;
}
