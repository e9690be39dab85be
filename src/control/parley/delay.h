/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delay: completion times of flows on a link whose load is bounded, and the load that a wanted
 * completion time allows.
 *
 * SOURCE  Parley §2.1 (M/M/1) and §4, equations 1 and 2.
 * LAW     Poisson arrivals of exponential sizes: P(t > x) = exp(−μ(1 − ρ)x), so that the quantile p
 *         is −ln(1 − p)/(μ(1 − ρ)). Any arrivals with B(t1, t2) ≤ σ + ρC(t2 − t1): t ≤ (σ + Z)/(C(1 − ρ)).
 * SYMBOLS C capacity, bytes/s; ρ load, 0 ≤ ρ < 1; μ = C/mean size, flows/s; σ burst, bytes; Z size
 *         of the flow, bytes; times in seconds.
 * DIFFERS The paper's §2.1 states 18.4 ms for 1 MB flows at 10 Gbit/s and does not state the load: it is
 *         0.8. Both laws have an inverse here: the largest ρ for a wanted time.
 * EXAMPLE C = 1.25e9, ρ = 0.8, mean size 1e6, p = 0.99: 18.42 ms. σ = C·7.5 ms, Z = 200 kB, ρ = 0.8:
 *         38.30 ms; for at most 20 ms the load may be 0.617.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

/* Return the quantile p, 0 ≤ p < 1, of completion times; HUGE_VAL from a load of 1 on. */
double delay_quantile(double capacity, double load, double mean_size, double p);

/* Return the bound of equation 2; HUGE_VAL from a load of 1 on. */
double delay_bound(double capacity, double load, double burst, double size);

/* Return the largest load with which the quantile or the bound is at most `time`; negative if none
 * is, even on an empty link: −0.25 means that the link has 4/5 of the capacity it would need. */
double delay_quantile_load(double capacity, double time, double mean_size, double p);
double delay_bound_load(double capacity, double time, double burst, double size);
