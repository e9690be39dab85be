# SPDX-License-Identifier: BSD-3-Clause
# A host without reachable peers goes on alone and says so; its controller's settings are changed,
# removed and added while it runs, but not its peers; invalid settings are refused at the start.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

export WEIR_SOCKET="$PWD/api.sock"

# policy THRESHOLD [PEERS]
policy()
{
	cat <<END
listen: "unix:$PWD/nbd.sock"
peers: {to: "${2-file:$PWD/peers}", host: alone, period: 100ms}
resources:
  - {name: lun, back: "model:server,rate=2000+memory:64M", depth: 7, $1}
END
}

# status PYTHON: evaluate it on the status `s`
status()
{
	curl -s --unix-socket api.sock http://localhost/v1/status >status.json || fail "no status"
	python3 -c "
import json
s = json.load(open('status.json'))
r = s['resources'][0]
print($1)"
}

# until_so PYTHON: wait until it is True
until_so()
{
	tries=0
	until [ "$(status "$1")" = True ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || fail "never true: $1; $(cat status.json)"
		sleep 0.1
	done
}

policy "controller: parda, threshold: 10ms" >on.yaml
policy "controller: parda, threshold: 20ms" >other.yaml
policy "controller: none" >off.yaml
policy "controller: parda, threshold: 10ms" "file:$PWD/elsewhere" >elsewhere.yaml

serve gateway --api "unix:$PWD/api.sock" on.yaml
weir load -d 64 -t 15s "nbd+unix:///lun?socket=$PWD/nbd.sock" >load.txt 2>&1 &
load=$!
until_so 'r["parda"]["alone"] and abs(r["parda"]["latency_s"] / 0.010 - 1) < 0.15'
until_so 'r["parda"]["threshold_s"] == 0.010 and r["parda"]["held_s"] == 0 and not r["parda"]["same_name"]'
has gateway.log 'parda-alone resource=lun'
until_so 's["peers"]["sent"] > 3 and s["peers"]["heard"] == 0 and s["peers"]["failed"] == 0'

run 0 weir policy apply other.yaml
until_so 'abs(r["parda"]["latency_s"] / 0.020 - 1) < 0.15'
curl -s --unix-socket api.sock http://localhost/metrics >metrics.txt
has metrics.txt 'weir_parda_alone{resource="lun"} 1'
has metrics.txt 'weir_parda_threshold_seconds{resource="lun"} 0.02'
has metrics.txt 'weir_peer_received_total{verdict="forged"} 0'

run 0 weir policy apply off.yaml
until_so 'r["parda"] is None and r["window"] == 7'
run 0 weir policy apply on.yaml
until_so 'r["parda"] is not None and abs(r["parda"]["latency_s"] / 0.010 - 1) < 0.15'

run 2 weir policy apply elsewhere.yaml
has stderr 'restart'
[ ! -e elsewhere ] || fail "the peers' file of a refused policy was made"
kill "$load"
wait "$load" || :
serve_stop gateway

# Invalid peers are reported at the start.
policy "controller: none" "udp:127.0.0.1:7000" >keyless.yaml
run 2 weir serve --api none keyless.yaml
has stderr 'needs a key'
policy "controller: none" "file:$PWD/no/such/place" >nowhere.yaml
run 1 weir serve --api none nowhere.yaml
has stderr 'no/such/place'
yes 'somebody else' | head -c 65536 >used
policy "controller: none" "file:$PWD/used" >used.yaml
run 2 weir serve --api none used.yaml
has stderr 'contains other data'
