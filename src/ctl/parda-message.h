/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda-message: a host's report as it stands in a message between hosts (wire/peer.h), and back.
 *
 * Who a report is of, and which of its reports it is, is the message's to say and not the report's; so
 * is how the resource is called.
 */
#ifndef WEIR_CTL_PARDA_MESSAGE_H
#define WEIR_CTL_PARDA_MESSAGE_H

#include "ctl/parda.h"
#include "wire/peer.h"

/* resource: peer_hash of the hosts' name for it. period: ns between two reports. */
struct peer_report parda_message_write(
	const struct parda_report *r, uint64_t resource, weir_time period);
/* r is one of m's. The host's id is the hash of its name. */
struct parda_report parda_message_read(const struct peer_message *m, const struct peer_report *r);

#endif
