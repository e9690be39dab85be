# SPDX-License-Identifier: BSD-3-Clause
# AdapTBF's loans with real fio clients: a burst is served by borrowing and repaid later; the ledger
# survives a restart and a kill; a damaged file is set aside.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
state: "$here/state"
resources:
  - {name: ost, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", depth: 8, capacity: 1k iops,
     controller: adaptbf, adaptbf: {tokens: hold}}
exports: [{name: lender, size: 8 MiB}, {name: burst, offset: 8 MiB, size: 8 MiB}]
tenants:
  - {name: lender, weight: 1, match: {export: lender}}
  - {name: burst, weight: 1, match: {export: burst}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

# The lender uses 20 of its 500 tokens a second; the rest serves a burst.
python3 -B - <<'END' || fail "nothing was lent"
import time
from kept import *

fio = Fio({"lender": {"rate_iops": 20, "iodepth": 1}, "burst": {"iodepth": 64}}, seconds=1)
await_queue(["burst"])
time.sleep(0.3)
a = Look()
time.sleep(0.4)
x = Between(a, Look())
check(x.passed("burst") > 0.8 * 1000 * x.ran, "the burst got %d in %.2f s, of which 500 a second are its share" %
      (x.passed("burst"), x.longest))
fio.end()
time.sleep(1.5)  # both are idle, and the ledger has been written
l = ask("GET", "/v1/ledger")
check(l["kept"], "the ledger is written")
r = l["resources"][0]
jobs = {j["tenant"]: j for j in r["jobs"]}
check(jobs["lender"]["record"] > 100, "lent:", jobs["lender"]["record"])
check(jobs["burst"]["record"] == -jobs["lender"]["record"], "records sum to 0")
check([(x["lender"], x["borrower"], x["amount"]) for x in r["loans"]] == [("lender", "burst", jobs["lender"]["record"])],
      "loans:", r["loans"])
json.dump(r, open("before.json", "w"))
finish()
END
weir status --ledger >ledger.txt || fail "weir status --ledger"
grep -Eq '^lender +burst +[0-9]+ ' ledger.txt || fail "no loan in $(cat ledger.txt)"

# The ledger survives a kill.
kill -KILL "$(cat gate.pid)"
serve gate --api "unix:$here/api.sock" weir.yaml
has gate.log 'ledger resource=ost as_of='
python3 -B - <<'END' || fail "the ledger did not survive a kill"
from kept import *

was = json.load(open("before.json"))
r = ask("GET", "/v1/ledger")["resources"][0]
check([(x["lender"], x["borrower"], x["amount"], x["lent"]) for x in r["loans"]] ==
      [(x["lender"], x["borrower"], x["amount"], x["lent"]) for x in was["loans"]], "loans:", r["loans"])
check(r["loans"][0]["since_ago_s"] >= was["loans"][0]["since_ago_s"], "their age")
for a, b in zip(was["jobs"], r["jobs"]):
    check(all(a[k] == b[k] for k in ("tenant", "record", "lent", "borrowed", "repaid", "regained")), "the account of",
          a["tenant"])

# Now the lender is busy, with enough requests in flight to always wait in the gate, and is repaid
# first.
fio = Fio({"lender": {}, "burst": {}}, seconds=5, iodepth=256)
await_queue(["lender", "burst"])
a = Look()
end = time.monotonic() + 4.6
while time.monotonic() < end:
    r = ask("GET", "/v1/ledger")["resources"][0]
    if not r["loans"]:
        break
    time.sleep(0.1)
x = Between(a, Look())
check(not r["loans"], "all loans are repaid after %.1f s" % x.longest)
check(x.passed("lender") > 1.2 * x.passed("burst"), "meanwhile the lender got more than its share:", x.passed("lender"),
      x.passed("burst"))
jobs = {j["tenant"]: j for j in r["jobs"]}
check(jobs["lender"]["regained"] + jobs["lender"]["written_off"] == jobs["lender"]["lent"] and
      jobs["burst"]["repaid"] + jobs["burst"]["forgiven"] == jobs["burst"]["borrowed"],
      "by exactly what was lent, less what aged:", jobs["lender"]["lent"])
check(0 < jobs["burst"]["forgiven"] == jobs["lender"]["written_off"] == r["aged"] < jobs["lender"]["lent"] / 5,
      "which both accounts have:", jobs["burst"]["forgiven"])
check(r["repaid"][0]["lender"] == "lender" and r["repaid"][0]["borrower"] == "burst" and r["repaid"][0]["amount"] == 0,
      "and when:", r["repaid"][0])
fio.end()
json.dump(jobs, open("before.json", "w"))
finish()
END

# An orderly stop loses nothing; a kill at most one second, here 1,000 tokens.
serve_stop gate
serve gate --api "unix:$here/api.sock" weir.yaml
python3 -B - <<'END' || fail "an orderly stop loses tokens"
from kept import *

was = json.load(open("before.json"))
for j in ask("GET", "/v1/ledger")["resources"][0]["jobs"]:
    check(j["repaid"] >= was[j["tenant"]]["repaid"] and j["lent"] >= was[j["tenant"]]["lent"], "kept:", j["tenant"])
fio = Fio({"lender": {"rate_iops": 20, "iodepth": 1}, "burst": {"iodepth": 64}}, seconds=20)
await_queue(["burst"])
time.sleep(1.6)
r = ask("GET", "/v1/ledger")["resources"][0]
os.kill(int(open("gate.pid").read()), 9)
json.dump(r, open("before.json", "w"))
fio.process.kill()
finish()
END
serve gate --api "unix:$here/api.sock" weir.yaml
python3 -B - <<'END' || fail "a kill loses more than a second"
from kept import *

was = json.load(open("before.json"))["loans"][0]["amount"]
now = ask("GET", "/v1/ledger")["resources"][0]["loans"][0]["amount"]
check(was - 1100 <= now <= was and now > 0, "of %d tokens %d were kept" % (was, now))
finish()
END

# A resource with another name has another ledger; the log names the old one.
serve_stop gate
cp state/ledger kept
sed 's/name: ost/name: other/' weir.yaml >other.yaml
serve gate --api "unix:$here/api.sock" other.yaml
has gate.log 'ledger-dropped resource=ost'

# A damaged file is reported, and does no harm.
serve_stop gate
cp kept state/ledger
python3 - <<'END'
text = bytearray(open("state/ledger", "rb").read())
text[-20] ^= 1
open("state/ledger", "wb").write(text)
END
serve gate --api "unix:$here/api.sock" weir.yaml
has gate.log 'state-damaged'
[ -s state/ledger.damaged ] || fail "the damaged ledger was not set aside"
weir status --ledger >ledger.txt
hasnt ledger.txt 'LENDER'
run 2 weir status --ledger --clients
serve_stop gate
