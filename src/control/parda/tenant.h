/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tenant: the measurements of one tenant at a host's gate, as input of equation 4.
 *
 * A slot is a request; or, if bytes are shared, an IO of a fixed size (§2), so that a request of
 * another size is more or less than one slot.
 */
#pragma once

#include "control/parda/law.h"

struct parda_tenant {              /* a leaf of the gate, over a span */
	double shares;             /* > 0 */
	double ios, bytes;         /* completed */
	double wanting_ns;         /* request·ns: inside, or waiting for the window or its turn */
	double min_ios, min_bytes; /* per second: its guarantee; 0: none */
};

/* Return the slots of a request, from `ios` of them and their bytes. slot: bytes of one slot; 0: a
 * slot is a request. Limited to 1/PARDA_TENANT_SIZES … PARDA_TENANT_SIZES; 1 without requests. */
#define PARDA_TENANT_SIZES 64 /* 16 KiB: from 256 bytes to 1 MiB. Flushes have no bytes at all */
double parda_tenant_size(double ios, double bytes, double slot);

/* span: ns, > 0. */
struct parda_vm parda_tenant_vm(const struct parda_tenant *t, double span, double slot);
