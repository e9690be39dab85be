/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd-json: requests and answers of etcd's JSON gateway, /v3/…: bytes are in base64, and 64-bit integers are strings.
 *
 * No system calls. Answers come from the network: every member is checked.
 */
#pragma once

#include "serve/store/store-impl.h"
#include <jansson.h>

/* Make the body of a request; *ret_path: its path below /v3, a constant. space: stands before each key. */
int etcd_json_request(const char *space, const struct store_request *q, const char **ret_path,
	char **ret_body, size_t *ret_length);
/* Watch a prefix. */
int etcd_json_watch(
	const char *space, const char *prefix, uint64_t from, char **ret_body, size_t *ret_length);
int etcd_json_login(const char *user, const char *password, char **ret_body, size_t *ret_length);

struct etcd_answer { /* zero it */
	uint64_t cluster;
	struct store_result result;
	struct store_key *keys; /* result.keys; malloc'ed, with names and values */
	bool *removed;
	size_t n, room;
	bool cancelled;     /* a watch has ended */
	uint64_t compacted; /* because revisions up to this one are forgotten */
	char reason[200];   /* or therefore; "": not stated */
};
/* Read the answer to a request, or one of a watch. 0, -ENOMEM, or -EPROTO. */
int etcd_json_answer(
	const char *space, enum store_kind kind, const json_t *root, struct etcd_answer *ret);
int etcd_json_watched(const char *space, const json_t *root, struct etcd_answer *ret);
void etcd_answer_free(struct etcd_answer *a);

struct etcd_fault { /* an answer that is an error */
	int code;   /* of gRPC; 0: not stated */
	char text[200];
};
void etcd_json_fault(const json_t *root, struct etcd_fault *ret); /* root may be NULL */
