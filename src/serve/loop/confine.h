/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * confine: a process that gives up what it does not need, once it has started.
 *
 * Afterwards the process has a list of system calls that its threads, those of now and those to
 * come, may make; every other one fails with EPERM. The list has files, sockets, rings, memory,
 * threads and clocks. It does not have programs to start (execve), rights to change (setuid,
 * capset), file systems to mount, other processes to look into (ptrace), kernel modules, BPF, keys
 * of the kernel, the clock to set or the machine to stop. An intruder that runs code in the process
 * is left with what the process has open.
 *
 * And the process leaves no core file, and no other process of its user may look into its memory (PR_SET_DUMPABLE), since that
 * has the keys of the policy. Root may. (MADV_DONTDUMP would hide only memory that is known to hold a secret, and libraries
 * copy keys.)
 */
#pragma once

#include <weir/err.h>

/* Confine this process for the rest of its life. -ENOTSUP: the kernel, or a sanitizer in this build,
 * does not let a filter be set. No core file is written, whatever is returned. */
int confine(struct weir_err *err);
