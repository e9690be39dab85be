/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc-pshift: R- and L-tokens of every bucket at every server, and why reservations cannot be
 * met.
 */
#include "control/pshift/alloc.h"
#include "base/arena.h"
#include "serve/loop/parallel.h"
#include "cli/alloc.h"
#include <errno.h>
#include <stdio.h>

static const char *const top_keys[] = {"servers", "buckets", "top", "threads", "floor", NULL};
static const char *const server_keys[] = {"name", "capacity", NULL};
static const char *const bucket_keys[] = {"name", "reservation", "limit", "demand", NULL};
static const struct alloc_range any = {.most = (double)PSHIFT_MOST};
static const struct alloc_range some = {.least = 1, .most = (double)PSHIFT_MOST};
/* Threads: more than any machine has cores. */
static const struct alloc_range few = {.least = 1, .most = 256};

struct job {
	struct pshift_input in;
	struct pshift_options options;
	struct pshift_parallel parallel;
	struct pshift *pshift;
	struct arena memory;
	int64_t *capacity, *reservation, *limit, *demand, *rtokens, *ltokens;
	uint32_t *first, *server;
	const char **servers, **buckets; /* names */
	json_t *numbers;                 /* index of each server, by name */
};

static void job_free(struct job *j)
{
	pshift_free(j->pshift);
	parallel_free(j->parallel.pool);
	arena_free(&j->memory);
	json_decref(j->numbers);
}

static int job_new(struct job *j, size_t servers, size_t buckets, size_t entries)
{
	struct arena *m = &j->memory;

	j->in.servers = servers;
	j->in.buckets = buckets;
	j->in.capacity = j->capacity = arena_take(m, servers, sizeof(*j->capacity));
	j->servers = arena_take(m, servers, sizeof(*j->servers));
	j->in.reservation = j->reservation = arena_take(m, buckets, sizeof(*j->reservation));
	j->in.limit = j->limit = arena_take(m, buckets, sizeof(*j->limit));
	j->in.first = j->first = arena_take(m, buckets + 1, sizeof(*j->first));
	j->buckets = arena_take(m, buckets, sizeof(*j->buckets));
	j->in.server = j->server = arena_take(m, entries, sizeof(*j->server));
	j->in.demand = j->demand = arena_take(m, entries, sizeof(*j->demand));
	j->rtokens = arena_take(m, entries, sizeof(*j->rtokens));
	j->ltokens = arena_take(m, entries, sizeof(*j->ltokens));
	j->numbers = json_object();
	if (m->failed || !j->numbers)
		return -ENOMEM;
	return pshift_new(&j->pshift);
}

/* ---- input */

static int read_server(const struct alloc_at *at, void *arg, size_t i)
{
	struct job *j = arg;
	int r = alloc_keys(at, server_keys);

	if (r || (r = alloc_name(at, &j->servers[i])))
		return r;
	r = alloc_whole(at, "capacity", any, &j->capacity[i]);
	if (r == -ENOENT)
		return alloc_fail(at, "capacity", "is missing");
	if (r == 0 && json_object_set_new(j->numbers, j->servers[i], json_integer((json_int_t)i)))
		return -ENOMEM;
	return r;
}

static int read_demand(const struct alloc_at *bucket, struct job *j, size_t i)
{
	struct alloc_at at = {NULL, json_object_get(bucket->object, "demand"), bucket->err};
	uint32_t e = j->first[i];
	const char *name;
	json_t *value;
	char path[96];

	j->first[i + 1] = e;
	if (!at.object || json_is_null(at.object))
		return 0;
	if (!json_is_object(at.object))
		return alloc_fail(bucket, "demand", "must be an object");
	snprintf(path, sizeof(path), "%s.demand", bucket->path);
	at.path = path;
	json_object_foreach(at.object, name, value)
	{
		json_t *number = json_object_get(j->numbers, name);
		int r;

		if (!number)
			return alloc_fail(&at, name, "there is no such server");
		j->server[e] = (uint32_t)json_integer_value(number);
		r = alloc_absent_ok(alloc_whole(&at, name, any, &j->demand[e]));
		if (r)
			return r;
		e++;
	}
	j->first[i + 1] = e;
	return 0;
}

static int read_bucket(const struct alloc_at *at, void *arg, size_t i)
{
	struct job *j = arg;
	int r = alloc_keys(at, bucket_keys);

	j->limit[i] = PSHIFT_NO_LIMIT;
	if (r || (r = alloc_name(at, &j->buckets[i])) ||
		(r = alloc_absent_ok(alloc_whole(at, "reservation", any, &j->reservation[i]))) ||
		(r = alloc_absent_ok(alloc_whole(at, "limit", any, &j->limit[i]))))
		return r;
	return read_demand(at, j, i);
}

static int read_options(const struct alloc_at *top, struct job *j)
{
	int64_t most = 0, threads = 1;
	struct parallel *pool;
	int r = alloc_absent_ok(alloc_whole(top, "top", some, &most));

	if (r || (r = alloc_absent_ok(alloc_whole(top, "threads", few, &threads))) ||
		(r = alloc_absent_ok(alloc_whole(top, "floor", any, &j->in.floor))))
		return r;
	j->options.top = (size_t)most;
	if (threads == 1)
		return 0;
	r = parallel_new((unsigned)threads, &pool);
	if (r == 0) {
		j->parallel = (struct pshift_parallel){parallel_run, pool};
		j->options.parallel = &j->parallel;
	}
	return r;
}

