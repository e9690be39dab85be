/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-control: controllers in a live run: keys in the policies of the gateways that they control,
 * and functions that record their values (live-say.c).
 *
 * A new kind of controller is a row of the table `kinds`, with a function for each of the two.
 */
#include "cli/common/files.h"
#include "cli/live/live-impl.h"
#include "sim/control/controller.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Datagrams on one machine may take this long anyway; reports with a longer delay go through the
 * relay.
 */
#define DELAY_NONE WEIR_MS

/* Append the keys of a map that its table copies to *to, as "key: value, …". */
static int add_keys(char **to, yamldoc_node map, const struct live_key *keys, struct weir_err *err)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int r;

	if (!f)
		return no_memory(err);
	r = live_text_keys(f, map, keys, err);
	if (fclose(f) != 0)
		r = no_memory(err);
	if (r == 0 && live_text_add(to, "%s", text) < 0)
		r = no_memory(err);
	free(text);
	return r;
}

/* ---- which device, which hosts */

uint32_t live_control_device(const struct scenario *s, const struct scenario_controller *c)
{
	const char *name = yamldoc_text(yamldoc_get(c->node, "device"));

	if (c->station != UINT32_MAX)
		return c->station;
	for (uint32_t i = 0; name && i < s->n_devices; i++)
		if (strcmp(s->stations[i].name, name) == 0)
			return i;
	return 0; /* there is only one, otherwise the scenario would have been refused */
}

bool live_control_moves(
	const struct scenario *s, const struct scenario_controller *c, uint32_t host)
{
	const char *hosts = yamldoc_text(yamldoc_get(c->node, "hosts"));

	return s->groups[s->hosts[host].group].device == live_control_device(s, c) &&
	       scenario_fits(hosts ? hosts : "*", s->hosts[host].name);
}

bool live_controlled(const struct live *l, uint32_t host)
{
	for (size_t i = 0; i < l->s->n_controllers; i++) {
		const struct scenario_controller *c = &l->s->controllers[i];

		if (strcmp(c->name, "parda") == 0 && live_control_moves(l->s, c, host))
			return true;
	}
	return false;
}

/* ---- PARDA: the hosts' gateways, which exchange datagrams */

static const struct live_key parda_keys[] = {{"kind", NULL}, {"period", NULL}, {"device", NULL},
	{"hosts", NULL}, {"threshold", NULL}, {"window", NULL}, {"delay", NULL}, {"loss", NULL},
	{"threshold_max", "threshold_max"}, {"gamma", "gamma"}, {"epsilon", "epsilon"},
	{"wmin", "wmin"}, {"wmax", "wmax"}, {"estimate", "estimate"}, {"smoothing", "smoothing"},
	{"alpha", "alpha"}, {"tau", "tau"}, {"age", "age"}, {"size_fixed", "size_fixed"},
	{"start", "start"}, {"stranger", "stranger"}, {"idle", "idle"}, {"burst", "burst"},
	{"probe", "probe"}, {"faults", NULL}, {"without", NULL}, {NULL, NULL}};

struct group { /* the gateways of one parda */
	struct live_server *members[LIVE_SERVERS];
	uint16_t ports[LIVE_SERVERS];
	int fds[LIVE_SERVERS]; /* keep the ports until all have one, so that all differ */
	size_t n;
	const struct live_relay *relay; /* between them; NULL: none */
};

static int find_members(
	struct live *l, const struct scenario_controller *c, struct group *g, struct weir_err *err)
{
	for (uint32_t h = 0; h < l->s->n_hosts; h++) {
		struct live_server *v;
		int r;

		if (!live_control_moves(l->s, c, h) || l->host_server[h] < 0)
			continue;
		v = &l->servers[l->host_server[h]];
		if (v->keys)
			return yamldoc_error(c->node, err,
				"cannot run live: host '%s' has a controller already", v->name);
		r = live_relay_bind(&v->port, &g->fds[g->n]);
		if (r < 0)
			return weir_err_set(err, r, "no port for datagrams: %s", strerror(-r));
		g->ports[g->n] = v->port;
		g->members[g->n++] = v;
	}
	return 0;
}

