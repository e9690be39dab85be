/* SPDX-License-Identifier: BSD-3-Clause */
/* controller: PARDA behind the plug, at a site that the test plays, in virtual time. */
#include "base/container.h"
#include "control/parda/keys.h"
#include "control/parda/message.h"
#include "test.h"
#include <errno.h>

#define PERIOD (2 * WEIR_SEC)
#define FIRST  (PERIOD / 4)

struct rig {
	struct site site;
	void *control;
	struct parda_settings settings;
	struct controller_peers peers;
	double depth;
	weir_time now, wake, looked;
	double window; /* 0: none was set */
	int asked, loads, published, at_once;
	weir_time asked_at;
	struct parda_report last;
	uint64_t activity;
	bool busy, is_late;
	double latency; /* ns */
	struct site_burst *burst;
	struct rig *peer; /* hears at once, through the codec */
};

static struct rig *rig_of(const struct site *s)
{
	return (struct rig *)container_of(s, const struct rig, site);
}

static weir_time rig_now(struct site *s)
{
	return rig_of(s)->now;
}

static uint64_t rig_activity(const struct site *s)
{
	return rig_of(s)->activity;
}

static bool rig_busy(const struct site *s)
{
	return rig_of(s)->busy;
}

static void rig_wake(struct site *s, weir_time at)
{
	rig_of(s)->wake = at;
}

static void rig_tell(
	struct site *s, enum site_level level, const char *event, const struct site_field *f)
{
	CHECK(level != SITE_ERROR);
}

/* One tenant with 8 requests inside. */
static int rig_loads(struct site *s, struct site_loads *ret)
{
	static struct site_load row;
	struct rig *r = rig_of(s);
	weir_time span = r->now - r->looked;
	bool first = !r->looked;

	r->looked = r->now;
	r->loads++;
	if (first)
		return -EAGAIN;
	row = (struct site_load){.shares = 1,
		.ios = (uint64_t)(8.0 * (double)span / r->latency),
		.latency_ns = 8.0 * (double)span,
		.device_ns = 8.0 * (double)span,
		.wanting_ns = 8.0 * (double)span};
	*ret = (struct site_loads){.span = span, .rows = &row, .n = 1};
	return 0;
}

static void rig_set_window(struct site *s, double window)
{
	rig_of(s)->window = window;
}

static void rig_ask_upstream(struct site *s)
{
	rig_of(s)->asked++;
	rig_of(s)->asked_at = rig_of(s)->now;
}

static int rig_read(struct site *s, struct site_burst *b)
{
	rig_of(s)->burst = b;
	return b->more(b, rig_of(s)->now) ? 0 : -EBUSY;
}

static void rig_forget(struct site *s, struct site_burst *b)
{
	if (rig_of(s)->burst == b)
		rig_of(s)->burst = NULL;
}

static void hear(struct rig *r, const struct parda_report *report)
{
	struct controller_news news = {.kind = CONTROLLER_REPORT, .message = report};

	parda_controller.hear(r->control, &news);
}

static void rig_publish(struct site *s, const void *report, bool at_once)
{
	struct rig *r = rig_of(s);
	struct peer_report wire = parda_controller.encode(report, &r->peers);
	struct peer_message m = {.instance = r->peers.instance,
		.sequence = (uint64_t)(r->published + r->at_once + 1)};
	struct parda_report heard;

	*(at_once ? &r->at_once : &r->published) += 1;
	CHECK(at_once || r->is_late || (r->now - r->peers.first) % PERIOD == 0);
	parda_controller.decode(&m, &wire, &heard);
	heard.id = parda_message_id(r->peers.host, r->peers.number);
	r->last = heard;
	if (r->peer)
		hear(r->peer, &heard);
}

static const struct site_ops ops = {
	.now = rig_now,
	.activity = rig_activity,
	.busy = rig_busy,
	.wake = rig_wake,
	.tell = rig_tell,
	.loads = rig_loads,
	.set_window = rig_set_window,
	.ask_upstream = rig_ask_upstream,
	.read = rig_read,
	.forget = rig_forget,
	.publish = rig_publish,
};

