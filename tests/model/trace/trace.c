/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: reading every format, bad lines, detection, sorting, writing, statistics. */
#include "test.h"
#include "model/trace/trace.h"
#include "base/rng.h"
#include <errno.h>

static struct weir_err err;

static struct trace good(const char *text, enum trace_format format)
{
	struct trace t;
	int code = trace_read(text, strlen(text), "t", format, false, &t, &err);
	if (code != 0)
		FAIL("%d: %s\n%s", code, err.text, text);
	return t;
}

static void refused(const char *text, enum trace_format format, const char *message)
{
	struct trace t = {.n = 77};
	memset(&err, 0, sizeof err);
	int code = trace_read(text, strlen(text), "t", format, false, &t, &err);
	if (code == 0)
		FAIL("not refused: %s", text);
	CHECK_INT(t.n, 77); /* outputs only on success */
	if (!strstr(err.text, message))
		FAIL("\"%s\" does not say \"%s\"", err.text, message);
}

static void check(const struct trace *t, size_t i, weir_time at, int op, uint64_t offset,
	uint32_t bytes, unsigned stream)
{
	CHECK(i < t->n);
	CHECK_INT(t->records[i].at, at);
	CHECK_INT(t->records[i].op, op);
	CHECK_INT(t->records[i].offset, offset);
	CHECK_INT(t->records[i].bytes, bytes);
	CHECK_INT(t->records[i].stream, stream);
}

/* ---- the formats, detected */

static void weir_format(void)
{
	struct trace t = good("# weir-trace 1\n"
			      "# a comment\n"
			      "100 R 4096 8192 7\n"
			      "\n"
			      "150 W 0 512 3\n"
			      "150 F 0 0 3\n"
			      "\t200  T 1048576 65536  7 \n"
			      "300 R 0 1\n",
		TRACE_AUTO);
	CHECK_INT(t.format, TRACE_WEIR);
	CHECK_INT(t.n, 5);
	CHECK(t.has_offsets && t.was_sorted && t.bad_lines == 0 && t.first_bad[0] == 0);
	check(&t, 0, 0, TRACE_READ, 4096, 8192, 0);
	check(&t, 1, 50, TRACE_WRITE, 0, 512, 1);
	check(&t, 2, 50, TRACE_FLUSH, 0, 0, 1);
	check(&t, 3, 100, TRACE_TRIM, 1048576, 65536, 0);
	check(&t, 4, 200, TRACE_READ, 0, 1, 2);
	trace_free(&t);
	CHECK(t.records == NULL && t.n == 0);
	t = good("5 R - 512 0\n6 F - 0\n", TRACE_AUTO);
	CHECK(!t.has_offsets);
	check(&t, 1, 1, TRACE_FLUSH, 0, 0, 1); /* no stream is a stream of its own, not 0 */
	trace_free(&t);
	refused("# weir-trace 2\n0 R 0 512 0\n", TRACE_AUTO, "t:1: version 2");
	refused("0 R 0 512 0\n1 F 0 512 0\n", TRACE_AUTO, "t:2: a flush has");
	refused("0 R 0 512 0\n1 X 0 512 0\n", TRACE_AUTO, "t:2: op: 'X' is not R, W, F or T");
	refused("0 R 0 512 0\n1 R 0 512 0 9\n", TRACE_AUTO, "t:2: too many fields, from '9' on");
	refused("0 R 0 512 0\n1 R 0\n", TRACE_AUTO, "t:2: bytes is missing");
}

static void compactor_format(void)
{
	struct trace t = good("564037000,0x00001000,DiskWrite\n564243000,0x00020000,DiskRead\n"
			      "564243001,ff,diskread",
		TRACE_AUTO);
	CHECK_INT(t.format, TRACE_COMPACTOR);
	CHECK_INT(t.n, 3);
	CHECK(!t.has_offsets);
	check(&t, 0, 0, TRACE_WRITE, 0, 4096, 0);
	check(&t, 1, 206000, TRACE_READ, 0, 131072, 0);
	check(&t, 2, 206001, TRACE_READ, 0, 255, 0);
	trace_free(&t);
	refused("1,0x10,DiskRead\n2,0x10,DiskErase\n", TRACE_AUTO, "t:2: type: neither");
	refused("1,0x10,DiskRead\n2,0xg,DiskRead\n", TRACE_AUTO,
		"t:2: bytes: '0xg' is not a number");
	refused("1,0x10,DiskRead\n2,0x11112222333344445,DiskRead\n", TRACE_AUTO, "is over");
	refused("1,0x10,DiskRead\n2,0x,DiskRead\n", TRACE_AUTO, "not a number");
	refused("1,0x10,DiskRead\n2,0x10\n", TRACE_AUTO, "t:2: the line ends too early");
	refused("1,0x10,DiskRead\n2 0x10,DiskRead\n", TRACE_AUTO, "t:2: a comma, not '0x10'");
}

