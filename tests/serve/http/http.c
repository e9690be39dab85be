/* SPDX-License-Identifier: BSD-3-Clause */
/* http: requests over a unix socket and over TCP, with and without the token; limits. */
#include "test.h"
#include "serve/http/http.h"
#include "serve/loop/stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-http-XXXXXX";
static char unix_address[120];
static struct loop *l;
static struct http *h;
static char seen[2000]; /* the last request, as seen by the handler */

/* A body of PIECES pieces, generated one by one. */
enum { PIECES = 2000, PIECE = 1000 };
static struct http_source source;
static int made, ended;
static struct http_later *later;
static int handled;

static bool more(struct http_source *s, FILE *to)
{
	CHECK(s == &source);
	fprintf(to, "%0*d", PIECE, made++);
	return made < PIECES;
}

static void end(struct http_source *s)
{
	CHECK(s == &source);
	ended++;
}

static void handler(void *arg, struct http_request *q, struct http_reply *ret)
{
	const char *a = http_query(q, "a"), *none = http_query(q, "none");

	CHECK(arg == seen);
	CHECK(!none);
	CHECK_INT(q->body[q->length], 0);
	snprintf(seen, sizeof(seen), "%s %s a=%s %zu:%.20s", q->method, q->path, a ? a : "-",
		q->length, q->body);
	handled++;
	if (strcmp(q->path, "/later") == 0) {
		later = http_defer(q);
		return;
	}
	if (strcmp(q->path, "/at-once") == 0) {
		struct http_reply r = {.status = 200, .body = strdup("hello now"), .length = 9};

		http_answer(http_defer(q), &r);
		return;
	}
	if (strcmp(q->path, "/long") == 0) {
		source = (struct http_source){more, end};
		made = ended = 0;
		ret->source = &source;
		ret->status = 200;
		return;
	}
	ret->status = strcmp(q->path, "/405") == 0 ? 405 : 200;
	ret->allow = ret->status == 405 ? "GET" : NULL;
	ret->body = strdup("hello");
	ret->length = 5;
}

static const struct http_file files[] = {{"/file", "text/css; charset=utf-8", "as it is", "packed",
	sizeof("as it is") - 1, sizeof("packed") - 1}};

static const struct row {
	struct http_route is;
} rows[] = {
	{{"GET", "/healthz", 0, POLICY_ROLE_NONE, NULL}},
	{{"GET", "/", 0, POLICY_ROLE_READ, NULL}},
	{{"GET", "/", 500, POLICY_ROLE_READ, NULL}},
	{{"PUT", "/", 500, POLICY_ROLE_OPERATE, NULL}},
	{{"POST", "/admin", 0, POLICY_ROLE_ADMIN, NULL}},
};

static int start(const char *const *addresses, size_t n, const char *token, struct weir_err *err)
{
	struct http_config c = {.addresses = addresses,
		.n_addresses = n,
		.access.token_file = token,
		.routes = HTTP_ROUTES(rows),
		.files = files,
		.n_files = sizeof(files) / sizeof(*files),
		.handler = handler,
		.arg = seen};

	return http_new(l, &c, &h, err);
}

/* ---- a client on the same thread: the loop runs until it has the whole reply */

struct asking {
	struct loop_turn turn;
	int fd;
	char reply[4000];
	size_t n;
};

static bool asking_turn(struct loop_turn *t, weir_time now)
{
	struct asking *a = (struct asking *)t;
	ssize_t n = recv(a->fd, a->reply + a->n, sizeof(a->reply) - 1 - a->n, MSG_DONTWAIT);

	if (n > 0)
		a->n += (size_t)n;
	a->reply[a->n] = 0;
	if (n == 0 || (n < 0 && errno != EAGAIN) || strstr(a->reply, "hello") ||
		strstr(a->reply, "token is") || strstr(a->reply, "a token from") ||
		strstr(a->reply, "over 1 MiB") || strstr(a->reply, " 400 ") ||
		strstr(a->reply, " 501 "))
		loop_stop(l);
	return true;
}

