/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address: parse "unix:PATH" and "tcp:HOST:PORT" without touching the machine. Used by the code
 * that opens such addresses and by the code that only checks them.
 *
 * "unix:/run/x.sock", "unix:@abstract", "tcp:host:port", "tcp:[::1]:10809"; "tcp::10809" is every
 * address of this machine; port 0 is any free port. "unix:/run/x.sock?mode=0660&group=kvm" is for
 * listeners: the mode and group of the socket file. Where clients connect, the name of the protocol
 * and '+' may precede the address.
 */
#pragma once

#include <weir/err.h>
#include <stdbool.h>

#define ADDRESS_PATH 108 /* bytes with the NUL: the size of sun_path, unix(7) */

struct address {
	bool is_unix;
	char path[ADDRESS_PATH]; /* of unix */
	int mode;                /* of the socket file; -1: not stated */
	char group[33];          /* of the socket file, a name or a number; "": not stated */
	char host[256];          /* without brackets; "": every address of this machine */
	char port[16];           /* decimal, 0 to 65535 */
};

/* Return 0, or -EINVAL and an error message. */
int address_parse(const char *text, struct address *ret, struct weir_err *err);
/* Return the address behind the name of a protocol, as in "nbd+unix:/run/x.sock"; without one: text. */
const char *address_plain(const char *text);
/* Return true if only this machine can reach it: a unix socket, or an address of loopback. */
bool address_is_local(const struct address *a);
/* Return a mode written in octal digits, 0 to 0777, or -EINVAL. */
int address_mode(const char *text);
