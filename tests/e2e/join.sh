# SPDX-License-Identifier: BSD-3-Clause
# Members of a cluster follow the versions of a store, over etcd with TLS: a version that does not fit a machine leaves the one before
# it in force there, and the status says why; the store goes away and comes back while clients read and write; values that were set end.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-etcd.sh"
command -v certtool >/dev/null || skip "no certtool"

certificate() # NAME CA TEMPLATE...
{
	name=$1 ca=$2
	shift 2
	mkdir -p "$name"
	printf '%s\n' "$@" "expiration_days = 2" >"$name/template"
	certtool --generate-privkey --key-type ecdsa --outfile "$name/key.pem" 2>/dev/null
	if [ "$ca" = self ]; then
		certtool --generate-self-signed --load-privkey "$name/key.pem" --template "$name/template" \
			--outfile "$name/cert.pem" 2>/dev/null
	else
		certtool --generate-certificate --load-privkey "$name/key.pem" --template "$name/template" \
			--load-ca-certificate "$ca/cert.pem" --load-ca-privkey "$ca/key.pem" \
			--outfile "$name/cert.pem" 2>/dev/null
	fi
}
certificate ca self 'cn = "authority"' ca cert_signing_key
certificate other self 'cn = "another authority"' ca cert_signing_key
certificate server ca 'cn = "localhost"' 'ip_address = "127.0.0.1"' tls_www_server tls_www_client signing_key
certificate client ca 'cn = "weir"' tls_www_client signing_key
certificate stranger other 'cn = "weir"' tls_www_client signing_key

tls="ca=$PWD/ca/cert.pem&cert=$PWD/client/cert.pem&key=$PWD/client/key.pem"
etcd_extra="&$tls"
CLIENTS=https etcd_start 1 --cert-file server/cert.pem --key-file server/key.pem --trusted-ca-file ca/cert.pem --client-cert-auth
store="etcd:$etcd_urls?$tls&timeout=2s"

# Wrong certificates are named.
run 1 weir cluster init --name prod --store "etcd:$etcd_urls?ca=$PWD/other/cert.pem&cert=$PWD/client/cert.pem&key=$PWD/client/key.pem&timeout=1s"
has stderr "certificate"
run 1 weir cluster init --name prod --store "etcd:$etcd_urls?ca=$PWD/ca/cert.pem&cert=$PWD/stranger/cert.pem&key=$PWD/stranger/key.pem&timeout=1s"
[ ! -e prod.token ] || fail "a token of no cluster"

run 0 weir cluster init --name prod --store "$store"
[ "$(stat -c %a prod.token)" = 600 ] || fail "the token is readable by others"
rm -f again.token
run 2 weir cluster init --name again --store "$store&prefix=weir/prod"
has stderr "there is a cluster"
weir_store=prod.token

for i in 1 2; do
	cat >node$i.yaml <<END
listen: "unix:$PWD/nbd$i.sock"
api: "unix:$PWD/api$i.sock"
state: $PWD/state$i
resources:
  - {name: disk, back: "memory:16M", capacity: ${i}k iops}
END
done
run 1 weir serve --join prod.token --local node1.yaml
has stderr "there is no policy in"
printf -- '- {name: db, weight: 3, match: {uid: 0}}\n- {name: web, match: {export: "*"}}\n' >one.yaml
printf -- '- {name: db, weight: 3, min: 1500 iops, match: {uid: 0}}\n- {name: web, match: {export: "*"}}\n' >two.yaml
printf -- '- {name: db, weight: 5, match: {uid: 0}}\n- {name: web, match: {export: "*"}}\n' >three.yaml
run 0 weir policy apply --store "$weir_store" -m "the first" one.yaml

member() # I [NAME]: start it
{
	rm -f node$1.pid
	weir serve --join prod.token --local node$1.yaml --name "${2-node$1}" --pidfile node$1.pid >node$1.out 2>node$1.log </dev/null &
	serve_child=$!
	serve_all="${serve_all-} $!"
	trap 'kill -KILL $serve_all 2>/dev/null; serve_cleanup' EXIT
	serve_ready node$1 "member $1"
}
until_status() # TEXT: until the cluster's status has it
{
	tries=0
	until weir cluster status --join prod.token >status 2>&1 && grep -q "$1" status; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || { cat status node?.log >&2; fail "the status never has: $1"; }
		sleep 0.05
	done
}
member 1 node3 # it leaves, and is away by the end of this test
until_status "node3 *1  *ok"
kill -KILL "$(cat node1.pid)"
member 1
member 2
until_status "node1 *1  *ok"
until_status "node2 *1  *ok"

