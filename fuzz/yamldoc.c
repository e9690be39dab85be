/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any text as YAML: it is refused with a message, or every node of it can be visited and
 * read. */
#include "base/yamldoc.h"
#include "fuzz.h"
#include <string.h>

/* Aliases may expand to a million nodes; stop before that. */
#define MOST_NODES 20000

static void read_scalar(yamldoc_node n)
{
	struct weir_err err;
	struct weir_rate rate;
	weir_time time;
	uint64_t size;
	double count;

	if (yamldoc_as_count(n, &count, &err) == 0)
		MUST(count >= 0);
	if (yamldoc_as_time(n, &time, &err) == 0)
		MUST(time >= 0);
	if (yamldoc_as_rate(n, &rate, &err) == 0)
		MUST(rate.per_second >= 0);
	yamldoc_as_size(n, &size, &err);
}

static void walk(yamldoc_node n, int *seen)
{
	const char *key;
	char path[80];

	if (++*seen > MOST_NODES)
		return;
	MUST(strlen(yamldoc_path(n, path, sizeof(path))) < sizeof(path));
	MUST(yamldoc_place(n).line > 0 || yamldoc_kind(n) == YAMLDOC_NONE || *seen == 1);
	switch (yamldoc_kind(n)) {
	case YAMLDOC_NONE:
		break;
	case YAMLDOC_SCALAR:
		MUST(yamldoc_text(n));
		read_scalar(n);
		break;
	case YAMLDOC_LIST:
		for (size_t i = 0; i < yamldoc_size(n); i++)
			walk(yamldoc_at(n, i), seen);
		break;
	case YAMLDOC_MAP:
		for (size_t i = 0; i < yamldoc_map_size(n); i++) {
			yamldoc_node value = yamldoc_map_at(n, i, &key);
			int id = yamldoc_kind(value) == YAMLDOC_NONE
					 ? 0
					 : value.id; /* a null is absent */

			MUST(key && yamldoc_get(n, key).id == id);
			walk(value, seen);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_err err = {""};
	struct yamldoc *doc = NULL;
	int seen = 0;

	if (yamldoc_parse((const char *)data, len, "fuzz.yaml", &doc, &err) < 0) {
		MUST(!doc && err.text[0]);
		return 0;
	}
	walk(yamldoc_root(doc), &seen);
	yamldoc_free(doc);
	return 0;
}
