# SPDX-License-Identifier: BSD-3-Clause
# A running gateway over HTTP, and by the verbs that use it: status, changes, recordings; the token
# on TCP; and error messages.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v curl >/dev/null || skip "no curl"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
unset XDG_RUNTIME_DIR

ask() # STATUS CURL-ARGUMENT...: over the unix socket; the answer is in ./reply
{
	want=$1
	shift
	got=$(curl -sS --unix-socket "$WEIR_SOCKET" -o reply -w '%{http_code}' "$@") || fail "curl $*"
	[ "$got" = "$want" ] && return
	cat reply >&2
	fail "curl $*: HTTP status $got, not $want"
}
json() # EXPRESSION: evaluate it on ./reply, as j
{
	python3 -c 'import json,sys; j = json.load(open("reply")); print(eval(sys.argv[1]))' "$1" || fail "$1: $(cat reply)"
}
is() # EXPRESSION VALUE
{
	[ "$(json "$1")" = "$2" ] || fail "$1 is $(json "$1"), not $2"
}

# No gateway: one line, status 1.
for verb in status 'top --once' set 'set db.max 5' 'policy show' 'trace record t'; do
	# shellcheck disable=SC2086 # words
	run 1 weir $verb
	has stderr "no gateway answers at $here/api.sock (is weir serve running?)"
	[ "$(wc -l <stderr)" -eq 1 ] || fail "$verb: more than a line"
done
run 1 weir status --url http://127.0.0.1:1
has stderr 'no gateway answers at http://127.0.0.1:1'

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
state: state
resources: [{name: disk, back: "memory:64M", depth: 8}]
exports:
  - {name: db, size: 8 MiB}
  - {name: "we\"ird", offset: 8 MiB, size: 8 MiB}
tenants:
  - name: prod
    max: 2k iops
    children:
      - {name: db, weight: 3, match: {export: db}}
      - {name: weird, match: {export: "we*"}}
END
printf 'a secret of some length\n' >token
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# With TCP and without a token, the gateway does not start.
run 2 weir serve --api "tcp:127.0.0.1:$port" weir.yaml
has stderr 'needs a token'
echo short >bad
run 2 weir serve --api "tcp:127.0.0.1:$port" --token-file bad weir.yaml
has stderr 'the token must be one line of 16 to 511 characters, not 5'

serve gate --api "unix:$here/api.sock,tcp:127.0.0.1:$port" --token-file token --recordings "$here" weir.yaml
[ "$(stat -c %a api.sock)" = 660 ] || fail "the socket's mode is $(stat -c %a api.sock)"

# ---- some load, so that counters are not 0
weir load -t 3s "db=nbd+unix:///db?socket=$here/s.sock,depth=8" --reads 50% >load.out 2>&1 &
load=$!

run 0 weir trace record --requests 500 now.trace
has stdout 'now.trace: 500 requests'
run 0 weir trace info now.trace
has stdout ' 500 '
run 2 weir trace record now.trace
has stderr 'File exists'

# ---- status
ask 200 http://weir/healthz
has reply ok
tries=0 # the max that holds a tenant is known at the moment of the snapshot only: now and then none does
run 0 weir top --once --interval 500ms
while ! grep -q '^prod/db .*max of prod 100%$' stdout; do
	tries=$((tries + 1))
	[ $tries -lt 5 ] || fail "top: $(cat stdout)"
	run 0 weir top --once --interval 200ms
done
run 0 weir top --batch 2 --interval 100ms --sort iops
[ "$(grep -c ^TENANT stdout)" -eq 2 ] || fail "two intervals: $(cat stdout)"
run 0 weir status --clients
has stdout 'prod/db'
wait $load || fail "load: $(cat load.out)"

