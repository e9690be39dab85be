/* SPDX-License-Identifier: BSD-3-Clause */
/* weir: everything that libweir offers. Each header is the manual of its part. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/clock.h>
#include <weir/err.h>
#include <weir/hist.h>
#include <weir/units.h>
#include <weir/policy.h>
#include <weir/gate.h>

#endif
