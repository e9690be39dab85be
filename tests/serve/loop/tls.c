/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls: both of our sides over a socketpair, driven by hand; certtool and psktool create keys and
 * certificates when the test runs.
 */
#include "test.h"
#include "base/rng.h"
#include "serve/loop/tls-impl.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-tls-XXXXXX";
static const char certs[] =
	"exec >log 2>&1; set -e\n"
	"ca() { printf 'cn = \"%s\"\\nca\\ncert_signing_key\\nexpiration_days = 9\\n' $1 >t;\n"
	"  certtool --generate-privkey --ecc --outfile $1.key;\n"
	"  certtool --generate-self-signed --load-privkey $1.key --template t --outfile $1.pem; }\n"
	"cert() { printf 'cn = \"%s\"\\ndns_name = \"%s\"\\nip_address = \"127.0.0.1\"\\n%s\\n"
	"signing_key\\nencryption_key\\nexpiration_days = 9\\n' $1 $1 $3 >t;\n"
	"  certtool --generate-privkey ${4:---ecc} --outfile $1.key;\n"
	"  certtool --generate-certificate --load-ca-certificate $2.pem --load-ca-privkey $2.key "
	"--load-privkey $1.key --template t --outfile $1.pem; }\n"
	"ca ca; ca other; cert server.test ca tls_www_server; cert client.test ca tls_www_client\n"
	"cert stranger.test other tls_www_client; cert rsa.test ca tls_www_server --rsa\n"
	"cert any.test ca\n"
	"psktool -u alice -p keys; psktool -u bob -p keys; psktool -u alice -p wrong\n"
	"psktool -u carol -p unknown; : >empty; echo '# no key' >comment; echo nokey >broken\n"
	"printf 'alice:00ff\\nbob:00f\\n' >odd\n"
	"grep bob keys >bob\n";

static void make_files(void)
{
	if (system("command -v certtool psktool >/dev/null") != 0)
		SKIP("certtool and psktool are not here");
	CHECK(mkdtemp(folder));
	CHECK_INT(chdir(folder), 0);
	if (system(certs) != 0)
		FAIL("certtool failed; see %s/log", folder);
}

/* ---- one connection, both ends here */

static struct tls *server_tls, *client_tls;
static struct stream server, client;
static struct weir_err server_err, client_err;
static int server_said, client_said;

static struct tls *credentials(struct tls_config c, bool is_server)
{
	struct weir_err err;
	struct tls *t;

	if (tls_new(&c, is_server, &t, &err) < 0)
		FAIL("%s", err.text);
	return t;
}

static void handshake(const char *hostname)
{
	uint32_t want;
	int fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	server = (struct stream){.fd = fds[0]};
	client = (struct stream){.fd = fds[1]};
	CHECK_INT(tls_start(server_tls, &server, NULL), 0);
	CHECK_INT(tls_start(client_tls, &client, hostname), 0);
	server_said = client_said = -EAGAIN;
	server_err.text[0] = client_err.text[0] = 0;
	for (int i = 0; i < 50 && (server_said == -EAGAIN || client_said == -EAGAIN); i++) {
		if (client_said == -EAGAIN)
			client_said = tls_handshake(&client, &want, &client_err);
		if (client_said == -EAGAIN)
			CHECK(want == EPOLLIN || want == EPOLLOUT);
		if (server_said == -EAGAIN)
			server_said = tls_handshake(&server, &want, &server_err);
	}
}

static void begin(struct tls_config s, struct tls_config c, const char *hostname)
{
	server_tls = credentials(s, true);
	client_tls = credentials(c, false);
	handshake(hostname);
}

static void end(void)
{
	stream_close(&client);
	stream_close(&server);
	tls_free(client_tls);
	tls_free(server_tls);
}

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		FAIL("\"%s\" does not say \"%s\"", text, want);
}

#define SERVER .cert = "server.test.pem", .key = "server.test.key"
#define CONFIG (struct tls_config)

