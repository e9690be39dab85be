/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/joint.h"
#include <math.h>
#include <stdlib.h>

#define FULL (-WEIR_NEVER / 2)   /* long ago */
#define LONG 3000000000000000000 /* ns: 100 years; the sum of three is a time */

struct joint *joint_new(void)
{
	struct joint *j = malloc(sizeof(*j));

	if (!j)
		return NULL;
	atomic_init(&j->empty, FULL);
	atomic_init(&j->users, 1);
	return j;
}

struct joint *joint_use(struct joint *j)
{
	atomic_fetch_add(&j->users, 1);
	return j;
}

void joint_unuse(struct joint *j)
{
	if (j && atomic_fetch_sub(&j->users, 1) == 1)
		free(j);
}

/* Return the time in which so many units come in, at most LONG. */
static weir_time span_of(struct joint_size s, double units)
{
	return (weir_time)fmin(ceil(units / s.rate * WEIR_SEC), LONG);
}

weir_time joint_take(struct joint *j, struct joint_size s, weir_time now, double units)
{
	weir_time was = atomic_load(&j->empty), full = now - span_of(s, s.size), start;

	do {
		start = was > full ? was : full;
		if (start > now + LONG)
			return WEIR_NEVER;
	} while (!atomic_compare_exchange_weak(&j->empty, &was, start + span_of(s, units)));
	return start + span_of(s, fmin(units, s.size));
}

void joint_spend(struct joint *j, weir_time now)
{
	weir_time was = atomic_load(&j->empty);

	while (was < now && !atomic_compare_exchange_weak(&j->empty, &was, now))
		continue;
}

void joint_return(struct joint *j, struct joint_size s, double units)
{
	atomic_fetch_sub(&j->empty, span_of(s, units));
}
