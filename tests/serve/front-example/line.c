/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line: an example of a front end: a protocol of lines.
 *
 * The server begins: "weir line". Then the client chooses an export:
 *
 *   LIST        -> NAME, a line each; ok
 *   STARTTLS    -> ok; TLS follows
 *   USE NAME    -> ok SIZE; requests follow
 *   QUIT
 *
 * Requests have a tag, since replies come in any order:
 *
 *   READ TAG OFFSET LENGTH    -> TAG ok LENGTH, and that many bytes
 *   WRITE TAG OFFSET LENGTH, and that many bytes -> TAG ok 0
 *   ECHO TAG TEXT             -> TAG ok LENGTH, and TEXT; passes the gate, but is no block I/O
 *   QUIT
 *
 * Errors are numbers of errno: "error 13", "TAG error 22".
 */
#include "base/container.h"
#include "serve/front/front.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX   300        /* bytes */
#define LENGTH_MAX (8u << 20) /* bytes of a request */

extern const struct front_ops front_line_ops;

struct line_visit {
	struct front_visit visit; /* first */
	char line[LINE_MAX + 1];
	size_t n;
	bool waits; /* for the storage of the export in `line` */
};

enum line_command { LINE_READ, LINE_WRITE, LINE_ECHO, LINE_QUIT, LINE_COMMANDS };
static const char *const words[] = {"READ", "WRITE", "ECHO", "QUIT"};

struct line_conn {
	struct front_conn conn; /* first */
	enum line_command command;
	uint64_t tag, offset;
	uint32_t length;
	char text[LINE_MAX];
};

/* ---- the handshake */

static size_t greet(struct front_visit *v, uint8_t *out)
{
	return (size_t)sprintf((char *)out, "weir line\n");
}

static size_t put_error(uint8_t *out, int error)
{
	return (size_t)sprintf((char *)out, "error %d\n", -error);
}

static size_t list(struct front_visit *v, uint8_t *out, size_t room)
{
	const char *name, *about;
	size_t n = 0;

	for (size_t i = 0; room - n > LINE_MAX && (name = front_list(v, i, &about)); i++)
		n += (size_t)sprintf((char *)out + n, "%.255s\n", name);
	return n + (size_t)sprintf((char *)out + n, "ok\n");
}

static enum front_hello use(struct line_visit *v, uint8_t *out, size_t *made)
{
	bool bare = v->visit.tls_required && !v->visit.stream.tls;
	struct front_place place;
	int rc = bare || v->visit.denied ? -EACCES : front_find(&v->visit, v->line + 4, &place);

	if (rc == 0)
		rc = front_enter(&v->visit);
	v->waits = rc == -EAGAIN;
	if (v->waits)
		return FRONT_HELLO_WAIT;
	v->n = 0;
	*made = rc < 0 ? put_error(out, rc)
		       : (size_t)sprintf((char *)out, "ok %" PRIu64 "\n", place.size);
	if (rc < 0)
		return FRONT_HELLO_MORE;
	v->visit.name = v->line + 4;
	return FRONT_HELLO_READY;
}

static enum front_hello handle_line(struct line_visit *v, uint8_t *out, size_t room, size_t *made)
{
	if (strncmp(v->line, "USE ", 4) == 0)
		return use(v, out, made);
	v->n = 0;
	if (strcmp(v->line, "QUIT") == 0)
		return FRONT_HELLO_END;
	if (strcmp(v->line, "STARTTLS") == 0 && v->visit.tls_offered && !v->visit.stream.tls) {
		*made = (size_t)sprintf((char *)out, "ok\n");
		return FRONT_HELLO_TLS;
	}
	*made = strcmp(v->line, "LIST") == 0 ? list(&v->visit, out, room) : put_error(out, -EINVAL);
	return FRONT_HELLO_MORE;
}

static enum front_hello hello(struct front_visit *visit, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made)
{
	struct line_visit *v = container_of(visit, struct line_visit, visit);
	const uint8_t *end = n ? memchr(in, '\n', n) : NULL;
	size_t some = end ? (size_t)(end - in) : n;

