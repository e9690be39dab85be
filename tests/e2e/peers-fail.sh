# SPDX-License-Identifier: BSD-3-Clause
# Three hosts before one array. One is killed, returns with its clock set back, is stopped, and is
# cut off: the others keep their ratio and the array its latency all the while, and the host that
# returned has its share again.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

# All messages between host three and hosts one and two go through this relay; while the file ./cut
# exists, it drops them. It has two ports for each of them: one that stands for host three, and one
# that stands for them.
cat >relay.py <<'END'
import os
import selectors
import socket
import sys
ports = list(map(int, sys.argv[1:]))
three, pairs = ports[0], [(ports[1], ports[2], ports[3]), (ports[4], ports[5], ports[6])]
wait = selectors.DefaultSelector()
for own, as_three, as_own in pairs:
    sockets = []
    for port in (as_three, as_own):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", port))
        sockets.append(s)
    wait.register(sockets[0], selectors.EVENT_READ, (sockets[1], ("127.0.0.1", three)))
    wait.register(sockets[1], selectors.EVENT_READ, (sockets[0], ("127.0.0.1", own)))
print("ready", flush=True)
while True:
    for key, _ in wait.select():
        data = key.fileobj.recv(2048)
        via, to = key.data
        if not os.path.exists("cut"):
            via.sendto(data, to)
END

set -- $(free_ports 7)
python3 relay.py "$3" "$1" "$4" "$5" "$2" "$6" "$7" >relay.out &
relay=$!
serve_cleanup()
{
	kill "$relay" 2>/dev/null
}
until grep -q ready relay.out; do sleep 0.02; done
array
one="udp:127.0.0.1:$1" two="udp:127.0.0.1:$2" three="udp:127.0.0.1:$3"
host one 1 lun "to: [\"$two\", \"udp:127.0.0.1:$4\"], listen: \"$one\""
host two 2 lun "to: [\"$one\", \"udp:127.0.0.1:$6\"], listen: \"$two\""
host three 3 lun "to: [\"udp:127.0.0.1:$5\", \"udp:127.0.0.1:$7\"], listen: \"$three\""
for name in one two three; do
	load_start "$name" 60
done

shares='near(w[1] / w[0], 2, 0.15) and near(w[2] / w[0], 3, 0.15)'
ratio='near(w[1] / w[0], 2, 0.15)'
latency='near(p[0]["latency_s"], 0.025, 0.15)'
at_rest="w[0] > 6 and $shares and $latency"

# together WHEN: all hosts have their shares of the 50 slots (25 ms at 2,000 a second), and stay
# there. (This may take a while on a busy machine.)
together()
{
	watch 40 "held 1 $at_rest" one two three || fail "$1"
}

# kept WHAT: the others keep their ratio from then on: on the mean, since hosts step at different
# moments and one may be ahead for a step or two. The host is forgotten after five periods at most,
# a second; and five periods later (less the time of the status request) the array's latency is at
# the threshold.
kept()
{
	watch 2 "all $ratio" one two >ratio.out 2>&1 &
	ratio_watch=$!
	watch 10 "p[0]['peers'] == 1 and p[1]['peers'] == 1" one two || fail "$1: the host is not forgotten"
	sleep 0.8
	watch 1 "all near(latency, 0.025, 0.1) and $ratio" one two || fail "$1: the latency"
	wait "$ratio_watch" || fail "$1: the others' ratio: $(cat ratio.out)"
}

gone() # WHAT: also, the others have its part
{
	kept "$1"
	watch 40 "w[0] > 14 and $ratio and $latency" one two || fail "$1: the part it left"
}

together "at the start"

pid=$(cat three.pid)
kill -KILL "$pid"
wait "$pid" "$(cat three.load)"
gone "killed"

# It returns as another instance, with a clock half an hour back: if the system allows it.
if unshare --time --monotonic=-1800 --fork true 2>/dev/null; then
	unshare --time --monotonic=-1800 --fork weir serve --api "unix:$PWD/three.api" --pidfile again.pid three.yaml \
		2>again.log &
	until [ -s again.pid ]; do sleep 0.02; done
else
	serve again --api "unix:$PWD/three.api" three.yaml
fi
load_start three 60
together "started again"

pid=$(cat again.pid)
kill -STOP "$pid"
gone "stopped"
kill -CONT "$pid"
together "let go on"

touch cut
kept "cut off"
watch 40 "p[0]['peers'] == 1 and p[2]['alone'] and $ratio and $latency" one two three || fail "cut off"
rm cut
together "no longer cut off"
kill -KILL "$pid"
