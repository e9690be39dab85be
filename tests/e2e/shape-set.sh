# SPDX-License-Identifier: BSD-3-Clause
# weir set at a shaper: a brake holds whatever min the policy states, survives a restart, is shown, and ends by itself; what does
# not fit is refused, and a gateway says where links are shaped.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - name: a
    net: {min: 20 Mbit/s}
    children: [{name: x, net: {min: 10 Mbit/s}, match: {port: 5001}}]
  - {name: b, net: {weight: 3}, match: {port: 5002}}
END
shape_up weir.yaml
set_to() # STATUS KEY VALUE...
{
	status=$1
	shift
	run "$status" weir set --socket "$PWD/shape.sock" "$@"
}
set_to 2 a.net.max 1 MiB
set_to 2 none.net.max 1 Mbit/s
has stderr "no service 'none'"
set_to 2 a.net.rate 1 Mbit/s
has stderr "no key 'rate'"
set_to 2 a.net.max 1 Mbit/s for ever
set_to 2 a.net.min 50 Mbit/s
has stderr "machine in: a 50 over 40 Mbit/s"
set_to 2 --unset a.net.max
run 0 weir set --socket "$PWD/shape.sock"
[ ! -s stdout ] || fail "refused values are set: $(cat stdout)"

set_to 0 a.net.out.max 8 Mbit/s for 1h
has stdout "a.net.out.max is 8 Mbit/s until "
load 1 5001 5002
shares 5001=8 5002=32 || fail "the brake does not hold: $(cat rates)"
run 0 weir status --socket "$PWD/shape.sock"
has stdout "set: a.net.out.max 8 Mbit/s, for another "
grep -q '^a/x  *out .* its max$' stdout || fail "not said why: $(cat stdout)"
shape_down KILL
shape_up weir.yaml
set_to 0 b.net.max 16 Mbit/s for 6s
load 1 5001 5002
shares 5001=8 5002=16 || fail "the brakes do not hold after a restart: $(cat rates)"
i=0
until grep -q 'set-ended key=b.net.max' shape.log; do
	i=$((i + 1))
	[ $i -lt 150 ] || fail "a value does not end: $(cat shape.log)"
	sleep 0.1
done
run 0 weir set --socket "$PWD/shape.sock"
[ "$(cat stdout)" = "a.net.out.max 8 Mbit/s" ] || fail "set: $(cat stdout)"
set_to 0 --unset a.net.out.max
load 1 5001 5002
shares 5001=25 5002=15 || fail "the brake stays: $(cat rates)"
grep ' error ' shape.log && fail "see above"
shape_down
shape_clean
exit 0
