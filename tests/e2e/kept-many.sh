# SPDX-License-Identifier: BSD-3-Clause
# Fifty tenants at once, on real I/O: all weights, mins and maxes hold beside each other and a noisy
# neighbour, and a changed weight takes effect within 100 ms.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

# 2,000 requests a second. 1 noisy neighbour of weight 20, with 64 requests in flight; 19 of weight
# 1 and 10 of weight 3; 10 with a min of 60 iops, which is more than their weight gives; 10 with a
# max of 10 iops. The mins take 600 and the maxes 100, and the weights, 20 + 19 + 30 + 10, share
# 1,300: 16.5 for each 1.
{
	echo "listen: \"unix:$here/s.sock\""
	echo 'resources: [{name: disk, back: "model:server,rate=2k,service=fixed,servers=8+memory:64M", depth: 8}]'
	echo "exports:"
	i=0
	for tenant in noisy $(seq -f 'one%g' 19) $(seq -f 'three%g' 10) $(seq -f 'min%g' 10) $(seq -f 'max%g' 10); do
		echo "  - {name: $tenant, offset: $i MiB, size: 1 MiB}"
		i=$((i + 1))
		case $tenant in
		noisy) what="weight: 20" ;;
		one*) what="weight: 1" ;;
		three*) what="weight: 3" ;;
		min*) what="min: 60 iops" ;;
		max*) what="max: 10 iops" ;;
		esac
		echo "  - {name: $tenant, $what, match: {export: $tenant}}" >>tenants
	done
	echo "tenants:"
	cat tenants
} >weir.yaml
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "the policy of fifty tenants does not hold"
import time
from kept import *

ones, threes = ["one%d" % i for i in range(1, 20)], ["three%d" % i for i in range(1, 11)]
mins, maxes = ["min%d" % i for i in range(1, 11)], ["max%d" % i for i in range(1, 11)]
names = ["noisy", *ones, *threes, *mins, *maxes]
# Few requests for a max of 10 iops: the test has to wait for them at the end.
fio = Fio({n: {"iodepth": 16 if n in maxes else 64} for n in names}, seconds=12, size="1m")
await_queue(names, 8)
time.sleep(0.5)
all = looks(7, every=0.1)
x = Between(*all)
check(x.backlogged(*names), "all %d wait" % len(names))

# The rate per weight 1.
unit = x.passed("noisy", *ones, *threes) / (20 + 19 + 30)
print("        %d of weight 1 in %.2f s" % (unit, x.longest))
for names, weight in (["noisy"], 20), (ones, 1), (threes, 3):
    worst = max(names, key=lambda n: abs(x.passed(n) / (weight * unit) - 1))
    near("of weight %d, the worst of %d, %s" % (weight, len(names), worst), x.passed(worst), weight * unit, 0.05)
for n in mins:
    at_least(n, all, 60, 0.99, 8)
low, high = (f(x.passed(n) for n in mins) for f in (min, max))
check(0.99 * (60 * x.ran + unit) <= low and high <= 1.05 * (60 * x.longest + unit),
      "their min and their share: %d to %d in %.2f s" % (low, high, x.longest))
for n in maxes:
    at_most(n, all, 10, 1.01)
    at_least(n, all, 10, 0.99, 8)
low, high = (f(x.passed(n) for n in maxes) for f in (min, max))
check(0.99 * 10 * x.ran - 1 <= low and high <= 1.01 * 10 * x.longest + 1,
      "their max: %d to %d in %.2f s" % (low, high, x.longest))

# Weights change: the noisy neighbour's to 1, and another one from 1 to 20.
asked = time.monotonic()
ask("PUT", "/v1/set/noisy.weight", "1")
ask("PUT", "/v1/set/one1.weight", "20")
time.sleep(max(0, asked + 0.1 - time.monotonic()))
a = Look()
time.sleep(2.5)
x = Between(a, Look())
check(x.backlogged("noisy", *ones, *threes), "all wait")
unit = x.passed(*threes) / 30
near("one1 from 100 ms after its weight is 20", x.passed("one1"), 20 * unit, 0.05)
check(abs(x.passed("noisy") - unit) <= 2, "noisy: %d, beside %.1f" % (x.passed("noisy"), unit))
fio.end()
check(sum(t["errors"] for t in Look().t.values()) == 0, "no errors")
finish()
END
serve_stop gate
