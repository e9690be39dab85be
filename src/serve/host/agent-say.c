/* SPDX-License-Identifier: BSD-3-Clause */
/* agent-say: what a host's controllers tell the log: each step for who debugs, changes for everybody, each once. */
#include "serve/host/agent-impl.h"
#include "serve/loop/log.h"

static void say_step(const struct agent_seat *s)
{
	char peers[24], window[24], shares[24], beta[24], latency[24];
	char ios[24], inside[24], threshold[24], knee[24], credit[24];
	const struct parda_decision *d = &s->last;

	log_event(LOG_LEVEL_DEBUG, "parda", "resource", s->resource->name, "window",
		log_number(window, d->window), "shares", log_number(shares, d->report.shares),
		"beta", log_number(beta, d->beta), "latency_ms",
		log_number(latency, d->latency / WEIR_MS), "peers", log_number(peers, d->peers),
		"ios", log_number(ios, d->ios), "inside", log_number(inside, d->inside),
		"threshold_ms", log_number(threshold, d->threshold / WEIR_MS), "knee_ms",
		log_number(knee, d->knee / WEIR_MS), "credit", log_number(credit, d->credit), NULL);
}

static void say_alone(struct agent_seat *s)
{
	char peers[24];

	if (s->config.estimate == 1 || (s->said_any && s->said_alone == s->last.alone))
		return;
	log_event(LOG_LEVEL_INFO, s->last.alone ? "parda-alone" : "parda-peers", "resource",
		s->resource->name, "heard", log_number(peers, s->last.peers), NULL);
	s->said_any = true;
	s->said_alone = s->last.alone;
}

static void say_stranger(struct agent_seat *s)
{
	const struct parda_decision *d = &s->last;
	char requests[24], latency[24], threshold[24];

	if (s->said_stranger == d->stranger)
		return;
	s->said_stranger = d->stranger;
	if (!d->stranger) {
		log_event(
			LOG_LEVEL_INFO, "parda-stranger-gone", "resource", s->resource->name, NULL);
		return;
	}
	log_event(LOG_LEVEL_WARNING, "parda-stranger", "resource", s->resource->name, "requests",
		log_number(requests, d->strange), "latency_ms",
		log_number(latency, d->latency / WEIR_MS), "threshold_ms",
		log_number(threshold, d->threshold / WEIR_MS), "why",
		"the array has requests inside that no host under PARDA has sent; each host keeps "
		"at "
		"least half of its fair part beside them",
		NULL);
}

/* A setting that should be another. */
static void say_setting(struct agent_seat *s, bool *said, bool is, const char *event,
	const char *is_key, double is_value, const char *least_key, double least_value,
	const char *why)
{
	char now[24], least[24];

	if (!is || *said)
		return;
	*said = true;
	log_event(LOG_LEVEL_WARNING, event, "resource", s->resource->name, is_key,
		log_number(now, is_value), least_key, log_number(least, least_value), "why", why,
		NULL);
}

void agent_say(struct agent_seat *s)
{
	const struct parda_decision *d = &s->last;

	say_step(s);
	say_alone(s);
	say_stranger(s);
	say_setting(s, &s->said_too_low, d->too_low, "parda-stranger-wmax", "wmax", s->config.wmax,
		"needed", d->floor,
		"beside a stranger wmax keeps this host below half of its fair part");
	say_setting(s, &s->said_wmax, d->wmax_short, "parda-wmax", "wmax", s->config.wmax, "needed",
		d->wmax_wanted,
		"wmax keeps this host below its share, and others have more than theirs");
	say_setting(s, &s->said_unreachable, d->unreachable, "parda-threshold", "threshold_ms",
		d->threshold / WEIR_MS, "least_ms", d->least / WEIR_MS,
		"latency was over the threshold at every window: the device takes longer than "
		"that, or "
		"others load it");
}
