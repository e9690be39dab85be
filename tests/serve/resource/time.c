/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time: with `cost: time`, tenants of equal weight get equal device time by the model's own
 * account, for any sizes of their requests; in virtual time.
 */
#include "serve/device-rig.h"
#include "model/disk.h"
#include "model/server.h"
#include "model/ssd.h"

/* The default window in bytes of an ssd, as back-model states it: two pages for each of 32 dies. */
#define SSD_BYTES (1u << 20)

static struct rig w;

static const char policy[] = "resources: [{name: d, back: \"memory:1G\", cost: time, depth: %s}]\n"
			     "tenants:\n"
			     "  - {name: a, weight: %u, match: {export: a}}\n"
			     "  - {name: b, match: {export: b}}\n";

/* Both at QD64; the first has `weight` times the device time of the second. */
static void check_late(const char *what, struct device *device, const char *depth, unsigned weight,
	struct rig_client one, struct rig_client two, weir_time late)
{
	char text[512];
	struct rig_client *a, *b;
	double ratio;

	snprintf(text, sizeof(text), policy, depth, weight);
	rig_new(&w, text, &device);
	w.late = late;
	w.back[0]->back.info.depth_bytes = SSD_BYTES;
	resource_policy_window(w.resource[0]);
	one.depth = two.depth = 64;
	a = rig_join(&w, 0, "a", one);
	b = rig_join(&w, 0, "b", two);
	/* Until all requests that were sent before the first estimates are done. */
	for (int i = 0; i < 100 && (a->done < 300 || b->done < 300); i++)
		rig_run(&w, WEIR_SEC / 10);
	rig_clear(&w);
	for (int i = 0; i < 100 && (a->done < 1000 || b->done < 1000); i++)
		rig_run(&w, WEIR_SEC / 10);
	ratio = (double)a->busy / (double)b->busy / weight;
	printf("  %s, depth %s: %lu of %u and %lu of %u bytes, time 1 : %.3f\n", what, depth,
		(unsigned long)a->done, a->length, (unsigned long)b->done, b->length, 1 / ratio);
	CHECK_NEAR(ratio, 1, 0.1);
	rig_free(&w);
}

static void check_equal(const char *what, struct device *device, const char *depth, unsigned weight,
	struct rig_client one, struct rig_client two)
{
	check_late(what, device, depth, weight, one, two, 0);
}

static struct device *ssd(bool small)
{
	struct ssd_config config = ssd_defaults();
	struct device *d;
	struct weir_err err;

	if (small) {
		config.channels = config.dies = 2;
		config.read = config.program = WEIR_MS;
	}
	CHECK_INT(ssd_new(&config, 1, "ssd", &d, &err), 0);
	return d;
}

static const struct rig_client small = {.length = 4096}, large = {.length = 262144};

static void test_ssd(void)
{
	check_equal("ssd", ssd(false), "32", 1, small, large);
	check_equal("ssd", ssd(false), "8", 1, small, large);
}

static void test_small_ssd(void)
{
	check_equal("2 × 2 dies of 1 ms", ssd(true), "4", 1, small, large);
	check_equal("2 × 2 dies of 1 ms", ssd(true), "32", 1, small, large);
}

static void test_weights(void)
{
	check_equal("3 : 1", ssd(true), "4", 3, large, small);
}

static void test_reads_and_writes(void)
{
	struct rig_client writes = {.length = 16384, .op = BACK_WRITE};

	check_equal("reads and writes", ssd(false), "32", 1, large, writes);
}

static void test_writes(void)
{
	struct rig_client little = {.length = 4096, .op = BACK_WRITE};
	struct rig_client much = {.length = 262144, .op = BACK_WRITE};

	check_equal("writes", ssd(false), "32", 1, little, much);
	check_equal("writes", ssd(false), "auto", 1, little, much);
}

/* The gateway's thread wakes late: the device time is the model's, not the thread's. */
static void test_late_thread(void)
{
	struct rig_client little = {.length = 4096, .op = BACK_WRITE};
	struct rig_client much = {.length = 262144, .op = BACK_WRITE};

	check_late("thread late by 1 ms", ssd(false), "32", 1, small, large, WEIR_MS);
	check_late("writes, thread late by 5 ms", ssd(false), "32", 1, little, much, 5 * WEIR_MS);
}

/* A late client has fewer requests waiting than allowed. Of 64 writes enough still wait, unless
 * writes of 256 KiB fill the window meanwhile. */
static void test_late_clients(void)
{
	struct rig_client little = {.length = 4096, .op = BACK_WRITE, .think = 1400 * WEIR_US};
	struct rig_client much = {.length = 262144, .op = BACK_WRITE, .think = 1400 * WEIR_US};

	check_equal("writes, clients late", ssd(false), "auto", 1, little, much);
}

/* The window has the back end's bytes if the policy leaves the depth to it and shares time. */
static void test_window(void)
{
	static const struct {
		const char *keys;
		uint64_t bytes;
	} of[] = {{"cost: time", SSD_BYTES}, {"cost: time, depth: auto", SSD_BYTES},
		{"cost: time, depth: 32", 0}, {"cost: requests", 0},
		{"cost: time, depth: {bytes: 64 KiB}", 65536}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct weir_gate_totals t;
		char text[256];

		snprintf(text, sizeof(text), "resources: [{name: d, back: \"memory:1G\", %s}]\n",
			of[i].keys);
		rig_new(&w, text, NULL);
		w.back[0]->back.info.depth_bytes = SSD_BYTES;
		resource_policy_window(w.resource[0]);
		weir_gate_get_totals(w.resource[0]->gate, w.now, &t);
		CHECK_INT(t.window_bytes, of[i].bytes);
		rig_free(&w);
	}
}

static void test_server(void)
{
	struct server_config config = {
		.servers = 4, .rate = 4000, .bytes_per_s = 100e6, .service = SERVER_FIXED};
	struct device *d;
	struct weir_err err;

	CHECK_INT(server_new(&config, 1, "server", &d, &err), 0);
	check_equal("server", d, "4", 1, small, large);
}

static void test_disk(void)
{
	struct disk_config config = disk_defaults();
	struct device *d;
	struct weir_err err;

	CHECK_INT(disk_new(&config, 1, "disk", &d, &err), 0);
	check_equal("disk", d, "4", 1, small, large);
}

int main(void)
{
	RUN(test_ssd);
	RUN(test_small_ssd);
	RUN(test_weights);
	RUN(test_reads_and_writes);
	RUN(test_writes);
	RUN(test_late_thread);
	RUN(test_late_clients);
	RUN(test_window);
	RUN(test_server);
	RUN(test_disk);
	return 0;
}
