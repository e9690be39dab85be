/* SPDX-License-Identifier: BSD-3-Clause */
/* volume: `weir volume`, make, list, change and remove the volumes of a running gateway. */
#include "cli/common/remote.h"
#include "cli/view/table.h"
#include "cli/view/view.h"
#include <weir/units.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct verb verb_volume;

enum { SIZE, CLASS, FORCE, KEEP, OUTPUT, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[SIZE] = {"size", 's', "SIZE", "create: the size of the new file, such as 20GiB"},
	[CLASS] = {"class", 'c', "CLASS", "create, add, set: the volume's class; set: '' for none"},
	[FORCE] = {"force", 'f', NULL, "rm: disconnect its clients"},
	[KEEP] = {"keep", 'k', NULL, "rm: leave the file where it is"},
	[OUTPUT] = {"output", 'o', "FORMAT", "list: table (default) or json"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"create", "add", "list", "set", "grow", "rm", NULL};

#define LOOK_MS 500 /* between the two looks that give rates */

/* ---- changes */

static int print_uri(const json_t *j)
{
	const char *uri = json_string_value(json_object_get(j, "uri"));

	if (uri)
		printf("%s\n", uri);
	return 0;
}

/* Send a change with a body, which is taken; NULL: it has none. */
static int change(struct remote *r, const char *method, const char *name, json_t *body,
	const char *force, const char *keep)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char *path = remote_path("/v1/volumes/", name, "?force=", force ? "1" : NULL,
		force ? "&keep=" : "?keep=", keep ? "1" : NULL, NULL);
	json_t *j;
	int status = remote_ask(r, method, path, text, text ? strlen(text) : 0, &j);
	free(text);
	free(path);
	json_decref(body);
	if (status >= 0)
		return status;
	print_uri(j);
	json_decref(j);
	return 0;
}

static int create(struct remote *r, const char *const *values, char **words)
{
	return change(r, "PUT", words[1],
		json_pack("{s:s, s:s, s:s*}", "resource", words[0], "size", values[SIZE], "class",
			values[CLASS]),
		NULL, NULL);
}

static int add(struct remote *r, const char *const *values, char **words)
{
	return change(r, "PUT", words[1],
		json_pack("{s:s, s:s, s:s*}", "resource", words[0], "back", words[2], "class",
			values[CLASS]),
		NULL, NULL);
}

static int set(struct remote *r, const char *const *values, char **words)
{
	return change(r, "PATCH", words[0], json_pack("{s:s}", "class", values[CLASS]), NULL, NULL);
}

static int grow(struct remote *r, const char *const *values, char **words)
{
	return change(r, "PATCH", words[0], json_pack("{s:s}", "size", words[1]), NULL, NULL);
}

static int rm(struct remote *r, const char *const *values, char **words)
{
	return change(r, "DELETE", words[0], NULL, values[FORCE], values[KEEP]);
}

/* ---- list */

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

/* Give each volume its rate since the first look; both lists are sorted alike, with some that came or went. */
static void add_rates(const json_t *before, json_t *now)
{
	double span = number(now, "now_s") - number(before, "now_s");
	const json_t *old = json_object_get(before, "volumes");
	json_t *list = json_object_get(now, "volumes"), *v;
	json_t *by_name = json_object();
	size_t i;

	for (i = 0; i < json_array_size(old); i++) {
		json_t *one = json_array_get(old, i);

		json_object_set(by_name, json_string_value(json_object_get(one, "name")), one);
	}
	json_array_foreach(list, i, v)
	{
		const json_t *was =
			json_object_get(by_name, json_string_value(json_object_get(v, "name")));
		double more = number(v, "requests") - (was ? number(was, "requests") : 0);

		json_object_set_new(v, "rate",
			span > 0 && more >= 0 ? json_real((double)(int64_t)(more / span + 0.5))
					      : json_null());
	}
	json_decref(by_name);
}

static const char *text(const json_t *j, const char *key)
{
	const char *value = json_string_value(json_object_get(j, key));

	return value ? value : "-";
}