static const char *ask_on(int fd, const char *text, size_t n)
{
	static struct asking a;

	a = (struct asking){.turn.turn = asking_turn, .fd = fd};
	CHECK_INT(fcntl(fd, F_SETFL, 0), 0);
	CHECK_INT(send(fd, text, n, MSG_NOSIGNAL), n);
	loop_turn_add(l, &a.turn);
	CHECK_INT(loop_run(l), 0);
	loop_turn_remove(l, &a.turn);
	return a.reply;
}

/* Run n rounds of the loop: its turn fails at once, and stops it. */
static void rounds(int n)
{
	struct asking none = {.turn.turn = asking_turn, .fd = -1};

	loop_turn_add(l, &none.turn);
	while (n--)
		CHECK_INT(loop_run(l), 0);
	loop_turn_remove(l, &none.turn);
}

static int dial(const char *address)
{
	struct weir_err err;
	int fd;

	CHECK_INT(stream_connect(address, 1000000000, &fd, &err), 0);
	return fd;
}

static const char *ask(const char *address, const char *text)
{
	int fd = dial(address);
	const char *reply;

	seen[0] = 0;
	reply = ask_on(fd, text, strlen(text));
	close(fd);
	return reply;
}

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		FAIL("\"%s\" does not have \"%s\"", text, want);
}

/* ---- tests */