static void mqsim_format(void)
{
	struct trace t = good("938513000 4 264719034 16 0\n938828000 3 197570570 32 1\n"
			      "938828000   4 0 1 1\n",
		TRACE_AUTO);
	CHECK_INT(t.format, TRACE_MQSIM);
	check(&t, 0, 0, TRACE_WRITE, UINT64_C(264719034) * 512, 8192, 0);
	check(&t, 1, 315000, TRACE_READ, UINT64_C(197570570) * 512, 16384, 1);
	check(&t, 2, 315000, TRACE_READ, 0, 512, 0); /* device 4 again, despite the blanks */
	trace_free(&t);
	refused("1 0 0 8 2\n", TRACE_AUTO, "t:1: op: 2 is neither");
	refused("1 0 0 8388608 0\n", TRACE_AUTO, "t:1: 8388608 sectors, over 4294967295 bytes");
	refused("1 0 36028797018963968 8 0\n", TRACE_AUTO, "lies beyond 2^63");
	refused("1 0 18014398509481983 8 0\n", TRACE_AUTO, "ends beyond 2^63");
}

static void msr_format(void)
{
	struct trace t = good("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n"
			      "128166372003061629,hm,1,Read,383496192,32768,413\n"
			      "128166372013061639,hm,0,Write,0,4096,1\n"
			      "128166372013061639, hm , 1 , write , 512, 4096, 1\n"
			      "128166372013061640,hm,1,Read,512,512,0\n",
		TRACE_AUTO);
	CHECK_INT(t.format, TRACE_MSR);
	CHECK_INT(t.n, 4);
	check(&t, 0, 0, TRACE_READ, 383496192, 32768, 0);
	check(&t, 1, 1000001000, TRACE_WRITE, 0, 4096, 1); /* 100 ns ticks */
	check(&t, 3, 1000001100, TRACE_READ, 512, 512, 0);
	trace_free(&t);
	t = good("128166372003061629,a,0,Read,0,512,1\n128166372003061629,b,0,Read,0,512,1\n",
		TRACE_MSR);
	CHECK_INT(t.records[1].stream, 1); /* hosts are distinguished */
	trace_free(&t);
	/* a heading is allowed only at the top */
	refused("1,a,0,Read,0,512,1\nTimestamp,Hostname\n", TRACE_AUTO,
		"t:2: timestamp: 'Timestamp'");
	refused("1,a,0,Read,0,512,1\n1,a,0,Flush,0,512,1\n", TRACE_AUTO, "t:2: type: neither");
	refused("1,a,0,Read,0,512,1\n1,a,0,Read,0,512\n", TRACE_AUTO,
		"t:2: the line ends too early");
	refused("1,a,0,Read,0,512,1\n1,,0,Read,0,512,1\n", TRACE_AUTO, "t:2: hostname is missing");
	/* fits 63 bits in ticks, but not in ns */
	refused("0,a,0,Read,0,512,1\n128166372003061629,a,0,Read,0,512,1\n", TRACE_AUTO,
		"292 years");
}

static void fio_format(void)
{
	struct trace t = good("fio version 3 iolog\n"
			      "2 /dev/sda add\n"
			      "3 /dev/sda open\n"
			      "10 /dev/sda read 0 4096\n"
			      "12 /dev/sdb write 8192 512\n"
			      "12 /dev/sda sync 0 0\n"
			      "14 /dev/sda datasync 4096 9\n"
			      "15 /dev/sda trim 4096 1048576\n"
			      "16 /dev/sda close\n",
		TRACE_AUTO);
	CHECK_INT(t.format, TRACE_FIO);
	CHECK_INT(t.n, 5);
	check(&t, 0, 0, TRACE_READ, 0, 4096, 0);
	check(&t, 1, 2000, TRACE_WRITE, 8192, 512, 1);
	check(&t, 2, 2000, TRACE_FLUSH, 0, 0, 0);
	check(&t, 3, 4000, TRACE_FLUSH, 0, 0, 0);
	check(&t, 4, 5000, TRACE_TRIM, 4096, 1048576, 0);
	trace_free(&t);
	t = good("fio version 2 iolog\n/d/a add\n/d/a open\n/d/a read 0 512\n/d/a read 512 512\n"
		 "/d/a wait 250 0\n/d/a write 0 512\n/d/a wait 50\n/d/a write 1024 512\n",
		TRACE_AUTO);
	CHECK_INT(t.n, 4);
	check(&t, 1, 0, TRACE_READ, 512, 512, 0);
	check(&t, 2, 250000, TRACE_WRITE, 0, 512, 0);
	check(&t, 3, 300000, TRACE_WRITE, 1024, 512, 0);
	trace_free(&t);
	refused("fio version 3 iolog\n5 a wait 10 0\n", TRACE_AUTO, "t:2: version 3 has no wait");
	refused("fio version 3 iolog\n5 a erase 10 0\n", TRACE_AUTO,
		"t:2: action 'erase' is not known");
	refused("fio version 2 iolog\n5 a read 10 5\n", TRACE_AUTO, "t:2: action 'a'");
	refused("a read 10 5\n", TRACE_FIO, "t:1: no header");
	refused("fio version 2 iolog\na add\n", TRACE_AUTO, "contains no IO");
	refused("fio version 2 iolog\na add 0 0\n", TRACE_AUTO, "t:2: too many fields");
}

