/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: what this machine offers: io_uring, descriptors, clock, memory, and for links tc and BPF. */
#include "cli/doctor/doctor.h"
#ifdef WEIR_SHAPE
#include "serve/shape/shaper.h"
#endif
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#define BESIDE      1024 /* descriptors for clients, the API and the threads, beside those of volumes */
#define BUFFERS     ((uint64_t)1 << 30) /* the gateway's default `memory` */
#define CONNECTIONS 4                   /* of an NBD upstream, by default */
#define CLOCKS      "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static void check_ring(struct doctor *d)
{
	struct io_uring ring;
	struct utsname kernel;
	int rc = io_uring_queue_init(8, &ring, 0);

	if (rc == 0) {
		io_uring_queue_exit(&ring);
		uname(&kernel);
		doctor_say(d, DOCTOR_OK, "io_uring", NULL, "works, Linux %s", kernel.release);
		return;
	}
	doctor_say(d, DOCTOR_WARNING, "io_uring",
		rc == -EPERM    ? "allow it (sysctl kernel.io_uring_disabled, or the container's "
				  "seccomp profile)"
		: rc == -ENOMEM ? "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
				: NULL,
		"%s: files are served by threads, at several times the CPU time", strerror(-rc));
}

/* Return the descriptors that the policy's storage needs. */
static uint64_t files_needed(const struct weir_policy *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_resources; i++)
		n += p->resources[i].connections ? p->resources[i].connections : CONNECTIONS;
	for (size_t i = 0; i < p->n_exports; i++) {
		unsigned c = p->resources[p->exports[i].resource].connections;

		if (p->exports[i].back)
			n += strncmp(p->exports[i].back, "nbd", 3) != 0 ? 1 : c ? c : CONNECTIONS;
	}
	return n;
}

static void check_files(struct doctor *d)
{
	uint64_t needed = BESIDE + (d->policy ? files_needed(d->policy) : 0);
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	if (l.rlim_cur >= needed)
		doctor_say(d, DOCTOR_OK, "descriptors", NULL, "%llu may be open, in this shell",
			(unsigned long long)l.rlim_cur);
	else
		doctor_say(d, DOCTOR_WARNING, "descriptors",
			"raise the limit (ulimit -n; weir.service has 524288)",
			"%llu may be open in this shell, and volumes and clients may need %llu",
			(unsigned long long)l.rlim_cur, (unsigned long long)needed);
}

static void check_clock(struct doctor *d)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies"};
	struct timex t = {0};
	char source[64] = "";
	FILE *f = fopen(CLOCKS, "re");

	if (f && !fgets(source, sizeof(source), f))
		source[0] = '\0';
	if (f)
		fclose(f);
	source[strcspn(source, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++)
		if (strcmp(source, slow[i]) == 0)
			doctor_say(d, DOCTOR_WARNING, "clock",
				"use tsc, or the hypervisor's clock, if the machine has it",
				"the clock source %s takes microseconds to read, and requests are "
				"timed",
				source);
	if (adjtimex(&t) == TIME_ERROR)
		doctor_say(d, DOCTOR_NOTE, "clock", "start chrony or systemd-timesyncd",
			"the time of day is not synchronized: logs of several machines do not "
			"compare");
	else
		doctor_say(d, DOCTOR_OK, "clock", NULL, "synchronized, from %s",
			*source ? source : "the kernel");
}

static void check_memory(struct doctor *d)
{
	uint64_t want = d->policy && d->policy->buffers ? d->policy->buffers : BUFFERS;
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	if (!kib)
		return;
	if (kib << 10 < want && !d->served)
		doctor_say(d, DOCTOR_WARNING, "memory", "state a smaller `memory`",
			"%llu MiB are available, and the data of requests may take %llu MiB",
			kib >> 10, (unsigned long long)(want >> 20));
	else
		doctor_say(d, DOCTOR_OK, "memory", NULL, "%llu MiB are available", kib >> 10);
}

#ifdef WEIR_SHAPE
struct links {
	struct doctor *doctor;
	bool needed; /* the policy has links */
	unsigned fine;
};

static void say_link(void *arg, enum shaper_finding finding, const char *what, const char *text)
{
	struct links *l = arg;

	l->fine += finding == SHAPER_FINE;
	if (finding == SHAPER_FAULT || (finding == SHAPER_NOTE && l->needed))
		doctor_say(l->doctor,
			finding == SHAPER_FAULT && l->needed ? DOCTOR_ERROR : DOCTOR_NOTE, "links",
			NULL, "%s: %s", what, text);
}

static void check_links(struct doctor *d)
{
	const struct weir_policy *p = d->policy && d->policy->network ? d->policy : NULL;
	struct links l = {d, p, 0};
	struct device_guard guard = {0};
	struct weir_err err;

	if (shaper_check(p, &guard, say_link, &l, &err) < 0)
		doctor_say(d, p ? DOCTOR_ERROR : DOCTOR_NOTE, "links", NULL, "%s", err.text);
	else if (l.fine)
		doctor_say(d, DOCTOR_OK, "links", NULL,
			"%u mechanisms of the kernel work (weir shape check)", l.fine);
}
#else
static void check_links(struct doctor *d)
{
	if (d->policy && d->policy->network)
		doctor_say(d, DOCTOR_ERROR, "links", "build with libmnl, libbpf, clang and bpftool",
			"this program was built without weir shape");
}
#endif

void doctor_machine(struct doctor *d)
{
	check_ring(d);
	check_files(d);
	check_clock(d);
	check_memory(d);
	check_links(d);
}
