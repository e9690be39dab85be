/* SPDX-License-Identifier: BSD-3-Clause */
/* workload-check: check the configuration of a workload. */
#include "model/workload-impl.h"
#include <errno.h>
#include <math.h>

#define SHORT_PHASE WEIR_US /* a shorter phase must be a mistake in the unit */

static bool is_share(double x)
{
	return x >= 0 && x <= 1;
}

static int check_times(const struct workload_config *c, struct weir_err *err)
{
	if (c->start < 0 || c->start > WORKLOAD_FOREVER)
		return weir_err_set(
			err, -EINVAL, "start: must not be negative, nor beyond 73 years");
	if (c->stop && c->stop <= c->start)
		return weir_err_set(err, -EINVAL, "stop: must be later than start");
	if (c->on < 0 || c->off < 0 || (c->on > 0) != (c->off > 0))
		return weir_err_set(err, -EINVAL, "%s: on-off needs both phases, each > 0",
			c->on > 0 ? "off, on" : "on, off");
	if (c->on > 0 && (c->on < SHORT_PHASE || c->off < SHORT_PHASE))
		return weir_err_set(err, -EINVAL, "%s: a phase must last at least 1us",
			c->on < SHORT_PHASE ? "on" : "off");
	if (c->on > WORKLOAD_FOREVER / 64 || c->off > WORKLOAD_FOREVER / 64)
		return weir_err_set(err, -EINVAL, "%s: a phase must last less than a year",
			c->on > WORKLOAD_FOREVER / 64 ? "on" : "off");
	return 0;
}

static int check_rate(const struct workload_config *c, struct weir_err *err)
{
	bool ramp = c->rate_end > 0;

	if (!(c->rate_end >= 0) || isinf(c->rate_end))
		return weir_err_set(err, -EINVAL, "rate_end: must be a number > 0");
	if (ramp && !c->stop)
		return weir_err_set(
			err, -EINVAL, "stop, rate_end: a ramp (rate_end) needs an end (stop)");
	if (!(c->rate > 0 || (ramp && c->rate == 0)) || c->rate > 1e9)
		return weir_err_set(err, -EINVAL, "rate: must be > 0 and at most 1e9 a second");
	if (c->rate_end > 1e9)
		return weir_err_set(err, -EINVAL, "rate_end: must be at most 1e9 a second");
	if (c->arrivals == WORKLOAD_HYPER && (!(c->ca2 >= 1) || c->ca2 > 1e9))
		return weir_err_set(err, -EINVAL, "ca2: must be at least 1 (1 is Poisson)");
	return 0;
}

static int check_bursts(const struct workload_config *c, struct weir_err *err)
{
	int r = check_rate(c, err);

	if (r < 0)
		return r;
	if (c->rate_end > 0)
		return weir_err_set(err, -EINVAL, "rate_end: bursts have a constant rate");
	if (!(c->ca2 > 1) || c->ca2 > 1e9)
		return weir_err_set(err, -EINVAL, "ca2: must be more than 1 with bursts");
	if (!(c->peak > c->rate) || c->peak > 1e9)
		return weir_err_set(
			err, -EINVAL, "peak: must be above the rate, and at most 1e9 a second");
	if (c->burst < SHORT_PHASE || c->burst > WORKLOAD_FOREVER / 64)
		return weir_err_set(
			err, -EINVAL, "burst: must last at least 1us, and less than a year");
	return 0;
}

static int check_trace(const struct workload_config *c, uint64_t len, struct weir_err *err)
{
	const struct trace *t = c->trace;

	if (!t || !t->n)
		return weir_err_set(err, -EINVAL, "trace: missing, or without any IO");
	if (!(c->speed >= 0) || isinf(c->speed))
		return weir_err_set(err, -EINVAL, "speed: must be a number > 0");
	if (c->loop && (t->n < 2 || t->records[t->n - 1].at <= 0))
		return weir_err_set(err, -EINVAL, "loop: the trace spans no time");
	for (size_t i = 0; i < t->n; i++)
		if (t->records[i].bytes > len)
			return weir_err_set(err, -EINVAL,
				"region: is too small for the trace's IO %zu, of %u bytes", i + 1,
				t->records[i].bytes);
	return 0;
}

static int check_arrivals(const struct workload_config *c, uint64_t len, struct weir_err *err)
{
	switch (c->arrivals) {
	case WORKLOAD_CLOSED:
		if (c->outstanding < 1)
			return weir_err_set(err, -EINVAL, "outstanding: must be at least 1");
		if (c->think < 0 || c->think > WORKLOAD_FOREVER / 64)
			return weir_err_set(
				err, -EINVAL, "think: must not be negative, nor over a year");
		return 0;
	case WORKLOAD_POISSON:
	case WORKLOAD_HYPER:
	case WORKLOAD_UNIFORM:
		return check_rate(c, err);
	case WORKLOAD_BURSTS:
		return check_bursts(c, err);
	case WORKLOAD_TRACE:
		return check_trace(c, len, err);
	}
	return weir_err_set(err, -EINVAL, "arrivals: no such kind (%d)", (int)c->arrivals);
}

static int check_sizes(const struct workload_config *c, uint64_t len, struct weir_err *err)
{
	double total = 0;

	if (c->n_sizes > 8 || (!c->n_sizes && c->arrivals != WORKLOAD_TRACE))
		return weir_err_set(err, -EINVAL, "sizes: must be 1 to 8 of them");
	for (unsigned i = 0; i < c->n_sizes; i++) {
		const struct workload_size *s = &c->sizes[i];
		if (!s->bytes)
			return weir_err_set(err, -EINVAL, "sizes[%u]: must be > 0 bytes", i);
		if (s->bytes > len)
			return weir_err_set(err, -EINVAL,
				"region: too small for sizes[%u], of %u bytes", i, s->bytes);
		if (!(s->share >= 0) || isinf(s->share))
			return weir_err_set(err, -EINVAL, "sizes[%u].share: must be ≥ 0", i);
		total += s->share;
	}
	if (c->n_sizes && !(total > 0))
		return weir_err_set(err, -EINVAL, "sizes: the shares add up to 0");
	return 0;
}

int workload_check(const struct workload_config *c, uint64_t len, struct weir_err *err)
{
	int r;

	if ((r = check_times(c, err)) < 0 || (r = check_arrivals(c, len, err)) < 0 ||
		(r = check_sizes(c, len, err)) < 0)
		return r;
	if (!is_share(c->reads))
		return weir_err_set(err, -EINVAL, "reads: must be a share from 0 to 1");
	if (!is_share(c->sequential))
		return weir_err_set(err, -EINVAL, "sequential: must be a share from 0 to 1");
	if (!(c->zipf >= 0) || c->zipf > 100)
		return weir_err_set(err, -EINVAL, "zipf: must be an exponent from 0 to 100");
	return 0;
}
