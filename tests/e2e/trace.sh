# SPDX-License-Identifier: BSD-3-Clause
# weir trace: whole folders, bad lines, conversion in both directions, nothing lost silently.
. "$WEIR_SOURCE/tests/lib.sh"
data=$WEIR_SOURCE/tests/data/traces

# ---- info: a folder of every format, each detected
run 0 weir trace info "$data"
for format in weir compactor mqsim msr fio blkparse; do
	grep -q "^$format[^ ]*  *$format  " stdout || { cat stdout; fail "$format was not found"; }
done
[ "$(wc -l <stdout)" -eq 9 ] || fail "the folder, a heading and seven rows were expected"
[ "$(wc -L <stdout)" -le 110 ] || fail "$(wc -L <stdout) columns"
run 0 weir trace info --json "$data/mqsim.trace" "$data/compactor.txt"
python3 - <<'END' || fail "JSON"
import json
mqsim, compactor = json.load(open("stdout"))
assert mqsim["format"] == "mqsim" and mqsim["ios"] == 60 and mqsim["streams"] == 3, mqsim
assert mqsim["sorted"] is True and mqsim["bad_lines"] == 0 and 0 < mqsim["read_share"] < 1, mqsim
assert compactor["extent"] is None and compactor["sequential_share"] is None, compactor
END

# ---- an unreadable file does not hide the others, and sets the status
mkdir -p folder/below
cp "$data/weir.trace" folder/below/good
printf 'Dear reader,\nthis is no trace.\n' >folder/letter
printf '1 0 0 8 1\n2 0 0 0 1\n3 0 -1 8 1\n4 0 8 8 1\n' >folder/bad
: >folder/empty
head -c 300 /dev/zero >folder/zeros
printf '1 0 0 8 1\n1 R 0 512 0\n' >folder/two
ln -s . folder/circle
run 1 weir trace info folder missing
has stdout 'folder/below/good  weir'
has stdout "folder/letter      no trace: it starts with 'Dear reader,'"
has stdout 'not read: line 2: zero bytes'
has stdout 'not read: empty'
has stdout 'not read: binary data'
has stdout 'not read: ambiguous: its lines look like weir (1 of them), mqsim (1 of them); choose one: --format'
has stdout 'missing            not read: No such file'
has stderr '6 of 7 not read'
run 1 weir trace info --json folder
python3 -c 'import json; d = json.load(open("stdout")); assert [("error" in r) for r in d] == [True, False, True, True, True, True], d' ||
	fail "JSON of a folder"
mkdir letters
cp "$data/weir.trace" folder/letter letters
run 0 weir trace info letters # a letter beside a trace is no failure
has stderr '1 of 2 are not traces'
run 1 weir trace info letters/letter # but an error if named
has stdout 'not read: not a trace of a known format'
rm letters/weir.trace
run 1 weir trace info letters # and if there is no trace at all
mkdir none
run 1 weir trace info none
has stdout 'not read: contains no file'

# ---- bad lines skipped and counted
run 0 weir trace info --skip-bad folder/bad
has stdout 'folder/bad: 2 bad lines skipped, the first: line 2: zero bytes'
run 0 weir trace info --format mqsim --skip-bad folder/two
has stdout "line 2: device: 'R' is not a number"
run 1 weir trace info --format msr folder/bad
has stdout 'not read: line 1:'
weir trace info - <"$data/msr.csv" >stdout || fail "standard input"
has stdout '-      msr'

# ---- conversion: supported fields survive both directions
for to in weir fio; do
	run 0 weir trace convert --to $to "$data/fio-v3.log" out.$to
	run 0 weir trace convert out.$to back.$to
done
cmp back.weir back.fio || fail "fio -> weir -> weir and fio -> fio -> weir differ"
for to in weir fio msr mqsim; do
	run 0 weir trace convert --to $to "$data/msr.csv" out.$to
	run 0 weir trace convert out.$to back.$to
done
cmp back.weir back.msr || fail "by way of msr"
cmp back.weir back.mqsim || fail "by way of mqsim"
weir trace convert -t mqsim - - <"$data/mqsim.trace" >again || fail "standard input and output"
weir trace convert again back.mqsim && weir trace convert "$data/mqsim.trace" direct || fail "again"
cmp back.mqsim direct || fail "mqsim -> mqsim changed something"

