# SPDX-License-Identifier: BSD-3-Clause
# weir plan --place: the traces of a folder on servers. Each server's set is feasible for weir plan, and no trace would have fit on a
# former server; too few servers; slos of the policy's tenants; one pair needs more servers; errors.
. "$WEIR_SOURCE/tests/lib.sh"

mkdir -p traces/more
python3 - <<'END'
import random
def make(name, seed, gap, burst):
    r, t, i = random.Random(seed), 0, 0
    with open("traces/" + name, "w") as f:
        f.write("# weir-trace 1\n")
        while i < 400:
            for _ in range(r.randint(1, burst)):
                f.write(f"{int(t * 1e9)} R {r.randrange(1 << 18) * 4096} 4096 0\n")
                i += 1
            t += r.expovariate(1 / gap)
for k in range(14):
    make(f"more/w{k}.trace" if k % 5 == 0 else f"w{k}.trace", k, (0.02, 0.05, 0.2)[k % 3], (4, 20, 60)[k % 3])
open("traces/LICENSE", "w").write("Not a trace.\n")
slos = ("30ms", "200ms", "2s")
with open("mixed.yaml", "w") as f:
    f.write('resources: [{name: ssd1, back: "memory:64M", depth: 4}, {name: other, back: "memory:64M"}]\ntenants:\n')
    for k in range(14):
        f.write(f'  - {{name: t{k}, slo: "p90 < {slos[k % 3]}", trace: w{k}.trace, path: [ssd1], match: {{export: t{k}}}}}\n')
END
cat >server.yaml <<END
resources: [{name: ssd1, back: "memory:64M", depth: 4}]
tenants: [{name: batch, match: {export: "*"}}]
END

run 0 weir plan --place traces --servers 14 --slo "p90 < 300ms" --work 1ms --json server.yaml
cp stdout equal.json
run 0 weir plan --place traces --servers 14 --work 1ms --json mixed.yaml
cp stdout mixed.json
python3 - <<'END' || fail "the placement: $(cat equal.json mixed.json)"
import json, subprocess
def feasible(traces):
    with open("check.yaml", "w") as f:
        f.write('resources: [{name: ssd1, back: "memory:64M", depth: 4}]\ntenants:\n')
        for i, t in enumerate(traces):
            f.write(f'  - {{name: t{i}, slo: "p{t["slo"]["percentile"]} < {round(t["slo"]["latency"] * 1e3)}ms", '
                    f'trace: traces/{t["name"]}, match: {{export: t{i}}}}}\n')
    done = subprocess.run(["weir", "plan", "--alignments", "0", "--work", "1ms", "check.yaml"], stdout=subprocess.DEVNULL)
    assert done.returncode < 2, traces
    return done.returncode == 0
for name in "equal.json", "mixed.json":
    found = json.load(open(name))
    servers = {}
    for t in found["traces"]:
        assert t["alone"], t
        servers.setdefault(t["server"], []).append(t)
    assert sorted(servers) == list(range(1, found["needed"] + 1)) and found["needed"] > 1, found
    assert sum(map(len, servers.values())) == 14
    for number, traces in servers.items():
        assert feasible(traces), (name, number)
        for t in traces:
            for former in range(1, number):
                assert not feasible(servers[former] + [t]), (name, t, former)
    print(name, found["needed"], found["one_pair"])
mixed = json.load(open("mixed.json"))
assert mixed["one_pair"]["several"] == mixed["needed"], mixed # all traces are served by one pair, too
assert mixed["one_pair"]["not_alone"] == 0 and mixed["one_pair"]["needed"] > mixed["needed"], mixed
assert {t["name"]: t["slo"]["latency"] for t in mixed["traces"]}["more/w5.trace"] == 2
END

# too few servers: the first ones hold the same traces, the others are named
run 1 weir plan --place traces --servers 1 --work 1ms mixed.yaml
has stdout "does not fit: "
grep -q "^14 of 14 traces need [0-9]* servers\.$" stdout || fail "$(cat stdout)"
grep -q "^With one token bucket a trace, 14 of them need [0-9]* servers; with several, those need [0-9]*\.$" stdout || fail "$(cat stdout)"
placed=$(grep -c "^ *1  " stdout)
[ "$placed" -eq "$(grep -c '"server": 1,' mixed.json)" ] || fail "the first server holds other traces: $(cat stdout)"
[ "$(grep -c "^does not fit" stdout)" -eq $((14 - placed)) ] || fail "$(cat stdout)"
run 1 weir plan --place traces --servers 14 --slo "p90 < 1ms" --work 1ms server.yaml
has stdout "even alone"

# errors
run 2 weir plan --place traces --servers 3 --work 1ms server.yaml
has stderr "no tenant of the policy names it, and there is no --slo"
run 2 weir plan --place traces --work 1ms --slo "p90 < 1s" server.yaml
has stderr "--place needs --servers"
run 2 weir plan --place traces --servers 0 --work 1ms --slo "p90 < 1s" server.yaml
run 2 weir plan --place traces --servers 3 --work 1ms --slo "quick" server.yaml
has stderr "--slo: "
run 2 weir plan --place traces --servers 3 --slo "p90 < 1s" server.yaml
has stderr "has no profile"
run 2 weir plan --place nowhere --servers 3 --slo "p90 < 1s" --work 1ms server.yaml
has stderr "nowhere"
run 2 weir plan --servers 3 server.yaml
run 2 weir plan --place traces --servers 3 --slo "p90 < 1s" --work 1ms --apply server.yaml
printf '# weir-trace 1\n0 R 0 4096 0\n1 X 0 4096 0\n' >traces/bad.trace
run 2 weir plan --place traces --servers 14 --slo "p90 < 1s" --work 1ms server.yaml
has stderr "bad.trace: line 3:"