	*used = *made = 0;
	if (v->waits)
		return use(v, out, made);
	if (v->n + some > LINE_MAX) {
		visit->fault = "a line is too long";
		return FRONT_HELLO_END;
	}
	if (some)
		memcpy(v->line + v->n, in, some);
	v->n += some;
	v->line[v->n] = '\0';
	*used = end ? some + 1 : some;
	return end ? handle_line(v, out, room, made) : FRONT_HELLO_MORE;
}

/* ---- requests */

static bool parse_line(struct line_conn *c, const char *line)
{
	char word[8];
	int at = 0;

	if (sscanf(line, "%7s %" SCNu64 " %n", word, &c->tag, &at) < 1)
		return false;
	for (c->command = 0; c->command < LINE_COMMANDS; c->command++)
		if (strcmp(word, words[c->command]) == 0)
			break;
	if (c->command == LINE_ECHO && at) {
		snprintf(c->text, sizeof(c->text), "%s", line + at);
		c->length = (uint32_t)strlen(c->text);
		return true;
	}
	if (c->command <= LINE_WRITE && at)
		return sscanf(line + at, "%" SCNu64 " %" SCNu32, &c->offset, &c->length) == 2;
	return c->command == LINE_QUIT;
}

static size_t parse(struct front_conn *conn, const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, '\n', n);
	char line[LINE_MAX + 1];

	if (!end || end - p > LINE_MAX)
		return 0;
	snprintf(line, sizeof(line), "%.*s", (int)(end - p), (const char *)p);
	if (parse_line(container_of(conn, struct line_conn, conn), line))
		conn->step = FRONT_BEGIN;
	else
		front_broken(conn, "not a request");
	return (size_t)(end - p) + 1;
}

/* Do the call: nothing is left to do, the text is complete. */
static void do_echo(struct request *q)
{
	front_called(q, 0);
}

static enum front_step begin_echo(struct line_conn *c)
{
	struct front_job *j = front_job_make(&c->conn, c->length);

	if (!j)
		return FRONT_BEGIN;
	memcpy(j->req.io.data, c->text, c->length);
	j->req.call = do_echo;
	front_submit(&c->conn, j, BACK_CALL);
	return FRONT_HEAD;
}

static enum front_step begin(struct front_conn *conn)
{
	struct line_conn *c = container_of(conn, struct line_conn, conn);
	bool write = c->command == LINE_WRITE;
	int error = 0;

	if (c->command == LINE_QUIT) {
		front_leave(conn);
		return FRONT_HEAD;
	}
	conn->request = (struct front_request){.cookie = c->tag,
		.command = (uint8_t)c->command,
		.offset = c->command == LINE_ECHO ? 0 : c->offset,
		.length = c->length,
		.whole = true};
	if (c->command != LINE_ECHO && (c->length > LENGTH_MAX || c->offset > conn->size ||
					       c->length > conn->size - c->offset))
		error = -EINVAL;
	if (write && conn->read_only)
		error = -EPERM;
	if (write && c->length)
		return front_begin_write(conn, error);
	if (error || c->length == 0)
		return front_answer(conn, error);
	return c->command == LINE_ECHO ? begin_echo(c) : front_begin_read(conn);
}

static void reply(struct gather *g, struct front_job *j)
{
	char *p = (char *)gather_room(g);
	int error = j->req.io.error;
	bool data = !error && j->command != LINE_WRITE;

	gather_written(g, (size_t)(error ? sprintf(p, "%" PRIu64 " error %d\n", j->cookie, -error)
					 : sprintf(p, "%" PRIu64 " ok %u\n", j->cookie,
						   data ? j->length : 0)));
	if (data)
		front_gather_data(g, j);
}

const struct front_ops front_line_ops = {
	.name = "line",
	.visit_size = sizeof(struct line_visit),
	.conn_size = sizeof(struct line_conn),
	.head_max = LINE_MAX + 1,
	.reply_max = 64,
	.greet = greet,
	.hello = hello,
	.parse = parse,
	.begin = begin,
	.reply = reply,
};
