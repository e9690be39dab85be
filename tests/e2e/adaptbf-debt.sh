# SPDX-License-Identifier: BSD-3-Clause
# Debts end on a running gateway: a job that used the tokens of four others keeps half of its share
# while it repays, and aged tokens appear in the accounts of both sides. The capacity is learned
# from a guess that is far too low, while tokens hold requests; and tokens count bytes where the
# policy says so.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

# 8 servers of 8 ms each: 1,000 requests a second.
policy() # KEYS
{
	cat <<END
listen: "unix:$here/s.sock"
resources:
  - {name: ost, back: "model:server,rate=1k,service=fixed,servers=8+memory:20M", depth: 8, cost: bytes, controller: adaptbf,
     adaptbf: {tokens: hold, $1}}
exports: [{name: busy, size: 4 MiB}, {name: a, offset: 4 MiB, size: 4 MiB}, {name: b, offset: 8 MiB, size: 4 MiB},
          {name: c, offset: 12 MiB, size: 4 MiB}, {name: d, offset: 16 MiB, size: 4 MiB}]
tenants:
  - {name: busy, match: {export: busy}}
  - {name: a, match: {export: a}}
  - {name: b, match: {export: b}}
  - {name: c, match: {export: c}}
  - {name: d, match: {export: d}}
END
}
policy "guess: 100 iops, debt: {floor: 50%, half_life: 1s}" >weir.yaml
policy "guess: 400 KiB/s, unit: bytes, debt: paper" >bytes.yaml
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "debts do not end"
import time
from kept import *

LENDERS = "abcd"


def book():
    r = ask("GET", "/v1/ledger")["resources"][0]
    return r, {j["tenant"]: j for j in r["jobs"]}


def total(seconds, *tenants):
    a = Look()
    time.sleep(seconds)
    x = Between(a, Look())
    return x.passed(*tenants) / x.longest


busy = load("-t", "30s", "-d", "64", "busy=" + uri("busy"))
slow = load("-t", "5s", *["%s=%s,rate=10iops" % (l, uri(l)) for l in LENDERS])
# The capacity is ten times the guess, and nearly all of it is used 3 s after the load began.
time.sleep(3)
got = max(total(0.5, "busy", *LENDERS), total(0.5, "busy", *LENDERS))
check(got > 900, "of 1000 a second %d are used 3 s after a guess of 100" % got)
slow.end()
r, jobs = book()
check(jobs["busy"]["record"] < -300, "debt", -jobs["busy"]["record"])
check(-jobs["busy"]["record"] < 1.05 * 1000 / 0.6931, "and no more than b·H/ln 2")

full = load("-t", "25s", "-d", "32", *["%s=%s" % (l, uri(l)) for l in LENDERS])
await_queue(LENDERS)
begin, looks = time.monotonic(), []
while time.monotonic() < begin + 20:
    r, jobs = book()
    if jobs["busy"]["record"] >= 0:
        break
    looks.append(jobs["busy"])
    time.sleep(0.05)
took = time.monotonic() - begin
# H·log2(1 + b/q) = 3.5 s of active periods; a busy machine has fewer of them in a second.
check(jobs["busy"]["record"] >= 0 and took < 7, "debt repaid after %.1f s" % took)
repaying = [l for l in looks if l["active"] and l["initial"] > 0][2:]
check(all(l["tokens"] >= l["initial"] / 2 for l in repaying), "at least half of the share while repaying, in %d reports" % len(repaying))
check(min([l["tokens"] / l["initial"] for l in repaying] or [0]) < 0.7, "and not much more than the floor")
for j in jobs.values():
    check(j["lent"] + j["repaid"] + j["forgiven"] - j["borrowed"] - j["regained"] - j["written_off"] == j["record"],
          "the account of", j["tenant"])
check(sum(j["forgiven"] for j in jobs.values()) == sum(j["written_off"] for j in jobs.values()) == r["aged"] > 100,
      "what is forgiven one is written off at others:", r["aged"])
check(all(jobs[l]["written_off"] > 0 for l in LENDERS), "by name")
rate = r["rate"]

# The same server in bytes: a token is 4 KiB, as each of these requests is.
ask("PUT", "/v1/policy?name=bytes.yaml", open("bytes.yaml").read())
time.sleep(3)
got = max(total(0.5, "busy", *LENDERS), total(0.5, "busy", *LENDERS))
check(got > 900, "in bytes, %d a second are used" % got)
r, jobs = book()
check(r["unit"] == "bytes" and abs(r["rate"] / rate - 1) < 0.15, "tokens a second: %d, before %d" % (r["rate"], rate))
aged = r["aged"]
time.sleep(0.5)
check(book()[0]["aged"] == aged, "with the paper's debts nothing ages")
for l in (busy, full):
    l.process.kill()
    l.process.communicate()
finish()
END
weir status --ledger >ledger.txt || fail "weir status --ledger"
has ledger.txt 'WRITTEN OFF'
has ledger.txt 'tokens of 4 KiB hold'
weir status >status.txt || fail "weir status"
has status.txt 'FORGIVEN'
serve_stop gate
