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

#define AT(field) offsetof(struct parda_settings, field)
const struct key parda_keys[] = {
	{"threshold", KEY_OWN, .beside = true, .read = read_threshold,
		.shown = "none; it must be stated",
		.help = "The latency at which the array is kept. Or C<auto>: the hosts find the "
			"latency above "
			"which throughput no longer grows. It is the same on all hosts."},
	{"threshold_max", KEY_TIME, AT(threshold_max), 0.1, .above = true,
		.help = "With C<threshold: auto>, the largest threshold."},
	{"array", KEY_TEXT, AT(array), .shown = "the resource's name",
		.help = "The name of the resource among the hosts. Several resources may belong to "
			"one array, "
			"for example LUNs: each gets its part by the shares of its users."},
	{"gamma", KEY_NUMBER, AT(gamma), 0.8, 0, 1, .above = true,
		.help = "The part of the way to the target window that is covered in one step, up "
			"to 1."},
	{"epsilon", KEY_NUMBER, AT(epsilon), 0.2, 0, 100,
		.help = "The part of the windows that is controlled by shares. Windows settle with "
			"the time "
			"constant (period / gamma) (1 + 1 / epsilon). 0: exactly the paper's "
			"equation."},
	{"wmin", KEY_NUMBER, AT(wmin), 1, .above = true,
		.help = "Least window. Fractions are kept over time."},
	{"wmax", KEY_NUMBER, AT(wmax), 64, 1, 1e6, .help = "Largest window."},
	{"estimate", KEY_WORD, AT(estimate), .words = estimates,
		.help = "C<aggregated>: the latency that all hosts measure. C<local>: the host's "
			"own, with "
			"which windows may drift apart."},
	{"smoothing", KEY_WORD, AT(smoothing), .words = smoothings,
		.help = "How latency is averaged: C<time>, with the time constant B<tau>; C<io> or "
			"C<interval>, "
			"with the weight B<alpha>."},
	{"alpha", KEY_NUMBER, AT(alpha), 0, 0, 1, .shown = "0.002",
		.help = "The weight of one IO, with C<smoothing: io>, or of one period, with "
			"C<interval>."},
	{"tau", KEY_TIME, AT(tau), .shown = "half a period",
		.help = "The time constant, with C<smoothing: time>."},
	{"age", KEY_WHOLE, AT(age), 4, 1, 1000,
		.help = "The number of periods after which a silent host no longer counts."},
	{"size_fixed", KEY_SIZE, AT(size_fixed), FIXED, .zero = "none",
		.help = "A size. The threshold is for requests of up to 16 KiB. Where those of all "
			"hosts are larger on "
			"the mean it is raised in proportion to their cost, which is this size in "
			"addition to "
			"their own: with the same number inside large requests take longer, and a "
			"fixed latency would leave "
			"the disks idle. C<none>: it is as stated for any size."},
	{"slot", KEY_SIZE, AT(slot), 0, 512, 32 << 20, .zero = "any", .shown = "16 KiB",
		.help = "A size, with C<cost: bytes>: the bytes for which one slot of a window "
			"stands, so that "
			"hosts share bytes and not requests. A host whose requests are four times "
			"that size has "
			"a quarter as many inside."},
	{"start", KEY_WORD, AT(start), .words = starts,
		.help = "The window when the gateway starts. C<least>: B<wmin>, before the first "
			"client is let "
			"in. The window then doubles each period until the latency has passed half "
			"of the "
			"threshold; beside other hosts it becomes the host's part of their windows "
			"when they "
			"have made room. C<depth>: the resource's C<depth>; the law moves it at "
			"once, and the "
			"other hosts make no room."},
	{"stranger", KEY_WORD, AT(stranger), .words = strangers,
		.help = "The hosts' reaction where an initiator without this controller loads the "
			"array, which "
			"they detect by how latency follows their windows. C<floor>: they report "
			"it, and each "
			"keeps at least half of its fair part, up to B<wmax>, with the stranger "
			"counted as one "
			"more host of their mean shares, even if latency stays over the threshold. "
			"C<ignore>: "
			"windows may go down to B<wmin>. A stranger that arrives is detected "
			"within five periods; one that "
			"is there when the hosts start, or that grows step by step, within about "
			"twenty, during which the "
			"hosts double their windows until latency follows. A stranger that comes "
			"and goes within a few "
			"periods is not detected, nor is one that sends at a fixed rate and leaves "
			"latency at the "
			"threshold: the hosts have the rest. While hosts that their windows do not "
			"limit have "
			"half of the requests inside, and for six periods after that, none is "
			"looked for. A threshold less than half above the "
			"latency of the idle "
			"device looks like a stranger."},
	{"idle", KEY_WORD, AT(idle), .words = idles,
		.help = "How much the shares of a tenant count that is idle while another tenant "
			"of the host is "
			"backlogged. C<average>: the part of its slots that it used over the last "
			"minute, or "
			"uses now if that is more. C<literal>: the part that it used in the last "
			"period, "
			"whether or not another tenant is backlogged, as in the paper's equation "
			"4; with it a "
			"host whose tenants are idle between bursts loses its weight. C<ignore>: "
			"all of its "
			"shares."},
	{"burst", KEY_TIME, AT(burst), 60, 0, 3600,
		.help = "A time. A host saves up the slots that it leaves unused, at most those of "
			"this time, "
			"and its window is up to 8 times as large while it has some (more, if the "
			"window has "
			"fallen since), so that a burst after a "
			"pause passes as without any control. A host that is never idle has no "
			"saved slots, and "
			"a host never has more above its share than it left unused. B<wmax> limits "
			"this, too: "
			"set it to the number of requests that the array accepts from one host. "
			"The latency "
			"that such bursts add does not make windows smaller; it ends with them. "
			"0s: no bursts."},
	{"probe", KEY_FLAG, AT(probe),
		.help = "C<true> or C<false>, with C<threshold: auto>: the threshold is found also "
			"by the "
			"gateway's own reads, while no host has requests inside. This is sooner "
			"where load "
			"comes and goes: within 30 periods if the array is idle for a tenth of the "
			"time and "
			"serves some thousand requests a second. The host that decides for all "
			"(the one whose "
			"name hashes lowest) asks its peers by messages, so they must be reachable "
			"by UDP. It "
			"reads at random in the part that clients have touched, with their mean "
			"size. The reads "
			"bypass the gate and count for no tenant. They take a tenth of a period "
			"and 200 ms at "
			"most, and 2 % of the time, and stop when a client of any host sends a "
			"request. The "
			"same on all hosts."},
	{"unit", KEY_NUMBER, AT(unit), 1, .above = true, .lab = true,
		.help = "Slots per share, where B<epsilon> is 0."},
	{"without", KEY_WORD, AT(without), .lab = true, .words = switches,
		.help = "A part that is switched off: C<ageing>, C<windows> (they stay as they "
			"are), C<weighting> (each host's latency counts the same), or C<held> "
			"(time in limits of the device's gate counts as latency)."},
	{"window", KEY_NUMBER, AT(window), .lab = true, .shown = "as B<start> states",
		.help = "Slots to begin with."},
	{0}};

void parda_settings_check(struct settings *s, struct controller_check *c)
{
	struct parda_settings *p = s->data;

	if (!yamldoc_has(c->map, "threshold"))
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
