/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift: how servers and their controller keep reservations and limits of buckets that are spread over
 * them: the protocol, and why it is safe.
 *
 * Two machines, both pure: a message or a time in, messages and tokens out. Time is an argument.
 *
 *   control/pshift/server.h    one server: what its buckets want, what they may have, the tokens of its gate
 *   control/pshift/control.h   the controller of all: reports in, tokens out (control/pshift/alloc places them)
 *   control/pshift/books.h     what the servers may use at most of each limit, as far as the controller knows
 *   control/pshift/lead.c      which of several controllers leads
 *   wire/lease.h       the messages
 *
 * THE PROTOCOL
 * Time is divided into QoS periods, numbered 1, 2, … by the controller. Of each bucket a server has four
 * numbers, all counted in tokens served since the period began, so that to be told twice, late or out of
 * order changes nothing:
 *   claim     it is served first until so many were served (R-tokens: what is missing to it);
 *   cap       it is not served beyond it (R- and L-tokens together: what is missing to it);
 *   reserved, limit   claim and cap of each period that follows, until it is told otherwise: its
 *                     entitlement. Their sums over the servers are the bucket's reservation and limit.
 * Service counts toward the claim whether it had a token or not: what was served opportunistically is
 * not served first again.
 * A server reports what its buckets used and want, only where that is not what its last report lets one
 * expect, and a beat if there is nothing to say. The controller places tokens again, every interval,
 * if something changed; it tells only what is different, and renews every lease once a period. Nobody
 * waits for anybody: a round closes by time with what has been heard, what was heard last of the silent
 * ages, and servers go on with what they have. Reports and grants say all that was not yet
 * acknowledged, so that the newest one alone suffices.
 *
 * LEASES  No two clocks agree; they may differ in speed by 1/PSHIFT_DRIFT. A grant tells a server when its
 *         period ends in two ways: `left` after the server's own report was sent (which it was before
 *         it arrived: so this is no later than the true end), and `togo` after the grant was received
 *         (which it was after it was sent: so no earlier). Tokens are spent until the first, and those of
 *         the next period from the second on. So what a server counts to period k happens in the
 *         controller's period k.
 *         Without the controller a server counts periods on. With a the period of the last grant it took,
 *         and h ≤ hold how long that grant is to be held:
 *           k ≤ a + 1              LEASED
 *           k ≤ a + h              HELD: it goes on within its entitlements; what its buckets leave of
 *                                  their claims AdapTBF lends to others, entitlements being the weights
 *           k ≤ a + hold + gap     HELD, and no cap is above the static part
 *           later                  STATIC: static parts, paced so that no span of a period's
 *                                  length has more
 *         A server that starts knows nothing of what it served before, and others may hold
 *         entitlements that count on its having little: it is BLIND, serves no bucket with a limit, and
 *         is STATIC after hold + 2 periods, when all others are past their hold, unless a controller
 *         takes it on before (or `fresh` says that there was nothing before).
 *
 * LEADING Several controllers may run; servers report to all of them, and are the voters. A controller asks servers to
 *         follow it under a generation that is higher than any it has heard of, when a majority of the cluster's
 *         servers (of all that the policy names) say that they follow no controller that lives; a controller that came
 *         later does so once when it has lived for three periods. A server follows the highest (generation, instance)
 *         that asked it, and takes grants of that one only. It follows nobody that lives when the connection was closed, or
 *         nothing was heard for one and a half periods. A controller grants from when a majority follow it and have said
 *         what they hold, and only while, in period k, a majority has acknowledged messages that it sent in
 *         period k − 1 or k. Without it, or when it hears of a higher generation, it stands down: it forgets all
 *         that it knows of what servers hold, and is a standby. So after a takeover the controller before may grant for at
 *         most PSHIFT_LEAD periods more, and only to servers that have not answered the new one.
 *         A server that started anew has forgotten whom it followed. It says that it is BLIND for PSHIFT_YOUNG periods, longer than
 *         any vote counts, and so long its vote counts only where all servers follow. It is granted nothing before a
 *         majority has acknowledged messages that were sent after it was first heard: then no other controller can have
 *         had a majority, with the vote of its predecessor, before that.
 *
 * SAFETY  (1) In each period Σ over servers of what is counted to it ≤ the bucket's limit, whatever
 *         messages are lost, late, doubled or out of order, and whoever restarts. The controller's books
 *         hold for each server the most it may have been told (what is told and not yet acknowledged, and
 *         what is acknowledged), e_j, of this period and of entitlements. Let r be the last period until
 *         which any grant that was sent is held, and a_j the last that j acknowledged: if a_j + hold + gap ≤ r
 *         then j may come to its static part s_j while others hold what they have (it may be a period ahead
 *         of them, where nobody or two count), and counts with max(e_j, s_j). Where j is heard, as all are
 *         after a takeover, new grants are rather held for a shorter time, so that r is before that. The
 *         controller raises a cap only by what the books have left. That suffices:
 *         In a period. Caps only grow by a grant; at the last one sent, books ≤ limit.
 *         Across periods without grants. In a period k ≤ r: a j with a_j + hold + gap > r has e_j or
 *         min(e_j, s_j), any other at most max(e_j, s_j): the sum is ≤ the books. If k > r, everybody is past
 *         what it holds and has at most s_j, and Σ s_j ≤ limit.
 *         At a takeover. The new controller knows the set H of servers that follow it, with what each held when it
 *         answered, h_j, and not the others, S. It counts U = max(Σ_S s_j, limit − Σ_H h_j) for S together. That is
 *         enough. Let g be a controller that still grants. H takes nothing of g any more, so g's books of H never fall
 *         below h_j: g's majority has a member in H, too, and g assumes of a silent server that its hold has ended
 *         (`ruled`) only when a majority has acknowledged messages sent after that, so before the takeover. So what
 *         g lets S hold, until its last grant's hold ends, is ≤ limit − Σ_H h_j; after that S has at most its static
 *         parts. When a server of S answers, what it holds is taken off U. U counts until no grant of another
 *         controller can be held any more: LEAD + hold periods. Until then the sum of the caps of H does not rise.
 *         Nor is it lowered, except by what static parts make necessary and by what is raised elsewhere: what is
 *         given up and not taken would count for S with the next controller, and a controller in a crash loop would
 *         take everything in the end.
 *         Static parts beside U. Let j of H come to its static part in a period k in which S still holds what g
 *         granted. The a_j that g knows is no later than ours, since j answered; so for g, too, j could be static in
 *         k, and g counted max(h_j, s_j) for it. Hence S holds no more than limit − Σ_H max(h_j, s_j) in k, over those
 *         j that may be static: what j gains beyond h_j counts in U, and not again beside it (`besides` in
 *         control/pshift/limits.c). If j can be static only after U has ended, what it gains does not count beside U either.
 *         A server that started anew and has taken no grant since has h_j = 0 and is the same case: it is BLIND for
 *         hold + 2 periods, which is longer than j would have kept what it held before. Until it has taken a grant
 *         it is raised by nothing.
 *         A server that starts is BLIND. What its predecessor may have used counts as used until the period ends,
 *         also with a controller that takes over meanwhile: the server says that it was BLIND until the next period
 *         is over. Predecessor and successor do not both use a static part in one period, and one of them counts.
 *         Where no server that answers is in a period, the controller begins the first one: of that no predecessor used anything.
 *         A policy that changes. A limit that grows while there is an S makes U grow by as much: another controller may
 *         have granted it. A static part counts with the greater of what its server reported and what this
 *         controller's policy says. So while machines have different policies, the greatest limit of those that are
 *         in force, or were when a lease that is still held was granted, is not passed.
 *         One service may be counted to two periods (a look that comes late), never to none.
 *         (2) Periods are as long as they should be; at a takeover one may be off by a message's round trip.
 *         (3) A bucket whose demand did not move keeps its reservation: its entitlements, first claim included, stay
 *         where they are for `hold` periods without a controller. A controller may die at any moment: of a limit no
 *         more is on its way from server to server, given up here and not yet acknowledged there, than what is beyond
 *         the reservation and an eighth of it, of what can be used where it is (control/pshift/limits.c; where all is
 *         reserved a part in 32, and 4). R-tokens need no agreement, since too many of them pass no limit: they are
 *         told to both servers at once, and are missing if only the one that has less is reached and the
 *         controller then dies.
 *         A takeover moves nothing of a bucket whose demand does not move. So a controller that dies is replaced
 *         without a loss while a majority of the servers answers, whatever the others do: they are down, frozen, started
 *         anew, or cut off in one direction. The condition is that the limit less the static parts of these others is
 *         no less than the reservation: that much they may have.
 *         Assumed: clocks as above; static parts in sum ≤ limit (the policy's division); all controllers
 *         know the same servers.
 *
 * DIFFERS Pauses of at most PSHIFT_DRIFT and the round trip between two periods for buckets with a limit;
 *         entitlements, which the paper has not; a floor of L-tokens at each server and pacing; R-tokens
 *         are counted by what was served. A bucket whose queue neither empties nor grows while requests
 *         come as fast as they go would send more if it were served more (a closed loop): its demand
 *         counts as what the server can do.
 */
#ifndef WEIR_CONTROL_PSHIFT_PSHIFT_H
#define WEIR_CONTROL_PSHIFT_PSHIFT_H

#include <weir/clock.h>
#include "wire/lease.h"

/* Clocks of two machines differ in speed by less: NTP corrects one by 1/2000 at most, and quartz is off
 * by a tenth of that. 2.5 ms of a period of 5 s. */
#define PSHIFT_DRIFT 2000
#define PSHIFT_HOLD  4 /* periods: a controller is restarted in less */
#define PSHIFT_GAP   2 /* periods: a server that answers is heard of in less */

/* The last bit of a controller's instance: it is a server that stands in. */
static inline bool pshift_stands_in(uint64_t instance)
{
	return instance & 1;
}

#define PSHIFT_NONE SIZE_MAX

/* A whole number of tokens from a rate and a span; never more than fits a message. */
static inline int64_t pshift_over(double per_second, weir_time span)
{
	double v = per_second * ((double)span / (double)WEIR_SEC);

	return v <= 0 ? 0 : v >= 0x1p53 ? LEASE_TOKENS_MAX : (int64_t)v;
}

#endif
