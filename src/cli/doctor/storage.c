/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storage: the storage that a policy names, the queues of its disks, its folders and its sockets.
 *
 * METHOD  A back end is opened as the gateway opens it, but read-only and without locks, and closed again. A file that another program
 *         has locked is found by asking for its lock (F_OFD_GETLK), which takes none. While a gateway answers, the locks are its own.
 */
#include "cli/doctor/doctor.h"
#include "cli/serve/serve.h"
#include "serve/back/back.h"
#include "serve/back/name.h"
#include "serve/loop/stream.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE (2 * WEIR_SEC)    /* for an upstream to answer */
#define POOL     ((size_t)8 << 20) /* bytes */
#define LOCKS    100               /* QEMU's lock bytes: serve/back/file-guard.c */
#define N_LOCKS  110
#define LOST_MAX 8 /* upstreams that do not answer; the rest would take as long */

struct storage {
	struct doctor *doctor;
	struct loop *loop;
	struct chunk_pool *pool;
	size_t fine, lost;
};

/* Return true if another program has locked bytes of the file as QEMU and Weir do. */
static bool is_locked(int fd)
{
	struct flock l = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS, .l_len = N_LOCKS};

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* Compare the depth with the queue of the disk below the file. */
static void check_queue(struct doctor *d, const struct weir_resource *r, const struct stat *st)
{
	char disk[SERVE_DISK], path[PATH_MAX], subject[128];
	unsigned queue = 0;
	FILE *f;

	serve_disk_of(S_ISBLK(st->st_mode) ? st->st_rdev : st->st_dev, disk);
	if (strncmp(disk, "disk ", 5) != 0)
		return;
	snprintf(path, sizeof(path), "/sys/class/block/%s/queue/nr_requests", disk + 5);
	f = fopen(path, "re");
	if (!f)
		return;
	snprintf(subject, sizeof(subject), "resource '%s'", r->name);
	if (fscanf(f, "%u", &queue) == 1 && r->depth > queue)
		doctor_say(d, DOCTOR_WARNING, subject, "state a smaller `depth`",
			"depth %.0f is more than the queue of %s, which holds %u: requests wait "
			"behind the "
			"gate, where weights do not act",
			r->depth, disk, queue);
	fclose(f);
}

static void check_file(struct doctor *d, const struct weir_resource *r, const char *subject,
	const char *back, bool read_only)
{
	const char *rest = back + strlen("file:");
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)(back_query(rest) - rest), rest);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return; /* back_open has said why */
	if (!read_only && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
		doctor_say(d, DOCTOR_ERROR, subject,
			"let this user write it, or state read_only: true",
			"%s: cannot be written by this user: %s", path, strerror(errno));
	if (!r->shared && !d->served && is_locked(fd))
		doctor_say(d, DOCTOR_ERROR, subject,
			"end it, or state lock: false to share the file",
			"%s: another program has it open", path);
	if (fstat(fd, &st) == 0)
		check_queue(d, r, &st);
	close(fd);
}

static void check_back(
	struct storage *s, const struct weir_resource *r, const struct weir_export *e)
{
	const char *name = e ? e->back : r->back;
	bool read_only = r->read_only || (e && e->read_only);
	struct back_config c = {.patience = PATIENCE,
		.loop = s->loop,
		.pool = s->pool,
		.connections = 1,
		.read_only = true,
		.tls_ca = r->tls.ca,
		.tls_cert = r->tls.cert,
		.tls_key = r->tls.key,
		.tls_psk = r->tls.psk};
	struct back *b = NULL;
	struct weir_err err;
	char subject[256];

