/* SPDX-License-Identifier: BSD-3-Clause */
/* idle: VMs lose shares for being idle, and how fast. */
#include "control/parda/idle.h"
#include "test.h"
#include <math.h>

#define PERIOD (2 * WEIR_SEC)

static double steps(struct parda_idle_table *t, const struct parda_vm *vms, size_t n, int periods)
{
	double shares = 0;

	for (int i = 0; i < periods; i++)
		shares = parda_idle_shares(t, vms, n, 32, PERIOD);
	return shares;
}

static void test_one_vm_keeps_its_shares(void)
{
	struct parda_idle_table t = {0};
	struct parda_vm vm = {.shares = 2, .outstanding = 0};

	CHECK_NEAR(steps(&t, &vm, 1, 1000), 2, 1e-12);
	vm.outstanding = 500;
	CHECK_NEAR(steps(&t, &vm, 1, 1), 2, 1e-12);
	parda_idle_clear(&t);
}

static void test_all_idle_keep_their_shares(void)
{
	struct parda_idle_table t = {0};
	struct parda_vm vms[] = {{.shares = 2, .outstanding = 0.1, .number = 0},
		{.shares = 1, .outstanding = 0, .number = 1},
		{.shares = 5, .outstanding = 3, .number = 2}};

	CHECK_NEAR(steps(&t, vms, 3, 1000), 8, 1e-12);
	parda_idle_clear(&t);
}

/* The paper's case: a VM stays idle beside one that is backlogged. */
static void test_idle_beside_backlogged(void)
{
	struct parda_idle_table t = {0};
	struct parda_vm vms[] = {{.shares = 20, .outstanding = 64, .number = 0},
		{.shares = 10, .outstanding = 0, .number = 1}};

	CHECK_NEAR(steps(&t, vms, 2, 1), 20 + 10 * exp(-2.0 / 60), 1e-9);
	CHECK_NEAR(steps(&t, vms, 2, 29), 20 + 10 * exp(-1), 1e-9); /* after a minute */
	CHECK_NEAR(steps(&t, vms, 2, 300), 20, 0.01);
	vms[1].outstanding = 64; /* when it returns: at once */
	CHECK_NEAR(steps(&t, vms, 2, 1), 30, 1e-9);
	vms[1].outstanding = 0; /* a single burst is soon forgotten */
	CHECK_NEAR(steps(&t, vms, 2, 1), 20 + 10 * (1 - exp(-2.0 / 60)) * exp(-2.0 / 60), 1e-2);
	parda_idle_clear(&t);
}

/* While no VM is backlogged, none gets more shares; the averages are still kept. */
static void test_only_beside_backlogged(void)
{
	struct parda_idle_table t = {0};
	struct parda_vm vms[] = {{.shares = 20, .outstanding = 64, .number = 0},
		{.shares = 10, .outstanding = 0, .number = 1}};

	steps(&t, vms, 2, 300);
	vms[0].outstanding = 0;
	CHECK_NEAR(steps(&t, vms, 2, 1), 30, 1e-9);
	/* The only backlogged VM has its own shares, for any earlier average. */
	steps(&t, vms, 2, 300);
	vms[1].outstanding = 64;
	CHECK_NEAR(steps(&t, vms, 2, 1), 10, 0.01);
	parda_idle_clear(&t);
}

/* VMs are identified by number, in any order and among any others. */
static void test_by_number(void)
{
	struct parda_idle_table t = {0};
	struct parda_vm vms[] = {{.shares = 1, .outstanding = 64, .number = 7},
		{.shares = 1, .outstanding = 0, .number = 3}};
	struct parda_vm turned[] = {vms[1], vms[0]};

	steps(&t, vms, 2, 300);
	CHECK_NEAR(steps(&t, turned, 2, 1), 1, 0.01);
	parda_idle_clear(&t);
	CHECK_NEAR(steps(&t, turned, 2, 1), 1 + exp(-2.0 / 60), 1e-9);
	parda_idle_clear(&t);
	CHECK_NEAR(parda_idle_shares(&t, NULL, 0, 32, PERIOD), 0, 0);
}

int main(void)
{
	RUN(test_one_vm_keeps_its_shares);
	RUN(test_all_idle_keep_their_shares);
	RUN(test_idle_beside_backlogged);
	RUN(test_only_beside_backlogged);
	RUN(test_by_number);
	return 0;
}
