/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller-reads: reads of the host's own, by which PARDA finds its threshold (control/parda/parda.h, PROBING).
 *
 * The host that decides asks its peers, by a report with `asks`, whether they have requests inside. Each looks and answers
 * at once; one that had none tells as soon as a client sends a request while the burst may last. With all answers the burst
 * begins; it ends when a client of this host or of a peer sends a request. Where peers share a file no answer comes in time,
 * and no host reads. A site that knows the state of all hosts (all_quiet) needs no questions.
 *
 *   the host that decides  every LOOK: a pause has begun, or is LONG → ask → all are quiet → read → learn
 *   a peer                 asked → looks, twice → answers; every LOOK until the burst is over: tells what happened
 */
#include "base/container.h"
#include "control/parda/controller-impl.h"

#define LOOK (5 * WEIR_MS)
#define PAUSE                                                                                      \
	(20 * WEIR_MS) /* less is a gap between two requests, and the next one would end a burst */
#define YOUNG       (15 * WEIR_MS) /* a pause that was seen to begin, that much after PAUSE: … */
#define LONG        WEIR_SEC /* … later a client is likely to come back in a burst, up to this */
#define SELDOM_PART 8        /* of a period: between two looks while no burst is due */
#define PATIENT     (50 * WEIR_MS)              /* for answers */
#define WATCH       (PROBE_BURST + 2 * PATIENT) /* from an answer until the burst is over */

/* ---- a burst */

static uint32_t burst_more(struct site_burst *b, weir_time now)
{
	struct parda_reads *r = container_of(b, struct parda_reads, burst);

	r->plan.over |= b->ended;
	return probe_burst_more(&r->plan, now);
}

static void burst_done(struct site_burst *b, weir_time now, weir_time latency)
{
	probe_burst_done(&container_of(b, struct parda_reads, burst)->plan, now, latency);
}

static void burst_over(struct site_burst *b, weir_time now, uint64_t reads)
{
	struct parda_control *c = container_of(b, struct parda_control, reads.burst);
	const struct probe_burst *plan = &c->reads.plan;

	c->reads.state = PARDA_READS_NONE;
	parda_probe_learn(c->parda, plan, reads, now);
	c->site->ops->tell(c->site, SITE_DEBUG, "parda-probe",
		(struct site_field[]){{"reads", NULL, (double)reads},
			{"ms", NULL, (double)(now - plan->started) / WEIR_MS}, {0}});
}

void parda_reads_init(struct parda_control *c)
{
	c->reads = (struct parda_reads){.look = WEIR_NEVER,
		.burst = {.most = PROBE_MOST,
			.more = burst_more,
			.done = burst_done,
			.over = burst_over}};
}

/* ---- the host that decides */

static void publish(struct parda_control *c, bool asks, bool quiet)
{
	struct parda_report report = c->last.report;

	report.asks = asks;
	report.quiet = quiet;
	c->site->ops->publish(c->site, &report, true);
}

static void ask(struct parda_control *c, weir_time now)
{
	parda_probe_ask(c->parda);
	c->reads.state = PARDA_READS_ASKED;
	c->reads.since = now;
	publish(c, true, false);
}

static void start_burst(struct parda_control *c, weir_time now)
{
	struct parda_reads *r = &c->reads;

	r->state = PARDA_READS_READING;
	r->burst.ended = false;
	probe_burst_start(&r->plan, now);
	if (c->site->ops->read(c->site, &r->burst) < 0)
		r->state = PARDA_READS_NONE;
}

static bool is_agreed(struct parda_control *c, weir_time now)
{
	if (c->site->ops->all_quiet)
		return true;
	if (c->reads.state == PARDA_READS_NONE)
		ask(c, now); /* and where there is no peer to ask, read at once */
	return parda_probe_agreed(c->parda);
}

/* The reads of a burst into which a client comes back wait at the resource beside its requests, and with them for longer than
 * a burst may take. So a burst begins with a pause, which is rarely shorter than a burst, or in one that is long already. */
static bool is_time(const struct parda_reads *r, weir_time now)
{
	weir_time pause = now - r->busy;

	return pause >= LONG || (r->seen && pause >= PAUSE && pause <= PAUSE + YOUNG);
}

static void see(struct parda_control *c, weir_time now)
{
	struct parda_reads *r = &c->reads;
	const struct site_ops *ops = c->site->ops;
	uint64_t activity = ops->activity(c->site);

	r->still = activity == r->activity && (!ops->all_quiet || ops->all_quiet(c->site));
	r->activity = activity;
	if (!r->still) {
		r->busy = now;
		r->seen = now - r->looked <= 2 * LOOK;
	}
	r->looked = now;
}

/* Return true if a burst is due and has to wait. */
static bool try_to_read(struct parda_control *c, weir_time now)
{
	struct parda_reads *r = &c->reads;
	struct probe_burst plan;
	uint32_t bytes;

	see(c, now);
	if (r->state == PARDA_READS_READING)
		return false;
	if (r->state == PARDA_READS_ASKED && (now - r->since > PATIENT || !r->still))
		r->state = PARDA_READS_NONE;
	if (!parda_probe_plan(c->parda, now, &plan, &bytes))
		return false;
	if ((r->state == PARDA_READS_NONE && !is_time(r, now)) || !is_agreed(c, now))
		return true;
	r->plan = plan;
	r->burst.bytes = bytes;
	start_burst(c, now);
	return r->state != PARDA_READS_READING;
}

/* ---- a peer */

/* Nothing was inside when the question came: answer so, if that was no pause between two requests; and tell when it has
 * changed. */
static void watch(struct parda_control *c, weir_time now)
{
	struct parda_reads *r = &c->reads;

	if (c->site->ops->activity(c->site) != r->activity) {
		r->watch = 0;
		publish(c, false, false);
	} else if (r->confirming) {
		r->confirming = false;
		publish(c, false, true);
	} else if (now >= r->watch) {
		r->watch = 0;
	}
}

void parda_reads_hear(struct parda_control *c, const struct parda_report *heard)
{
	struct parda_reads *r = &c->reads;
	const struct site_ops *ops = c->site->ops;
	weir_time now = ops->now(c->site);

	if (ops->all_quiet)
		return;
	if (heard->asks && c->steps) {
		r->activity = ops->activity(c->site);
		r->confirming = !ops->busy(c->site);
		r->watch = r->confirming ? now + WATCH : 0;
		r->look = now + LOOK;
		if (!r->confirming)
			publish(c, false, false);
	}
	if (r->state == PARDA_READS_READING && !heard->quiet)
		r->burst.ended = true;
}

/* ---- time */

/* Looks stand in a grid that ends with the next step. */
static weir_time seldom(const struct parda_control *c, weir_time now)
{
	weir_time part = c->peers.period / SELDOM_PART;

	return part > 0 && c->due > now ? c->due - (c->due - now - 1) / part * part : now + LOOK;
}

weir_time parda_reads_step(struct parda_control *c, weir_time now)
{
	weir_time next = WEIR_NEVER;

	if (c->reads.watch) {
		watch(c, now);
		next = now + LOOK;
	}
	if (!c->settings.probe)
		return next;
	if (c->steps && try_to_read(c, now))
		return now + LOOK;
	return next < WEIR_NEVER ? next : seldom(c, now);
}
