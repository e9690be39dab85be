# SPDX-License-Identifier: BSD-3-Clause
# Volumes whose pages are cached are served at once, and fill no window: the weights 20:1 act all the same while the gateway is slower
# than its clients. That holds on machines of any speed: all run on one processor, whose scheduler prefers the clients to the gateway.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

taskset -pc "$(taskset -pc $$ | sed 's/.*[^0-9]//')" $$ >/dev/null
for i in a b; do head -c 16M /dev/zero >"$i.raw"; done
for depth in 32 128; do
	cat >gate.yaml <<-END2
	listen: "unix:$here/s.sock"
	resources:
	  - name: disk
	    depth: $depth
	    volumes: [{name: a, back: "file:$here/a.raw"}, {name: b, back: "file:$here/b.raw"}]
	tenants:
	  - {name: big, weight: 20, match: {export: a}}
	  - {name: small, weight: 1, match: {export: b}}
	END2
	serve gate --api "unix:$here/api.sock" gate.yaml
	chrt -a -i -p 0 "$(cat gate.pid)" >/dev/null
	for outstanding in 64 128; do
		chrt -o 0 weir load -t 100s -d "$outstanding" "$(uri a)" >/dev/null 2>&1 & a=$!
		chrt -o 0 weir load -t 100s -d "$outstanding" "$(uri b)" >/dev/null 2>&1 & b=$!
		AT="depth $depth, $outstanding outstanding" python3 -B - <<-'END2' || fail "weights of cached files"
		import os, time
		from kept import *

		first = last = Look()
		until = time.monotonic() + 60
		while not ("big" in last.t and "small" in last.t and last.t["big"]["clients"] and last.t["small"]["clients"]):
		    assert time.monotonic() < until
		    time.sleep(0.1)
		    first = last = Look()
		while Between(first, last).passed("small") < 2000 and time.monotonic() < until:
		    time.sleep(0.5)
		    last = Look()
		x = Between(first, last)
		check(x.passed("small") >= 500, "requests of small, to judge by:", x.passed("small"))
		near(os.environ["AT"], x.ratio("big", "small"), 20, 0.05)
		check(x.passed("small", what="waited") > 0.9 * x.passed("small"), "requests of small that waited")
		finish()
		END2
		kill "$a" "$b"
		wait "$a" "$b"
	done
	serve_stop gate
done
