# SPDX-License-Identifier: BSD-3-Clause
# A policy changed while clients work: weights, values that are set, exports that go, shadow mode, SIGHUP;
# what survives a kill -9; and that a bad policy changes nothing.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v curl >/dev/null || skip "no curl"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
uri() # EXPORT
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# policy A B MORE...: two tenants of weights A and B under one max, which is what they compete for.
policy()
{
	cat <<END
listen: "unix:$here/s.sock"
state: state
resources: [{name: disk, back: "memory:64M", depth: 64}]
exports:
  - {name: a, size: 8 MiB}
  - {name: b, offset: 8 MiB, size: 8 MiB}
  - {name: c, offset: 16 MiB, size: 8 MiB}
tenants:
  - name: all
    max: 4k iops
    children:
      - {name: a, weight: $1, match: {export: a}}
      - {name: b, weight: $2, match: {export: b}}
  - {name: c, match: {export: c}}
END
}
version()
{
	curl -s --unix-socket "$here/api.sock" http://weir/v1/policy >got.json
	python3 -c 'import json; print(json.load(open("got.json"))["version"])'
}
is_version() # N
{
	[ "$(version)" = "$1" ] || fail "version $(version), not $1"
}
# rate FILE JOB FROM TO: the median of a job's rates in that part of a series. (A machine that is busy with
# something else stops everybody for a moment.)
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

# ---- weights under load: what is inside survives, and every byte is checked

weir load -t 3500ms -d 64 --reads 50% --verify --series w.csv "a=$(uri a)" "b=$(uri b)" >load.out 2>&1 &
load=$!
sleep 1.5
policy 3 1 >next.yaml
run 0 weir policy apply next.yaml
has stdout "all/a.weight: 1 -> 3"
is_version 2
wait "$load" || fail "the load ended badly: $(cat load.out)"
near "a by b, 1:1" "$(rate w.csv a 0.3 1.2)" "$(rate w.csv b 0.3 1.2)" 0.05
near "a by 3 b" "$(rate w.csv a 2.0 3.4)" "$(awk -v b="$(rate w.csv b 2.0 3.4)" 'BEGIN { print 3 * b }')" 0.05
awk -F, '$2 ~ /^[ab]$/ && $1 > 0.3 && $1 <= 3.4 { sum[$2] += $3; n[$2]++ } END { exit sum["a"] / n["a"] + sum["b"] / n["b"] > 4040 }' \
	w.csv || fail "over the max of both"

# ---- one after the other, in another shape each time: nobody is lost on the way

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
wait "$load" || fail "the load ended badly: $(cat load.out)"
is_version 18

# ---- a bad policy changes nothing

sed 's/weight: 3/wieght: 3/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:12:19: tenants[0].children[0]: unknown key 'wieght' (did you mean 'weight'?)"
sed 's/size: 8 MiB}/size: 80 MiB}/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
sed 's/memory:64M/memory:65M/' next.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "restart"
is_version 18

# ---- set: at once, kept across a kill -9, shown, and undone by an apply that says so

weir load -t 1200ms -d 8 --warm-up 200ms --json "c=$(uri c)" >free.json
run 0 weir set c.max 500 iops
has stdout "c.max: none -> 500 iops"
is_version 19
weir load -t 1200ms -d 8 --warm-up 200ms --json "c=$(uri c)" >held.json
python3 - <<'END' || fail "a max that was set does not hold: $(cat held.json)"
import json
free, held = (json.load(open(f))[0]["iops"] for f in ("free.json", "held.json"))
assert free > 2000, free
assert 400 <= held <= 506, held
END
run 2 weir set c.max 500
run 2 weir set c.mxa 500 iops
run 2 weir set nobody.max 500 iops
run 2 weir set all.min 5k iops
has stderr "below its min"
is_version 19

pid=$(cat gate.pid)
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
serve gate --api "unix:$here/api.sock" weir.yaml
run 0 weir set
[ "$(cat stdout)" = "c.max 500 iops" ] || fail "after a kill -9: $(cat stdout)"
run 0 weir policy show
has stdout "500 iops"
is_version 1

run 0 weir policy apply --dry-run next.yaml
has stdout "c.max 500 iops, which was set, is undone: none"
is_version 1
run 0 weir policy apply --keep next.yaml
hasnt stdout "undone"
run 0 weir set
has stdout "c.max 500 iops"
run 0 weir policy apply next.yaml
has stdout "c.max 500 iops, which was set, is undone: none"
run 0 weir set
[ ! -s stdout ] || fail "still set: $(cat stdout)"
is_version 3

# ---- SIGHUP: the file as it is now; a bad one is said, and changes nothing

reload() # VERSION after it
{
	kill -HUP "$(cat gate.pid)"
	for i in $(seq 100); do
		[ "$(version)" != "$1" ] || return 0
		sleep 0.05
	done
	fail "still version $(version) after SIGHUP, not $1"
}
policy 5 2 >weir.yaml
reload 4
run 0 weir policy show
tr -s ' ' <stdout >table
has table "all/a 5 71.4%"
echo 'tenants: [{name: x, max: fast}]' >weir.yaml
kill -HUP "$(cat gate.pid)"
for i in $(seq 100); do
	! grep -q 'weir.yaml:1:26' gate.log || break
	sleep 0.05
done
has gate.log "weir.yaml:1:26"
is_version 4

# ---- an export that goes: its client is cut off, the others do not notice

weir load -t 20s -d 4 "c=$(uri c)" >c.out 2>&1 &
gone=$!
weir load -t 1500ms -d 4 --verify --reads 50% "a=$(uri a)" >a.out 2>&1 &
stays=$!
sleep 0.5
policy 3 1 | sed '/name: c, offset/d; /name: c, match/d' >without.yaml
run 0 weir policy apply without.yaml
has stdout "export c: gone; its clients are cut off"
! wait "$gone" || fail "a client of an export that is gone goes on"
wait "$stays" || fail "a client was hurt by another's export: $(cat a.out)"
run 0 weir policy apply next.yaml
run 0 weir load -t 200ms "c=$(uri c)"

# ---- shadow mode: nobody is held, and it is counted what would have been

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
