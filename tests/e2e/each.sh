# SPDX-License-Identifier: BSD-3-Clause
# Templates: a tenant per export, client uid or volume, made when its first client comes and removed after its last has left;
# weights and limits by size hold among them; classes, overrides, restarts, max_tenants and mins that do not fit.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

for tool in curl qemu-nbd nbdinfo; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
for python in python3 /usr/bin/python3; do # the package of libnbd belongs to the system's
	"$python" -c 'import nbd' 2>/dev/null && break
done
"$python" -c 'import nbd' 2>/dev/null || skip "there is no libnbd for Python"

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
state: "$here/state"
classes:
  gold: {weight: 8}
  silver: {weight: 1}
  sized: {max: {rate: 3200 iops/GiB, at_least: 25 iops}}
  cap: {max: 77 iops}
  most: {min: 350 iops}
  little: {min: 100 iops}
resources:
  - name: disk
    depth: 8
    capacity: 1k iops
    volumes:
      - {name: vm-1, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M"}
      - {name: vm-2, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", class: gold}
      - {name: size-1, back: "memory:32M"}
      - {name: size-2, back: "memory:64M"}
      - {name: size-3, back: "memory:1M"}
      - {name: few-1, back: "memory:1M"}
      - {name: few-2, back: "memory:1M"}
      - {name: few-3, back: "memory:1M"}
      - {name: min-1, back: "memory:1M"}
      - {name: min-2, back: "memory:1M"}
      - {name: home, back: "memory:1M"}
      - {name: size-4, back: "file:size-4.raw"}
      - {name: secret, back: "memory:1M"}
tenants:
  - {name: vms, weight: 4, each: {match: {export: "vm-*"}, class: silver, expire_after: 1s}}
  - {name: sizes, each: {match: {export: "size-*"}, class: sized, expire_after: 1s}}
  - {name: few, each: {match: {export: "few-*"}, max_tenants: 2, max: {rate: 1 iops/GiB, at_least: 20 iops, at_most: 50 iops}}}
  - {name: mins, each: {match: {export: "min-*"}, min: 600 iops}}
  - {name: users, each: {match: {export: home, uid: "*"}, name: "u{uid}"}}
END
truncate -s 32M size-4.raw size-5.raw min-3.raw min-4.raw
WEIR_SOCKET=$here/api.sock
export WEIR_SOCKET
weir policy check weir.yaml >check.out 2>&1 || fail "weir policy check refuses it"
run 0 weir policy show weir.yaml
has stdout 'EACH vms: one tenant per export'
has stdout 'CLASS sized: max {rate: 3.2k iops/GiB, at_least: 25 iops}'
serve gate --api "unix:$here/api.sock" weir.yaml

# ---- a client that only looks needs no tenant and makes none; an export without a tenant stays refused

run 0 timeout 20 qemu-nbd --list --socket "$here/s.sock"
has stdout "exports available: 12"
[ "$(grep -c 'size: ' stdout)" = 12 ] || fail "qemu-nbd has no size of some export"
hasnt stdout secret
run 0 timeout 20 nbdinfo --list "$(uri "")"
[ "$(grep -c 'export-size: ' stdout)" = 12 ] || fail "nbdinfo has no size of some export"
[ "$(grep -c 'base:allocation' stdout)" = 12 ] || fail "nbdinfo has no contexts of some export"
hasnt stdout secret
here=$here "$python" -B - <<'END' || fail "looks are not answered as they should be"
import os
import nbd
from kept import ask, check, finish


def look(name):
    h = nbd.NBD()
    h.set_opt_mode(True)
    h.connect_uri(f"nbd+unix:///{name}?socket={os.environ['here']}/s.sock")
    try:
        h.opt_info()
    except nbd.Error:
        h.opt_abort()
        return None
    return h


def made():
    return [t["path"] for t in ask("GET", "/v1/status")["tenants"]
            if "/" in t["path"] and not t["path"].endswith("/others")]


check(not look("secret"), "an export without a tenant is refused")
check("export=secret why=\"the policy has no tenant for it\"" in open("gate.log").read(), "and this is logged")
check(not look("none"), "an unknown name is refused")
h = look("vm-1")
check(h.get_size() == 16 << 20, "the size of an export whose tenant does not exist")
check(not made(), f"looks make no tenants: {made()}")
h.opt_go()
check(made() == ["vms/vm-1"], f"a client that stays after its look has its tenant: {made()}")
h.shutdown()
finish()
END

# ---- weights: the class of the volume vm-2 overrides the template's

weir load -t 60s -d 64 "a=$(uri vm-1)" "b=$(uri vm-2)" >load.out 2>&1 &
load=$!
python3 -B - <<'END' || fail "weights do not hold among the tenants of a template"
import time
from kept import *

await_queue(["vms/vm-1", "vms/vm-2"], 20)
time.sleep(0.5)
a = Look()
time.sleep(4)
x = Between(a, Look())
check(x.backlogged("vms/vm-1", "vms/vm-2"), "both wait")
near("vm-2 by vm-1, classes gold and silver", x.ratio("vms/vm-2", "vms/vm-1"), 8, 0.05)
finish()
END

# ---- an override of one; it holds after a restart, before its client is there

run 0 weir set vms/vm-1.weight 4
run 0 weir set vms/vm-9.max "5k iops"
has stdout "vms/vm-9.max: no such tenant now; kept until a template makes it"
weir set vms/vm-9.max "5k oranges" >set.out 2>&1 && fail "a bad value for an absent tenant is accepted"
python3 -B - <<'END' || fail "an override of a tenant of a template does not hold"
import time
from kept import *

time.sleep(1)
a = Look()
time.sleep(3)
x = Between(a, Look())
near("vm-2 by vm-1 after set", x.ratio("vms/vm-2", "vms/vm-1"), 2, 0.08)
finish()
END
kill "$load"
wait "$load"
serve_stop gate
serve gate --api "unix:$here/api.sock" weir.yaml
run 0 weir set
has stdout 'vms/vm-1.weight'
has stdout 'vms/vm-9.max'

# ---- the rest with libnbd

cat >clients.py <<'END'
import os, subprocess, time
import nbd
from kept import ask, check, near, finish

HERE = os.environ["here"]


def metrics():
    return subprocess.run(["curl", "-s", "--unix-socket", os.environ["WEIR_SOCKET"], "http://weir/metrics"],
                          capture_output=True, text=True, check=True).stdout


def uri(name):
    return f"nbd+unix:///{name}?socket={HERE}/s.sock"


def connect(name):
    h = nbd.NBD()
    h.connect_uri(uri(name))
    return h


def tenants():
    return {t["path"]: t for t in ask("GET", "/v1/status")["tenants"]}


def await_(what, fn, seconds=20):
    end = time.monotonic() + seconds
    while not fn():
        if time.monotonic() > end:
            check(False, what)
            return
        time.sleep(0.05)
    check(True, what)


# an override that waited for its tenant
h = connect("vm-1")
check(tenants()["vms/vm-1"]["weight"] == 4, "the override applies when its tenant appears")
h.pread(512, 0)
served = tenants()["vms"]["served"]
h.shutdown()
await_("the tenant is removed after its last client left", lambda: "vms/vm-1" not in tenants())
check(tenants()["vms"]["served"] == served, "its counters are the parent's now")
check(f'weir_tenant_served_total{{tenant="vms"}} {served}' in metrics(), "and in /metrics")

# sizes
h = [connect(f"size-{i}") for i in (1, 2, 3)]
t = tenants()
near("max of 32 MiB", t["sizes/size-1"]["max"]["iops"], 100, 0.001)
near("max of 64 MiB", t["sizes/size-2"]["max"]["iops"], 200, 0.001)
near("max of 1 MiB, at least", t["sizes/size-3"]["max"]["iops"], 25, 0.001)
h[0].pread(512, 0)
begin, n = time.monotonic(), 0
while time.monotonic() < begin + 3:
    h[0].pread(512, 0)
    n += 1
check(n / (time.monotonic() - begin) < 110, f"a max by size holds: {n} in 3 s")
check(n >= 60, f"and is delivered: {n} in 3 s")
h.append(connect("size-4"))
near("max of a file of 32 MiB", tenants()["sizes/size-4"]["max"]["iops"], 100, 0.001)
subprocess.run(["weir", "volume", "grow", "size-4", "64MiB"], check=True)
await_("the max follows when the volume grows", lambda: abs(tenants()["sizes/size-4"]["max"]["iops"] - 200) < 1)
subprocess.run(["weir", "volume", "add", "disk", "size-5", f"file:{HERE}/size-5.raw"], check=True)
h.append(connect("size-5"))
check(tenants()["sizes/size-5"]["weight"] == 1, "a volume that was added has the template's class")
subprocess.run(["weir", "volume", "set", "size-5", "--class", "gold"], check=True)
await_("a volume that gets another class has it", lambda: tenants()["sizes/size-5"]["weight"] == 8)
for one in h:
    one.shutdown()

# too many
h = [connect(f"few-{i}") for i in (1, 2, 3)]
h[2].pread(512, 0)
check(tenants()["few/others"]["clients"] == 1, "one more shares 'others'")
check(open("gate.log").read().count("max-tenants") == 1, "and this is logged once")
check(tenants()["few/others"]["max"]["iops"] == 50, "a max by size is its at_most in 'others'")
begin = time.monotonic()
for _ in range(100):
    h[2].pread(512, 0)
check(time.monotonic() - begin > 1, "and this holds")
for one in h:
    one.shutdown()

# mins
h = [connect(f"min-{i}") for i in (1, 2)]
t = tenants()
check(not t["mins/min-1"]["min_off"] and t["mins/min-1"]["min"]["iops"] == 600, "the first has its min")
check(t["mins/min-2"]["min_off"] and not t["mins/min-2"]["min"], "the second has its weight only")
check("min-off tenant=mins/min-2" in open("gate.log").read(), "and is named in the log")
check('weir_tenant_min_off{tenant="mins/min-2"} 1' in metrics(), "and in /metrics")
check("MIN OFF: mins/min-2" in os.popen("weir status").read(), "and in the status")
check("over the capacity of 'disk'" in open("gate.log").read(), "with the reason")


def weir(*args):
    return subprocess.run(["weir", *args], capture_output=True, text=True)


def mins():
    return {path[5:]: t["min"].get("iops", 0) for path, t in tenants().items() if path.startswith("mins/min-")}


def refused(why, *args):
    got = weir(*args)
    check(got.returncode and why in got.stderr, f"{' '.join(args)}: refused: {got.stderr}")
    check(mins()["min-1"] == 600, f"and the min in force stays: {mins()}")


def add(name, class_):
    weir("volume", "add", "disk", name, f"file:{HERE}/{name}.raw", "--class", class_)
    h.append(connect(name))


refused("is below its min, 600 iops", "set", "mins/min-1.max", "77 iops")
refused("is below its min, 600 iops", "set", "mins/min-2.max", "77 iops")
refused("over the capacity of 'disk', 1k iops", "set", "mins/min-1.min", "1100 iops")
refused("over the capacity of 'disk', 500 iops", "set", "disk.capacity", "500 iops")
refused("below the mins of its children", "set", "mins.max", "100 iops")
refused("over the capacity", "set", "few.min", "600 iops")

# a new policy is put in force as a start would do it: as many mins as fit, and those that do not are named
text = open("weir.yaml").read()


def apply(min_, *has):
    open("more.yaml", "w").write(text.replace("min: 600 iops", f"min: {min_}"))
    got = weir("policy", "apply", "more.yaml")
    check(not got.returncode, f"a policy with min {min_} is accepted: {got.stderr}")
    for one in has:
        check(one in got.stdout, f"its answer has '{one}': {got.stdout}")


apply("1100 iops", "mins/min-1: its min is not in force: ", "over the capacity of 'disk', 1k iops", "weight only")
check(mins() == {"min-1": 0, "min-2": 0}, f"a min for which there is never room: {mins()}")
apply("300 iops")
check(mins() == {"min-1": 300, "min-2": 300}, f"mins that fit: {mins()}")
apply("600 iops", "mins/min-2: its min is not in force: ")
check(mins() == {"min-1": 600, "min-2": 0}, f"one of two mins fits: {mins()}")
add("min-3", "most")
check(mins() == {"min-1": 600, "min-2": 0, "min-3": 350}, f"a smaller min after one that does not fit: {mins()}")
refused("is below its min, 600 iops", "volume", "set", "min-3", "--class", "cap")
add("min-4", "little")
check(mins()["min-4"] == 0, f"no room for one more: {mins()}")
weir("volume", "rm", "--force", "min-3")
check(mins() == {"min-1": 600, "min-2": 0, "min-4": 100}, f"a volume that is removed gives its min back: {mins()}")
del h[2]
for one in h:
    one.shutdown()

# users
h = connect("home")
check(f"users/u{os.getuid()}" in tenants(), "a tenant per uid")
h.shutdown()
finish()
END
here=$here "$python" -B clients.py || fail "tenants of templates are not as they should be"

# ---- a policy that removes the template disconnects no client that another tenant takes

sed -e 's/, each: {match: {export: "vm-\*"}, class: silver, expire_after: 1s}/, match: {export: "vm-*"}/' weir.yaml >other.yaml
weir load -t 6s -d 4 --verify --reads 50% "a=$(uri vm-1)" >load.out 2>&1 &
load=$!
sleep 1
run 0 weir policy apply other.yaml
sleep 1
run 0 weir policy apply weir.yaml
wait "$load" || {
	cat load.out >&2
	fail "a client was disturbed by a template that goes and comes"
}
run 0 weir status
has stdout 'vms/vm-1'
serve_stop gate

# ---- a template that makes one name for two kinds of clients: the second shares `others`, and is named

if [ "$(id -u)" = 0 ]; then
	cat >taken.yaml <<END
listen: {unix: "$here/s.sock", mode: 0666}
resources:
  - {name: r, volumes: [{name: x1, back: "memory:1M"}, {name: x, back: "memory:1M"}]}
tenants:
  - {name: eu, each: {match: {export: "x*", uid: "*"}, name: "{export}{uid}"}}
END
	chmod 755 . # the folder of the socket
	serve taken --api "unix:$here/api.sock" taken.yaml
	run 0 qemu-io -f raw -c "read 0 4k" "$(uri x1)"
	run 0 setpriv --reuid 10 --clear-groups qemu-io -f raw -c "read 0 4k" "$(uri x)"
	until_ok eval 'grep "tenant-name-taken tenant=eu/x10 export=x " taken.log'
	serve_stop taken
fi