static void begin(struct rig *r)
{
	struct controller_version v = {
		.settings = &r->settings, .depth = r->depth, .peers = r->peers};

	parda_controller.begin(r->control, &v);
}

static void start(struct rig *r, uint64_t host)
{
	*r = (struct rig){.site = {.ops = &ops, .name = "array"},
		.peers = {.host = host, .instance = 100 + host, .period = PERIOD, .first = FIRST},
		.latency = 10 * WEIR_MS,
		.now = 1,
		.settings = r->settings,
		.depth = r->depth};
	CHECK_INT(parda_controller.new(&r->site, &r->control), 0);
	begin(r);
}

static struct rig fresh(void)
{
	struct rig r = {.depth = 32};

	keys_default(parda_controller.keys, &r.settings, sizeof(r.settings));
	r.settings.threshold = 25 * WEIR_MS;
	return r;
}

static void stop(struct rig *r)
{
	parda_controller.free(r->control);
}

/* The site calls when it was asked to. */
static void run(struct rig *r, weir_time until)
{
	while (r->wake <= until) {
		r->now = r->wake > r->now ? r->wake : r->now;
		r->wake = parda_controller.step(r->control, r->now);
		CHECK(r->wake > r->now);
	}
	r->now = until;
}

/* ---- tests */

static void test_first_window(void)
{
	struct rig r = fresh();

	start(&r, 1);
	CHECK_NEAR(r.window, r.settings.wmin, 0);
	stop(&r);
	r.settings.start = 1;
	start(&r, 1);
	CHECK_NEAR(r.window, 32, 0);
	stop(&r);
	r.settings.wmax = 16;
	start(&r, 1);
	CHECK_NEAR(r.window, 16, 0);
	stop(&r);
}

/* One report a period, on the host's times; the upstream is asked a quarter before. */
static void test_period(void)
{
	struct rig r = fresh();

	start(&r, 1);
	run(&r, FIRST);
	CHECK_INT(r.loads, 1);
	CHECK_INT(r.published, 0); /* the first look counts for nothing */
	run(&r, FIRST + PERIOD - 1);
	CHECK_INT(r.asked, 2);
	CHECK_INT(r.asked_at, FIRST + PERIOD - PERIOD / 4);
	CHECK_INT(r.published, 0);
	run(&r, FIRST + PERIOD);
	CHECK_INT(r.published, 1);
	CHECK_INT(parda_controller.steps(r.control), 1);
	run(&r, FIRST + 9 * PERIOD);
	CHECK_INT(r.published, 9);
	CHECK(r.window > r.settings.wmin);
	stop(&r);
}

/* A thread that is late steps once, and then at the host's times again. */
static void test_late(void)
{
	struct rig r = fresh();

	start(&r, 1);
	run(&r, FIRST + PERIOD);
	r.now = FIRST + 4 * PERIOD + PERIOD / 3;
	r.is_late = true;
	r.wake = parda_controller.step(r.control, r.now);
	r.is_late = false;
	CHECK_INT(r.published, 2);
	run(&r, FIRST + 5 * PERIOD - 1);
	CHECK_INT(r.published, 2);
	run(&r, FIRST + 5 * PERIOD);
	CHECK_INT(r.published, 3);
	stop(&r);
}

/* Another threshold: the law goes on. Other settings: it begins anew, with the window that it has. */
static void test_versions(void)
{
	struct rig r = fresh();
	double window;

	start(&r, 1);
	run(&r, FIRST + 6 * PERIOD);
	window = r.window;
	CHECK(window > 4);
	r.settings.threshold = 50 * WEIR_MS;
	r.looked = 0;
	r.peers.first = FIRST + 7 * PERIOD;
	begin(&r);
	CHECK_INT(parda_controller.steps(r.control), 6);
	CHECK_NEAR(r.window, window, 0);
	r.settings.age = 7;
	begin(&r);
	CHECK_INT(parda_controller.steps(r.control), 0);
	CHECK_NEAR(r.window, window, 1e-9);
	stop(&r);
}

