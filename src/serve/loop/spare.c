/* SPDX-License-Identifier: BSD-3-Clause */
/* spare: the remaining memory, by /proc/meminfo and the control groups above this process. */
#include "serve/loop/spare.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup"

/* Read the start of a small file as a string. */
static int slurp(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, room - 1);
	close(fd);
	if (n < 0)
		return -1;
	text[n] = '\0';
	return 0;
}

static uint64_t machine(void)
{
	char text[1024];
	const char *line;

	if (slurp("/proc/meminfo", text, sizeof(text)) < 0)
		return UINT64_MAX;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : UINT64_MAX;
}

static int number(const char *group, const char *file, uint64_t *ret)
{
	char path[1200], text[64], *end;

	snprintf(path, sizeof(path), GROUPS "%s/%s", group, file);
	if (slurp(path, text, sizeof(text)) < 0)
		return -1;
	*ret = strtoull(text, &end, 10);
	return end == text ? -1 : 0; /* "max": no limit */
}

/* Return the bytes of cached files, which the system frees when it must. */
static uint64_t group_cache(const char *group)
{
	char path[1200], text[4096];
	const char *active, *inactive;

	snprintf(path, sizeof(path), GROUPS "%s/memory.stat", group);
	if (slurp(path, text, sizeof(text)) < 0)
		return 0;
	inactive = strstr(text, "\ninactive_file ");
	active = strstr(text, "\nactive_file ");
	return (inactive ? strtoull(inactive + strlen("\ninactive_file "), NULL, 10) : 0) +
	       (active ? strtoull(active + strlen("\nactive_file "), NULL, 10) : 0);
}

static uint64_t group_left(const char *group)
{
	uint64_t most, now, cache;

	if (number(group, "memory.max", &most) < 0 || number(group, "memory.current", &now) < 0)
		return UINT64_MAX;
	cache = group_cache(group);
	now -= cache < now ? cache : now;
	return now < most ? most - now : 0;
}

uint64_t spare_memory(void)
{
	uint64_t left = machine();
	char text[1024], *group, *end;

	if (slurp("/proc/self/cgroup", text, sizeof(text)) < 0)
		return left;
	group = strstr(text, "0::/");
	if (!group)
		return left;
	group += strlen("0::");
	group[strcspn(group, "\n")] = '\0';
	for (;;) { /* every group up to the root, whose limits hold for all below */
		uint64_t here = group_left(strcmp(group, "/") == 0 ? "" : group);

		if (here < left)
			left = here;
		end = strrchr(group, '/');
		if (!end || end == group)
			break;
		*end = '\0';
	}
	return left;
}
