# SPDX-License-Identifier: BSD-3-Clause
# weir profile: a model's own parameters are found; nothing is written without --write; the result can be read; errors.
. "$WEIR_SOURCE/tests/lib.sh"

# The models' own parameters: of each operation, size and end of the distances 1 divided by the throughput of a simulation with as
# many requests inside. A server's requests all take the same time, whatever comes before: a mix of them is as estimated. On a disk
# sequential requests among others are not sequential: their estimates are too low, which the profile says.
python3 - <<'END' || fail "profile: $(cat ./*.profile)"
import json, re, subprocess
units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
sizes = ["4 KiB", "16 KiB", "64 KiB", "256 KiB"]

def profile(name, depth, model):
    subprocess.run(["weir", "profile", "--write", "--depth", str(depth), "--data", "1000", "--out", name + ".profile", f"model:{model}+memory:1G"], check=True)
    work, op = {}, None
    for line in open(name + ".profile"):
        op = line[:-2] if line in ("read:\n", "write:\n") else op
        row = re.search(r"(?:distance: (.*?), )?work: \[(.*)\]", line)
        if row and row[1] in ("0 B", None):
            for size, value in zip(sizes, row[2].split(", ")):
                x, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", value).groups()
                work[op, row[1] == "0 B", size] = float(x) * units[unit]
    assert len(work) == 16, work
    return work

def simulate(depth, model, seconds, kind):
    op, sequential, size = kind
    keys = re.sub(r"(^|,)([a-z]+)=", r"\1 \2: ", model)
    with open("device.yaml", "w") as f:
        f.write(f"""duration: {seconds}s
warmup: {seconds / 20}s
sample: 0s
devices: [{{name: d, kind: {keys}}}]
hosts: [{{name: h, policy: {{depth: none}}, workloads: [{{outstanding: {depth}, size: {size}, reads: {int(op == "read")}, sequential: {int(sequential)}, region: 1 GiB}}]}}]
""")
    out = subprocess.run(["weir", "sim", "--json", "device.yaml"], check=True, capture_output=True).stdout
    return 1 / json.loads(out)["values"]["total.iops"]

for name, depth, model, seconds in (("server", 16, "server,rate=2k,service=fixed,servers=8", 10), ("ssd", 8, "ssd", 1), ("disk", 1, "disk", 100)):
    for kind, found in profile(name, depth, model).items():
        true = simulate(depth, model, seconds, kind)
        assert abs(found / true - 1) < 0.05, (model, kind, found, true)
END
awk '/^error/ && $2 > 0.01 { exit 1 }' server.profile || fail "error: $(cat server.profile)"
awk '/^error:/ && $2 > 0.01 { found = 1 } END { exit !found }' disk.profile || fail "no error: $(cat disk.profile)"
printf '0,0x1000,DiskRead\n1000000000,0x1000,DiskRead\n' >trace
run 0 weir trace analyze --profile server.profile trace

printf weir >image
truncate -s 64M image
cp image before
run 1 weir profile --duration 500ms "file:$PWD/image"
has stderr "allow more with --data 15.7 (199.3 for all sizes)"
run 0 weir profile --duration 2s --data 1000 "file:$PWD/image"
has stdout "not measured: taken from reads"
cmp -s image before || fail "the file was written to"
run 0 weir profile --duration 4s --data 1000 --write "file:$PWD/image"
hasnt stdout "not measured"
cmp -s image before && fail "--write did not write"

# What the data or the time do not allow is left out from the largest size on, and the bound that allows it is named.
truncate -s 16M small
run 0 weir profile --duration 2s --data 100 "file:$PWD/small"
has stdout "sizes: [4 KiB, 16 KiB]  # larger ones were not measured"
has stderr "requests above 16 KiB were not measured: they need --data 796.9"
mv stdout small.profile
run 0 weir trace analyze --profile small.profile trace
run 0 weir profile --duration 2s --data 796.9 "file:$PWD/small"
has stdout "sizes: [4 KiB, 16 KiB, 64 KiB, 256 KiB]"
run 0 weir profile --duration 1s --data 1000 model:disk+memory:1G
has stdout "sizes: [4 KiB, 16 KiB, 64 KiB]  # larger"
has stderr "requests above 64 KiB were not measured: they need a longer --duration"
run 1 weir profile --duration 200ms --data 1000 model:disk+memory:1G
has stderr "no read of 4 KiB was done in its part of the time: allow more with --duration"

run 2 weir profile
has stderr "needs one TARGET"
run 2 weir profile file:missing
has stderr "missing"
run 2 weir profile --depth 0 memory:64M
run 2 weir profile --data 0 memory:64M
run 2 weir profile --duration 1ms memory:64M
run 2 weir profile memory:4k
has stderr "too small"
