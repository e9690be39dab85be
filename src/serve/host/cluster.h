/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: the gateway's side of a cluster: the links of each of its resources to the controllers.
 *
 * Each resource is a server of the cluster by itself, with a link to every controller that the policy names. Its messages go
 * to all of them, and it decides itself which of them it follows. Up to three servers may stand in for a controller
 * (control.c), and have links of every server, too. The links are the main thread's, a server is its resource's
 * (serve/resource/control.c): frames and messages change hands by posted tasks, and no thread waits.
 */
#pragma once

#include "serve/gateway/links.h"

extern const struct gateway_link link_to_cluster;