	snprintf(subject, sizeof(subject), "%s '%s'", e ? "volume" : "resource",
		e ? e->name : r->name);
	if (strncmp(name, "nbd", 3) == 0 && s->lost >= LOST_MAX)
		return;
	if (back_open(name, &c, &b, &err) < 0) {
		doctor_say(s->doctor, DOCTOR_ERROR, subject, NULL, "%s", err.text);
	} else if (b->state != BACK_UP) {
		doctor_say(s->doctor, DOCTOR_ERROR, subject, "its clients wait until it is reached",
			"%s: does not answer", name);
		s->lost++;
	} else {
		s->fine++;
		if (!b->info.can_flush && !read_only && strncmp(name, "memory", 6) != 0 &&
			strncmp(name, "model", 5) != 0)
			doctor_say(s->doctor, DOCTOR_WARNING, subject, NULL,
				"%s: cannot flush: writes may be lost when it loses power", name);
	}
	back_free(b);
	if (strncmp(name, "file:", 5) == 0)
		check_file(s->doctor, r, subject, name, read_only);
}

static void check_backs(struct doctor *d, const struct weir_policy *p)
{
	struct storage s = {.doctor = d};

	if (loop_new(&s.loop) < 0 || chunk_pool_new(POOL, &s.pool) < 0) {
		d->no_memory = true;
	} else {
		loop_poll(s.loop);
		for (size_t i = 0; i < p->n_resources; i++)
			if (p->resources[i].back)
				check_back(&s, &p->resources[i], NULL);
		for (size_t i = 0; i < p->n_exports; i++)
			if (p->exports[i].back)
				check_back(
					&s, &p->resources[p->exports[i].resource], &p->exports[i]);
		if (s.lost >= LOST_MAX)
			doctor_say(d, DOCTOR_NOTE, "upstreams", NULL,
				"%zu do not answer: the others were not tried", s.lost);
		if (s.fine)
			doctor_say(d, DOCTOR_OK, "storage", NULL, "%zu back end%s opened", s.fine,
				s.fine == 1 ? "" : "s");
	}
	if (s.pool)
		chunk_pool_free(s.pool);
	if (s.loop)
		loop_free(s.loop);
}

/* Return true if the gateway makes the folder at its start: only its last part is missing. */
static bool can_be_made(const char *path)
{
	char above[PATH_MAX], *slash;

	snprintf(above, sizeof(above), "%s", path);
	slash = strrchr(above, '/');
	if (slash)
		slash[slash == above] = '\0';
	return faccessat(AT_FDCWD, slash ? above : ".", W_OK | X_OK, AT_EACCESS) == 0;
}

static void check_folder(struct doctor *d, const char *subject, const char *path)
{
	struct stat st;

	if (!path)
		return;
	if (stat(path, &st) < 0 && errno == ENOENT && strcmp(subject, "state") == 0 &&
		can_be_made(path))
		doctor_say(
			d, DOCTOR_NOTE, subject, NULL, "%s is made when the gateway starts", path);
	else if (stat(path, &st) < 0)
		doctor_say(d, DOCTOR_ERROR, subject, "make it, for the gateway's user", "%s: %s",
			path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		doctor_say(d, DOCTOR_ERROR, subject, NULL, "%s: not a folder", path);
	else if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
		doctor_say(d, DOCTOR_ERROR, subject, "let this user write it", "%s: %s", path,
			strerror(errno));
}

/* Say if the folder of a unix socket is missing. Whether a port is free shows when the gateway starts. */
static void check_socket(struct doctor *d, const char *address)
{
	const char *path = strstr(address, "unix:");
	char folder[PATH_MAX], *slash;

	if (!path || d->served)
		return;
	snprintf(folder, sizeof(folder), "%s", path + 5);
	folder[strcspn(folder, "?")] = '\0';
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	slash[slash == folder] = '\0';
	check_folder(d, "listen", folder);
}

void doctor_storage(struct doctor *d)
{
	const struct weir_policy *p = d->policy;

	if (!p)
		return;
	check_backs(d, p);
	for (size_t i = 0; i < p->n_folders; i++)
		check_folder(d, "volumes", p->folders[i].dir);
	check_folder(d, "state", p->state);
	check_folder(d, "recordings", p->recordings);
	for (size_t i = 0; i < p->n_listen; i++)
		check_socket(d, p->listen[i]);
	for (size_t i = 0; i < p->n_api; i++)
		check_socket(d, p->api[i]);
}
