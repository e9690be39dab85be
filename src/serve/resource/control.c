/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/resource/control.h"
#include "base/container.h"
#include "serve/snapshot/snapshot.h"
#include "serve/snapshot/version.h"
#include "serve/loop/log.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <time.h>

#define FIELDS 12 /* of an event */

static struct resource *resource_of(const struct site *s)
{
	return container_of(s, const struct resource_control, site)->resource;
}

static struct resource_control *control_of(const struct resource *r, const struct controller *kind)
{
	for (size_t i = 0; r->controls && controllers[i]; i++)
		if (controllers[i] == kind)
			return r->controls[i];
	return NULL;
}

/* ---- the site */

static weir_time site_now(struct site *s)
{
	return resource_policy_now(resource_of(s));
}

static uint64_t site_activity(const struct site *s)
{
	return resource_activity(resource_of(s));
}

static bool site_busy(const struct site *s)
{
	return resource_busy(resource_of(s));
}

static double site_capacity(const struct site *s, enum weir_unit unit)
{
	return resource_of(s)->capacity.rate[unit];
}

static double site_mean_cost(const struct site *s, weir_node node)
{
	const struct resource_count *n = &resource_of(s)->counts[node];
	uint64_t requests = n->reads + n->writes + n->others;

	return requests ? (double)n->cost / (double)requests : 1;
}

static void site_slo(struct site *s, size_t tenant, struct site_slo *ret)
{
	*ret = resource_slo_seen(resource_of(s), tenant);
}

/* CPU time of this thread: the time of other threads that run meanwhile is no cost of a step. */
static weir_time site_cpu(struct site *s)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

static void site_wake(struct site *s, weir_time at)
{
	struct resource_control *c = container_of(s, struct resource_control, site);

	if (c->resource->started)
		loop_set(c->resource->loop, &c->timer, at);
}

static void site_send(struct site *s, uint8_t *message, size_t len)
{
	struct resource *r = resource_of(s);

	if (r->control_post)
		r->control_post(r->control_post_arg, message, len);
	else
		free(message);
}

static void site_tell(
	struct site *s, enum site_level level, const char *event, const struct site_field *f)
{
	static const enum log_level levels[] = {
		LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG};
	const char *pairs[2 * FIELDS + 3] = {"resource", s->name};
	char numbers[FIELDS][24];

	for (size_t i = 0; i < FIELDS && f[i].name; i++) {
		pairs[2 * i + 2] = f[i].name;
		pairs[2 * i + 3] = f[i].text ? f[i].text : log_number(numbers[i], f[i].number);
	}
	log_event_pairs(levels[level], event, pairs);
}

static void site_random(struct site *s, void *ret, size_t len)
{
	randombytes_buf(ret, len);
}

static int site_loads(struct site *s, struct site_loads *ret)
{
	return resource_loads(resource_of(s), ret);
}

static void site_set_window(struct site *s, double window)
{
	resource_window(resource_of(s), window);
}

static void site_ask_upstream(struct site *s)
{
	resource_ask_upstream(resource_of(s));
}

static int site_read(struct site *s, struct site_burst *b)
{
	return resource_reads_start(resource_of(s), b);
}

static void site_forget(struct site *s, struct site_burst *b)
{
	resource_reads_forget(resource_of(s), b);
}

static void site_publish(struct site *s, const void *report, bool at_once)
{
	const struct resource_control *c = container_of(s, const struct resource_control, site);
	struct resource *r = c->resource;
	struct controller_version v = resource_policy_version(r, false);
	struct peer_report p = c->kind->encode(report, &v.peers);

	p.resource = resource_control_topic(&r->spec);
	if (r->peers.publish)
		r->peers.publish(r->peers.arg, &p, at_once);
}

static const struct site_ops site_ops = {
	.now = site_now,
	.activity = site_activity,
	.busy = site_busy,
	.capacity = site_capacity,
	.mean_cost = site_mean_cost,
	.slo = site_slo,
	.cpu = site_cpu,
	.wake = site_wake,
	.send = site_send,
	.tell = site_tell,
	.random = site_random,
	.loads = site_loads,
	.set_window = site_set_window,
	.ask_upstream = site_ask_upstream,
	.read = site_read,
	.forget = site_forget,
	.publish = site_publish,
};

/* ---- instances */

void *resource_control_instance(const struct resource *r, const struct controller *kind)
{
	const struct resource_control *c = control_of(r, kind);

	return c ? c->instance : NULL;
}

static void step(struct resource_control *c, weir_time now)
{
	site_wake(&c->site, c->kind->step(c->instance, now));
	if (!c->site.sleeps || c->turning || !c->resource->started)
		return;
	c->activity = site_activity(&c->site);
	loop_turn_add(c->resource->loop, &c->turn);
	c->turning = true;
}

static void due(struct loop_timer *t, weir_time now)
{
	struct resource_control *c = container_of(t, struct resource_control, timer);

	step(c, resource_policy_now(c->resource));
}

static bool turn(struct loop_turn *t, weir_time now)
{
	struct resource_control *c = container_of(t, struct resource_control, turn);

	if (c->site.sleeps && (site_activity(&c->site) != c->activity || site_busy(&c->site)))
		step(c, resource_policy_now(c->resource));
	c->activity = site_activity(&c->site);
	return false;
}

