/* SPDX-License-Identifier: BSD-3-Clause */
/* serve: `weir serve`, the gateway. */
#include "cli/serve/serve.h"
#include "serve/api/api.h"
#include "serve/gateway/gateway.h"
#include "serve/gateway/succeed.h"
#include "serve/host/cluster.h"
#include "serve/host/reports.h"
#include "serve/http/http.h"
#include "serve/member/member.h"
#include "serve/handover/store.h"
#include "serve/loop/log.h"
#include "cli/common/files.h"
#include "cli/common/stay.h"
#include "cli/common/verb.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

extern const struct verb verb_serve;

#define LISTEN_DEFAULT "tcp:127.0.0.1:10809" /* the protocol's port, on this machine only */
#define SOCKETS_MAX    64                    /* from systemd */

enum {
	LISTEN,
	API,
	API_MODE,
	TOKEN_FILE,
	STATE,
	RECORDINGS,
	THREADS,
	PIN,
	MEMORY,
	READ_ONLY,
	BARE,
	PIDFILE,
	REPLACE,
	LOG_LEVEL,
	LOG_JSON,
	CHECK,
	JOIN,
	LOCAL,
	NAME,
	LAB,
	NO_CONFINE,
	N_OPTIONS
};
static const struct opt options[] = {
	[LISTEN] = {"listen", 'l', "ADDRESSES",
		"unix:PATH or tcp:HOST:PORT, several by commas; else the policy's"},
	[API] = {"api", 0, "ADDRESSES", "of the API and /metrics, or 'none'; else the policy's"},
	[API_MODE] = {"api-mode", 0, "MODE", "of the API's unix sockets, octal (0660)"},
	[TOKEN_FILE] = {"token-file", 0, "FILE",
		"file with the token for clients of the API on TCP"},
	[STATE] = {"state", 0, "DIR",
		"folder for values of weir set and the ledger; else the policy's"},
	[RECORDINGS] = {"recordings", 0, "DIR",
		"folder for traces of weir trace record; else the policy's"},
	[THREADS] = {"threads", 't', "N",
		"threads of the data path; else the policy's, or one per core"},
	[PIN] = {"pin", 0, "CORES", "pin the threads to cores, in turn: 2 or 0,2-5"},
	[MEMORY] = {"memory", 0, "SIZE", "for the data of requests; else the policy's, or 1 GiB"},
	[READ_ONLY] = {"read-only", 'r', NULL, "no client may write"},
	[BARE] = {"bare", 0, NULL, "without gates: no policy is enforced; for benchmarks"},
	[PIDFILE] = {"pidfile", 0, "FILE", "written when clients may connect, removed at the end"},
	[REPLACE] = {"replace", 0, NULL,
		"take over from the gateway that runs with this state folder, if one does"},
	[LOG_LEVEL] = {"log-level", 0, "LEVEL", "error, warning, info or debug; else the policy's"},
	[LOG_JSON] = {"log-json", 0, NULL, "log one JSON object per line"},
	[CHECK] = {"check", 0, NULL, "only check whether FILE could be served; open nothing"},
	[JOIN] = {"join", 0, "TOKEN",
		"take the tenants from the cluster of this token (weir cluster init)"},
	[LOCAL] = {"local", 0, "FILE", "with --join: this machine's devices and listeners"},
	[NAME] = {"name", 0, "NAME", "with --join: of this member; else the machine's name"},
	[LAB] = {"lab", 0, NULL, "accept the policy's keys for experiments"},
	[NO_CONFINE] = {"no-confine", 0, NULL, STAY_NO_CONFINE},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

struct setup { /* from the command line */
	struct gateway_options gateway;
	struct stay_list listen, api;
	int cores[CPU_SETSIZE];
	int sockets[SOCKETS_MAX];
	size_t n_sockets;
	int api_sockets[SOCKETS_MAX];
	size_t n_api_sockets;
	struct record_fds stored; /* by the process before, in systemd's store */
	int level;                /* enum log_level; -1: the policy's */
	bool json;
	mode_t api_mode;
	struct serve_join *join; /* NULL: no member of a cluster */
};

/* ---- the command line */

/* Parse a list of cores: "2", "0,2-5". */
static int parse_cores(const char *text, struct setup *s)
{
	const char *p = text;

	do {
		char *end;
		unsigned long first = strtoul(p, &end, 10), last = first;

		if (!isdigit((unsigned char)*p))
			break;
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= CPU_SETSIZE)
			break;
		while (first <= last && s->gateway.n_cores < CPU_SETSIZE)
			s->cores[s->gateway.n_cores++] = (int)first++;
		p = end;
	} while (*p++ == ',');
	if (p[-1] != '\0' || p == text)
		return opts_fail(&verb_serve, "--pin: '%s' is not like 2 or 0,2-5", text);
	s->gateway.cores = s->cores;
	return -1;
}

