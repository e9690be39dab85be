/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record: every request that enters a gate, as a trace (weir-trace(5)).
 *
 * Each resource has a tap, a ring that its thread fills and never waits for. The recording thread
 * empties the taps every 10 ms, sorts the records by time, and writes lines. So the data path pays
 * for one copy of 24 bytes a request, and a slow disk costs records, not requests: records that do
 * not fit a tap are dropped and counted.
 *
 * A stream of the trace is one tenant on one resource; a comment names it after its first line.
 * Lines of different resources may be out of order by the duration of one round of a loop; readers
 * sort.
 *
 * When the trace is full (`most`) or cannot be written, the thread reports it and stops; the main
 * thread, which checks every 100 ms, then removes the taps.
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "model/trace/trace.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include "serve/resource/tap.h"
#include "base/array.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAP_ROOM 65536    /* entries a resource: 10 ms at 6 million a second */
#define EMPTY_NS 10000000 /* interval of emptying the taps */
/* interval at which the main thread checks whether it is full */
#define LOOK_NS    (100 * (weir_time)1000000)
#define BATCH      4096                /* entries taken of a tap at once */
#define FILE_ROOM  ((size_t)256 << 10) /* bytes to the file at once */
#define STREAM_MAX 65535               /* the format's */

struct seen { /* an entry and where from */
	struct tap_entry entry;
	uint32_t source;
};

struct stream_name {
	char *resource, *tenant;
};

struct source { /* a resource that is, or was, recorded */
	struct tap *tap;
	char *name;
	const struct gateway_resource *resource; /* NULL: removed */
};

struct record {
	struct gateway *gateway;
	struct loop_timer timer; /* the main thread's */
	char *path;
	pthread_t thread;
	bool running, tapped; /* the main thread's */

	/* Set by the thread, read by all threads without the lock: a slow file only delays threads
	 * that change the tenants or stop. */
	atomic_bool full;
	atomic_uint_fast64_t recorded, lost; /* lost: taken, but could not be written */

	pthread_mutex_t lock; /* of everything below */
	pthread_cond_t wake;
	bool stop, failed; /* failed: full because of a write error */
	struct source *sources;
	size_t n_sources;
	FILE *file;
	uint64_t most;
	weir_time first; /* when the trace begins; -1: nothing yet */
	char **tenants;  /* paths, by index in the policy in force */
	size_t n_tenants;
	int32_t *streams; /* by source × n_tenants + tenant; -1: not seen yet */
	struct stream_name *names;
	size_t n_names, n_said; /* said: number that the trace has a comment for */
	struct seen *batch;     /* BATCH a source */
	struct tap_entry *taken;
};

/* ---- streams */

static void free_tenants(struct record *r)
{
	for (size_t i = 0; i < r->n_tenants; i++)
		free(r->tenants[i]);
	free(r->tenants);
	free(r->streams);
	r->tenants = NULL;
	r->streams = NULL;
	r->n_tenants = 0;
}

static int take_tenants(struct record *r, const struct weir_policy *p)
{
	size_t cells = p->n_tenants * r->n_sources;

	free_tenants(r);
	r->tenants = calloc(p->n_tenants + 1, sizeof(*r->tenants));
	r->streams = calloc(cells + 1, sizeof(*r->streams));
	if (!r->tenants || !r->streams)
		return -ENOMEM;
	for (size_t i = 0; i < cells; i++)
		r->streams[i] = -1;
	for (; r->n_tenants < p->n_tenants; r->n_tenants++) {
		r->tenants[r->n_tenants] = strdup(p->tenants[r->n_tenants].path);
		if (!r->tenants[r->n_tenants])
			return -ENOMEM;
	}
	return 0;
}

/* Return the number of a name, which a swap of the policy does not change; -1: none is left. */
static int name_stream(struct record *r, const char *resource, const char *tenant)
{
	struct stream_name *more;

	for (size_t i = 0; i < r->n_names; i++)
		if (strcmp(r->names[i].resource, resource) == 0 &&
			strcmp(r->names[i].tenant, tenant) == 0)
			return (int)i;
	if (r->n_names == STREAM_MAX)
		return -1;
	if (array_resize(&r->names, r->n_names + 1) < 0)
		return -1;
	more = &r->names[r->n_names];
	more->resource = strdup(resource);
	more->tenant = strdup(tenant);
	if (!more->resource || !more->tenant) {
		free(more->resource);
		free(more->tenant);
		return -1;
	}
	return (int)r->n_names++;
}

static int stream_of(struct record *r, const struct seen *s)
{
	size_t tenant = s->entry.tenant;
	int32_t *cell;

	if (tenant >= r->n_tenants)
		return -1;
	cell = &r->streams[s->source * r->n_tenants + tenant];
	if (*cell < 0)
		*cell = name_stream(r, r->sources[s->source].name, r->tenants[tenant]);
	return *cell;
}

/* ---- the thread */

