/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-key: the cluster's key and the seal that it makes, for all that hosts of a cluster tell each other. */
#ifndef WEIR_SERVE_HOST_PEER_KEY_H
#define WEIR_SERVE_HOST_PEER_KEY_H

#include <weir/err.h>
#include "wire/peer.h"
#include <stdbool.h>

struct peer_key {
	uint8_t bytes[32];
};
/* From a file of 32 to 4096 bytes that not everybody may read; NULL: a key that everybody has, so that
 * the seal is a mere checksum. The cluster's name is a part of it. */
int peer_key_read(
	const char *path, const char *cluster, struct peer_key *ret_key, struct weir_err *err);
void peer_key_seal(const struct peer_key *k, uint8_t *out, size_t n); /* 32 bytes, at out + n */
bool peer_key_sealed(const struct peer_key *k, const uint8_t *in, size_t n); /* are they right? */
void peer_key_random(void *out, size_t n);
void peer_key_forget(struct peer_key *k);

#endif
