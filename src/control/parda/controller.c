/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: PARDA at one resource of one host.
 *
 * Once a period it takes the loads that the site measured, makes a window of them and of the peers' reports
 * (control/parda/parda.h), sets the window and publishes its own report. Shortly before a step the upstream is asked for
 * how long its limits hold requests: that time is not latency.
 */
#include "control/parda/controller-impl.h"
#include "base/array.h"
#include "control/parda/facts.h"
#include "control/parda/impl.h"
#include "control/parda/message.h"
#include "control/parda/tenant.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a period: how long before a step the upstream is asked. A quarter of the shortest, 25 ms, is longer than any
 * network takes. */
#define ASK_PART 4

/* ---- life */

static int make(struct site *site, void **ret)
{
	struct parda_control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->site = site;
	parda_reads_init(c);
	*ret = c;
	return 0;
}

static void clear(struct parda_control *c)
{
	c->site->ops->forget(c->site, &c->reads.burst);
	parda_reads_init(c);
	parda_free(c->parda);
	c->parda = NULL;
}

static void release(void *of)
{
	struct parda_control *c = of;

	clear(c);
	free(c->vms);
	free(c);
}

/* Return true if the settings differ in nothing but the law and the credit. */
static bool is_same(const struct parda_settings *a, const struct parda_settings *b)
{
	struct parda_settings like;

	memcpy(&like, b, sizeof(like)); /* as a whole: settings are zeroed before they are read */
	like.threshold = a->threshold;
	like.threshold_max = a->threshold_max;
	like.gamma = a->gamma;
	like.wmin = a->wmin;
	like.wmax = a->wmax;
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	return memcmp(a, &like, sizeof(like)) == 0;
}

/* Slots to begin with: the window so far, if there is one; 0: as a host that starts. */
static double begin_at(const struct parda_control *c, const struct parda_settings *s, double depth)
{
	if (c->parda)
		return c->last.report.window;
	if (s->window > 0 || s->start != 1)
		return s->window;
	return depth > 0 && depth < s->wmax ? depth : s->wmax;
}

/* The law goes on if only its numbers have changed; else it begins anew, with the window that it has. */
static int renew(struct parda_control *c, const struct controller_version *v)
{
	const struct parda_settings *s = v->settings;
	struct parda_config config = parda_settings_config(s, v->peers.period);
	struct parda *made;
	int r;

	config.id = parda_message_id(v->peers.host, v->peers.number);
	config.instance = v->peers.instance;
	config.peers_max = v->peers.most;
	config.window = begin_at(c, s, v->depth);
	if (c->parda && is_same(&c->settings, s) && c->peers.number == v->peers.number) {
		parda_renumber(c->parda); /* tenants of another version */
		return parda_set_law(c->parda, &config.law);
	}
	r = parda_new(&config, &made);
	if (r < 0)
		return r;
	clear(c);
	c->parda = made;
	c->steps = 0;
	c->last = (struct parda_decision){.window = parda_start_window(made)};
	return 0;
}

static void wake(struct parda_control *c)
{
	bool asks = c->site->ops->ask_upstream && !c->asked;
	weir_time at = asks ? c->due - c->peers.period / ASK_PART : c->due;

	c->site->ops->wake(c->site, c->reads.look < at ? c->reads.look : at);
}

/* A window at once: the depth might be a flood. */
static void begin(void *of, const struct controller_version *v)
{
	struct parda_control *c = of;
	const struct parda_settings *s = v->settings;
	int r = renew(c, v);

	if (r < 0) {
		clear(c);
		c->site->ops->tell(c->site, SITE_ERROR, "controller",
			(struct site_field[]){
				{"why", r == -ENOMEM ? "out of memory" : "invalid settings", 0},
				{0}});
		return;
	}
	if (s->wmax != c->settings.wmax || s->threshold != c->settings.threshold)
		c->said.too_low = c->said.wmax = c->said.unreachable = false;
	c->settings = *s;
	c->peers = v->peers;
	if (c->peers.period <= 0)
		c->peers.period = c->parda->config.period;
	c->due = v->peers.first;
	c->asked = false;
	c->reads.look = c->settings.probe ? c->due : WEIR_NEVER;
	if (!c->steps && (s->start != 1 || v->depth > 0))
		c->site->ops->set_window(c->site, c->last.window);
	wake(c);
}

static void end(void *of)
{
	clear(of);
}

/* ---- a period */

static struct parda_vm vm_of(
	const struct site_load *l, double held_ns, weir_time span, uint64_t slot)
{
	struct parda_tenant t = {.shares = l->shares,
		.ios = (double)l->ios,
		.bytes = l->bytes,
		.wanting_ns = l->wanting_ns - held_ns,
		.min_ios = l->min_ios,
		.min_bytes = l->min_bytes};
	struct parda_vm vm = parda_tenant_vm(&t, (double)span, (double)slot);

	vm.number = l->tenant;
	return vm;
}

static struct parda_measured measure(struct parda_control *c, const struct site_loads *loads)
{
	struct parda_measured m = {.vms = c->vms, .n_vms = loads->n};
	double held = 0, device_ns = 0;

