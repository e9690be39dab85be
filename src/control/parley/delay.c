/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parley/delay.h"

double delay_bound_load(double capacity, double time, double burst, double size)
{
	return 1 - (burst + size) / (capacity * time);
}