/* Return the number of entries of all buckets; wrong types, which are refused later, have none. */
static size_t count_entries(json_t *buckets)
{
	size_t n = 0, i;
	json_t *item;

	json_array_foreach(buckets, i, item) n += json_object_size(json_object_get(item, "demand"));
	return n;
}

static int read_all(const struct alloc_at *top, struct job *j)
{
	json_t *servers, *buckets;
	int r = alloc_keys(top, top_keys);

	if (r || (r = alloc_list(top, "servers", &servers)) ||
		(r = alloc_list(top, "buckets", &buckets)))
		return r;
	if (json_array_size(servers) > PSHIFT_SERVERS)
		return alloc_fail(top, "servers", "must be at most %zu", PSHIFT_SERVERS);
	if (json_array_size(buckets) >= PSHIFT_ENTRIES || count_entries(buckets) > PSHIFT_ENTRIES)
		return alloc_fail(top, "buckets", "there are too many");
	r = job_new(j, json_array_size(servers), json_array_size(buckets), count_entries(buckets));
	if (r || (r = read_options(top, j)) ||
		(r = alloc_each(top, "servers", servers, read_server, j)) ||
		(r = alloc_each(top, "buckets", buckets, read_bucket, j)))
		return r;
	/* Other errors that it could find were refused above, with a better place. */
	r = pshift_check(j->pshift, &j->in, NULL, NULL);
	return r == -ERANGE ? alloc_fail(top, "buckets", "the total demand is more than 2^61") : r;
}

/* ---- output */

static json_t *write_tokens(const struct job *j, const int64_t *tokens, bool limited)
{
	json_t *out = json_object();

	for (size_t i = 0; i < j->in.buckets; i++) {
		json_t *row;

		if (limited && j->limit[i] == PSHIFT_NO_LIMIT)
			continue;
		row = json_object();
		for (uint32_t e = j->first[i]; e < j->first[i + 1]; e++)
			json_object_set_new(row, j->servers[j->server[e]], json_integer(tokens[e]));
		json_object_set_new(out, j->buckets[i], row);
	}
	return out;
}

static json_t *write_names(const uint32_t *group, size_t n, size_t g, const char *const *names)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		if (group[i] == g)
			json_array_append_new(list, json_string(names[i]));
	}
	return list;
}

static const char *server_name(void *arg, size_t i)
{
	return ((struct job *)arg)->servers[i];
}

static const char *bucket_name(void *arg, size_t i)
{
	return ((struct job *)arg)->buckets[i];
}

/* Write the groups of the minimum cut. */
static int write_short(struct job *j, json_t *out)
{
	json_t *list = json_array();
	struct pshift_cut cut;
	char words[512];
	int r = pshift_explain(j->pshift, &j->in, j->rtokens, &cut);

	for (size_t g = 0; r == 0 && g < cut.n; g++)
		json_array_append_new(list,
			json_pack("{s:o, s:o, s:I, s:I, s:s}", "buckets",
				write_names(cut.bucket, j->in.buckets, g, j->buckets), "servers",
				write_names(cut.server, j->in.servers, g, j->servers), "needed",
				(json_int_t)cut.groups[g].needed, "capacity",
				(json_int_t)cut.groups[g].capacity, "words",
				pshift_words(&j->in, &cut, g, server_name, bucket_name, j, words,
					sizeof(words))));
	if (r == 0 && json_array_size(list) != cut.n)
		r = -ENOMEM;
	if (json_object_set_new(out, "short", list))
		r = -ENOMEM;
	return r;
}

static int write_out(struct job *j, const struct pshift_result *result, json_t **ret_out)
{
	json_t *excess = json_object(), *out;
	int r = 0;

	for (size_t s = 0; s < j->in.servers; s++)
		json_object_set_new(excess, j->servers[s], json_integer(result->excess[s]));
	out = json_pack("{s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "phi", (json_int_t)result->phi,
		"rtokens", write_tokens(j, j->rtokens, false), "ltokens",
		write_tokens(j, j->ltokens, true), "excess", excess, "asked",
		(json_int_t)result->asked, "unasked", (json_int_t)result->unasked, "lphi",
		(json_int_t)result->lphi);
	if (!out)
		return -ENOMEM;
	if (j->options.top == 0)
		r = write_short(j, out);
	if (r)
		json_decref(out);
	else
		*ret_out = out;
	return r;
}

int alloc_pshift(json_t *in, json_t **ret_out, struct weir_err *err)
{
	struct alloc_at top = {"", in, err};
	struct pshift_result result;
	struct job j = {.rtokens = NULL};
	int r = read_all(&top, &j);

	if (r == 0)
		r = pshift_allocate(j.pshift, &j.in, &j.options, j.rtokens, j.ltokens, &result);
	if (r == 0)
		r = write_out(&j, &result, ret_out);
	job_free(&j);
	return r;
}
