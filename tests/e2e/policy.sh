# SPDX-License-Identifier: BSD-3-Clause
# weir policy check and show, as a user runs them.
. "$WEIR_SOURCE/tests/lib.sh"
data=$WEIR_SOURCE/tests/data/policy

# Every good file is accepted, in one call; the warnings are exactly those that the files name.
run 0 weir policy check "$data"/good/*.yaml "$WEIR_SOURCE/examples/machine.yaml"
has stderr "machine.yaml:17:37: the slo of 'prod/db' is only measured and reported (warning)"
[ "$(grep -c '(warning)' stderr)" -eq $(($(cat "$data"/good/*.yaml | grep -c '^# warns:') + 1)) ] ||
	fail "warnings: $(cat stderr)"
has stdout "good/two-arrays.yaml: ok (2 tenants, 2 resources)"
has stdout "machine.yaml: ok (4 tenants, 1 resource)"

# A bad file does not keep the others from being checked, and every error is named.
run 2 weir policy check "$data/bad/unknown-keys.yaml" no-such-file "$data/good/empty.yaml"
has stderr "unknown-keys.yaml:3:15: tenants[0]: unknown key 'wieght' (did you mean 'weight'?)"
has stderr "unknown-keys.yaml:3:26: tenants[0]: unknown key 'mni' (did you mean 'min'?)"
has stderr "unknown-keys.yaml:5:1: unknown key 'tennants' (did you mean 'tenants'?)"
has stderr "weir: policy: no-such-file: No such file or directory"
has stdout "good/empty.yaml: ok (0 tenants, 0 resources)"

# More than 20 errors: the rest is counted.
{
	echo "tenants:"
	for i in $(seq 25); do echo "  - {name: a/b}"; done
} >many.yaml
run 2 weir policy check many.yaml
[ "$(wc -l <stderr)" -eq 21 ] || fail "$(wc -l <stderr) lines, not 21"
has stderr "many.yaml: and 5 more"

# A warning does not refuse. Files that the policy names are checked as the gateway will, without
# opening them.
refused() # LINE:COLUMN, TEXT: names.yaml is refused there, with this text
{
	run 2 weir policy check names.yaml
	has stderr "names.yaml:$1: "
	has stderr "$2"
	[ "$(wc -l <stderr)" -eq 1 ] || fail "more than a line: $(cat stderr)"
}
printf 'tenants: [{name: a}]\npeers: ["udp:10.0.0.2:7000", "udp:10.0.0.3"]\n' >names.yaml
refused 2:30 "udp:10.0.0.3: the port is missing"
printf 'tenants: [{name: a}]\npeers:\n  to: "carrier:pigeon"\n  key: k\n' >names.yaml
refused 3:7 "'carrier:pigeon': peers are"
printf 'tenants: [{name: a}]\npeers: {to: "udp:10.0.0.2:7000", listen: "udp-multicast:239.192.7.1:7000", key: k}\n' >names.yaml
refused 2:42 "must be \"udp:HOST:PORT\""
printf 'tenants: [{name: a}]\npeers: ["file:/shared/peers", "udp:10.0.0.3:7000"]\n' >names.yaml
refused 2:9 "cannot be combined with others"
printf 'tenants: [{name: a}]\nresources: [{name: d, back: "memroy:1G"}]\n' >names.yaml
refused 2:29 "memroy"
for port in 99999 x; do
	printf 'tenants: [{name: a}]\nresources: [{name: d, back: "nbd://h:%s/x"}]\n' $port >names.yaml
	refused 2:29 "a port is a number"
done
printf 'tenants: [{name: a}]\nlisten: tcp:host:99999\n' >names.yaml
refused 2:9 "a port is a number"
# A gateway that starts with it prints the same, with the place.
run 2 weir serve names.yaml
has stderr "names.yaml:2:9: listen: tcp:host:99999: a port is a number"
printf 'tenants: [{name: a}]\npeers: {to: ["udp:h1:7000", "udp:[fd00::2]:7000"], listen: "udp::7000", key: k}\n' >names.yaml
run 0 weir policy check names.yaml

echo 'tenants: [{name: p, max: 1k iops, children: [{name: a, max: 2k iops}]}]' >warn.yaml
run 0 weir policy check warn.yaml
has stdout "warn.yaml: ok (2 tenants, 0 resources)"
has stderr "warn.yaml:1:61: 'p/a' can never reach its max"
has stderr "(warning)"

# Tenants in a file of their own, relative to the first file and not to the working directory.
mkdir there
echo 'tenants: more.yaml' >there/main.yaml
echo '- {name: db, weight: 3}' >there/more.yaml
run 0 weir policy check there/main.yaml
has stdout "there/main.yaml: ok (1 tenant, 0 resources)"
echo '- {name: db, weight: 0}' >there/more.yaml
run 2 weir policy check there/main.yaml
has stderr "there/more.yaml:1:22: "
: >there/more.yaml
run 2 weir policy check there/main.yaml
has stderr "there/main.yaml:1:10: tenants: there/more.yaml is empty"
rm there/more.yaml
run 2 weir policy check there/main.yaml
has stderr "there/main.yaml:1:10: tenants: there/more.yaml: No such file or directory"

# The table: shares, effective mins and maxes, costs.
run 0 weir policy show "$WEIR_SOURCE/examples/machine.yaml"
tr -s ' ' <stdout >table
has table "prod/db 3 75% 60% 1.5k iops - - p99.9 < 10ms export=db-*"
has table "prod/web 1 25% 20% 500 iops 1k iops 3k iops for 30s - export=web-* client=10.0.0.0/24"
has table "1 MiB 4 1048576"
has table "flush 1 0"
run 0 weir policy show "$data/good/every-key.yaml"
tr -s ' ' <stdout >table
has table "1 MiB 16 1048576"
has table "flush 4 0"
has table "trim 2 0"
has table "Not enforced"
has table "EXPORT z: c from 0 B, up to its end, read-only"
has table "has its API on unix:/run/weir/api.sock, tcp:127.0.0.1:9810"
has table "speaks TLS only"

# Numbers in full.
echo 'tenants: [{name: a, weight: 1048576, slo: "p99.99999 < 1500us"}, {name: b, weight: 1.5k}]' >full.yaml
run 0 weir policy show full.yaml
tr -s ' ' <stdout >table
has table "a 1048576 "
has table "p99.99999 < 1.5ms"
has table "b 1500 "

# JSON has the same values.
run 0 weir policy show --json "$WEIR_SOURCE/examples/machine.yaml"
python3 - stdout <<'EOF2' || fail "wrong JSON"
import json, sys
p = json.load(open(sys.argv[1]))
t = {x["path"]: x for x in p["tenants"]}
assert list(t) == ["prod", "prod/db", "prod/web", "batch"]
assert t["prod/db"]["min"] == [{"unit": "iops", "ops": "all", "rate": 1500.0}], t
assert t["prod/web"]["burst"] == [{"unit": "iops", "ops": "all", "rate": 3000.0, "seconds": 30.0}]
assert t["prod/db"]["slo"] == {"percentile": 99.9, "seconds": 0.01}
assert abs(t["prod/db"]["of_all"] - 0.6) < 1e-9
assert p["resources"][0]["costs"][3] == {"request": "1 MiB", "requests": 4, "bytes": 1048576}
assert p["exports"][1]["offset"] == 100 << 30
EOF2

# The command line.
run 2 weir policy
run 2 weir policy shwo x
run 2 weir policy check
# Without a file: the policy in force, if a gateway runs.
run 1 env WEIR_SOCKET="$PWD/nobody" weir policy show
has stderr "no gateway answers"
run 2 weir policy show a b
run 2 weir policy check --json "$data/good/empty.yaml"

# ---- classes, folders and templates are shown, as text and as JSON

cat >volumes.yaml <<END
version: 1
classes:
  gold: {weight: 4, min: 500 iops, max: 10 iops/GiB}
resources:
  - name: r
    volumes:
      - {name: db, back: "memory:1M", class: gold}
      - {dir: /srv, match: "*.raw", name: "vm-{stem}", class: gold, read_only: true}
tenants:
  - {name: vms, each: {match: {export: "vm-*"}, class: gold}}
  - {name: db, match: {export: db}}
END
run 0 weir policy show volumes.yaml
has stdout "CLASS gold: weight 4, min 500 iops, max 10 iops/GiB"
has stdout "EACH vms: one tenant per export"
has stdout "DIR /srv: files *.raw are volumes vm-{stem} behind r, class gold, read-only"
has stdout "VOLUME db: memory:1M behind r, class gold"
run 0 weir policy show --json volumes.yaml
python3 - <<'END' || fail "the JSON is wrong: $(cat stdout)"
import json
j = json.load(open("stdout"))
assert j["folders"] == [{"resource": "r", "dir": "/srv", "match": "*.raw", "name": "vm-{stem}", "class": "gold",
                         "read_only": True}], j["folders"]
assert j["classes"] == {"gold": {"weight": "4", "min": "500 iops", "max": "10 iops/GiB"}}, j["classes"]
assert j["exports"][0]["class"] == "gold"
END

# Which controllers run follows from the policy, unless they are named.
cat >cluster.yaml <<END
cluster: {name: t, key: k, controller: ["unix:$PWD/c.sock"], servers: [s1, s2, s3]}
resources: [{name: s1, back: "memory:16M", capacity: 5k iops}]
tenants: [{name: db, min: 5k iops, match: {export: "*"}}]
END
run 0 weir policy show --controllers cluster.yaml
has stdout "db: min 5k iops over 3 servers → pshift"
has stdout "s1 is a server of cluster t → pshift"
cat >hosts.yaml <<END
peers: {to: ["udp:10.0.0.2:7000", "udp:10.0.0.3:7000", "udp:10.0.0.4:7000"], listen: "udp:0.0.0.0:7000", key: k}
resources: [{name: nvme0, back: "memory:16M"}]
tenants: [{name: db, match: {export: "*"}}]
END
run 0 weir policy show --controllers hosts.yaml
has stdout "nvme0 is shared by 4 hosts → parda, threshold found"
sed 's/16M"/16M", controller: none/' hosts.yaml >none.yaml
run 0 weir policy show --controllers none.yaml
has stdout "nvme0 is this gateway's alone: its gate keeps weights, min and max → none"
sed 's/16M"/16M", controller: adaptbf, capacity: 1k iops/' hosts.yaml >named.yaml
run 0 weir policy show --controllers named.yaml
has stdout "nvme0 → adaptbf (named)"
