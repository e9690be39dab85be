/* SPDX-License-Identifier: BSD-3-Clause */
/* replay FOLDER: run a fuzz target once on every file of its corpus, so that bugs once found
 * stay fixed. make test does this, without clang's fuzzer. */
#include "fuzz.h"
#include <dirent.h>
#include <string.h>

static void give(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	long len;

	MUST(file && fseek(file, 0, SEEK_END) == 0);
	len = ftell(file);
	MUST(len >= 0);
	rewind(file);
	data = malloc((size_t)len ? (size_t)len
				  : 1); /* exact size, so that sanitizers see a read past the end */
	MUST(data && fread(data, 1, (size_t)len, file) == (size_t)len);
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)len);
	free(data);
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	char path[4096];
	int given = 0;

	MUST(folder);
	for (struct dirent *e; (e = readdir(folder));) {
		if (e->d_name[0] == '.')
			continue;
		MUST(snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name) < (int)sizeof(path));
		printf("%s\n", path);
		fflush(stdout);
		give(path);
		given++;
	}
	closedir(folder);
	MUST(given > 0);
	return 0;
}