# Another member of that name is refused, and may be checked; the same one was started again above.
sed 's/state1/state3/; s/1.sock/3.sock/' node1.yaml >node3.yaml
run 2 weir serve --join prod.token --local node3.yaml --name node1
has stderr "there is a member 'node1' already, on $(uname -n) (process $(cat node1.pid)"
run 0 weir serve --join prod.token --local node3.yaml --name node1 --check

# A version through one member's API reaches the other.
weir token add anna --role admin --socket "$PWD/api1.sock" >anna
run 0 weir policy apply --socket "$PWD/api1.sock" --token-file anna -m "more for db" three.yaml
has stdout "db.weight: 3 -> 5"
has stdout "version 2 is stored"
until_status "node1 *2  *ok"
until_status "node2 *2  *ok"
run 0 weir policy show --socket "$PWD/api2.sock"
grep -q "^db *5 " stdout || fail "node2 has another weight: $(cat stdout)"

run 0 weir policy history --socket "$PWD/api2.sock"
has stdout anna # the name of the token
run 0 weir policy history --socket "$PWD/api2.sock" --number 1
has stdout "2  "
has stdout "more for db"
hasnt stdout "the first"

# Checked with what members published: node1 has 1k iops.
run 2 weir policy apply --store "$weir_store" two.yaml
has stderr "member node1: "
has stderr "nothing was changed"
run 2 weir policy apply --socket "$PWD/api1.sock" two.yaml
# by node2 it is stored: node1 keeps the version before, and says why
run 0 weir policy apply --socket "$PWD/api2.sock" -m "too much for node1" two.yaml
until_status "node1 *2  *version 3 is not in force: "
until_status "node2 *3  *ok"
run 0 weir policy show --socket "$PWD/api1.sock"
grep -q "^db *5 " stdout || fail "node1 lost its version"
run 0 weir policy rollback --store "$weir_store" 2
until_status "node1 *4  *ok"
until_status "node2 *4  *ok"

# A value that is set ends by itself.
run 0 weir set --socket "$PWD/api2.sock" --for 2s -m "while it rains" db.weight 7
has stdout "version 5 is stored"
until_status "node1 *5  *ok"
run 0 weir policy show --socket "$PWD/api1.sock"
grep -q "^db *7 " stdout || fail "node1 does not have the value that was set"
tries=0
until weir policy show --socket "$PWD/api1.sock" | grep -q "^db *5 "; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || fail "the value does not end"
	sleep 0.1
done

# The store is away: I/O goes on, changes fail, a member can be started; then all catch up.
weir load -t 4s "nbd+unix:///disk?socket=$PWD/nbd1.sock" >load.out 2>&1 &
load=$!
etcd_kill 1
run 0 weir policy show --socket "$PWD/api1.sock"
run 1 weir set --socket "$PWD/api1.sock" db.weight 9
has stderr "store"
kill -KILL "$(cat node2.pid)"
member 2
has node2.log store-lost
mkdir state3
cp state2/version.json state3/ # of a member that was there before, under another name
weir serve --join prod.token --local node3.yaml --name node1 --pidfile node3.pid >node3.out 2>node3.log </dev/null &
serve_child=$!
serve_all="$serve_all $!"
serve_ready node3 "member 3"
wait "$load" || { cat load.out >&2; fail "a client lost I/O"; }
run 0 weir policy show --socket "$PWD/api2.sock"
grep -q "^db *5 " stdout || fail "node2 does not have the last version: $(cat stdout)"
etcd_run 1
etcd_wait
run 0 weir policy apply --store "$weir_store" -m "after the loss" one.yaml
until_status "node1 *6  *ok"
until_status "node2 *6  *ok"
has node1.log store-back
tries=0
until grep -q "name-taken.*on $(uname -n) (process $(cat node1.pid)" node3.log; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "two members have a name"
	sleep 0.05
done
kill -KILL "$(cat node3.pid)"
hasnt node1.log name-taken
hasnt node2.log name-taken

# A version through the unix socket has its user.
run 0 weir set --socket "$PWD/api1.sock" -m "of a user" db.weight 4
until_status "node1 *7  *ok"
run 0 weir policy history --socket "$PWD/api1.sock" --number 1
has stdout " ${SUDO_USER:-$(id -un)}"
curl -s --unix-socket "$PWD/api1.sock" -X DELETE http://localhost/v1/set/db.weight >reply
until_status "node1 *8  *ok"
run 0 weir policy history --socket "$PWD/api1.sock" --number 1
has stdout " uid $(id -u)@node1"

# The cluster of the token, and no other.
sed 's/^id: ..../id: 0000/' prod.token >stranger.token
run 2 weir serve --join stranger.token --local node1.yaml --name node3
has stderr "another cluster"
until_status "node3 *-  *away"
serve_stop node1
hasnt node2.log "$(sed -n 's/^id: //p' prod.token)"
serve_stop node2
