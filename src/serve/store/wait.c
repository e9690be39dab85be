/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/store/wait.h"
#include <string.h>

int store_wait_open(struct store_wait *w, const char *name, struct weir_err *err)
{
	int rc = loop_new(&w->loop);

	if (rc < 0)
		return weir_err_set(err, rc, "%s", strerror(-rc));
	rc = store_open(w->loop, name, &w->store, err);
	if (rc < 0)
		loop_free(w->loop);
	return rc;
}

void store_wait_close(struct store_wait *w)
{
	store_close(w->store);
	loop_stop(w->loop); /* the last tasks of the store */
	loop_run(w->loop);
	loop_free(w->loop);
}

int store_wait(struct store_wait *w)
{
	int rc = 0;

	while (rc == 0 && !w->done)
		rc = loop_run(w->loop);
	w->done = false;
	return rc < 0 ? weir_err_set(&w->err, rc, "%s", strerror(-rc)) : w->rc;
}

void store_wait_end(struct store_wait *w, int rc, const struct weir_err *err)
{
	w->done = true;
	w->rc = rc;
	if (rc < 0)
		w->err = *err;
	loop_stop(w->loop);
}
