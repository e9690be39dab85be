/* SPDX-License-Identifier: BSD-3-Clause */
/* record: `weir trace record`, record the requests of a running gateway as a trace. */
#include "cli/trace/trace.h"
#include "cli/view/progress.h"
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS 100000000 /* interval of the status queries */
#define LEASE                                                                                      \
	"10s" /* the gateway stops if it is not queried for this time: this program was killed */

static volatile sig_atomic_t ended;

static void on_end(int signal)
{
	ended = 1;
}

/* Return the file's name for the gateway. A bare name is in the gateway's folder for recordings; a
 * relative path becomes absolute, as the gateway has another working directory. */
static char *name_for_gateway(const char *path)
{
	char here[PATH_MAX], *text = NULL;

	if (path[0] == '/' || !strchr(path, '/'))
		return strdup(path);
	if (!getcwd(here, sizeof(here)) || asprintf(&text, "%s/%s", here, path) < 0)
		return NULL;
	return text;
}

int trace_record_start(struct remote *r, const char *name, const char *requests,
	const char *duration, char **ret_file)
{
	char *file = name_for_gateway(name);
	char *path = file ? remote_path("/v1/record?while=" LEASE "&file=", file,
				    "&requests=", requests, "&duration=", duration, NULL)
			  : NULL;
	json_t *j;
	int status = remote_ask(r, "POST", path, "", 0, &j);

	free(file);
	free(path);
	if (status < 0) {
		const char *there = json_string_value(json_object_get(j, "file"));

		*ret_file = strdup(there ? there : name);
		json_decref(j);
	}
	return status;
}

/* Wait until the recording is full, its time is over, or a signal arrives. */
static int wait_for_end(struct remote *r)
{
	struct progress p;
	bool on = true;
	int status = -1;

	progress_start(&p, "recorded", 0);
	while (on && !ended && status < 0) {
		json_t *j;
		process_pause(POLL_NS);
		if (ended)
			break;
		status = remote_ask(r, "GET", "/v1/record", NULL, 0, &j);
		if (status >= 0)
			break;
		on = json_is_true(json_object_get(j, "recording"));
		progress_tick(&p, json_number_value(json_object_get(j, "recorded")));
		json_decref(j);
	}
	progress_end(&p);
	return status;
}

static int stop_recording(struct remote *r, const char *file)
{
	json_int_t recorded, dropped;
	json_t *j;
	int status = remote_ask(r, "DELETE", "/v1/record", NULL, 0, &j);

	if (status >= 0)
		return status;
	recorded = json_integer_value(json_object_get(j, "recorded"));
	dropped = json_integer_value(json_object_get(j, "dropped"));
	json_decref(j);
	printf("%s: %lld request%s", file, (long long)recorded, recorded == 1 ? "" : "s");
	if (dropped)
		printf("; %lld more arrived too fast and were not recorded", (long long)dropped);
	putchar('\n');
	return 0;
}

int trace_record_run(
	const char *name, const char *requests, const char *duration, const char *const *at)
{
	struct sigaction action = {.sa_handler = on_end};
	struct remote *r;
	char *file = NULL;
	int status = remote_of_options(&verb_trace, at, &r);

	if (status >= 0)
		return status;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	status = trace_record_start(r, name, requests, duration, &file);
	if (status < 0)
		status = wait_for_end(r);
	if (status < 0)
		status = stop_recording(r, file ? file : name);
	free(file);
	remote_close(r);
	return status;
}
