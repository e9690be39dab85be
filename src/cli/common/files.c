/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "cli/common/files.h"
#include "serve/peer/peer-key.h"
#include "base/array.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refused(const char *path, struct weir_err *err)
{
	return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
}

static int read_all(FILE *f, size_t most, char **ret_text, size_t *ret_len)
{
	size_t room = 65536, n = 0, got;
	char *text = malloc(room);

	if (!text)
		return -ENOMEM;
	while ((got = fread(text + n, 1, room - n - 1, f)) > 0) {
		n += got;
		if (room - n > 1)
			continue;
		if (n > most || array_grow(&text, &room, room + 1) < 0) {
			free(text);
			return n > most ? -EFBIG : -ENOMEM;
		}
	}
	if (ferror(f)) {
		int code = errno ? -errno : -EIO;

		free(text);
		return code;
	}
	text[n] = '\0';
	*ret_text = text;
	*ret_len = n;
	return 0;
}

int files_read(
	const char *path, size_t most, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *f = standard ? stdin : fopen(path, "re");
	int r;

	if (!f)
		return refused(path, err);
	errno = 0;
	r = read_all(f, most, ret_text, ret_len);
	if (!standard)
		fclose(f);
	if (r == -EFBIG)
		return weir_err_set(err, r, "%s: over %zu MiB", path, most >> 20);
	return r < 0 ? weir_err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int files_read_beside(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	const char *slash = strrchr(from, '/');
	char *path = NULL;
	int rc;

	if (name[0] == '/' || !slash)
		return files_read(name, FILES_WRITTEN, ret_text, ret_len, err);
	if (asprintf(&path, "%.*s/%s", (int)(slash - from), from, name) < 0)
		return no_memory(err);
	rc = files_read(path, FILES_WRITTEN, ret_text, ret_len, err);
	free(path);
	return rc;
}

static int check_trace(const char *path, struct weir_err *err)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &st) != 0)
		return refused(path, err);
	if (S_ISDIR(st.st_mode))
		return weir_err_set(err, -EISDIR, "%s: is a folder", path);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return weir_err_set(err, -EINVAL, "%s: neither a file nor a pipe", path);
	if ((uint64_t)st.st_size > FILES_RECORDED)
		return weir_err_set(
			err, -EFBIG, "%s: over 4 GiB; cut it into parts (split -C 4G)", path);
	return 0;
}

int files_read_trace(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	int r = check_trace(path, err);

	return r < 0 ? r : files_read(path, FILES_RECORDED, ret_text, ret_len, err);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int list_into(FILE *to, const char *top, const char *below);

/* List one file or folder; `name` is relative to `top`. */
static int list_one(FILE *to, const char *top, const char *name)
{
	char *full = NULL, *inner = NULL;
	struct stat st;
	int r = 0;

	if (asprintf(&full, "%s/%s", top, name) < 0)
		return -ENOMEM;
	if (lstat(full, &st) == 0 && S_ISDIR(st.st_mode)) {
		r = asprintf(&inner, "%s/", name) < 0 ? -ENOMEM : list_into(to, top, inner);
		free(inner);
	} else if (stat(full, &st) == 0 && S_ISREG(st.st_mode)) {
		fprintf(to, "%s\n", name);
	}
	free(full);
	return r;
}

/* List a folder; `below` is relative to `top`, and is empty or ends with '/'. */
static int list_into(FILE *to, const char *top, const char *below)
{
	struct dirent **list;
	char *path = NULL;
	int n, r = 0;

	if (asprintf(&path, "%s/%s", top, below) < 0)
		return -ENOMEM;
	n = scandir(path, &list, visible, alphasort);
	free(path);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char *name = NULL;

		if (r == 0)
			r = asprintf(&name, "%s%s", below, list[i]->d_name) < 0
				    ? -ENOMEM
				    : list_one(to, top, name);
		free(name);
		free(list[i]);
	}
	free(list);
	return r;
}

