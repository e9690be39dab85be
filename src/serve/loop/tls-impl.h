/* SPDX-License-Identifier: BSD-3-Clause */
/* tls-impl: shared by tls.c (sessions) and tls-credentials.c; internal to them. */
#pragma once

#include "serve/loop/tls.h"
#include <gnutls/gnutls.h>
#include <stdatomic.h>

struct tls {
	atomic_uint refs;
	bool server;
	bool checks; /* verifies the peer's certificate */
	gnutls_certificate_credentials_t x509;
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
	gnutls_priority_t priority;
};
