/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/member/content.h"
#include "base/no-memory.h"
#include "policy/override/override.h"
#include "serve/gateway/differences.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part { /* of a text: the file that a policy names */
	const char *text;
	size_t length;
};

static int read_part(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	const struct part *p = arg;

	if (!p->text)
		return weir_err_set(err, -EACCES, "%s: a stored policy names no file", name);
	*ret_text = strndup(p->text, p->length);
	if (!*ret_text)
		return no_memory(err);
	*ret_len = strlen(*ret_text);
	return 0;
}

/* The first line that is no comment begins a list. */
bool content_is_list(const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		size_t line = strcspn(text, "\n");

		text += strspn(text, " \t\r");
		if (*text == '-' && strncmp(text, "---", 3) != 0)
			return true;
		if (*text == '[')
			return true;
		if (*text && !strchr("#\n%-", *text))
			return false;
		line = strcspn(text, "\n");
		text += line + (text[line] ? 1 : 0);
		if (!text[0])
			break;
	}
	return false;
}

int content_parse_at(const char *local, const char *local_name, const char *text, size_t length,
	const char *name, struct weir_policy **ret_policy, struct weir_policy_remarks *ret_remarks)
{
	struct part part = {text, length};
	char *whole;
	int n = asprintf(&whole, "%s\ntenants: \"%s\"\n", local, name), rc;

	if (n < 0) {
		*ret_remarks = (struct weir_policy_remarks){.n_errors = 1};
		return no_memory(&ret_remarks->errors[0]);
	}
	rc = policy_parse_lab(
		whole, (size_t)n, local_name, false, read_part, &part, ret_policy, ret_remarks);
	free(whole);
	return rc;
}

int content_parse(const char *text, size_t length, size_t tenants, const char *name,
	struct weir_policy **ret_policy, struct weir_policy_remarks *ret_remarks)
{
	struct part part = {tenants ? text + length - tenants : NULL, tenants};

	if (content_is_list(text, length))
		return policy_parse_tenants(
			&(struct policy_text){text, length, name}, ret_policy, ret_remarks);
	return policy_parse_lab(
		text, length - tenants, name, false, read_part, &part, ret_policy, ret_remarks);
}

void content_sets(struct weir_policy *p, const struct record *r, double now)
{
	struct weir_err ignored;

	for (size_t i = 0; i < r->n_sets; i++)
		if (!record_ended(&r->sets[i], now))
			policy_override_set(p, r->sets[i].key, r->sets[i].value, &ignored);
}

int content_policy(
	const struct versions_text *v, struct weir_policy **ret_policy, struct weir_err *err)
{
	const struct record *r = &v->record;
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_policy *p;
	int rc;

	if (!remarks)
		return no_memory(err);
	rc = content_parse(v->text, record_length(r), r->tenants, r->name, &p, remarks);
	if (rc < 0)
		weir_err_set(err, rc, "version %llu: %s", (unsigned long long)r->number,
			remarks->errors[0].text);
	free(remarks);
	if (rc < 0)
		return rc;
	content_sets(p, r, 0);
	*ret_policy = p;
	return 0;
}

/* Values of keys that a policy alone does not have, such as those of resources, show in the lists. */
static void set_differences(
	const struct record *from, const struct record *to, struct gateway_note *note)
{
	for (size_t i = 0; i < to->n_sets; i++) {
		const struct record_set *s = &to->sets[i];
		size_t k = 0;

		while (k < from->n_sets && (strcmp(from->sets[k].key, s->key) != 0 ||
						   strcmp(from->sets[k].value, s->value) != 0 ||
						   from->sets[k].until != s->until))
			k++;
		if (k == from->n_sets)
			gateway_note_add(note, "set %s %s%s", s->key, s->value,
				s->until > 0 ? " (until its end)" : "");
	}
	for (size_t i = 0; i < from->n_sets; i++) {
		size_t k = 0;

		while (k < to->n_sets && strcmp(from->sets[i].key, to->sets[k].key) != 0)
			k++;
		if (k == to->n_sets)
			gateway_note_add(note, "unset %s (it was %s)", from->sets[i].key,
				from->sets[i].value);
	}
}

/* Skip the lines that two texts begin with. */
static void skip_same(const char **a, const char **b)
{
	size_t n = strcspn(*a, "\n");

	while (**a && n == strcspn(*b, "\n") && strncmp(*a, *b, n) == 0) {
		*a += n + ((*a)[n] == '\n');
		*b += n + ((*b)[n] == '\n');
		n = strcspn(*a, "\n");
	}
}

static bool is_line(const char *text, const char *at) /* at the beginning of one */
{
	return at == text || at[-1] == '\n';
}

static void note_lines(const char *at, const char *end, char sign, struct gateway_note *note)
{
	for (size_t n; at < end; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		gateway_note_add(note, "%c %.*s", sign, (int)n, at);
	}
}

/* List the lines from the first that differs to the last. */
static void text_differences(const char *from, const char *to, struct gateway_note *note)
{
	const char *from_end, *to_end;

	skip_same(&from, &to);
	from_end = from + strlen(from);
	to_end = to + strlen(to);
	while (from_end > from && to_end > to && from_end[-1] == to_end[-1]) {
		from_end--;
		to_end--;
	}
	if (!is_line(from, from_end) ||
		!is_line(to, to_end)) { /* to the end of the line that differs */
		from_end += strcspn(from_end, "\n");
		to_end += strcspn(to_end, "\n");
	}
	note_lines(from, from_end, '-', note);
	note_lines(to, to_end, '+', note);
}

void content_differences(
	const struct versions_text *from, const struct versions_text *to, struct gateway_note *note)
{
	struct weir_policy *a = NULL, *b = NULL;
	struct weir_err err;
	size_t before = note->n;

	set_differences(&from->record, &to->record, note);
	if (content_policy(from, &a, &err) < 0 || content_policy(to, &b, &err) < 0)
		text_differences(from->text, to->text, note);
	else
		gateway_note_changes(note, a, b, true);
	weir_policy_free(a);
	weir_policy_free(b);
	if (note->n == before && strcmp(from->text, to->text) != 0)
		gateway_note_add(note, "only comments, or the order or form of lines");
}
