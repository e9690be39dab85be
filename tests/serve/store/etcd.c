/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd: servers that answer nonsense or nothing, that forget, restart, and were restored; and users. */
#include "etcd-rig.h"
#include "store-rig.h"
#include "serve/store/store-impl.h"
#include <sys/epoll.h>
#include <sys/stat.h>

static struct loop *loop;
static struct etcd_rig rig;

static struct store *open_at(const char *url, const char *options)
{
	char name[256];
	struct weir_err err;
	struct store *s;

	snprintf(name, sizeof(name), "etcd:%s?prefix=test%s", url, options);
	if (store_open(loop, name, &s, &err) < 0)
		FAIL("%s", err.text);
	return s;
}

/* ---- a server that says the same to everything */

struct parrot {
	struct loop_fd listen, client;
	const char *text;
	char url[64];
};

static void parrot_says(struct loop_fd *f, uint32_t events)
{
	struct parrot *p = container_of(f, struct parrot, client);
	char ask[65536];

	if (read(f->fd, ask, sizeof(ask)) > 0 && !p->text)
		return;
	if (p->text)
		CHECK(write(f->fd, p->text, strlen(p->text)) >= 0 || errno == EPIPE);
	loop_remove(loop, f);
	close(f->fd);
	f->fd = -1;
}

static void parrot_meets(struct loop_fd *f, uint32_t events)
{
	struct parrot *p = container_of(f, struct parrot, listen);
	int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);

	if (p->client.fd >= 0) {
		close(fd);
		return;
	}
	p->client = (struct loop_fd){.fd = fd, .ready = parrot_says};
	CHECK_INT(loop_add(loop, &p->client, EPOLLIN), 0);
}

static void parrot_start(struct parrot *p, const char *text)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);

	*p = (struct parrot){.text = text, .client.fd = -1};
	p->listen.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	p->listen.ready = parrot_meets;
	CHECK(bind(p->listen.fd, (struct sockaddr *)&at, n) == 0 && listen(p->listen.fd, 8) == 0);
	CHECK(getsockname(p->listen.fd, (struct sockaddr *)&at, &n) == 0);
	snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	CHECK_INT(loop_add(loop, &p->listen, EPOLLIN), 0);
}

static void parrot_stop(struct parrot *p)
{
	if (p->client.fd >= 0) {
		loop_remove(loop, &p->client);
		close(p->client.fd);
	}
	loop_remove(loop, &p->listen);
	close(p->listen.fd);
}

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

static void refuses_nonsense(void)
{
	static const char *const answers[] = {"Hello\r\n", OK "", OK "hello", OK "[]", OK "{}",
		OK "{\"header\":{\"revision\":5}}", OK "{\"header\":{\"revision\":\"x\"}}",
		OK "{\"header\":{\"revision\":\"5\"},\"kvs\":7}",
		OK "{\"header\":{\"revision\":\"5\"},\"kvs\":[{\"key\":\"!!!!\"}]}",
		OK "{\"header\":{\"revision\":\"5\"},\"kvs\":[{\"key\":\"b3RoZXI=\"}]}",
		OK "{\"header\":{\"revision\":\"5\"},\"more\":true}",
		OK "{\"header\":{\"revision\":\"99999999999999999999999\"}}",
		"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n<html>",
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\n\r\n"};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct parrot p;
		struct store *s;
		struct answer a;

		parrot_start(&p, answers[i]);
		s = open_at(p.url, "&timeout=1s");
		a = list(loop, s, "");
		if (a.rc != -EPROTO && a.rc != -EAGAIN)
			FAIL("%s: %d", answers[i], a.rc);
		CHECK(strstr(a.err.text, p.url));
		if (i > 1)
			CHECK(strstr(a.err.text, "not the answer of etcd's API, version 3"));
		store_close(s);
		parrot_stop(&p);
	}
}

