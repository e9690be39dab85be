/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/experiment/out.h"
#include "cli/common/files.h"
#include "cli/view/out.h"
#include "base/no-memory.h"
#include "serve/page/page.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_experiment;

static int open_text(struct experiment_out_text *t)
{
	t->file = open_memstream(&t->text, &t->len);
	return t->file ? 0 : -ENOMEM;
}

/* Return 0, or -ENOMEM: something was not written. */
static int end_text(struct experiment_out_text *t)
{
	bool bad = !t->file || ferror(t->file);

	if (t->file)
		bad |= fclose(t->file) != 0;
	t->file = NULL;
	return bad ? -ENOMEM : 0;
}

static void begin_report(struct experiment_out *o, unsigned seeds)
{
	fprintf(o->report.file,
		"# Results\n\n"
		"The claims of the experiments and their results, written by\n"
		"`weir experiment run all %s --out DIR` of Weir %s. A band holds for any\n"
		"seed; ",
		o->command, WEIR_VERSION);
	if (seeds > 1)
		fprintf(o->report.file,
			"*ours* is the mean over %u seeds with its 95 %% interval, a verdict such "
			"as\n"
			"*8 of 10* the seeds whose value was in the band. ",
			seeds);
	else
		fputs("the verdicts and the column *ours* are those of this seed. ",
			o->report.file);
	fputs("If the column *paper*\nis empty, the claim is Weir's own.\n", o->report.file);
}

int experiment_out_open(struct experiment_out *o, const char *dir, uint64_t seed, unsigned seeds,
	bool live, struct weir_err *err)
{
	char path[PATH_MAX], more[24] = "";
	int r;

	*o = (struct experiment_out){.dir = dir};
	if (snprintf(path, sizeof(path), "%s/pictures", dir) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	r = files_make_dir(dir, err);
	if (r == 0)
		r = files_make_dir(path, err);
	if (r < 0)
		return r;
	if (seeds > 1)
		snprintf(more, sizeof(more), " --seeds %u", seeds);
	snprintf(o->command, sizeof(o->command), "--seed %llu%s%s", (unsigned long long)seed, more,
		live ? " --live" : "");
	if (open_text(&o->report) < 0 || open_text(&o->contents) < 0 || open_text(&o->sections) < 0)
		return no_memory(err);
	begin_report(o, seeds);
	return 0;
}

/* Of index.html, up to its table of contents; gets the version and the command. */
static const char page_head[] =
	"<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
	"<meta name=viewport content=\"width=device-width, initial-scale=1\">"
	"<title>Weir: experiments</title><link rel=stylesheet href=page.css>\n"
	"<style>.n { text-align: right; font-variant-numeric: tabular-nums; } .wide { overflow-x: "
	"auto; }"
	" td.ok { color: var(--good); } td.bad { color: var(--bad); font-weight: 600; }"
	" figure { display: inline-block; margin: .6rem .6rem 0 0; max-width: 100%%; "
	"vertical-align: top; }"
	" figure img { max-width: 100%%; background: #fff; border-radius: 6px; }"
	" figcaption { color: var(--muted); font-size: .85rem; } section { scroll-margin-top: "
	"4rem; }"
	" p { max-width: 90ch; }</style></head>\n"
	"<body><header><a class=brand href=\"#\">Weir</a><span class=muted>version %s, weir "
	"experiment run %s</span>"
	"</header><main><h2>Experiments</h2>\n";

/* Add the line of an experiment to the table of contents. */
static void add_contents(FILE *f, const struct experiment *e, const struct experiment_result *r)
{
	size_t missed = 0;

	for (size_t i = 0; i < e->n_claims; i++)
		missed += r->outcomes[i].judged && !experiment_held(r, i);
	fprintf(f, "<tr><td><a href=\"#%s\">%s</a></td><td>", e->id, e->id);
	experiment_html_text(e->source, f);
	fputs("</td><td>", f);
	experiment_html_text(e->title, f);
	fprintf(f, "</td><td class=n>%zu</td><td class=\"n %s\">%zu</td></tr>\n", r->judged,
		missed ? "bad" : "ok", missed);
}

static int draw_plot(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, size_t plot, struct weir_err *err)
{
	char dir[PATH_MAX], stem[256];
	int code;

	snprintf(dir, sizeof(dir), "%s/pictures", o->dir);
	code = experiment_plot(e, r, plot, dir, files_write, err);
	if (code < 0)
		return code;
	return out_draw(&verb_experiment, dir, experiment_stem(e, plot, stem, sizeof(stem)),
		&o->no_gnuplot, err);
}

int experiment_out_add(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, struct weir_err *err)
{
	char dir[PATH_MAX];
	int code = 0;

	for (size_t i = 0; code == 0 && i < e->n_runs; i++) {
		if (!r->runs[i])
			continue;
		if (snprintf(dir, sizeof(dir), "%s/data/%s/%s", o->dir, e->id, e->runs[i].name) >=
			(int)sizeof(dir))
			return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", o->dir);
		code = out_run(dir, "values", r->runs[i], err);
	}
	for (size_t i = 0; code == 0 && i < e->n_plots; i++)
		code = draw_plot(o, e, r, i, err);
	if (code < 0)
		return code;
	add_contents(o->contents.file, e, r);
	experiment_html(e, r, o->no_gnuplot ? NULL : "pictures", o->sections.file);
	fputc('\n', o->report.file);
	return experiment_markdown(e, r, o->no_gnuplot ? NULL : "pictures", o->report.file) < 0
		       ? no_memory(err)
		       : 0;
}

static int write_file(const struct experiment_out *o, const char *name, const void *text,
	size_t len, struct weir_err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", o->dir, name);
	return files_write(path, text, len, err);
}

/* Write index.html, and the style sheet that it shares with the gateway's page. */
static int write_page(const struct experiment_out *o, struct weir_err *err)
{
	struct experiment_out_text page = {0};
	int r = open_text(&page);

	if (r == 0) {
		fprintf(page.file, page_head, WEIR_VERSION, o->command);
		fprintf(page.file,
			"<section class=card><div class=wide><table><thead><tr><th>experiment</th>"
			"<th>source</th><th>title</th><th class=n>claims</th><th "
			"class=n>missed</th>"
			"</tr></thead><tbody>\n%s</tbody></table></div></section>\n%s</main></"
			"body></html>\n",
			o->contents.text, o->sections.text);
		r = end_text(&page);
	}
	r = r < 0 ? no_memory(err) : write_file(o, "index.html", page.text, page.len, err);
	free(page.text);
	for (size_t i = 0; r == 0 && i < page_n_files; i++)
		if (strcmp(page_files[i].path, "/page.css") == 0)
			r = write_file(
				o, "page.css", page_files[i].text, page_files[i].length, err);
	return r;
}

int experiment_out_close(struct experiment_out *o, bool whole, struct weir_err *err)
{
	int r = end_text(&o->report);

	if (end_text(&o->contents) < 0 || end_text(&o->sections) < 0 || r < 0)
		r = no_memory(err);
	if (r == 0 && whole)
		r = write_file(o, "results.md", o->report.text, o->report.len, err);
	if (r == 0 && whole)
		r = write_page(o, err);
	free(o->report.text);
	free(o->contents.text);
	free(o->sections.text);
	return r;
}
