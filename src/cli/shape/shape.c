/* SPDX-License-Identifier: BSD-3-Clause */
/* shape: `weir shape`, the machine shaper for links. */
#include "cli/serve/serve.h"
#include "cli/common/stay.h"
#include "serve/loop/stream.h"
#include "serve/shape/shaper.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct verb verb_shape;

enum { REPLACE, BESIDE, SSH, STATE, API, PIDFILE, LOG_LEVEL, LOG_JSON, N_OPTIONS };
static const struct opt options[] = {
	[REPLACE] = {"replace", 0, NULL,
		"take the place of a qdisc that is neither the kernel's nor the shaper's"},
	[BESIDE] = {"beside", 0, NULL, "run beside other programs on a device"},
	[SSH] = {"ssh-port", 0, "PORT", "of TCP, never shaped; 0: none (default: 22)"},
	[STATE] = {"state", 0, "FOLDER",
		"where the former state of devices is kept (default: " SHAPER_STATE ")"},
	[API] = {"api", 0, "ADDRESSES",
		"of the API with status and /metrics (default: " SHAPER_SOCKET ")"},
	[PIDFILE] = {"pidfile", 0, "FILE", "written when the shares hold, removed at the end"},
	[LOG_LEVEL] = {"log-level", 0, "LEVEL", "error, warning, info or debug; else the policy's"},
	[LOG_JSON] = {"log-json", 0, NULL, "log one JSON object per line"},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"run", "check", "clean", NULL};

/* The policy is wrong: 2. The system refuses: 1. */
static int shape_fail(int code, const struct weir_err *err)
{
	opts_fail(&verb_shape, "%s", err->text);
	return code == -EINVAL ? 2 : 1;
}

static int read_policy(
	void *arg, struct weir_policy **ret, char ret_digest[SHAPER_DIGEST], struct weir_err *err)
{
	struct serve_policy p;
	int r = serve_policy_read(arg, false, &p, err);

	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	serve_policy_digest(&p, ret_digest);
	free(p.text);
	*ret = p.policy;
	return 0;
}

/* ---- run */

struct running {
	const char *pidfile;
	int failed;
};

static void on_ready(void *arg)
{
	struct running *r = arg;
	struct weir_err err;

	r->failed = r->pidfile ? stay_pidfile(r->pidfile, &err) : 0;
	if (r->failed)
		opts_fail(&verb_shape, "%s", err.text);
}

static int run_shaper(char *path, struct shaper_options *o, int level, const char *const *values)
{
	struct running running = {values[PIDFILE], 0};
	struct weir_policy *p;
	struct weir_err err;
	struct shaper *s;
	int r = read_policy(path, &p, o->digest, &err);

	if (r < 0)
		return shape_fail(r, &err);
	stay_log(level, p, values[LOG_JSON]);
	o->reread = read_policy;
	o->reread_arg = path;
	r = shaper_new(p, o, &s, &err);
	if (r < 0)
		return shape_fail(r, &err);
	r = shaper_run(s, on_ready, &running);
	if (running.pidfile && !running.failed)
		unlink(running.pidfile);
	shaper_free(s);
	return r < 0 || running.failed ? 1 : 0;
}

static int run_main(char *path, struct shaper_options *o, const char *const *values)
{
	struct stay_list api = {0};
	int level = -1, status = stay_level(&verb_shape, values[LOG_LEVEL], &level);

	if (status < 0)
		status = stay_addresses(&verb_shape, "api",
			values[API] ? values[API] : SHAPER_SOCKET, stream_address_check, &api);
	o->api = api.words;
	o->n_api = api.n;
	if (status < 0)
		status = run_shaper(path, o, level, values);
	stay_list_free(&api);
	return status;
}

/* ---- check and clean */

static void print_finding(
	void *arg, enum shaper_finding finding, const char *what, const char *text)
{
	static const char *const words[] = {"", "note: ", "missing: "};

	printf("%s: %s%s\n", what, words[finding], text);
}

static int check_main(char *path, const struct shaper_options *o)
{
	struct weir_policy *p = NULL;
	struct weir_err err;
	char digest[SHAPER_DIGEST];
	int r = path ? read_policy(path, &p, digest, &err) : 0;

	if (r == 0)
		r = shaper_check(p, &o->guard, print_finding, NULL, &err);
	weir_policy_free(p);
	fflush(stdout);
	return r < 0 ? shape_fail(r, &err) : 0;
}

static int clean_main(const struct shaper_options *o)
{
	struct device_state state;
	struct weir_err err;
	struct tc t = {0};
	unsigned n = 0;
	int r = tc_open(&t, &err);

	if (r == 0 && (r = device_state_open(o->state, &state, &err)) == 0) {
		r = device_restore(&t, &state, &n, &err);
		device_state_close(&state);
	}
	tc_close(&t);
	if (r < 0)
		return shape_fail(r == -EINVAL ? -EIO : r, &err);
	printf("%u device%s given back\n", n, n == 1 ? "" : "s");
	return 0;
}

/* ---- the verb */

static int read_port(const char *text, uint16_t *ret)
{
	unsigned long port;
	char *end;

	if (!text)
		return -1;
	port = strtoul(text, &end, 10);
	if (*end || end == text || text[0] == '-' || port > 65535)
		return opts_fail(&verb_shape, "--ssh-port: must be a port, or 0");
	*ret = (uint16_t)port;
	return -1;
}

static int shape_main(const char *const *values, char **operands, int n)
{
	struct shaper_options o = {.state = values[STATE] ? values[STATE] : SHAPER_STATE,
		.guard = {.replace = values[REPLACE], .beside = values[BESIDE]},
		.ssh = SHAPER_SSH};
	const char *verb = n ? operands[0] : "";
	int status = read_port(values[SSH], &o.ssh);

	if (status >= 0)
		return status;
	if (strcmp(verb, "run") == 0)
		return n == 2 ? run_main(operands[1], &o, values)
			      : opts_fail(&verb_shape, "run needs one FILE");
	if (strcmp(verb, "check") == 0)
		return n <= 2 ? check_main(n == 2 ? operands[1] : NULL, &o)
			      : opts_fail(&verb_shape, "check takes one FILE");
	if (strcmp(verb, "clean") == 0)
		return n == 1 ? clean_main(&o) : opts_fail(&verb_shape, "clean takes no operands");
	return opts_fail(&verb_shape, "needs run, check or clean");
}

const struct verb verb_shape = {
	.name = "shape",
	.summary = "keep services' shares of this machine's links: run, check, clean",
	.usage = "run|check|clean [OPTION]... [FILE]",
	.options = options,
	.subverbs = subverbs,
	.run = shape_main,
};