/* Count everything as lost from now on; the main thread removes the taps. */
static void give_up(struct record *r, int error)
{
	log_event(LOG_LEVEL_ERROR, "record-failed", "file", r->path, "why", strerror(error), NULL);
	r->failed = true;
	r->full = true;
}

static void write_one(struct record *r, const struct seen *s)
{
	const struct tap_entry *e = &s->entry;
	struct trace_record two[2]; /* the first record of a trace brings the header with it */
	struct trace t = {.records = two, .n = 2, .has_offsets = true};
	bool flush = e->op == TRACE_FLUSH, begun = r->recorded > 0;
	char line[256];
	int stream, n;

	if (r->full || (!flush && e->bytes == 0)) { /* the format has no reads of nothing */
		r->lost += r->failed;               /* records beyond `most` are not wanted */
		return;
	}
	if (r->first < 0)
		r->first = e->at;
	stream = stream_of(r, s);
	if (stream < 0) {
		r->lost++;
		return;
	}
	two[begun] = (struct trace_record){
		.at = e->at > r->first ? e->at - r->first : 0,
		.offset = flush ? 0 : e->offset,
		.bytes = flush ? 0 : e->bytes,
		.stream = (uint16_t)stream,
		.op = e->op,
	};
	n = trace_format_record(&t, begun, TRACE_WEIR, line, sizeof(line));
	if (n < 0 || fwrite(line, 1, (size_t)n, r->file) != (size_t)n) {
		r->lost++;
		give_up(r, n < 0 ? -n : errno);
		return;
	}
	for (; r->n_said < r->n_names; r->n_said++)
		fprintf(r->file, "# stream %zu: %s on %s\n", r->n_said, r->names[r->n_said].tenant,
			r->names[r->n_said].resource);
	if (++r->recorded == r->most)
		r->full = true;
}

static int by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->entry.at != y->entry.at)
		return x->entry.at < y->entry.at ? -1 : 1;
	return x->source < y->source ? -1 : x->source > y->source;
}

/* Take the records that are in the taps now; later ones are for the next call. */
static void empty_taps(struct record *r)
{
	for (size_t rounds = 0; rounds < TAP_ROOM / BATCH; rounds++) {
		size_t n = 0;

		for (size_t i = 0; i < r->n_sources; i++) {
			size_t got = tap_take(r->sources[i].tap, r->taken, BATCH);

			/* Requests of a removed resource have tenants of another policy. */
			if (!r->sources[i].resource)
				r->lost += got;
			for (size_t k = 0; r->sources[i].resource && k < got; k++)
				r->batch[n++] = (struct seen){r->taken[k], (uint32_t)i};
		}
		if (n == 0)
			return;
		if (r->n_sources > 1)
			qsort(r->batch, n, sizeof(*r->batch), by_time);
		for (size_t k = 0; k < n; k++)
			write_one(r, &r->batch[k]);
	}
}

