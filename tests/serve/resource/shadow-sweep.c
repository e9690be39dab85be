/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-sweep: what shadow mode says against what enforcement gives, in random cases, in virtual
 * time: 1 to 4 tenants with weights, a max or a min, requests of 4 to 256 KiB, a depth of 4 to 64,
 * open loops with 0.5 to 3 times what the device can do together, closed loops of 1 to 64
 * outstanding. Without arguments some cases, which are a test. `test_shadow-sweep FIRST LAST
 * [MODEL]` prints what is missed in these cases, some seconds each.
 *
 * A figure of an open loop misses if it is off by more than 15 % (and by more than three deviations
 * of the counts themselves), one of a closed loop if enforcement lies outside the range. In cases
 * 201 to 210, with which nothing was chosen, there missed (in brackets: ranges of closed loops
 * wider than a factor of 2):
 *                       of   server-4  server-16  ssd-4  ssd-32  array
 *   open, one size      21   0         0          0      0       0
 *   open, mixed sizes   26   0         0          0      1       0
 *   closed, one size    23   0 (0)     0 (0)      0 (3)  0 (3)   1 (6)
 *   closed, mixed sizes 16   0 (3)     0 (0)      0 (2)  0 (4)   1 (6)
 * The array is not always as good: in cases 1 to 3 open loops miss in 5 of 15 figures, by up to a
 * third, where the load is 0.94 and 0.95 of what it can do and the depth below the number of its
 * disks.
 */
#include "serve/shadow-rig.h"
#include <math.h>

#define N(a) (sizeof(a) / sizeof(*(a)))

static const struct shadow_model models[] = {
	{"server-4", shadow_server_4, 4000, false},
	{"server-16", shadow_server_16, 4000, false},
	{"ssd-4", shadow_ssd, 3900, false},
	{"ssd-32", shadow_ssd_32, 30000, false},
	{"array", shadow_array, 3500, true},
};

enum kind { OPEN, OPEN_MIXED, CLOSED, CLOSED_MIXED, KINDS };
static const char *const kinds[KINDS] = {
	"open, one size", "open, mixed", "closed, one size", "closed, mixed"};

struct tally {
	unsigned n, missed, wide;
};

/* Requests/s of that size with much inside, about. */
static double most(const struct shadow_model *m, uint32_t bytes)
{
	if (m->rotational)
		return fmin(
			10 / (0.0028 * fmax(1, bytes / 65536.0) + bytes / 125e6), 200e6 / bytes);
	return strncmp(m->name, "ssd", 3) == 0 ? m->rate / fmax(1, bytes / 16384.0) : m->rate;
}

static double between(struct rng *g, double low, double high)
{
	return low * pow(high / low, rng_double(g));
}

struct shape { /* of a case */
	struct shadow_run run;
	struct rig_client client[TENANTS];
	char tenants[512], text[512]; /* text: for people */
};

static void add_tenant(struct shape *s, struct rng *g, uint32_t bytes, bool closed)
{
	struct rig_client *c = &s->client[s->run.n];
	double what = rng_double(g), part = between(g, 0.1, 0.5) * most(s->run.model, bytes);
	char name = (char)('a' + s->run.n++), key[64];
	size_t at = strlen(s->tenants);

	*c = (struct rig_client){.length = bytes};
	if (what < 0.7)
		snprintf(key, sizeof(key), "weight: %u", 1u << rng_below(g, 4));
	else if (what < 0.9)
		snprintf(key, sizeof(key), "max: %.0f iops", part);
	else
		snprintf(key, sizeof(key), "min: %.0f iops", part / 4);
	if (closed) {
		c->depth = (unsigned)between(g, 1, 65);
		c->think = rng_double(g) < 0.3 ? (weir_time)between(g, 0.2e6, 5e6) : 0;
	}
	snprintf(s->tenants + at, sizeof(s->tenants) - at,
		"  - {name: %c, %s, match: {export: %c}}\n", name, key, name);
	at = strlen(s->text);
	snprintf(s->text + at, sizeof(s->text) - at, "; %s, %u KiB", key, bytes / 1024);
	at = strlen(s->text);
	if (closed)
		snprintf(s->text + at, sizeof(s->text) - at, ", %u outstanding, think %.1f ms",
			c->depth, (double)c->think / WEIR_MS);
}

