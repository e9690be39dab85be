/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reports: the messages between the controllers of hosts (control/controller.h, has_peers), on the gateway's main thread.
 *
 * A controller publishes a report once a period, on its resource's thread. When all resources have, the peers get one
 * message with the reports of all (serve/peer/peer.h); a resource that is late is left out until the next message. Messages
 * of peers go to the resources that they are about. Resources of this host with one name among the hosts are each other's
 * peers, too. Threads hand over by posted tasks; none waits.
 */
#pragma once

#include "serve/gateway/links.h"

extern const struct gateway_link link_to_peers;
