/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of back ends: valid ones, and the messages about invalid ones. */
#include "serve/back-rig.h"

static void good(const char *name)
{
	struct weir_err err = {""};

	if (back_check(name, &err) < 0)
		FAIL("%s", err.text);
}

static void bad(const char *name, const char *text)
{
	struct weir_err err = {""}, again = {""};
	struct back_config config = {0};
	struct back *b = NULL;

	CHECK_INT(back_check(name, &err), -EINVAL);
	CHECK_STR(err.text, text);
	CHECK_INT(back_check(name, NULL), -EINVAL);
	CHECK_INT(
		back_open(name, &config, &b, &again), -EINVAL); /* opening returns the same error */
	CHECK_STR(again.text, text);
	CHECK(!b);
}

static void test_good(void)
{
	good("memory:1G");
	good("memory:512 MiB");
	good("memory:64G?most=2G");
	good("memory:64G?");
	good("file:not-there.img"); /* valid, and nothing is opened */
	good("file:/dev/sdz?direct=yes&threads=no");
	good("file:a?direct&read_only");
	good("file:with space:and colon");
	good("nbd://localhost/lun0");
	good("nbd+unix:///lun0?socket=/run/x.sock");
	good("model:array+memory:64G");
	good("model:ssd,latency=100us,channels=4+file:x");
	good("model:server,rate=10k+memory:1G");
	good("model:server,rate=10k iops,servers=4,service=fixed,bandwidth=1 GB/s+memory:1G");
	good("model:disk,order=clook,rpm=7200+nbd+unix:///?socket=x");
	good("model:array,disks=5,raid=raid0,cache=0+memory:1G");
}

#define KINDS "memory:, file:, nbd:, nbds:, nbd+unix:, nbds+unix:, model:"

static void test_unknown(void)
{
	bad("", ": a back end begins with one of " KINDS);
	bad("disk.img", "disk.img: a back end begins with one of " KINDS);
	bad("memry:1G", "memry:1G: there is no back end 'memry' (did you mean 'memory:'?)");
	bad("memory", "memory: there is no back end 'memory' (did you mean 'memory:'?)");
	bad("File:x", "File:x: there is no back end 'File' (did you mean 'file:'?)");
	bad("rbd:pool/image", "rbd:pool/image: there is no back end 'rbd' (did you mean 'nbd:'?)");
}

static void test_memory(void)
{
	bad("memory:", "memory:: needs a size, as in 'memory:1G'");
	bad("memory:?most=1G", "memory:?most=1G: needs a size, as in 'memory:1G'");
	bad("memory:0", "memory:0: the size must be between 1 byte and 64 TiB");
	bad("memory:65T", "memory:65T: the size must be between 1 byte and 64 TiB");
	bad("memory:1G?mots=1G", "memory:1G?mots=1G: unknown option 'mots' (did you mean 'most'?)");
	bad("memory:1G?most", "memory:1G?most: option 'most' needs a value: most=…");
	bad("memory:1G?most=1G&most=2G", "memory:1G?most=1G&most=2G: option 'most' is given twice");
}

static void test_model(void)
{
	bad("model:ssd", "model:ssd: needs a back end after a '+', as in 'model:ssd+memory:1G'");
	bad("model:ssd+", "model:ssd+: needs a back end after a '+', as in 'model:ssd+memory:1G'");
	bad("model:sdd+memory:1G",
		"model:sdd: \"sdd\": must be one of disk, array, ssd, server, disk-10k, "
		"array-small (did you mean ssd?)");
	bad("model:+memory:1G",
		"model:: \"\": must be one of disk, array, ssd, server, disk-10k, array-small");
	bad("model:ssd,chanels=4+memory:1G",
		"model:ssd,chanels=4: unknown option 'chanels' (did you mean 'channels'?)");
	bad("model:ssd,channels=0+memory:1G", "model:ssd,channels=0: channels: must be at least 1");
	bad("model:server,rate=1k,latency=1ms+memory:1G",
		"model:server,rate=1k,latency=1ms: latency, rate: only one of them may be given");
	bad("model:server,latency=0+memory:1G", "model:server,latency=0: latency: must be > 0");
	bad("model:server,rate=5 MB/s+memory:1G",
		"model:server,rate=5 MB/s: rate: \"5 MB/s\": must be in iops, as in '400 iops'");
	bad("model:server,service=fixd+memory:1G",
		"model:server,service=fixd: service: \"fixd\": must be one of exponential, "
		"fixed (did you mean fixed?)");
	bad("model:array,raid=raid6+memory:1G", "model:array,raid=raid6: raid: \"raid6\": must be "
						"one of raid0, raid5 (did you mean "
						"raid0?)");
	bad("model:ssd+memry:1G",
		"memry:1G: there is no back end 'memry' (did you mean 'memory:'?)");
	bad("model:server,servers=-1+memory:1G",
		"model:server,servers=-1: servers: \"-1\": must be between 0 and 4294967295");
}

int main(void)
{
	RUN(test_good);
	RUN(test_unknown);
	RUN(test_memory);
	RUN(test_model);
	return 0;
}
