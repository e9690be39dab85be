/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spindle: the mechanics of one disk, and the queue of its arm.
 *
 * Not a device by itself: `disk` wraps one as a device, `array` many. It owns no memory outside its
 * struct; it borrows IOs from spindle_add until spindle_take returns them. One IO is under the head
 * at a time, so the next event is one number: `done`.
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include "base/rng.h"
#include "model/iolist.h"
#include <stdbool.h>

#define SPINDLE_ZONES    16 /* steps from the outer to the inner track length */
#define SPINDLE_SEGMENTS 8  /* segments of the track buffer: streams it remembers */
#define SPINDLE_WINDOW   64 /* the largest window */

enum spindle_order {
	SPINDLE_FIFO,
	SPINDLE_LOOK,  /* elevator, both ways: passes the middle evenly, the ends unevenly */
	SPINDLE_CLOOK, /* elevator, one way: the same wait everywhere */
	SPINDLE_SPTF,  /* shortest positioning time (seek and rotation) first */
	SPINDLE_ORDERS
};
extern const char *const spindle_order_names[SPINDLE_ORDERS + 1]; /* "fifo", "look", …, NULL */

struct spindle_config {
	uint64_t capacity;    /* bytes */
	double rpm;           /* revolutions per minute */
	uint32_t cylinders;   /* unit of seek distances */
	weir_time seek_track; /* to the next cylinder, reading */
	weir_time seek_third; /* over a third of the stroke: the "average" of data sheets */
	weir_time seek_full;  /* over the whole stroke */
	weir_time settle;     /* added to every seek before a write */
	weir_time skew;       /* lost at every track boundary in a transfer */
	double outer, inner;  /* media rate at the two ends, bytes/s */
	double interface;     /* rate out of the track buffer, bytes/s */
	weir_time overhead;   /* of a command to an idle drive; else it is hidden */
	uint32_t segment;     /* most bytes to read ahead per stream; 0: no track buffer */
	enum spindle_order order;
	uint32_t window; /* the oldest IOs, as many as the drive orders; 1 … 64 */
	weir_time age;   /* an IO in the window this old goes first; 0: never */
};

/* A 146 GB, 15,000 rpm Fibre Channel drive of about 2006, LOOK over 8 IOs. */
struct spindle_config spindle_defaults(void);
/* A 300 GB, 10,000 rpm drive of the same time. */
struct spindle_config spindle_10k(void);
int spindle_check(const struct spindle_config *config, struct weir_err *err);

struct spindle_zone {
	uint64_t start; /* first byte of the zone */
	uint64_t first; /* number of its first track */
	uint64_t track; /* bytes per track */
	double ns_in;   /* ns of rotation per byte */
};

struct spindle_geometry { /* shared by all disks of one kind */
	struct spindle_config config;
	weir_time turn; /* ns per revolution */
	double short_a; /* seek = short_a + short_b · √cylinders up to a third */
	double short_b;
	double long_a; /* and long_a + long_b · cylinders beyond */
	double long_b;
	double tracks_per_cylinder;
	struct spindle_zone zones[SPINDLE_ZONES];
};
/* `config` must have passed spindle_check. */
void spindle_geometry_make(struct spindle_geometry *g, const struct spindle_config *config);

struct spindle_place { /* start of an IO */
	uint32_t cylinder, zone;
	uint32_t angle; /* ns of rotation from the index mark */
};
struct spindle_slot {
	struct device_io *io;
	struct spindle_place at;
};

struct spindle {
	const struct spindle_geometry *g;
	weir_time done;            /* when the IO under the head ends; WEIR_NEVER: idle */
	struct device_io *current; /* under the head */
	struct iolist beyond;      /* IOs beyond the window, oldest first */
	uint32_t n;                /* slots in use */
	uint32_t cylinder;         /* of the arm */
	bool up;                   /* direction of the elevator */
	bool reading_on;           /* segment 0 has been growing since `read_at`, … */
	weir_time read_at;
	uint64_t limit;    /* … up to this byte */
	double ahead_rate; /* bytes per ns at which segment 0 grows */
	weir_time phase;   /* position of the platter at time 0 */
	weir_time worked;  /* time that IOs were under the head, up to the end of the current one */
	struct {
		uint64_t start, end;
	} segments[SPINDLE_SEGMENTS];              /* most recent first */
	struct spindle_slot slots[SPINDLE_WINDOW]; /* in order of age */
};

/* `g` must outlive the spindle. One draw from `r`: the position of the platter, so that disks of
 * one array are not in step. Nothing else is random. */
void spindle_init(struct spindle *s, const struct spindle_geometry *g, struct rng *r);
/* Accept a read or a write at `now`, and start it if idle. Changes only the IO's link, and reads
 * `arrived` (for `age`). */
void spindle_add(struct spindle *s, weir_time now, struct device_io *io);
/* Return the IO that ended at `done` (not WEIR_NEVER), with `finished` set, and start the next one
 * at that time. */
struct device_io *spindle_take(struct spindle *s);

/* Geometry: the time of a seek, and the place of a byte. */
weir_time spindle_seek(const struct spindle_geometry *g, uint32_t from, uint32_t to);
struct spindle_place spindle_locate(const struct spindle_geometry *g, uint64_t offset);
