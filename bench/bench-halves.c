/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halves: tenants admitted by replay against those admitted by bound, on recorded traces.
 *
 * METHOD  The first halves of the traces decide; the second halves pass the gates with the buckets and priorities that the first ones
 *         gave, and judge: a tenant is late if its replayed percentile is beyond its slo. It is late alone if so it is with the device to
 *         itself, which no plan can help. Tenants ask one after the other, in a random order. Only traces with ten requests
 *         beyond the percentile in each half take part.
 *         `parts: 4, decides: 0, judges: 1` takes the first quarters and the second ones instead, and so on.
 */
#include "base/array.h"
#include "base/no-memory.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "plan/planning.h"
#include "serve/loop/parallel.h"
#include "sim/experiment/experiment.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 }; /* tenants that ask */

struct halves {
	char *text[2]; /* as weir traces */
	size_t len[2], n[2];
};

struct bench_halves {
	const struct experiment_bench *from;
	struct halves *of;
	size_t n, room;
	double margin;
	unsigned parts, decides, judges; /* of each trace, in equal times */
	bool apart;                      /* a replay that admits has the new tenant only */
	struct parallel *pool;
};

struct set { /* an index in `of` for each tenant */
	const struct bench_halves *b;
	size_t of[MOST];
	unsigned n;
	int half;
};

struct question {
	const char *key;
	double percentile;
	const char *slo, *work;
	unsigned copies; /* of each trace, which ask one by one */
};

struct answer { /* tenants; of all orders */
	unsigned by_bound, by_replay;
	struct late {
		unsigned all, alone;
	} bound_late, replay_late;
};

/* ---- traces */

static void write_half(const struct trace *t, size_t from, size_t to, struct halves *h, int half)
{
	FILE *f = open_memstream(&h->text[half], &h->len[half]);

	h->n[half] = to - from;
	fputs("# weir-trace 1\n", f);
	for (size_t i = from; i < to; i++)
		fprintf(f, "%lld %c %llu %u 0\n",
			(long long)(t->records[i].at - t->records[from].at),
			t->records[i].op == TRACE_WRITE ? 'W' : 'R',
			(unsigned long long)t->records[i].offset, t->records[i].bytes);
	fclose(f);
}

/* Write one of the parts of a trace, which are equal in time. */
static void write_part(const struct bench_halves *b, const struct trace *t, unsigned part,
	struct halves *h, int half)
{
	weir_time begin = t->records[0].at, span = (t->records[t->n - 1].at - begin) / b->parts;
	size_t from = 0, to;

	while (from < t->n && t->records[from].at < begin + part * span)
		from++;
	for (to = from; to < t->n; to++)
		if (part + 1 < b->parts && t->records[to].at >= begin + (part + 1) * span)
			break;
	write_half(t, from, to, h, half);
}

static int halve(struct bench_halves *b, const struct trace *t)
{
	if (array_grow(&b->of, &b->room, b->n + 1) < 0)
		return -ENOMEM;
	b->of[b->n] = (struct halves){0};
	write_part(b, t, b->decides, &b->of[b->n], 0);
	write_part(b, t, b->judges, &b->of[b->n++], 1);
	return 0;
}

/* Files that are no traces are passed over, as by --place. */
static int read_one(struct bench_halves *b, const char *path, struct weir_err *err)
{
	struct weir_err why;
	struct trace t;
	char *text;
	size_t len;
	int rc = b->from->read(path, b->from->read_arg, &text, &len, err);

	if (rc < 0)
		return rc;
	if (trace_read(text, len, path, TRACE_AUTO, false, &t, &why) == 0) {
		rc = halve(b, &t);
		trace_free(&t);
	}
	free(text);
	return rc;
}

static int read_folder(struct bench_halves *b, const char *folder, struct weir_err *err)
{
	char path[4096], *names, *rest, *name;
	size_t len;
	int rc;

	snprintf(path, sizeof(path), "%s/", folder);
	rc = b->from->read(path, b->from->read_arg, &names, &len, err);
	if (rc < 0)
		return rc;
	for (rest = names; rc == 0 && (name = strsep(&rest, "\n"));) {
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		rc = *name ? read_one(b, path, err) : 0;
	}
	free(names);
	return rc;
}

/* ---- plans */

static int read_half(void *arg, enum planning_file kind, const struct weir_tenant *of, bool is_new,
	struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	const struct set *s = arg;
	const struct halves *h = &s->b->of[s->of[atoi(name)]];

	*ret_len = h->len[s->half];
	*ret_text = malloc(*ret_len + 1);
	if (!*ret_text)
		return no_memory(err);
	memcpy(*ret_text, h->text[s->half], *ret_len + 1);
	return 0;
}