static void make(struct shape *s, const struct shadow_model *m, enum kind kind, uint64_t seed)
{
	double load, part[TENANTS], sum = 0;
	struct rng g;
	unsigned n;

	rng_init(&g, seed * KINDS + kind, "shape");
	*s = (struct shape){.run = {.model = m, .seed = seed}};
	s->run.depth = (unsigned)between(&g, 4, 65);
	n = 1 + (unsigned)rng_below(&g, TENANTS);
	load = between(&g, 0.5, 3);
	for (uint32_t i = 0, bytes = 4096u << rng_below(&g, 7); i < n; i++) {
		add_tenant(s, &g, bytes, kind >= CLOSED);
		if (kind == OPEN_MIXED || kind == CLOSED_MIXED)
			bytes = 4096u << rng_below(&g, 7);
		part[i] = between(&g, 1, 4); /* of the device's time */
		sum += part[i];
	}
	for (uint32_t i = 0; i < n; i++)
		s->client[i].rate = load * part[i] / sum * most(m, s->client[i].length);
	s->run.tenants = s->tenants;
	s->run.clients = s->client;
}

static void compare(struct tally *t, const struct shadow_model *m, enum kind kind, uint64_t seed)
{
	struct shape s;
	struct seen is, says;

	make(&s, m, kind, seed);
	shadow_run(&s.run, true, &is);
	shadow_run(&s.run, false, &says);
	for (size_t i = 0; i < s.run.n; i++) {
		double off = fabs(says.rate[i] - is.rate[i]);
		bool missed = kind >= CLOSED
				      ? !(says.low[i] <= is.rate[i] && is.rate[i] <= says.high[i])
				      : off > 0.15 * is.rate[i] && off > 3 * sqrt(is.rate[i] / 2);

		t->n++;
		t->missed += missed;
		t->wide += !(says.high[i] <= 2 * says.low[i]);
		CHECK(says.queued[i] <= 1024);
		if (missed)
			printf("  %s, case %u, depth %u%s: %c: %.0f, shadow %.0f (%.2f; %.0f … "
			       "%.0f)\n",
				m->name, (unsigned)seed, s.run.depth, s.text, (char)('a' + i),
				is.rate[i], says.rate[i], says.rate[i] / is.rate[i], says.low[i],
				says.high[i]);
	}
}

static void sweep(struct tally *t, size_t model, uint64_t first, uint64_t last)
{
	memset(t, 0, KINDS * sizeof(*t));
	for (enum kind k = OPEN; k < KINDS; k++) {
		for (uint64_t seed = first; seed <= last; seed++)
			compare(&t[k], &models[model], k, seed);
		printf("  %s, %s: %u of %u missed, %u wider than 2\n", models[model].name, kinds[k],
			t[k].missed, t[k].n, t[k].wide);
	}
}

/* Cases 1 and 2 (server-4 is in shadow.c), of which only open loops on the array miss, by 15.1 %.
 * One range in four is wider than a factor of 2. */
static void test_part(void)
{
	struct tally t[KINDS];
	unsigned n = 0, wide = 0;

	for (size_t m = 1; m < N(models); m++) {
		sweep(t, m, 1, 2);
		CHECK(t[OPEN].missed <= (models[m].rotational ? 2 : 0));
		CHECK_INT(t[OPEN_MIXED].missed, 0);
		CHECK_INT(t[CLOSED].missed, 0);
		CHECK_INT(t[CLOSED_MIXED].missed, 0);
		n += t[CLOSED].n + t[CLOSED_MIXED].n;
		wide += t[CLOSED].wide + t[CLOSED_MIXED].wide;
	}
	CHECK(wide * 4 <= n);
}

int main(int argc, char **argv)
{
	struct tally t[KINDS];

	if (argc < 3) {
		RUN(test_part);
		return 0;
	}
	for (size_t m = 0; m < N(models); m++)
		if (argc < 4 || strcmp(argv[3], models[m].name) == 0)
			sweep(t, m, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
	return 0;
}
