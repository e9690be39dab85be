/* SPDX-License-Identifier: BSD-3-Clause */
/* facts: every description keeps the rules that the views rely on; values of every type; rows that
 * a controller fills. */
#include "control/adaptbf/facts.h"
#include "control/controller.h"
#include "control/facts.h"
#include "control/parda/facts.h"
#include "test.h"
#include <stdint.h>

/* ---- descriptions */

static size_t size_of(enum facts_type type)
{
	static const size_t sizes[] = {[FACTS_U64] = 8,
		[FACTS_I64] = 8,
		[FACTS_U32] = 4,
		[FACTS_I32] = 4,
		[FACTS_REAL] = sizeof(double),
		[FACTS_BOOL] = sizeof(bool),
		[FACTS_TEXT] = sizeof(const char *)};

	return sizes[type];
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static void check_metric(const struct fact *f)
{
	CHECK(strncmp(f->metric, "weir_", 5) != 0);
	CHECK(f->help && ends_with(f->help, "."));
	CHECK(f->type != FACTS_TEXT);
	if (f->unit == FACTS_SECONDS)
		CHECK(strstr(f->metric, "_seconds"));
}

/* No two facts of a table have the same name in the same view. */
static void check_unique(const struct facts_table *t, const struct fact *f)
{
	for (const struct fact *o = t->facts; o < f; o++) {
		CHECK(!f->name || !o->name || strcmp(f->name, o->name) != 0);
		CHECK(!f->metric || !o->metric || strcmp(f->metric, o->metric) != 0);
		CHECK(!f->title || !o->title || strcmp(f->title, o->title) != 0);
		/* a rate has one of two units, and so two facts */
		CHECK(!f->series || !o->series || strcmp(f->series, o->series) != 0 ||
			f->unit != o->unit);
	}
	for (size_t i = 0; i < 2 && t->keys[i].name; i++)
		CHECK(!f->name || strcmp(f->name, t->keys[i].name) != 0);
}

static void check_table(const struct facts_table *t, bool self)
{
	size_t columns = 0;

	CHECK(self || (t->name && t->keys[0].name));
	CHECK(!self || !t->keys[0].name);
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++) {
		CHECK(f->offset + size_of(f->type) <= t->size);
		CHECK(self || f->offset >= sizeof(struct facts_row));
		CHECK(f->name || f->metric || f->title || f->series || f->end);
		CHECK(f->none != FACTS_NO_LIMIT || f->type == FACTS_I64);
		columns += f->title != NULL;
		check_unique(t, f);
		if (!f->metric)
			continue;
		check_metric(f);
		for (size_t i = 0; i < 2 && t->keys[i].name; i++)
			CHECK(t->keys[i].label);
	}
	CHECK(columns <= 24);
	CHECK(!t->tenants || strcmp(t->keys[0].name, "tenant") == 0);
}

static void descriptions(void)
{
	for (size_t i = 0; facts_kind(i); i++) {
		const struct facts_kind *k = facts_kind(i);

		CHECK_INT(facts_index(k), i);
		CHECK(k->label && k->fill);
		check_table(&k->self, true);
		for (size_t t = 0; t < FACTS_TABLES && k->tables[t].size; t++)
			check_table(&k->tables[t], false);
		if (k->whole.size)
			check_table(&k->whole, false);
	}
	CHECK(facts_stateful() == &adaptbf_facts);
}

/* Every key of a controller has its sentences in the manual, and nothing else has. */
static void helps(void)
{
	for (size_t i = 0; controllers[i]; i++) {
		const struct controller *c = controllers[i];
		size_t keys = 0, helped = 0;

		for (const struct key *k = c->keys; k && k->name; k++, keys++)
			for (const struct key_help *h = c->help; h && h->key; h++)
				helped += strcmp(h->key, k->name) == 0 && ends_with(h->text, ".");
		CHECK_INT(helped, keys);
		for (const struct key_help *h = c->help; h && h->key; h++)
			CHECK(keys-- > 0);
	}
}

/* ---- values */

struct any {
	uint64_t u64;
	int64_t i64, limit;
	uint32_t u32;
	int32_t i32;
	double real;
	bool flag;
	const char *text;
	weir_time time;
};
#define AT(member) FACT_AT(struct any, member)
static const struct fact u64 = {AT(u64)}, i64 = {AT(i64)}, u32 = {AT(u32)}, i32 = {AT(i32)},
			 real = {AT(real), .none = FACTS_NOT_ZERO}, flag = {AT(flag)},
			 text = {AT(text)}, seconds = {AT(time), .unit = FACTS_SECONDS},
			 limit = {AT(limit), .none = FACTS_NO_LIMIT};