ask 200 http://weir/v1/status
is 'j["tenants"][1]["path"]' prod/db
is 'j["tenants"][1]["served"] == j["tenants"][0]["served"] == j["resources"][0]["served"] > 3000' True
is 'j["tenants"][1]["reads"] + j["tenants"][1]["writes"] == j["tenants"][1]["served"]' True
is 'j["tenants"][1]["latency"]["count"] == j["tenants"][1]["served"]' True
is '"buckets" in j["tenants"][1]["latency"]' False
is 'j["tenants"][1]["wait_s"]["above"] > 5' True
is 'j["connections"]["accepted"]' 1
served=$(json 'j["tenants"][1]["served"]')
ask 200 http://weir/metrics
has reply "weir_tenant_served_total{tenant=\"prod/db\"} $served"
has reply "weir_tenant_latency_seconds_count{tenant=\"prod/db\"} $served"
has reply 'weir_tenant_max{tenant="prod/db",unit="requests",ops="all"} 2000'
has reply 'weir_resource_up{resource="disk"} 1'
if command -v promtool >/dev/null; then
	promtool check metrics <reply || fail "promtool"
fi
run 0 weir status
has stdout 'policy version 1; 0 clients'
run 0 weir status --json
has stdout '"policy_version": 1'
ask 200 http://weir/v1/clients
is 'j["clients"]' '[]'
ask 200 -I http://weir/healthz
# Without permission, the message says so and not that no gateway answers.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	run 1 setpriv --reuid=65534 --clear-groups weir status
	has stderr "api.sock: Permission denied"
fi
run 1 weir status --socket "$here/s.sock" # an NBD server's
has stderr "s.sock: not the answer of a gateway"

# ---- filters and pages
ask 200 'http://weir/v1/status?tenant=prod/d'
is '[t["path"] for t in j["tenants"]]' "['prod/db']"
is 'j["next"], j["tenants_all"] > 2, j["left_out"]' "(None, True, 0)"
# brief: only the policy of an idle tenant
ask 200 'http://weir/v1/status?brief=1'
is 'sorted(j["tenants"][-1])' "['leaf', 'path', 'share', 'weight']"
is 'j["tenants"][1]["path"], "served" in j["tenants"][1]' "('prod/db', True)"
is 'len(j["tenants"]) == j["tenants_all"]' True
ask 200 'http://weir/v1/status?active=1'
is '[t["path"] for t in j["tenants"]]' "['prod', 'prod/db']"
is 'j["tenants_active"]' 2
is 'j["left_out"] == j["tenants_all"] - 2' True
ask 200 'http://weir/v1/status?active=1&tenant=prod/'
is 'j["left_out"], [t["path"] for t in j["tenants"]]' "(1, ['prod/db'])"
ask 200 'http://weir/v1/status?active=auto' # few tenants
is 'len(j["tenants"]) == j["tenants_all"]' True
ask 200 'http://weir/v1/status?limit=1'
is '[t["path"] for t in j["tenants"]], j["next"]' "(['prod'], 'prod')"
ask 200 'http://weir/v1/status?limit=1&after=prod'
is '[t["path"] for t in j["tenants"]], j["next"]' "(['prod/db'], 'prod/db')"
ask 404 'http://weir/v1/status?after=nobody'
ask 400 'http://weir/v1/status?limit=0'
ask 400 'http://weir/v1/status?limit=many'
ask 400 'http://weir/v1/status?tenent=prod' # an unknown parameter is refused
has reply "no key 'tenent' here (did you mean 'tenant'?)"
ask 400 'http://weir/v1/clients?limit=1'
ask 400 'http://weir/metrics?histograms=1'
ask 400 -X PUT --data-binary @weir.yaml 'http://weir/v1/policy?dyr=1'
has reply "no key 'dyr' here"
ask 200 http://weir/v1/policy
is 'j["version"]' 1
ask 200 'http://weir/healthz?probe=7'
ask 200 'http://weir/metrics?tenant=prod/d'
has reply "weir_tenant_served_total{tenant=\"prod/db\"} $served"
hasnt reply 'tenant="prod"'
ask 200 'http://weir/v1/clients?tenant=prod'
is 'j["clients"]' '[]'
run 0 weir status --tenant prod/d
has stdout prod/db
! grep -q '^prod ' stdout || fail "the filter: $(cat stdout)"
ask 200 'http://weir/v1/policy?show=table'
has reply 'prod/db '
ask 200 'http://weir/v1/policy?show=json'
is 'j["tenants"][1]["path"]' prod/db
ask 400 'http://weir/v1/policy?show=picture'

