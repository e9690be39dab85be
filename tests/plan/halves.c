/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halves: tenants admitted by replay against those admitted by bound, on recorded traces, if present beside the checkout
 * (../shared/traces). The first halves of the traces decide; the second halves pass the gates with the buckets and priorities that
 * the first ones gave, and judge: at most 1 % of the tenants are late, whatever the reason. Only traces with ten requests beyond the
 * percentile in each half count.
 *
 * With arguments it prints the numbers for one case: FOLDER PERCENTILE SLO WORK COPIES SEED [quarters]. `quarters`: of the first halves
 * alone, halved again, on which the planner's constants were chosen.
 */
#include "plan/planning.h"
#include "base/array.h"
#include "base/rng.h"
#include "test.h"
#include <dirent.h>
#include <sys/stat.h>

struct halves {
	char *text[2]; /* as weir traces */
	size_t len[2];
};

static struct {
	struct halves *of;
	size_t n, room;
} all;

struct set { /* an index in `all` for each tenant */
	size_t of[512];
	unsigned n;
};

struct question {
	double percentile;
	const char *slo, *work;
	unsigned copies;
	uint64_t seed;
};

static size_t candidates = 8; /* that ask */

struct answer { /* tenants */
	unsigned candidates, by_bound, by_replay;
	unsigned bound_late, replay_late;
};

/* ---- traces */

static void write_half(const struct trace *t, size_t from, size_t to, char **ret, size_t *ret_len)
{
	FILE *f = open_memstream(ret, ret_len);

	fputs("# weir-trace 1\n", f);
	for (size_t i = from; i < to; i++)
		fprintf(f, "%lld %c %llu %u 0\n",
			(long long)(t->records[i].at - t->records[from].at),
			t->records[i].op == TRACE_WRITE ? 'W' : 'R',
			(unsigned long long)t->records[i].offset, t->records[i].bytes);
	fclose(f);
}

static bool quarters;

/* Halve a trace by time, or its first half. */
static void halve(const struct trace *t, double percentile)
{
	weir_time begin = t->records[0].at, last = t->records[t->n - 1].at,
		  span = (last - begin) / (quarters ? 4 : 2);
	double least = PLAN_BEYOND / (1 - percentile / 100);
	size_t at = 0, end = 0;

	while (at < t->n && t->records[at].at < begin + span)
		at++;
	while (end < t->n && (!quarters || t->records[end].at < begin + 2 * span))
		end++;
	if ((double)at < least || (double)(end - at) < least)
		return;
	if (array_grow(&all.of, &all.room, all.n + 1) < 0)
		abort();
	write_half(t, 0, at, &all.of[all.n].text[0], &all.of[all.n].len[0]);
	write_half(t, at, end, &all.of[all.n].text[1], &all.of[all.n].len[1]);
	all.n++;
}

static void read_one(const char *path, double percentile)
{
	struct weir_err err;
	struct trace t;
	char *text = NULL;
	size_t len = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return;
	if (getdelim(&text, &len, EOF, f) > 0 &&
		trace_read(text, strlen(text), path, TRACE_AUTO, false, &t, &err) == 0) {
		halve(&t, percentile);
		trace_free(&t);
	}
	free(text);
	fclose(f);
}

static void read_folder(const char *folder, double percentile)
{
	struct dirent **list;
	int n = scandir(folder, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && stat(path, &st) == 0)
			(S_ISDIR(st.st_mode) ? read_folder : read_one)(path, percentile);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void forget(void)
{
	for (size_t i = 0; i < all.n; i++) {
		free(all.of[i].text[0]);
		free(all.of[i].text[1]);
	}
	free(all.of);
	memset(&all, 0, sizeof(all));
}

/* ---- plans */

struct reading {
	const struct set *set;
	int half;
};

static int read_half(void *arg, enum planning_file kind, const struct weir_tenant *of, bool is_new,
	struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	const struct reading *r = arg;
	const struct halves *h = &all.of[r->set->of[atoi(name)]];

	*ret_text = malloc(h->len[r->half] + 1);
	*ret_len = h->len[r->half];
	memcpy(*ret_text, h->text[r->half], *ret_len + 1);
	return 0;
}

static void plan(
	const struct question *q, const struct set *s, int half, bool kept, struct planning *ret)
{
	struct estimate work;
	struct weir_err err;
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
	CHECK(planning_work(q->work, &work, &err) == 0);
	rc = planning_read(&(struct planning_options){.policy = {text, len, "policy"},
				   .read = read_half,
				   .arg = &(struct reading){s, half},
				   .work = &work,
				   .keep = kept},
		ret, NULL, &err);
	if (rc < 0)
		fprintf(stderr, "%s\n", err.text);
	CHECK(rc == 0);
	free(text);
}

static void replay(struct planning *p, double margin)
{
	struct weir_err err;

	CHECK(planning_replay(p,
		      &(struct planning_replay){.alignments = REPLAY_ALIGNMENTS,
			      .seed = 1,
			      .judge = true,
			      .margin = margin},
		      &err) == 0);
}

static bool fits(const struct question *q, const struct set *s, bool by_replay)
{
	struct planning p;
	bool feasible;

	plan(q, s, 0, by_replay, &p);
	if (by_replay)
		replay(&p, PLAN_MARGIN);
	feasible = planning_feasible(&p);
	planning_free(&p);
	return feasible;
}

/* Ask for one tenant after the other, in a random order. */
static void admit(const struct question *q, bool by_replay, struct set *ret)
{
	size_t n = all.n * q->copies, order[512];
	struct rng r;

	rng_init(&r, q->seed, "halves");
	ret->n = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = (size_t)rng_below(&r, i + 1);

		order[i] = order[k];
		order[k] = i % all.n;
	}
	for (size_t i = 0; i < n && i < candidates; i++) {
		ret->of[ret->n++] = order[i];
		if (!fits(q, ret, by_replay))
			ret->n--;
	}
}

