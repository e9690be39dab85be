/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live: a scenario on real gateways with real clients, in real time.
 *
 * Every device becomes a `weir serve` before a model of it, every host one before the device's, every
 * workload a client process: fio, or weir load for what fio cannot express. Hosts under PARDA tell each
 * other by datagrams. What is measured is read from the gateways' APIs and called what the simulator calls
 * it, so that the same claims are judged in the same way. Which process stands for what, and what
 * cannot be had live, is in live-plan.c; weir-experiment(1) is the manual.
 *
 *   live.c          the processes, and what happens when
 *   live-plan.c     which processes there are, from the scenario
 *   live-text.c     what is copied from the scenario's file into a policy
 *   live-control.c  what becomes of each kind of controller
 *   live-policy.c   the policies that the gateways are given
 *   live-client.c   the clients' command lines
 *   live-change.c   what changes while it runs
 *   live-look.c     what the gateways counted, as metrics
 *   live-cluster.c, live-cluster-plan.c   a cluster: servers and weir control
 *   live-say.c      what they say of their controllers, the same
 *   live-relay.c    reports that come late or not at all
 */
#ifndef WEIR_CLI_LIVE_LIVE_H
#define WEIR_CLI_LIVE_LIVE_H

#include "sim/experiment/experiment.h"

/* An experiment_runner. Takes as long as the scenario says. -EINVAL: something of the scenario cannot run
 * live, which is named; -ENOENT: a program is not installed; -ECANCELED: by a signal, or by
 * options->progress; -ECHILD: a process ended too soon, with its last lines. All processes have ended
 * and all files are gone when it returns. Not from two threads. */
experiment_runner live_run;

#endif
