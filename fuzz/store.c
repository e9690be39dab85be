/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read any bytes as an answer of etcd, as a line of its stream of changes, as the record of a version and as a token. An answer
 * that is accepted has keys within its space; a record that is accepted is written and read as the same.
 */
#include "fuzz.h"
#include "serve/versions/record.h"
#include "serve/member/token.h"
#include "serve/store/etcd-json.h"
#include <stdlib.h>
#include <string.h>

#define SPACE "weir/"

static void check_answer(const struct etcd_answer *a)
{
	for (size_t i = 0; i < a->n; i++) {
		MUST(a->keys[i].key && a->keys[i].value);
		MUST(((const char *)a->keys[i].value)[a->keys[i].length] == 0);
	}
}

static void answers(const json_t *root)
{
	struct etcd_fault fault;

	for (int kind = STORE_LIST; kind <= STORE_REVOKE; kind++) {
		struct etcd_answer a = {0};

		if (etcd_json_answer(SPACE, (enum store_kind)kind, root, &a) < 0)
			continue;
		MUST(a.result.n == a.n && a.result.keys == a.keys);
		check_answer(&a);
		etcd_answer_free(&a);
	}
	struct etcd_answer a = {0};

	if (etcd_json_watched(SPACE, root, &a) == 0) {
		check_answer(&a);
		etcd_answer_free(&a);
	}
	etcd_json_fault(root, &fault);
	MUST(strlen(fault.text) < sizeof(fault.text));
}

static void records(const char *text, size_t n)
{
	struct record r, again;
	char *written, *second;

	if (record_read(text, n, &r) < 0)
		return;
	MUST(r.number && r.tenants <= record_length(&r));
	written = record_write(&r);
	MUST(written && record_read(written, strlen(written), &again) == 0);
	second = record_write(&again);
	MUST(second && strcmp(written, second) == 0);
	free(written);
	free(second);
	record_free(&r);
	record_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	json_t *root = json_loadb((const char *)data, size, 0, NULL);
	const struct store_key key = {.key = TOKEN_KEY, .value = text, .length = size};
	const struct store_result found = {.keys = &key, .n = 1};
	struct weir_err err;
	struct token t;

	MUST(text != NULL);
	answers(root);
	records((const char *)data, size);
	if (token_read(text, "token", &t, &err) == 0) {
		MUST(t.cluster && t.id && t.store);
		token_check(&t, "store", &found, &err);
		token_free(&t);
	}
	json_decref(root);
	free(text);
	return 0;
}
