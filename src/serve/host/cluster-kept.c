/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/host/cluster-kept.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/aside.h"
#include "serve/loop/log.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME     "generations.json"
#define END_WAIT (2 * WEIR_SEC)

struct cluster_kept {
	struct aside *aside;
	char *folder, *cluster;
	json_t *all;  /* generations by server, as written */
	json_t *next; /* as they are being written; NULL: nothing is */
	struct cluster_kept_wait *waiting, *writing;
	struct aside_job job;
	struct weir_err err;
	int rc;
};

static int read_all(json_t *root, void *arg)
{
	struct cluster_kept *k = arg;
	const char *cluster = json_string_value(json_object_get(root, "cluster"));
	json_t *all = json_object_get(root, "generations");

	if (!cluster || !json_is_object(all))
		return -EINVAL;
	if (strcmp(cluster, k->cluster) == 0)
		json_object_update(k->all, all);
	return 0;
}

int cluster_kept_new(struct loop *l, const char *folder, const char *cluster,
	struct cluster_kept **ret_kept, struct weir_err *err)
{
	struct cluster_kept *k = calloc(1, sizeof(*k));
	int rc = 0;

	if (!k)
		return no_memory(err);
	k->folder = folder ? strdup(folder) : NULL;
	k->cluster = strdup(cluster);
	k->all = json_object();
	if ((folder && !k->folder) || !k->cluster || !k->all || aside_new(l, &k->aside) < 0)
		rc = no_memory(err);
	if (rc == 0 && folder)
		rc = state_file_load(folder, NAME, "generations", read_all, k, err);
	if (rc < 0)
		cluster_kept_free(k, NULL);
	else
		*ret_kept = k;
	return rc;
}

/* Give each to `drop`, or to its own `done`. */
static void each_wait(struct cluster_kept_wait *w, void (*drop)(struct cluster_kept_wait *w))
{
	while (w) {
		struct cluster_kept_wait *next = w->next;

		(drop ? drop : w->done)(w);
		w = next;
	}
}

void cluster_kept_free(struct cluster_kept *k, void (*drop)(struct cluster_kept_wait *w))
{
	if (!k)
		return;
	if (!aside_free(k->aside, END_WAIT))
		return; /* the disk does not answer: its memory stays */
	each_wait(k->waiting, drop);
	each_wait(k->writing, drop);
	json_decref(k->all);
	json_decref(k->next);
	free(k->folder);
	free(k->cluster);
	free(k);
}

uint64_t cluster_kept_get(const struct cluster_kept *k, const char *server)
{
	return (uint64_t)json_integer_value(json_object_get(k->all, server));
}

/* ---- written aside */

static void write_begin(struct cluster_kept *k);

static void write_run(struct aside_job *j)
{
	struct cluster_kept *k = container_of(j, struct cluster_kept, job);

	k->rc = state_file_save(k->folder, NAME, "generations",
		json_pack("{s:s, s:O}", "cluster", k->cluster, "generations", k->next), &k->err);
}

static void write_done(struct aside_job *j)
{
	struct cluster_kept *k = container_of(j, struct cluster_kept, job);
	struct cluster_kept_wait *w = k->writing;

	if (k->rc < 0)
		log_event(LOG_LEVEL_ERROR, "generation-not-kept", "why", k->err.text, NULL);
	json_decref(k->all);
	k->all = k->next;
	k->next = NULL;
	k->writing = NULL;
	each_wait(w, NULL);
	if (k->waiting)
		write_begin(k);
}

static void write_begin(struct cluster_kept *k)
{
	k->next = json_deep_copy(k->all);
	k->writing = k->waiting;
	k->waiting = NULL;
	for (struct cluster_kept_wait *w = k->writing; w; w = w->next)
		if (!w->cancelled && w->generation > (uint64_t)json_integer_value(
							     json_object_get(k->next, w->server)))
			json_object_set_new(
				k->next, w->server, json_integer((json_int_t)w->generation));
	k->job = (struct aside_job){.run = write_run, .done = write_done};
	aside_post(k->aside, &k->job);
}

bool cluster_kept_raise(struct cluster_kept *k, struct cluster_kept_wait *w)
{
	struct cluster_kept_wait **end = &k->waiting;

	if (!k->folder || w->generation <= cluster_kept_get(k, w->server))
		return false;
	while (*end)
		end = &(*end)->next;
	w->next = NULL;
	*end = w;
	if (!k->next)
		write_begin(k);
	return true;
}

static void cancel(struct cluster_kept_wait *w, const char *server)
{
	for (; w; w = w->next)
		if (strcmp(w->server, server) == 0) {
			w->cancelled = true;
			w->server = "";
		}
}

void cluster_kept_leave(struct cluster_kept *k, const char *server)
{
	cancel(k->waiting, server);
	cancel(k->writing, server);
}