static int parse_numbers(const char *const *values, struct setup *s)
{
	struct weir_err err;
	uint64_t memory = 0;
	int64_t threads = 0;

	if (values[THREADS] && (weir_units_int(values[THREADS], &threads, &err) < 0 ||
				       threads < 1 || threads > 1024))
		return opts_fail(&verb_serve, "--threads: must be from 1 to 1024");
	if (values[MEMORY] && weir_units_size(values[MEMORY], &memory, &err) < 0)
		return opts_fail(&verb_serve, "--memory: %s", err.text);
	if (values[MEMORY] && memory < 16 << 20)
		return opts_fail(&verb_serve, "--memory: must be at least 16 MiB");
	if (values[API_MODE]) {
		char *end;
		unsigned long mode = strtoul(values[API_MODE], &end, 8);

		if (!isdigit((unsigned char)values[API_MODE][0]) || *end || !mode || mode > 0777)
			return opts_fail(&verb_serve, "--api-mode: must be octal, such as 0660");
		s->api_mode = (mode_t)mode;
	}
	s->gateway.threads = (unsigned)threads;
	s->gateway.memory = memory;
	return stay_level(&verb_serve, values[LOG_LEVEL], &s->level);
}

/* Return -1, or the exit status. */
static int read_options(const char *const *values, struct setup *s)
{
	int status = parse_numbers(values, s);

	s->gateway.state = values[STATE];
	s->gateway.read_only = values[READ_ONLY];
	s->gateway.bare = values[BARE];
	if (status < 0 && values[PIN])
		status = parse_cores(values[PIN], s);
	if (status < 0 && values[LISTEN])
		status = stay_addresses(
			&verb_serve, "listen", values[LISTEN], gateway_listen_check, &s->listen);
	if (status < 0 && values[API] && strcmp(values[API], "none") != 0)
		status = stay_addresses(
			&verb_serve, "api", values[API], stream_address_check, &s->api);
	s->gateway.listen = s->listen.words;
	s->gateway.n_listen = s->listen.n;
	return status;
}

/*
 * Take over sockets on which systemd listens: those named "api" are for the API, all others for
 * clients.
 */
static int take_sockets(struct setup *s)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], STORE_NAME) == 0) {
			if (record_fds_add(&s->stored, fd) < 0)
				close(fd);
			free(names[i]);
			continue;
		}
		if (s->n_sockets + s->n_api_sockets == SOCKETS_MAX)
			return opts_fail(
				&verb_serve, "more than %d sockets from systemd", SOCKETS_MAX);
		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
			return opts_fail(
				&verb_serve, "systemd's socket %s is not listening", names[i]);
		/* sockets from systemd block, unless its unit says otherwise */
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		if (strcmp(names[i], "api") == 0)
			s->api_sockets[s->n_api_sockets++] = fd;
		else
			s->sockets[s->n_sockets++] = fd;
		free(names[i]);
	}
	free(names);
	s->gateway.sockets = s->sockets;
	s->gateway.n_sockets = s->n_sockets;
	return -1;
}