static void blkparse_format(void)
{
	struct trace t =
		good("Input file sda.blktrace.0 added\n"
		     "  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427\n"
		     "  8,0    3        1     0.000000000   697  D   W 99 + 8 [kjournald]\n"
		     "  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n"
		     "  8,0    3        3     0.000002197   697  G   W 223490 + 8 [kjournald]\n"
		     "  8,0    3        4     0.000002500   697  P   N [kjournald]\n"
		     "  8,0    3        0     0.000003000     0  m   N cfq697 insert_request\n"
		     "  8,16   3        5     1.500001829   697  Q  RA 8 + 16 [Web Content]\n"
		     "  8,0    3        6     2.000001829   697  Q FWS [sync]\n"
		     "  8,0    3        7     2.000001830   697  Q FWFSM 8392264 + 8 [umount]\n"
		     "  8,0    3        8     2.000001831   697  Q   D 0 + 2048 [fstrim]\n"
		     "  8,0    3        9     2.000001832     0  C   W 223490 + 8 [0]\n"
		     "  8,0    3       10     2.000001833     0  C  WS 0 [0]\n"
		     "  8,0    3       11     2.000001834     7  D   R 36 (12 00 00 00 24 00 ..) "
		     "[kworker]\n"
		     "  8,0    3       12     2.000001834     7  D   N 0 (00 ..) [kworker]\n"
		     "  8,0    3       13     2.000001835     7  U   N [fio] 1\n"
		     "  8,0    3       14     2.000001835     7 UT   N [fio] 1\n"
		     "CPU0 (8,0):\n"
		     " Reads Queued:           0,        0KiB\t Writes Queued:           5,       "
		     "20KiB\n"
		     "\n"
		     "Throughput (R/W): 0KiB/s / 0KiB/s\n"
		     "Events (8,0): 23 entries\n"
		     "Skips: 0 forward (0 -   0.0%)\n",
			TRACE_AUTO);
	CHECK_INT(t.format, TRACE_BLKPARSE);
	CHECK_INT(t.n, 5);
	check(&t, 0, 0, TRACE_WRITE, UINT64_C(223490) * 512, 4096, 0);
	check(&t, 1, 1500000000, TRACE_READ, 4096, 8192, 1);
	check(&t, 2, 2000000000, TRACE_FLUSH, 0, 0, 0);
	check(&t, 3, 2000000001, TRACE_WRITE, UINT64_C(8392264) * 512, 4096, 0);
	check(&t, 4, 2000000002, TRACE_TRIM, 0, 1048576, 0);
	trace_free(&t);
}

static void blkparse_without_q(void)
{
	struct trace t = good("8,16 0 1 0.1 7 C R 0 + 8 [0]\n8,0 0 2 0.25 7 D W 8 + 8 [x]\n"
			      "8,0 0 3 0.250000001 7 D FN [x]\n8,0 0 4 0.3 7 C R 0 + 8 [0]\n",
		TRACE_AUTO);
	CHECK_INT(t.n, 2); /* issued, since none was queued */
	check(&t, 0, 0, TRACE_WRITE, 4096, 4096, 0);
	check(&t, 1, 1, TRACE_FLUSH, 0, 0, 0);
	trace_free(&t);
	t = good(
		"8,0 0 1 0.1 7 C R 0 + 8 [0]\n8,0 0 1 0.2 7 C WS 0 [0]\n8,0 0 1 0.3 7 C FN 0 [0]\n",
		TRACE_AUTO);
	CHECK_INT(t.n, 2);
	check(&t, 1, 200000000, TRACE_FLUSH, 0, 0, 0);
	trace_free(&t);
	t = good("8,0 0 1 0.1 7 D R 8 + 8 [x]\n8,0 0 2 0.2 7 Q FWS [x]\n", TRACE_AUTO);
	CHECK(t.n == 1 && !t.has_offsets); /* no issued record remains */
	trace_free(&t);
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\n8,0 0 1 0.1 7 Q R 0 + 0 [x]\n", TRACE_AUTO,
		"t:2: zero bytes");
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\n8,0 0 1 0.1 7 Q R -5 + 8 [x]\n", TRACE_AUTO,
		"t:2: sector: '-5' is negative");
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\n8,0 0 1 0.1 7 Q R [x]\n", TRACE_AUTO,
		"t:2: no 'sector");
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\n8,0 0 1 0.1 7 Y R 0 + 8\n", TRACE_AUTO,
		"t:2: action 'Y'");
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\n8,0 0 1 0.1 7 Q X 0 + 8\n", TRACE_AUTO,
		"t:2: flags 'X'");
	refused("8,0 0 1 0.1 7 Q R 0 + 8 [x]\nhello\n", TRACE_AUTO, "t:2: not an event");
	refused("8,0 0 1 99999999999.1 7 Q R 0 + 8 [x]\n", TRACE_AUTO, "t:1: seconds: over");
	refused("8,0 0 1 0.1 7 P N [x]\n", TRACE_AUTO, "contains no IO");
}

