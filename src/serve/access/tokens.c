/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "serve/access/tokens.h"
#include "serve/loop/log.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX   "weir_" /* so that programs which search for secrets find them */
#define FILE_MAX ((size_t)1 << 20)
_Static_assert(TOKENS_HASH == crypto_hash_sha256_BYTES, "SHA-256");

void tokens_list_free(struct tokens_list *l)
{
	free(l->all);
	*l = (struct tokens_list){0};
}

void tokens_hash(const char *secret, unsigned char ret[TOKENS_HASH])
{
	crypto_hash_sha256(ret, (const unsigned char *)secret, strlen(secret));
}

/* ---- the text */

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < TOKENS_NAME &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-")];
}

static int parse_one(json_t *j, struct tokens_entry *to, struct weir_err *err)
{
	const char *name, *role, *hash;
	json_int_t made, end;
	size_t n;
	int r;

	if (json_unpack(j, "{s:s, s:s, s:s, s:I, s:I !}", "name", &name, "role", &role, "hash",
		    &hash, "made", &made, "end", &end) < 0)
		return weir_err_set(err, -EINVAL, "an entry is not {name, role, hash, made, end}");
	r = policy_role_read(role);
	if (!is_name(name) || r < 0 || end < 0)
		return weir_err_set(err, -EINVAL, "a name, a role or an end is wrong");
	if (strlen(hash) != 2 * TOKENS_HASH ||
		sodium_hex2bin(to->hash, TOKENS_HASH, hash, strlen(hash), NULL, &n, NULL) < 0 ||
		n != TOKENS_HASH)
		return weir_err_set(err, -EINVAL, "%s: the hash has not 64 digits", name);
	memcpy(to->name, name, strlen(name) + 1);
	to->role = (enum policy_role)r;
	to->made = made;
	to->end = end;
	return 0;
}

int tokens_parse(const char *text, size_t len, struct tokens_list *ret, struct weir_err *err)
{
	json_error_t fault;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &fault);
	struct tokens_list l = {0};
	int rc = 0;

	if (!root)
		return weir_err_set(err, -EINVAL, "line %d: %s", fault.line, fault.text);
	if (!json_is_array(root) || json_array_size(root) > TOKENS_MOST)
		rc = weir_err_set(err, -EINVAL, "not a list of at most %d tokens", TOKENS_MOST);
	else if (!(l.all = calloc(json_array_size(root) + 1, sizeof(*l.all))))
		rc = no_memory(err);
	for (size_t i = 0; rc == 0 && i < json_array_size(root); i++, l.n++)
		rc = parse_one(json_array_get(root, i), &l.all[i], err);
	json_decref(root);
	if (rc < 0)
		tokens_list_free(&l);
	else
		*ret = l;
	return rc;
}

static json_t *entry_json(const struct tokens_entry *e)
{
	char hash[2 * TOKENS_HASH + 1];

	sodium_bin2hex(hash, sizeof(hash), e->hash, TOKENS_HASH);
	return json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", e->name, "role",
		policy_role_name(e->role), "hash", hash, "made", (json_int_t)e->made, "end",
		(json_int_t)e->end);
}

/* ---- the file */

static int read_fd(int fd, char **ret_text, size_t *ret_len)
{
	char *text = malloc(FILE_MAX + 1);
	size_t len = 0;
	ssize_t n = 1;

	if (!text)
		return -ENOMEM;
	while (n > 0 && len <= FILE_MAX) {
		n = read(fd, text + len, FILE_MAX + 1 - len);
		if (n > 0)
			len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n < 0 || len > FILE_MAX) {
		int code = n < 0 ? -errno : -EFBIG;

		free(text);
		return code;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int tokens_read(const char *path, struct tokens_list *ret, struct weir_err *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc;
	struct weir_err why;
	struct stat st;
	char *text = NULL;
	size_t len = 0;

	*ret = (struct tokens_list){0};
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = weir_err_set(err, -EINVAL, "%s: not a regular file", path);
	else if (st.st_mode & S_IWOTH)
		rc = weir_err_set(err, -EINVAL, "%s: writable by all users; use chmod 600", path);
	else if ((rc = read_fd(fd, &text, &len)) < 0)
		weir_err_set(err, rc, "%s: %s", path, strerror(-rc));
	close(fd);
	if (rc < 0)
		return rc;
	rc = tokens_parse(text, len, ret, &why);
	free(text);
	return rc < 0 ? weir_err_set(err, rc, "%s: %s", path, why.text) : 0;
}

struct place { /* of a file, locked against other changes */
	char folder[PATH_MAX];
	const char *name;
	int lock;
};

static int place_lock(const char *path, struct place *ret, struct weir_err *err)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (n >= sizeof(ret->folder) || !(slash ? slash[1] : path[0]))
		return weir_err_set(err, -EINVAL, "%.200s: not the name of a file", path);
	memcpy(ret->folder, slash ? path : ".", slash ? n : 1);
	ret->folder[slash ? n : 1] = 0;
	if (slash == path)
		memcpy(ret->folder, "/", 2);
	ret->name = slash ? slash + 1 : path;
	if (mkdir(ret->folder, 0700) < 0 && errno != EEXIST)
		return weir_err_set(err, -errno, "%s: %s", ret->folder, strerror(errno));
	ret->lock = open(ret->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->lock < 0 || flock(ret->lock, LOCK_EX) < 0) {
		int code = -errno;

		if (ret->lock >= 0)
			close(ret->lock);
		return weir_err_set(err, code, "%s: %s", ret->folder, strerror(-code));
	}
	return 0;
}

static int write_list(const struct place *p, const struct tokens_list *l, struct weir_err *err)
{
	json_t *root = json_array();
	char *text;
	int rc;

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(root, entry_json(&l->all[i]));
	text = json_array_size(root) == l->n ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!text)
		return no_memory(err);
	rc = state_file_put(p->folder, p->name, text, strlen(text));
	free(text);
	return rc < 0 ? weir_err_set(err, rc, "%s/%s: %s", p->folder, p->name, strerror(-rc)) : 0;
}