# ---- nothing is lost silently
run 1 weir trace convert --to msr "$data/weir.trace" lost
has stderr 'msr cannot hold'
has stderr 'flushes and trims; use --drop-unsupported'
[ ! -e lost ] || fail "refused, and written all the same"
run 0 weir trace convert --to msr --drop-unsupported "$data/weir.trace" lost
has stderr 'IOs left out'
left=$(sed -n 's/.*; \([0-9]*\) IOs left out, \([0-9]*\) written/\1 \2/p' stderr)
[ "$(wc -l <lost)" -eq "${left#* }" ] || fail "$left, but $(wc -l <lost) lines"
[ $((${left% *} + ${left#* })) -eq 60 ] || fail "of 60 IOs, $left"
run 1 weir trace convert --to compactor "$data/mqsim.trace" lost2
has stderr 'offsets'
printf '0 R 100 512 0\n5 R 0 512 0\n' >odd
run 1 weir trace convert --to mqsim odd lost2
has stderr '1 IOs that are not whole sectors'
run 0 weir trace convert --to fio odd rounded
has stderr '1 arrivals rounded down to 1 us'
run 0 weir trace convert --to mqsim "$data/compactor.txt" zeros
has stderr 'has no offsets; they are written as 0'
printf '0 F 0 0 0\n' >flush
run 1 weir trace convert --to msr --drop-unsupported flush lost2
has stderr 'can hold none'
[ ! -e lost2 ] || fail "lost2 must not exist"

# ---- a part, and faster
printf '0 R 0 512 0\n1000000000 R 0 1024 0\n2000000000 R 0 2048 0\n3000000000 R 0 4096 0\n' >four
run 0 weir trace convert --from 1s --until 3s --speed 4 four part
grep -v '^#' part >lines
printf '0 R 0 1024 0\n250000000 R 0 2048 0\n' | cmp - lines || fail "part: $(cat lines)"
run 2 weir trace convert --from 4s four part
has stderr 'no IO in that time'
run 2 weir trace convert --from 2s --until 1s four part
run 2 weir trace convert --from 2 four part
run 2 weir trace convert --speed 0 four part
run 2 weir trace convert --speed fast four part

# ---- skipping while converting
run 2 weir trace convert folder/bad part
has stderr 'folder/bad:2: zero bytes'
run 0 weir trace convert --skip-bad folder/bad part
has stderr '2 bad lines skipped'

# ---- the output is complete or absent, and the old file stays until then
echo old >kept
run 2 weir trace convert folder/bad kept
has kept old
ln -s kept link
run 0 weir trace convert four link
[ -L link ] || fail "the link was replaced"
has kept '# weir-trace 1'
run 0 weir trace convert four /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
run 1 weir trace convert four nowhere/out
has stderr 'nowhere/out: No such file'
ls | grep -q 'out\.[A-Za-z0-9]\{6\}$' && fail "a temporary file was left behind"
# a signal leaves no partial output (if the conversion was faster, it leaves all of it)
{ echo '# weir-trace 1'; seq 1000 1000 600000000 | sed 's/$/ R 0 4096 0/'; } >long
weir trace convert -t fio long stopped & # SIGTERM: a shell's children in the background ignore SIGINT
while kill -0 $! 2>/dev/null && ! ls stopped* >ls.out 2>&1; do :; done
kill -TERM $! 2>/dev/null
wait $! && [ ! -e stopped ] && fail "done, and nothing there"
ls | grep -q '^stopped\.' && fail "half an output was left behind"
if [ -w /dev/full ]; then
	run 1 weir trace convert "$data/weir.trace" /dev/full
	has stderr 'No space left'
fi

# ---- the command line
run 2 weir trace
run 2 weir trace infos four
has stderr "(did you mean 'info'?)"
run 2 weir trace info
run 2 weir trace convert four
run 2 weir trace info --to fio four
has stderr '--to is for convert'
run 2 weir trace convert --json four part
run 2 weir trace info --format mqsin four
has stderr "(did you mean 'mqsim'?)"
run 2 weir trace convert --to blkparse four part
has stderr 'can only be read'
run 2 weir trace convert --to auto four part
run 2 weir trace convert missing part
has stderr 'missing: No such file'

# ---- analyze: work 1 ms at 0, 0.1 and 10 s, the last one a write

printf '0,0x1000,DiskRead\n100000000,0x1000,DiskRead\n10000000000,0x1000,DiskWrite\n' >three
run 0 weir trace analyze --json --work 1ms --link 8Mbit/s --overhead 104B three
python3 - <<'END' || fail "analyze: $(cat stdout)"
import json
row, = json.load(open("stdout"))
storage, there, back = row["stages"]
near = lambda a, b: abs(a - b) < 1e-9 * abs(b)
assert row["too_short"] and row["ios"] == 3
assert near(storage["load"], 3e-4) and near(storage["peak"]["1s"], 2e-3)
(r0, b0), (r1, b1) = storage["buckets"]
assert near(r0, 0.01) and near(b0, 1e-3) and near(r1, 3e-4) and near(b1, 1.97e-3), storage
assert near(there["load"], (3 * 104 + 4096) / 10) and near(back["load"], (3 * 104 + 8192) / 10)
END
run 0 weir trace analyze --pairs 1 --out drawn three "$data/weir.trace"
has stdout "too few for p99.9"
[ -s drawn/1-requests.csv ] && [ -s drawn/2-requests.gp ] || fail "nothing drawn"
cat >profile <<'END'
profile: 1
depth: 1
sizes: [4 KiB]
read: {work: [{work: [2ms]}]}
write: {work: [{work: [5ms]}]}
END
run 0 weir trace analyze --json --profile profile three
[ "$(python3 -c 'import json; print(round(json.load(open("stdout"))[0]["stages"][0]["load"] * 10000))')" = 9 ] ||
	fail "profile: $(cat stdout)"
run 1 weir trace analyze three missing
has stdout "missing: not read"
run 2 weir trace analyze --work 1ms --profile profile three
has stderr "exclude each other"
run 2 weir trace analyze --profile three three
has stderr "three:1:1"
run 2 weir trace analyze --work 0ms three
run 2 weir trace analyze --link '5 iops' three
run 2 weir trace analyze --pairs 65 three
run 2 weir trace info --pairs 3 three
has stderr "--pairs is for analyze"