/* A server that takes a request and says nothing: a read is given up, a change may have been made. */
static void gives_silence_up(void)
{
	struct parrot p;
	struct store *s;
	struct answer a;
	weir_time begin = loop_clock();

	parrot_start(&p, NULL);
	s = open_at(p.url, "&timeout=1s");
	a = list(loop, s, "");
	CHECK_INT(a.rc, -EAGAIN);
	CHECK(loop_clock() - begin < 3 * WEIR_SEC);
	CHECK_INT(put_if(loop, s, "a", "b", 0).rc, -ETIMEDOUT);
	store_close(s);
	parrot_stop(&p);
}

static void goes_on_at_the_next(void)
{
	struct parrot p;
	char urls[160];
	struct store *s;

	parrot_start(&p, OK "hello");
	snprintf(urls, sizeof(urls), "%s,http://127.0.0.1:1,%s", p.url, rig.client);
	s = open_at(urls, "");
	CHECK_INT(list(loop, s, "").rc, 0);
	store_close(s);
	parrot_stop(&p);
}

static void says_that_none_answers(void)
{
	struct store *s = open_at("http://127.0.0.1:1,http://127.0.0.1:2", "&timeout=1s");
	struct answer a = put_if(loop, s, "a", "b", 0);

	CHECK_INT(a.rc, -EAGAIN); /* nothing was sent */
	CHECK(strstr(a.err.text, "store not reached: http://127.0.0.1:"));
	store_close(s);
}

/* ---- forgetting */

static int watched_rc;

static void watch_ended(void *arg, int rc, const struct store_event *e, size_t n, uint64_t revision,
	const struct weir_err *err)
{
	watched_rc = rc;
	if (rc == -ESTALE)
		loop_stop(loop);
}

static void run_etcdctl(const char *words)
{
	char command[256];

	snprintf(command, sizeof(command),
		"ETCDCTL_API=3 etcdctl --endpoints %s %s >/dev/null 2>&1", rig.client, words);
	CHECK(system(command) == 0);
}

static void watch_is_stale(struct store *s)
{
	watched_rc = 0;
	CHECK(s->ops->watch(s, "f/", 1, watch_ended, NULL) != NULL);
	loop_run(loop);
	CHECK_INT(watched_rc, -ESTALE);
}

static void etcd_forgets(void)
{
	struct store *s = open_at(rig.client, "");
	char words[64];
	uint64_t revision = 0;

	for (int i = 0; i < 5; i++)
		revision = put(loop, s, "f/a", "1", 0).result.revision;
	snprintf(words, sizeof(words), "compaction %llu", (unsigned long long)revision);
	run_etcdctl(words);
	watch_is_stale(s);
	store_close(s);
}

static void sqlite_forgets(void)
{
	char folder[] = "/tmp/weir-store-XXXXXX", name[64];
	struct weir_err err;
	struct store *s;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "sqlite:%s", folder);
	CHECK_INT(store_open(loop, name, &s, &err), 0);
	for (int i = 0; i < 1100; i += 50) {
		struct store_change c[50];
		char keys[50][16];
		struct store_request q = {.kind = STORE_TXN, .changes = c, .n_changes = 50};

		for (int k = 0; k < 50; k++) {
			snprintf(keys[k], sizeof(keys[k]), "f/%d", i + k);
			c[k] = (struct store_change){.key = keys[k], .value = ""};
		}
		CHECK(ask(loop, s, q).result.held);
		for (int k = 0; k < 50; k++)
			c[k].remove = true;
		CHECK(ask(loop, s, q).result.held);
	}
	watch_is_stale(s);
	store_close(s);
	rig_remove(folder);
}

static void replaces_a_damaged_database(void)
{
	char folder[] = "/tmp/weir-store-XXXXXX", name[64], path[64];
	struct weir_err err;
	struct store *s;
	FILE *f;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "sqlite:%s", folder);
	snprintf(path, sizeof(path), "%s/store.db", folder);
	f = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("no database ", f);
	fclose(f);
	CHECK_INT(store_open(loop, name, &s, &err), 0);
	CHECK(put_if(loop, s, "a", "b", 0).result.held);
	store_close(s);
	snprintf(path, sizeof(path), "%s/store.db.damaged", folder);
	CHECK(access(path, F_OK) == 0);
	rig_remove(folder);
}

/* ---- restarts */

