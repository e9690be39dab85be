/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message: a host's report as it stands in a message between hosts (wire/peer.h), and back.
 *
 * The message has the host's id, the report's sequence number and the name of the resource; the report
 * has none of these.
 *
 * A host may reach one array by several resources, LUNs say. Each has a window, a controller and a
 * report of its own, and to the others, and to each other, they are as many hosts. Which of them it
 * is, 0, 1, …, is in the low four bits of the report's flags; then comes whether it asks if others
 * have requests inside, and whether it has none itself, and two bits that are 0; above these are
 * the steps that the controller has made (32 bits), and the floor that it has found beside a
 * stranger, as the upper 24 bits of a positive IEEE 754 single.
 */
#pragma once

#include "control/parda/parda.h"
#include "wire/peer.h"

/* Return the id of a host (peer_hash of its name) at its resource with this number among those of one array. */
uint64_t parda_message_id(uint64_t host, uint64_t number);

/* resource: peer_hash of the hosts' name for the array. number: < 16. period: ns between two
 * reports. */
struct peer_report parda_message_write(
	const struct parda_report *r, uint64_t resource, uint64_t number, weir_time period);
/* r is one of m's. */
struct parda_report parda_message_read(const struct peer_message *m, const struct peer_report *r);
