# SPDX-License-Identifier: BSD-3-Clause
# weir alloc: one step as computed by hand; errors have their path, and no output is written.
. "$WEIR_SOURCE/tests/lib.sh"

value() # EXPRESSION: evaluate it on `out`, the answer
{
	python3 -c "import json; out = json.load(open('stdout')); print($1)"
}

cat >in.json <<'END'
{"threshold": 30, "gamma": 0.8, "wmin": 4, "wmax": 64,
 "hosts": [{"name": "h1", "window": 32, "beta": 1, "latency": 41, "ios": 100},
           {"name": "h2", "window": 64, "beta": 2, "latency": 31, "ios": 300},
           {"name": "idle", "window": 2, "beta": 0, "ios": 0}]}
END
run 0 weir alloc parda in.json
# L = (100 * 41 + 300 * 31) / 400 = 33.5
[ "$(value 'abs(out["latency"] - 33.5) < 1e-12')" = True ] || fail "latency: $(cat stdout)"
[ "$(value '[h["name"] for h in out["hosts"]]')" = "['h1', 'h2', 'idle']" ] || fail "names: $(cat stdout)"
[ "$(value 'abs(out["hosts"][0]["window"] - (6.4 + 0.8 * (30 / 33.5 * 32 + 1))) < 1e-9')" = True ] ||
	fail "h1: $(cat stdout)"
[ "$(value 'abs(out["hosts"][1]["window"] - (12.8 + 0.8 * (30 / 33.5 * 64 + 2))) < 1e-9')" = True ] ||
	fail "h2: $(cat stdout)"
[ "$(value 'out["hosts"][2]["window"]')" = 4.0 ] || fail "idle: $(cat stdout)"
cp stdout first
weir alloc parda <in.json >stdout || fail "standard input"
cmp -s stdout first || fail "a file and standard input differ"

sed 's/"gamma"/"local": true, "gamma"/; s/, "ios": 0}/, "latency": 5}/' in.json >local.json
run 0 weir alloc parda local.json
[ "$(value 'abs(out["hosts"][0]["window"] - (6.4 + 0.8 * (30 / 41 * 32 + 1))) < 1e-9')" = True ] ||
	fail "local: $(cat stdout)"
[ "$(value 'out["hosts"][2]["window"]')" = 10.0 ] || fail "local, 2 slots at 5: $(cat stdout)"

echo '{"threshold": 1, "hosts": []}' >in.json
run 0 weir alloc parda in.json
[ "$(value 'out == {"latency": None, "hosts": []}')" = True ] || fail "no hosts: $(cat stdout)"

wrong() # JSON MESSAGE
{
	echo "$1" >wrong.json
	run 2 weir alloc parda wrong.json
	has stderr "$2"
	[ "$(wc -l <stderr)" -eq 1 ] || fail "$1: more than one line"
	[ ! -s stdout ] || fail "$1: something on standard output"
}
host='"name": "a", "window": 1, "beta": 1, "latency": 1, "ios": 1'
wrong '[]' 'must be an object'
wrong '{' 'line'
wrong '{"threshold": 1, "threshold": 2, "hosts": []}' 'duplicate'
wrong '{"hosts": []}' 'threshold: is missing'
wrong '{"threshold": 0, "hosts": []}' 'threshold: must be > 0'
wrong '{"threshold": "30", "hosts": []}' 'threshold: must be a number'
wrong '{"threshold": 1, "gamma": 2, "hosts": []}' 'gamma: must be at most 1'
wrong '{"threshold": 1, "wmin": 5, "wmax": 4, "hosts": []}' 'wmax: must be at least wmin'
wrong '{"threshold": 1, "local": 1, "hosts": []}' 'local: must be true or false'
wrong '{"threshold": 1}' 'hosts: is missing'
wrong '{"threshold": 1, "hosts": {}}' 'hosts: must be a list'
wrong '{"threshold": 1, "host": []}' "host: unknown (did you mean 'hosts'?)"
wrong "{\"threshold\": 1, \"hosts\": [{$host}, 7]}" 'hosts[1]: must be an object'
wrong "{\"threshold\": 1, \"hosts\": [{$host}, {$host}]}" "hosts[1].name: 'a' is used twice"
wrong '{"threshold": 1, "hosts": [{"window": 1}]}' 'hosts[0].name: is missing'
wrong '{"threshold": 1, "hosts": [{"name": "a", "window": -1}]}' 'hosts[0].window: must be at least 0'
wrong '{"threshold": 1, "hosts": [{"name": "a", "window": 1, "beta": 1, "latency": 1}]}' 'hosts[0].ios: is missing'
wrong '{"threshold": 1, "hosts": [{"name": "a", "window": 1, "beta": 1, "ios": 1}]}' 'hosts[0].latency: is missing'
wrong '{"threshold": 1e308, "hosts": [{"name": "a", "window": 1e308, "beta": 1, "latency": 1e-9, "ios": 1}]}' 'too large'

