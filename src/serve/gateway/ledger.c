/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger: AdapTBF's loans, gathered from the resources, stored in the state folder, and read again.
 *
 * METHOD  Every second in which AdapTBF stepped at a resource, the main thread asks every resource
 *         for a copy, and passes it to a writer thread: no other thread waits for a disk. So a kill
 *         loses the last second, and the log of the next start shows the time of the saved state.
 *         An orderly end loses nothing. If copying or writing takes long, it is done less often: it
 *         takes at most a twentieth of the time.
 *
 * FILE    FOLDER/ledger: a line `weir-ledger 1 LENGTH HASH`, then LENGTH bytes of JSON, {"saved":
 *         UNIX SECONDS, "resources": […]} with the content of GET /v1/ledger, and nothing more.
 *         HASH is BLAKE2b-256 of these bytes, in hexadecimal. A damaged file is renamed and logged;
 *         the gateway then begins with an empty ledger.
 */
#include "base/container.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/ledger.h"
#include "serve/handover/record.h"
#include "serve/show/facts-json.h"
#include "serve/resource/control.h"
#include "serve/loop/log.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME    "ledger"
#define FORMAT  "weir-ledger 1 "
#define EVERY   WEIR_SEC
#define TIMES   20              /* pause, in times the duration of the last save */
#define LONGEST (60 * WEIR_SEC) /* … but not longer */
/* bytes: 65,536 jobs and their loans; larger files are neither written nor read */
#define LARGEST ((size_t)64 << 20)
#define HASH    32

struct kept { /* one entry of the file */
	const char *resource;
	struct facts facts;
	bool taken; /* by the resource */
};

struct gateway_ledger {
	struct gateway *gateway;
	struct loop_timer timer;
	uint64_t steps;    /* of all resources, at the last save */
	weir_time saved;   /* when; 0: never */
	struct kept *kept; /* as read at the start, until the resources have it */
	size_t n_kept;
	struct arena memory; /* of the kept entries */
	weir_time away;      /* ns since the saved state */

	pthread_t thread; /* the writer */
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* under the lock: */
	char *text; /* to be written; NULL: nothing */
	size_t len;
	bool stop;
	weir_time took; /* the last time */
	bool failed;    /* it was logged */
};

/* ---- gathering; main thread */

struct gathering {
	struct kept *all; /* at most one per resource */
	size_t n;
	struct arena memory;
	uint64_t steps;
};

/* On the resource's thread: only copy. */
static int gather_one(void *arg, struct gateway_resource *r)
{
	struct gathering *to = arg;
	int rc = resource_control_facts(r->resource, &to->memory, &to->all[to->n].facts);

	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		to->all[to->n++].resource = r->name;
	return rc;
}

static int count_steps(void *arg, struct gateway_resource *r)
{
	((struct gathering *)arg)->steps += resource_control_steps(r->resource);
	return 0;
}

static bool is_kept(struct gateway_ledger *l)
{
	bool kept;

	if (!l)
		return false;
	pthread_mutex_lock(&l->lock);
	kept = !l->failed;
	pthread_mutex_unlock(&l->lock);
	return kept;
}

int gateway_ledger(struct gateway *g, json_t **ret_json)
{
	struct gathering to = {0};
	struct gateway_ledger *l = g->ledger;
	json_t *list = json_array(), *root = NULL;
	int rc;

	to.all = arena_take(&to.memory, g->n_resources + 1, sizeof(*to.all));
	rc = list && to.all ? gateway_each(g, gather_one, &to, NULL) : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < to.n; i++) {
		json_t *j = facts_json(&to.all[i].facts, FACTS_IN_STATE);

		json_object_set_new(j, "resource", json_string(to.all[i].resource));
		if (json_array_append_new(list, j) < 0)
			rc = -ENOMEM;
	}
	if (rc == 0)
		root = json_pack("{s:b, s:o, s:O}", "kept", is_kept(l), "saved_ago_s",
			l && l->saved ? json_real((double)(loop_clock() - l->saved) / WEIR_SEC)
				      : json_null(),
			"resources", list);
	json_decref(list);
	arena_free(&to.memory);
	if (!root)
		return rc < 0 ? rc : -ENOMEM;
	*ret_json = root;
	return 0;
}

/* ---- writing */

static void hash_of(const char *text, size_t len, char ret[2 * HASH + 1])
{
	uint8_t hash[HASH];

	crypto_generichash(hash, sizeof(hash), (const uint8_t *)text, len, NULL, 0);
	sodium_bin2hex(ret, 2 * HASH + 1, hash, sizeof(hash));
}

/* Return the whole file; NULL: out of memory. */
static char *make_file(json_t *resources, size_t *ret_len)
{
	json_t *root = json_pack("{s:f, s:O}", "saved", loop_date(), "resources", resources);
	char *body = root ? json_dumps(root, JSON_COMPACT) : NULL, *file = NULL;
	size_t len = body ? strlen(body) : 0;
	char hash[2 * HASH + 1];
	int n = -1;

	if (body) {
		hash_of(body, len, hash);
		n = asprintf(&file, FORMAT "%zu %s\n%s", len, hash, body);
	}
	json_decref(root);
	free(body);
	*ret_len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? NULL : file;
}

