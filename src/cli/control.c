/* SPDX-License-Identifier: BSD-3-Clause */
/* control: `weir control`, the controller of a cluster. */
#include "serve/host/control.h"
#include "cli/serve/serve.h"
#include "cli/common/files.h"
#include "cli/common/stay.h"
#include "serve/loop/stream.h"
#include <weir/units.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct verb verb_control;

enum {
	JOIN,
	LOCAL,
	LEASE,
	LISTEN,
	API,
	TOKEN_FILE,
	NAME,
	PIDFILE,
	LOG_LEVEL,
	LOG_JSON,
	CHECK,
	NO_CONFINE,
	N_OPTIONS
};
static const struct opt options[] = {
	[JOIN] = {"join", 0, "TOKEN",
		"file with the cluster's token: tenants come from the store, and one controller is "
		"elected there"},
	[LOCAL] = {"local", 0, "FILE", "with --join: this machine's file, with the cluster"},
	[LEASE] = {"lease", 0, "TIME",
		"with --join: of the leader in the store, 2s to 60s; else 5s"},
	[LISTEN] = {"listen", 'l', "ADDRESSES",
		"tcp:HOST:PORT or unix:PATH, several by commas; else the policy's"},
	[API] = {"api", 0, "ADDRESSES",
		"of the API with status and /metrics; else the policy's, or none"},
	[TOKEN_FILE] = {"token-file", 0, "FILE",
		"file with the token for clients of the API on TCP"},
	[NAME] = {"name", 0, "NAME", "of this controller; else the machine's name"},
	[PIDFILE] = {"pidfile", 0, "FILE", "written when servers may connect, removed at the end"},
	[LOG_LEVEL] = {"log-level", 0, "LEVEL", "error, warning, info or debug; else the policy's"},
	[LOG_JSON] = {"log-json", 0, NULL, "log one JSON object per line"},
	[CHECK] = {"check", 0, NULL, "only check whether FILE is valid; open nothing"},
	[NO_CONFINE] = {"no-confine", 0, NULL, STAY_NO_CONFINE},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

static int control_fail(int code, const struct weir_err *err)
{
	opts_fail(&verb_control, "%s", err->text);
	return code == -EINVAL ? 2 : 1;
}

static int read_policy(
	const char *path, struct weir_policy **ret_policy, char **ret_text, struct weir_err *err)
{
	struct serve_policy p;
	int rc = serve_policy_read(path, false, &p, err);

	if (rc < 0)
		return rc == -ENOMEM ? rc : -EINVAL;
	*ret_text = p.text;
	*ret_policy = p.policy;
	return 0;
}

static int reread(void *arg, struct weir_policy **ret_policy, char **ret_text, struct weir_err *err)
{
	return read_policy(arg, ret_policy, ret_text, err);
}

static int run_control(struct control *l, const char *pidfile, bool confined)
{
	struct weir_err err;
	int rc = pidfile ? stay_pidfile(pidfile, &err) : 0;

	if (rc < 0)
		return control_fail(rc, &err);
	if (confined)
		stay_confine();
	rc = control_run(l);
	if (pidfile)
		unlink(pidfile);
	return rc < 0 ? 1 : 0;
}

static int check_only(char *path, struct weir_policy *p)
{
	struct weir_err err;
	int rc = control_check(p, &err);

	weir_policy_free(p);
	if (rc == 0)
		printf("%s: ok\n", path);
	return rc < 0 ? control_fail(rc, &err) : 0;
}

static int start_control(char *path, struct weir_policy *p, struct control_options *o, int level,
	const char *const *values)
{
	struct control *l;
	struct weir_err err;
	int status, rc;

	stay_log(level, p, values[LOG_JSON]);
	o->file = path;
	o->reader = files_read_beside;
	rc = control_new(p, o, &l, &err);
	if (rc < 0)
		return control_fail(rc, &err);
	status = run_control(l, values[PIDFILE], !values[NO_CONFINE]);
	control_free(l);
	return status;
}

static int control_file(char *path, struct control_options *o, int level, const char *const *values)
{
	struct weir_policy *p;
	struct weir_err err;
	int rc = read_policy(path, &p, &o->text, &err);

	if (rc < 0)
		return control_fail(rc, &err);
	if (values[CHECK]) {
		free(o->text);
		return check_only(path, p);
	}
	o->reread = reread;
	o->reread_arg = path;
	return start_control(path, p, o, level, values);
}

static int set_lease(const char *text, struct control_join *join)
{
	struct weir_err err;
	weir_time t;

	if (!text)
		return -1;
	if (weir_units_time(text, &t, &err) < 0 || t % WEIR_SEC || t < 2 * WEIR_SEC ||
		t > 60 * WEIR_SEC)
		return opts_fail(&verb_control, "--lease: must be whole seconds, from 2s to 60s");
	join->lease = (unsigned)(t / WEIR_SEC);
	return -1;
}

static int control_joined(struct control_options *o, int level, const char *const *values)
{
	struct serve_join *j;
	struct serve_policy p;
	struct control_join join = {0};
	struct weir_err err;
	char *path = (char *)values[LOCAL];
	int status = set_lease(values[LEASE], &join), rc;

	if (status >= 0)
		return status;
	rc = serve_join_control(values[JOIN], path, &j, &join, &p, &err);
	if (rc < 0)
		return control_fail(rc, &err);
	o->join = &join;
	o->text = p.text;
	if (values[CHECK]) {
		free(p.text);
		status = check_only(path, p.policy);
	} else {
		status = start_control(path, p.policy, o, level, values);
	}
	serve_join_free(j);
	return status;
}

static int control_main(const char *const *values, char **operands, int n)
{
	struct stay_list listen = {0}, api = {0};
	struct control_options o = {0};
	int level = -1, status;

	if (!values[JOIN] != !values[LOCAL])
		return opts_fail(&verb_control, "--join and --local go together");
	if (values[LEASE] && !values[JOIN])
		return opts_fail(&verb_control, "--lease goes with --join");
	if (n != (values[JOIN] ? 0 : 1))
		return opts_fail(
			&verb_control, values[JOIN] ? "--join takes no FILE" : "needs one FILE");
	status = stay_level(&verb_control, values[LOG_LEVEL], &level);
	if (status < 0 && values[LISTEN])
		status = stay_addresses(
			&verb_control, "listen", values[LISTEN], stream_address_check, &listen);
	if (status < 0 && values[API])
		status = stay_addresses(
			&verb_control, "api", values[API], stream_address_check, &api);
	o = (struct control_options){.name = values[NAME],
		.listen = listen.words,
		.n_listen = listen.n,
		.api = api.words,
		.n_api = api.n,
		.token_file = values[TOKEN_FILE]};
	if (status < 0)
		status = values[JOIN] ? control_joined(&o, level, values)
				      : control_file(operands[0], &o, level, values);
	stay_list_free(&listen);
	stay_list_free(&api);
	return status;
}

const struct verb verb_control = {
	.name = "control",
	.summary = "the controller of a cluster: place tenants' tokens where the demand is",
	.usage = "[OPTION]... FILE\n       weir control [OPTION]... --join TOKEN --local FILE",
	.options = options,
	.run = control_main,
};