/* Start the relay, if reports are delayed or lost. */
static int start_relay(
	struct live *l, const struct scenario_controller *c, struct group *g, struct weir_err *err)
{
	struct live_relay_config config = {
		.ports = g->ports, .n = g->n, .delay = DELAY_NONE, .seed = l->seed};
	int r = yamldoc_time(c->node, "delay", &config.delay, err);

	if (r == 0 || r == -ENOENT)
		r = yamldoc_count(c->node, "loss", &config.loss, err);
	if (r && r != -ENOENT)
		return r;
	if (config.delay <= DELAY_NONE && config.loss <= 0)
		return 0;
	if (l->relay)
		return yamldoc_error(c->node, err,
			"cannot run live: only one controller may have a delay or a loss");
	r = live_relay_new(&config, &l->relay, err);
	g->relay = l->relay;
	return r;
}

int live_control_key(const struct live *l, struct weir_err *err)
{
	char path[LIVE_PATH];

	snprintf(path, sizeof(path), "%s/key", l->dir);
	return files_write_key(path, err);
}

/* Write "peers: …" of one host. */
static int add_peers(struct live *l, const struct scenario_controller *c, const struct group *g,
	size_t member, struct weir_err *err)
{
	struct live_server *v = g->members[member];
	const char *period = yamldoc_text(yamldoc_get(c->node, "period"));
	int r = live_text_add(&v->top,
		"peers:\n  host: \"%s\"\n  key: \"%s/key\"\n  period: \"%s\"\n"
		"  listen: \"udp:127.0.0.1:%u\"\n  to: [",
		v->name, l->dir, period ? period : "2s", v->port);

	for (size_t i = 0; r == 0 && i < g->n; i++)
		if (i != member)
			r = live_text_add(&v->top, "\"udp:127.0.0.1:%u\", ",
				g->relay ? live_relay_port(g->relay, member, i) : g->ports[i]);
	if (r == 0)
		r = live_text_add(&v->top, "]\n");
	return r < 0 ? no_memory(err) : 0;
}

static int add_parda(
	struct live_server *v, const struct scenario_controller *c, struct weir_err *err)
{
	const char *window = yamldoc_text(yamldoc_get(c->node, "window"));
	double begin = v->depth, wmax = 64;
	int r;

	if (window)
		(void)yamldoc_count(c->node, "window", &begin, NULL); /* it was checked before */
	(void)yamldoc_count(c->node, "wmax", &wmax, NULL);
	v->depth = begin < wmax ? begin : wmax;
	r = live_text_add(&v->keys, "controller: parda, threshold: \"%s\", parda: {",
		yamldoc_text(yamldoc_get(c->node, "threshold")));
	if (r < 0)
		return no_memory(err);
	r = add_keys(&v->keys, c->node, parda_keys, err);
	if (r == 0 && live_text_add(&v->keys, "}, ") < 0)
		r = no_memory(err);
	return r;
}

static int plan_parda(struct live *l, const struct scenario_controller *c, struct weir_err *err)
{
	struct group g = {.n = 0};
	int r = find_members(l, c, &g, err);

	if (r == 0)
		r = start_relay(l, c, &g, err);
	for (size_t i = 0; i < g.n; i++)
		close(g.fds[i]);
	if (r == 0)
		r = live_control_key(l, err);
	if (r == 0)
		r = live_fault_plan(l, c->node, err);
	for (size_t i = 0; r == 0 && i < g.n; i++) {
		r = add_parda(g.members[i], c, err);
		if (r == 0 && g.n > 1)
			r = add_peers(l, c, &g, i, err);
	}
	return r;
}

/* ---- AdapTBF and static rules: the device's own gateway */

static const struct live_key adaptbf_keys[] = {{"kind", NULL}, {"device", NULL}, {"rate", NULL},
	{"learn", NULL}, {"period", "period"}, {"tokens", "tokens"}, {"depth", NULL},
	{"unit", "unit"}, {"headroom", "headroom"}, {"forget", "forget"}, {"debt", "debt"},
	{"without", NULL}, {NULL, NULL}};
