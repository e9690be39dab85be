/* SPDX-License-Identifier: BSD-3-Clause */
/* receive: the rates told to senders fill a service's capacity, and services below their shares limit no sender. */
#include "serve/shape/receive.h"
#include "policy-parse.h"

#define NETWORK "network: {devices: [{name: v0, rate: 100 Mbit/s}]}\n"
static const double mbit = 1e6 / 8;

struct machine {
	struct weir_policy *p;
	struct tree *t;
	struct receive *r;
	struct shape_count total[8];
	weir_time now;
};

static struct machine make(const char *tenants)
{
	struct machine m = {.now = WEIR_SEC};
	char text[1000];
	struct weir_err err;

	snprintf(text, sizeof(text), NETWORK "tenants:\n%s", tenants);
	m.p = parse(text);
	CHECK_INT(tree_new(m.p, &m.t, &err), 0);
	CHECK_INT(receive_new(m.p, m.t, 100 * mbit, 0, m.now, &m.r), 0);
	return m;
}

static void end(struct machine *m)
{
	receive_free(m->r);
	tree_free(m->t);
	weir_policy_free(m->p);
}

/* One period: each service has so many senders at the link's rate that keep to what they are told; no more than the link comes. */
static void period(struct machine *m, const double *senders, const double *each)
{
	double sum = 0, got[8] = {0};

	for (size_t i = 0; i < m->t->n; i++) {
		got[i] = senders[i] * fmin(each[i], receive_told(m->r, i));
		sum += got[i];
	}
	m->now += m->r->period;
	for (size_t i = 0; i < m->t->n; i++) {
		double part = fmin(1, 100 * mbit / sum);

		m->total[i].bytes += (uint64_t)(got[i] * part * (double)m->r->period / 1e9);
		m->total[i].packets = m->total[i].bytes / 1500;
		if (m->t->nodes[i].leaf)
			receive_count(m->r, i, &m->total[i]);
	}
	receive_step(m->r, m->t, m->now);
}

/* C·T is 40 packets of 90 Mbit/s; four senders settle at a quarter each in 30 periods. */
static void fan_in(void)
{
	struct machine m = make("  - {name: t, net: {in: {max: 80 Mbit/s}}, match: {port: 1}}\n");
	double senders[2] = {0, 4}, each[2] = {0, 100 * mbit};

	CHECK_NEAR((double)m.r->period, 40 * 1500 * 8e9 / 90e6, 1e-6);
	CHECK(receive_told(m.r, 1) == INFINITY);
	for (int i = 0; i < 30; i++)
		period(&m, senders, each);
	CHECK_NEAR(receive_told(m.r, 1), 20 * mbit, 0.001);
	senders[1] = 1; /* three leave */
	for (int i = 0; i < 30; i++)
		period(&m, senders, each);
	CHECK_NEAR(fmin(receive_told(m.r, 1), 100 * mbit), 80 * mbit, 0.001);
	end(&m);
}

/* 90 Mbit/s: a has its min of 40 and half of the rest beside b; b below its share is not limited, nor is a alone. */
static void two_services(void)
{
	struct machine m = make("  - {name: a, net: {in: {min: 40 Mbit/s}}, match: {port: 1}}\n"
				"  - {name: b, net: {}, match: {port: 2}}\n");
	double senders[3] = {0, 2, 2}, each[3] = {0, 100 * mbit, 100 * mbit};

	for (int i = 0; i < 2000; i++)
		period(&m, senders, each);
	CHECK_NEAR(receive_capacity(m.r, 1, m.now), 65 * mbit, 0.02);
	CHECK_NEAR(2 * receive_told(m.r, 2), 25 * mbit, 0.03);
	each[2] = 5 * mbit;
	for (int i = 0; i < 2000; i++)
		period(&m, senders, each);
	CHECK(receive_told(m.r, 2) == INFINITY);
	CHECK_NEAR(2 * receive_told(m.r, 1), 80 * mbit, 0.03);
	senders[1] = senders[2] = 0;
	for (int i = 0; i < 100; i++)
		period(&m, senders, each);
	CHECK(receive_told(m.r, 1) == INFINITY);
	end(&m);
}

/* Users 1 to 2 of a service with at most 60, beside another one: 20, 40, 30; one alone has all 60. */
static void nested(void)
{
	struct machine m =
		make("  - name: a\n    net: {in: {max: 60 Mbit/s, weight: 4}}\n    children:\n"
		     "      - {name: x, net: {in: {weight: 1}}, match: {port: 1}}\n"
		     "      - {name: y, net: {in: {weight: 2}}, match: {port: 2}}\n"
		     "  - {name: b, net: {}, match: {port: 3}}\n");
	double senders[5] = {0, 0, 1, 0, 0},
	       each[5] = {100 * mbit, 100 * mbit, 100 * mbit, 100 * mbit, 100 * mbit};

	for (int i = 0; i < 1000; i++)
		period(&m, senders, each);
	CHECK_NEAR(receive_told(m.r, 2), 60 * mbit, 0.02);
	senders[3] = senders[4] = 1;
	for (int i = 0; i < 2000; i++)
		period(&m, senders, each);
	CHECK_NEAR(receive_told(m.r, 2), 20 * mbit, 0.02);
	CHECK_NEAR(receive_told(m.r, 3), 40 * mbit, 0.02);
	CHECK_NEAR(receive_told(m.r, 4), 30 * mbit, 0.02);
	end(&m);
}

/* A broker's cap holds until its time, and marks halve what is told. */
static void caps_and_marks(void)
{
	struct machine m = make("  - {name: t, net: {}, match: {port: 1}}\n");
	double senders[2] = {0, 2}, each[2] = {0, 100 * mbit}, told;

	m.r->services[1].cap = (struct parley_cap){30 * mbit, INFINITY, m.now + 50 * m.r->period};
	for (int i = 0; i < 40; i++)
		period(&m, senders, each);
	CHECK_NEAR(2 * receive_told(m.r, 1), 30 * mbit, 0.01);
	told = receive_told(m.r, 1);
	m.total[1].marked += 1000000; /* all packets of the next period and more */
	m.total[1].packets += 1000000;
	receive_count(m.r, 1, &m.total[1]);
	m.now += m.r->period * 4;
	receive_step(m.r, m.t, m.now);
	CHECK(receive_told(m.r, 1) < told * 1.01);
	for (int i = 0; i < 100; i++)
		period(&m, senders, each);
	CHECK_NEAR(2 * receive_told(m.r, 1), 90 * mbit, 0.01);
	end(&m);
}

/* A service's counter may fall by a packet that belongs to another one. */
static void moved_packets(void)
{
	struct machine m = make("  - {name: t, net: {}, match: {port: 1}}\n");
	struct shape_count c = {.bytes = 3000, .packets = 2};

	receive_count(m.r, 1, &c);
	c = (struct shape_count){.bytes = 1500, .packets = 1};
	receive_count(m.r, 1, &c);
	CHECK_INT(m.r->services[1].meter.bytes, 3000);
	c = (struct shape_count){.bytes = 4500, .packets = 3};
	receive_count(m.r, 1, &c);
	CHECK_INT(m.r->services[1].meter.bytes, 6000);
	end(&m);
}

int main(void)
{
	RUN(fan_in);
	RUN(two_services);
	RUN(nested);
	RUN(caps_and_marks);
	RUN(moved_packets);
	return 0;
}
