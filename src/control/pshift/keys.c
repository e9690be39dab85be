/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pshift/keys.h"

const struct key pshift_keys[] = {{0}};

void pshift_keys_check(struct settings *s, struct controller_check *c)
{
	if (!c->has_iops)
		c->refuse(c, c->map, "controller pshift needs the capacity in iops");
}
