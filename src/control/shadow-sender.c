/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Little's law: N = X · (R + Z), N outstanding, X requests/s, R the time of one, Z the
 *         think time.
 * LAW     N is the most that was outstanding in an observation; Z = (N − mean outstanding) / X.
 *         In an open loop the number outstanding has a variance of at least its mean, or it grows
 *         without end. In a closed loop of N the variance is (1 − mean/N) of the mean. So a client
 *         counts as a closed loop if the variance is less than 0.85 of the mean and the number does
 *         not grow. A client that thinks most of the time does not count as one, which makes little
 *         difference for it. A client whose number has grown counts as an open loop until it has
 *         none outstanding.
 * METHOD  An observation is 256 arrivals and 50 ms, or half a second with 16 arrivals. A client
 *         counts as active for four times the interval between its requests, at least 100 ms.
 * EXAMPLE 8 outstanding, 1,000 a second, 6 outstanding on average: it thinks for 2 ms.
 */
#include "control/shadow-sender.h"

#define LOOK_ARRIVALS 256
#define LOOK_SHORT    (50 * WEIR_MS)
#define LOOK_LEAST    16
#define LOOK_LONG     (WEIR_SEC / 2)
#define VARIES        0.85 /* of the mean */
#define GROWS         0.05 /* of the arrivals */
#define ACTIVE        (100 * WEIR_MS)
#define THINKS        0.05 /* of its time: a client that thinks less counts as one that does not */
#define UNSURE        0.25 /* of the think time: a mean may hide much */

static void pass_time(struct shadow_sender *s, weir_time now)
{
	double area = (double)s->now * (double)(now - s->last);

	if (s->began) {
		s->area += area;
		s->square += area * s->now;
	}
	s->last = now;
}

static void judge(struct shadow_sender *s, double mean, double variance)
{
	if (s->now > s->first && s->now - s->first > GROWS * s->arrivals)
		s->grows = true;
	s->closed = !s->grows && variance < VARIES * mean;
}

static void end_look(struct shadow_sender *s, weir_time now)
{
	double span = (double)(now - s->began), mean = s->area / span;

	if (s->outstanding) /* else: the first observation */
		judge(s, mean, s->square / span - mean * mean);
	s->outstanding = s->most;
	s->think = (weir_time)((s->most - mean) * span / s->arrivals);
	s->took = (weir_time)(s->area / s->arrivals);
	s->began = now;
	s->area = s->square = 0;
	s->arrivals = 0;
	s->most = s->first = s->now;
}

static bool is_over(const struct shadow_sender *s, weir_time now)
{
	weir_time span = now - s->began;

	return (s->arrivals >= LOOK_ARRIVALS && span >= LOOK_SHORT) ||
	       (s->arrivals >= LOOK_LEAST && span >= LOOK_LONG);
}

void shadow_sender_arrives(struct shadow_sender *s, weir_time now, uint32_t outstanding)
{
	weir_time cycle;

	pass_time(s, now);
	if (!s->began)
		s->began = now;
	s->now = outstanding;
	s->arrivals++;
	if (outstanding > s->most)
		s->most = outstanding;
	cycle = (now - s->began) / s->arrivals * s->most;
	s->active = now + (4 * cycle > ACTIVE ? 4 * cycle : ACTIVE);
	if (is_over(s, now))
		end_look(s, now);
}

void shadow_sender_returns(struct shadow_sender *s, weir_time now, uint32_t outstanding)
{
	pass_time(s, now);
	s->now = outstanding;
	s->grows &= outstanding > 0;
}

double shadow_sender_error(const struct shadow_sender *s)
{
	double think = (double)s->think, all = think + (double)s->took + 1;

	return s->closed && think > THINKS * all ? UNSURE * think / all : 0;
}