static void certificates(void)
{
	struct iovec v = {(void *)(uintptr_t) "hello", 5};
	char text[16];

	begin(CONFIG{SERVER}, CONFIG{.ca = "ca.pem"}, "server.test");
	CHECK_STR(client_err.text, "");
	CHECK_INT(client_said, 0);
	CHECK_INT(server_said, 0);
	CHECK(!tls_identity(&server)); /* the client has no identity */
	CHECK_STR(tls_identity(&client), "server.test");
	CHECK_INT(stream_recv(&server, text, sizeof(text)), -EAGAIN);
	CHECK_INT(stream_send(&client, &v, 1), 5);
	CHECK(!stream_pending(&client));
	CHECK_INT(stream_recv(&server, text, sizeof(text)), 5);
	CHECK_INT(memcmp(text, "hello", 5), 0);
	CHECK_INT(stream_send(&server, &v, 1), 5);
	CHECK_INT(stream_recv(&client, text, sizeof(text)), 5);
	stream_close(&client);
	CHECK_INT(stream_recv(&server, text, sizeof(text)), 0);
	CHECK_INT(stream_recv(&server, text, sizeof(text)), 0); /* again */
	end();
}

static void by_address(void)
{
	begin(CONFIG{SERVER}, CONFIG{.ca = "ca.pem"}, "127.0.0.1");
	CHECK_STR(client_err.text, "");
	CHECK_INT(client_said, 0);
	end();
	begin(CONFIG{SERVER}, CONFIG{.ca = "ca.pem"}, "127.0.0.2");
	CHECK_INT(client_said, -EACCES);
	end();
}

static void wrong_authority(void)
{
	begin(CONFIG{SERVER}, CONFIG{.ca = "other.pem"}, "server.test");
	CHECK_INT(client_said, -EACCES);
	has(client_err.text, "NOT trusted. The certificate issuer is unknown.");
	CHECK(server_said < 0 && server_said != -EAGAIN);
	end();
	begin(CONFIG{SERVER}, CONFIG{0}, "server.test"); /* does not trust ours */
	CHECK_INT(client_said, -EACCES);
	end();
}

static void wrong_name(void)
{
	begin(CONFIG{SERVER}, CONFIG{.ca = "ca.pem"}, "other.test");
	CHECK_INT(client_said, -EACCES);
	has(client_err.text, "name");
	end();
}

/* The handshake succeeds, so that the protocol above it can send the reason of the refusal. */
static void client_certificate(void)
{
	struct tls_config s = {SERVER, .ca = "ca.pem"};

	begin(s, CONFIG{.ca = "ca.pem", .cert = "client.test.pem", .key = "client.test.key"},
		"server.test");
	CHECK_STR(server_err.text, "");
	CHECK_INT(server_said, 0);
	CHECK_STR(tls_identity(&server), "client.test");
	CHECK(!tls_refusal(&server) && !tls_refusal(&client));
	end();
	begin(s, CONFIG{.ca = "ca.pem"}, "server.test");
	CHECK_INT(server_said, 0);
	has(tls_refusal(&server), "requires a TLS client certificate");
	CHECK(!tls_identity(&server));
	end();
	begin(s, CONFIG{.ca = "ca.pem", .cert = "stranger.test.pem", .key = "stranger.test.key"},
		"server.test");
	CHECK_INT(server_said, 0);
	CHECK(tls_refusal(&server)); /* of another authority: most clients do not even send it */
	CHECK(!tls_identity(&server));
	end();
	begin(s, CONFIG{.ca = "ca.pem", .cert = "server.test.pem", .key = "server.test.key"},
		"server.test");
	has(tls_refusal(&server), "purpose"); /* for servers only */
	CHECK(!tls_identity(&server));
	end();
	begin(s, CONFIG{.ca = "ca.pem", .cert = "any.test.pem", .key = "any.test.key"},
		"server.test");
	CHECK_STR(tls_identity(&server), "any.test"); /* states no purpose */
	CHECK(!tls_refusal(&server));
	end();
}

