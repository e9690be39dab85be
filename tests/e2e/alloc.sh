# SPDX-License-Identifier: BSD-3-Clause
# weir alloc: one step as by hand; what is wrong is said with its path, and nothing goes out.
. "$WEIR_SOURCE/tests/lib.sh"

value() # EXPRESSION: of `out`, the answer
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
wrong "{\"threshold\": 1, \"hosts\": [{$host}, {$host}]}" "hosts[1].name: 'a' is there twice"
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