/* ---- common to all formats */

static void values_out_of_bounds(void)
{
	refused("0 R 0 512 0\n-1 R 0 512 0\n", TRACE_AUTO, "t:2: arrival: '-1' is negative");
	refused("0 R 0 512 0\n9223372036854775808 R 0 512 0\n", TRACE_AUTO,
		"is over 9223372036854775807");
	refused("0 R 0 512 0\n99999999999999999999999 R 0 512 0\n", TRACE_AUTO, "is over 92233720");
	refused("0 R 0 512 0\n1 R -8 512 0\n", TRACE_AUTO, "t:2: offset: '-8' is negative");
	refused("0 R 0 512 0\n1 R 18446744073709551616 512 0\n", TRACE_AUTO, "t:2: offset: '1844");
	refused("0 R 0 512 0\n1 R 18446744073709551615 512 0\n", TRACE_AUTO, "ends beyond 2^63");
	refused("0 R 0 512 0\n1 R 9223372036854775807 1 0\n", TRACE_AUTO, "ends beyond 2^63");
	refused("0 R 0 512 0\n1 R 0 4294967296 0\n", TRACE_AUTO,
		"4294967296 bytes, over 4294967295");
	refused("0 R 0 512 0\n1 R 0 0 0\n", TRACE_AUTO, "t:2: zero bytes");
	refused("0 R 0 512 0\n1 R 0 5k 0\n", TRACE_AUTO, "t:2: bytes: '5k' is not a number");
	refused("0 R 0 512 0\n1 R 0 +5 0\n", TRACE_AUTO, "'+5' is not a number");
	refused("0 R 0 512 0\n1.5 R 0 5 0\n", TRACE_AUTO, "'1.5' is not a number");
	refused("1,0x0,DiskRead\n", TRACE_AUTO,
		"t:1: zero bytes"); /* its shape is recognised all the same */
	struct trace t = good(
		"0 R 9223372036854775806 1 0\n9223372036854775807 W 0 4294967295 0\n", TRACE_AUTO);
	check(&t, 1, INT64_MAX, TRACE_WRITE, 0, UINT32_MAX, 0);
	trace_free(&t);
}

static void bad_lines_counted(void)
{
	static const char text[] =
		"1 0 0 8 1\nrubbish\n2 0 0 0 1\n3 0 -4 8 1\n\x01\x02\n4 0 8 8 1\n";
	struct trace t;
	CHECK_INT(trace_read(text, sizeof text - 1, "t", TRACE_AUTO, true, &t, &err), 0);
	CHECK_INT(t.n, 2);
	CHECK_INT(t.bad_lines, 4);
	CHECK_STR(t.first_bad, "line 2: arrival: 'rubbish' is not a number");
	trace_free(&t);
	CHECK_INT(trace_read(text, sizeof text - 1, "t", TRACE_AUTO, false, &t, NULL), -EINVAL);
	static const char none[] = "1 0 0 0 1\n1 0 0 0 0\n";
	CHECK_INT(trace_read(none, sizeof none - 1, "t", TRACE_MQSIM, true, &t, &err), -EINVAL);
	CHECK_STR(err.text, "t: no good line; 2 bad, the first: line 1: zero bytes");
	/* quoted text is printable and short */
	refused("0 R 0 512 0\n\x1b[2JAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA R 0 512 0\n",
		TRACE_WEIR, "t:2: arrival: '?[2JAAAAAAAAAAAAAAAAAAAAAAAAAAAA...' is not a number");
}