int resource_control_make(struct resource *r, const struct controller *kind)
{
	size_t n = 0, at = 0;
	struct resource_control *c;
	int rc;

	for (; controllers[n]; n++)
		if (controllers[n] == kind)
			at = n;
	if (!r->controls)
		r->controls = calloc(n, sizeof(*r->controls));
	if (!r->controls)
		return -ENOMEM;
	if (r->controls[at])
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct resource_control){.site = {.ops = &site_ops, .name = r->name, .gate = r->gate},
		.resource = r,
		.kind = kind,
		.timer = {.due = due},
		.turn = {.turn = turn},
		.report = malloc(kind->report_size + 1)};
	rc = !c->report ? -ENOMEM : kind->new ? kind->new (&c->site, &c->instance) : 0;
	if (rc < 0) {
		free(c->report);
		free(c);
		return rc;
	}
	r->controls[at] = c;
	return 0;
}

static void rest(struct resource_control *c)
{
	if (c->timer.set)
		loop_set(c->resource->loop, &c->timer, WEIR_NEVER);
	if (c->turning)
		loop_turn_remove(c->resource->loop, &c->turn);
	c->turning = false;
}

void resource_control_free(struct resource *r)
{
	for (size_t i = 0; r->controls && controllers[i]; i++) {
		struct resource_control *c = r->controls[i];

		if (!c)
			continue;
		rest(c);
		if (c->kind->free)
			c->kind->free(c->instance);
		free(c->report);
		free(c);
	}
	free(r->controls);
	r->controls = NULL;
}

/* ---- a swap */

int resource_control_prepare(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t from, size_t to)
{
	return kind->prepare(resource_control_instance(r, kind), v, from, to);
}

void resource_control_take(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i, weir_node node)
{
	if (kind && kind->take)
		kind->take(resource_control_instance(r, kind), v, i, node);
}

void resource_control_leave(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i)
{
	if (kind && kind->leave)
		kind->leave(resource_control_instance(r, kind), v, i);
}

void resource_control_rule(struct resource *r, const struct controller *kind,
	const struct controller_version *v, size_t i)
{
	if (kind && kind->rule && v->rules)
		kind->rule(resource_control_instance(r, kind), v, i, &v->rules[i]);
}

static void end(struct resource *r, const struct controller *kind)
{
	struct resource_control *c = control_of(r, kind);

	if (!c)
		return;
	rest(c);
	if (kind->end)
		kind->end(c->instance);
}

void resource_control_switch(
	struct resource *r, const struct controller *next, const struct controller_version *v)
{
	struct resource_control *c = control_of(r, next);

	if (next != r->control)
		end(r, r->control);
	r->control = next;
	if (!c)
		return;
	c->site.nodes = r->nodes;
	if (next->begin)
		next->begin(c->instance, v);
}

/* ---- between swaps */

void resource_control_hear(struct resource *r, const struct controller_news *news)
{
	void *instance = resource_control_instance(r, r->control);

	if (instance && r->control->hear)
		r->control->hear(instance, news);
}

void resource_control_connect(struct resource *r, resource_control_post *post, void *arg)
{
	r->control_post = post;
	r->control_post_arg = arg;
}

/* ---- peers */

void resource_control_peers(struct resource *r, const struct resource_peers *p)
{
	r->peers = p ? *p : (struct resource_peers){0};
}

uint64_t resource_control_topic(const struct weir_resource *spec)
{
	const struct controller *kind = spec->controller;

	if (!kind || !kind->has_peers)
		return 0;
	return peer_hash(kind->topic && spec->settings ? kind->topic(spec->settings) : spec->name);
}

void resource_control_receive(struct resource *r, const struct peer_message *m)
{
	const struct resource_control *c = control_of(r, r->control);
	uint64_t topic = resource_control_topic(&r->spec);
	struct controller_news news = {
		.kind = CONTROLLER_LEFT, .from = peer_hash(m->name), .instance = m->instance};

	if (!c || !c->kind->has_peers)
		return;
	if (m->kind == PEER_LEAVE)
		c->kind->hear(c->instance, &news);
	news = (struct controller_news){.kind = CONTROLLER_REPORT, .message = c->report};
	for (unsigned i = 0; i < m->n_reports; i++)
		if (m->reports[i].resource == topic) {
			c->kind->decode(m, &m->reports[i], c->report);
			c->kind->hear(c->instance, &news);
		}
}

/* ---- facts */

void resource_control_look(struct resource *r, struct snapshot *s, struct snapshot_resource *to)
{
	const void *instance = resource_control_instance(r, r->control);
	struct facts_site site = snapshot_site(s);

	to->controller = r->control && !r->shadow ? r->control->name : NULL;
	if (!instance || !r->control || !r->control->look)
		return;
	r->control->look(instance, &site, r->policy == s->of->policy, false, &to->facts);
	for (int u = 0; u < 2 && r->control->learned; u++)
		if (to->capacity[u] <= 0)
			to->capacity[u] = r->control->learned(instance, (enum weir_unit)u);
}

/* Return the controller whose state is kept. */
static const struct controller *stateful(void)
{
	for (size_t i = 0; controllers[i]; i++)
		if (controllers[i]->restore)
			return controllers[i];
	return NULL;
}

int resource_control_facts(struct resource *r, struct arena *memory, struct facts *ret)
{
	const struct controller *kind = stateful();
	const void *instance = resource_control_instance(r, kind);
	struct facts_site site = {.memory = memory};

	if (!instance)
		return -ENOENT;
	*ret = (struct facts){0};
	kind->look(instance, &site, false, true, ret);
	return memory->failed ? -ENOMEM : 0; /* a part of the books must not be kept */
}

uint64_t resource_control_steps(const struct resource *r)
{
	const struct controller *kind = stateful();
	const void *instance = resource_control_instance(r, kind);

	return instance ? kind->steps(instance) : 0;
}

int resource_control_restore(struct resource *r, const struct facts *from, weir_time ago)
{
	const struct controller *kind = stateful();
	int rc = resource_control_make(r, kind);

	return rc < 0 ? rc
		      : kind->restore(resource_control_instance(r, kind), from,
				resource_policy_now(r) - ago);
}
