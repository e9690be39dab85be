/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law-silence: controllers that fall silent and come back, in the world of tests/control/pshift/faults.h, whose judge
 * checks every limit at every step. Demand is steady. The faults: a controller that is paused at any moment and goes on
 * later; links that are cut in one direction; two controllers that ask under the same generation, the greater of which
 * falls silent; a server whose clock stands still, with or without its process. Also checked: two periods after the
 * faults of a round have ended, every bucket has its reservation again.
 *
 * WEIR_SEED gives other worlds, and WEIR_WORLDS their number of each kind.
 */
#include "control/pshift/faults.h"

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* The server whose clock stands still; w.n: none. */
static size_t still;

static void run_for(weir_time span)
{
	for (weir_time end = w.now + span; w.now < end;) {
		weir_time before = 0;

		if (still < w.n)
			before = clock_of(&w.servers[still]);
		w.now += STEP;
		if (still < w.n)
			w.servers[still].offset -= clock_of(&w.servers[still]) - before;
		w.now -= STEP;
		step();
	}
}

static weir_time up_to(double periods)
{
	return (weir_time)(rng_double(&w.rng) * periods * (double)LENGTH);
}

/* ---- faults */

static size_t leader(void)
{
	for (size_t k = 0; k < CHIEFS; k++)
		if (status_of(k).started)
			return k;
	return rng_below(&w.rng, CHIEFS);
}

static void pause_leader(void)
{
	size_t k = leader();

	if (w.leaders[k].up)
		w.leaders[k].frozen = true;
}

/* One direction: of one link, of a minority's or a majority's links to one controller, or of a server to all. */
static void cut_one_way(void)
{
	bool up = chance(0.5);
	size_t j = rng_below(&w.rng, w.n), k = leader(), most = rng_below(&w.rng, w.n) + 1;

	if (chance(0.3))
		for (size_t a = 0; a < LEADERS; a++)
			w.cut[up][j][a] = true;
	else
		for (size_t a = 0; a < most; a++)
			w.cut[up][(j + a) % w.n][k] = true;
}

/* Both start at once, and some servers hear one of them only; the greater instance may fall silent. */
static void start_twins(void)
{
	bool told = chance(0.5);

	for (size_t k = 0; k < CHIEFS; k++) {
		w.leaders[k].frozen = false;
		stop_leader(k, told);
	}
	run_for(up_to(2));
	for (size_t k = 0; k < CHIEFS; k++)
		start_leader(k);
	for (size_t j = 0; j < w.n; j++)
		w.cut[chance(0.5)][j][rng_below(&w.rng, CHIEFS)] |= chance(0.5);
	run_for(up_to(1));
	if (chance(0.7))
		w.leaders[CHIEFS - 1].frozen = true;
	if (chance(0.5))
		memset(w.cut, 0, sizeof(w.cut));
}

static void stop_clock(void)
{
	still = rng_below(&w.rng, w.n);
	w.servers[still].frozen = chance(0.5);
}

static void end_faults(void)
{
	memset(w.cut, 0, sizeof(w.cut));
	for (size_t j = 0; j < w.n; j++)
		w.servers[j].frozen = false;
	for (size_t k = 0; k < CHIEFS; k++) {
		if (!w.control[k] && (k == 0 || chance(0.5)))
			start_leader(k);
		w.leaders[k].frozen = false;
	}
	still = w.n;
}

/* ---- checks */

static void check_mins(unsigned kind, uint64_t seed, unsigned round)
{
	int64_t before[BUCKETS];

	run_steps(2 * PERIOD);
	memcpy(before, w.passed, sizeof(before));
	run_steps(4 * PERIOD);
	for (size_t i = 0; i < BUCKETS; i++)
		if (w.passed[i] - before[i] <
			4 * w.reservation[w.version][i] * (i == 2 ? 90 : 95) / 100)
			FAIL("kind %u world %llu round %u, %zu servers: bucket %zu has %lld of "
			     "%lld",
				kind, (unsigned long long)seed, round, w.n, i,
				(long long)(w.passed[i] - before[i]) / 4,
				(long long)w.reservation[w.version][i]);
}

static void (*const faults[])(void) = {pause_leader, cut_one_way, start_twins, stop_clock};
#define KINDS (sizeof(faults) / sizeof(faults[0]))

/* Begin with a loop of each bucket at two of three servers. */
static void begin_steady(uint64_t seed, size_t servers)
{
	begin(seed, servers);
	still = w.n;
	for (size_t i = 0; i < BUCKETS; i++)
		for (size_t j = 0; j < w.n; j++) {
			w.places[j][i].loop = (i + j) % 3 ? 8 : 0;
			w.places[j][i].rate = 0;
		}
}

static void rounds(unsigned kind, uint64_t seed)
{
	begin_steady(seed * KINDS + kind, 3 + seed % (MOST - 2));
	w.sleeps = faults[kind] == stop_clock;
	if (seed % 2)
		start_leader(1);
	run_for(6 * LENGTH);
	for (unsigned n = 0; n < 10; n++) {
		faults[kind]();
		run_for(up_to(8));
		if (chance(0.4)) {
			faults[rng_below(&w.rng, w.sleeps ? KINDS : KINDS - 1)]();
			run_for(up_to(6));
		}
		end_faults();
		check_mins(kind, seed, n);
		run_for(up_to(6));
	}
	end();
}

static uint64_t worlds, first;

static void all_of(unsigned kind)
{
	for (uint64_t n = 0; n < worlds; n++)
		rounds(kind, first * 1000 + n);
}

static void a_controller_pauses(void)
{
	all_of(0);
}

static void one_direction_is_cut(void)
{
	all_of(1);
}

static void two_of_the_same_generation(void)
{
	all_of(2);
}

static void a_clock_stands_still(void)
{
	all_of(3);
}

/* The reports of a server are lost, and arrive again when the hold of its last grant is about to end: others may have
 * been told by then that they have its holdings from the next period on. */
static void one_returns_as_its_hold_ends(void)
{
	for (unsigned n = 0; n < 48; n++) {
		begin_steady((first + 1) * 1000 + n, 3 + n % 4);
		run_for(6 * LENGTH + LENGTH * (n % 5) / 5);
		for (size_t k = 0; k < LEADERS; k++)
			w.cut[1][n % w.n][k] = true;
		run_for(4 * LENGTH + LENGTH * n / 24);
		end_faults();
		check_mins(KINDS, n, 0);
		end();
	}
}

static void run_all(uint64_t seed)
{
	first = seed;
	printf("seed %llu\n", (unsigned long long)seed);
	RUN(a_controller_pauses);
	RUN(one_direction_is_cut);
	RUN(two_of_the_same_generation);
	RUN(a_clock_stands_still);
	RUN(one_returns_as_its_hold_ends);
}

int main(void)
{
	/* In 10 a standby had counted periods behind those of a later controller; in 59 a server reported its old part
	 * a second time, when others had been told that they have it; in 78 the last server to be heard was ahead. */
	static const uint64_t found[] = {1, 10, 59, 78};

	worlds = from_env("WEIR_WORLDS", 6);
	if (getenv("WEIR_SEED")) {
		run_all(from_env("WEIR_SEED", 1));
		return 0;
	}
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		run_all(found[i]);
	return 0;
}
