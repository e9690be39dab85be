/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: k equal servers behind one FIFO, for IOs of any kind.
 *
 * LAW     Service times are exponential (M/M/k, with Poisson arrivals) or all equal (M/D/k); with
 *         `bytes_per_s` an IO also needs bytes / (bytes_per_s / k), added to its service time.
 *         Operation, offset and priority do not matter.
 * COST    O(log k) per IO, one draw of the stream per exponential service, made when the service
 *         starts: the order of the draws is the order of arrivals.
 */
#pragma once

#include <weir/err.h>
#include "model/device.h"

enum server_service { SERVER_EXPONENTIAL, SERVER_FIXED };

struct server_config {
	uint32_t servers;   /* k ≥ 1 */
	double rate;        /* IOs/s of all k together, > 0: each serves rate / k */
	double bytes_per_s; /* of all k together; 0: size does not matter */
	enum server_service service;
};

struct server_config server_defaults(void); /* one exponential server, 1,000 IOs/s */

/* Return 0; -EINVAL with a message that names the field; -ENOMEM. */
int server_new(const struct server_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err);

/* Change the rate from `now` on, also for the rest of the IOs in service (so that a slow IO does
 * not keep the old speed). Everything up to `now` must have been stepped. `d` must be a server.
 * Return -EINVAL unless rate > 0 and finite. */
int server_set_rate(struct device *d, weir_time now, double rate);
