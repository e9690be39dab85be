/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch: libcurl tells which sockets and which time it waits for; the loop tells it when they come. */
#include "serve/store/fetch.h"
#include "base/container.h"
#include "base/list.h"
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct fetcher {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer;
	struct fetch *fetches;
};

struct fetch_socket {
	struct loop_fd fd;
	struct fetcher *of;
};

static void finish(struct fetch *f, CURLcode code);

/* Report the fetches that are done. Each report may start and cancel others. */
static void collect(struct fetcher *of)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(of->multi, &left))) {
		struct fetch *f = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&f);
		finish(f, m->data.result);
	}
}

static void socket_ready(struct loop_fd *fd, uint32_t events)
{
	struct fetch_socket *s = container_of(fd, struct fetch_socket, fd);
	struct fetcher *of = s->of; /* s may be freed by the call */
	int is = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		 (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		 (events & EPOLLERR ? CURL_CSELECT_ERR : 0),
	    running;

	curl_multi_socket_action(of->multi, fd->fd, is, &running);
	collect(of);
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct fetcher *of = arg;
	struct fetch_socket *s = of_socket;
	uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);

	if (what == CURL_POLL_REMOVE) {
		if (s)
			loop_remove(of->loop, &s->fd);
		free(s);
		return 0;
	}
	if (s) {
		loop_change(of->loop, &s->fd, events);
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -1; /* the fetch fails */
	s->fd = (struct loop_fd){.fd = fd, .ready = socket_ready};
	s->of = of;
	if (loop_add(of->loop, &s->fd, events) < 0) {
		free(s);
		return -1;
	}
	curl_multi_assign(of->multi, fd, s);
	return 0;
}

static void timer_due(struct loop_timer *t, weir_time now)
{
	struct fetcher *of = container_of(t, struct fetcher, timer);
	int running;

	curl_multi_socket_action(of->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(of);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct fetcher *of = arg;

	loop_set(of->loop, &of->timer, ms < 0 ? WEIR_NEVER : loop_clock() + ms * WEIR_MS);
	return 0;
}

int fetcher_new(struct loop *l, struct fetcher **ret_fetcher)
{
	struct fetcher *of = calloc(1, sizeof(*of));

	if (!of || !(of->multi = curl_multi_init())) {
		free(of);
		return -ENOMEM;
	}
	of->loop = l;
	of->timer.due = timer_due;
	curl_multi_setopt(of->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(of->multi, CURLMOPT_SOCKETDATA, of);
	curl_multi_setopt(of->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(of->multi, CURLMOPT_TIMERDATA, of);
	*ret_fetcher = of;
	return 0;
}

void fetcher_free(struct fetcher *of)
{
	if (!of)
		return;
	curl_multi_cleanup(of->multi);
	loop_set(of->loop, &of->timer, WEIR_NEVER);
	free(of);
}

/* ---- one fetch */

static size_t on_data(char *bytes, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;

	n *= size;
	f->full = !f->data(f, bytes, n);
	return f->full ? 0 : n;
}

static void leave(struct fetch *f)
{
	curl_multi_remove_handle(f->of->multi, f->curl);
	curl_easy_cleanup(f->curl);
	curl_slist_free_all(f->list);
	list_remove(f);
	f->curl = f->list = NULL;
	f->of = NULL;
}

static int code_of(const struct fetch *f, CURLcode code, bool sent)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return -EACCES;
	case CURLE_WRITE_ERROR:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_HTTP2:
	case CURLE_BAD_CONTENT_ENCODING:
		return -EPROTO;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_SSL_CONNECT_ERROR:
		return -ENOTCONN;
	default:
		return sent ? -ETIMEDOUT : -ENOTCONN;
	}
}

static void finish(struct fetch *f, CURLcode code)
{
	long status = 0;
	curl_off_t up = 0;
	char why[sizeof(f->why)];
	int rc;

	curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(f->curl, CURLINFO_SIZE_UPLOAD_T, &up);
	rc = code_of(f, code, up > 0);
	snprintf(why, sizeof(why), "%s",
		f->full     ? "the answer is too long, or not of this protocol"
		: f->why[0] ? f->why
			    : curl_easy_strerror(code));
	leave(f);
	f->done(f, rc, (unsigned)status, why);
}

void fetch_cancel(struct fetch *f)
{
	if (f->of)
		leave(f);
}

static long ms(weir_time t)
{
	return t == WEIR_NEVER ? 0 : (long)((t + WEIR_MS - 1) / WEIR_MS);
}

static bool add_header(struct fetch *f, const char *line)
{
	struct curl_slist *list = curl_slist_append(f->list, line);

	if (list)
		f->list = list;
	return list;
}

static bool add_headers(struct fetch *f)
{
	char line[2048];
	bool ok = add_header(f, "Content-Type: application/json") && add_header(f, "Expect:");

	for (size_t i = 0; ok && f->headers && f->headers[i]; i++)
		ok = add_header(f, f->headers[i]);
	if (ok && f->authorization) {
		ok = snprintf(line, sizeof(line), "Authorization: %s", f->authorization) <
			     (int)sizeof(line) &&
		     add_header(f, line);
		explicit_bzero(line, sizeof(line));
	}
	return ok;
}

static void set_options(struct fetch *f)
{
	CURL *c = f->curl;

	curl_easy_setopt(c, CURLOPT_URL, f->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_POST, 1L);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, f->body);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)f->length);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, f->list);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, ms(f->connect));
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ms(f->whole));
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPINTVL, 2L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->why);
	curl_easy_setopt(c, CURLOPT_PRIVATE, f);
	curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, (long)f->once);
	if (!f->tls)
		return;
	if (f->tls->ca) {
		curl_easy_setopt(c, CURLOPT_CAINFO, f->tls->ca);
		curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	}
	if (f->tls->cert)
		curl_easy_setopt(c, CURLOPT_SSLCERT, f->tls->cert);
	if (f->tls->key)
		curl_easy_setopt(c, CURLOPT_SSLKEY, f->tls->key);
}

int fetch_start(struct fetcher *to, struct fetch *f)
{
	_Static_assert(sizeof(f->why) >= CURL_ERROR_SIZE, "libcurl writes its reason there");

	f->why[0] = 0;
	f->full = false;
	f->list = NULL;
	f->curl = curl_easy_init();
	if (!f->curl || !add_headers(f))
		goto failed;
	set_options(f);
	f->of = to;
	list_push(to->fetches, f);
	if (curl_multi_add_handle(to->multi, f->curl) == CURLM_OK)
		return 0;
	leave(f);
	return -ENOMEM;
failed:
	curl_slist_free_all(f->list);
	curl_easy_cleanup(f->curl);
	f->curl = f->list = NULL;
	return -ENOMEM;
}
