/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/tenant.h"
#include <math.h>

double parda_tenant_size(double ios, double bytes, double slot)
{
	if (!(slot > 0) || !(ios > 0))
		return 1;
	return fmax(1.0 / PARDA_TENANT_SIZES, fmin(bytes / ios / slot, PARDA_TENANT_SIZES));
}

/* Return the requests a second that meet both of its guarantees. */
static double min_of(const struct parda_tenant *t)
{
	double by_bytes = t->bytes > 0 ? t->min_bytes * t->ios / t->bytes : 0;

	return fmax(t->min_ios, by_bytes);
}

struct parda_vm parda_tenant_vm(const struct parda_tenant *t, double span, double slot)
{
	double size = parda_tenant_size(t->ios, t->bytes, slot);

	return (struct parda_vm){.shares = t->shares,
		.outstanding = fmax(t->wanting_ns, 0) / span * size,
		.min = min_of(t) * size};
}
