# SPDX-License-Identifier: BSD-3-Clause
# A plan at a shaper: services go by its priorities once their buckets admit them, each of several; the plan is kept across a kill and a
# restart, no packet is lost when it comes, and without it the weights of the policy hold.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up python3 sha256sum

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
links: [{name: out, rate: 40 Mbit/s, device: v0, dir: out, dscp: [46, 10]}, {name: in, rate: 40 Mbit/s}]
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

# Marks of its priorities, over IPv4 and IPv6: b's socket reads the class of each packet; other packets keep theirs, and ECN stays.
in_a ip -6 addr add fd00:9::1/64 dev v0 nodad
in_b ip -6 addr add fd00:9::2/64 dev v0 nodad
cat >marks.py <<'END'
import socket
import struct
import sys

if sys.argv[1:] == ["send"]:
    for port, traffic in ((5001, 1), (5002, 0), (5003, 0x22)):
        for family, to in ((socket.AF_INET, "10.9.0.2"), (socket.AF_INET6, "fd00:9::2")):
            s = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic)
            else:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic)
            s.bind(("", port))
            s.sendto(b"x", (to, 7000))
    sys.exit()
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
s.bind(("::", 7000))
s.settimeout(10)
print("ready", file=sys.stderr, flush=True)
for _ in range(6):
    _, extra, _, sender = s.recvmsg(10, 200)
    print(sender[1], *(data[0] for level, kind, data in extra if (level, kind) in ((0, 1), (41, 67))))
END
: >receiver
nsenter --net="/run/netns/$b" python3 marks.py >marks 2>receiver &
receiver=$!
until grep -q ready receiver; do
	kill -0 $receiver 2>/dev/null || fail "no receiver: $(cat receiver)"
	sleep 0.02
done
in_a python3 marks.py send
wait $receiver || fail "no packets: $(cat receiver marks)"
sort marks >got
printf '5001 185\n5001 185\n5002 40\n5002 40\n5003 34\n5003 34\n' >wanted # DSCP 46 with ECN 1, 10, and what was sent
cmp got wanted || fail "other marks: $(cat got)"
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