static void print_table(const json_t *j)
{
	static const char *const heads[] = {
		"VOLUME", "RESOURCE", "SIZE", "CLIENTS", "TENANT", "CLASS", "IOPS", "URI", NULL};
	const json_t *list = json_object_get(j, "volumes");
	struct table t;
	char size[32];

	table_begin(&t, heads, 1u << 2 | 1u << 3 | 1u << 6);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		double bytes = number(v, "size");

		table_cell(&t, "%s", text(v, "name"));
		table_cell(&t, "%s", text(v, "resource"));
		table_cell(&t, "%s",
			bytes > 0 ? weir_units_show_size((uint64_t)bytes, size, sizeof(size))
				  : "-");
		table_cell(&t, "%.0f", number(v, "clients"));
		table_cell(&t, "%s", text(v, "tenant"));
		table_cell(&t, "%s", text(v, "class"));
		table_cell(&t, "%.0f", number(v, "rate"));
		table_cell(&t, "%s",
			json_is_true(json_object_get(v, "open")) ? text(v, "uri") : "not open");
	}
	table_print(&t);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		const char *trouble = json_string_value(json_object_get(v, "trouble"));

		if (!trouble)
			continue;
		table_put_text(text(v, "name"), stdout);
		printf(": %s\n", trouble);
	}
	view_write_lines(j, "unserved", "not served", stdout);
	view_write_lines(j, "remarks", "remark", stdout);
}

static int list(struct remote *r, const char *const *values, char **words)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	json_t *before, *now;
	int status;

	if (values[OUTPUT] && strcmp(values[OUTPUT], "json") != 0 &&
		strcmp(values[OUTPUT], "table") != 0)
		return opts_fail(
			&verb_volume, "--output: '%s' is neither table nor json", values[OUTPUT]);
	status = remote_ask(r, "GET", "/v1/volumes", NULL, 0, &before);
	if (status >= 0)
		return status;
	nanosleep(&pause, NULL);
	status = remote_ask(r, "GET", "/v1/volumes", NULL, 0, &now);
	if (status < 0) {
		add_rates(before, now);
		if (values[OUTPUT] && strcmp(values[OUTPUT], "json") == 0) {
			json_dumpf(now, stdout, JSON_INDENT(2));
			putchar('\n');
		} else {
			print_table(now);
		}
		json_decref(now);
		status = 0;
	}
	json_decref(before);
	return status;
}

/* ---- the verb */

static const struct sub {
	const char *name, *operands;
	int n;
	unsigned needs, takes; /* options, by bit */
	int (*run)(struct remote *r, const char *const *values, char **words);
} subs[] = {
	{"create", "RESOURCE NAME", 2, 1u << SIZE, 1u << SIZE | 1u << CLASS, create},
	{"add", "RESOURCE NAME BACK", 3, 0, 1u << CLASS, add},
	{"list", "", 0, 0, 1u << OUTPUT, list},
	{"set", "NAME", 1, 1u << CLASS, 1u << CLASS, set},
	{"grow", "NAME SIZE", 2, 0, 0, grow},
	{"rm", "NAME", 1, 0, 1u << FORCE | 1u << KEEP, rm},
};
#define SUBS (sizeof(subs) / sizeof(*subs))

/* Return 0, or the exit status with the reason printed. */
static int check(const struct sub *s, const char *const *values, int n)
{
	if (n != s->n)
		return opts_fail(&verb_volume, "usage: weir volume %s %s", s->name, s->operands);
	for (int i = 0; i < SOCKET; i++) {
		if (values[i] && !(s->takes >> i & 1))
			return opts_fail(
				&verb_volume, "%s has no option --%s", s->name, options[i].name);
		if (!values[i] && s->needs >> i & 1)
			return opts_fail(&verb_volume, "%s needs --%s", s->name, options[i].name);
	}
	return 0;
}

static int volume_main(const char *const *values, char **operands, int n)
{
	struct remote *r = NULL;
	size_t i = 0;
	int status;

	while (n && i < SUBS && strcmp(subs[i].name, operands[0]) != 0)
		i++;
	if (!n || i == SUBS)
		return opts_fail(&verb_volume, "needs one of create, add, list, set, grow, rm");
	status = check(&subs[i], values, n - 1);
	if (status)
		return status;
	status = remote_of_options(&verb_volume, values + SOCKET, &r);
	if (status >= 0)
		return status;
	status = subs[i].run(r, values, operands + 1);
	remote_close(r);
	return status;
}

const struct verb verb_volume = {
	.name = "volume",
	.summary = "make, list, change and remove the volumes of a running gateway",
	.usage = "create RESOURCE NAME --size SIZE [--class CLASS]\n"
		 "       weir volume add RESOURCE NAME BACK [--class CLASS]\n"
		 "       weir volume list [-o json]\n"
		 "       weir volume set NAME --class CLASS\n"
		 "       weir volume grow NAME SIZE\n"
		 "       weir volume rm NAME [--force] [--keep]",
	.options = options,
	.subverbs = subverbs,
	.run = volume_main,
};