run 2 weir alloc
run 2 weir alloc frobnicate
has stderr 'parda'
run 2 weir alloc parda missing.json
has stderr 'missing.json'

# ---- adaptbf

cat >in.json <<'END'
{"rate": 1003, "period": 0.1,
 "jobs": [{"name": "a", "nodes": 1, "demand": 60, "previous": 25, "record": 0, "remainder": 0.0},
          {"name": "b", "nodes": 3, "demand": 15, "previous": 75}]}
END
run 0 weir alloc adaptbf in.json
# 100.3 tokens: 100, and 0.3 carried to the next period. b lends its surplus; a has u = 2.4.
[ "$(value '[(j["name"], j["tokens"], j["record"], j["initial"]) for j in out["jobs"]]')" = \
	"[('a', 82, -57, 25), ('b', 18, 57, 75)]" ] || fail "adaptbf: $(cat stdout)"
[ "$(value 'abs(out["carry"] - 0.3) < 1e-6 and out["tokens"] == 100')" = True ] || fail "carry: $(cat stdout)"
[ "$(value 'abs(out["jobs"][0]["remainder"] + out["jobs"][1]["remainder"]) < 1e-6')" = True ] ||
	fail "remainders: $(cat stdout)"

# Step by step, with each output as the next input: both sums hold, for any jobs.
python3 - "$WEIR" <<'END' || fail "adaptbf: a chain of steps"
import json, random, subprocess, sys
random.seed(1)
jobs = [{"name": f"j{i}", "nodes": random.choice([1, 2, 7.5, 100])} for i in range(12)]
carry, given = 0, 0
for step in range(60):
    active = [job for job in jobs if random.random() < 0.8]
    for job in active:
        job["demand"] = random.choice([0, 1, 5, 30, 200, 2**40, 0.5])
    doc = {"rate": 337, "period": 0.1, "carry": carry, "jobs": active}
    out = subprocess.run([sys.argv[1], "alloc", "adaptbf"], input=json.dumps(doc), capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    out = json.loads(out.stdout)
    assert [job["name"] for job in out["jobs"]] == [job["name"] for job in active]
    assert sum(job["tokens"] for job in out["jobs"]) == (out["tokens"] if active else 0), out
    assert all(isinstance(job["tokens"], int) and job["tokens"] >= 0 for job in out["jobs"])
    assert sum(job["record"] for job in out["jobs"]) == sum(job.get("record", 0) for job in active)
    for job, new in zip(active, out["jobs"]):
        assert new["record"] - job.get("record", 0) == new["initial"] - new["tokens"]
        job.update(previous=new["tokens"], record=new["record"], remainder=new["remainder"], reclaim=new["reclaim"])
    carry, given = out["carry"], given + out["tokens"]
assert abs(given + carry - 33.7 * 60) < 1e-3, given
END

awrong() # JSON MESSAGE
{
	printf '%s' "$1" >in.json
	run 2 weir alloc adaptbf in.json
	has stderr "$2"
	[ ! -s stdout ] || fail "$1: something on standard output"
}
job='"name": "a", "nodes": 1, "demand": 1'
awrong '{"period": 1, "jobs": []}' 'rate: is missing'
awrong '{"rate": 1, "period": 0, "jobs": []}' 'period: must be > 0'
awrong '{"rate": 1e12, "period": 1, "jobs": []}' 'rate: a period must have fewer than 2^38 tokens'
awrong '{"rate": 1, "period": 1, "carry": 2, "jobs": []}' 'carry: must be at most 1'
awrong '{"rate": 1, "period": 1}' 'jobs: is missing'
awrong '{"rate": 1, "period": 1, "jobs": [{"name": "a", "demand": 1}]}' 'jobs[0].nodes: is missing'
awrong '{"rate": 1, "period": 1, "jobs": [{"name": "a", "nodes": 0, "demand": 1}]}' 'jobs[0].nodes: must be > 0'
awrong '{"rate": 1, "period": 1, "jobs": [{"name": "a", "nodes": 1}]}' 'jobs[0].demand: is missing'
awrong '{"rate": 1, "period": 1, "jobs": [{"name": "a", "nodes": 1, "demand": -1}]}' 'jobs[0].demand: must be at least 0'
awrong "{\"rate\": 1, \"period\": 1, \"jobs\": [{$job, \"record\": 0.5}]}" 'jobs[0].record: must be a whole number'
awrong "{\"rate\": 1, \"period\": 1, \"jobs\": [{$job, \"remainder\": 3}]}" 'jobs[0].remainder: must be at most 1'
awrong "{\"rate\": 1, \"period\": 1, \"jobs\": [{$job}, {$job}]}" "jobs[1].name: 'a' is used twice"

# ---- meister: two workloads on one disk; B = 1, L = 0.1: g(t) = 0.8 t - 1.1, and 0.5 is done at 2 s

cat >in.json <<'END'
{"stages": [{"name": "disk", "rate": 1, "blocking": 0.1, "inside": 0.25}],
 "workloads": [{"name": "low", "slo": 3, "path": ["disk"], "buckets": {"disk": [[0.1, 0.5]]}},
               {"name": "high", "slo": 1.4, "path": ["disk"], "buckets": {"disk": [[5, 4], [0.2, 1]]}}]}
END
run 0 weir alloc meister in.json
[ "$(value 'out["feasible"], out["found"]')" = "True greedy" ] || fail "feasible: $(cat stdout)"
[ "$(value '[w["priority"] for w in out["workloads"]]')" = "[{'disk': 1}, {'disk': 0}]" ] ||
	fail "priorities: $(cat stdout)"
[ "$(value 'abs(out["workloads"][0]["bound"] - 2.25) < 1e-12')" = True ] || fail "low: $(cat stdout)"
[ "$(value 'abs(out["workloads"][1]["bound"] - 1.35) < 1e-12')" = True ] || fail "high: $(cat stdout)"
sed 's/"workloads"/"fixed": {"low": {"disk": 0}, "high": {"disk": 1}}, "workloads"/' in.json >fixed.json
run 0 weir alloc meister fixed.json
[ "$(value 'out["feasible"], out["found"]')" = "False None" ] || fail "fixed: $(cat stdout)"
# 1.6 of work before the 0.9 a second that low leaves: 1.6 / 0.9 + 0.25
[ "$(value 'abs(out["workloads"][1]["violation"] - (1.6 / 0.9 + 0.25 - 1.4)) < 1e-12')" = True ] ||
	fail "violation: $(cat stdout)"
sed 's/0.2, 1\]/0.95, 1]/' in.json >full.json
run 0 weir alloc meister full.json
[ "$(value '[w["bound"] for w in out["workloads"] if w["bound"] is None]')" = "[None]" ] || fail "full: $(cat stdout)"

# The example of Parley, §3.2: virtual machines have at most 1, DFS at least 6 and at most 8 of 10.
fig1() # DEMAND of VMs, of DFS at m1 and m2: print the four rates
{
	echo '{"capacity": 10, "nodes": [
	  {"name": "vm", "max": 1, "children": [{"name": "m1", "demand": '$1'}, {"name": "m2", "demand": '$1'}]},
	  {"name": "dfs", "min": 6, "max": 8, "children": [{"name": "m1", "demand": '$2'}, {"name": "m2", "demand": '$3'}]}]}' >in.json
	run 0 weir alloc waterfill in.json
	value '*(leaf["rate"] for node in out["nodes"] for leaf in node["children"])'
}
[ "$(fig1 10 10 10)" = '0.5 0.5 4.0 4.0' ] || fail "all active: $(cat stdout)"
[ "$(fig1 10 10 0)" = '0.5 0.5 8.0 0.0' ] || fail "DFS at one machine: $(cat stdout)"
[ "$(fig1 0 10 0)" = '0.0 0.0 8.0 0.0' ] || fail "DFS alone: $(cat stdout)"
# §3.1: ten jobs with at most 1 each share 5; one alone has its own max.
for active in 10 1; do
	python3 -c 'import json; print(json.dumps({"capacity": 5, "nodes": [
	  {"name": str(i), "max": 1, "demand": 9 if i < '$active' else 0} for i in range(10)]}))' >in.json
	run 0 weir alloc waterfill in.json
	[ "$(value 'out["nodes"][0]["rate"]')" = $([ $active = 10 ] && echo 0.5 || echo 1.0) ] || fail "$active: $(cat stdout)"
