# SPDX-License-Identifier: BSD-3-Clause
# weir doctor finds what is wrong with a policy, its storage, a store and a running gateway, changes nothing, and finds
# nothing where nothing is wrong.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
truncate -s 1M disk.raw other.raw
export WEIR_SOCKET="$here/api.sock"

# ---- a policy without faults; the lines about the machine depend on the machine
cat >good.yaml <<END
listen: ["unix:$here/nbd.sock"]
resources: [{name: disk, depth: 4, volumes: [{name: a, back: "file:disk.raw"}, {name: b, back: "file:other.raw"}]}]
tenants: [{name: a, match: {export: a}}, {name: b, max: 50 iops, match: {export: b}}]
END
run 0 weir doctor good.yaml
has stdout 'ok       storage: 2 back ends opened'
has stdout 'note     gateway: no gateway answers at'
grep '^error\|^warning' stdout | grep -v 'descriptors\|clock\|memory\|io_uring' >bad && fail "$(cat bad)"
run 1 weir doctor --socket "$here/api.sock" good.yaml
has stdout "error    gateway: no gateway answers at $here/api.sock"

# ---- storage
cat >bad.yaml <<END
listen: ["unix:$here/none/nbd.sock"]
state: $here/none/state
resources:
  - {name: missing, back: "file:missing.raw"}
  - {name: away, back: "nbd+unix:///x?socket=$here/away.sock"}
  - {name: deep, depth: 65536, back: "file:disk.raw"}
exports: [{name: e, resource: deep}]
tenants: [{name: x, match: {export: nothing}}]
END
mkfifo hold # its end ends the holder
# QEMU's locks of a writer, by bytes 101 and 201 (F_OFD_SETLK is 37).
python3 -c '
import fcntl, os, struct
fd = os.open("disk.raw", os.O_RDWR)
for byte in 101, 201:
    fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, byte, 1, 0))
open("locked", "w").close()
open("hold").read()' &
holder=$!
tries=0
until [ -e locked ]; do
	tries=$((tries + 1))
	[ $tries -lt 500 ] || fail "nothing locks the file"
	sleep 0.02
done
run 1 weir doctor bad.yaml
: >hold
wait $holder
has stdout "error    resource 'missing': file:missing.raw: No such file"
has stdout "error    resource 'away': nbd+unix:///x?socket=$here/away.sock: does not answer"
has stdout "error    resource 'deep': disk.raw: another program has it open"
has stdout "error    state: $here/none/state"
has stdout "error    listen: $here/none"
has stdout "'x': no export is called 'nothing'"
disk=$(df --output=source . | tail -n 1)
[ ! -e "/sys/class/block/${disk##*/}/queue/nr_requests" ] || has stdout "is more than the queue of disk ${disk##*/}"
head -n 1 stdout | grep -q ^error || fail "the worst finding is not first"
hasnt stderr upstream # the finding is enough
[ ! -e none ] && [ ! -e missing.raw ] || fail "something was made"
run 1 weir doctor --quiet bad.yaml
grep -v '^error\|^warning' stdout && fail "--quiet"
run 1 weir doctor missing.yaml
has stdout 'error    policy: missing.yaml: No such file'

# ---- a store that does not exist is not made
run 1 weir doctor --store "sqlite:$here/store"
has stdout "error    store: sqlite:$here/store: there is none"
[ ! -e store ] || fail "a store was made"

# ---- a gateway: its own locks are no fault
sed "s|^tenants|api: \"unix:$here/own.sock\"\nstate: $here/made\n&|" good.yaml >own.yaml
run 0 weir doctor own.yaml
has stdout "note     state: $here/made is made when the gateway starts"
serve gate --api "unix:$here/api.sock,unix:$here/own.sock" good.yaml
run 0 env -u WEIR_SOCKET weir doctor own.yaml # the policy names the socket
has stdout 'ok       gateway: answers'
run 0 weir doctor --json good.yaml
python3 -c '
import json
found = json.load(open("stdout"))
assert {"gateway", "storage", "policy"} <= {f["subject"] for f in found if f["level"] == "ok"}, found
assert [f for f in found if f["level"] == "error"] == [], found' || fail "--json"
weir bypass disk >/dev/null
run 0 weir doctor
has stdout "warning  resource 'disk': its gate has been open for"
weir bypass --off disk >/dev/null
rm other.raw # noticed by the gateway, some time later
tries=0
until weir doctor >stdout; [ $? -eq 1 ]; do
	tries=$((tries + 1))
	[ $tries -lt 200 ] || fail "a deleted file is not found: $(cat stdout)"
	sleep 0.05
done
grep -q "^error    \(volume 'b'\|resource 'disk'\)" stdout || fail "$(cat stdout)"

# ---- bad command lines
run 2 weir doctor good.yaml bad.yaml
run 2 weir doctor --url ftp://x
