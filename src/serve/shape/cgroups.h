/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgroups: the control groups (version 2) of this machine that rules name, as they come and go.
 *
 * A cgroup's id is the number of its folder. A packet belongs to the deepest cgroup of its socket that rules name; a rule
 * names a cgroup and all inside of it.
 */
#pragma once

#include "serve/shape/program.h"

struct cgroups;
/* rules and program are borrowed. -ENOENT with a message: no file system of cgroups is mounted. */
int cgroups_new(struct rules *r, struct program *p, struct cgroups **ret, struct weir_err *err);
void cgroups_free(struct cgroups *c);
/* Look at all cgroups: give new ones to the program, take those that are gone out of it. Return the number of cgroups that rules
 * name, or the first error. */
int cgroups_scan(struct cgroups *c, struct weir_err *err);
/* Look at all cgroups once, only to find which rules have some (rules.seen). */
int cgroups_look(struct rules *r);
/* The folder in which cgroups are mounted; -ENOENT. */
int cgroups_root(char *ret, size_t len);