done
echo '{"capacity": 3, "nodes": [{"name": "a", "min": 4, "demand": 9}, {"name": "b", "min": 2, "demand": 9}]}' >in.json
run 0 weir alloc waterfill in.json
[ "$(value 'out["nodes"][0]["rate"], out["nodes"][1]["rate"], out["scaled"]')" = '2.0 1.0 True' ] || fail "scaled: $(cat stdout)"

wrong_waterfill() # NODES MESSAGE
{
	echo "{\"capacity\": 1, \"nodes\": $1}" >wrong.json
	run 2 weir alloc waterfill wrong.json
	has stderr "$2"
	[ ! -s stdout ] || fail "$1: something on standard output"
}
wrong_waterfill '{}' 'nodes: must be a list'
wrong_waterfill '[{"name": "a"}]' 'nodes[0].demand: is missing'
wrong_waterfill '[{"name": "a", "demand": 1, "weight": 0}]' 'nodes[0].weight: must be > 0'
wrong_waterfill '[{"name": "a", "demand": -1}]' 'nodes[0].demand: must be at least 0'
wrong_waterfill '[{"name": "a", "children": []}]' 'nodes[0].children: must not be empty'
wrong_waterfill '[{"name": "a", "demand": 1, "children": [{"name": "b", "demand": 1}]}]' 'nodes[0].demand: is the sum'
wrong_waterfill '[{"name": "a", "children": [{"name": "b", "demand": 1}, {"name": "b", "demand": 1}]}]' \
	"nodes[0].children[1].name: 'b' is used twice"