/* TLS 1.2 with restrictions: `only` is the client's priority. */
static void weak(const char *only)
{
	char text[200];

	server_tls = credentials(CONFIG{.cert = "rsa.test.pem", .key = "rsa.test.key"}, true);
	client_tls = credentials(CONFIG{.ca = "ca.pem"}, false);
	snprintf(text, sizeof(text), "NORMAL:-VERS-ALL:+VERS-TLS1.2:%s", only);
	gnutls_priority_deinit(client_tls->priority);
	CHECK_INT(gnutls_priority_init(&client_tls->priority, text, NULL), 0);
	handshake("rsa.test");
}

static void weak_ciphers(void)
{
	weak("-RSA"); /* enough is left */
	CHECK_INT(client_said, 0);
	CHECK_INT(server_said, 0);
	end();
	weak("-KX-ALL:+RSA");
	CHECK(server_said < 0 && server_said != -EAGAIN);
	end();
	weak("-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC:-MAC-ALL:+SHA1");
	CHECK(server_said < 0 && server_said != -EAGAIN);
	end();
}

static void shared_keys(void)
{
	struct tls_config s = {.psk = "keys"};

	begin(s, CONFIG{.psk = "keys"}, "anything");
	CHECK_STR(client_err.text, "");
	CHECK_INT(client_said, 0);
	CHECK_INT(server_said, 0);
	CHECK_STR(tls_identity(&server), "alice");
	CHECK(!tls_identity(&client));
	end();
	begin(s, CONFIG{.psk = "bob"}, NULL);
	CHECK_STR(tls_identity(&server), "bob");
	end();
	begin(s, CONFIG{.psk = "wrong"}, NULL);
	CHECK_INT(server_said, -EACCES);
	CHECK_INT(client_said, -EACCES);
	has(client_err.text, "refused");
	end();
	begin(s, CONFIG{.psk = "unknown"}, NULL);
	CHECK(server_said < 0 && server_said != -EAGAIN);
	CHECK(client_said < 0 && client_said != -EAGAIN);
	end();
}

/* A server with both accepts either; a client with only a key never trusts a certificate. */
static void either(void)
{
	struct tls_config s = {SERVER, .ca = "ca.pem", .psk = "keys"};

	begin(s, CONFIG{.psk = "keys"}, NULL);
	CHECK_STR(server_err.text, "");
	CHECK_INT(server_said, 0);
	CHECK_STR(tls_identity(&server), "alice");
	end();
	begin(s, CONFIG{.ca = "ca.pem", .cert = "client.test.pem", .key = "client.test.key"},
		"server.test");
	CHECK_STR(tls_identity(&server), "client.test");
	end();
	begin(CONFIG{SERVER}, CONFIG{.psk = "keys"}, NULL);
	CHECK(client_said < 0 && client_said != -EAGAIN);
	end();
}

/* ---- much data through small sockets: partial sends, in order, nothing lost */

static void much_data(void)
{
	enum { TOTAL = 3 << 20 };
	static uint8_t data[TOTAL], got[TOTAL + 1];
	size_t sent = 0, received = 0, stuck = 0;
	struct rng r;

	rng_init(&r, 1, "tls");
	for (size_t i = 0; i < TOTAL; i++)
		data[i] = (uint8_t)rng_u64(&r);
	begin(CONFIG{SERVER}, CONFIG{.ca = "ca.pem"}, "server.test");
	CHECK_INT(client_said, 0);
	while (received < TOTAL) {
		struct iovec v[3];
		ssize_t n;
		for (int burst = 0; burst < 8; burst++) {
			size_t at = sent;
			for (int i = 0; i < 3; i++) {
				size_t len = rng_below(&r, 100000);
				len = len < TOTAL - at ? len : TOTAL - at;
				v[i] = (struct iovec){data + at, len};
				at += len;
			}
			n = stream_send(&client, v, 3);
			if (n == -EAGAIN)
				stuck++;
			else
				CHECK(n >= 0 && n <= (ssize_t)(at - sent));
			sent += n > 0 ? (size_t)n : 0;
		}
		if (stream_pending(&client))
			CHECK_INT(stream_send(&client, NULL, 0), 0);
		while ((n = stream_recv(&server, got + received,
				1 + rng_below(&r, TOTAL + 1 - received))) > 0)
			received += (size_t)n;
		CHECK_INT(n, -EAGAIN);
	}
	CHECK_INT(sent, TOTAL);
	CHECK(stuck > 0);
	CHECK(!stream_pending(&client));
	CHECK_INT(memcmp(data, got, TOTAL), 0);
	end();
}

