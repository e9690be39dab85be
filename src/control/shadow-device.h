/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-device: how long a device would take for a request if other requests were inside than are.
 *
 * In shadow mode nothing is held, so an overloaded device has far more inside than a gate would let in, and each
 * request takes far longer. The device is observed as it is; asked for is the time beside the work of the
 * shadows. Work is in any unit, the same always.
 *
 * Pure: times are arguments, no memory of its own. The law is in shadow-device.c.
 */
#ifndef WEIR_CONTROL_SHADOW_DEVICE_H
#define WEIR_CONTROL_SHADOW_DEVICE_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define SHADOW_CLASSES 40  /* of requests that take equally long alone, chosen by the caller */
#define SHADOW_LEVELS  160 /* of work inside: 4 an octave */
#define SHADOW_LIGHT   32  /* requests of a class that are kept */
#define SHADOW_RECENT  32

struct shadow_level { /* requests that went in with so much work inside, their own too; added up */
	double n, time, inside; /* requests; ns; work inside */
	double passes; /* own work / work inside: 1 is one exchange of all that is inside */
};

struct shadow_class {
	struct shadow_light {
		double others; /* work inside when it went in, without its own */
		double ns;
	} light[SHADOW_LIGHT]; /* those with the fewest others */
	uint32_t n_light, next;
	double least; /* ns: the least that was seen; 0: none */
	double work;  /* of late requests */
	/* what follows from them */
	double alone;     /* ns: its time with nothing else inside */
	double low, high; /* ns: between which that is expected */
};

struct shadow_law {    /* near one level */
	double pace;   /* ns per work of a busy device */
	double ratio;  /* times seen over times by the law */
	double passes; /* on which that rests */
};

enum shadow_queues {
	SHADOW_DOUBT,
	SHADOW_ONE, /* one queue for the whole device */
	SHADOW_EACH /* one for each of its parts */
};

struct shadow_device { /* zero it */
	struct shadow_level level[SHADOW_LEVELS];
	struct shadow_class class_[SHADOW_CLASSES];
	/* Moving averages over requests that came back: work; its square. */
	double own, own2;
	double inside;      /* work inside when they went in */
	double ahead, vary; /* work finished meanwhile beyond that, and its variance */
	double passed
		[2]; /* the most work that one passed: among the last REORDER requests, and those before */
	uint64_t learned, renewed; /* requests; when the law was last fitted */
	/* the law, fitted now and then */
	enum shadow_queues queues;
	struct shadow_law law[SHADOW_LEVELS];
	float recent[SHADOW_RECENT]; /* times over what was expected of them, lately */
	double sum;                  /* of these */
	uint32_t at, drawn;          /* the next to be replaced; the next to be drawn */
};

struct shadow_sample {
	unsigned class_;
	double own;    /* its work */
	double inside; /* work when it went in, with its own */
	double work;   /* finished while it was inside, with its own */
	weir_time ns;  /* that it took */
};
/* A request is back. */
void shadow_device_learn(struct shadow_device *d, const struct shadow_sample *s);

struct shadow_time {
	double mean;      /* ns */
	double low, high; /* what it may be as well, for all that is known */
};
/* The time of a request of that class with `work` inside, `own` of it its own. false: nothing was learned yet. */
bool shadow_device_expect(const struct shadow_device *d, unsigned class_, double own, double work,
	struct shadow_time *ret);
/* One such time, spread around the mean as those that were seen; at least 1 µs. */
weir_time shadow_device_draw(struct shadow_device *d, double mean);

#endif