	for (size_t i = 0; i < loads->n; i++) {
		const struct site_load *l = &loads->rows[i];
		double held_ns = c->settings.without == PARDA_WITHOUT_HELD ? 0 : l->held_ns;

		m.ios += l->ios;
		m.bytes += l->bytes;
		m.latency_ns += l->latency_ns;
		device_ns += l->device_ns;
		held += held_ns;
		c->vms[i] = vm_of(l, held_ns, loads->span, c->settings.slot);
	}
	m.latency_ns = fmax(0, m.latency_ns - held);
	m.inside = fmax(0, (device_ns - held) / (double)loads->span);
	m.held = fmin(held, device_ns) / (double)loads->span;
	return m;
}

/* Other resources of this host are peers as well, but only other hosts are shown. */
static void count_others(struct parda_control *c)
{
	const struct parda_peers *t = &c->parda->peers;

	for (uint32_t i = 0; i < t->n && c->last.peers > 0; i++)
		c->last.peers -= parda_peer_counts(t, &t->peers[i]) &&
				 t->peers[i].last.instance == c->peers.instance;
	c->last.alone = c->settings.estimate != 1 && c->last.peers == 0;
}

static bool room_for(struct parda_control *c, size_t n)
{
	if (n <= c->vms_room)
		return true;
	if (array_resize(&c->vms, n) < 0)
		return false;
	c->vms_room = n;
	return true;
}

static void step_period(struct parda_control *c)
{
	struct site *site = c->site;
	struct site_loads loads;
	struct parda_measured m;

	if (site->ops->loads(site, &loads) < 0 || !room_for(c, loads.n))
		return; /* the window stays */
	m = measure(c, &loads);
	parda_step(c->parda, site->ops->now(site), &m, &c->last);
	count_others(c);
	c->held = loads.held;
	c->steps++;
	parda_tell(c);
	site->ops->publish(site, &c->last.report, false);
	if (c->settings.without != PARDA_WITHOUT_WINDOWS)
		site->ops->set_window(site, c->last.window);
}

static weir_time step(void *of, weir_time now)
{
	struct parda_control *c = of;
	weir_time period = c->peers.period, at;

	if (!c->parda)
		return WEIR_NEVER;
	if (now >= c->due) {
		step_period(c);
		c->asked = false;
		while (c->due <
			now + period / 2) /* a thread that was late does not make up for it */
			c->due += period;
	}
	at = c->due;
	if (c->site->ops->ask_upstream && !c->asked) {
		at -= period / ASK_PART;
		if (now >= at) {
			c->site->ops->ask_upstream(c->site);
			c->asked = true;
			at = c->due;
		}
	}
	if (now >= c->reads.look)
		c->reads.look = parda_reads_step(c, now);
	return c->reads.look < at ? c->reads.look : at;
}

/* ---- peers */

static void hear(void *of, const struct controller_news *news)
{
	struct parda_control *c = of;

	if (!c->parda)
		return;
	for (unsigned k = 0; news->kind == CONTROLLER_LEFT && k < PEER_REPORTS_MAX; k++)
		parda_leave(c->parda, parda_message_id(news->from, k), news->instance);
	if (news->kind != CONTROLLER_REPORT || parda_hear(c->parda, news->message) != PARDA_FRESH)
		return;
	parda_reads_hear(c, news->message);
	if (c->reads.look < WEIR_NEVER)
		wake(c);
}

static const char *topic(const void *settings)
{
	return ((const struct parda_settings *)settings)->array;
}

static struct peer_report encode(const void *report, const struct controller_peers *from)
{
	return parda_message_write(report, 0, from->number, from->period);
}

static void decode(const struct peer_message *m, const struct peer_report *r, void *ret)
{
	*(struct parda_report *)ret = parda_message_read(m, r);
}

/* ---- facts */

static void look_at_host(
	const void *of, const struct facts_site *site, bool tenants, bool state, struct facts *ret)
{
	const struct parda_control *c = of;
	struct parda_facts_of from = {.parda = c->parda,
		.last = &c->last,
		.held = c->held,
		.find = c->settings.find,
		.probe = c->settings.probe};

	if (c->parda)
		parda_facts.fill(&from, site, ret);
}

static uint64_t steps(const void *of)
{
	return ((const struct parda_control *)of)->steps;
}

static const struct key_help help[] = {
#include "control/parda/keys.inc"
	{0}};

const struct controller parda_controller = {
	.name = "parda",
	.summary = "moves the window of a resource that hosts share, so that each has its shares "
		   "of it",
	.keys = parda_keys,
	.help = help,
	.settings_size = sizeof(struct parda_settings),
	.sets_window = true,
	.in_shadow = true,
	.has_peers = true,
	.report_size = sizeof(struct parda_report),
	.topic = topic,
	.encode = encode,
	.decode = decode,
	.check = parda_settings_check,
	.new = make,
	.free = release,
	.begin = begin,
	.end = end,
	.step = step,
	.hear = hear,
	.facts = &parda_facts,
	.look = look_at_host,
	.steps = steps,
};
