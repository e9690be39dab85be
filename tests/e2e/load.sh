# SPDX-License-Identifier: BSD-3-Clause
# weir load against third-party servers, correct ones and lying ones.
. "$WEIR_SOURCE/tests/lib.sh"
command -v nbdkit >/dev/null || skip "nbdkit is not installed"

serve() # ARGUMENT...: start nbdkit on ./sock
{
	rm -f sock pid
	nbdkit -f -U "$PWD/sock" -P "$PWD/pid" "$@" 2>>nbdkit.log &
	server=$!
	for try in $(seq 200); do
		[ ! -s pid ] || return 0 # written when it listens
		sleep 0.02
	done
	cat nbdkit.log
	fail "nbdkit $*"
}
stop() # SIGNAL: stop it
{
	kill "-$1" $server
	wait $server
	server=
}
server=
trap '[ -z "$server" ] || kill $server' EXIT
uri="nbd+unix:///?socket=$PWD/sock"

# ---- closed and open loop, mixes, several jobs
serve memory 64M
run 0 weir load -n 3000 -d 16 -c 2 --reads 70% --size 4k:70,64k:30 --flush-every 50 --fua 10% --json "$uri"
python3 - <<'END' || fail "JSON of a closed loop"
import json
(job,) = json.load(open("stdout"))
assert job["requests"] == 3000 and job["size"] == 64 << 20 and not job["errors"], job
assert job["reads"] + job["writes"] + job["flushes"] == 3000 and job["flushes"] == job["writes"] // 50, job
assert 0.65 < job["reads"] / (3000 - job["flushes"]) < 0.75, job
assert 0 < job["p50_ns"] <= job["p90_ns"] <= job["p99_ns"] <= job["p99.9_ns"] <= job["max_ns"], job
END
run 0 weir load -t 300ms --series series.csv "victim=$uri,rate=500" "noisy=$uri,depth=32,size=64k,structured"
grep -q '^victim  *[0-9]' stdout && grep -q '^noisy ' stdout || { cat stdout; fail "two rows"; }
[ "$(sed -n 1p series.csv)" = time_s,job,iops,p50_us,p99_us ] || fail "series: $(head -1 series.csv)"
[ "$(grep -c ',victim,' series.csv)" -ge 2 ] || { cat series.csv; fail "too few lines of the victim"; }
run 0 weir load -n 200 --order zipf:1.2 --json "$uri"
run 0 weir load -n 200 --order sequential --threads 2 "a=$uri" "b=$uri,think=100us"

# ---- written data can be read back, and a later run checks it
run 0 weir load --verify --reads 40% -n 3000 -d 16 -c 4 --size 4k:3,16k:1 "v=$uri"
has stdout ' 0 wrong'
stop TERM
truncate -s 8M disk
serve file disk
run 0 weir load --verify --reads 0% -n 500 -d 8 --table table "v=$uri"
run 0 weir load --verify --reads 0% -n 0 --table table "v=$uri"
has stdout ' 0 wrong'
stop TERM
# one byte changed between the passes is found, and its place reported
python3 - <<'END' || fail "changing a byte"
disk = open("disk", "r+b")
data = disk.read()
at = next(i for i in range(0, len(data), 4096) if data[i:i + 4096].strip(b"\0")) + 1234
disk.seek(at)
disk.write(bytes([data[at] ^ 1]))
open("at", "w").write(str(at - 1234))
END
serve file disk
run 1 weir load --verify --reads 0% -n 0 --table table "v=$uri"
has stdout ' 1 wrong'
has stderr "wrong block at offset $(cat at): expected generation"
stop TERM

# ---- a server that acknowledges writes and forgets them
run 1 nbdkit -U - eval get_size='echo 1M' pread='head -c $3 /dev/zero' pwrite='cat >/dev/null' \
	--run 'weir load --verify --reads 20% -n 40 "$uri"'
has stderr 'got not a block of this run'

# ---- errors by kind
run 1 nbdkit -U - --filter=error memory 1M error-pread=ENOSPC error-pread-rate=100% \
	--run 'weir load -n 20 "$uri"'
has stdout '20 errors ENOSPC'
run 0 nbdkit -U - --filter=error memory 1M error-pread=EPERM error-pread-rate=100% \
	--run 'weir load -n 20 --allow-errors "$uri"'
