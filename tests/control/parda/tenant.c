/* SPDX-License-Identifier: BSD-3-Clause */
/* tenant: slots of a tenant's demand and of its guarantee, by requests and by bytes. */
#include "control/parda/tenant.h"
#include <weir/clock.h>
#include "test.h"

#define SLOT 16384.0

static void test_by_requests(void)
{
	struct parda_tenant t = {.shares = 3,
		.ios = 200,
		.bytes = 200 * 65536.0,
		.wanting_ns = 32.0 * 2 * WEIR_SEC,
		.min_ios = 150};
	struct parda_vm vm = parda_tenant_vm(&t, 2 * WEIR_SEC, 0);

	CHECK_NEAR(vm.shares, 3, 1e-12);
	CHECK_NEAR(vm.outstanding, 32, 1e-12);
	CHECK_NEAR(vm.min, 150, 1e-12);
}

/* Each request takes four slots, in the demand and in the guarantee. */
static void test_by_bytes(void)
{
	struct parda_tenant t = {.shares = 1,
		.ios = 200,
		.bytes = 200 * 65536.0,
		.wanting_ns = 32.0 * WEIR_SEC,
		.min_ios = 150};
	struct parda_vm vm = parda_tenant_vm(&t, WEIR_SEC, SLOT);

	CHECK_NEAR(vm.outstanding, 128, 1e-12);
	CHECK_NEAR(vm.min, 600, 1e-12);
}

/* A min in bytes is that many requests of the tenant's mean size; of two mins the larger counts. */
static void test_a_min_in_bytes(void)
{
	struct parda_tenant t = {
		.shares = 1, .ios = 100, .bytes = 100 * 65536.0, .min_bytes = 50 * 65536.0};

	CHECK_NEAR(parda_tenant_vm(&t, WEIR_SEC, 0).min, 50, 1e-12);
	CHECK_NEAR(parda_tenant_vm(&t, WEIR_SEC, SLOT).min, 200, 1e-12);
	t.min_ios = 60;
	CHECK_NEAR(parda_tenant_vm(&t, WEIR_SEC, 0).min, 60, 1e-12);
}

static void test_sizes(void)
{
	CHECK_NEAR(parda_tenant_size(0, 0, SLOT), 1, 0);         /* the size is unknown */
	CHECK_NEAR(parda_tenant_size(10, 1e9, 0), 1, 0);         /* a slot is a request */
	CHECK_NEAR(parda_tenant_size(10, 0, SLOT), 1.0 / 64, 0); /* flushes */
	CHECK_NEAR(parda_tenant_size(1, 1e12, SLOT), 64, 0);
	CHECK_NEAR(parda_tenant_size(2, 8192, SLOT), 0.25, 1e-12);
}

/* Nothing completed in the span, or counters went backwards: the results are finite. */
static void test_nothing(void)
{
	struct parda_tenant t = {.shares = 1, .wanting_ns = -5, .min_bytes = 1e6};
	struct parda_vm vm = parda_tenant_vm(&t, WEIR_SEC, SLOT);

	CHECK(vm.outstanding == 0 && vm.min == 0);
}

int main(void)
{
	RUN(test_by_requests);
	RUN(test_by_bytes);
	RUN(test_a_min_in_bytes);
	RUN(test_sizes);
	RUN(test_nothing);
	return 0;
}
