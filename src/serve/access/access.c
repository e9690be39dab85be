/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "policy/pattern.h"
#include "serve/access/access.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TOKEN_MIN  16 /* characters: 64 bits of hex; a shorter one could be guessed */
#define TOKEN_MAX  512
#define GROUPS_MAX 1024
#define TLS_FILES  3

struct rule { /* of the policy, looked up */
	bool is_group;
	unsigned id;
	enum policy_role role;
};

struct access {
	bool has_token;
	unsigned char token[TOKENS_HASH];
	struct tokens *tokens; /* NULL: no file */
	char *tokens_file;
	bool takes_tokens; /* the policy names the file, or it had some at the start */
	struct rule *rules;
	size_t n_rules;
	struct policy_access_client *certs; /* owned, with their patterns */
	size_t n_certs;
	char *tls_files[TLS_FILES]; /* cert, key, ca; NULL: none */
	struct stat tls_seen[TLS_FILES];
	struct tls *tls;
};

/* ---- the one token */

static int read_token(struct access *a, const char *file, struct weir_err *err)
{
	char line[TOKEN_MAX + 1] = "";
	FILE *f = fopen(file, "re");
	size_t n;
	int rc = 0;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", file, strerror(errno));
	setvbuf(f, NULL, _IONBF, 0); /* no copy stays in a buffer */
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	n = strcspn(line, "\r\n");
	line[n] = 0;
	if (n < TOKEN_MIN || n >= TOKEN_MAX)
		rc = weir_err_set(err, -EINVAL,
			"%s: the token must be one line of %d to %d characters, not %zu", file,
			TOKEN_MIN, TOKEN_MAX - 1, n);
	else
		tokens_hash(line, a->token);
	a->has_token = rc == 0;
	sodium_memzero(line, sizeof(line));
	sodium_stackzero(4096);
	return rc;
}

/* ---- users, groups, certificates */

static int look_up(const struct policy_access_client *c, struct rule *to, struct weir_err *err)
{
	const char *name = c->group ? c->group : c->user;
	const struct passwd *user = c->user ? getpwnam(c->user) : NULL;
	const struct group *group = c->group ? getgrnam(c->group) : NULL;
	char *end;
	unsigned long id = strtoul(name, &end, 10);

	*to = (struct rule){.is_group = c->group, .role = c->role};
	if (user || group)
		to->id = user ? user->pw_uid : group->gr_gid;
	else if (!*end && id < UINT32_MAX)
		to->id = (unsigned)id;
	else
		return weir_err_set(err, -EINVAL, "access: there is no %s '%s'",
			c->group ? "group" : "user", name);
	return 0;
}

static int read_clients(struct access *a, const struct policy_access *p, struct weir_err *err)
{
	int rc = 0;

	a->rules = calloc(p->n_clients + 1, sizeof(*a->rules));
	a->certs = calloc(p->n_clients + 1, sizeof(*a->certs));
	if (!a->rules || !a->certs)
		return no_memory(err);
	for (size_t i = 0; rc == 0 && i < p->n_clients; i++) {
		const struct policy_access_client *c = &p->clients[i];

		if (!c->cert) {
			rc = look_up(c, &a->rules[a->n_rules], err);
			a->n_rules += rc == 0;
		} else {
			a->certs[a->n_certs].role = c->role;
			a->certs[a->n_certs].cert = strdup(c->cert);
			rc = a->certs[a->n_certs++].cert ? 0 : no_memory(err);
		}
	}
	return rc;
}

static void add_role(struct access_who *to, enum policy_role role)
{
	if (role > to->role)
		to->role = role;
}

static bool in_group(int fd, gid_t own, gid_t wanted)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);

	if (own == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(*groups); i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

void access_unix(const struct access *a, int fd, struct access_who *ret)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	*ret = (struct access_who){.by = "unix"};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		snprintf(ret->name, sizeof(ret->name), "an unknown user");
		return;
	}
	snprintf(ret->name, sizeof(ret->name), "uid %u", peer.uid);
	/* Without rules the permissions of the socket's file decide. Root, and the user of the server, can do everything without
	 * the API. */
	if (!a->n_rules || peer.uid == 0 || peer.uid == geteuid())
		ret->role = POLICY_ROLE_ADMIN;
	for (size_t i = 0; i < a->n_rules; i++) {
		const struct rule *r = &a->rules[i];

		if (r->is_group ? in_group(fd, peer.gid, r->id) : r->id == peer.uid)
			add_role(ret, r->role);
	}
}

void access_cert(const struct access *a, const char *name, struct access_who *ret)
{
	*ret = (struct access_who){.by = "certificate"};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	for (size_t i = 0; i < a->n_certs; i++)
		if (policy_pattern_fits(a->certs[i].cert, name))
			add_role(ret, a->certs[i].role);
}

/* ---- tokens */

static int ended(const struct tokens_entry *e, struct weir_err *err)
{
	time_t at = e->end;
	char when[40];
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	return weir_err_set(err, -EACCES, "the token '%s' has ended on %s", e->name, when);
}

