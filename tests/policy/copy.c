/* SPDX-License-Identifier: BSD-3-Clause */
/* copy: every string is copied (the original is freed before the copy is used), and every value. */
#include "policy/policy.h"
#include "policy/override/override.h"
#include "test.h"

static struct weir_policy *read_file(const char *name)
{
	static char text[65536];
	struct weir_policy *p;
	struct weir_err err;
	char path[512];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/data/policy/good/%s", TEST_SOURCE, name);
	f = fopen(path, "r");
	CHECK(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	if (weir_policy_parse(text, n, name, &p, &err) != 0)
		FAIL("%s", err.text);
	memset(text, '?', sizeof(text));
	return p;
}

static void test_every_key(void)
{
	struct weir_policy *p = read_file("every-key.yaml"), *a, *b;
	struct weir_err err;

	CHECK_INT(policy_copy(p, &a), 0);
	CHECK_INT(policy_copy(a, &b), 0);
	weir_policy_free(p);
	weir_policy_free(a);
	CHECK_STR(b->listen[0], "unix:/run/weir/nbd.sock");
	CHECK_STR(b->api[1], "tcp:127.0.0.1:9810");
	CHECK_STR(b->token, "/etc/weir/token");
	CHECK_STR(b->access.tls.cert, "api.pem");
	CHECK_STR(b->access.tokens, "tokens");
	CHECK_STR(b->access.audit, "audit.json");
	CHECK_INT(b->access.n_clients, 3);
	CHECK_STR(b->access.clients[0].user, "5");
	CHECK_STR(b->access.clients[1].group, "ops");
	CHECK_STR(b->access.clients[2].cert, "*.x");
	CHECK_INT(b->access.clients[2].role, POLICY_ROLE_ADMIN);
	CHECK(policy_access_same(&b->access, &b->access));
	CHECK_STR(b->state, "/var/lib/weir");
	CHECK_STR(b->tls.psk, "keys.psk");
	CHECK(b->tls.required && !b->enforce);
	CHECK_INT(b->threads, 4);
	CHECK_INT(b->buffers, 512LL << 20);
	CHECK_INT(b->log_level, WEIR_POLICY_LOG_DEBUG);
	CHECK_INT(b->log_form, WEIR_POLICY_LOG_JSON);
	CHECK_STR(b->resources[3].back, "nbds://array:10809/lun0");
	CHECK_STR(b->resources[3].tls.ca, "ca.pem");
	CHECK_INT(b->resources[3].connections, 2);
	CHECK_INT(b->resources[3].timeout, 30 * WEIR_SEC);
	CHECK_INT(b->resources[3].keep, 32LL << 20);
	CHECK(b->resources[3].read_only && b->resources[4].direct && b->resources[4].threads);
	CHECK_STR(b->exports[2].description, "for reading");
	CHECK(b->exports[2].read_only && !b->exports[1].read_only);
	CHECK_STR(b->tenants[0].match[0].path, "/a/[!b]*");
	CHECK_STR(b->tenants[0].match[1].client, "fd00::/8");
	CHECK_STR(b->tenants[0].max[0].at.file, "every-key.yaml");
	CHECK_STR(b->resources[3].back_at.file, "every-key.yaml");
	CHECK_STR(b->resources[0].capacity_at.file, "every-key.yaml");
	CHECK_STR(b->tenants[0].slo_at.file, "every-key.yaml");
	CHECK_STR(b->tenants[2].path, "u/v");
	CHECK_INT(policy_override_check(b, NULL, &err), 0);
	weir_policy_free(b);
}

static void test_everybody(void)
{
	struct weir_policy *p = read_file("empty.yaml"), *q;
	struct weir_who who = {.export_ = "any"};

	CHECK_INT(weir_policy_match(p, &who) < 0, 1);
	CHECK_INT(policy_copy_everybody(p), 0);
	CHECK_INT(policy_copy_everybody(p), 0); /* a second call changes nothing */
	CHECK_INT(p->n_tenants, 1);
	CHECK_INT(weir_policy_match(p, &who), 0);
	CHECK_INT(policy_override_check(p, NULL, NULL), 0);
	CHECK_INT(policy_copy(p, &q), 0);
	weir_policy_free(p);
	CHECK_INT(weir_policy_find(q, "everybody"), 0);
	weir_policy_free(q);
}

int main(void)
{
	RUN(test_every_key);
	RUN(test_everybody);
	return 0;
}
