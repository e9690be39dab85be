# SPDX-License-Identifier: BSD-3-Clause
# weir replay: every request of a trace, with its offset and its time.
. "$WEIR_SOURCE/tests/lib.sh"
command -v nbdkit >/dev/null || skip "nbdkit is not installed"
data=$WEIR_SOURCE/tests/data/traces

# nbdkit's log filter records the requests.
replay() # STATUS SIZE ARGUMENT...
{
	want=$1 size=$2
	shift 2
	rm -f asked
	run "$want" nbdkit -U - --filter=log memory "$size" logfile=asked --run "weir replay $* \"\$uri\""
}

cat >three <<'END'
# weir-trace 1
0 R 0 4096 0
10000000 W 1048576 8192 0
20000000 F 0 0 0
200000000 R 1052672 4096 0
END
replay 0 2M --json three
grep -q ' Read .*offset=0x0 count=0x1000' asked || { cat asked; fail "the first read"; }
grep -q ' Write .*offset=0x100000 count=0x2000' asked || { cat asked; fail "the write"; }
grep -q ' Flush ' asked || { cat asked; fail "the flush"; }
python3 - <<'END' || fail "JSON"
import json
(job,) = json.load(open("stdout"))
assert (job["reads"], job["writes"], job["flushes"], job["requests"]) == (2, 1, 1, 4), job
assert job["elapsed_s"] >= 0.2 and job["late_max_ns"] < 1e9 and not job["errors"], job
END

# ---- faster; a part; a smaller export
replay 0 2M --json --speed 100 three
python3 -c 'import json; (j,) = json.load(open("stdout")); assert 0.002 <= j["elapsed_s"] < 0.1, j' ||
	fail "a hundred times as fast"
replay 0 2M --from 15ms --until 100ms three
[ "$(grep -c ' Flush .*\.\.\.\| Read \| Write ' asked)" -ge 1 ] || fail "nothing was replayed"
grep -q ' Read \| Write ' asked && { cat asked; fail "only the flush is in that time"; }
replay 2 1M three
has stderr '--scale-offsets'
replay 0 1M --scale-offsets three
has stdout 'replay: sent late by'
replay 2 1M --from 10s three
has stderr 'the trace has no request in that time'

# ---- every format that can be read
for trace in "$data"/*; do
	replay 0 1G --speed 1k --scale-offsets "$trace"
	hasnt stdout errors
done

# ---- the command line
run 2 weir replay three
run 2 weir replay --speed 0 three nbd://localhost/
run 2 weir replay --format mqsin three nbd://localhost/
has stderr "(did you mean 'mqsim'?)"
run 2 weir replay missing nbd://localhost/
run 1 weir replay three "nbd+unix:///?socket=$PWD/nosuch"