printf 'resources: [{name: disk, back: "memory:64M"}, {name: new, back: "model:sdd+memory:8M"}]\n' >names
ask 400 -X PUT --data-binary @names 'http://weir/v1/policy?dry=1'
has reply 'policy:1:65: model:sdd: '

# ---- requests that must be refused: including a file, or an uncertain length
echo 'secret: line' >secret
printf 'resources: [{name: disk, back: "memory:64M"}]\ntenants: %s\n' "$here/secret" >names
ask 400 -X PUT --data-binary @names 'http://weir/v1/policy?dry=1'
has reply "only the gateway's own policy file may name a file"
hasnt reply 'secret: line'
printf 'resources: [{name: disk, back: "memory:64M"}]\ntls: {cert: %s, key: %s}\n' "$here/secret" "$here/secret" >names
ask 400 -X PUT --data-binary @names 'http://weir/v1/policy?dry=1'
has reply 'tls: other files than before'
ask 400 -X PUT -H 'Content-Length: 3' -H 'Content-Length: 3' -d abc 'http://weir/v1/policy?dry=1'
has reply 'more than one Content-Length'
ask 501 -X PUT -H 'Transfer-Encoding: gzip, chunked' -d abc 'http://weir/v1/policy?dry=1'
has reply 'Transfer-Encoding must be chunked'

# ---- unknown paths
ask 404 http://weir/nothing
ask 404 http://weir/v1/statusx
ask 405 -X POST http://weir/v1/status
ask 405 -X PATCH http://weir/v1/policy
ask 405 http://weir/v1/set/prod.max
ask 400 -X PUT -d 5 http://weir/v1/set/
has reply 'the name is empty'
ask 404 -X DELETE http://weir/v1/record
ask 400 -X POST 'http://weir/v1/record'
for file in /etc/weir-x "$here/none/x" "$here/../x" ../x .x none/x; do # only one folder is allowed
	ask 400 -X POST "http://weir/v1/record?file=$file"
	has reply "recordings go to $here"
done
ask 400 -X POST "http://weir/v1/record?file=$here/x&requests=none"
ask 400 -X POST "http://weir/v1/record?file=$here/x&duration=long"
[ ! -e x ] || fail "a refused recording made a file"
head -c 16777217 /dev/zero | tr '\0' '#' >big
ask 413 -X PUT -T big http://weir/v1/policy

# ---- a recording whose client is gone
ask 400 -X POST "http://weir/v1/record?file=$here/x&while=ever"
ask 200 -X POST "http://weir/v1/record?file=$here/forgotten.trace&while=3s"
for i in 1 2 3 4; do
	sleep 1
	ask 200 http://weir/v1/record
	is 'j["recording"]' True
done
sleep 4
ask 200 http://weir/v1/record
is 'j["recording"]' False

# ---- two recordings at once
ask 200 -X POST "http://weir/v1/record?file=$here/one.trace&duration=1h"
ask 409 -X POST "http://weir/v1/record?file=$here/two.trace"
ask 200 http://weir/v1/record
is 'j["recording"]' True
ask 200 -X DELETE http://weir/v1/record
is 'j["recorded"]' 0
ask 200 -X POST "http://weir/v1/record?file=$here/three.trace&duration=50ms"
until ask 200 http://weir/v1/record && [ "$(json 'j["recording"]')" = False ]; do sleep 0.05; done
ask 200 -X DELETE http://weir/v1/record

