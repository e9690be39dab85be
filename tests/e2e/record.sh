# SPDX-License-Identifier: BSD-3-Clause
# A trace recorded from a running gateway: every request, once, with its offset and its tenant, also
# while the policy changes; an end by count; and no file is overwritten.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v qemu-io >/dev/null || skip "no qemu-io"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
cat >weir.yaml <<END
listen: "unix:$here/n.sock"
resources:
  - {name: one, back: "memory:16M"}
  - {name: two, back: "memory:16M"}
exports:
  - {name: a, resource: one, size: 4 MiB}
  - {name: b, resource: one, offset: 4 MiB}
  - {name: c, resource: two}
tenants:
  - {name: a, match: {export: a}}
  - {name: b, match: {export: b}}
  - {name: c, match: {export: c}}
END
io() # EXPORT COMMAND...
{
	export_=$1
	shift
	for command in "$@"; do
		set -- "$@" -c "$command"
		shift
	done
	run 0 qemu-io -t none -f raw "nbd+unix:///$export_?socket=$here/n.sock" "$@"
}
record() # FILE ARGUMENT...: start a recording in the background, and wait until it runs
{
	file=$1
	weir trace record "$@" >record.out 2>&1 &
	recorder=$!
	tries=0
	until [ -e "$file" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "no $file: $(cat record.out)"
		sleep 0.02
	done
}
end() # stop the recording
{
	kill -INT "$recorder"
	wait "$recorder" || fail "weir trace record: $(cat record.out)"
}
# lines FILE: its lines without times and reads (qemu-io reads the first block by itself)
lines()
{
	grep -v '^#' "$1" | awk '$2 != "R" { $1 = ""; print }' | sed 's/^ //'
}

serve gw --api "unix:$here/api.sock" --recordings "$here" --threads 2 weir.yaml
record first.trace
io b "write 8k 4k" "write 1M 512k" flush "discard 64k 4k"
io c "write 0 1k"
# The tenants are reordered: the streams keep their names.
sed -e '/name: a, match/d' -e '$a\  - {name: a, match: {export: a}}' weir.yaml >next.yaml
run 0 weir policy apply next.yaml
io b "write 12k 4k"
io a "write 16k 4k"
end
lines first.trace >got
# In pieces of 256 KiB, at their offsets in the resource; trims and zeroes are whole.
for line in "W 4202496 4096" "W 5242880 262144" "W 5505024 262144" "T 4259840 4096" "W 4206592 4096" \
	"W 16384 4096" "W 0 1024"; do
	[ "$(grep -c "^$line " got)" -eq 1 ] || {
		cat first.trace >&2
		fail "not once: $line"
	}
done
grep -q '^F 0 0 ' got || fail "no flush"
stream() # LINE: its stream
{
	sed -n "s/^$1 //p" got
}
for tenant in "a:W 16384 4096:one" "b:W 4202496 4096:one" "b:W 4206592 4096:one" "c:W 0 1024:two"; do
	name=${tenant%%:*}
	rest=${tenant#*:}
	has first.trace "# stream $(stream "${rest%:*}"): $name on ${rest#*:}"
done
run 0 weir trace info first.trace
has stdout "weir"

# An existing file is not overwritten.
run 2 weir trace record first.trace
has stderr "first.trace"

# A name with a zero byte is refused.
run 0 curl -sS -X POST --unix-socket api.sock "http://x/v1/record?file=cut%00.trace&requests=1"
has stdout "?file= must be a name"
[ ! -e cut ] || fail "cut was made"

# A maximum count ends the recording by itself.
run 0 timeout 20 weir load -n 500 "nbd+unix:///a?socket=$here/n.sock"
record short.trace --requests 100
run 0 timeout 20 weir load -d 8 -n 500 "nbd+unix:///a?socket=$here/n.sock"
tries=0
while kill -0 "$recorder" 2>/dev/null && [ "$tries" -lt 250 ]; do
	tries=$((tries + 1))
	sleep 0.02
done
wait "$recorder" || fail "weir trace record: $(cat record.out)"
[ "$(grep -vc '^#' short.trace)" -eq 100 ] || fail "not 100 lines"

# All requests of a flood, or a message about the missing ones.
record flood.trace
run 0 timeout 60 weir load -d 32 -c 2 -n 200000 "nbd+unix:///a?socket=$here/n.sock"
end
n=$(grep -vc '^#' flood.trace)
dropped=$(sed -n 's|.*; \([0-9]*\) more came too fast.*|\1|p' record.out)
[ $((n + ${dropped:-0})) -eq 200000 ] || fail "$n recorded of 200000: $(cat record.out)"
serve_stop gw
