# SPDX-License-Identifier: BSD-3-Clause
# lib-serve.sh: for tests that run a gateway. After lib.sh: `. "$WEIR_SOURCE/tests/lib-serve.sh"`

# serve NAME ARGUMENT...: start `weir serve ARGUMENT...` in the background and wait until clients
# may connect. There is no API unless an argument gives one. Its process id is in ./NAME.pid from
# then on, its log in ./NAME.log. It is killed when the test ends.
serve()
{
	name=$1
	shift
	rm -f "$name.pid"
	weir serve --api none --pidfile "$name.pid" "$@" >"$name.out" 2>"$name.log" </dev/null &
	serve_child=$!
	serve_all="${serve_all-} $serve_child"
	trap 'kill -KILL $serve_all 2>/dev/null; serve_cleanup' EXIT
	serve_ready "$name" "weir serve $*"
}

# serve_ready NAME WHAT: wait until the last one that was started has written its ./NAME.pid
serve_ready()
{
	tries=0
	until [ -s "$1.pid" ]; do
		kill -0 "$serve_child" 2>/dev/null || {
			cat "$1.log" >&2
			fail "$2 ended before it was ready"
		}
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "$2 is not ready after 10 s"
		sleep 0.02
	done
}

serve_cleanup() # a test may redefine it to undo something at its end
{
	:
}

# in_rounds COMMAND...: run it up to three times, as long as it returns 3: the machine was too busy
# to judge. Return its last status.
in_rounds()
{
	for round in 1 2 3; do
		got=0
		"$@" || got=$?
		[ "$got" -eq 3 ] || break
	done
	return "$got"
}

# serve_stop NAME [STATUS]: stop it by SIGTERM, and check its exit status (0)
serve_stop()
{
	pid=$(cat "$1.pid")
	kill -TERM "$pid"
	got=0
	wait "$pid" || got=$?
	[ "$got" -eq "${2:-0}" ] && return
	cat "$1.log" >&2
	fail "weir serve $1: exit status $got, not ${2:-0}"
}