static void write_file(struct gateway_ledger *l, const char *text, size_t len)
{
	const char *folder = l->gateway->state;
	weir_time begin = loop_clock();
	int rc = len > LARGEST ? -EFBIG : state_file_put(folder, NAME, text, len);

	pthread_mutex_lock(&l->lock);
	l->took = loop_clock() - begin;
	if (rc < 0 && !l->failed)
		log_event(LOG_LEVEL_ERROR, "ledger-not-kept", "folder", folder, "why",
			strerror(-rc), NULL);
	else if (rc == 0 && l->failed)
		log_event(LOG_LEVEL_INFO, "ledger-kept-again", "folder", folder, NULL);
	l->failed = rc < 0;
	pthread_mutex_unlock(&l->lock);
}

/* Write until it is told to stop and nothing is left. */
static void *writer(void *arg)
{
	struct gateway_ledger *l = arg;

	pthread_mutex_lock(&l->lock);
	while (l->text || !l->stop) {
		char *text = l->text;
		size_t len = l->len;

		if (!text) {
			pthread_cond_wait(&l->more, &l->lock);
			continue;
		}
		l->text = NULL;
		pthread_mutex_unlock(&l->lock);
		write_file(l, text, len);
		free(text);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Copy, and pass it to the writer; replace a text that it has not begun to write. */
static void save(struct gateway_ledger *l)
{
	struct gathering steps = {0};
	json_t *json;
	char *text;
	size_t len;

	gateway_each(l->gateway, count_steps, &steps, NULL);
	if (steps.steps == l->steps || gateway_ledger(l->gateway, &json) < 0)
		return;
	text = make_file(json_object_get(json, "resources"), &len);
	json_decref(json);
	if (!text)
		return;
	l->steps = steps.steps;
	l->saved = loop_clock();
	pthread_mutex_lock(&l->lock);
	free(l->text);
	l->text = text;
	l->len = len;
	pthread_cond_signal(&l->more);
	pthread_mutex_unlock(&l->lock);
}

static void due(struct loop_timer *t, weir_time now)
{
	struct gateway_ledger *l = container_of(t, struct gateway_ledger, timer);
	weir_time begin = loop_clock(), took, next;

	save(l);
	pthread_mutex_lock(&l->lock);
	took = l->took;
	pthread_mutex_unlock(&l->lock);
	if (loop_clock() - begin > took)
		took = loop_clock() - begin;
	next = TIMES * took;
	next = next < EVERY ? EVERY : next > LONGEST ? LONGEST : next;
	loop_set(l->gateway->loop, t, now + next);
}

/* ---- reading */

/* Return the JSON in the file, or NULL and the reason. */
static json_t *check(const char *text, size_t len, const char **ret_why)
{
	const char *line = memchr(text, '\n', len < 128 ? len : 128), *hash;
	char real[2 * HASH + 1];
	size_t want, body;
	json_t *j;

	*ret_why = "not a ledger of this version";
	if (!line || strncmp(text, FORMAT, strlen(FORMAT)) != 0)
		return NULL;
	body = len - (size_t)(line + 1 - text);
	want = strtoull(text + strlen(FORMAT), (char **)&hash, 10);
	*ret_why = "cut off, or changed";
	if (want != body || *hash != ' ' || line - hash != 1 + 2 * HASH)
		return NULL;
	hash_of(line + 1, body, real);
	if (memcmp(hash + 1, real, (size_t)2 * HASH) != 0)
		return NULL;
	*ret_why = "not JSON";
	j = json_loadb(line + 1, body, JSON_REJECT_DUPLICATES, NULL);
	return j;
}

static int read_list(struct gateway_ledger *l, const json_t *list)
{
	size_t n = json_array_size(list);
	int rc = json_is_array(list) ? 0 : -EINVAL;

	l->kept = arena_take(&l->memory, n + 1, sizeof(*l->kept));
	for (size_t i = 0; l->kept && rc == 0 && i < n; i++) {
		const json_t *j = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(j, "resource"));

		l->kept[i].resource = name ? arena_text(&l->memory, name) : NULL;
		rc = name ? facts_json_read(j, facts_stateful(), &l->memory, &l->kept[i].facts)
			  : -EINVAL;
	}
	if (l->memory.failed)
		rc = -ENOMEM;
	l->n_kept = rc == 0 ? n : 0;
	return rc;
}

static int restore_text(
	struct gateway_ledger *l, const char *text, size_t len, const char **ret_why)
{
	json_t *j = check(text, len, ret_why);
	double saved = json_number_value(json_object_get(j, "saved"));
	double away = loop_date() - saved;
	int rc;

	if (!j)
		return -EINVAL;
	*ret_why = "a value is missing or wrong";
	rc = read_list(l, json_object_get(j, "resources"));
	/* A clock that was set back: as if no time had passed. */
	l->away = away > 0 && away < 3e9 ? (weir_time)(away * WEIR_SEC) : 0;
	json_decref(j);
	return rc;
}

static int read_text(int fd, char **ret_text, size_t *ret_len)
{
	struct stat st;
	size_t n = 0;
	char *text;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > LARGEST)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	while (text && n < (size_t)st.st_size) {
		ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (!text)
		return -ENOMEM;
	text[n] = 0;
	*ret_text = text;
	*ret_len = n;
	return 0;
}

static void read_file(struct gateway_ledger *l)
{
	const char *folder = l->gateway->state, *why = NULL;
	char *text = NULL;
	size_t len = 0;
	int fd = state_file_open(folder, NAME), rc;

	if (fd < 0)
		return;
	rc = read_text(fd, &text, &len);
	close(fd);
	if (rc == 0 && text)
		rc = restore_text(l, text, len, &why);
	if (rc < 0)
		state_file_aside(folder, NAME, rc == -EINVAL && why ? why : strerror(-rc));
	free(text);
}

static void say_restored(const struct gateway_ledger *l, const struct kept *k)
{
	const struct facts_table *t = k->facts.kind->tables;
	char first[24], second[24], as_of[40];
	time_t then = (time_t)(loop_date() - (double)l->away / WEIR_SEC);
	struct tm tm;

	strftime(as_of, sizeof(as_of), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&then, &tm));
	log_event(LOG_LEVEL_INFO, "ledger", "resource", k->resource, "as_of", as_of, t[0].name,
		log_number(first, (double)k->facts.tables[0].n), t[1].name,
		log_number(second, (double)k->facts.tables[1].n), NULL);
}