static void follows_over_a_restart(void)
{
	struct store *s = open_at(rig.client, "");
	struct diary d;

	put(loop, s, "r/a", "1", 0);
	diary_start(&d, loop, s, "r/");
	diary_until(&d, "fresh r/a=1 ");
	rig_kill(&rig);
	d.until = NULL; /* until it is in trouble */
	loop_run(loop);
	CHECK_INT(d.troubles, 1);
	rig_run(&rig);
	rig_wait(&rig);
	put(loop, s, "r/a", "2", 0);
	diary_until(&d, "r/a=2 ");
	CHECK(!strstr(strstr(d.text, ";"), "fresh"));
	store_close(s);
}

/* Restored from an old backup: the answer says so, and all is read anew. */
static void notices_a_restored_store(void)
{
	struct store *s = open_at(rig.client, "&timeout=2s");
	struct diary d;
	struct answer a;

	for (int i = 0; i < 20; i++)
		put(loop, s, "o/a", "1", 0);
	diary_start(&d, loop, s, "o/");
	diary_until(&d, "fresh o/a=1 ");
	rig_kill(&rig);
	rig_remove(rig.folder);
	CHECK_INT(mkdir(rig.folder, 0700), 0);
	rig_run(&rig);
	rig_wait(&rig);
	do
		a = list(loop, s, "o/");
	while (a.rc == -EAGAIN);
	CHECK_INT(a.rc, -EPROTO);
	CHECK(strstr(a.err.text, "was it restored from a backup?"));
	a = list(loop, s, "o/");
	CHECK_INT(a.rc, 0);
	CHECK_INT(a.result.n, 0);
	put(loop, s, "o/b", "3", 0);
	diary_until(&d, "o/b=3 ");
	CHECK(strstr(strstr(d.text, ";"), "fresh"));
	store_close(s);
}

/* ---- users */

static void knows_users(void)
{
	char file[] = "/tmp/weir-secret-XXXXXX", options[128];
	int fd = mkstemp(file);
	struct store *s = open_at(rig.client, ""), *in;
	struct diary d;
	struct answer a;

	CHECK(write(fd, "secret\n", 7) == 7);
	close(fd);
	run_etcdctl("user add root:rooty");
	run_etcdctl("user grant-role root root");
	run_etcdctl("user add weir:secret");
	run_etcdctl("role add weir");
	run_etcdctl("role grant-permission weir --prefix=true readwrite test/");
	run_etcdctl("user grant-role weir weir");
	run_etcdctl("auth enable");
	a = list(loop, s, "");
	CHECK_INT(a.rc, -EACCES);
	CHECK(strstr(a.err.text, "state user= and password-file="));
	store_close(s);
	snprintf(options, sizeof(options), "&user=weir&password-file=%s", file);
	in = open_at(rig.client, options);
	put(loop, in, "u/a", "1", 0);
	diary_start(&d, loop, in, "u/");
	diary_until(&d, "fresh u/a=1 ");
	/* the token is of the process before: it is renewed */
	rig_kill(&rig);
	rig_run(&rig);
	rig_wait(&rig);
	put(loop, in, "u/a", "2", 0);
	diary_until(&d, "u/a=2 ");
	store_close(in);
	fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK(write(fd, "wrong", 5) == 5);
	close(fd);
	in = open_at(rig.client, options);
	a = list(loop, in, "");
	CHECK_INT(a.rc, -EACCES);
	CHECK(strstr(a.err.text, "authentication failed"));
	store_close(in);
	unlink(file);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	CHECK_INT(loop_new(&loop), 0);
	rig_start(&rig);
	RUN(refuses_nonsense);
	RUN(gives_silence_up);
	RUN(goes_on_at_the_next);
	RUN(says_that_none_answers);
	RUN(etcd_forgets);
	RUN(sqlite_forgets);
	RUN(replaces_a_damaged_database);
	RUN(follows_over_a_restart);
	RUN(notices_a_restored_store);
	RUN(knows_users);
	rig_stop(&rig);
	loop_stop(loop);
	loop_run(loop);
	loop_free(loop);
	return 0;
}
