/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live: run a scenario on real gateways with real clients, in real time.
 *
 * Every device becomes a `weir serve` in front of a model of it, every host a `weir serve` in front
 * of the device's, every workload a client process: fio, weir load, or weir replay of a trace of an open one. Hosts under PARDA exchange datagrams. Measurements are read from the gateways' APIs and
 * get the simulator's names, so that the same claims are judged in the same way. live-plan.c maps
 * the scenario to processes and refuses parts that cannot run live; weir-experiment(1) is the
 * manual.
 *
 *   live.c          the processes, and the events of a run
 *   live-plan.c     the list of processes, from the scenario
 *   live-text.c     copies parts of the scenario's file into a policy
 *   live-control.c  peers of controllers that hear other hosts; the controllers' facts, as metrics
 *   live-policy.c   the policies of the gateways
 *   live-lab.c      traces of open workloads, plans and profiles, made by the simulator
 *   live-client.c   the clients' command lines
 *   live-change.c   changes during the run
 *   live-look.c     the gateways' counters, as metrics
 *   live-cluster.c, live-cluster-plan.c   a cluster: servers and weir control
 *   live-network.c, live-network-rack.c, live-network-load.c, live-network-look.c   a network: links, shapers and flows
 *   live-relay.c    delays and drops reports
 */
#pragma once

#include "sim/experiment/experiment.h"

/*
 * An experiment_runner. It takes as long as the scenario's duration. -EINVAL: a part of the
 * scenario, which the message names, cannot run live; -ENOENT: a program is not installed;
 * -ECANCELED: by a signal, or by options->progress; -ECHILD: a process ended too soon, with its
 * last lines. All processes have ended and all files are removed when it returns. Not from two
 * threads.
 */
experiment_runner live_run;