static const struct live_key tbf_keys[] = {{"kind", NULL}, {"device", NULL}, {"period", NULL},
	{"depth", "depth"}, {"default", "default"}, {"rules", "rules"}, {NULL, NULL}};

static int plan_server(struct live *l, const struct scenario_controller *c,
	const struct live_key *keys, const char *first, struct weir_err *err)
{
	struct live_server *v = &l->servers[live_control_device(l->s, c)];
	int r;

	if (v->keys)
		return yamldoc_error(
			c->node, err, "cannot run live: '%s' has a controller already", v->name);
	r = live_text_add(&v->keys, "controller: %s, %s: {%s", c->name, c->name, first);
	if (r < 0)
		return no_memory(err);
	r = add_keys(&v->keys, c->node, keys, err);
	return r == 0 && live_text_add(&v->keys, "}, ") < 0 ? no_memory(err) : r;
}

/*
 * `rate` is the resource's capacity, or with `learn` a guess at it. `depth` is for `tokens: hold`.
 */
static int plan_adaptbf(struct live *l, const struct scenario_controller *c, struct weir_err *err)
{
	const char *rate = yamldoc_text(yamldoc_get(c->node, "rate"));
	const char *depth = yamldoc_text(yamldoc_get(c->node, "depth"));
	const char *tokens = yamldoc_text(yamldoc_get(c->node, "tokens"));
	char first[160] = "";
	bool learn = false;
	int r, n = 0;

	(void)yamldoc_bool(c->node, "learn", &learn, NULL); /* both were checked before */
	if (learn)
		n = snprintf(first, sizeof(first), "guess: \"%s\", ", rate);
	if (depth && tokens && strcmp(tokens, "hold") == 0)
		snprintf(first + n, sizeof(first) - (size_t)n, "depth: \"%s\", ", depth);
	r = plan_server(l, c, adaptbf_keys, first, err);
	if (r == 0 && !learn &&
		live_text_add(&l->servers[live_control_device(l->s, c)].keys, "capacity: \"%s\", ",
			rate) < 0)
		r = no_memory(err);
	return r;
}

static int plan_tbf(struct live *l, const struct scenario_controller *c, struct weir_err *err)
{
	return plan_server(l, c, tbf_keys, "", err);
}

/* ---- learned capacity of a device: gateways always learn it */

static int plan_capacity(struct live *l, const struct scenario_controller *c, struct weir_err *err)
{
	return 0;
}

/* ---- the table */

static const struct kind {
	const char *name;
	int (*plan)(struct live *l, const struct scenario_controller *c, struct weir_err *err);
	live_say *say; /* NULL: no values */
} kinds[] = {
	{"parda", plan_parda, live_say_parda},
	{"adaptbf", plan_adaptbf, live_say_adaptbf},
	{"tbf", plan_tbf, NULL},
	{"capacity", plan_capacity, live_say_capacity},
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* Refuse `without`: a gateway has no key that switches off a part of a controller. */
static int check_whole(const struct scenario_controller *c, struct weir_err *err)
{
	yamldoc_node without = yamldoc_get(c->node, "without");
	const char *text = yamldoc_text(without);

	return !text || strcmp(text, "nothing") == 0 ? 0
						     : yamldoc_error(without, err,
							       "cannot run live: gateways cannot "
							       "switch off a part of a controller");
}

int live_control(struct live *l, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->s->n_controllers; i++) {
		const struct scenario_controller *c = &l->s->controllers[i];
		const struct kind *k = find_kind(c->name);

		r = check_whole(c, err);
		if (r)
			break;
		r = k ? k->plan(l, c, err)
		      : weir_err_at(
				err, -EINVAL, c->at, "controller '%s' cannot run live", c->name);
	}
	return r;
}

int live_control_say(struct live *l, double t, bool end)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->s->n_controllers; i++) {
		const struct kind *k = find_kind(l->s->controllers[i].name);

		if (k->say)
			r = k->say(l, &l->s->controllers[i], t, end);
	}
	return r;
}
