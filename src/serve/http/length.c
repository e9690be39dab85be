/* SPDX-License-Identifier: BSD-3-Clause */
/* http-length: is the end of a request certain? */
#include "serve/http/impl.h"
#include <string.h>
#include <strings.h>

struct lengths {
	unsigned n;
	const char *wrong; /* NULL: nothing is */
};

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return true;
	return false;
}

static bool is_name(const char *text)
{
	return *text && !text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Return true if the name is not `says` but begins with it. */
static bool is_longer(const char *name, const char *says)
{
	return strncasecmp(name, says, strlen(says)) == 0 && name[strlen(says)];
}

/* A length that goes on in the next line ("Content-Length: 5", then " 0") is refused whatever the version of libmicrohttpd makes
 * of it: 0.9.75 appends the line to the name of the header, versions that read it as RFC 7230 says to the value, which is then
 * no number, or not "chunked"; others refuse it themselves. */
static enum MHD_Result count_length(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	static const char length[] = "Content-Length", coding[] = "Transfer-Encoding";
	struct lengths *l = arg;

	l->n += strcasecmp(key, length) == 0 || strcasecmp(key, coding) == 0;
	if (!is_name(key)) /* a proxy may take a part of it */
		l->wrong = "the name of a header contains a space or another character that no "
			   "name has\n";
	else if (is_longer(key, length) || is_longer(key, coding))
		l->wrong = "a length is continued on the next line\n";
	else if (strcasecmp(key, length) == 0 && !(value && is_number(value)))
		l->wrong = "Content-Length must be a number\n";
	else if (value && has_control(value))
		l->wrong = "a header contains a control character\n";
	return MHD_YES;
}

/* Check that the end of the body is certain. If not, the connection must be closed: a proxy in front may have used the
 * other of two lengths, and split the requests differently. Return 0, or the status of the refusal. */
unsigned http_length_check(struct MHD_Connection *c, const char **ret_why)
{
	const char *coding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Transfer-Encoding");
	struct lengths l = {0};

	MHD_get_connection_values(c, MHD_HEADER_KIND, count_length, &l);
	if (l.wrong) {
		*ret_why = l.wrong;
		return MHD_HTTP_BAD_REQUEST;
	}
	if (l.n > 1) {
		*ret_why = "more than one Content-Length or Transfer-Encoding is given\n";
		return MHD_HTTP_BAD_REQUEST;
	}
	if (coding && strcasecmp(coding, "chunked") != 0) {
		*ret_why = "Transfer-Encoding must be chunked\n";
		return MHD_HTTP_NOT_IMPLEMENTED;
	}
	return 0;
}
