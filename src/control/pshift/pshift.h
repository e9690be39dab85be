/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift: the protocol by which servers and a controller keep reservations and limits of buckets
 * that are spread over servers, and why it is safe.
 *
 * Two machines, both pure: a message or a time in, messages and tokens out. Time is an argument.
 *
 *   control/pshift/server.h    one server: demand and holdings of its buckets, the tokens of its
 *                              gate
 *   control/pshift/control.h   the controller of all: reports in, tokens out (alloc.h places them)
 *   control/pshift/books.h     the most that servers may use of each limit, as far as the
 *                              controller knows
 *   control/pshift/lead.c      which of several controllers leads
 *   wire/lease.h               the messages
 *
 * THE PROTOCOL
 * The controller divides time into QoS periods, numbered 1, 2, … For each bucket a server has four
 * numbers, all counted in tokens served since the period began, so that a repeated, late or
 * reordered message changes nothing:
 *   claim     the bucket is served first up to this number (R-tokens: the missing part);
 *   cap       it is not served beyond this number (R- and L-tokens together: the missing part);
 *   reserved, limit   claim and cap of each following period, until a grant changes them: its
 *                     entitlement. Their sums over the servers are the bucket's reservation and
 *                     limit.
 * Service counts toward the claim with or without a token: a bucket that was served
 * opportunistically is not served first again.
 * A server reports use and demand of a bucket only if they differ from the values that its last
 * report predicts, and a beat if there is nothing to report. The controller places tokens again,
 * every interval, if something changed; it sends only differences, and renews every lease once a
 * period. No machine waits for another: a round closes by time with the reports received so far,
 * older reports are extrapolated, and servers continue with the tokens that they have. Reports and
 * grants contain all that was not yet acknowledged, so that the newest one alone suffices.
 *
 * LEASES  No two clocks agree; they may differ in speed by 1/PSHIFT_DRIFT. A grant tells a server
 *         in two ways when its period ends: `left` after the server's own report was sent (earlier
 *         than its arrival, so this is no later than the true end), and `togo` after the grant was
 *         received (later than it was sent, so no earlier). Tokens are spent until the first time,
 *         and those of the next period from the second on. So service that a server counts to
 *         period k happens in the controller's period k.
 *         Without the controller a server continues to count periods. With a the period of the last
 *         grant it took, and h ≤ hold the time for which that grant is held:
 *           k ≤ a + 1              LEASED
 *           k ≤ a + h              HELD: it continues within its entitlements; AdapTBF lends unused
 *                                  claims to other buckets, with entitlements as weights
 *           k ≤ a + hold + gap     HELD, and no cap is above the static part
 *           later                  STATIC: static parts, paced so that no span of a period's length
 *                                  has more
 *         A server that starts does not know what it served before, and others may hold
 *         entitlements that assume that it has little: it is BLIND, serves no bucket with a limit,
 *         and is STATIC after hold + 2 periods, when all others are past their hold, unless a
 *         controller admits it before (or `fresh` says that there was no earlier instance).
 *
 * LEADING Several controllers may run; servers report to all of them, and are the voters. A
 *         controller asks servers to follow it under a generation higher than any it has heard of,
 *         when a majority of the cluster's servers (of all in the policy) report that they follow
 *         no live controller; a controller that started later does so once, after three periods. A
 *         server follows the highest (generation, instance) that asked it, and takes grants of that
 *         one only; of the same generation a lower instance, too, if the other one sent nothing for
 *         PSHIFT_YOUNG periods. A controller is not live for a server if the connection was closed, or if it
 *         sent nothing for one and a half periods. A controller grants as soon as a majority follow
 *         it and have reported their holdings, and only while, in period k, a majority has
 *         acknowledged messages that it sent in period k − 1 or k. Otherwise, or when it hears of a
 *         higher generation, it stands down: it forgets the servers' holdings, and is a standby. So
 *         after a takeover the previous controller may grant for at most PSHIFT_LEAD periods more,
 *         and only to servers that have not answered the new one.
 *         Where the controllers elect one of them in a store (control/elect/elect.h), the servers elect none:
 *         the controller that was elected asks at once, under a generation that comes from the store and is
 *         higher than all before it. All else stays: it grants with a majority only. A stand-in leads
 *         meanwhile as it does without a controller.
 *         A server takes messages of no generation below the highest that it ever obeyed, also after a
 *         restart, if its driver keeps that number.
 *         A server that restarted has forgotten which controller it followed. It reports BLIND for
 *         PSHIFT_YOUNG periods, longer than any vote counts, and during that time its vote counts
 *         only if all servers follow. It is granted nothing before a majority has acknowledged
 *         messages that were sent after its first report: then no other controller can have had a
 *         majority, with the vote of the previous instance, before that.
 *
 * SAFETY  (1) In each period Σ over servers of the service counted to it ≤ the bucket's limit,
 *         whatever messages are lost, late, doubled or out of order, and whichever machines
 *         restart. The controller's books hold for each server the most it may have been told
 *         (acknowledged, or told and not yet acknowledged), e_j, of this period and of
 *         entitlements. Let r be the last period until which any sent grant is held, and a_j the
 *         last grant that j acknowledged: if a_j + hold + gap ≤ r then j may fall back to its
 *         static part s_j while others keep their holdings (it may be a period ahead of them, if no
 *         controller or two of them count), and counts with max(e_j, s_j). If j has only begun to
 *         follow, as all have after a takeover, new grants are held for a shorter time instead, so
 *         that r is before that. The controller raises a cap only by the rest in the books. A later
 *         r raises the books, too, by s_j − e_j of each j that it passes, and is likewise allowed
 *         only within the limit: until others have acknowledged that they have as much less, new
 *         grants are held for the shorter time, and none is sent once that is over (`exceeds` in
 *         limits.c). A server that takes no grants is not waited for: others give up instead of
 *         it. That suffices:
 *         A silent server j counts with s_j when, in a period k > a_j + hold, a majority has taken
 *         grants of k (`ruled`). Here a_j is the last period in which j was sent a grant, taken or
 *         not. A server that reports to have taken its last grant in a, with a + hold < k, counts
 *         with no more than s_j, whatever it holds, and its next grant says so: by its own law it
 *         has no more in k, and it may be yet to begin k, or have slept (below). So j never counts
 *         with more when it is heard again, be it once or twice before it is granted anything.
 *         In a period. Caps only grow by a grant; at the last one sent, books ≤ limit.
 *         Across periods without grants. In a period k ≤ r: a j with a_j + hold + gap > r has e_j
 *         or min(e_j, s_j), any other at most max(e_j, s_j): the sum is ≤ the books, which were
 *         ≤ limit with these j when a grant was first held until r, and have only been raised
 *         within it since. If k > r, all holds have ended, each server has at most s_j, and
 *         Σ s_j ≤ limit.
 *         At a takeover. The new controller knows the set H of servers that follow it, with the
 *         holdings h_j of each when it answered, and not the others, S. It counts U = max(Σ_S s_j,
 *         limit − Σ_H h_j) for S together. That is enough. Let g be a controller that still grants.
 *         H takes no more grants of g, so g's books of H never fall below h_j. For g assumes that
 *         the hold of a silent server has ended only when a majority has taken grants of a period
 *         k beyond it; one of these is in H, so that the new controller begins no earlier than in
 *         k, and by that knows the same: such a server has h_j ≤ s_j. So the
 *         holdings that g allows S, until its last grant's hold ends, are ≤ limit − Σ_H h_j; after
 *         that S has at most its static parts. When a server of S answers, its holdings are
 *         subtracted from U. U counts until no grant of another controller can be held any more,
 *         LEAD + hold periods, and a majority has taken grants of a later period, which a third
 *         controller would then be in, too. Until then the sum of the caps of H does not rise. Nor is it
 *         lowered, except for static parts and for raises elsewhere: a part that is given up and
 *         not taken would count for S with the next controller, and a controller in a crash loop
 *         would take everything in the end.
 *         Static parts beside U. Let j of H fall back to its static part in a period k in which S
 *         still holds grants of g. The a_j that g knows is no later than ours, since j answered; so
 *         for g, too, j could be static in k, and g counted max(h_j, s_j) for it. Hence S holds no
 *         more than limit − Σ_H max(h_j, s_j) in k, over those j that may be static: the gain of j
 *         beyond h_j counts in U, and not again beside it (`besides` in limits.c). If j can be
 *         static only after U has ended, its gain does not count beside U either. A server that
 *         restarted and has taken no grant since has h_j = 0 and is the same case: it is BLIND for
 *         hold + 2 periods, longer than j would have kept its earlier holdings. Until it has taken
 *         a grant its cap is not raised, even if j is the last server of S to answer: U then is the
 *         possible use of its previous instance, and j's static part counts in place of it.
 *         A server that starts is BLIND. The possible use of its previous instance counts as used
 *         until the period ends, also with a controller that takes over meanwhile: the server
 *         reports that it was BLIND until the next period is over. Both instances do not use a
 *         static part in one period, and one of them counts: the previous one if U has ended, so
 *         that it counts beside the static parts of other servers. If no server that answers is in a
 *         period, the controller begins the first one: no earlier instance used anything of that.
 *         The period at a takeover is the newest of those that H is in: what a server used of an
 *         earlier one is not in its report. If a server of S is ahead of that when it answers, U of the
 *         present period therefore counts until that ends. Only a controller that granted last counts by itself,
 *         from its own last period on, since no server is ahead of it (LEASES: `togo`). It ceases to
 *         when it hears of a later controller, or of a server that is ahead nevertheless.
 *         A policy that changes. A limit that grows while there is an S makes U grow by as much:
 *         another controller may have granted it. A static part counts with the greater of the
 *         server's report and this controller's policy, from the moment at which that policy
 *         changes: a silent server may have its new part before it reports. If some of the n
 *         servers have parts s' of another policy's limit l', they have at most n (s' − s) more
 *         than that, which is l' − l. So while machines have different policies, service stays
 *         within the greatest limit of those in force, or in force when a lease that is still held
 *         was granted.
 *         A service may be counted to two periods (a late look), never to none.
 *         (2) Periods have their full length; at a takeover one may be off by a message's round
 *         trip.
 *         (3) A bucket whose demand did not move keeps its reservation: its entitlements, first
 *         claim included, stay for `hold` periods without a controller. A controller may die at any
 *         moment: the part of a limit that moves between servers, given up here and not yet
 *         acknowledged there, is at most the usable part beyond the reservation and an eighth of it
 *         (limits.c; if all is reserved, 1/32 and 4 tokens). R-tokens need no agreement, since an
 *         excess of them exceeds no limit: both servers are told at once, and tokens are missing if
 *         only the server that has less is reached and the controller then dies.
 *         A takeover moves nothing of a bucket whose demand does not move. So a controller that
 *         dies is replaced without a loss while a majority of the servers answers, whatever the
 *         state of the others: down, frozen, restarted, or cut off in one direction. The condition
 *         is that the limit less the static parts of these others is no less than the reservation:
 *         they may have that much.
 *         Assumed: clocks as above; static parts in sum ≤ limit (the policy's division); all
 *         controllers know the same servers. If the clock of a server stands still nevertheless,
 *         since its machine was suspended, its service counts to the period in which it fell asleep
 *         until it hears of the present one: then it has its static parts if its hold has ended,
 *         and corrects the end of the period. If it hears of none, it goes on with its old holdings
 *         for their hold by its own clock, beside others that have them by now.
 *
 * DIFFERS Pauses of at most PSHIFT_DRIFT and the round trip between two periods for buckets with a
 *         limit; entitlements, which the paper does not have; a floor of L-tokens at each server,
 *         and pacing; R-tokens are counted by service. A bucket whose queue neither empties nor
 *         grows while requests arrive as fast as they complete would send more if it were served
 *         more (a closed loop): its demand counts as the server's capacity.
 */
#pragma once

#include <weir/clock.h>
#include "wire/lease.h"

/* The most by which the speeds of two machines' clocks differ: NTP corrects by 1/2000 at most, and
 * quartz is off by a tenth of that. 2.5 ms in a period of 5 s. */
#define PSHIFT_DRIFT 2000
#define PSHIFT_HOLD  4 /* periods: enough to restart a controller */
#define PSHIFT_GAP   2 /* periods: enough for a report from any server that answers */

/* Interval of adding L-tokens while a bucket has a limit: a fifth of the longest wait that it may
 * cause … */
#define PSHIFT_PACE (5 * WEIR_MS)
/* … and the gate holds the tokens of four of them, so that a late look delays no request: nearly as
 * much as the hold bucket of a max (policy/knobs/install.c); PSHIFT_READY tokens at least. */
#define PSHIFT_AHEAD (20 * WEIR_MS)
/* A part of a period before its end by which claims are made up for. */
#define PSHIFT_LATE 32

/* The last bit of a controller's instance: it is a server that stands in. */
static inline bool pshift_stands_in(uint64_t instance)
{
	return instance & 1;
}

#define PSHIFT_NONE SIZE_MAX

/* Return a whole number of tokens for a rate and a span; never more than fits a message. */
static inline int64_t pshift_over(double per_second, weir_time span)
{
	double v = per_second * ((double)span / (double)WEIR_SEC);

	return v <= 0 ? 0 : v >= 0x1p53 ? LEASE_TOKENS_MAX : (int64_t)v;
}