int gateway_ledger_restore(struct gateway *g, struct gateway_resource *r)
{
	struct gateway_ledger *l = g->ledger;

	for (size_t i = 0; l && i < l->n_kept; i++) {
		int rc;

		if (strcmp(l->kept[i].resource, r->name) != 0 || g->options.bare)
			continue;
		l->kept[i].taken = true;
		rc = resource_control_restore(r->resource, &l->kept[i].facts, l->away);
		if (rc == 0)
			say_restored(l, &l->kept[i]);
		else if (rc == -EINVAL)
			state_file_aside(g->state, NAME, "the books do not balance");
		else
			return rc;
	}
	return 0;
}

/* ---- start and end */

int gateway_ledger_start(struct gateway *g)
{
	struct gateway_ledger *l;

	if (!g->state || g->options.bare)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l || sodium_init() < 0) {
		free(l);
		return -ENOMEM;
	}
	g->ledger = l;
	l->gateway = g;
	l->timer.due = due;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	read_file(l);
	return 0;
}

int gateway_ledger_run(struct gateway *g)
{
	struct gateway_ledger *l = g->ledger;
	int rc;

	if (!l)
		return 0;
	for (size_t i = 0; i < l->n_kept; i++)
		if (!l->kept[i].taken)
			log_event(LOG_LEVEL_WARNING, "ledger-dropped", "resource",
				l->kept[i].resource, "why", "there is no such resource any more",
				NULL);
	arena_free(&l->memory);
	l->n_kept = 0;
	rc = pthread_create(&l->thread, NULL, writer, l);
	if (rc != 0)
		return -rc;
	l->running = true;
	return loop_set(g->loop, &l->timer, loop_clock() + EVERY);
}

void gateway_ledger_keep(struct gateway *g, struct record_out *o)
{
	struct gathering steps = {0};
	char *text = NULL;
	json_t *json;
	size_t len = 0;

	if (g->ledger)
		gateway_all(g, count_steps, &steps);
	if (steps.steps && gateway_ledger(g, &json) == 0) {
		text = make_file(json_object_get(json, "resources"), &len);
		json_decref(json);
	}
	record_put_bytes(o, text, text ? len : 0);
	free(text);
}

static int take_there(void *arg, struct gateway_resource *r)
{
	return gateway_ledger_restore(arg, r);
}

int gateway_ledger_take(struct gateway *g, struct record_in *in)
{
	struct gateway_ledger *l = g->ledger;
	const char *why;
	size_t n;
	const uint8_t *text = record_get_bytes(in, &n);
	int rc;

	if (in->bad || n == 0 || !l)
		return in->bad ? -EBADMSG : 0;
	rc = restore_text(l, (const char *)text, n, &why);
	if (rc == 0)
		rc = gateway_each(g, take_there, g, NULL);
	arena_free(&l->memory);
	l->n_kept = 0;
	return rc == -EINVAL ? -EBADMSG : rc;
}

void gateway_ledger_stop(struct gateway *g)
{
	struct gateway_ledger *l = g->ledger;

	if (!l)
		return;
	if (l->running) {
		loop_set(g->loop, &l->timer, WEIR_NEVER);
		save(l);
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_cond_signal(&l->more);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->thread, NULL);
	}
	arena_free(&l->memory);
	free(l->text);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->more);
	free(l);
	g->ledger = NULL;
}
