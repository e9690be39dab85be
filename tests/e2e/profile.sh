# SPDX-License-Identifier: BSD-3-Clause
# weir profile: a model's own parameters are found; nothing is written without --write; the result can be read; errors.
. "$WEIR_SOURCE/tests/lib.sh"

# 8 servers of 4 ms each: 2,000 requests a second, whatever their size
run 0 weir profile --depth 16 --duration 4s --data 1000 --out server.profile "model:server,rate=2k,service=fixed,servers=8+memory:256M"
python3 - <<'END' || fail "profile: $(cat server.profile)"
import re
text = open("server.profile").read()
units = {"us": 1e-6, "ms": 1e-3, "s": 1}
rows = re.findall(r"work: \[([^]]*)\]", text)
assert len(rows) >= 6, rows
for row in rows:
    for value in row.split(", "):
        x, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", value).groups()
        # a late thread makes it longer, never shorter
        assert 0.475e-3 <= float(x) * units[unit] <= 0.75e-3, value
END
# every request takes as long as any other, whatever comes before: the mix is as estimated, but for late threads
awk '/^error/ && $2 > 0.5 { exit 1 }' server.profile || fail "error: $(cat server.profile)"
# on a disk sequential requests among others are not sequential: their estimates are too low
run 0 weir profile --depth 1 --duration 8s --data 1000 --out disk.profile "model:disk+memory:256M"
awk '/^error:/ && $2 > 0.01 { found = 1 } END { exit !found }' disk.profile || fail "no error: $(cat disk.profile)"
printf '0,0x1000,DiskRead\n1000000000,0x1000,DiskRead\n' >trace
run 0 weir trace analyze --profile server.profile trace

printf weir >image
truncate -s 64M image
cp image before
run 1 weir profile --duration 500ms "file:$PWD/image"
has stderr "allow more with --duration or --data"
run 0 weir profile --duration 2s --data 1000 "file:$PWD/image"
has stdout "not measured: taken from reads"
cmp -s image before || fail "the file was written to"
run 0 weir profile --duration 4s --data 1000 --write "file:$PWD/image"
hasnt stdout "not measured"
cmp -s image before && fail "--write did not write"

run 2 weir profile
has stderr "needs one TARGET"
run 2 weir profile file:missing
has stderr "missing"
run 2 weir profile --depth 0 memory:64M
run 2 weir profile --data 0 memory:64M
run 2 weir profile --duration 1ms memory:64M
run 2 weir profile memory:4k
has stderr "too small"
