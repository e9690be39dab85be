# SPDX-License-Identifier: BSD-3-Clause
# Three hosts before one array, each a gateway with one busy client: windows, and what the clients get, are in
# the ratio of the hosts' shares, by datagrams and by a shared file.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

# A port that is free now, and the next two, on loopback.
ports=$(python3 - <<'END'
import socket
while True:
    first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    first.bind(("127.0.0.1", 0))
    port = first.getsockname()[1]
    try:
        for more in (1, 2):
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("127.0.0.1", port + more))
    except (OSError, OverflowError):
        continue
    print(port, port + 1, port + 2)
    break
END
)
(umask 077 && head -c 32 /dev/urandom >key)

# host NUMBER PEERS: its policy, and the gateway. Windows settle with (period / gamma)(1 + 1 / epsilon): by
# these two in 0.75 s, so that three seconds are enough before one looks.
host()
{
	cat >"h$1.yaml" <<END
listen: "unix:$PWD/h$1.sock"
peers: {$2, key: key, host: h$1, period: 200ms}
resources:
  - name: lun
    back: "nbd+unix:///lun?socket=$PWD/array.sock"
    controller: parda
    threshold: 25ms
    parda: {epsilon: 0.5}
tenants:
  - {name: vm, weight: $1, match: {export: "*"}}
END
	serve "h$1" "h$1.yaml"
}

# Loads all three for a while; what each got, in requests a second, into ./got.
load_all()
{
	pids=
	for i in 1 2 3; do
		weir load --json -d 64 -t 5s --warm-up 3s "vm=nbd+unix:///lun?socket=$PWD/h$i.sock" \
			>"load$i.json" &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || fail "weir load"
	done
	python3 -c '
import json
import sys
print(*[json.load(open(f))[0]["iops"] for f in sys.argv[1:]])' load1.json load2.json load3.json >got ||
		fail "what weir load said: $(cat load1.json)"
}

stop_all()
{
	for i in 1 2 3; do
		serve_stop "h$i"
	done
}

# in_ratio TOLERANCE: is ./got in the ratio of 1:2:3?
in_ratio()
{
	python3 -c '
import sys
tolerance, *got = map(float, sys.argv[1:])
assert len(got) == 3
unit = sum(got) / 6
sys.exit(any(abs(g / (unit * (i + 1)) - 1) > tolerance for i, g in enumerate(got)))' "$1" $(cat got)
}

# Whether the ratio comes out. On a machine that is busy with something else a host's process may be kept
# from running for a while, and the windows must settle again: then it is looked at again, twice at most.
settles()
{
	for round in 1 2 3; do
		load_all
		in_ratio 0.15 && return
	done
	fail "$1: 1:2:3 came out as $(cat got)"
}

cat >array.yaml <<END
listen: "unix:$PWD/array.sock"
resources: [{name: lun, back: "model:server,rate=2000+memory:64M", depth: 4096}]
END
serve array array.yaml

set -- $ports
list="\"udp:127.0.0.1:$1\", \"udp:127.0.0.1:$2\", \"udp:127.0.0.1:$3\""
host 1 "to: [$list], listen: \"udp:127.0.0.1:$1\""
host 2 "to: [$list], listen: \"udp:127.0.0.1:$2\""
host 3 "to: [$list], listen: \"udp:127.0.0.1:$3\""
settles "by datagrams"
grep -q 'parda-peers resource=lun' h1.log || fail "nothing was said of peers"
stop_all

for i in 1 2 3; do
	host "$i" "to: \"file:$PWD/peers\""
done
settles "by a file"
stop_all
serve_stop array