static void line_ends(void)
{
	struct trace t =
		good("\xef\xbb\xbf# weir-trace 1\r\n\r\n1 R 0 512 0\r\n  \t\r\n2 R 0 512 0\r\n",
			TRACE_AUTO);
	CHECK_INT(t.n, 2);
	trace_free(&t);
	t = good("1,0x200,DiskRead\r\n2,0x200,DiskRead", TRACE_AUTO);
	CHECK_INT(t.n, 2);
	trace_free(&t);
	t = good("fio version 2 iolog\r\na add\r\na open\r\na read 0 512\r\n", TRACE_AUTO);
	CHECK_INT(t.n, 1);
	trace_free(&t);
	t = good("8,0 0 1 0.1 7 Q R 0 + 8 [x]\r\nCPU0 (8,0):\r\n Reads Queued: 1\r\n", TRACE_AUTO);
	CHECK_INT(t.n, 1);
	trace_free(&t);
}

static void detection(void)
{
	struct trace t;
	refused("", TRACE_AUTO, "t: empty");
	refused("\n \r\n# only words\n", TRACE_AUTO, "t: empty");
	refused("", TRACE_MQSIM, "t: contains no IO");
	refused("The MIT License (MIT)\n\nCopyright (c)\n", TRACE_AUTO,
		"it starts with 'The MIT License (MIT)'");
	refused("a\n", TRACE_AUTO,
		"t: not a trace of a known format (weir, compactor, mqsim, msr, fio or blkparse)");
	refused("1 0 0 8 1\n2 R 0 512 0\n3 R 0 512 0\n", TRACE_AUTO,
		"t: ambiguous: its lines look like weir (2 of them), mqsim (1 of them); choose "
		"one: --format");
	refused("-5 -5 -5\n", TRACE_AUTO, "not a trace of a known format");
	refused("\x1f\x8b\x08xxxx", TRACE_AUTO, "t: gzip-compressed");
	refused("\x1f\x8b\x08xxxx", TRACE_MSR, "t: gzip-compressed");
	refused("\x07taexxxx", TRACE_AUTO, "run blkparse over it");
	static const char junk[] = "\x7f"
				   "ELF\x02\x01\x00\x00\n\x00\xff\xfe\n";
	CHECK_INT(trace_read(junk, sizeof junk - 1, "t", TRACE_AUTO, true, &t, &err), -EINVAL);
	CHECK_STR(err.text, "t: binary data, not a trace in text");
	for (int f = TRACE_AUTO + 1; f < TRACE_FORMATS; f++)
		CHECK_INT(trace_read(junk, sizeof junk - 1, "t", f, true, &t, &err), -EINVAL);
	/* words before the first good line do not hide it */
	t = (struct trace){0};
	static const char late[] = "words\nand words\n1 0 0 8 1\n";
	CHECK_INT(trace_read(late, sizeof late - 1, "t", TRACE_AUTO, true, &t, &err), 0);
	CHECK_INT(t.format, TRACE_MQSIM);
	trace_free(&t);
}

/* Random bytes are refused or read in order, within bounds; ASan checks the rest. */
static void noise(void)
{
	static const char letters[] = "0123456789  ,,..--\n\n\tRWQDCFxX[]()+#:readwritefio\0\xff";
	struct rng rng;
	rng_init(&rng, 7, "noise");
	for (int round = 0; round < 20000; round++) {
		size_t len = rng_below(&rng, 120);
		char *text = malloc(len + 1); /* exact length, so that overreads are detected */
		for (size_t i = 0; i < len; i++)
			text[i] = letters[rng_below(&rng, sizeof letters - 1)];
		struct trace t;
		enum trace_format format = (enum trace_format)rng_below(&rng, TRACE_FORMATS);
		char *exact = realloc(text, len ? len : 1);
		err.text[0] = 0;
		if (trace_read(exact, len, "t", format, rng_below(&rng, 2), &t, &err) == 0) {
			CHECK(t.n > 0 && t.records[0].at == 0);
			for (size_t i = 1; i < t.n; i++)
				CHECK(t.records[i - 1].at <= t.records[i].at);
			trace_free(&t);
		} else {
			CHECK(err.text[0] != 0);
		}
		free(exact);
	}
}