wrong_waterfill '[{"name": "a", "demand": 1, "rate": 1}]' 'nodes[0]'

wrong_meister() # JSON MESSAGE
{
	echo "$1" >wrong.json
	run 2 weir alloc meister wrong.json
	has stderr "$2"
	[ ! -s stdout ] || fail "$1: something on standard output"
}
stages='"stages": [{"name": "d", "rate": 1}]'
load='"name": "a", "slo": 1, "path": ["d"]'
wrong_meister '{"stages": []}' 'workloads: is missing'
wrong_meister "{$stages, \"workloads\": [{$load}]}" 'workloads[0].buckets.d: is missing'
wrong_meister "{$stages, \"workloads\": [{$load, \"buckets\": {\"d\": [[1, 0]]}}]}" 'a size must be > 0'
wrong_meister "{$stages, \"workloads\": [{$load, \"buckets\": {\"d\": [[1]]}}]}" 'each bucket must be [rate, size]'
wrong_meister "{$stages, \"workloads\": [{$load, \"buckets\": {\"d\": [[1, 1]], \"e\": []}}]}" 'not in the path'
wrong_meister '{"stages": [], "workloads": [{"name": "a", "slo": 1, "path": ["d"], "buckets": {}}]}' "no stage 'd'"
wrong_meister "{$stages, \"search\": \"best\", \"workloads\": []}" 'search: must be'
wrong_meister "{$stages, \"fixed\": {}, \"workloads\": [{$load, \"buckets\": {\"d\": [[1, 1]]}}]}" 'fixed.a.d: must be'
