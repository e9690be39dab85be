/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept: the form of connections in a record (serve/handover/record.h), for keep.c and take.c.
 *
 * A resource's part has a section "client" for each connection, in the order of their numbers, and then one section "queue" with
 * the requests that wait.
 *
 *   client  its protocol, state, socket, names and export; the protocol's own part; the request that is being received, with the
 *           received bytes that are not processed; requests of several pieces ("heads"); the piece that is being received; bytes of
 *           replies that are not sent yet
 *   queue   for each request: its connection and head by their numbers, and what it asks for, with the data of a write
 *
 * A head that is a read answered as a whole has its pieces in it, those that are done with their data; the others are in the queue,
 * too, and are found by their offset.
 */
#pragma once

enum { KEPT_STOPPING = 1, KEPT_ENDED = 2, KEPT_GONE = 4, KEPT_HEARD = 8, KEPT_READ_ONLY = 16 };
enum { KEPT_PARTS = 1, KEPT_WHOLE = 2, KEPT_ARRIVES = 4 }; /* of a head; ARRIVES: it is c->head */
#define KEPT_FLAGS 31
