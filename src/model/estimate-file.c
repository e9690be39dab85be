/* SPDX-License-Identifier: BSD-3-Clause */
/* estimate-file: read a profile. */
#include "base/yamldoc.h"
#include "model/estimate.h"

static const char *const top_keys[] = {
	"profile", "depth", "device", "error", "sizes", "read", "write", NULL};
static const char *const op_keys[] = {"inside", "work", NULL};
static const char *const row_keys[] = {"distance", "work", NULL};
static const char *const op_names[ESTIMATE_OPS] = {"read", "write"};

static int missing(yamldoc_node n, const char *key, struct weir_err *err)
{
	return yamldoc_error(n, err, "needs the key '%s'", key);
}

static int read_sizes(yamldoc_node root, struct estimate_measured *ret, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(root, "sizes");

	ret->n = yamldoc_size(list);
	if (yamldoc_kind(list) != YAMLDOC_LIST || ret->n < 1 || ret->n > ESTIMATE_SIZES)
		return yamldoc_error(root, err, "needs 'sizes', a list of 1 to %d", ESTIMATE_SIZES);
	for (size_t i = 0; i < ret->n; i++) {
		uint64_t bytes = 0;
		int rc = yamldoc_as_size(yamldoc_at(list, i), &bytes, err);

		if (rc == -EINVAL)
			return rc;
		if (bytes == 0 || bytes > UINT32_MAX || (i && bytes <= ret->size[i - 1]))
			return yamldoc_error(yamldoc_at(list, i), err,
				"sizes must grow, from 1 byte to below 4 GiB");
		ret->size[i] = (uint32_t)bytes;
	}
	return 0;
}

/* Read the work at each of the sizes. */
static int read_work(yamldoc_node row, struct estimate_measured *m, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(row, "work");

	if (yamldoc_kind(list) != YAMLDOC_LIST || yamldoc_size(list) != m->n)
		return yamldoc_error(
			row, err, "needs 'work', a time for each of the %zu sizes", m->n);
	for (size_t i = 0; i < m->n; i++) {
		weir_time ns = 0;
		int rc = yamldoc_as_time(yamldoc_at(list, i), &ns, err);

		if (rc == -EINVAL)
			return rc;
		if (ns <= 0)
			return yamldoc_error(yamldoc_at(list, i), err, "must be more than 0");
		m->work[i] = (double)ns;
	}
	return 0;
}

static int read_row(yamldoc_node n, bool last, struct estimate_measured *m, struct weir_err *err)
{
	uint64_t before = m->distance;
	int rc = yamldoc_map(n, row_keys, err);

	m->distance = UINT64_MAX;
	if (rc == 0)
		rc = yamldoc_optional(yamldoc_size_of(n, "distance", &m->distance, err));
	if (rc < 0)
		return rc;
	if (last && m->distance != UINT64_MAX)
		return yamldoc_error(n, err, "the last row is for any distance, and has none");
	if (!last && m->distance == UINT64_MAX)
		return missing(n, "distance", err);
	if (before != UINT64_MAX && m->distance <= before)
		return yamldoc_error(n, err, "distances must grow");
	return read_work(n, m, err);
}

static int read_inside(yamldoc_node op, struct estimate_inside *ret, struct weir_err *err)
{
	static const char *const keys[] = {"p50", "p99", "p99.9", "max", NULL};
	double *to[] = {&ret->p50, &ret->p99, &ret->p999, &ret->max};
	yamldoc_node n = yamldoc_get(op, "inside");
	int rc = n.id ? yamldoc_map(n, keys, err) : 0;

	for (int i = 0; rc == 0 && n.id && keys[i]; i++) {
		weir_time ns = 0;

		rc = yamldoc_optional(yamldoc_time(n, keys[i], &ns, err));
		*to[i] = (double)ns;
	}
	return rc;
}

static int read_op(yamldoc_node root, unsigned op, struct estimate_measured *m, struct estimate *to,
	struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(root, op_names[op]), rows = yamldoc_get(n, "work");
	int rc = n.id ? yamldoc_map(n, op_keys, err) : missing(root, op_names[op], err);

	if (rc == 0)
		rc = read_inside(n, &to->inside[op], err);
	if (rc < 0)
		return rc;
	to->n_rows[op] = (unsigned)yamldoc_size(rows);
	if (yamldoc_kind(rows) != YAMLDOC_LIST || to->n_rows[op] < 1 ||
		to->n_rows[op] > ESTIMATE_ROWS)
		return yamldoc_error(n, err, "needs 'work', a list of 1 to %d rows", ESTIMATE_ROWS);
	m->distance = UINT64_MAX;
	for (unsigned i = 0; rc == 0 && i < to->n_rows[op]; i++) {
		rc = read_row(yamldoc_at(rows, i), i + 1 == to->n_rows[op], m, err);
		if (rc == 0)
			estimate_fill(m, &to->row[op][i]);
	}
	return rc;
}

static int read_root(yamldoc_node root, struct estimate *ret, struct weir_err *err)
{
	struct estimate_measured m = {0};
	struct estimate e = {0};
	int64_t version = 0, depth = 0;
	int rc = yamldoc_map(root, top_keys, err);

	if (rc == 0)
		rc = yamldoc_int(root, "profile", 1, 1, &version, err);
	if (rc == -ENOENT)
		return yamldoc_error(root, err, "is no profile: it has no 'profile: 1'");
	if (rc == 0)
		rc = yamldoc_int(root, "depth", 1, 1 << 20, &depth, err);
	if (rc == -ENOENT)
		return missing(root, "depth", err);
	if (rc == 0)
		rc = yamldoc_optional(yamldoc_size_of(root, "device", &e.device_size, err));
	if (rc == 0)
		rc = yamldoc_optional(yamldoc_count(root, "error", &e.error, err));
	if (rc == 0 && !(e.error >= 0 && e.error <= 10))
		return yamldoc_error(
			yamldoc_get(root, "error"), err, "must be a part from 0 to 10, as in 0.05");
	if (rc == 0)
		rc = read_sizes(root, &m, err);
	for (unsigned op = 0; rc == 0 && op < ESTIMATE_OPS; op++)
		rc = read_op(root, op, &m, &e, err);
	e.depth = (unsigned)depth;
	if (rc == 0)
		*ret = e;
	return rc;
}

int estimate_read(
	const char *text, size_t len, const char *name, struct estimate *ret, struct weir_err *err)
{
	struct yamldoc *doc;
	int rc = yamldoc_parse(text, len, name, &doc, err);

	if (rc < 0)
		return rc;
	rc = read_root(yamldoc_root(doc), ret, err);
	yamldoc_free(doc);
	return rc;
}
