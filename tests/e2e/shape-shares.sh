# SPDX-License-Identifier: BSD-3-Clause
# weir shape: min, max and weight of services on a link hold to 5 %, whoever is idle, and do not without the shaper; in nested
# services, too, and under the static policy once the shaper is killed.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: a, net: {min: 20 Mbit/s}, match: {port: 5001}}
  - {name: b, net: {weight: 3}, match: {port: 5002}}
  - {name: c, net: {max: 4 Mbit/s}, match: {port: 5003}}
END

load 1 5001 5002 5003
shares 5001=24 5002=12 5003=4 && fail "the shares hold without a shaper"

shape_up weir.yaml
load 1 5001 5002 5003
shares 5001=24 5002=12 5003=4 || fail "min, max and weight do not hold: $(cat rates)"
run 0 weir status --socket "$PWD/shape.sock"
grep -q '^c  *out  *- *4.0 *[34][.]' stdout || fail "no status: $(cat stdout)"
load 1 5001 5002
shares 5001=25 5002=15 || fail "weights do not hold while c is idle: $(cat rates)"
shape_down KILL

# The static policy: the shares of 23.3, 10 and 3.3 that they have while packets of no service come, too, of all that send; and
# no runtime class is used after 5 s.
sleep 4.2
load 1 5001 5002 5003
shares 5001=25.5 5002=10.9 5003=3.6 || fail "the static policy does not hold: $(cat rates)"
in_a tc -s class show dev v0 | awk '/^class htb 5ee0:3001/ {at = 1} at && /Sent/ {exit !($2 > 2e6)}' ||
	fail "the static class was not used: $(in_a tc -s class show dev v0)"

# Nested: users of a service, 1 to 2, inside of the service's max.
cat >nested.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - name: a
    net: {max: 24 Mbit/s}
    children:
      - {name: x, net: {weight: 1}, match: {port: 5001}}
      - {name: y, net: {weight: 2}, match: {port: 5002}}
  - {name: b, net: {}, match: {port: 5003}}
END
shape_up nested.yaml
load 1 5001 5002 5003
shares 5001=6.67 5002=13.33 5003=20 || fail "nested weights do not hold: $(cat rates)"
load 1 5001 5003
shares 5001=20 5003=20 || fail "nested weights do not hold while one is idle: $(cat rates)"
shape_down
shape_clean
