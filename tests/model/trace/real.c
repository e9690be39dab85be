/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real: recorded traces from elsewhere, if present beside the checkout (../shared/traces):
 * every file is read whole or refused as no trace, and the records agree with a second, simple
 * reader.
 */
#include "test.h"
#include "model/trace/trace.h"
#include <dirent.h>
#include <sys/stat.h>

static unsigned read_ones, refused_ones;

/* The same numbers by scanf, for the two formats present there. */
struct plain {
	size_t n, reads;
	unsigned long long bytes, extent, first, last;
};

static bool plain_line(const char *line, struct plain *p)
{
	unsigned long long at, device, sector, sectors, bytes;
	char type[20] = "";
	int op;
	if (sscanf(line, "%llu,0x%llx,%19s", &at, &bytes, type) == 3) {
		p->reads += strcmp(type, "DiskRead") == 0;
		p->bytes += bytes;
	} else if (sscanf(line, "%llu %llu %llu %llu %d", &at, &device, &sector, &sectors, &op) ==
		   5) {
		p->reads += op == 1;
		p->bytes += sectors * 512;
		if ((sector + sectors) * 512 > p->extent)
			p->extent = (sector + sectors) * 512;
	} else {
		return false;
	}
	if (p->n == 0 || at < p->first)
		p->first = at;
	if (at > p->last)
		p->last = at;
	p->n++;
	return true;
}

static void compare(const char *path, const struct trace *t, char *text)
{
	struct plain p = {0};
	struct trace_summary s;
	for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
		if (!plain_line(line, &p))
			FAIL("%s: read, but the line '%s' is unknown", path, line);
	trace_summarise(t, &s);
	CHECK_INT(t->bad_lines, 0);
	CHECK_INT(s.n, p.n);
	CHECK_INT(s.span, p.last - p.first);
	CHECK_INT(s.bytes, p.bytes);
	CHECK_INT(s.extent, p.extent);
	CHECK_NEAR(s.read_share * (double)s.n, (double)p.reads, 1e-9);
	CHECK(s.ca2 > 0 && s.sequential_share >= 0 && s.sequential_share <= 1);
	CHECK(s.peak_rate * (double)(s.span / WEIR_SEC + 1) >= (double)s.n);
}

static void one(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	CHECK(f && fstat(fileno(f), &st) == 0);
	char *text = malloc((size_t)st.st_size + 1);
	CHECK_INT(fread(text, 1, (size_t)st.st_size, f), st.st_size);
	text[st.st_size] = '\0';
	fclose(f);
	struct weir_err err;
	struct trace t;
	if (trace_read(text, (size_t)st.st_size, path, TRACE_AUTO, false, &t, &err) == 0) {
		if (t.format == TRACE_COMPACTOR || t.format == TRACE_MQSIM)
			compare(path, &t, text);
		read_ones++;
		trace_free(&t);
	} else {
		struct plain p = {0};
		if (plain_line(text, &p)) /* its first line is a trace's */
			FAIL("%s", err.text);
		CHECK(strstr(err.text, "not a trace"));
		refused_ones++;
	}
	free(text);
}

static void all_in(const char *folder)
{
	DIR *d = opendir(folder);
	CHECK(d);
	for (struct dirent *e; (e = readdir(d));) {
		char path[4096];
		struct stat st;
		if (e->d_name[0] == '.')
			continue;
		CHECK(snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path);
		CHECK(stat(path, &st) == 0);
		if (S_ISDIR(st.st_mode))
			all_in(path);
		else
			one(path);
	}
	closedir(d);
}

int main(void)
{
	/* beside the checkout; run from its top, or from a build folder in it */
	static const char *const folders[] = {"../shared/traces", "../../shared/traces"};
	const char *folder = NULL;
	struct stat st;

	for (unsigned i = 0; !folder && i < sizeof folders / sizeof *folders; i++)
		if (stat(folders[i], &st) == 0)
			folder = folders[i];
	if (!folder)
		SKIP("no recorded traces at ../shared/traces");
	all_in(folder);
	printf("%u traces read, %u other files refused\n", read_ones, refused_ones);
	CHECK(read_ones > 0);
	return 0;
}
