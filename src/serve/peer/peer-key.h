/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-key: the cluster's key, and the seal of all messages between hosts of a cluster. */
#pragma once

#include <weir/err.h>
#include "wire/peer.h"
#include <stdbool.h>

struct peer_key {
	uint8_t bytes[32];
};
/* Read a key from a file of 32 to 4096 bytes that is not readable by all users; NULL: a well-known
 * key, so that the seal is only a checksum. The cluster's name is a part of it. */
int peer_key_read(
	const char *path, const char *cluster, struct peer_key *ret_key, struct weir_err *err);
void peer_key_seal(const struct peer_key *k, uint8_t *out, size_t n); /* 32 bytes, at out + n */
/* returns true if the seal is right */
bool peer_key_sealed(const struct peer_key *k, const uint8_t *in, size_t n);
void peer_key_forget(struct peer_key *k);
