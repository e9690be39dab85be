/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tenant: what a host's gate measured of one tenant, as equation 4 needs it.
 *
 * A slot is a request; or, where bytes are shared, it stands for an IO of a fixed size (§2), and a request
 * of another size for more or less than one.
 */
#ifndef WEIR_CONTROL_PARDA_TENANT_H
#define WEIR_CONTROL_PARDA_TENANT_H

#include "control/parda/law.h"

struct parda_tenant {              /* a leaf of the gate, over a span */
	double shares;             /* > 0 */
	double ios, bytes;         /* that ended */
	double wanting_ns;         /* request·ns: inside, or waiting for the window or its turn */
	double min_ios, min_bytes; /* per second: what it is guaranteed; 0: nothing */
};

/* Slots of a request, from `ios` of them and their bytes. slot: bytes that one stands for; 0: a slot is a
 * request. Kept in 1/PARDA_TENANT_SIZES … PARDA_TENANT_SIZES; 1 when there were none. */
#define PARDA_TENANT_SIZES 64 /* 16 KiB: from 256 bytes to 1 MiB. Flushes have no bytes at all */
double parda_tenant_size(double ios, double bytes, double slot);

/* span: ns, > 0. */
struct parda_vm parda_tenant_vm(const struct parda_tenant *t, double span, double slot);

#endif
