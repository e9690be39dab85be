/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-html: the claims of an experiment and their outcomes as a section of a page. */
#include "sim/experiment/experiment.h"
#include <stdio.h>
#include <string.h>

void experiment_html_text(const char *text, FILE *to)
{
	static const char special[] = "&<>\"'";
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (; *text; text++) {
		const char *at = strchr(special, *text);

		if (at)
			fputs(names[at - special], to);
		else
			fputc(*text, to);
	}
}

static void put_element(FILE *f, const char *open, const char *text, const char *close)
{
	fputs(open, f);
	experiment_html_text(text, f);
	fputs(close, f);
}

static void put_claim(
	FILE *f, const struct experiment *e, const struct experiment_result *r, size_t i)
{
	const struct experiment_claim *c = &e->claims[i];
	char text[EXPERIMENT_SHOWN];

	put_element(f,
		experiment_held(r, i) ? "<tr><td class=ok>" : "<tr class=miss><td class=bad>",
		experiment_verdict(r, i, text), "</td>");
	put_element(f, "<td>", c->what, "</td>");
	put_element(f, "<td class=n>", *c->paper ? c->paper : "–", "</td>");
	put_element(f, "<td class=n>", experiment_value(e, r, i, text), "</td>");
	put_element(f, "<td class=n>", experiment_band(e, r, i, text), "</td></tr>\n");
	if (!r->outcomes[i].known)
		put_element(f, "<tr><td></td><td colspan=4 class=muted>",
			r->outcomes[i].reason.text, "</td></tr>\n");
}

static void put_without(FILE *f, const struct experiment *e)
{
	for (size_t i = 0; i < e->n_without; i++) {
		const struct experiment_without *w = &e->without[i];

		put_element(f, "<p class=muted>Without ", w->mechanism, " these must miss: ");
		for (size_t k = 0, n = 0; k < e->n_claims; k++)
			if (w->claims[k])
				put_element(f, n++ ? "; <i>" : "<i>", e->claims[k].what, "</i>");
		fputs(".</p>\n", f);
	}
	if (e->no_mechanism)
		put_element(f, "<p class=muted>No mechanism to switch off: ", e->no_mechanism,
			".</p>\n");
}

static void put_pictures(FILE *f, const struct experiment *e, const char *pictures)
{
	char stem[256];

	for (size_t i = 0; i < e->n_plots; i++) {
		fprintf(f, "<figure><img loading=lazy src=\"%s/%s.svg\" alt=\"", pictures,
			experiment_stem(e, i, stem, sizeof(stem)));
		experiment_html_text(e->plots[i].title, f);
		put_element(f, "\"><figcaption>", e->plots[i].title, "</figcaption></figure>\n");
	}
}

void experiment_html(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, FILE *to)
{
	fprintf(to, "<section class=card id=\"%s\"><h2>", e->id);
	put_element(to, "", e->title, "</h2>\n<p class=muted>");
	put_element(to, "<code>", e->id, "</code>, ");
	put_element(to, "", e->source, "</p>\n");
	if (e->about)
		put_element(to, "<p>", e->about, "</p>\n");
	fputs("<div class=wide><table><thead><tr><th></th><th>claim</th><th class=n>paper</th><th "
	      "class=n>ours</th>"
	      "<th class=n>band</th></tr></thead><tbody>\n",
		to);
	for (size_t i = 0; i < e->n_claims; i++)
		if (r->outcomes[i].judged)
			put_claim(to, e, r, i);
	fputs("</tbody></table></div>\n", to);
	put_without(to, e);
	if (pictures)
		put_pictures(to, e, pictures);
	fputs("</section>\n", to);
}
