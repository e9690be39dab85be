/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-uri: names that are well formed, and those that are not. */
#include "serve/back/nbd-uri.h"
#include "test.h"
#include <errno.h>

static void names(void)
{
	static const struct {
		const char *uri, *address, *host, *name;
		bool tls;
	} good[] = {
		{"nbd://example", "tcp:example:10809", "example", "", false},
		{"nbd://example/", "tcp:example:10809", "example", "", false},
		{"nbd://example:7/lun%200", "tcp:example:7", "example", "lun 0", false},
		{"nbds://[::1]:7/a/b", "tcp:[::1]:7", "::1", "a/b", true},
		{"nbd+unix:///x?socket=/tmp/a%3Fb", "unix:/tmp/a?b", "", "x", false},
		{"nbds+unix://?socket=s", "unix:s", "", "", true},
	};
	static const char *const bad[] = {"nbd:example", "nbd://", "nbd://:7/x", "nbd://me@host/x",
		"nbd://host:123456/", "nbd://[::1/", "nbd://host/%zz", "nbd://host/%0",
		"nbd://host/%00", "nbd+unix:///x", "nbd+unix://host/x?socket=s",
		"nbd://host/x?socket=s", "nbd://host:99999/x", "nbd://host:x/", "nbd://[::1]:+7/",
		"nbd+unix:///x?socket=s&tls-psk-file=k", "http://host/",
		"nbd+unix:///x?socket=/"
		"0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"234567890123456789012345678901234567890"};
	struct nbd_uri u;
	struct weir_err err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_INT(nbd_uri_parse(good[i].uri, &u, &err), 0);
		CHECK_STR(u.address, good[i].address);
		CHECK_STR(u.host, good[i].host);
		CHECK_STR(u.name, good[i].name);
		CHECK_INT(u.tls, good[i].tls);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		if (nbd_uri_check(bad[i], &err) != -EINVAL)
			FAIL("%s was taken", bad[i]);
		CHECK(strncmp(err.text, bad[i], strlen(bad[i])) == 0);
	}
}

int main(void)
{
	RUN(names);
	return 0;
}
