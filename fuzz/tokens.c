/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a file of tokens: it is refused with a message, or every entry has a name, a role and an end. */
#include "serve/access/tokens.h"
#include "fuzz.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct tokens_list l;
	struct weir_err err = {""};

	if (tokens_parse((const char *)data, len, &l, &err) < 0) {
		MUST(err.text[0]);
		return 0;
	}
	MUST(l.n <= TOKENS_MOST);
	for (size_t i = 0; i < l.n; i++) {
		MUST(l.all[i].name[0] && memchr(l.all[i].name, 0, TOKENS_NAME));
		MUST(l.all[i].role >= POLICY_ROLE_READ && l.all[i].role <= POLICY_ROLE_ADMIN);
		MUST(l.all[i].end >= 0);
	}
	tokens_list_free(&l);
	return 0;
}
