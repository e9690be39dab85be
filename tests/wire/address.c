/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/address.h"
#include "test.h"
#include <errno.h>

static void checked(const char *text, const char *want)
{
	struct weir_err err = {""};
	struct address a;
	int r = address_parse(text, &a, &err);

	if (!want) {
		CHECK_INT(r, 0);
		return;
	}
	CHECK_INT(r, -EINVAL);
	if (!strstr(err.text, want))
		FAIL("\"%s\" does not say \"%s\"", err.text, want);
}

static void addresses(void)
{
	char longer[350] = "unix:/";

	checked("unix:/run/x.sock", NULL);
	checked("unix:@name", NULL);
	checked("tcp:localhost:10809", NULL);
	checked("tcp:[::1]:10809", NULL);
	checked("tcp::10809", NULL);
	checked("tcp:127.0.0.1:0", NULL);
	checked("unix:/run/x.sock?mode=0660", NULL);
	checked("unix:/run/x.sock?group=kvm&mode=660", NULL);
	checked("unix:/run/x.sock?mode=0800", "octal");
	checked("unix:/run/x.sock?mode=01777", "octal");
	checked("unix:/run/x.sock?mode=", "octal");
	checked("unix:/run/x.sock?group=", "may follow '?'");
	checked("unix:/run/x.sock?", NULL);
	checked("unix:/run/x?y.sock?mode=0600", NULL);
	checked("unix:/run/x.sock?mode=0600&modus=1", "may follow '?'");
	checked("unix:@name?mode=0600", "no mode");
	checked("unix:", "1 to 107 bytes, this one 0");
	checked("tcp:host", "the port is missing");
	checked("tcp:host:", "a port is a number");
	checked("tcp:host:http", "a port is a number");
	checked("tcp:host:65536", "a port is a number");
	checked("tcp:host:-1", "a port is a number");
	checked("tcp:host:1 ", "a port is a number");
	checked("tcp:::1:10809", "brackets");
	checked("tcp:[::1:10809", "']' is missing");
	checked("tcp:[:1", "']' is missing");
	checked("tcp:[::1]", "the port is missing");
	checked("tcp:[::1]10809", "the port is missing");
	checked("tcp:", "the port is missing");
	checked("tcp::", "a port is a number");
	checked("udp:host:1", "is no address");
	checked("", "is no address");
	memset(longer + 6, 'x', sizeof(longer) - 7);
	checked(longer, "this one 344");
	memcpy(longer, "tcp:xx", 6);
	memcpy(longer + sizeof(longer) - 4, ":12", 4);
	checked(longer, "too long");
}

static void taken_apart(void)
{
	struct address a;

	CHECK_INT(address_parse("unix:/run/x.sock", &a, NULL), 0);
	CHECK(a.is_unix && !a.host[0] && !a.port[0]);
	CHECK_STR(a.path, "/run/x.sock");
	CHECK_INT(address_parse("tcp:[fd00::2]:007", &a, NULL), 0);
	CHECK(!a.is_unix && !a.path[0]);
	CHECK_STR(a.host, "fd00::2");
	CHECK_STR(a.port, "7");
	CHECK_INT(address_parse("tcp::10809", &a, NULL), 0);
	CHECK_STR(a.host, "");
	CHECK_STR(a.port, "10809");
}

int main(void)
{
	RUN(addresses);
	RUN(taken_apart);
	return 0;
}
