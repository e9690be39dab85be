/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iolist: a list of IOs in order, linked by their `next`.
 */
#pragma once

#include "model/device.h"

struct iolist { /* zeroed: empty */
	struct device_io *first, *last;
};

static inline void iolist_append(struct iolist *l, struct device_io *io)
{
	io->next = NULL;
	if (l->first)
		l->last->next = io;
	else
		l->first = io;
	l->last = io;
}

static inline void iolist_return(struct iolist *l, struct device_io *io) /* before the first */
{
	io->next = l->first;
	if (!l->first)
		l->last = io;
	l->first = io;
}

static inline struct device_io *iolist_take(struct iolist *l) /* remove the first; not empty */
{
	struct device_io *io = l->first;

	l->first = io->next;
	return io;
}
