/* SPDX-License-Identifier: BSD-3-Clause */
/* watch: devices, interfaces and cgroups that come, go and change while the shaper runs. */
#include "serve/shape/impl.h"
#include "serve/loop/log.h"

/* Shape a device again that came back, or whose packets have another size. */
int shaper_take_again(struct shaper *s, struct device *d, struct weir_err *err)
{
	int r = device_look(d, &s->tc, err);

	return r ? r
		 : device_take(d, &s->tc, s->now.tree, s->now.program, &s->state, &s->options.guard,
			   err);
}

/* A device may be taken away and come back, and another program may take its root: that one is left alone. */
static void look_at_device(struct shaper *s, struct device *d)
{
	struct tc_link l;
	struct weir_err err;
	int r = tc_link(&s->tc, d->name, &l, &err);
	bool held = r == 0 && device_held(&s->tc, &l), same = held && l.index == d->link.index;

	if (same && l.mtu == d->link.mtu) {
		d->lost = false;
		return;
	}
	if (r == 0)
		r = shaper_take_again(s, d, &err);
	shaper_adopt_leaves(s);
	if (r == 0)
		log_event(LOG_LEVEL_WARNING, "device-again", "device", d->name, "why",
			same ? "the size of its packets was changed"
			     : "its qdisc was gone; it is shaped again",
			NULL);
	else if (!d->lost)
		log_event(LOG_LEVEL_ERROR, "device-lost", "device", d->name, "why", err.text, NULL);
	d->lost = r != 0;
}

void shaper_retire(struct shaper *s)
{
	struct weir_err err;

	for (size_t i = 0; i < s->n_devices; i++)
		if (s->devices[i].retiring && !s->devices[i].lost &&
			device_retire(&s->devices[i], &s->tc, &err) < 0)
			log_event(LOG_LEVEL_ERROR, "classes", "device", s->devices[i].name, "why",
				err.text, NULL);
}

void shaper_look_devices(struct shaper *s)
{
	for (size_t i = 0; i < s->n_devices; i++)
		look_at_device(s, &s->devices[i]);
}

void shaper_scan(struct shaper *s)
{
	struct shaper_version *v = &s->now;
	struct weir_err err;

	if (v->cgroups && cgroups_scan(v->cgroups, &err) < 0)
		log_event(LOG_LEVEL_ERROR, "cgroups", "why", err.text, NULL);
	if ((v->rules->interfaces || !v->scanned) &&
		interfaces_scan(v->interfaces, &s->tc, &err) < 0)
		log_event(LOG_LEVEL_ERROR, "interfaces", "why", err.text, NULL);
	v->scanned = true;
}
