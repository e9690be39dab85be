/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-uri: parse the URI of an NBD export. For all NBD clients. */
#pragma once

#include <weir/err.h>
#include "wire/nbd.h"

struct nbd_uri {
	char address[512]; /* for stream_connect */
	char host[256];    /* name that a certificate must have; "": a unix socket */
	char name[NBD_NAME_MAX + 1];
	bool tls;
};
/* 0, or -EINVAL with a message. */
int nbd_uri_parse(const char *uri, struct nbd_uri *ret, struct weir_err *err);
int nbd_uri_check(const char *uri, struct weir_err *err);