/* ---- reads of its own */

static void run_both(struct rig *a, struct rig *b, weir_time until)
{
	while (a->wake <= until || b->wake <= until) {
		struct rig *next = a->wake <= b->wake ? a : b;

		a->now = b->now = next->wake > next->now ? next->wake : next->now;
		next->wake = parda_controller.step(next->control, next->now);
		CHECK(next->wake > next->now);
	}
	a->now = b->now = until;
}

static void start_both(struct rig *a, struct rig *b)
{
	*a = fresh();
	a->settings.find = a->settings.probe = true;
	a->settings.threshold = a->settings.threshold_max;
	*b = *a;
	start(a, 1);
	start(b, 2);
	b->peers.first = FIRST + PERIOD / 2;
	begin(b);
	a->peer = b;
	b->peer = a;
}

/* Until a reads, while both are quiet. */
static bool reads(struct rig *a, struct rig *b, weir_time until)
{
	for (weir_time t = a->now; t < until && !a->burst; t += 5 * WEIR_MS)
		run_both(a, b, t);
	return a->burst != NULL;
}

/* The host with the lowest id asks, its peer answers, and only then it reads; looks in between are no steps. A client of the
 * peer ends the burst. */
static void test_reads(void)
{
	struct rig a, b;

	start_both(&a, &b);
	CHECK(reads(&a, &b, 60 * WEIR_SEC));
	CHECK(!b.burst);
	CHECK(a.at_once >= 1 && b.at_once >= 1);
	CHECK(b.last.quiet);
	CHECK_INT(a.published, (int)((a.now - FIRST) / PERIOD));
	CHECK(!a.burst->ended);
	b.activity++;
	run_both(&a, &b, a.now + 10 * WEIR_MS);
	CHECK(a.burst && a.burst->ended);
	CHECK_INT(a.burst->more(a.burst, a.now), 0);
	stop(&a);
	CHECK(!a.burst); /* forgotten */
	stop(&b);
}

/* A peer with requests inside answers so, and no host reads. */
static void test_busy_peer(void)
{
	struct rig a, b;

	start_both(&a, &b);
	b.busy = true;
	CHECK(!reads(&a, &b, 60 * WEIR_SEC));
	CHECK(a.at_once > 10 && b.at_once > 10);
	CHECK(!b.last.quiet);
	CHECK_INT(a.published, (int)((a.now - FIRST) / PERIOD));
	stop(&a);
	stop(&b);
}

/* Until a burst is due. */
static void be_busy(struct rig *a, struct rig *b)
{
	for (int i = 0; i < 4000; i++, a->activity++)
		run_both(a, b, a->now + 5 * WEIR_MS);
	CHECK(!a->burst);
}

/* A burst begins with a pause or in a long one: a client that comes back into it makes its last reads wait. */
static void test_pause(void)
{
	struct rig a, b;
	weir_time paused;

	start_both(&a, &b);
	be_busy(&a, &b);
	paused = a.now;
	CHECK(reads(&a, &b, paused + 60 * WEIR_MS));
	stop(&a);
	stop(&b);
	start_both(&a, &b);
	be_busy(&a, &b);
	b.busy = true;
	paused = a.now;
	CHECK(!reads(&a, &b, paused + 100 * WEIR_MS));
	b.busy = false;
	CHECK(!reads(&a, &b, paused + 950 * WEIR_MS));
	CHECK(reads(&a, &b, paused + 1100 * WEIR_MS));
	stop(&a);
	stop(&b);
}

int main(void)
{
	RUN(test_first_window);
	RUN(test_period);
	RUN(test_late);
	RUN(test_versions);
	RUN(test_reads);
	RUN(test_busy_peer);
	RUN(test_pause);
	return 0;
}
