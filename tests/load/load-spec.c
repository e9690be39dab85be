/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of jobs. */
#include "load/load.h"
#include "test.h"
#include <errno.h>

static struct load_job job;
static struct weir_err err;
static char buffer[400];

static int parse(const char *text)
{
	load_job_default(&job);
	snprintf(buffer, sizeof(buffer), "%s", text);
	return load_job_parse(&job, buffer, &err);
}

static void uri_alone(void)
{
	CHECK_INT(parse("nbd+unix:///a?socket=/x,y.sock"), 0); /* a comma may belong to the path */
	CHECK_STR(job.uri, "nbd+unix:///a?socket=/x,y.sock");
	CHECK_STR(job.name, "load");
	CHECK_INT(job.connections, 1);
	CHECK_INT(job.sizes[0].bytes, 4096);
}

static void all_keys(void)
{
	CHECK_INT(parse("db=nbds://h:1/x,connections=3,depth=32,rate=5k iops,arrivals=even,"
			"size=4k:70,64k:30,reads=70%,fua=5,order=zipf:1.2,offset=1M,length=2M,"
			"flush-every=10,think=1ms,start=2s,duration=3s,requests=1k,warm-up=500ms,"
			"seed=7,structured,verify=yes,table=t,reconnect=9s,timeout=8s,tls-ca=a,"
			"tls-cert=b,tls-key=c,tls-psk=d"),
		0);
	CHECK_STR(job.name, "db");
	CHECK_STR(job.uri, "nbds://h:1/x");
	CHECK_INT(job.connections, 3);
	CHECK_INT(job.depth, 32);
	CHECK_NEAR(job.rate, 5000, 1e-9);
	CHECK(job.even && job.structured && job.verify);
	CHECK_INT(job.n_sizes, 2);
	CHECK_INT(job.sizes[1].bytes, 65536);
	CHECK_NEAR(job.sizes[1].share, 30, 1e-9);
	CHECK_NEAR(job.reads, 0.7, 1e-9);
	CHECK_NEAR(job.fua, 0.05, 1e-9);
	CHECK_INT(job.order, LOAD_ZIPF);
	CHECK_NEAR(job.zipf, 1.2, 1e-9);
	CHECK_INT(job.offset, 1 << 20);
	CHECK_INT(job.length, 2 << 20);
	CHECK_INT(job.flush_every, 10);
	CHECK_INT(job.think, WEIR_MS);
	CHECK_INT(job.start, 2 * WEIR_SEC);
	CHECK_INT(job.duration, 3 * WEIR_SEC);
	CHECK_INT(job.requests, 1000);
	CHECK_INT(job.warm_up, 500 * WEIR_MS);
	CHECK_INT(job.seed, 7);
	CHECK_STR(job.table, "t");
	CHECK_INT(job.reconnect, 9 * WEIR_SEC);
	CHECK_INT(job.timeout, 8 * WEIR_SEC);
	CHECK_STR(job.tls_ca, "a");
	CHECK_STR(job.tls_cert, "b");
	CHECK_STR(job.tls_key, "c");
	CHECK_STR(job.tls_psk, "d");
	CHECK_INT(parse("nbd://h/,verify,structured,depth=2"), 0);
	CHECK(job.verify && job.structured && job.depth == 2);
}

static void refused(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"http://h/", "is not a job"},
		{"=nbd://h/", "is not a job"},
		{"db=somewhere", "is not a job"},
		{"nbd://h/,dept=3", "no 'dept' (did you mean 'depth'?)"},
		{"nbd://h/,depth=", "depth: "},
		{"nbd://h/,depth=-1", "depth: '-1' is negative"},
		{"nbd://h/,depth=5G", "depth: '5G' is too large"},
		{"nbd://h/,reads=101", "reads: '101' is not a share"},
		{"nbd://h/,reads=x", "reads: 'x' is not a share"},
		{"nbd://h/,size=0", "size: "},
		{"nbd://h/,size=4k:0", "size: '0' is not a share"},
		{"nbd://h/,size=4k,,8k", "size: "},
		{"nbd://h/,size=8G", "size: '8G' is not the size of a request"},
		{"nbd://h/,order=sideways", "order: 'sideways'"},
		{"nbd://h/,order=zipf:x", "order: 'zipf:x'"},
		{"nbd://h/,rate=20 MiB/s", "is not a rate of requests"},
		{"nbd://h/,arrivals=odd", "'odd' is not even or poisson"},
		{"nbd://h/,verify=perhaps", "'perhaps' is not yes or no"},
		{"nbd://h/,duration=5", "duration: "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(parse(cases[i].text), -EINVAL);
		if (!strstr(err.text, cases[i].why))
			FAIL("%s: \"%s\" does not say \"%s\"", cases[i].text, err.text,
				cases[i].why);
	}
}

static void keys(void)
{
	for (size_t i = 0; load_keys[i]; i++) {
		load_job_default(&job);
		if (load_job_set(&job, load_keys[i], "\1", &err) == 0)
			CHECK(strncmp(load_keys[i], "t", 1) == 0); /* files: table, tls-… */
	}
}

int main(void)
{
	RUN(uri_alone);
	RUN(all_keys);
	RUN(refused);
	RUN(keys);
	return 0;
}
