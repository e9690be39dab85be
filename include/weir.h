/* SPDX-License-Identifier: BSD-3-Clause */
/* weir: everything that libweir offers. Each header is the manual of its part. */
#ifndef WEIR_H
#define WEIR_H

#include "base/clock.h"
#include "base/err.h"
#include "base/hist.h"
#include "base/units.h"
#include "ctl/policy.h"
#include "gate/gate.h"

#endif
