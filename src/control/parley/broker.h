/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broker: divide a link, or a limit over many links, among services at many machines, by what they used.
 *
 * SOURCE  Parley §3.2.2, §3.2.3, §5.2, §5.3. One object is a rack's broker (members: machines), a
 *         fabric's (members: racks), and a machine's own division of its link (one member).
 * LAW     A tree: the link, the services of the policy, and for each service without children one leaf
 *         per member. Its demands are the usage that the members reported; waterfill.h divides. A leaf
 *         that gets all it wants is not limited, the others are, to their part.
 *         A leaf at its cap wants more than it uses: its usage times 2, 4, 8 … for each round it stays.
 *         A service with a max that used more than half of it within ten rounds has all its leaves
 *         limited: what is left of the max is divided evenly, so that they together never get more.
 *         A member that is silent counts with its last usage until `silence` has passed, then with its
 *         mins: if it were forgotten, the others would take a part that it may still use.
 * DIFFERS The paper drops silent members, and its demand of a capped service is its usage, which can
 *         never grow again.
 *
 * Pure: no clock; memory is taken when it is made.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parley_service {
	double min, max, weight;                /* of the service at this link; bytes/s */
	double leaf_min, leaf_max, leaf_weight; /* of it at each member */
	int parent;                             /* index, lower than its own; -1: none */
};

struct parley_broker;
/* Services are copied. 0, -ENOMEM, or -EINVAL for a parent that does not come first. */
int parley_broker_new(const struct parley_service *services, size_t n_services, size_t members,
	weir_time silence, struct parley_broker **ret);
void parley_broker_free(struct parley_broker *b);
/* Take over what a service had in another broker whose members are the first of these, or all of them. */
void parley_broker_adopt(struct parley_broker *b, size_t service, const struct parley_broker *from,
	size_t from_service);

/* Change a service's own bounds. */
void parley_broker_set(
	struct parley_broker *b, size_t service, double min, double max, double weight);
/* Take a member's usage of all services, bytes/s, measured up to `now`. */
void parley_broker_hear(struct parley_broker *b, size_t member, const double *usage, weir_time now);
/* Divide `capacity`; INFINITY: only the services' own bounds count. Return true if mins had to be
 * scaled. */
bool parley_broker_step(struct parley_broker *b, double capacity, weir_time now);
/* Get the cap of a service without children at a member, bytes/s; INFINITY: not limited. */
double parley_broker_cap(const struct parley_broker *b, size_t member, size_t service);
/* Get what the division gave a service in all, limited or not. */
double parley_broker_rate(const struct parley_broker *b, size_t service);