has stdout '20 errors EPERM'

# ---- a killed server: no flushed data are lost, unless the server lies
killed() # STATUS CACHE-MODE: verified load while nbdkit is killed twice
{
	serve --filter=cache file disk "cache=$2"
	weir load --verify --reads 50% -t 1200ms -d 16 --reconnect 10s --json "v=$uri" >stdout 2>stderr &
	load=$!
	for i in 1 2; do
		sleep 0.3
		stop KILL
		serve --filter=cache file disk "cache=$2"
	done
	status=0
	wait $load || status=$?
	stop TERM
	[ $status -eq "$1" ] || { cat stdout stderr >&2; fail "cache=$2: exit status $status, not $1"; }
	grep -q '"reconnects": [12]' stdout || { cat stdout >&2; fail "no reconnect"; }
}
killed 0 writeback
killed 1 unsafe # acknowledges a flush and does nothing
has stderr 'wrong block at offset'
serve memory 1M
weir load -t 10s "$uri" >stdout 2>stderr & # without --reconnect the loss of the connection ends the run
load=$!
sleep 0.2
stop KILL
wait $load && fail "the loss of the server is not reported"
has stderr "weir: load: load: $uri: "

# ---- an interrupted run ends in good order
serve memory 1M
weir load -t 60s "$uri" >stdout 2>stderr &
load=$!
sleep 0.3
kill -TERM $load
wait $load || { cat stderr; fail "interrupted: exit status $?"; }
grep -q '^load  *[1-9]' stdout || { cat stdout; fail "no result of an interrupted load"; }

# ---- TLS: a key, certificates, and wrong ones
if nbdkit --dump-config | grep -q '^tls=yes' && command -v certtool >/dev/null; then
	stop TERM
	mkdir pki
	printf 'alice:%s\n' 0123456789abcdef0123456789abcdef >keys.psk
	printf 'mallory:%s\n' 00000000000000000000000000000000 >wrong.psk
	serve --tls=require --tls-psk=keys.psk memory 1M
	run 0 weir load -n 500 -d 8 --reads 50% --verify --tls-psk keys.psk "nbds${uri#nbd}"
	run 1 weir load -n 10 --tls-psk wrong.psk "nbds${uri#nbd}"
	run 1 weir load -n 10 "$uri"
	has stderr 'requires TLS'
	stop TERM
	certtool --generate-privkey --key-type=ecdsa --outfile pki/ca-key.pem 2>/dev/null
	printf 'cn = test\nca\ncert_signing_key\n' >ca.info
	certtool --generate-self-signed --load-privkey pki/ca-key.pem --template ca.info \
		--outfile pki/ca-cert.pem 2>/dev/null
	certtool --generate-privkey --key-type=ecdsa --outfile pki/server-key.pem 2>/dev/null
	printf 'cn = localhost\ndns_name = localhost\ntls_www_server\nsigning_key\n' >server.info
	certtool --generate-certificate --load-privkey pki/server-key.pem --template server.info \
		--load-ca-certificate pki/ca-cert.pem --load-ca-privkey pki/ca-key.pem \
		--outfile pki/server-cert.pem 2>/dev/null
	serve --tls=require --tls-certificates=pki memory 1M
	run 0 weir load -n 200 -d 8 --size 128k --tls-ca pki/ca-cert.pem "nbds${uri#nbd}"
	certtool --generate-self-signed --load-privkey pki/server-key.pem --template ca.info \
		--outfile other-ca.pem 2>/dev/null
	run 1 weir load -n 10 --tls-ca other-ca.pem "nbds${uri#nbd}"
	has stderr 'certificate'
fi

# ---- the command line
stop TERM
serve memory 1M
run 2 weir load
run 2 weir load http://here
has stderr 'is not a job'
run 2 weir load "$uri"
has stderr 'needs a duration'
run 2 weir load -n 5 --reads lots "$uri"
has stderr '--reads: '
run 2 weir load -n 5 "$uri,dept=3"
has stderr "(did you mean 'depth'?)"
run 1 weir load -n 5 "nbd+unix:///?socket=$PWD/nosuch"
run 2 weir load -n 5 --size 64M "$uri"
run 2 weir load -n 5 --threads 0 "$uri"