static int plan(const struct question *q, struct set *s, int half, bool kept, struct planning *ret,
	struct weir_err *err)
{
	struct estimate work;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rc;

	fputs("resources: [{name: d, back: \"memory:1M\", depth: 8}]\ntenants:\n", f);
	for (unsigned i = 0; i < s->n; i++)
		fprintf(f,
			"  - {name: t%u, slo: \"p%g < %s\", trace: \"%u\", match: {export: t%u}}\n",
			i, q->percentile, q->slo, i, i);
	fclose(f);
	s->half = half;
	rc = planning_work(q->work, &work, err);
	if (rc == 0)
		rc = planning_read(&(struct planning_options){.policy = {text, len, "policy"},
					   .read = read_half,
					   .arg = s,
					   .work = &work,
					   .keep = kept},
			ret, NULL, err);
	free(text);
	return rc;
}

static int replay(
	const struct bench_halves *b, struct planning *p, double margin, struct weir_err *err)
{
	return planning_replay(p,
		&(struct planning_replay){.alignments = REPLAY_ALIGNMENTS,
			.seed = 1,
			.judge = true,
			.margin = margin,
			.run = parallel_run,
			.pool = b->pool},
		err);
}

/* Return 1 if all slos hold, 0, or a negative errno. */
static int fits(const struct question *q, struct set *s, bool by_replay, struct weir_err *err)
{
	struct set last = {.b = s->b, .of = {s->of[s->n - 1]}, .n = 1};
	struct planning p;
	int rc = plan(q, by_replay && s->b->apart ? &last : s, 0, by_replay, &p, err);

	if (rc < 0)
		return rc;
	rc = by_replay ? replay(s->b, &p, s->b->margin, err) : 0;
	rc = rc < 0 ? rc : planning_feasible(&p);
	planning_free(&p);
	return rc;
}

/* List the traces that take part, `copies` of each, in a random order. */
static size_t draw_order(
	const struct bench_halves *b, const struct question *q, unsigned order, size_t *ret)
{
	double least = PLAN_BEYOND / (1 - q->percentile / 100);
	size_t n = 0;
	char name[32];
	struct rng r;

	snprintf(name, sizeof(name), "order %u", order);
	rng_init(&r, b->from->seed, name);
	for (unsigned c = 0; c < q->copies; c++)
		for (size_t i = 0; i < b->n && n < MOST; i++) {
			if ((double)b->of[i].n[0] < least || (double)b->of[i].n[1] < least)
				continue;
			size_t k = (size_t)rng_below(&r, n + 1);

			ret[n++] = ret[k];
			ret[k] = i;
		}
	return n;
}

/* Ask for one tenant after the other. */
static int admit(const struct question *q, unsigned order, bool by_replay, struct set *ret,
	struct weir_err *err)
{
	size_t of[MOST + 1], n = draw_order(ret->b, q, order, of);
	int rc = 0;

	ret->n = 0;
	for (size_t i = 0; rc >= 0 && i < n; i++) {
		ret->of[ret->n++] = of[i];
		rc = fits(q, ret, by_replay, err);
		ret->n -= rc == 0;
	}
	return rc < 0 ? rc : 0;
}

/* Give the second halves the buckets and the priorities of the first. */
static int hand_over(const struct planning *first, struct planning *second)
{
	uint32_t priority[MOST];

	for (uint32_t i = 0; i < first->in.n_tenants; i++) {
		double largest = second->tenants[i].hop[0].largest;

		second->tenants[i].hop[0] = first->tenants[i].hop[0];
		second->tenants[i].hop[0].largest = largest;
		priority[i] = plan_hop(&first->plan, i, 0)->priority;
	}
	plan_free(&second->plan);
	return plan_keep(&second->in, priority, &second->plan);
}

/* Count a tenant that is late. */
static int count_late(const struct question *q, const struct set *s, unsigned i, struct late *late,
	struct weir_err *err)
{
	struct set alone = {.b = s->b, .of = {s->of[i]}, .n = 1};
	struct planning p = {0};
	int rc = plan(q, &alone, 1, true, &p, err);

	if (rc == 0)
		rc = replay(s->b, &p, 0, err);
	late->all++;
	late->alone += rc == 0 && p.replayed[0].at > p.tenants[0].slo;
	planning_free(&p);
	return rc;
}