/* ---- serving */

static int serve_fail(int code, const struct weir_err *err)
{
	opts_fail(&verb_serve, "%s", err->text);
	return code == -EINVAL ? 2 : 1;
}

static int run_gateway(struct gateway *g, const char *pidfile, bool confined)
{
	struct weir_err err;
	int rc = pidfile ? stay_pidfile(pidfile, &err) : 0;

	if (rc < 0)
		return serve_fail(rc, &err);
	if (confined)
		stay_confine();
	rc = gateway_run(g);
	if (pidfile)
		unlink(pidfile);
	return rc < 0 ? 1 : 0;
}

/* Start the API. Return 0 and *ret_api NULL if it is switched off. */
static int start_api(const struct setup *s, struct gateway *g, const char *const *values,
	struct member *member, struct api **ret_api, struct weir_err *err)
{
	const struct weir_policy *p = gateway_policy(g);
	struct api_options o = {
		.addresses = s->api.n ? s->api.words : p->api,
		.n_addresses = s->api.n ? s->api.n : p->n_api,
		.sockets = s->api_sockets,
		.n_sockets = s->n_api_sockets,
		.token_file = values[TOKEN_FILE] ? values[TOKEN_FILE] : p->token,
		.mode = s->api_mode,
		.recordings = values[RECORDINGS] ? values[RECORDINGS] : p->recordings,
		.state = values[STATE] ? values[STATE] : p->state,
		.member = member,
	};

	*ret_api = NULL;
	if (values[API] && strcmp(values[API], "none") == 0)
		return 0;
	return api_start(g, &o, ret_api, err);
}

/* Another policy is in force. */
static void on_entered(void *arg, const struct weir_policy *p)
{
	const struct setup *s = arg;

	stay_log(s->level, p, s->json);
}

static const struct gateway_link *const links[] = {&link_to_peers, &link_to_cluster, NULL};

static int start_gateway(struct setup *s, struct serve_policy *p, const char *const *values)
{
	static const char *const usual[] = {LISTEN_DEFAULT};
	struct gateway *g;
	struct member *member = NULL;
	struct api *api = NULL;
	struct succession *succession = NULL;
	struct weir_err err;
	const char *bare;
	int rc, status;

	s->gateway.any_name = p->back_only;
	if (p->back_only && !s->gateway.n_listen && !s->gateway.n_sockets) {
		s->gateway.listen = usual;
		s->gateway.n_listen = 1;
	}
	s->json = values[LOG_JSON];
	s->gateway.links = links;
	s->gateway.entered = on_entered;
	s->gateway.entered_arg = s;
	stay_log(s->level, p->policy, s->json);
	rc = serve_policy_check(p->policy, &err);
	if (rc < 0) {
		weir_policy_free(p->policy);
		return serve_fail(rc, &err);
	}
	if (values[REPLACE] && !s->gateway.state && !p->policy->state) {
		weir_policy_free(p->policy);
		return opts_fail(&verb_serve,
			"--replace needs a state folder: both processes find each other there");
	}
	bare = serve_policy_bare_secret(p->policy, values[TOKEN_FILE]);
	if (bare)
		log_event(LOG_LEVEL_WARNING, "secret-readable", "file", bare, "why",
			"readable or writable by all users", NULL);
	rc = values[REPLACE]
		     ? succession_begin(s->gateway.state ? s->gateway.state : p->policy->state,
			       &succession, &err)
		     : 0;
	if (rc < 0) {
		weir_policy_free(p->policy);
		return serve_fail(rc, &err);
	}
	if (s->stored.n)
		succession_restart(&s->stored, &succession);
	rc = gateway_new(p->policy, p->text, p->name, &s->gateway, &g, &err);
	if (rc < 0) {
		succession_fail(succession, err.text);
		return serve_fail(rc, &err);
	}
	gateway_reader(g, files_read_beside, NULL);
	rc = s->join ? serve_join_start(s->join, g,
			       s->gateway.state ? s->gateway.state : gateway_policy(g)->state,
			       &member, &err)
		     : 0;
	if (rc == 0)
		rc = start_api(s, g, values, member, &api, &err);
	if (rc == 0 && succession)
		rc = succession_end(succession, g, &err);
	if (rc < 0)
		succession_fail(succession, err.text);
	status = rc < 0 ? serve_fail(rc, &err)
			: run_gateway(g, values[PIDFILE], !values[NO_CONFINE]);
	api_stop(api);
	member_stop(member);
	gateway_free(g);
	member_free(member);
	return status;
}

