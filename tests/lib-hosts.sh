# SPDX-License-Identifier: BSD-3-Clause
# lib-hosts.sh: for tests of hosts that share an array. `. "$WEIR_SOURCE/tests/lib-hosts.sh"`
# includes the other libraries.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

(umask 077 && head -c 32 /dev/urandom >key)

# array [MODEL [MORE]]: start the gateway that is the array, by default with 2,000 requests a
# second; MORE are further lines of its policy
array()
{
	cat >array.yaml <<END
listen: "unix:$PWD/array.sock"
resources: [{name: lun, back: "model:${1:-server,rate=2000}+memory:64M", depth: 4096}]
${2-}
END
	serve array array.yaml
}

# free_ports N: print N free UDP ports of loopback
free_ports()
{
	python3 - "$1" <<'END'
import socket
import sys
held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(int(sys.argv[1]))]
for s in held:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])
END
}

# peers_of PORT...: print a list of their addresses, for `to`
peers_of()
{
	list=
	for port; do
		list="$list${list:+, }\"udp:127.0.0.1:$port\""
	done
	echo "$list"
}

# host NAME SHARES EXPORT PEERS [EXTRA]: start the gateway NAME before the array's EXPORT, with an
# API. PEERS are keys of `peers`, EXTRA of the tenant; the threshold is $threshold, else 25ms.
# Windows settle with the time constant (period / gamma)(1 + 1 / epsilon), here 0.75 s, so that
# three seconds are enough.
host()
{
	cat >"$1.yaml" <<END
listen: "unix:$PWD/$1.sock"
peers: {$4, key: key, host: $1, period: 200ms}
resources:
  - name: lun
    back: "nbd+unix:///$3?socket=$PWD/array.sock"
    controller: parda
    threshold: ${threshold:-25ms}
    parda: {array: lun, epsilon: 0.5}
tenants:
  - {name: vm, weight: $2, match: {export: "*"}${5:+, $5}}
END
	serve "$1" --api "unix:$PWD/$1.api" "$1.yaml"
}

# load_start NAME SECONDS: start a client with 64 reads in flight at the gateway NAME, in the
# background
load_start()
{
	weir load --json -d 64 -t "$2s" --warm-up 3s "vm=nbd+unix:///lun?socket=$PWD/$1.sock" >"$1.json" &
	echo $! >"$1.load"
}

load_wait() # NAME...: wait for their clients to end
{
	for name; do
		wait "$(cat "$name.load")" || fail "weir load at $name: $(cat "$name.json")"
	done
}

# load_iops NAME...: print the throughput of each one's client, in requests a second
load_iops()
{
	for name; do
		python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[0]["iops"])' "$name.json" ||
			fail "output of weir load: $(cat "$name.json")"
	done | xargs
}

# watch SECONDS EXPRESSION NAME[:RESOURCE]...: read the gateways' status ten times a second until
# the Python expression is true, on w, their windows in slots, p, the PARDA status of each, and
# late, the mean delay of a wakeup on this machine in seconds; else fail after SECONDS, and print
# the last status.
# If the expression begins with `held N`: until it was true in every status for N seconds.
# If it begins with `all`: evaluate it after SECONDS on the means of w and of the latency over all
# of them, latency.
watch()
{
	python3 - "$@" <<'END'
import http.client
import json
import socket
import sys
import time


class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(self.host)


def look(name):
    name, _, resource = name.partition(":")
    api = Api(name + ".api")
    api.request("GET", "/v1/status", headers={"Host": "localhost"})
    r = json.load(api.getresponse())["resources"][int(resource or 0)]
    return r["window"], r["parda"]


def near(got, want, tolerance):
    return got is not None and abs(got / want - 1) <= tolerance  # None: not known yet


def pause():
    for _ in range(20):
        began = time.monotonic()
        time.sleep(0.005)
        lates.append(time.monotonic() - began - 0.005)


lates = [0]
seconds, expression, *names = sys.argv[1:]
every = expression.startswith("all ")
held = 0
if expression.startswith("held "):
    _, held, expression = expression.split(" ", 2)
since = None
end = time.monotonic() + float(seconds)
seen = []
while time.monotonic() < end:
    seen.append([look(n) for n in names])
    w = [window for window, _ in seen[-1]]
    p = [parda for _, parda in seen[-1]]
    late = sum(lates) / len(lates)
    if not every and not eval(expression):
        since = None
    elif not every:
        since = since or time.monotonic()
        if time.monotonic() - since >= float(held):
            sys.exit(0)
    pause()
if every:
    w = [sum(s[i][0] for s in seen) / len(seen) for i in range(len(names))]
    latency = sum(parda["latency_s"] or 0 for s in seen for _, parda in s) / len(seen) / len(names)
    if eval(expression[4:]):
        sys.exit(0)
    expression += f" (latency {latency:.4f})"
sys.exit(f"not so in {seconds} s: {expression}; windows {w}, late {late}, at the end {p}")
END
}