/* Count the tenants that miss their slo with the second halves and the plan of the first. */
static int judge(const struct question *q, struct set *s, struct late *late, struct weir_err *err)
{
	struct planning first = {0}, second = {0};
	int rc = plan(q, s, 0, true, &first, err);

	if (rc == 0)
		rc = replay(s->b, &first, s->b->margin, err);
	if (rc == 0)
		rc = plan(q, s, 1, true, &second, err);
	if (rc == 0)
		rc = hand_over(&first, &second);
	if (rc == 0) {
		second.plan.feasible = true; /* the priorities stay */
		rc = replay(s->b, &second, 0, err);
	}
	for (uint32_t i = 0; rc == 0 && i < s->n; i++)
		if (second.replayed[i].at > second.tenants[i].slo)
			rc = count_late(q, s, i, late, err);
	planning_free(&first);
	planning_free(&second);
	return rc;
}

static int ask(const struct bench_halves *b, const struct question *q, unsigned orders,
	struct answer *ret, struct weir_err *err)
{
	struct set s = {.b = b};
	int rc = 0;

	for (unsigned order = 1; rc == 0 && order <= orders; order++) {
		rc = admit(q, order, false, &s, err);
		ret->by_bound += s.n;
		if (rc == 0)
			rc = judge(q, &s, &ret->bound_late, err);
		if (rc == 0)
			rc = admit(q, order, true, &s, err);
		ret->by_replay += s.n;
		if (rc == 0)
			rc = judge(q, &s, &ret->replay_late, err);
	}
	return rc;
}

/* ---- all of it */

static const char *setting(const struct bench *b, const char *name, const char *otherwise)
{
	for (size_t i = 0; i < b->from->n_sets; i++)
		if (strcmp(b->from->sets[i].path, name) == 0)
			otherwise = b->from->sets[i].value;
	return otherwise;
}

static void add_value(struct bench *b, const char *key, double value)
{
	struct bench_row *row = bench_add_value(b, key, "", value, NULL);

	row->key = key;
}

static void add_late(struct late *to, struct late more)
{
	to->all += more.all;
	to->alone += more.alone;
}

static int ask_all(struct bench *b, const struct bench_halves *r, struct weir_err *err)
{
	static const struct question questions[] = {{"fast99", 99, "20ms", "100us+500MB/s", 1},
		{"slow99", 99, "100ms", "500us+100MB/s", 1},
		{"fast999", 99.9, "50ms", "100us+500MB/s", 4}};
	unsigned orders = (unsigned)atoi(setting(b, "orders", "4"));
	struct answer all = {0};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < sizeof(questions) / sizeof(*questions); i++) {
		struct answer a = {0};

		rc = ask(r, &questions[i], orders, &a, err);
		if (rc < 0 || a.by_bound == 0)
			break;
		add_value(b, questions[i].key, (double)a.by_replay / a.by_bound);
		all.by_bound += a.by_bound;
		all.by_replay += a.by_replay;
		add_late(&all.bound_late, a.bound_late);
		add_late(&all.replay_late, a.replay_late);
	}
	add_value(b, "bound.tenants", all.by_bound);
	add_value(b, "bound.late", all.bound_late.all);
	add_value(b, "bound.alone", all.bound_late.alone);
	add_value(b, "replay.tenants", all.by_replay);
	add_value(b, "replay.late", all.replay_late.all);
	add_value(b, "replay.alone", all.replay_late.alone);
	return rc;
}

int bench_halves(struct bench *b, struct weir_err *err)
{
	struct bench_halves r = {.from = b->from};
	int rc;

	if (!b->from)
		return weir_err_set(
			err, -EINVAL, "halves: run it by weir experiment run pm-replay");
	r.margin = atof(setting(b, "margin", "")) / 100;
	if (!*setting(b, "margin", ""))
		r.margin = PLAN_MARGIN;
	r.parts = (unsigned)atoi(setting(b, "parts", "2"));
	r.decides = (unsigned)atoi(setting(b, "decides", "0"));
	r.judges = (unsigned)atoi(setting(b, "judges", "1"));
	r.apart = atoi(setting(b, "apart", "0")) != 0;
	if (r.decides >= r.parts || r.judges >= r.parts || r.decides == r.judges)
		return weir_err_set(err, -EINVAL,
			"halves: decides and judges must be two parts, from 0 to below parts");
	rc = parallel_new(2, &r.pool);
	if (rc == 0)
		rc = read_folder(&r, setting(b, "traces", "."), err);
	if (rc == 0)
		rc = ask_all(b, &r, err);
	for (size_t i = 0; i < r.n; i++) {
		free(r.of[i].text[0]);
		free(r.of[i].text[1]);
	}
	free(r.of);
	parallel_free(r.pool);
	return rc;
}