static void values(void)
{
	struct any a = {.u64 = UINT64_MAX,
		.i64 = -7,
		.u32 = UINT32_MAX,
		.i32 = INT32_MIN,
		.real = 0.25,
		.flag = true,
		.text = "words",
		.limit = INT64_MAX,
		.time = 1500 * WEIR_MS};

	CHECK_INT(facts_whole(&u64, &a), INT64_MAX); /* as JSON can say it */
	CHECK_INT(facts_whole(&i64, &a), -7);
	CHECK_INT(facts_whole(&u32, &a), UINT32_MAX);
	CHECK_INT(facts_whole(&i32, &a), INT32_MIN);
	CHECK(facts_value(&real, &a) == 0.25 && facts_known(&real, &a));
	CHECK(facts_value(&flag, &a) == 1);
	CHECK_STR(facts_text(&text, &a), "words");
	CHECK(facts_known(&text, &a) && isnan(facts_value(&text, &a)));
	CHECK_NEAR(facts_value(&seconds, &a), 1.5, 1e-12);
	CHECK_NEAR(facts_stored(&seconds, &a), 1.5e9, 0);
	CHECK(!facts_is_whole(&seconds) && facts_is_whole(&u64) && !facts_is_whole(&real));
	CHECK(isinf(facts_value(&limit, &a)) && !facts_known(&limit, &a));
	a = (struct any){.limit = 5};
	CHECK(!facts_known(&real, &a) && !facts_known(&text, &a));
	CHECK(facts_known(&limit, &a) && facts_value(&limit, &a) == 5);
	a.real = NAN;
	CHECK(!facts_known(&real, &a));
}

static void setting(void)
{
	struct any a = {0};

	CHECK(facts_set_whole(&u64, &a, INT64_MAX) && a.u64 == INT64_MAX);
	CHECK(!facts_set_whole(&u64, &a, -1));
	CHECK(facts_set_whole(&u32, &a, UINT32_MAX) && !facts_set_whole(&u32, &a, 1LL << 32));
	CHECK(facts_set_whole(&i32, &a, INT32_MIN) && !facts_set_whole(&i32, &a, 1LL << 31));
	CHECK(facts_set_whole(&flag, &a, 1) && a.flag && !facts_set_whole(&flag, &a, 2));
	CHECK(!facts_set_whole(&real, &a, 1) && !facts_set_whole(&text, &a, 1));
	CHECK(facts_set_real(&real, &a, 0.5) && a.real == 0.5);
	CHECK(!facts_set_real(&u64, &a, 0.5));
	CHECK(facts_set_real(&seconds, &a, 1.5) && a.time == 1500 * WEIR_MS);
	CHECK(!facts_set_real(&seconds, &a, 1e300) && !facts_set_real(&seconds, &a, NAN));
	facts_set_text(&text, &a, "x");
	CHECK_STR(a.text, "x");
}

/* ---- controllers */

static const char *note_of(struct parda_decision *d, const struct parda *p, char room[FACTS_NOTE])
{
	static struct arena memory;
	struct facts_site site = {.memory = &memory};
	struct parda_facts_of of = {.parda = p, .last = d};
	struct facts f = {0};
	const char *note;

	parda_facts.fill(&of, &site, &f);
	CHECK(f.kind == &parda_facts);
	note = parda_facts.self.note(f.self, room);
	arena_free(&memory);
	return note;
}

static void notes_of_parda(void)
{
	struct parda_config config = {.id = 1,
		.instance = 1,
		.law = {.threshold = 1e6, .gamma = 0.5, .wmin = 1, .wmax = 9}};
	struct parda_decision d = {.alone = true};
	char room[FACTS_NOTE];
	struct parda *p;

	CHECK_INT(parda_new(&config, &p), 0);
	CHECK_STR(note_of(&d, p, room), "alone: no other host is heard");
	d.wmax_wanted = 31.4;
	CHECK_STR(note_of(&d, p, room), "alone: no other host is heard");
	d.wmax_short = true;
	CHECK_STR(note_of(&d, p, room), "wmax is below the share, which is about 31");
	d.strange = 12;
	d.stranger = true;
	CHECK_STR(note_of(&d, p, room), "a stranger has about 12 requests inside");
	d.too_low = true;
	CHECK_STR(note_of(&d, p, room),
		"a stranger has about 12 requests inside; wmax is less than half of the fair part");
	d.unreachable = true;
	d.least = 5e6;
	CHECK_STR(note_of(&d, p, room), "latency is over the threshold at any window");
	d.twice = true;
	CHECK_STR(note_of(&d, p, room), "two hosts have one name");
	d = (struct parda_decision){0};
	CHECK_STR(note_of(&d, p, room), "");
	parda_free(p);
}

int main(void)
{
	RUN(descriptions);
	RUN(helps);
	RUN(values);
	RUN(setting);
	RUN(notes_of_parda);
	return 0;
}