static void requests(void)
{
	const char *list[] = {unix_address};
	struct weir_err err;
	struct stat st;
	const char *reply;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	CHECK_INT(stat(unix_address + 5, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0660);
	reply = ask(unix_address, "GET /v1/x%20y?a=1%262 HTTP/1.1\r\nHost: x\r\n\r\n");
	has(reply, "HTTP/1.1 200 ");
	has(reply, "\r\n\r\nhello");
	CHECK_STR(seen, "GET /v1/x y a=1&2 0:");
	reply = ask(
		unix_address, "PUT /v1/p HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nab\ncde");
	CHECK_STR(seen, "PUT /v1/p a=- 6:ab\ncde");
	ask(unix_address, "PUT /v1/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
			  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	CHECK_STR(seen, "PUT /v1/p a=- 5:abcde");
	reply = ask(unix_address, "DELETE /405 HTTP/1.1\r\nHost: x\r\n\r\n");
	has(reply, " 405 ");
	has(reply, "Allow: GET");
	/* The library answers garbage. */
	reply = ask(unix_address, "nonsense\r\n\r\n");
	CHECK_STR(seen, "");
	http_free(h);
	CHECK(access(unix_address + 5, F_OK) < 0);
}

static void several_on_one_connection(void)
{
	const char *list[] = {unix_address};
	const char text[] = "GET /k HTTP/1.1\r\nHost: x\r\n\r\n";
	struct weir_err err;
	int fd;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	fd = dial(unix_address);
	for (int i = 0; i < 3; i++) {
		seen[0] = 0;
		has(ask_on(fd, text, strlen(text)), "200");
		CHECK_STR(seen, "GET /k a=- 0:");
	}
	close(fd);
	http_free(h);
}

static void large_bodies(void)
{
	const char *list[] = {unix_address};
	struct weir_err err;
	static char big[HTTP_BODY_MAX + 200];
	int n, fd;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	/* The largest body, while the loop reads. */
	n = snprintf(big, sizeof(big), "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
		HTTP_BODY_MAX);
	fd = dial(unix_address);
	CHECK_INT(send(fd, big, (size_t)n, 0), n);
	for (size_t sent = 0; sent < HTTP_BODY_MAX;) {
		static const char piece[32768] = {'x'};
		ssize_t k = send(fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (k > 0)
			sent += (size_t)k;
		else
			CHECK_INT(errno, EAGAIN);
		rounds(20);
	}
	has(ask_on(fd, "", 0), "200");
	has(seen, "PUT /b a=- 16777216:x");
	close(fd);
	has(ask(unix_address, "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 16777217\r\n\r\n"),
		"413");
	CHECK_STR(seen, "");
	http_free(h);
}

/* Find a free port: bind, get its number, and close. */
static void tcp_address(char ret[64])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int probe = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_INT(bind(probe, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_INT(getsockname(probe, (struct sockaddr *)&at, &len), 0);
	close(probe);
	snprintf(ret, 64, "tcp:127.0.0.1:%d", ntohs(at.sin_port));
}

static void token(void)
{
	char file[100], address[64];
	const char *list[] = {unix_address, address}, *reply;
	struct weir_err err;

	tcp_address(address);
	h = NULL;
	CHECK_INT(start(list, 2, NULL, &err), -EINVAL);
	has(err.text, "needs a token");
	CHECK(!h);
	CHECK(access(unix_address + 5, F_OK) < 0);
	snprintf(file, sizeof(file), "%s/token", folder);
	CHECK_INT(start(list, 2, file, &err), -ENOENT);
	FILE *f = fopen(file, "w");
	fputs("short\n", f);
	fclose(f);
	CHECK_INT(start(list, 2, file, &err), -EINVAL);
	has(err.text, "not 5");
	f = fopen(file, "w");
	fputs("0123456789abcdef\r\n", f);
	fclose(f);
	CHECK_INT(start(list, 2, file, &err), 0);

	reply = ask(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	has(reply, " 401 ");
	has(reply, "WWW-Authenticate: Bearer");
	CHECK_STR(seen, "");
	static const char *const wrong[] = {"Bearer 0123456789abcdeX", "Bearer 0123456789abcde",
		"Bearer 0123456789abcdef0", "Bearer", "Bearer ", "Basic 0123456789abcdef"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[200];
		snprintf(text, sizeof(text),
			"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", wrong[i]);
		has(ask(address, text), " 401 ");
		CHECK_STR(seen, "");
	}
	has(ask(address,
		    "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"),
		" 200 ");
	has(ask(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), " 200 ");
	has(ask(address, "PUT /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), " 401 ");
	has(ask(unix_address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), " 200 ");
	http_free(h);
	unlink(file);
}

/* Requests without the token from one address are limited; those with it do not count. */
static void throttled(void)
{
	char file[100], address[64];
	const char *list[] = {address}, *wrong = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", *reply;
	const char *right = "GET / HTTP/1.1\r\nHost: x\r\n"
			    "Authorization: Bearer 0123456789abcdef\r\n\r\n";
	struct weir_err err;
	int refused = 0, n = 0;
	FILE *f;

	tcp_address(address);
	snprintf(file, sizeof(file), "%s/token", folder);
	f = fopen(file, "w");
	fputs("0123456789abcdef\n", f);
	fclose(f);
	CHECK_INT(start(list, 1, file, &err), 0);
	for (; n < 300; n++)
		has(ask(address, right), " 200 ");
	for (n = 0; n < 2000 && !refused; n++) {
		reply = ask(address, wrong);
		refused = strstr(reply, " 429 ") != NULL;
		if (!refused)
			has(reply, " 401 ");
	}
	CHECK(refused);
	has(reply, "Retry-After: 1");
	CHECK(n > 200);
	CHECK_STR(seen, "");
	http_free(h);
	unlink(file);
}

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
#define PROVEN "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"

static bool is_cut(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* Strangers that hold every TCP connection, and keep asking, do not lock out a client with the
 * token: the oldest of them is evicted. Clients that have sent the token stay. */
static void strangers(void)
{
	char file[100], address[64];
	const char *list[] = {address};
	struct weir_err err;
	int old, fds[40], cut = 0, fd;
	FILE *f;

	tcp_address(address);
	snprintf(file, sizeof(file), "%s/token", folder);
	f = fopen(file, "w");
	fputs("0123456789abcdef\n", f);
	fclose(f);
	CHECK_INT(start(list, 1, file, &err), 0);
	old = dial(address);
	has(ask_on(old, PROVEN, strlen(PROVEN)), " 200 ");
	for (int i = 0; i < 31; i++) {
		fds[i] = dial(address);
		has(ask_on(fds[i], HEALTH, strlen(HEALTH)), " 200 ");
	}
	for (int i = 0; i < 31; i++) /* requests do not reset the age */
		has(ask_on(fds[i], HEALTH, strlen(HEALTH)), " 200 ");
	fd = dial(address);
	has(ask_on(fd, PROVEN, strlen(PROVEN)), " 200 ");
	rounds(5);
	CHECK(is_cut(fds[0])); /* the oldest */
	for (int i = 1; i < 31; i++)
		cut += is_cut(fds[i]);
	CHECK_INT(cut, 0);
	has(ask_on(old, PROVEN, strlen(PROVEN)), " 200 ");
	for (int i = 0; i < 31; i++)
		close(fds[i]);
	close(old);
	close(fd);
	http_free(h);
	unlink(file);
}

/* Files are for all, by GET and HEAD only; packed for those that say that they unpack them. */
static void sends_files(void)
{
	static const struct {
		const char *accepts, *body;
	} list[] = {{"gzip", "packed"}, {"br;q=1.0, gzip;q=0.8, *;q=0.1", "packed"},
		{"deflate,GZIP", "packed"}, {"gzip;q=0", "as it is"},
		{"identity, gzip; q=0.000", "as it is"}, {"xgzipx", "as it is"}, {"br", "as it is"},
		{"", "as it is"}};
	char file[100], address[64], text[200];
	const char *addresses[] = {address}, *reply;
	struct weir_err err;
	FILE *f;

	tcp_address(address);
	snprintf(file, sizeof(file), "%s/token", folder);
	f = fopen(file, "w");
	fputs("0123456789abcdef\n", f);
	fclose(f);
	CHECK_INT(start(addresses, 1, file, &err), 0);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		snprintf(text, sizeof(text),
			"GET /file HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n",
			list[i].accepts);
		reply = ask(address, text);
		has(reply, " 200 ");
		has(reply, "default-src 'none'");
		has(reply, list[i].body);
	}
	CHECK(strstr(ask(address, "GET /fil HTTP/1.1\r\nHost: x\r\n\r\n"), " 401 ") != NULL);
	has(ask(address, "POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), " 401 ");
	reply = ask(address,
		"POST /file HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789abcdef\r\n"
		"Content-Length: 0\r\n\r\n");
	has(reply, " 405 ");
	has(reply, "Allow: GET, HEAD");
	http_free(h);
	unlink(file);
}

/* Send a request whose end is not certain, with a second one behind it: refused, and the connection is closed. */
static void refused(const char *method, const char *headers, const char *body, const char *status)
{
	char text[400];
	int fd = dial(unix_address);

	snprintf(text, sizeof(text),
		"%s /p HTTP/1.1\r\nHost: x\r\n%s\r\n%sGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		method, headers, body);
	seen[0] = 0;
	has(ask_on(fd, text, strlen(text)), status);
	for (int i = 0;; i++) {
		ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (i == 100)
			FAIL("left open after: %s", headers);
		rounds(1);
	}
	CHECK_STR(seen, "");
	close(fd);
}

static void uncertain_lengths(void)
{
	const char *list[] = {unix_address}, *chunks = "3\r\nabc\r\n0\r\n\r\n";
	struct weir_err err;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	refused("PUT", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", chunks, " 400 ");
	refused("GET", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", chunks, " 400 ");
	refused("PUT", "Content-Length: 3\r\nContent-Length: 4\r\n", "abc", " 400 ");
	refused("PUT", "Content-Length: 3\r\ncontent-length: 3\r\n", "abc", " 400 ");
	refused("GET", "Content-Length: 0\r\nContent-Length: 5\r\n", "abcde", " 400 ");
	refused("PUT", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunks,
		" 400 ");
	refused("PUT", "Transfer-Encoding: gzip, chunked\r\n", chunks, " 501 ");
	refused("PUT", "Transfer-Encoding: identity\r\n", "abc", " 501 ");
	/* A proxy may take these for a length, or remove the space. */
	refused("PUT", "Content-Length : 3\r\n", "abc", " 400 ");
	refused("PUT", "Content-Length\t: 3\r\n", "abc", " 400 ");
	refused("PUT", " Content-Length: 3\r\n", "abc", " 400 ");
	/* A length that goes on in the next line, or that a bare CR begins. */
	refused("GET", "Content-Length:\r\n 3\r\n", "abc", " 400 ");
	refused("GET", "Content-Length:\r\n\t3\r\n", "abc", " 400 ");
	refused("GET", "Content-Length: \r\n 3\r\n", "abc", " 400 ");
	refused("PUT", "Transfer-Encoding:\r\n chunked\r\n", chunks, " 400 ");
	refused("GET", "X: a\rContent-Length: 3\r\n", "abc", " 400 ");
	refused("PUT", "X(Content-Length): 3\r\n", "", " 400 ");
	refused("GET", "X\r\n: 3\r\nContent-Length/: 3\r\n", "abc", " 400 ");
	refused("PUT", "Content-Length: 3 3\r\n", "abc", " 400 ");
	refused("PUT", "Content-Length: +3\r\n", "abc", " 400 ");
	refused("PUT", "Content-Length: 3,3\r\n", "abc", " 400 ");
	refused("PUT", "Transfer-Encoding : chunked\r\n", chunks, " 400 ");
	has(ask(unix_address, "PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
			      "3\r\nabc\r\n0\r\n\r\n"),
		" 200 ");
	http_free(h);
}

/* ---- replies in pieces, and deferred ones */

/* Read until the connection ends; return the number of bytes. */
static size_t read_all(int fd, size_t most)
{
	static char bytes[65536];
	size_t n = 0;

	while (n < most) {
		ssize_t k = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (k == 0)
			break;
		if (k > 0)
			n += (size_t)k;
		rounds(1);
	}
	return n;
}

static void streams(void)
{
	static const char text[] = "GET /long HTTP/1.0\r\n\r\n"; /* ends with the connection */
	const char *list[] = {unix_address};
	struct weir_err err;
	size_t n;
	int fd;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	fd = dial(unix_address);
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	n = read_all(fd, SIZE_MAX);
	CHECK(n > PIECES * PIECE && n < PIECES * PIECE + 1000);
	CHECK_INT(made, PIECES);
	CHECK_INT(ended, 1);
	close(fd);
	/* A client that does not read: no more is generated than fits the buffers. */
	fd = dial(unix_address);
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	rounds(200);
	CHECK(made > 0 && made < PIECES / 2);
	CHECK_INT(ended, 0);
	/* And nothing once it has left. */
	n = (size_t)made;
	close(fd);
	rounds(50);
	CHECK_INT(ended, 1);
	CHECK(made <= (int)n + 66);
	/* The server leaves first. */
	fd = dial(unix_address);
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	rounds(20);
	CHECK_INT(ended, 0);
	http_free(h);
	CHECK_INT(ended, 1);
	close(fd);
}

/* A reply to HEAD ends with its headers, also where GET has a reply in pieces. */
static void head_of_a_stream(void)
{
	static const char text[] = "HEAD /long HTTP/1.1\r\nHost: x\r\n\r\n";
	const char *list[] = {unix_address};
	struct weir_err err;
	char reply[1000] = "";
	int fd;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	fd = dial(unix_address);
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	rounds(20);
	CHECK(recv(fd, reply, sizeof(reply) - 1, MSG_DONTWAIT) > 0);
	has(reply, " 200 ");
	has(reply, "\r\n\r\n");
	CHECK_STR(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	CHECK_INT(made, 0);
	CHECK_INT(ended, 1);
	close(fd);
	http_free(h);
}

static void answers_later(void)
{
	static const char text[] = "PUT /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab";
	const char *list[] = {unix_address};
	struct http_reply r = {.status = 200, .body = strdup("hello later"), .length = 11};
	struct weir_err err;
	int fd, other;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	fd = dial(unix_address);
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	rounds(5);
	CHECK(later);
	has(ask(unix_address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), " 200 "); /* others continue */
	http_answer(later, &r);
	has(ask_on(fd, "", 0), "hello later");
	has(ask_on(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27),
		" 200 "); /* and so does this one */
	/* The client leaves before its reply, and the server before another's. */
	later = NULL;
	CHECK_INT(send(fd, text, strlen(text), 0), strlen(text));
	rounds(5);
	CHECK(later);
	close(fd);
	rounds(5);
	r = (struct http_reply){.status = 200, .body = strdup("hello"), .length = 5};
	http_answer(later, &r);
	rounds(5);
	later = NULL;
	other = dial(unix_address);
	CHECK_INT(send(other, text, strlen(text), 0), strlen(text));
	rounds(5);
	CHECK(later);
	http_free(h);
	r = (struct http_reply){.status = 200, .body = strdup("hello"), .length = 5};
	http_answer(later, &r);
	close(other);
}

/* Requests that are read while the server ends are refused: a connection that waits for its reply must not be left. */
static void asks_at_the_end(void)
{
	static const char text[] = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
	const char *list[] = {unix_address};
	struct http_later *waits;
	struct weir_err err;
	int first, second;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	first = dial(unix_address);
	second = dial(unix_address);
	rounds(5);
	CHECK_INT(send(first, text, strlen(text), 0), strlen(text));
	rounds(5);
	waits = later;
	CHECK(waits);
	later = NULL;
	CHECK_INT(send(second, text, strlen(text), 0), strlen(text));
	http_free(h);
	CHECK(!later);
	http_answer(waits, &(struct http_reply){.status = 200});
	close(first);
	close(second);
}

/* A handler answers a deferred request itself; the connection's next request waits for its reply all the same. */
static void answers_in_handler(void)
{
	static const char first[] = "GET /at-once HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char second[] = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
	const char *list[] = {unix_address};
	struct http_reply r = {.status = 200, .body = strdup("hello later"), .length = 11};
	struct weir_err err;
	int fd;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	fd = dial(unix_address);
	handled = 0;
	has(ask_on(fd, first, strlen(first)), "hello now");
	CHECK_INT(send(fd, second, strlen(second), 0), strlen(second));
	rounds(5);
	CHECK_INT(handled, 2);
	http_answer(later, &r);
	has(ask_on(fd, "", 0), "hello later");
	close(fd);
	http_free(h);
}

/* More connections than the limit: those idle for longest are closed, the others are served. */
static void too_many(void)
{
	const char *list[] = {unix_address};
	int fds[70], cut = 0;
	struct weir_err err;

	CHECK_INT(start(list, 1, NULL, &err), 0);
	for (int i = 0; i < 70; i++)
		fds[i] = dial(unix_address);
	has(ask_on(fds[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27), " 200 ");
	rounds(80); /* one is accepted per round */
	for (int i = 0; i < 70; i++) {
		struct pollfd p = {.fd = fds[i], .events = POLLIN};
		cut += poll(&p, 1, 0) == 1;
	}
	CHECK_INT(cut, 6);
	for (int i = 0; i < 70; i++)
		close(fds[i]);
	has(ask(unix_address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		" 200 "); /* there is room again */
	http_free(h);
}

static void where(void)
{
	char address[HTTP_SOCKET_MAX];

	setenv("WEIR_SOCKET", "/tmp/a b.sock", 1);
	CHECK_INT(http_socket(true, address), 0);
	CHECK_STR(address, "unix:/tmp/a b.sock");
	setenv("WEIR_SOCKET", "unix:/tmp/x", 1);
	CHECK_INT(http_socket(false, address), 0);
	CHECK_STR(address, "unix:/tmp/x");
	unsetenv("WEIR_SOCKET");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	CHECK_INT(http_socket(false, address), 0);
	CHECK(strcmp(address, "unix:/run/weir/api.sock") == 0 || strstr(address, "/weir-api.sock"));
	unsetenv("XDG_RUNTIME_DIR");
	CHECK_INT(http_socket(false, address), 0);
	CHECK_STR(address, "unix:/run/weir/api.sock");
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(unix_address, sizeof(unix_address), "unix:%s/api.sock", folder);
	CHECK_INT(loop_new(&l), 0);
	RUN(requests);
	RUN(several_on_one_connection);
	RUN(large_bodies);
	RUN(token);
	RUN(throttled);
	RUN(strangers);
	RUN(sends_files);
	RUN(uncertain_lengths);
	RUN(streams);
	RUN(head_of_a_stream);
	RUN(answers_later);
	RUN(asks_at_the_end);
	RUN(answers_in_handler);
	RUN(too_many);
	RUN(where);
	loop_free(l);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