static int check_policy(struct serve_policy *p, const struct setup *s, const char *const *values)
{
	const struct access_config access = {
		.token_file = values[TOKEN_FILE] ? values[TOKEN_FILE] : p->policy->token,
		.policy = &p->policy->access,
		.state = values[STATE] ? values[STATE] : p->policy->state};
	struct weir_err err;
	int rc = serve_policy_check(p->policy, &err);
	const char *bare = serve_policy_bare_secret(p->policy, values[TOKEN_FILE]);

	for (size_t i = 0; rc == 0 && i < s->api.n; i++)
		rc = http_reach_check(s->api.words[i], p->policy->access.tls.cert, &err);
	if (rc == 0 && bare)
		rc = weir_err_set(&err, -EINVAL,
			"%s: readable or writable by all users; use chmod 600", bare);
	if (rc == 0 && !(values[API] && strcmp(values[API], "none") == 0))
		rc = access_check(&access, &err);
	if (rc == 0)
		printf("%s: ok\n", p->name);
	weir_policy_free(p->policy);
	return rc < 0 ? serve_fail(rc, &err) : 0;
}

/* Return -1, or the exit status. */
static int check_join(const char *const *values, int n)
{
	if (!values[JOIN] != !values[LOCAL])
		return opts_fail(&verb_serve, "--join and --local go together");
	if (values[NAME] && !values[JOIN])
		return opts_fail(&verb_serve, "--name goes with --join");
	if (values[JOIN] && (values[LAB] || n))
		return opts_fail(&verb_serve, "--join takes no FILE, and no --lab");
	return n == 1 || values[JOIN]
		       ? -1
		       : opts_fail(&verb_serve, "needs one FILE or back end, such as memory:1G");
}

static int serve_main(const char *const *values, char **operands, int n)
{
	static struct setup s;
	struct serve_policy p;
	struct weir_err err;
	int rc, status;

	status = check_join(values, n);
	if (status >= 0)
		return status;
	status = read_options(values, &s);
	if (status < 0 && !values[CHECK])
		status = take_sockets(&s);
	if (status < 0) {
		rc = values[JOIN] ? serve_join_read(values[JOIN], values[LOCAL], values[NAME],
					    values[STATE], values[CHECK], &s.join, &p, &err)
				  : serve_policy_read(operands[0], values[LAB], &p, &err);
		if (rc < 0) {
			status = serve_fail(rc == -ENOMEM || values[JOIN] ? rc : -EINVAL, &err);
		} else {
			serve_disks_hint(p.policy, stderr);
			status = values[CHECK] ? check_policy(&p, &s, values)
					       : start_gateway(&s, &p, values);
			free(p.text);
		}
	}
	serve_join_free(s.join);
	stay_list_free(&s.listen);
	stay_list_free(&s.api);
	return status;
}

const struct verb verb_serve = {
	.name = "serve",
	.summary = "stand between clients and their storage, and enforce the policy",
	.usage =
		"[OPTION]... FILE|BACKEND\n       weir serve [OPTION]... --join TOKEN --local FILE",
	.options = options,
	.run = serve_main,
};