int access_token(struct access *a, const char *header, struct access_who *ret, struct weir_err *err)
{
	unsigned char hash[TOKENS_HASH];
	struct tokens_entry e;
	int rc = -ENOENT;

	*ret = (struct access_who){.by = "none"};
	if (!header || strncasecmp(header, "Bearer ", 7) != 0)
		return weir_err_set(err, -EACCES, "the token is missing or wrong");
	header += 7;
	header += strspn(header, " ");
	tokens_hash(header, hash);
	if (a->has_token && sodium_memcmp(hash, a->token, sizeof(hash)) == 0) {
		*ret = (struct access_who){POLICY_ROLE_ADMIN, "token", "token"};
		return 0;
	}
	if (a->tokens)
		rc = tokens_find(a->tokens, hash, time(NULL), &e);
	if (rc == -ETIME)
		return ended(&e, err);
	if (rc < 0)
		return weir_err_set(err, -EACCES, "the token is missing or wrong");
	*ret = (struct access_who){.role = e.role, .by = "token"};
	memcpy(ret->name, e.name, sizeof(e.name));
	return 0;
}

bool access_takes_tcp(const struct access *a)
{
	return a->has_token || a->takes_tokens || a->n_certs;
}

const char *access_tokens_file(const struct access *a)
{
	return a->tokens_file;
}

/* ---- TLS */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_tls(struct access *a, struct weir_err *err)
{
	const struct tls_config c = {
		.cert = a->tls_files[0], .key = a->tls_files[1], .ca = a->tls_files[2]};
	struct tls *now;
	int rc;

	for (size_t i = 0; i < TLS_FILES; i++)
		if (!a->tls_files[i] || stat(a->tls_files[i], &a->tls_seen[i]) < 0)
			a->tls_seen[i] = (struct stat){0};
	rc = tls_new(&c, true, &now, err);
	if (rc < 0)
		return rc;
	tls_free(a->tls);
	a->tls = now;
	return 0;
}

bool access_has_tls(const struct access *a)
{
	return a->tls;
}

struct tls *access_tls(struct access *a)
{
	bool same = true;
	struct weir_err err;
	struct stat st;

	for (size_t i = 0; a->tls && i < TLS_FILES; i++)
		if (a->tls_files[i] && stat(a->tls_files[i], &st) == 0)
			same &= same_file(&st, &a->tls_seen[i]);
	if (!same && read_tls(a, &err) < 0)
		log_event(LOG_LEVEL_WARNING, "api-tls-refused", "why", err.text, "now",
			"the certificate before is used", NULL);
	return a->tls ? tls_ref(a->tls) : NULL;
}

/* ---- start and end */

static int open_tokens(struct access *a, const struct access_config *c, struct weir_err *err)
{
	const char *file = c->policy ? c->policy->tokens : NULL;
	struct tokens_list all;
	int rc;

	if (!file && !c->state)
		return 0;
	if ((file ? asprintf(&a->tokens_file, "%s", file)
		  : asprintf(&a->tokens_file, "%s/tokens", c->state)) < 0) {
		a->tokens_file = NULL;
		return no_memory(err);
	}
	rc = tokens_read(a->tokens_file, &all, err); /* report errors in it now */
	if (rc < 0)
		return rc;
	a->takes_tokens = file || all.n;
	tokens_list_free(&all);
	return tokens_open(a->tokens_file, &a->tokens) < 0 ? no_memory(err) : 0;
}

static int open_secrets(struct access *a, const struct access_config *c, struct weir_err *err)
{
	int rc = sodium_init() < 0 ? weir_err_set(err, -EIO, "libsodium does not start") : 0;

	if (rc == 0 && c->token_file)
		rc = read_token(a, c->token_file, err);
	return rc == 0 ? open_tokens(a, c, err) : rc;
}

int access_check(const struct access_config *c, struct weir_err *err)
{
	struct access a = {0};
	int rc = open_secrets(&a, c, err);

	tokens_close(a.tokens);
	free(a.tokens_file);
	return rc;
}

static int open_all(struct access *a, const struct access_config *c, struct weir_err *err)
{
	const struct policy_access *p = c->policy;
	const char *files[TLS_FILES] = {
		p ? p->tls.cert : NULL, p ? p->tls.key : NULL, p ? p->tls.ca : NULL};
	int rc = open_secrets(a, c, err);

	if (rc == 0 && p)
		rc = read_clients(a, p, err);
	for (size_t i = 0; rc == 0 && i < TLS_FILES; i++)
		if (files[i] && !(a->tls_files[i] = strdup(files[i])))
			rc = no_memory(err);
	return rc == 0 && files[0] ? read_tls(a, err) : rc;
}

int access_new(const struct access_config *c, struct access **ret_access, struct weir_err *err)
{
	struct access *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return no_memory(err);
	rc = open_all(a, c, err);
	if (rc < 0) {
		access_free(a);
		return rc;
	}
	*ret_access = a;
	return 0;
}

void access_free(struct access *a)
{
	if (!a)
		return;
	tokens_close(a->tokens);
	free(a->tokens_file);
	free(a->rules);
	for (size_t i = 0; i < a->n_certs; i++)
		free((char *)(uintptr_t)a->certs[i].cert);
	free(a->certs);
	for (size_t i = 0; i < TLS_FILES; i++)
		free(a->tls_files[i]);
	tls_free(a->tls);
	free(a);
}
