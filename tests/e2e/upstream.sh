# SPDX-License-Identifier: BSD-3-Clause
# An NBD upstream that is killed under verified load, and that forgets what was not flushed: clients see
# pauses and no error, and what was flushed is in the file. One that stays away is an error after the
# time-out, for as long as it is away.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v nbdkit >/dev/null || skip "nbdkit is not installed"
nbdkit --filter=cache null --dump-plugin >/dev/null 2>&1 || skip "nbdkit has no cache filter"
here=$PWD
# WEIR_KILLS: how often; more in a soak test.
kills=${WEIR_KILLS:-10}
truncate -s 64M disk

upstream_start()
{
	rm -f up.sock
	nbdkit -f -U "$here/up.sock" --filter=cache file disk cache=writeback 2>>up.log &
	upstream=$!
}

upstream_kill()
{
	kill -KILL "$upstream"
	wait "$upstream" 2>/dev/null
	upstream=
}

serve_cleanup()
{
	[ -z "$upstream" ] || kill -KILL "$upstream" 2>/dev/null
}

await() # FILE TEXT COUNT: until FILE has TEXT in so many lines
{
	tries=0
	until [ "$(grep -cF -e "$2" "$1")" -ge "$3" ]; do
		tries=$((tries + 1))
		if [ "$tries" -ge 1000 ]; then
			cat "$1" >&2
			fail "$1 does not come to say: $2"
		fi
		sleep 0.02
	done
}

upstream_start
tries=0
until [ -S up.sock ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 500 ] || fail "nbdkit is not ready: $(cat up.log)"
	sleep 0.02
done

# ---- killed again and again

serve lost --listen "unix:$here/w.sock" "nbd+unix:///?socket=$here/up.sock"
uri="nbd+unix:///?socket=$here/w.sock"
# Until it is told to stop; every block it reads is checked.
weir load "$uri" --connections 4 --depth 16 --duration 300s --reads 50% --size 4k:80,64k:15,256k:5 \
	--length 32M --flush-every 300 --verify --table table >load.out 2>load.err &
load=$!
i=1
while [ "$i" -le "$kills" ]; do
	sleep "0.$((2 + i * 7 % 5))"
	kill -0 "$load" 2>/dev/null || fail "the client ended: $(cat load.out load.err)"
	upstream_kill
	upstream_start
	await lost.log "upstream-back" "$i"
	i=$((i + 1))
done
kill -INT "$load"
got=0
wait "$load" || got=$?
[ "$got" -eq 0 ] || [ "$got" -eq 130 ] || fail "weir load: exit status $got: $(cat load.out load.err)"
has load.out " 0 wrong"

# What was answered is there; and after the last FLUSH, which the gateway sends when it ends, it is so
# in the file itself.
run 0 weir load "$uri" --reads 100% --requests 1 --length 32M --verify --table table
has stdout " 0 wrong"
serve_stop lost
upstream_kill
serve direct --listen "unix:$here/d.sock" "file:disk?read_only"
run 0 weir load "nbd+unix:///?socket=$here/d.sock" --reads 100% --requests 1 --length 32M --verify --table table
has stdout " 0 wrong"
serve_stop direct

# ---- away for longer than the time-out

upstream_start
cat >policy.yaml <<END
listen: ["unix:$here/t.sock"]
resources:
  - {name: far, back: "nbd+unix:///?socket=$here/up.sock", timeout: 500ms}
exports:
  - {name: disk, resource: far}
tenants:
  - {name: all, match: {export: "*"}}
END
tries=0
until [ -S up.sock ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 500 ] || fail "nbdkit is not ready: $(cat up.log)"
	sleep 0.02
done
serve failed policy.yaml
uri="nbd+unix:///disk?socket=$here/t.sock"
run 0 weir load "$uri" --requests 100
upstream_kill
run 1 weir load "$uri" --requests 1 # waits, and is then told
cat stdout stderr >said
grep -qi "EIO\|input/output" said || fail "not an I/O error: $(cat said)"
await failed.log "upstream-failed" 1
upstream_start
await failed.log "upstream-back" 1
run 0 weir load "$uri" --requests 100
serve_stop failed