/* ---- errors are reported at once */

static void refused(struct tls_config c, bool is_server, int code, const char *why)
{
	struct weir_err err = {""};
	struct tls *t = NULL;

	CHECK_INT(tls_new(&c, is_server, &t, &err), code);
	CHECK(!t);
	has(err.text, why);
}

static void bad_files(void)
{
	refused(CONFIG{0}, true, -EINVAL, "needs a certificate");
	refused(CONFIG{.cert = "server.test.pem"}, true, -EINVAL, "needs its key");
	refused(CONFIG{.cert = "none", .key = "server.test.key"}, true, -ENOENT, "none: ");
	refused(CONFIG{.cert = "server.test.pem", .key = "client.test.key"}, true, -EINVAL,
		"do not match");
	refused(CONFIG{SERVER, .ca = "none"}, true, -ENOENT, "none: ");
	refused(CONFIG{SERVER, .ca = "empty"}, true, -EINVAL, "empty: ");
	refused(CONFIG{.psk = "none"}, true, -ENOENT, "none: ");
	refused(CONFIG{.psk = "none"}, false, -ENOENT, "none: ");
	refused(CONFIG{.psk = "empty"}, true, -EINVAL, "empty: contains no key");
	refused(CONFIG{.psk = "broken"}, true, -EINVAL, "broken:1: a line is NAME:HEXKEY");
	refused(CONFIG{.psk = "odd"}, true, -EINVAL, "odd:2: a line is NAME:HEXKEY");
	refused(CONFIG{.cert = "comment", .key = "comment"}, true, -EINVAL,
		"contains no certificate");
	refused(CONFIG{.psk = "comment"}, false, -EINVAL, "contains no key");
	refused(CONFIG{.psk = "broken"}, false, -EINVAL, "NAME:HEXKEY");
}

/* The peer sends garbage, or leaves in the middle. */
static void no_tls_at_all(void)
{
	struct weir_err err;
	uint32_t want = 0;
	int fds[2];

	server_tls = credentials(CONFIG{SERVER}, true);
	for (int gone = 0; gone < 2; gone++) {
		CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		server = (struct stream){.fd = fds[0]};
		CHECK_INT(tls_start(server_tls, &server, NULL), 0);
		CHECK_INT(tls_handshake(&server, &want, &err), -EAGAIN);
		CHECK_INT(want, EPOLLIN);
		if (!gone)
			CHECK_INT(write(fds[1], "GET / HTTP/1.0\r\n\r\n", 18), 18);
		close(fds[1]);
		CHECK_INT(tls_handshake(&server, &want, &err), -EPROTO);
		stream_close(&server);
	}
	tls_free(server_tls);
}

static void sessions_outlive_credentials(void)
{
	struct iovec v = {(void *)(uintptr_t) "x", 1};
	char c;

	server_tls = credentials(CONFIG{.psk = "keys"}, true);
	client_tls = credentials(CONFIG{.psk = "keys"}, false);
	handshake(NULL);
	tls_free(server_tls);
	tls_free(client_tls);
	CHECK_INT(stream_send(&server, &v, 1), 1);
	CHECK_INT(stream_recv(&client, &c, 1), 1);
	stream_close(&server);
	stream_close(&client);
	tls_free(NULL);
}

int main(void)
{
	char command[64];

	make_files();
	RUN(certificates);
	RUN(by_address);
	RUN(wrong_authority);
	RUN(wrong_name);
	RUN(client_certificate);
	RUN(weak_ciphers);
	RUN(shared_keys);
	RUN(either);
	RUN(much_data);
	RUN(bad_files);
	RUN(no_tls_at_all);
	RUN(sessions_outlive_credentials);
	CHECK_INT(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK_INT(system(command), 0);
	return 0;
}