static void unsorted(void)
{
	struct trace t =
		good("30 R 0 512 5\n10 R 0 1 6\n20 R 0 2 7\n10 R 0 3 5\n30 R 0 4 6\n", TRACE_AUTO);
	CHECK(!t.was_sorted);
	check(&t, 0, 0, TRACE_READ, 0, 1,
		0); /* streams numbered by appearance in the sorted trace */
	check(&t, 1, 0, TRACE_READ, 0, 3, 1); /* equal arrivals in their original order */
	check(&t, 2, 10, TRACE_READ, 0, 2, 2);
	check(&t, 3, 20, TRACE_READ, 0, 512, 1);
	check(&t, 4, 20, TRACE_READ, 0, 4, 0);
	trace_free(&t);
	/* many random records: sorted, stable, none lost */
	struct rng rng;
	rng_init(&rng, 1, "unsorted");
	size_t len = 0, n = 5000;
	char *text = malloc(n * 40);
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(
			text + len, "%u R %zu 1 0\n", (unsigned)rng_below(&rng, 500), i);
	CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &t, &err), 0);
	CHECK_INT(t.n, n);
	char *seen = calloc(n, 1);
	for (size_t i = 0; i < n; i++) {
		CHECK(!seen[t.records[i].offset]);
		seen[t.records[i].offset] = 1;
		if (i > 0 && t.records[i].at == t.records[i - 1].at)
			CHECK(t.records[i].offset > t.records[i - 1].offset);
		if (i > 0)
			CHECK(t.records[i].at >= t.records[i - 1].at);
	}
	free(seen);
	free(text);
	trace_free(&t);
}

static void many_streams(void)
{
	size_t len = 0, n = 65537;
	char *text = malloc(n * 32);
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "%zu %zu 0 1 1\n", i, i * 7);
	struct trace t;
	CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &t, &err), -EINVAL);
	CHECK_STR(err.text, "t:65537: more than 65536 streams");
	CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, true, &t, &err), 0);
	CHECK_INT(t.n, 65536);
	CHECK_INT(t.bad_lines, 1);
	for (size_t i = 0; i < t.n; i++)
		CHECK_INT(t.records[i].stream, i);
	trace_free(&t);
	free(text);
}

/* ---- writing */

static char *written(const struct trace *t, enum trace_format format, size_t *ret_len)
{
	size_t len = 0, room = 64;
	char *text = malloc(room);
	for (size_t i = 0; i < t->n; i++) {
		int n = trace_format_record(t, i, format, text + len, room - len);
		if (n == -ENOSPC) {
			text = realloc(text, room *= 2);
			i--;
			continue;
		}
		CHECK(n > 0);
		len += (size_t)n;
	}
	*ret_len = len;
	return text;
}

static bool same(const struct trace *a, const struct trace *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct trace_record *x = &a->records[i], *y = &b->records[i];
		if (x->at != y->at || x->offset != y->offset || x->bytes != y->bytes ||
			x->stream != y->stream || x->op != y->op)
			return false;
	}
	return true;
}

/* Random reads and writes on sector and µs boundaries, which every writable format but compactor's
 * can express. */
static struct trace some_trace(uint64_t seed, unsigned ops)
{
	struct rng rng;
	struct trace t = {.n = 300, .format = TRACE_WEIR, .has_offsets = true, .was_sorted = true};
	rng_init(&rng, seed, "some");
	t.records = calloc(t.n, sizeof *t.records);
	weir_time at = 0;
	for (size_t i = 0; i < t.n; i++) {
		struct trace_record *r = &t.records[i];
		r->at = at;
		at += (weir_time)rng_below(&rng, 1000000) * WEIR_US;
		r->op = (uint8_t)rng_below(&rng, ops);
		r->stream = i < 4 ? (uint16_t)i : (uint16_t)rng_below(&rng, 4);
		if (r->op != TRACE_FLUSH) {
			r->offset = rng_below(&rng, UINT64_C(1) << 40) * 512;
			r->bytes = (uint32_t)(1 + rng_below(&rng, 8000000)) * 512;
		}
	}
	return t;
}

static void round_trips(void)
{
	static const enum trace_format formats[] = {TRACE_WEIR, TRACE_MQSIM, TRACE_MSR, TRACE_FIO};
	struct trace t = some_trace(3, 2), back;
	for (int from = 0; from < 4; from++)
		for (int to = 0; to < 4; to++) { /* t → from → to, each read back */
			size_t len;
			char *text = written(&t, formats[from], &len);
			CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &back, &err), 0);
			free(text);
			CHECK_INT(back.format, formats[from]);
			CHECK(same(&t, &back));
			text = written(&back, formats[to], &len);
			trace_free(&back);
			CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &back, &err), 0);
			free(text);
			CHECK_INT(back.format, formats[to]);
			CHECK(same(&t, &back));
			trace_free(&back);
		}
	trace_free(&t);
	t = some_trace(4, 4); /* flushes and trims too */
	for (int f = 0; f < 4; f += 3) {
		size_t len;
		char *text = written(&t, formats[f], &len);
		CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &back, &err), 0);
		CHECK(same(&t, &back));
		trace_free(&back);
		free(text);
	}
	trace_free(&t);
}