static size_t find_name(const struct tokens_list *l, const char *name)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->all[i].name, name) != 0)
		i++;
	return i;
}

static void make_secret(char ret[TOKENS_SECRET])
{
	unsigned char bytes[32];

	randombytes_buf(bytes, sizeof(bytes));
	memcpy(ret, PREFIX, sizeof(PREFIX));
	sodium_bin2base64(ret + strlen(PREFIX), TOKENS_SECRET - strlen(PREFIX), bytes,
		sizeof(bytes), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_memzero(bytes, sizeof(bytes));
}

static int add_to(
	struct place *p, const char *path, const struct tokens_entry *e, struct weir_err *err)
{
	struct tokens_list l;
	int rc = tokens_read(path, &l, err);

	if (rc < 0)
		return rc;
	if (find_name(&l, e->name) < l.n)
		rc = weir_err_set(err, -EEXIST, "there is a token '%s' already", e->name);
	else if (l.n == TOKENS_MOST)
		rc = weir_err_set(err, -EINVAL, "there are %d tokens already", TOKENS_MOST);
	else if (!l.all && !(l.all = calloc(1, sizeof(*l.all))))
		rc = no_memory(err);
	if (rc == 0) {
		l.all[l.n++] = *e; /* tokens_parse leaves room for one */
		rc = write_list(p, &l, err);
	}
	tokens_list_free(&l);
	return rc;
}

int tokens_add(const char *path, const char *name, enum policy_role role, int64_t end,
	char ret_secret[TOKENS_SECRET], struct weir_err *err)
{
	struct tokens_entry e = {.role = role, .made = time(NULL), .end = end};
	struct place p;
	int rc;

	if (!is_name(name))
		return weir_err_set(err, -EINVAL,
			"the name of a token has 1 to %d letters, digits, '.', '_' and '-'",
			TOKENS_NAME - 1);
	if (sodium_init() < 0)
		return weir_err_set(err, -EIO, "libsodium does not start");
	rc = place_lock(path, &p, err);
	if (rc < 0)
		return rc;
	memcpy(e.name, name, strlen(name) + 1);
	make_secret(ret_secret);
	tokens_hash(ret_secret, e.hash);
	rc = add_to(&p, path, &e, err);
	close(p.lock);
	if (rc < 0)
		sodium_memzero(ret_secret, TOKENS_SECRET);
	return rc;
}

int tokens_remove(const char *path, const char *name, struct weir_err *err)
{
	struct tokens_list l;
	struct place p;
	size_t at;
	int rc = place_lock(path, &p, err);

	if (rc < 0)
		return rc;
	rc = tokens_read(path, &l, err);
	if (rc == 0 && (at = find_name(&l, name)) == l.n)
		rc = weir_err_set(err, -ENOENT, "there is no token '%.80s'", name);
	if (rc == 0) {
		memmove(&l.all[at], &l.all[at + 1], (l.n - at - 1) * sizeof(*l.all));
		l.n--;
		rc = write_list(&p, &l, err);
	}
	tokens_list_free(&l);
	close(p.lock);
	return rc;
}

/* ---- a server's view */

struct tokens {
	char *path;
	struct stat seen; /* of the file that was read; st_ino 0: none */
	struct tokens_list list;
};

int tokens_open(const char *path, struct tokens **ret_tokens)
{
	struct tokens *t = calloc(1, sizeof(*t));

	if (!t || !(t->path = strdup(path))) {
		free(t);
		return -ENOMEM;
	}
	*ret_tokens = t;
	return 0;
}

void tokens_close(struct tokens *t)
{
	if (!t)
		return;
	tokens_list_free(&t->list);
	free(t->path);
	free(t);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void read_again(struct tokens *t)
{
	struct tokens_list now;
	struct weir_err err;
	struct stat st;

	if (stat(t->path, &st) < 0)
		st = (struct stat){0};
	if (st.st_ino == t->seen.st_ino && st.st_dev == t->seen.st_dev &&
		st.st_size == t->seen.st_size && same_time(&st.st_mtim, &t->seen.st_mtim) &&
		same_time(&st.st_ctim, &t->seen.st_ctim))
		return;
	t->seen = st;
	if (tokens_read(t->path, &now, &err) < 0) {
		log_event(LOG_LEVEL_ERROR, "tokens-damaged", "why", err.text, "now",
			"none is taken", NULL);
		now = (struct tokens_list){0};
	}
	tokens_list_free(&t->list);
	t->list = now;
}

int tokens_find(struct tokens *t, const unsigned char hash[TOKENS_HASH], int64_t now,
	struct tokens_entry *ret)
{
	const struct tokens_entry *found = NULL;

	read_again(t);
	for (size_t i = 0; i < t->list.n; i++)
		if (sodium_memcmp(t->list.all[i].hash, hash, TOKENS_HASH) == 0)
			found = &t->list.all[i];
	if (!found)
		return -ENOENT;
	*ret = *found;
	return found->end && found->end <= now ? -ETIME : 0;
}
