/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-join: a controller whose tenants are those of the version in a cluster's store, and which leads only if it was elected
 * there (control/elect/elect.h).
 *
 * It publishes its state as members do: controllers/NAME, with "state" and "generation".
 */
#pragma once

#include "serve/host/control-impl.h"
#include <jansson.h>

struct control_joined;

/* With options.join; does nothing without. */
int control_join_start(struct control *l, struct weir_err *err);
void control_join_free(struct control *l);
/* The machine's state may have changed: stand down, lead, or ask for a higher generation. */
void control_join_look(struct control *l, const struct cluster_status *st);
/* Give the lease back, then call `end`. */
void control_join_leave(struct control *l, void (*end)(struct control *l));
/* Check that a change may be made here: 0, or -EAGAIN with the reason. */
int control_join_check(const struct control *l, struct weir_err *err);
json_t *control_join_json(const struct control *l); /* of the election; null without one */
