/* SPDX-License-Identifier: BSD-3-Clause */
/* fronts: the front ends by name. fronts.inc has one FRONT(name) per line, made by the build from the list in
 * serve/front/meson.build. */
#include "serve/gateway/gateway.h"
#include "serve/loop/stream.h"
#include "wire/address.h"
#include <errno.h>
#include <string.h>

#ifndef FRONTS_MORE
#define FRONTS_MORE /* hook for a test: tests/serve/front-example */
#endif

#define FRONT(name) extern const struct front_ops front_##name##_ops;
#include "serve/front/fronts.inc"
FRONTS_MORE
#undef FRONT

#define FRONT(name) &front_##name##_ops,
const struct front_ops *const gateway_fronts[] = {
#include "serve/front/fronts.inc"
	FRONTS_MORE NULL};

int gateway_front(const char *text, const struct front_ops **ret_ops, const char **ret_address,
	struct weir_err *err)
{
	const char *address = address_plain(text);
	size_t n = (size_t)(address - text);

	for (const struct front_ops *const *f = gateway_fronts; *f; f++)
		if (n == 0 ||
			(strlen((*f)->name) == n - 1 && memcmp((*f)->name, text, n - 1) == 0)) {
			*ret_ops = *f;
			*ret_address = address;
			return 0;
		}
	return weir_err_set(
		err, -EINVAL, "%.80s: there is no protocol '%.*s'", text, (int)n - 1, text);
}

int gateway_listen_check(const char *text, struct weir_err *err)
{
	const struct front_ops *ops;
	int rc = gateway_front(text, &ops, &text, err);

	return rc < 0 ? rc : stream_listen_check(text, err);
}
