/* SPDX-License-Identifier: BSD-3-Clause */
/* controller-tell: the log of PARDA: each step at debug level, and each change once. */
#include "control/parda/controller-impl.h"

static void tell_step(const struct parda_control *c)
{
	const struct parda_decision *d = &c->last;

	c->site->ops->tell(c->site, SITE_DEBUG, "parda",
		(struct site_field[]){{"window", NULL, d->window},
			{"shares", NULL, d->report.shares}, {"beta", NULL, d->beta},
			{"latency_ms", NULL, d->latency / WEIR_MS}, {"peers", NULL, d->peers},
			{"ios", NULL, d->ios}, {"inside", NULL, d->inside},
			{"threshold_ms", NULL, d->threshold / WEIR_MS},
			{"knee_ms", NULL, d->knee / WEIR_MS}, {"credit", NULL, d->credit}, {0}});
}

static void tell_alone(struct parda_control *c)
{
	const struct parda_decision *d = &c->last;

	if (c->settings.estimate == 1 || (c->said.any && c->said.alone == d->alone))
		return;
	c->site->ops->tell(c->site, SITE_INFO, d->alone ? "parda-alone" : "parda-peers",
		(struct site_field[]){{"heard", NULL, d->peers}, {0}});
	c->said.any = true;
	c->said.alone = d->alone;
}

static void tell_stranger(struct parda_control *c)
{
	const struct parda_decision *d = &c->last;

	if (c->said.stranger == d->stranger)
		return;
	c->said.stranger = d->stranger;
	if (!d->stranger)
		c->site->ops->tell(
			c->site, SITE_INFO, "parda-stranger-gone", (struct site_field[]){{0}});
	else
		c->site->ops->tell(c->site, SITE_WARNING, "parda-stranger",
			(struct site_field[]){{"requests", NULL, d->strange},
				{"latency_ms", NULL, d->latency / WEIR_MS},
				{"threshold_ms", NULL, d->threshold / WEIR_MS},
				{"why",
					"the array has requests inside that no host under PARDA "
					"has "
					"sent; each host keeps at least half of its fair part "
					"beside them",
					0},
				{0}});
}

/* A setting that should be another; now and least have name and number. */
static void tell_setting(struct parda_control *c, bool *said, bool is, const char *event,
	struct site_field now, struct site_field least, const char *why)
{
	if (!is || *said)
		return;
	*said = true;
	c->site->ops->tell(c->site, SITE_WARNING, event,
		(struct site_field[]){now, least, {"why", why, 0}, {0}});
}

void parda_tell(struct parda_control *c)
{
	const struct parda_decision *d = &c->last;
	struct site_field wmax = {"wmax", NULL, c->settings.wmax};

	tell_step(c);
	tell_alone(c);
	tell_stranger(c);
	tell_setting(c, &c->said.too_low, d->too_low, "parda-stranger-wmax", wmax,
		(struct site_field){"needed", NULL, d->floor},
		"beside a stranger wmax keeps this host below half of its fair part");
	tell_setting(c, &c->said.wmax, d->wmax_short, "parda-wmax", wmax,
		(struct site_field){"needed", NULL, d->wmax_wanted},
		"wmax keeps this host below its share, and others have more than theirs");
	tell_setting(c, &c->said.unreachable, d->unreachable, "parda-threshold",
		(struct site_field){"threshold_ms", NULL, d->threshold / WEIR_MS},
		(struct site_field){"least_ms", NULL, d->least / WEIR_MS},
		"latency was over the threshold with the least windows, or close to it: the device "
		"takes longer than that, or others load it");
}
