/* SPDX-License-Identifier: BSD-3-Clause */
/* content: differences of versions, also of those that are not a policy here. */
#include "test.h"
#include "serve/member/content.h"
#include <stdlib.h>
#include <string.h>

/* Return the differences of two texts, each line with a newline. */
static const char *differences(const char *from, const char *to)
{
	char *texts[2] = {strdup(from), strdup(to)};
	struct piece pieces[2] = {{.length = strlen(from)}, {.length = strlen(to)}};
	struct versions_text a = {
		{.number = 1, .name = (char[]){"a"}, .pieces = &pieces[0], .n_pieces = 1},
		texts[0]};
	struct versions_text b = {
		{.number = 2, .name = (char[]){"b"}, .pieces = &pieces[1], .n_pieces = 1},
		texts[1]};
	static char text[1000];
	struct gateway_note note = {0};

	text[0] = 0;
	content_differences(&a, &b, &note);
	for (size_t i = 0; i < note.n; i++) {
		strcat(text, note.lines[i]);
		strcat(text, "\n");
	}
	gateway_note_free(&note);
	free(texts[0]);
	free(texts[1]);
	return text;
}

static void servers_need_no_cluster(void)
{
	CHECK_STR(differences("- {name: a}\n", "- {name: a, servers: [s1]}\n"),
		"a: has other servers\n");
	CHECK_STR(differences("- {name: a, weight: 2, servers: [s1]}\n",
			  "- {name: a, servers: [s1]}\n"),
		"a.weight: 2 -> 1\n");
}

static void shows_text_that_is_no_policy(void)
{
	CHECK_STR(differences("- {name: a}\n- {name: b}\n", "- {name: a}\n- {nome: b}\n"),
		"- - {name: b}\n+ - {nome: b}\n");
	CHECK_STR(differences(
			  "- {nome: a}\n- {nome: b}\n", "- {nome: a}\n- {nome: c}\n- {nome: b}\n"),
		"+ - {nome: c}\n");
	CHECK_STR(differences("- {nome: a}\n- {nome: b}\n", "- {nome: b}\n"), "- - {nome: a}\n");
	CHECK_STR(differences("- {nome: a}\n- {nome: b}", "- {nome: a}"), "- - {nome: b}\n");
	CHECK_STR(differences("", "- {nome: a}"), "+ - {nome: a}\n");
	CHECK_STR(differences("- {nome: a}", "- {nome: a}"), "");
}

int main(void)
{
	RUN(servers_need_no_cluster);
	RUN(shows_text_that_is_no_policy);
	return 0;
}
