/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parley/delay.h"
#include <math.h>

/* Both laws are of the form `work` / (capacity · (1 − load)), with work in bytes. */
static double time_of(double work, double capacity, double load)
{
	return load < 1 ? work / (capacity * (1 - load)) : HUGE_VAL;
}

static double load_of(double work, double capacity, double time)
{
	return 1 - work / (capacity * time);
}

double delay_quantile(double capacity, double load, double mean_size, double p)
{
	return time_of(-mean_size * log1p(-p), capacity, load);
}

double delay_bound(double capacity, double load, double burst, double size)
{
	return time_of(burst + size, capacity, load);
}

double delay_quantile_load(double capacity, double time, double mean_size, double p)
{
	return load_of(-mean_size * log1p(-p), capacity, time);
}

double delay_bound_load(double capacity, double time, double burst, double size)
{
	return load_of(burst + size, capacity, time);
}
