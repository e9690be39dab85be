/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-keys: `weir policy keys`, the settings of controllers, from their tables of keys. */
#include "cli/policy-verb.h"
#include "control/controller.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WIDTH  100
#define INDENT 8

/* Write "; "-separated values and default of a key, as "from 1 to 4, or none; default: 2". */
static char *show_values(const struct key *k, char *buf, size_t len)
{
	char bounds[128], otherwise[64];
	const char *is = k->shown ? k->shown : key_show_default(k, otherwise, sizeof(otherwise));

	key_show_bounds(k, bounds, sizeof(bounds));
	snprintf(buf, len, "%s%s%s%sdefault: %s", bounds, bounds[0] && k->zero ? ", or " : "",
		k->zero ? k->zero : "", bounds[0] || k->zero ? "; " : "", is);
	return buf;
}

static const char *help_of(const struct controller *c, const struct key *k)
{
	const struct key_help *h = c->help;

	while (h->key && strcmp(h->key, k->name) != 0)
		h++;
	return h->key ? h->text : "";
}

/* ---- for a terminal */

/* Copy POD text without its C<> and B<>. */
static void write_plain(const char *pod, char *to, size_t len)
{
	size_t n = 0;
	int open = 0;

	for (; *pod && n + 1 < len; pod++) {
		if (isupper((unsigned char)pod[0]) && pod[1] == '<') {
			open++;
			pod++;
		} else if (*pod == '>' && open) {
			open--;
		} else {
			to[n++] = *pod;
		}
	}
	to[n] = '\0';
}

static void write_wrapped(const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > WIDTH - INDENT) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%*s%.*s", column ? 1 : INDENT, "", (int)n, text);
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

static void write_key(const struct controller *c, const struct key *k)
{
	char text[2048], values[256];

	write_plain(help_of(c, k), text, sizeof(text));
	printf("  %s (%s)%s\n", k->name, show_values(k, values, sizeof(values)),
		k->lab      ? " [lab]"
		: k->beside ? " [beside controller]"
			    : "");
	write_wrapped(text);
}

/* ---- for the manual */

static void write_pod(const struct controller *c)
{
	char values[256];

	printf("=over\n\n");
	for (const struct key *k = c->keys; k->name; k++) {
		if (k->lab)
			continue;
		printf("=item B<%s>%s\n\n%s", k->name,
			k->beside ? " (of the resource, beside C<controller>)" : "", help_of(c, k));
		show_values(k, values, sizeof(values));
		printf(" (%c%s)\n\n", toupper((unsigned char)values[0]), values + 1);
	}
	printf("=back\n");
}

int policy_keys_show(const char *name, bool pod)
{
	size_t shown = 0;

	for (size_t i = 0; controllers[i]; i++) {
		const struct controller *c = controllers[i];

		if (name && strcmp(name, c->name) != 0)
			continue;
		if (pod) {
			write_pod(c);
		} else {
			printf("%s%s: %s\n", shown ? "\n" : "", c->name, c->summary);
			for (const struct key *k = c->keys; k->name; k++)
				write_key(c, k);
		}
		shown++;
	}
	return shown ? 0 : opts_fail(&verb_policy, "no controller '%s'", name);
}
