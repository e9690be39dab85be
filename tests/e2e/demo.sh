# SPDX-License-Identifier: BSD-3-Clause
# weir demo works anywhere, with nothing beside it, in under a minute; what it says to try next works.
. "$WEIR_SOURCE/tests/lib.sh"

run 0 timeout 60 weir demo
for tenant in db web backup; do
	has stdout "  $tenant "
done
has stdout 'Before → after'
[ "$(LC_ALL=C.UTF-8 wc -L <stdout)" -le 100 ] || fail "wider than a terminal"
grep -q "$(printf '\033')" stdout && fail "colours, though standard output is no terminal"
cp stdout first
run 0 weir demo
cmp -s stdout first || fail "a second run says something else"

grep '^  .*weir sim ' first | sed 's/^  [^ ]*weir /weir /' >next
[ "$(wc -l <next)" -ge 2 ] || fail "nothing to try next"
while read -r line; do
	run 0 sh -c "$line"
	[ -s stdout ] || fail "$line: says nothing"
done <next

if command -v gnuplot >/dev/null; then
	grep -q '<svg' weir-demo/latency.svg || fail "no picture"
fi

# A folder that cannot be made is said, and is a failure.
touch file
got=0
weir demo --out file/below >stdout 2>stderr || got=$?
[ "$got" -ne 0 ] || fail "a picture that could not be written is no success"
has stderr 'file/below'
