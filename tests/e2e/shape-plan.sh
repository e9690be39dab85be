# SPDX-License-Identifier: BSD-3-Clause
# A plan at a shaper: services go by its priorities once their buckets admit them, each of several; the plan is kept across a kill and a
# restart, no packet is lost when it comes, and without it the weights of the policy hold.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up python3 sha256sum

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
links: [{name: out, rate: 40 Mbit/s, device: v0, dir: out}, {name: in, rate: 40 Mbit/s}]
tenants:
  - {name: a, net: {}, match: {port: 5001}}
  - {name: b, net: {}, match: {port: 5002}}
  - {name: c, net: {}, match: {port: 5003}}
END
digest=$(sha256sum weir.yaml | cut -d ' ' -f 1)
# plan STAGE PRIORITY_B DIGEST: a has 8 Mbit/s by the second of its buckets, b 20 by its first one
plan()
{
	cat >plan.json <<END
{"version": 1, "policy": "$3", "profiles": {}, "made": "2026-11-18T12:00:00Z", "tenants": [
{"name": "a", "slo": {"percentile": 99, "latency": 0.01}, "bound": 0.01,
 "stages": [{"name": "$1", "unit": "bytes", "priority": 0, "buckets": [[2e6, 20000], [1e6, 50000]]}]},
{"name": "b", "slo": {"percentile": 99, "latency": 0.01}, "bound": 0.01,
 "stages": [{"name": "$1", "unit": "bytes", "priority": $2, "buckets": [[2.5e6, 20000]]}]}]}
END
}
# ask METHOD [FILE]: its status is in ./status, the answer in ./answer
ask()
{
	python3 - "$@" <<'END'
import http.client, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect("shape.sock")
c.request(sys.argv[1], "/v1/plan", open(sys.argv[2]).read() if len(sys.argv) > 2 else None)
r = c.getresponse()
open("status", "w").write("%d" % r.status)
open("answer", "wb").write(r.read())
END
}
refused() # TEXT
{
	ask PUT plan.json
	[ "$(cat status)" = 400 ] || fail "not refused: $(cat answer)"
	has answer "$1"
}

shape_up weir.yaml
load 1 5001 5002 5003
shares 5001=13.3 5002=13.3 5003=13.3 || fail "weights do not hold without a plan: $(cat rates)"
ask GET
[ "$(cat status)" = 404 ] || fail "a plan is in force"
plan out 1 "$(printf none | sha256sum | cut -d " " -f 1)"
refused "it was made for"
plan in 1 "$digest"
refused "no stage of the plan is a link of this machine"
plan out 7 "$digest"
refused "priority 7"

# Packets that wait are not lost when it comes.
: >receiver
nsenter --net="/run/netns/$b" python3 "$WEIR_SOURCE/tests/e2e/netload.py" count 45 5001 5002 5003 >counts 2>receiver &
receiver=$!
until grep -q ready receiver; do sleep 0.02; done
in_a python3 "$WEIR_SOURCE/tests/e2e/netload.py" burst 10.9.0.2 45 5001 5002 5003
plan out 1 "$digest"
ask PUT plan.json
[ "$(cat status)" = 200 ] || fail "refused: $(cat answer)"
wait $receiver || fail "packets were lost: $(cat counts)"

load 1 5001 5002 5003
shares 5001=8 5002=20 5003=12 || fail "the plan does not hold: $(cat rates)"
shape_down KILL
shape_up weir.yaml
load 1 5001 5002 5003
shares 5001=8 5002=20 5003=12 || fail "the plan does not hold after a restart: $(cat rates)"

# Above all others: b leaves nothing to c.
plan out 1 "$digest"
sed -i 's/2.5e6, 20000/4e6, 20000/' plan.json
ask PUT plan.json
load 1 5001 5002
shares 5001=8 5002=32 || fail "priorities do not hold: $(cat rates)"
ask DELETE
[ "$(cat status)" = 200 ] || fail "not removed: $(cat answer)"
load 1 5001 5002 5003
shares 5001=13.3 5002=13.3 5003=13.3 || fail "the plan stays: $(cat rates)"
grep ' error ' shape.log && fail "see above"
shape_down
shape_clean
exit 0