# ---- changes
run 0 weir set prod/db.max 1500 iops
has stdout 'prod/db.max: none -> 1.5k iops'
ask 200 -X PUT -d '7' http://weir/v1/set/prod/weird.weight
run 0 weir set
has stdout 'prod/db.max 1500 iops'
has stdout 'prod/weird.weight 7'
run 0 weir policy show
has stdout 'Policy version 3. Changed by weir set:'
grep -q '^prod/db .* 1.5k iops' stdout || fail "show: $(cat stdout)"
run 0 weir policy show --json
run 2 weir set prod/nobody.max 5k iops
has stderr "no tenant 'prod/nobody'"
run 2 weir set prod/db.max 5 bananas
run 2 weir set prod/db.colour red
run 2 weir set prod/db.max
has stderr 'needs a KEY and a VALUE'
ask 400 -X PUT --data-binary '' http://weir/v1/set/prod/db.max
run 0 weir set --unset prod/weird.weight
run 0 weir set
hasnt stdout weird

sed 's/weight: 3/wieght: 3/' weir.yaml >slip.yaml
run 2 weir policy apply slip.yaml
has stderr "slip.yaml:11:"
has stderr "did you mean 'weight'?"
ask 400 -X PUT --data-binary @slip.yaml http://weir/v1/policy
has reply 'policy:11:'
sed 's/weight: 3/weight: 5/' weir.yaml >next.yaml
run 0 weir policy apply --dry-run next.yaml
has stdout 'prod/db.weight: 3 -> 5'
has stdout 'prod/db.max'
has stdout 'nothing was changed'
ask 200 http://weir/v1/policy
is 'j["version"]' 4
run 0 weir policy apply --keep next.yaml
has stdout 'policy version 5 is in force'
run 0 weir set
has stdout 'prod/db.max 1500 iops'
run 0 weir policy apply next.yaml
has stdout 'is undone'
run 0 weir set
[ ! -s stdout ] || fail "still set: $(cat stdout)"
run 2 weir policy apply none.yaml
run 2 weir policy apply
run 2 weir policy apply --json next.yaml
run 2 weir policy show --keep
run 2 weir policy check --socket x weir.yaml

# ---- TCP
url=http://127.0.0.1:$port
tcp() # STATUS CURL-ARGUMENT...
{
	want=$1
	shift
	got=$(curl -sS -o reply -w '%{http_code}' "$@") || fail "curl $*"
	[ "$got" = "$want" ] || fail "curl $*: HTTP status $got, not $want"
}
tcp 401 "$url/v1/status"
tcp 401 -H 'Authorization: Bearer a secret of some lengtH' "$url/metrics"
tcp 200 -H 'Authorization: Bearer a secret of some length' "$url/metrics"
tcp 200 "$url/healthz"
run 1 weir status --url "$url"
has stderr 'the token is missing or wrong (--token-file)'
run 0 weir status --url "$url/" --token-file token
run 2 weir status --url "$url" --socket api.sock
run 0 weir status --token-file token
run 2 weir status --tls . --url "$url"
run 2 weir status --url ftp://x
run 2 weir status --url "$url" --token-file none

# ---- a second gateway: if the socket is in use it has no API and says so; an API of --api is
# required
sed '/^state/d; s/s\.sock/s2.sock/' weir.yaml >second.yaml
weir serve --pidfile second.pid second.yaml 2>second.log &
second=$!
until [ -s second.pid ]; do
	kill -0 $second 2>/dev/null || fail "the second gateway: $(cat second.log)"
	sleep 0.02
done
kill $second
wait $second || fail "the second gateway: $(cat second.log)"
has second.log 'no-api'
run 1 weir serve --api "unix:$here/api.sock" second.yaml
has stderr 'in use'
run 0 weir status # the first gateway still answers

serve_stop gate
[ ! -e api.sock ] || fail "the socket's file is left behind"
