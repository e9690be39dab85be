/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/keys.h"
#include <string.h>

static const char *const estimates[] = {"aggregated", "local", NULL};
static const char *const smoothings[] = {"time", "io", "interval", NULL}; /* enum parda_smoothing */
static const char *const idles[] = {"average", "literal", "ignore", NULL}; /* enum parda_idle */
static const char *const starts[] = {"least", "depth", NULL};
static const char *const switches[] = {"nothing", "ageing", "windows", "weighting", "held", NULL};
static const char *const strangers[] = {"floor", "ignore", NULL};

#define NEVER (1u << 20) /* periods */
/* bytes: requests of this size take as long to transfer as for all else. By the ports and disks of
 * arrays 60 KiB, by flash 20; chosen in between, with made traces of 4 to 256 KiB. */
#define FIXED (32u << 10)
#define SLOT  (16u << 10) /* bytes: with `cost: bytes`; the paper's example (§2) */

static int read_threshold(yamldoc_node n, struct settings *s, struct weir_err *err)
{
	struct parda_settings *to = s->data;
	const char *text = yamldoc_text(n);
	int r;

	to->find = text && strcmp(text, "auto") == 0;
	if (to->find)
		return 0;
	r = yamldoc_as_time(n, &to->threshold, err);
	if (r == 0 && to->threshold <= 0)
		r = yamldoc_error(n, err, "must be more than 0, or auto");
	return r;
}

#define AT(field) KEY_AT(struct parda_settings, field)
const struct key parda_keys[] = {{"threshold", KEY_OWN, .beside = true, .read = read_threshold,
					 .shown = "none; it must be stated"},
	{"threshold_max", KEY_TIME, AT(threshold_max), 0.1, .above = true},
	{"array", KEY_TEXT, AT(array), .shown = "the resource's name"},
	{"gamma", KEY_NUMBER, AT(gamma), 0.8, 0, 1, .above = true},
	{"epsilon", KEY_NUMBER, AT(epsilon), 0.2, 0, 100},
	{"wmin", KEY_NUMBER, AT(wmin), 1, .above = true},
	{"wmax", KEY_NUMBER, AT(wmax), 64, 1, 1e6},
	{"estimate", KEY_WORD, AT(estimate), .words = estimates},
	{"smoothing", KEY_WORD, AT(smoothing), .words = smoothings},
	{"alpha", KEY_NUMBER, AT(alpha), 0, 0, 1, .shown = "0.002"},
	{"tau", KEY_TIME, AT(tau), .shown = "half a period"},
	{"age", KEY_WHOLE, AT(age), 4, 1, 1000},
	{"size_fixed", KEY_SIZE, AT(size_fixed), FIXED, .zero = "none"},
	{"slot", KEY_SIZE, AT(slot), 0, 512, 32 << 20, .zero = "any", .shown = "16 KiB"},
	{"start", KEY_WORD, AT(start), .words = starts},
	{"stranger", KEY_WORD, AT(stranger), .words = strangers},
	{"idle", KEY_WORD, AT(idle), .words = idles}, {"burst", KEY_TIME, AT(burst), 60, 0, 3600},
	{"probe", KEY_FLAG, AT(probe)},
	{"unit", KEY_NUMBER, AT(unit), 1, .above = true, .lab = true},
	{"without", KEY_WORD, AT(without), .lab = true, .words = switches},
	{"window", KEY_NUMBER, AT(window), .lab = true, .shown = "as B<start> states"}, {0}};

void parda_settings_check(struct settings *s, struct controller_check *c)
{
	struct parda_settings *p = s->data;

	if (c->implied && !yamldoc_has(c->map, "threshold"))
		p->find = true;
	else if (!yamldoc_has(c->map, "threshold"))
		c->refuse(c, c->map,
			"controller parda needs a threshold, as in 'threshold: 25ms' or 'auto'");
	if (!p->find && yamldoc_has(c->own, "threshold_max"))
		c->refuse(c, yamldoc_get(c->own, "threshold_max"), "is for 'threshold: auto'");
	if (!p->find && p->probe)
		c->refuse(c, yamldoc_get(c->own, "probe"), "is for 'threshold: auto'");
	if (!(p->wmin <= p->wmax))
		c->refuse(c, yamldoc_get(c->own, "wmin"), "must be more than 0, and at most wmax");
	if (c->cost != WEIR_UNIT_BYTES && yamldoc_has(c->own, "slot"))
		c->refuse(c, yamldoc_get(c->own, "slot"), "is for 'cost: bytes'");
	if (c->cost == WEIR_UNIT_BYTES && !yamldoc_has(c->own, "slot"))
		p->slot = SLOT;
	if (p->find)
		p->threshold = p->threshold_max;
	if (!p->array[0] && c->resource)
		strncpy(p->array, c->resource, sizeof(p->array) - 1);
}

struct parda_config parda_settings_config(const struct parda_settings *s, weir_time period)
{
	return (struct parda_config){.law = {.threshold = (double)s->threshold,
					     .gamma = s->gamma,
					     .wmin = s->wmin,
					     .wmax = s->wmax},
		.find = s->find,
		.probe = s->probe,
		.epsilon = s->epsilon,
		.unit = s->unit,
		.period = period,
		.smoothing = (enum parda_smoothing)s->smoothing,
		.alpha = s->alpha,
		.tau = s->tau ? s->tau : period / 2, /* more would lag behind the law */
		.local = s->estimate == 1,
		.unweighted = s->without == PARDA_WITHOUT_WEIGHTING,
		.age = s->without == PARDA_WITHOUT_AGEING ? NEVER : s->age,
		.idle = (enum parda_idle)s->idle,
		.burst = s->burst,
		.slot = (double)s->slot,
		.size_fixed = (double)s->size_fixed,
		.no_floor = s->stranger == 1,
		.abrupt = s->start == 1};
}