static void round_trip_without_offsets(void)
{
	struct trace t = good("5,0x200,DiskRead\n7,0x1000,DiskWrite\n", TRACE_AUTO), back;
	static const enum trace_format formats[] = {TRACE_WEIR, TRACE_COMPACTOR};
	for (int f = 0; f < 2; f++) {
		size_t len;
		char *text = written(&t, formats[f], &len);
		CHECK_INT(trace_read(text, len, "t", TRACE_AUTO, false, &back, &err), 0);
		CHECK_INT(back.format, formats[f]);
		CHECK(!back.has_offsets && same(&t, &back));
		CHECK_INT(trace_loss(&t, 1, formats[f]), 0);
		trace_free(&back);
		free(text);
	}
	trace_free(&t);
}

static void writing(void)
{
	struct trace t =
		good("0 R 512 1024 0\n100 W 100 512 1\n1100 T 0 512 0\n2000 F 0 0 0\n", TRACE_AUTO);
	char buf[200];
	int n = trace_format_record(&t, 0, TRACE_WEIR, buf, sizeof buf);
	CHECK(n > 0);
	buf[n] = 0;
	CHECK_STR(buf, "# weir-trace 1\n# arrival_ns op offset bytes stream\n0 R 512 1024 0\n");
	n = trace_format_record(&t, 0, TRACE_MQSIM, buf, sizeof buf);
	CHECK_STR((buf[n] = 0, buf), "0 0 1 2 1\n");
	n = trace_format_record(&t, 1, TRACE_MSR, buf, sizeof buf);
	CHECK_STR((buf[n] = 0, buf), "1,weir,1,Write,100,512,0\n");
	n = trace_format_record(&t, 0, TRACE_COMPACTOR, buf, sizeof buf);
	CHECK_STR((buf[n] = 0, buf), "0,0x00000400,DiskRead\n");
	n = trace_format_record(&t, 3, TRACE_FIO, buf, sizeof buf);
	CHECK_STR((buf[n] = 0, buf), "2 stream0 sync 0 0\n");
	CHECK_INT(trace_format_record(&t, 3, TRACE_FIO, buf, 18), -ENOSPC);
	CHECK_INT(trace_format_record(&t, 3, TRACE_FIO, buf, 0), -ENOSPC);
	CHECK_INT(trace_format_record(&t, 0, TRACE_BLKPARSE, buf, sizeof buf), -EINVAL);
	CHECK_INT(trace_format_record(&t, 0, TRACE_AUTO, buf, sizeof buf), -EINVAL);
	CHECK_INT(trace_format_record(&t, 4, TRACE_WEIR, buf, sizeof buf), -EINVAL);
	CHECK(!trace_can_write(TRACE_BLKPARSE) && !trace_can_write(TRACE_AUTO) &&
		trace_can_write(TRACE_FIO));
	/* records that the format cannot express */
	CHECK_INT(trace_format_record(&t, 2, TRACE_MSR, buf, sizeof buf), -EOPNOTSUPP);
	CHECK_INT(trace_format_record(&t, 1, TRACE_MQSIM, buf, sizeof buf), -EOPNOTSUPP);
	CHECK_INT(trace_loss(&t, 0, TRACE_WEIR), 0);
	CHECK_INT(trace_loss(&t, 1, TRACE_MQSIM), TRACE_LOSS_SECTORS);
	CHECK_INT(trace_loss(&t, 1, TRACE_COMPACTOR), TRACE_LOSS_OFFSET | TRACE_LOSS_STREAM);
	CHECK_INT(trace_loss(&t, 1, TRACE_FIO), TRACE_LOSS_TIME);
	CHECK_INT(trace_loss(&t, 2, TRACE_FIO), TRACE_LOSS_TIME);
	CHECK_INT(trace_loss(&t, 3, TRACE_FIO), 0);
	CHECK_INT(trace_loss(&t, 1, TRACE_MSR), 0);
	CHECK_INT(trace_loss(&t, 3, TRACE_MQSIM), TRACE_LOSS_OP);
	trace_free(&t);
}

/* ---- statistics */

