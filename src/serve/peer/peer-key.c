/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-key: the cluster's key, with which its members seal their messages.
 *
 * The seal is BLAKE2b with a key (RFC 7693, libsodium's crypto_generichash): for a message of
 * 256 bytes it takes a third of the time of HMAC-SHA-512, which hashes four blocks more. The
 * content of the file, in any form, is hashed into the key together with the cluster's name: so one
 * file may serve two clusters, and a message of one is not valid in the other.
 */
#include "serve/peer/peer-impl.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_LEAST 32   /* bytes, as many random ones; twice as many in hexadecimal */
#define KEY_MOST  4096 /* bytes: a key, and not some large file by mistake */

_Static_assert(PEER_SEAL == crypto_generichash_BYTES, "a seal is what crypto_generichash makes");
_Static_assert(sizeof(struct peer_key) == crypto_generichash_KEYBYTES, "and this is its key");

static ssize_t read_file(const char *path, uint8_t *out, size_t room, struct weir_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0, part = 1;

	if (fd < 0 || fstat(fd, &st) < 0) {
		n = weir_err_set(err, -errno, "key %s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		n = weir_err_set(err, -EINVAL, "key %s: not a file", path);
	} else if (st.st_mode & (S_IROTH | S_IWOTH)) {
		n = weir_err_set(err, -EPERM,
			"key %s: readable or writable by all users; use chmod 600", path);
	} else {
		for (; part > 0 && (size_t)n < room; n += part) {
			part = read(fd, out + n, room - (size_t)n);
			if (part < 0)
				n = weir_err_set(err, -errno, "key %s: %s", path, strerror(errno));
			if (part <= 0)
				break;
		}
	}
	if (fd >= 0)
		close(fd);
	return n;
}

static int check_length(const char *path, ssize_t n, struct weir_err *err)
{
	if (n < KEY_LEAST)
		return weir_err_set(err, -EINVAL,
			"key %s: has %zd bytes; a key has %d random ones at least "
			"(head -c 32 /dev/urandom)",
			path, n, KEY_LEAST);
	if (n > KEY_MOST)
		return weir_err_set(err, -EINVAL, "key %s: has over %d bytes, too many for a key",
			path, KEY_MOST);
	return 0;
}

int peer_key_read(
	const char *path, const char *cluster, struct peer_key *ret_key, struct weir_err *err)
{
	/* domain separation: this key has no other use */
	static const char domain[] = "weir peers 2";
	crypto_generichash_state h;
	uint8_t text[KEY_MOST + 1];
	ssize_t n = 0;

	if (sodium_init() < 0)
		return weir_err_set(err, -EIO, "libsodium does not start");
	if (path) {
		n = read_file(path, text, sizeof(text), err);
		if (n < 0)
			return (int)n;
		if (check_length(path, n, err) < 0)
			return -EINVAL;
	}
	crypto_generichash_init(&h, NULL, 0, sizeof(ret_key->bytes));
	crypto_generichash_update(&h, (const uint8_t *)domain, sizeof(domain));
	crypto_generichash_update(&h, (const uint8_t *)cluster, strlen(cluster) + 1);
	crypto_generichash_update(&h, text, (size_t)n);
	crypto_generichash_final(&h, ret_key->bytes, sizeof(ret_key->bytes));
	sodium_memzero(text, sizeof(text));
	sodium_memzero(&h, sizeof(h));
	return 0;
}

void peer_key_seal(const struct peer_key *k, uint8_t *out, size_t n)
{
	crypto_generichash(out + n, PEER_SEAL, out, n, k->bytes, sizeof(k->bytes));
}

bool peer_key_sealed(const struct peer_key *k, const uint8_t *in, size_t n)
{
	uint8_t seal[PEER_SEAL];

	crypto_generichash(seal, sizeof(seal), in, n, k->bytes, sizeof(k->bytes));
	return sodium_memcmp(seal, in + n, sizeof(seal)) == 0;
}

void peer_key_forget(struct peer_key *k)
{
	sodium_memzero(k, sizeof(*k));
}