static void *thread(void *arg)
{
	struct record *r = arg;
	struct timespec at;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_nsec += EMPTY_NS;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		pthread_cond_timedwait(&r->wake, &r->lock, &at);
		empty_taps(r);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- the main thread */

static int set_tap(void *arg, struct gateway_resource *at)
{
	struct record *r = arg;

	for (size_t i = 0; i < r->n_sources; i++)
		if (r->sources[i].resource == at)
			resource_tap(at->resource, r->tapped ? r->sources[i].tap : NULL);
	return 0;
}

/* Remove the taps, let the thread write their content, and close the file. */
static void finish(struct record *r)
{
	if (r->tapped) {
		r->tapped = false;
		gateway_each(r->gateway, set_tap, r, NULL);
		gateway_settle(r->gateway); /* resources that leave have theirs no more either */
	}
	if (r->timer.due)
		loop_set(r->gateway->loop, &r->timer, WEIR_NEVER);
	if (r->running) {
		pthread_mutex_lock(&r->lock);
		r->stop = true;
		pthread_cond_signal(&r->wake);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
		r->running = false;
		empty_taps(r);
	}
	if (r->file && fclose(r->file) != 0)
		log_event(LOG_LEVEL_ERROR, "record-failed", "file", r->path, "why", strerror(errno),
			NULL);
	r->file = NULL;
}

static uint64_t dropped(const struct record *r)
{
	uint64_t n = r->lost;

	for (size_t i = 0; i < r->n_sources; i++)
		n += tap_dropped(r->sources[i].tap);
	return n;
}

static void record_free(struct record *r)
{
	if (!r)
		return;
	finish(r);
	for (size_t i = 0; i < r->n_sources; i++) {
		tap_free(r->sources[i].tap);
		free(r->sources[i].name);
	}
	for (size_t i = 0; i < r->n_names; i++) {
		free(r->names[i].resource);
		free(r->names[i].tenant);
	}
	free_tenants(r);
	free(r->names);
	free(r->sources);
	free(r->batch);
	free(r->taken);
	free(r->path);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void check_full(struct loop_timer *t, weir_time now)
{
	struct record *r = container_of(t, struct record, timer);

	if (r->full)
		finish(r);
	else
		loop_set(r->gateway->loop, t, now + LOOK_NS);
}

static int add_source(struct record *r, const struct gateway_resource *at)
{
	struct source s = {.name = strdup(at->name), .resource = at};

	if (!s.name || array_resize(&r->sources, r->n_sources + 1) < 0 ||
		array_resize(&r->batch, (r->n_sources + 1) * BATCH) < 0 ||
		tap_new(TAP_ROOM, &s.tap) < 0) {
		free(s.name);
		return -ENOMEM;
	}
	r->sources[r->n_sources++] = s;
	return 0;
}

static bool is_source(const struct record *r, const struct gateway_resource *at)
{
	for (size_t i = 0; i < r->n_sources; i++)
		if (r->sources[i].resource == at)
			return true;
	return false;
}

static int add_sources(struct record *r)
{
	const struct gateway *g = r->gateway;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < g->n_resources; i++)
		if (!is_source(r, g->resources[i]))
			rc = add_source(r, g->resources[i]);
	return rc;
}

static void end_sources(struct record *r)
{
	const struct gateway *g = r->gateway;

	for (size_t i = 0; i < r->n_sources; i++) {
		bool stays = false;

		for (size_t k = 0; k < g->n_resources; k++)
			stays |= g->resources[k] == r->sources[i].resource;
		if (!stays)
			r->sources[i].resource = NULL;
	}
}

static int record_new(struct gateway *g, const char *path, uint64_t most, struct record **ret)
{
	struct record *r = calloc(1, sizeof(*r));
	pthread_condattr_t monotonic;
	int rc = 0;

	if (!r)
		return -ENOMEM;
	r->gateway = g;
	r->most = most;
	r->first = -1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r->path = strdup(path);
	r->taken = calloc(BATCH, sizeof(*r->taken));
	if (!r->path || !r->taken)
		rc = -ENOMEM;
	if (rc == 0)
		rc = add_sources(r);
	if (rc == 0)
		rc = take_tenants(r, g->policy);
	if (rc < 0)
		record_free(r);
	else
		*ret = r;
	return rc;
}

/* Never overwrite a file: the permission to record must not imply that. */
static int open_file(struct record *r, struct weir_err *err)
{
	int fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return weir_err_set(err, -errno, "%s: %s", r->path, strerror(errno));
	r->file = fdopen(fd, "w");
	if (!r->file) {
		close(fd);
		return no_memory(err);
	}
	setvbuf(r->file, NULL, _IOFBF, FILE_ROOM);
	return 0;
}

int gateway_record(struct gateway *g, const char *path, uint64_t most, struct weir_err *err)
{
	struct record *r;
	int rc;

	if (g->record && g->record->running)
		return weir_err_set(err, -EBUSY, "%s is being recorded", g->record->path);
	rc = record_new(g, path, most, &r);
	if (rc < 0)
		return no_memory(err);
	rc = open_file(r, err);
	if (rc == 0) {
		rc = -pthread_create(&r->thread, NULL, thread, r);
		if (rc < 0)
			weir_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	if (rc < 0) {
		record_free(r);
		return rc;
	}
	record_free(g->record); /* it had become full */
	g->record = r;
	r->running = r->tapped = true;
	gateway_each(g, set_tap, r, NULL);
	r->timer.due = check_full;
	loop_set(g->loop, &r->timer, loop_clock() + LOOK_NS);
	log_event(LOG_LEVEL_INFO, "recording", "file", path, NULL);
	return 0;
}

int gateway_record_stop(struct gateway *g, uint64_t *ret_recorded, uint64_t *ret_dropped)
{
	struct record *r = g->record;

	if (!r)
		return -ENOENT;
	finish(r);
	if (ret_recorded)
		*ret_recorded = r->recorded;
	if (ret_dropped)
		*ret_dropped = dropped(r);
	record_free(r);
	g->record = NULL;
	return 0;
}

bool gateway_recording(struct gateway *g, uint64_t *ret_recorded, uint64_t *ret_dropped)
{
	struct record *r = g->record;

	*ret_recorded = *ret_dropped = 0;
	if (!r)
		return false;
	*ret_recorded = r->recorded;
	*ret_dropped = dropped(r);
	return r->running && !r->full;
}

void record_policy(struct gateway *g)
{
	struct record *r = g->record;

	if (!r || !r->running)
		return;
	pthread_mutex_lock(&r->lock);
	empty_taps(r); /* by their old indices */
	end_sources(r);
	if (add_sources(r) < 0 || take_tenants(r, g->policy) < 0)
		give_up(r, ENOMEM);
	pthread_mutex_unlock(&r->lock);
	gateway_each(g, set_tap, r, NULL);
}
