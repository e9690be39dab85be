/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass: the socket between a process and the one that replaces it: FOLDER/replace.sock, of SOCK_SEQPACKET, for processes of the
 * same user and root. A message is a word, a text, and descriptors, in any number.
 */
#pragma once

#include "serve/handover/record.h"

struct pass_message {
	char word[32], text[480];
	int memfd;             /* of a record; -1: none */
	struct record_fds fds; /* beside it; owned */
};

/* Replaces the file of a process that has ended. 0 or a negative errno. */
int pass_listen(const char *folder, int *ret_fd);
/* Accept a process, whose user is checked. Its socket, or a negative errno. */
int pass_accept(int listening);
/* 0; -ENOENT: no process listens there; or another negative errno. */
int pass_connect(const char *folder, int *ret_fd);
/* Send a message: text may be NULL; memfd -1 or fds NULL: none. Waits for room, 2 s at most. 0 or a negative errno. */
int pass_send(
	int sock, const char *word, const char *text, int memfd, const struct record_fds *fds);
/* Receive one, and wait up to `ms` for each part of it; pass_message_free frees it. 0; -EPIPE: the other has closed its end, or ended;
 * -EAGAIN: there is none; -EBADMSG; or another negative errno. */
int pass_recv(int sock, int ms, struct pass_message *ret);
void pass_message_free(struct pass_message *m);
