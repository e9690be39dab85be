# SPDX-License-Identifier: BSD-3-Clause
# The names that a gateway and a controller show to programs and people: metrics with their types, labels and help,
# members of the API's answers, and the headings of weir status and weir top. For PARDA with a peer, AdapTBF, static
# rules, no controller, and pShift under weir control they are compared with tests/data/facts/*.txt.
# With WEIR_FACTS=DIR set, the names are written to DIR instead.
. "$WEIR_SOURCE/tests/lib-hosts.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

command -v curl >/dev/null || skip "no curl"

# ---- PARDA: two hosts before one array
array
# shellcheck disable=SC2046 # two words
set -- $(free_ports 2)
host a 1 lun "listen: \"udp:127.0.0.1:$1\", to: [$(peers_of "$2")]"
host b 1 lun "listen: \"udp:127.0.0.1:$2\", to: [$(peers_of "$1")]"

# ---- AdapTBF, static rules, and nothing, in one gateway
cat >mixed.yaml <<END
listen: "unix:$PWD/mixed.sock"
state: "$PWD/state"
resources:
  - {name: ost, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", depth: 8, capacity: 1k iops,
     controller: adaptbf, adaptbf: {tokens: hold}}
  - {name: rules, back: "memory:16M", controller: tbf, tbf: {default: 100 iops, rules: [{match: c, rate: 300 iops}]}}
  - {name: plain, back: "memory:16M", controller: none}
exports:
  - {name: lender, resource: ost, size: 8 MiB}
  - {name: burst, resource: ost, offset: 8 MiB, size: 8 MiB}
  - {name: rules, resource: rules}
  - {name: plain, resource: plain}
tenants:
  - {name: lender, weight: 1, match: {export: lender}, slo: "p99 < 10ms"}
  - {name: burst, weight: 1, match: {export: burst}, min: 10 iops, max: 900 iops}
  - {name: others, match: {export: "*"}}
END
serve mixed --api "unix:$PWD/mixed.api" mixed.yaml

# ---- pShift: a controller and a server
cluster_start 1

# ---- some work, so that there are latencies, jobs, loans, and loans that were repaid
at() # EXPORT GATEWAY
{
	echo "nbd+unix:///$1?socket=$PWD/$2.sock"
}
ledger() # print the loans of AdapTBF
{
	curl -s --unix-socket mixed.api http://localhost/v1/ledger | tr -d ' \n'
}
look() # NAME: adds the names of ./NAME.api to ./NAME.txt
{
	python3 -B "$WEIR_SOURCE/tests/e2e/facts.py" "$1.api" >>"$1.txt" || fail "$1"
}
weir load -t 500ms "lender=$(at lender mixed),depth=1,rate=20 iops" "burst=$(at burst mixed),depth=64" \
	"rules=$(at rules mixed),depth=2" "plain=$(at plain mixed),depth=1,rate=100 iops" "a=$(at lun a),depth=8" \
	"b=$(at lun b),depth=8" "b1=$(at b1 s1),depth=4" >load.out 2>&1 || fail "weir load: $(cat load.out)"
ledger | grep -q '"loans":\[{' || fail "nothing was lent: $(ledger)"
look mixed
weir load -t 10s "lender=$(at lender mixed),depth=64" "burst=$(at burst mixed),depth=64" >load.out 2>&1 &
serve_all="$serve_all $!" # ended with the gateways
tries=0
until ledger | grep -q '"repaid":\[{'; do
	tries=$((tries + 1))
	[ "$tries" -lt 180 ] || fail "no loan was repaid: $(ledger)"
	sleep 0.05
done
for name in a mixed s1 c; do
	look $name
	LC_ALL=C sort -u $name.txt >$name
	if [ "${WEIR_FACTS-}" ]; then
		cp $name "$WEIR_FACTS/$name.txt"
	else
		diff -u "$WEIR_SOURCE/tests/data/facts/$name.txt" $name || fail "names of $name changed"
	fi
done
