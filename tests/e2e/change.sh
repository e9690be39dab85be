# SPDX-License-Identifier: BSD-3-Clause
# A policy changed under load: weights, other trees, removed exports, shadow mode; and a bad policy,
# which changes nothing.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-change.sh"

# rate FILE JOB FROM TO: the median of a job's rates in that part of a series. (Other load on the
# machine may stop all clients for a moment.)
rate()
{
	awk -F, -v job="$2" -v from="$3" -v to="$4" '$2 == job && $1 > from && $1 <= to { print $3 }' "$1" |
		sort -n | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : 0 }'
}
near() # NAME GOT WANT TOLERANCE
{
	awk -v got="$2" -v want="$3" -v by="$4" 'BEGIN { exit !(got >= want * (1 - by) && got <= want * (1 + by)) }' ||
		fail "$1: $2, not within $4 of $3"
}

policy 1 1 >weir.yaml
serve gate --api "unix:$here/api.sock" weir.yaml
is_version 1

# ---- weights under load: requests inside survive, and every byte is checked

weir load -t 3500ms -d 64 --reads 50% --verify --series w.csv "a=$(uri a)" "b=$(uri b)" >load.out 2>&1 &
load=$!
sleep 1.5
policy 3 1 >next.yaml
run 0 weir policy apply next.yaml
has stdout "all/a.weight: 1 -> 3"
is_version 2
wait "$load" || fail "weir load failed: $(cat load.out)"
near "a by b, 1:1" "$(rate w.csv a 0.3 1.2)" "$(rate w.csv b 0.3 1.2)" 0.05
near "a by 3 b" "$(rate w.csv a 2.0 3.4)" "$(awk -v b="$(rate w.csv b 2.0 3.4)" 'BEGIN { print 3 * b }')" 0.05
awk -F, '$2 ~ /^[ab]$/ && $1 > 0.3 && $1 <= 3.4 { sum[$2] += $3; n[$2]++ } END { exit sum["a"] / n["a"] + sum["b"] / n["b"] > 4040 }' \
	w.csv || fail "over the max of both"

# ---- several policies of different shapes in a row: no request is lost

{
	policy 1 1 | sed '/^tenants:/,$d'
	echo "tenants: [{name: all, match: {export: a}}, {name: rest, max: 9k iops, match: {export: \"*\"}}]"
} >other.yaml
weir load -t 1500ms -d 16 --reads 50% --verify "a=$(uri a)" "b=$(uri b)" "c=$(uri c)" >load.out 2>&1 &
load=$!
for i in 1 2 3 4 5 6 7 8; do
	run 0 weir policy apply other.yaml
	run 0 weir policy apply next.yaml
done
wait "$load" || fail "weir load failed: $(cat load.out)"
is_version 18

# ---- a bad policy changes nothing

sed 's/weight: 3/wieght: 3/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:12:19: tenants[0].children[0]: unknown key 'wieght' (did you mean 'weight'?)"
sed 's/size: 8 MiB}/size: 80 MiB}/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
sed 's/memory:64M/memory:none/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:"
is_version 18

# ---- an export is removed: its client is disconnected, the others are not affected

weir load -t 20s -d 4 "c=$(uri c)" >c.out 2>&1 &
gone=$!
weir load -t 1500ms -d 4 --verify --reads 50% "a=$(uri a)" >a.out 2>&1 &
stays=$!
sleep 0.5
policy 3 1 | sed '/name: c, offset/d; /name: c, match/d' >without.yaml
run 0 weir policy apply without.yaml
has stdout "export c: removed; its clients are disconnected"
! wait "$gone" || fail "a client of a removed export was not disconnected"
wait "$stays" || fail "a client was affected by another's export: $(cat a.out)"
run 0 weir policy apply next.yaml
run 0 weir load -t 200ms "c=$(uri c)"

# ---- shadow mode: no request is held, and the counters show which would be

{
	policy 1 1 | sed 's/4k iops/200 iops/'
	echo "enforce: false"
} >shadow.yaml
run 0 weir policy apply shadow.yaml
weir load -t 1s -d 8 --json "a=$(uri a)" >shadow.json
weir status --json >status.json
python3 - <<'END' || fail "shadow mode: $(cat shadow.json)"
import json
assert json.load(open("shadow.json"))[0]["iops"] > 2000
tenant = [t for t in json.load(open("status.json"))["tenants"] if t["path"] == "all/a"][0]
assert sum(tenant["wait_s"].values()) > 0.5, tenant["wait_s"]
END
run 0 weir set enforce true
weir load -t 1200ms -d 8 --warm-up 200ms --json "a=$(uri a)" >held.json
python3 -c 'import json; held = json.load(open("held.json"))[0]["iops"]; assert 160 <= held <= 203, held' ||
	fail "enforced again: $(cat held.json)"

serve_stop gate
