/* SPDX-License-Identifier: BSD-3-Clause */
/* facts: the values that PARDA shows of one host at one resource. */
#pragma once

#include "control/facts.h"
#include "control/parda/parda.h"

struct parda_facts_of { /* parda_facts.fill's `of` */
	const struct parda *parda;
	const struct parda_decision *last; /* of the last step */
	double held;      /* ns: of a request, by limits of an upstream that tells it */
	bool find, probe; /* as configured: the simulator reports what belongs to them */
};

extern const struct facts_kind parda_facts;
