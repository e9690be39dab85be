/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address: "unix:PATH" and "tcp:HOST:PORT" taken apart, without a look at the machine. For who opens such
 * addresses, and for who only checks what somebody wrote.
 *
 * "unix:/run/x.sock", "unix:@abstract", "tcp:host:port", "tcp:[::1]:10809"; "tcp::10809" is every address
 * of this machine; port 0: any that is free. "unix:/run/x.sock?mode=0660&group=kvm" is for who listens: what
 * the socket's file is to have.
 */
#ifndef WEIR_WIRE_ADDRESS_H
#define WEIR_WIRE_ADDRESS_H

#include "base/err.h"
#include <stdbool.h>

#define ADDRESS_PATH 108 /* bytes with the NUL: what a socket's address holds, unix(7) */

struct address {
	bool is_unix;
	char path[ADDRESS_PATH]; /* of unix */
	int mode;                /* of its file; -1: not stated */
	char group[33];          /* of its file: a name or a number; "": not stated */
	char host[256];          /* without brackets; "": every address of this machine */
	char port[16];           /* decimal, 0 to 65535 */
};

/* 0, or -EINVAL and what is wrong with it. */
int address_parse(const char *text, struct address *ret, struct weir_err *err);
/* A mode, in octal digits: 0 to 0777, or -EINVAL. */
int address_mode(const char *text);

#endif