static int list_files(const char *folder, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	int r = to ? list_into(to, folder, "") : -ENOMEM;

	if (to && fclose(to) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0) {
		free(text);
		return weir_err_set(err, r, "%s: %s", folder, strerror(-r));
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int files_read_named(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/' ? list_files(path, ret_text, ret_len, err)
					   : files_read_trace(path, ret_text, ret_len, err);
}

int files_create(const char *path, FILE **ret_file, struct weir_err *err)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return refused(path, err);
	*ret_file = f;
	return 0;
}

int files_close(FILE *f, const char *path, int r, struct weir_err *err)
{
	bool bad = ferror(f);

	bad |= fclose(f) != 0;
	return r == 0 && bad ? weir_err_set(err, -EIO, "%s: cannot write", path) : r;
}

static int write_part(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "we");
	int r = 0;

	if (!f)
		return -errno;
	if (fwrite(text, 1, len, f) != len)
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	return r;
}

/*
 * Return true if the path does not exist or is a regular file, which may be replaced. A link leads
 * elsewhere, and a device must not become a file.
 */
static bool replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 || S_ISREG(st.st_mode);
}

/* Write the file under another name and rename it, so that it is replaced as a whole. */
static int write_whole(const char *path, const char *text, size_t len)
{
	const char *slash = strrchr(path, '/');
	char *part;
	int r;

	/* in the same folder; the file's name plus a suffix might be too long */
	if (asprintf(&part, "%.*s.weir-%ld.part", slash ? (int)(slash + 1 - path) : 0, path,
		    (long)getpid()) < 0)
		return -ENOMEM;
	r = write_part(part, text, len);
	if (r == 0 && rename(part, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(part);
	free(part);
	return r;
}

int files_write(const char *path, const char *text, size_t len, struct weir_err *err)
{
	int r = replaceable(path) ? write_whole(path, text, len) : write_part(path, text, len);

	return r < 0 ? weir_err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

void files_put_quoted(FILE *f, const char *text, size_t n)
{
	fputc('"', f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
	fputc('"', f);
}

#define TOKEN ((size_t)64 << 10) /* bytes of its file */

int files_read_token(const char *path, struct token *ret, struct weir_err *err)
{
	char *text;
	size_t n;
	int rc = files_read(path, TOKEN, &text, &n, err);

	if (rc < 0)
		return -EINVAL;
	rc = token_read(text, path, ret, err);
	explicit_bzero(text, n);
	free(text);
	return rc;
}

int files_write_key(const char *path, struct weir_err *err)
{
	struct peer_key key;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool bad;

	if (fd < 0)
		return refused(path, err);
	randombytes_buf(&key, sizeof(key));
	bad = write(fd, &key, sizeof(key)) != (ssize_t)sizeof(key);
	bad |= close(fd) != 0;
	peer_key_forget(&key);
	return bad ? weir_err_set(err, -EIO, "%s: cannot write", path) : 0;
}

int files_make_dir(const char *path, struct weir_err *err)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	struct stat st;

	if (n == 0)
		return weir_err_set(err, -EINVAL, "the folder needs a name");
	if (n >= sizeof(part))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return refused(part, err);
	}
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return weir_err_set(err, -ENOTDIR, "%s: %s", path, strerror(ENOTDIR));
	if (access(path, W_OK | X_OK) < 0)
		return refused(path, err);
	return 0;
}

int files_make_scratch(const char *use, char ret[FILES_SCRATCH], struct weir_err *err)
{
	int r;

	snprintf(ret, FILES_SCRATCH, "/tmp/weir-%s-XXXXXX", use);
	if (mkdtemp(ret))
		return 0;
	r = refused(ret, err);
	ret[0] = '\0';
	return r;
}

void files_remove_scratch(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0); /* fails for . and .. */
	if (d)
		closedir(d);
	rmdir(dir);
}
