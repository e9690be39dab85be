/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record: what a process leaves to the one that replaces it: a memfd with a text of bytes, and descriptors beside it.
 *
 * A record is a list of sections, each a name and its bytes; a section is a sequence of numbers, strings, bytes and descriptors,
 * read in the order in which they were written. The header has the format's version, the length and a checksum. Every number is
 * bounded when it is read: a record that is cut off, damaged, or of another format is refused as a whole.
 *
 * THE MARK  The word by which a record is taken, once: OFFERED, then TAKEN by the process that acts on it, or REVOKED by the one
 *           that wrote it and goes on. Both map the same memory, and the change is one atomic exchange. So at any moment, also
 *           after a crash of either, one process at most acts on what the record holds.
 * DESCRIPTORS  A section names a descriptor by its device and inode, which every socket and file has of its own (but not the two
 *           ends of a pipe); so the order in
 *           which they arrive, and others among them, do not matter.
 */
#pragma once

#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_VERSION 2

struct record_fd {
	int fd; /* -1: it was taken */
	uint64_t dev, ino;
};
struct record_fds { /* zero it */
	struct record_fd *all;
	size_t n, room, next; /* next: where the search begins */
};
int record_fds_add(struct record_fds *l, int fd); /* 0 or a negative errno */
void record_fds_close(struct record_fds *l);      /* and frees */
void record_fds_free(struct record_fds *l);

/* ---- writing. After a failure `error` is set, and nothing more is written. */

struct record_out {    /* zero it */
	uint8_t *data; /* the mapped memfd */
	size_t n, room;
	int memfd;             /* once data is set */
	int error;             /* 0 or a negative errno */
	struct record_fds fds; /* borrowed: of those written */
};
size_t record_begin(struct record_out *o, const char *section); /* returns what record_end wants */
void record_end(struct record_out *o, size_t begun);
void record_put(struct record_out *o, uint64_t value);
void record_put_real(struct record_out *o, double value);
void record_put_text(struct record_out *o, const char *text);
void record_put_bytes(struct record_out *o, const void *data, size_t n);
void record_put_fd(struct record_out *o, int fd);
uint8_t *record_room(
	struct record_out *o, size_t n); /* as record_put_bytes, to be filled; or NULL */
void record_out_free(struct record_out *o);
/* Complete the record. Return its memfd, which is o's, or a negative errno. */
int record_memfd(struct record_out *o);

/* ---- reading. A value that is not there sets `bad`, and is 0, "" or -1. */

struct record_in {
	const uint8_t *at, *end;
	bool bad;
	struct record_fds *fds; /* those that came with it */
};
uint64_t record_get(struct record_in *in);
/* The same for a number that must not be above `most`. */
uint64_t record_get_most(struct record_in *in, uint64_t most);
double record_get_real(struct record_in *in);
const char *record_get_text(struct record_in *in); /* in the record */
const uint8_t *record_get_bytes(struct record_in *in, size_t *ret_n);
/* Return a descriptor, owned by the caller; -1: it is not there. */
int record_get_fd(struct record_in *in);
/* Get the next section; false: there is none. */
bool record_section(struct record_in *in, const char **ret_name, struct record_in *ret);

/* ---- the whole */

enum record_mark { RECORD_OFFERED, RECORD_TAKEN, RECORD_REVOKED };
struct record_map { /* a mapped record; private */
	uint8_t *data;
	size_t n;
};
/* Map a memfd, which stays the caller's, and check it: 0; -EBADMSG: it is none, or damaged; -EPROTONOSUPPORT: of another
 * format; -ESTALE: it was taken or revoked; or another negative errno. With a message. */
int record_open(int fd, struct record_map *ret_map, struct record_in *ret_in, struct weir_err *err);
/* Map one that this process has made, to change its mark. */
int record_map(int fd, struct record_map *ret_map);
/* Change the mark of a record that is OFFERED. False: it is not. */
bool record_mark(struct record_map *m, enum record_mark mark);
void record_unmap(struct record_map *m);
