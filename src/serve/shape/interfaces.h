/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interfaces: devices of virtual machines and pods that rules name, as they come and go: a tap, or the host's end of a veth.
 *
 * METHOD  What comes out of such a device is marked with its set of rules, and read at the shaped device; what goes into it is
 *         moved to the right service (shape.bpf.c). Programs stay attached when the shaper ends, as at the shaped devices; a file
 *         of state says whether there was a clsact qdisc, so that device_restore can give the device back.
 */
#pragma once

#include "serve/shape/device.h"

struct interfaces;
/* All are borrowed; network: its devices are not looked at. */
int interfaces_new(struct rules *r, struct program *p, const struct policy_network *network,
	const struct device_state *s, const struct device_guard *g, struct interfaces **ret,
	struct weir_err *err);
void interfaces_free(struct interfaces *i);
/* Look at all devices: attach to new ones. Return the number of those that rules name, or the first error; one that has another
 * program is left alone, and is an error once. */
int interfaces_scan(struct interfaces *i, struct tc *t, struct weir_err *err);
/* Look at all devices once, only to find which rules have some (rules.seen). */
int interfaces_look(struct rules *r, struct tc *t, const struct policy_network *network);
