# SPDX-License-Identifier: BSD-3-Clause
# TLS with clients of libnbd: certificates and pre-shared keys; required or not; tenants by the
# client's verified identity.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in certtool psktool nbdinfo nbdcopy; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
nbdinfo --can connect 'nbds+unix:///?socket=/nowhere' 2>err || :
grep -q "TLS support" err && skip "libnbd is without TLS"
here=$PWD

# authority, server, clients alice and mallory (another authority's)
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
	[ -s "$name/cert.pem" ] || fail "certtool makes no certificate for $name"
}
client_folder() # NAME: make a folder in libnbd's layout
{
	cp ca/cert.pem "$1/ca-cert.pem"
	cp "$1/cert.pem" "$1/client-cert.pem"
	cp "$1/key.pem" "$1/client-key.pem"
}
certificate ca self 'cn = "test authority"' ca cert_signing_key
certificate other self 'cn = "another authority"' ca cert_signing_key
certificate server ca 'cn = "localhost"' 'dns_name = "localhost"' 'ip_address = "127.0.0.1"' tls_www_server \
	signing_key encryption_key
certificate alice ca 'cn = "alice.example.org"' tls_www_client signing_key
certificate mallory other 'cn = "alice.example.org"' tls_www_client signing_key
client_folder alice
client_folder mallory
psktool -u bob -p keys.psk >/dev/null 2>&1

policy() # MORE: lines of the tls key
{
	cat <<-END
		listen: "unix:$here/s.sock"
		tls: {$1}
		resources: [{name: disk, back: "memory:8M"}]
		tenants:
		  - {name: alice, match: {tls: "*.example.org"}}
		  - {name: bob, match: {tls: bob}}
		  - {name: plain, match: {export: "*"}}
	END
}
uri() # SCHEME QUERY
{
	echo "$1:///disk?socket=$here/s.sock${2:+&}$2"
}

# ---- certificates, required also from clients

policy "cert: server/cert.pem, key: server/key.pem, ca: ca/cert.pem, required: true" >weir.yaml
serve x509 weir.yaml
run 0 timeout 10 nbdinfo "$(uri nbds+unix "tls-certificates=$here/alice&tls-hostname=localhost")"
has stdout "newstyle-fixed with TLS"
has x509.log "tenant=alice"
has x509.log "tls=alice.example.org"
head -c 3M /dev/urandom >random
run 0 timeout 20 nbdcopy random "$(uri nbds+unix "tls-certificates=$here/alice&tls-hostname=localhost")"
run 0 timeout 20 nbdcopy "$(uri nbds+unix "tls-certificates=$here/alice&tls-hostname=localhost")" back
cmp -n 3145728 random back || fail "other bytes are read back through TLS"
run 1 timeout 10 nbdinfo "$(uri nbd+unix)"
run 1 timeout 10 nbdinfo "$(uri nbds+unix "tls-certificates=$here/mallory&tls-hostname=localhost")"
has x509.log "client-refused"
# The reason is in the answer to the option.
mkdir -p nobody
cp ca/cert.pem nobody/ca-cert.pem
if command -v qemu-nbd >/dev/null; then
	run 1 timeout 10 qemu-nbd --list --socket "$here/s.sock" --tls-creds t --tls-hostname localhost \
		--object "tls-creds-x509,id=t,dir=$here/nobody,endpoint=client"
	has stderr "requires a TLS client certificate"
fi
[ "$(grep -c client-joined x509.log)" -ge 3 ] || fail "joined: $(cat x509.log)"
hasnt x509.log "tenant=plain"

# ---- SIGHUP loads a renewed certificate; a broken one changes nothing

with_ca() # FOLDER: run a client that trusts only its CA (libnbd does not verify on a unix socket)
{
	timeout 10 weir load -n 1 --tls-ca "$1/cert.pem" --tls-cert alice/cert.pem --tls-key alice/key.pem \
		"$(uri nbds+unix)"
}
hup() # TEXT: send SIGHUP and wait until the log has one more line with it
{
	before=$(grep -c "$1" x509.log)
	kill -HUP "$(cat x509.pid)"
	tries=0
	until [ "$(grep -c "$1" x509.log)" -gt "$before" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "after SIGHUP the log does not have $1"
		sleep 0.02
	done
}
run 0 with_ca ca
run 1 with_ca other
certificate server other 'cn = "localhost"' 'dns_name = "localhost"' 'ip_address = "127.0.0.1"' tls_www_server \
	signing_key
hup "info policy "
run 0 with_ca other
run 1 with_ca ca
: >server/cert.pem
hup policy-refused
run 0 with_ca other
serve_stop x509

# ---- a pre-shared key, not required

policy "psk: keys.psk" >weir.yaml
serve psk weir.yaml
run 0 timeout 10 nbdinfo "nbds+unix://bob@/disk?socket=$here/s.sock&tls-psk-file=$here/keys.psk"
has stdout "newstyle-fixed with TLS"
has psk.log "tenant=bob"
run 0 timeout 10 nbdinfo "$(uri nbd+unix)"
has stdout "newstyle-fixed without TLS"
has psk.log "tenant=plain"
sed 's/:.*/:00112233445566778899aabbccddeeff/' keys.psk >wrong.psk
run 1 timeout 10 nbdinfo "nbds+unix://bob@/disk?socket=$here/s.sock&tls-psk-file=$here/wrong.psk"
serve_stop psk

# ---- a template by identity: a client that only looks needs no tenant and makes none

policy "psk: keys.psk, required: true" |
	sed -e 's/{name: bob, match: {tls: bob}}/{name: keys, each: {match: {tls: "*"}}}/' -e /plain/d >weir.yaml
WEIR_SOCKET=$here/api.sock
export WEIR_SOCKET
serve each --api "unix:$here/api.sock" weir.yaml
run 0 timeout 10 nbdinfo --list "nbds+unix://bob@/?socket=$here/s.sock&tls-psk-file=$here/keys.psk"
has stdout "export-size: 8388608"
run 0 weir status
has stdout keys
hasnt stdout keys/bob
run 0 timeout 10 nbdinfo --map "nbds+unix://bob@/disk?socket=$here/s.sock&tls-psk-file=$here/keys.psk"
run 0 weir status
has stdout keys/bob
serve_stop each

# ---- missing files

policy "cert: nowhere.pem, key: server/key.pem" >weir.yaml
run 1 weir serve --api none weir.yaml
has stderr "nowhere.pem"
