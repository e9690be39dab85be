/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delay: the load of a link that a wanted completion time of flows allows.
 *
 * SOURCE  Parley §4, equation 2.
 * LAW     Any arrivals with B(t1, t2) ≤ σ + ρC(t2 − t1): t ≤ (σ + Z)/(C(1 − ρ)).
 * SYMBOLS C capacity, bytes/s; ρ load, 0 ≤ ρ < 1; σ burst, bytes; Z size of the flow, bytes; times in seconds.
 * DIFFERS The paper states the time for a load; here is the inverse, the largest ρ for a wanted time.
 * EXAMPLE C = 1.25e9, σ = C·7.5 ms, Z = 200 kB: for at most 38.30 ms the load may be 0.8, for 20 ms 0.617.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

/* Return the largest load with which the bound is at most `time`; negative if none is, even on an empty link: −0.25 means
 * that the link has 4/5 of the capacity it would need. */
double delay_bound_load(double capacity, double time, double burst, double size);
