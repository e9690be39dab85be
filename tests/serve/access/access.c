/* SPDX-License-Identifier: BSD-3-Clause */
/* access: roles of users, groups, certificates and tokens. */
#include "test.h"
#include "serve/access/access.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-access-XXXXXX";

static struct access *make(const struct policy_access *p, const char *token, const char *state)
{
	const struct access_config c = {.token_file = token, .policy = p, .state = state};
	struct access *a;
	struct weir_err err;

	CHECK_INT(access_new(&c, &a, &err), 0);
	return a;
}

/* Return the role of this process's peer on a unix socket. */
static enum policy_role role_of(const struct access *a, char name[80])
{
	struct access_who who;
	int pair[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	access_unix(a, pair[0], &who);
	close(pair[0]);
	close(pair[1]);
	snprintf(name, 80, "%s", who.name);
	return who.role;
}

static void users(void)
{
	char name[80], wanted[80];
	struct policy_access_client list[] = {{.user = "65533", .role = POLICY_ROLE_READ}};
	struct policy_access p = {.clients = list, .n_clients = 1};
	struct access *a = make(NULL, NULL, NULL);
	const struct access_config wrong = {.policy = &p};
	struct weir_err err;

	snprintf(wanted, sizeof(wanted), "uid %u", getuid());
	CHECK_INT(role_of(a, name), POLICY_ROLE_ADMIN); /* the socket's file decides */
	CHECK_STR(name, wanted);
	CHECK(!access_takes_tcp(a));
	access_free(a);
	/* the user of the server itself, whatever the rules say */
	a = make(&p, NULL, NULL);
	CHECK_INT(role_of(a, name), POLICY_ROLE_ADMIN);
	access_free(a);
	list[0] = (struct policy_access_client){.group = "no such group", .role = POLICY_ROLE_READ};
	CHECK_INT(access_new(&wrong, &a, &err), -EINVAL);
	CHECK(strstr(err.text, "there is no group 'no such group'"));
}

/* Connect as another user, with these groups, and hold the connection until the parent is done. */
static pid_t connect_as(const struct sockaddr_un *at, socklen_t len, const int done[2])
{
	const gid_t groups[] = {65531, 65530};
	pid_t child = fork();
	int fd;
	char c;

	if (child != 0)
		return child;
	close(done[1]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (setgroups(2, groups) < 0 || setgid(65531) < 0 || setuid(65533) < 0 ||
		connect(fd, (const struct sockaddr *)at, len) < 0)
		_exit(1);
	_exit(read(done[0], &c, 1) == 0 ? 0 : 1);
}

/* Another user has the role of the rule for it, or for one of its groups; without a rule none. */
static void others(void)
{
	static const struct {
		struct policy_access_client rule;
		enum policy_role role;
	} cases[] = {{{.user = "65533", .role = POLICY_ROLE_READ}, POLICY_ROLE_READ},
		{{.user = "65532", .role = POLICY_ROLE_READ}, POLICY_ROLE_NONE},
		{{.group = "65531", .role = POLICY_ROLE_OPERATE}, POLICY_ROLE_OPERATE},
		{{.group = "65530", .role = POLICY_ROLE_OPERATE}, POLICY_ROLE_OPERATE},
		{{.group = "65529", .role = POLICY_ROLE_OPERATE}, POLICY_ROLE_NONE}};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(at);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	if (geteuid() != 0)
		return;
	CHECK_INT(bind(listener, (struct sockaddr *)&at, sizeof(sa_family_t)), 0);
	CHECK_INT(listen(listener, 1), 0);
	CHECK_INT(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct policy_access_client rule = cases[i].rule;
		struct policy_access p = {.clients = &rule, .n_clients = 1};
		struct access *a = make(&p, NULL, NULL);
		struct access_who who;
		int done[2], fd, status;
		pid_t child;

		CHECK_INT(pipe2(done, O_CLOEXEC), 0);
		child = connect_as(&at, len, done);
		fd = accept(listener, NULL, NULL);
		access_unix(a, fd, &who);
		CHECK_INT(who.role, cases[i].role);
		CHECK_STR(who.name, "uid 65533");
		close(fd);
		close(done[0]);
		close(done[1]);
		CHECK(waitpid(child, &status, 0) == child || errno == ECHILD);
		access_free(a);
	}
	close(listener);
}

static void certificates(void)
{
	struct policy_access_client list[] = {
		{.cert = "*.ops.example.org", .role = POLICY_ROLE_OPERATE},
		{.cert = "chief.ops.example.org", .role = POLICY_ROLE_ADMIN}};
	struct policy_access p = {.clients = list, .n_clients = 2};
	struct access *a = make(&p, NULL, NULL);
	struct access_who who;

	access_cert(a, "anna.ops.example.org", &who);
	CHECK_INT(who.role, POLICY_ROLE_OPERATE);
	access_cert(a, "chief.ops.example.org", &who);
	CHECK_INT(who.role, POLICY_ROLE_ADMIN);
	CHECK_STR(who.name, "chief.ops.example.org");
	access_cert(a, "anna.example.org", &who);
	CHECK_INT(who.role, POLICY_ROLE_NONE);
	CHECK(access_takes_tcp(a));
	access_free(a);
}

static void tokens(void)
{
	char file[100], path[120], secret[TOKENS_SECRET], header[200];
	struct access_who who;
	struct access *a;
	struct weir_err err;
	FILE *f;

	snprintf(file, sizeof(file), "%s/one", folder);
	snprintf(path, sizeof(path), "%s/tokens", folder);
	f = fopen(file, "w");
	fputs("0123456789abcdef\n", f);
	fclose(f);
	a = make(NULL, file, folder);
	CHECK_INT(access_token(a, "Bearer 0123456789abcdef", &who, &err), 0);
	CHECK_INT(who.role, POLICY_ROLE_ADMIN);
	CHECK_INT(access_token(a, "Bearer 0123456789abcdeX", &who, &err), -EACCES);
	CHECK_INT(who.role, POLICY_ROLE_NONE);
	CHECK_INT(access_token(a, NULL, &who, &err), -EACCES);
	CHECK_INT(access_token(a, "Bearer", &who, &err), -EACCES);
	CHECK_INT(access_token(a, "Bearer ", &who, &err), -EACCES);
	CHECK_INT(tokens_add(path, "prom", POLICY_ROLE_READ, 0, secret, &err), 0);
	snprintf(header, sizeof(header), "bearer   %s", secret);
	CHECK_INT(access_token(a, header, &who, &err), 0);
	CHECK_INT(who.role, POLICY_ROLE_READ);
	CHECK_STR(who.name, "prom");
	CHECK_INT(tokens_remove(path, "prom", &err), 0);
	CHECK_INT(access_token(a, header, &who, &err), -EACCES);
	CHECK_INT(tokens_add(path, "old", POLICY_ROLE_ADMIN, 5, secret, &err), 0);
	snprintf(header, sizeof(header), "Bearer %s", secret);
	CHECK_INT(access_token(a, header, &who, &err), -EACCES);
	CHECK(strstr(err.text, "the token 'old' has ended on 1970-01-01"));
	access_free(a);
	unlink(path);
	unlink(file);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	RUN(users);
	RUN(others);
	RUN(certificates);
	RUN(tokens);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
