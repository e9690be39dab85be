/* SPDX-License-Identifier: BSD-3-Clause */
/* keys: pShift has no settings of a resource; those of all its servers are the policy's
 * `cluster`. */
#pragma once

#include "control/controller.h"

extern const struct controller pshift_controller; /* a server of the cluster */
extern const struct key pshift_keys[];
extern const struct cluster_lead pshift_lead;     /* cluster.c */
extern const struct cluster_server pshift_server; /* the same */
void pshift_keys_check(struct settings *s, struct controller_check *c);
