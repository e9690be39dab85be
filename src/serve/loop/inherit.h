/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inherit: descriptors that a process passes to the one that replaces it (serve/handover).
 *
 * A socket that listens is found by its address, a file by its device and inode. Code that opens them notes them here, and a
 * process that replaces another one finds what it received here. Whatever is noted may be closed at any time: a number that
 * means another file by now is passed over.
 *
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Note an own descriptor. address: at which the socket listens, as the policy has it; NULL: a file that is locked. Without
 * memory it is not noted. */
void inherit_note(const char *address, int fd);
/* Call fn for each that is noted and still open; it must not note others. */
typedef void inherit_fn(void *arg, const char *address, int fd);
void inherit_each(inherit_fn *fn, void *arg);

/* Keep a descriptor that was received, owned from now on. */
void inherit_put(const char *address, int fd);
/* Return the received socket of an address, which is the caller's from now on; -1: there is none. */
int inherit_take(const char *address);
/* Return true if the open file was received: the process that is being replaced has it locked. */
bool inherit_has(int fd);
/* The files of sockets stay where they are: another process listens there, or will. */
void inherit_keep_names(bool keep);
bool inherit_keeps_names(void);
/* Close what was received and not taken. */
void inherit_end(void);