/* Count the tenants that miss their slo with the second halves and the plan of the first. */
static unsigned judge(const struct question *q, const struct set *s)
{
	struct planning first, second;
	uint32_t priority[512];
	unsigned late = 0;

	plan(q, s, 0, true, &first);
	replay(&first, PLAN_MARGIN);
	plan(q, s, 1, true, &second);
	for (uint32_t i = 0; i < s->n; i++) {
		double largest = second.tenants[i].hop[0].largest;

		second.tenants[i].hop[0] = first.tenants[i].hop[0];
		second.tenants[i].hop[0].largest = largest;
		priority[i] = plan_hop(&first.plan, i, 0)->priority;
	}
	plan_free(&second.plan);
	CHECK(plan_keep(&second.in, priority, &second.plan) == 0);
	second.plan.feasible = true; /* the priorities stay */
	replay(&second, 0);
	for (uint32_t i = 0; i < s->n; i++)
		late += second.replayed[i].at > second.tenants[i].slo;
	planning_free(&first);
	planning_free(&second);
	return late;
}

static struct answer ask(const char *folder, const struct question *q)
{
	struct answer a = {0};
	struct set s;

	read_folder(folder, q->percentile);
	a.candidates = (unsigned)all.n * q->copies;
	CHECK(a.candidates <= 512);
	a.candidates = a.candidates < candidates ? a.candidates : (unsigned)candidates;
	admit(q, false, &s);
	a.by_bound = s.n;
	a.bound_late = judge(q, &s);
	admit(q, true, &s);
	a.by_replay = s.n;
	a.replay_late = judge(q, &s);
	forget();
	printf("p%g < %s, %s, order %u: of %u by bound %u (%u late), by replay %u (%u late), ratio "
	       "%.2f\n",
		q->percentile, q->slo, q->work, (unsigned)q->seed, a.candidates, a.by_bound,
		a.bound_late, a.by_replay, a.replay_late, (double)a.by_replay / a.by_bound);
	fflush(stdout);
	return a;
}

/* The claims, for the first tenants that ask. */
int main(int argc, char **argv)
{
	static const char *const folders[] = {"../shared/traces", "../../shared/traces"};
	static const struct {
		struct question q;
		double ratio;
	} rows[] = {
		{{99, "20ms", "100us+500MB/s", 1, 1}, 1.4},
		{{99, "100ms", "500us+100MB/s", 1, 1}, 1.4},
		{{99.9, "50ms", "100us+500MB/s", 4, 1}, 1.2},
	};
	const char *folder = NULL;
	unsigned admitted = 0, late = 0;
	struct stat st;

	if (argc >= 7) {
		quarters = argc > 7;
		candidates = 512;
		ask(argv[1], &(struct question){atof(argv[2]), argv[3], argv[4],
				     (unsigned)atoi(argv[5]), (uint64_t)atoi(argv[6])});
		return 0;
	}
	for (unsigned i = 0; !folder && i < sizeof(folders) / sizeof(*folders); i++)
		if (stat(folders[i], &st) == 0)
			folder = folders[i];
	if (!folder)
		SKIP("no recorded traces at ../shared/traces");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct answer a = ask(folder, &rows[i].q);

		CHECK(a.by_bound > 0 && a.by_replay >= rows[i].ratio * a.by_bound);
		admitted += a.by_replay;
		late += a.replay_late;
	}
	CHECK(late * 100 <= admitted);
	return 0;
}