static void summary(void)
{
	struct trace t = good("0 R 0 4096 0\n"
			      "500000000 R 4096 512 0\n" /* follows */
			      "500000000 W 4608 512 1\n" /* not: another stream */
			      "600000000 F 0 0 0\n"
			      "1000000000 W 4608 1024 0\n" /* follows: a flush has no offset */
			      "4000000000 T 1048576 512 1\n",
		TRACE_AUTO);
	struct trace_summary s;
	trace_summarise(&t, &s);
	CHECK_INT(s.n, 6);
	CHECK_INT(s.span, 4 * WEIR_SEC);
	CHECK_INT(s.bytes, 4096 + 512 + 512 + 1024 + 512);
	CHECK_NEAR(s.read_share, 2.0 / 6, 1e-12);
	CHECK_NEAR(s.sequential_share, 2.0 / 6, 1e-12);
	CHECK_NEAR(s.rate, 5.0 / 4, 1e-12);
	CHECK_NEAR(s.peak_rate, 4, 0);
	CHECK_INT(s.min_bytes, 512);
	CHECK_INT(s.max_bytes, 4096);
	CHECK_INT(s.extent, 1048576 + 512);
	CHECK_INT(s.streams, 2);
	/* gaps 0.5, 0, 0.1, 0.4, 3: mean 0.8, mean of squares 1.884 */
	CHECK_NEAR(s.ca2, (0.25 + 0 + 0.01 + 0.16 + 9) / 5 / 0.64 - 1, 1e-12);
	trace_free(&t);
	t = good("5,0x200,DiskRead\n5,0x200,DiskRead\n5,0x200,DiskRead\n", TRACE_AUTO);
	trace_summarise(&t, &s); /* all at once, no offsets: no division by zero */
	CHECK(s.span == 0 && s.rate == 0 && s.ca2 == 0 && s.extent == 0 && s.sequential_share == 0);
	CHECK_NEAR(s.peak_rate, 3, 0);
	trace_free(&t);
	trace_summarise(&t, &s); /* empty */
	CHECK(s.n == 0 && s.streams == 0 && s.peak_rate == 0 && s.read_share == 0);
}

/* Poisson arrivals have CA² 1, evenly spaced ones 0. */
static void summary_of_poisson(void)
{
	struct rng rng;
	struct trace t = {.n = 200000, .format = TRACE_WEIR};
	struct trace_summary s;
	rng_init(&rng, 5, "poisson");
	t.records = calloc(t.n, sizeof *t.records);
	weir_time at = 0;
	for (size_t i = 0; i < t.n; i++, at += (weir_time)rng_exp(&rng, 1e6))
		t.records[i] = (struct trace_record){.at = at, .bytes = 512};
	trace_summarise(&t, &s);
	CHECK_NEAR(s.ca2, 1, 0.02);
	CHECK_NEAR(s.rate, 1000, 0.02);
	for (size_t i = 0; i < t.n; i++)
		t.records[i].at = (weir_time)i * 1000000;
	trace_summarise(&t, &s);
	CHECK(s.ca2 == 0);
	CHECK_NEAR(s.rate, 1000, 1e-9);
	CHECK_NEAR(s.peak_rate, 1000, 0);
	trace_free(&t);
}

static void cut_and_speed(void)
{
	struct trace t = good("0 R 0 1 0\n10 R 0 2 0\n20 R 0 3 0\n30 R 0 4 0\n", TRACE_AUTO);
	trace_slice(&t, 10, 30);
	CHECK_INT(t.n, 2);
	check(&t, 0, 0, TRACE_READ, 0, 2, 0);
	check(&t, 1, 10, TRACE_READ, 0, 3, 0);
	CHECK_INT(trace_speed(&t, 2), 0);
	CHECK_INT(t.records[1].at, 5);
	CHECK_INT(trace_speed(&t, 1e-19), -ERANGE);
	CHECK_INT(t.records[1].at, 5);
	trace_slice(&t, 0, WEIR_NEVER);
	CHECK_INT(t.n, 2);
	trace_slice(&t, 6, WEIR_NEVER);
	CHECK_INT(t.n, 0);
	CHECK_INT(trace_speed(&t, 2), 0);
	trace_free(&t);
}

static size_t watched;

static void watch(void *user, size_t done)
{
	CHECK(user == &watched && done > watched);
	watched = done;
}

static void watching(void)
{
	size_t len = 0, n = 20000;
	char *text = malloc(n * 20);
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "%zu 0 0 1 1\n", i);
	struct trace t;
	CHECK_INT(
		trace_read_watch(text, len, "t", TRACE_AUTO, false, watch, &watched, &t, &err), 0);
	CHECK(watched > len / 2 && watched <= len);
	trace_free(&t);
	free(text);
}

int main(void)
{
	RUN(weir_format);
	RUN(compactor_format);
	RUN(mqsim_format);
	RUN(msr_format);
	RUN(fio_format);
	RUN(blkparse_format);
	RUN(blkparse_without_q);
	RUN(values_out_of_bounds);
	RUN(bad_lines_counted);
	RUN(line_ends);
	RUN(detection);
	RUN(noise);
	RUN(unsorted);
	RUN(many_streams);
	RUN(round_trips);
	RUN(round_trip_without_offsets);
	RUN(writing);
	RUN(summary);
	RUN(summary_of_poisson);
	RUN(cut_and_speed);
	RUN(watching);
	return 0;
}
