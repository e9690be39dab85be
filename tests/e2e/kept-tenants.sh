# SPDX-License-Identifier: BSD-3-Clause
# The tenant of a request is chosen by export, client address, unix user and TLS identity; an
# unknown client is the default's or refused. Several exports are one tenant. Judged by the tenants'
# counters.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

port=$((20000 + $$ % 20000))
export NBD_PORT="$port"
uid=$(id -u)
export OTHER_UID=$((uid == 0 ? 65534 : uid + 1))
printf 'carol:%064d\n' 7 >keys.psk

# policy DEFAULT
policy()
{
	cat <<END
listen: ["unix:$here/s.sock", "tcp:127.0.0.1:$port"]
tls: {psk: "$here/keys.psk"}
default: $1
resources: [{name: disk, back: "memory:16M"}, {name: other, back: "memory:16M"}]
exports:
  - {name: vm-1, resource: disk, size: 1 MiB}
  - {name: vm-2, resource: other, size: 1 MiB}
  - {name: backup, resource: disk, offset: 1 MiB, size: 1 MiB}
tenants:
  - {name: guests, max: 100k iops}
  - {name: vms, match: [{export: "vm-*", uid: $uid}, {export: "vm-*", client: 127.0.0.0/8}]}
  - {name: lan, match: {export: "vm-*", client: 127.0.0.2}}
  - {name: user, match: {export: "vm-*", uid: $OTHER_UID}}
  - {name: carol, match: {export: "*", tls: "car*"}}
END
}
policy refuse >weir.yaml
policy guests >next.yaml
serve gate --api "unix:$here/api.sock" weir.yaml
chmod 777 . s.sock

python3 -B - <<'END' || fail "requests are counted for a wrong tenant"
import os, subprocess
from kept import *
import nbdraw

NBD_PORT = int(os.environ["NBD_PORT"])
OTHER = int(os.environ["OTHER_UID"])


def counted(what, tenant, function):
    """Check that the requests are counted for this tenant, and for no other."""
    a = Look()
    function()
    x = Between(a, Look())
    grew = {t: x.passed(t, what="served") for t in x.a.t if x.passed(t, what="served")}
    check(list(grew) == [tenant], what, "is", tenant + ":", grew)


def use(export, **where):
    s = nbdraw.client(export, **where)
    for i in range(10):
        s.sendall(nbdraw.request(nbdraw.READ, 4096 * i, 4096, i))
        assert nbdraw.reply(s, 4096) == (0, i)
    s.close()


def refused(what, export, **where):
    a = Look()
    try:
        use(export, **where)
        check(False, what, "was accepted")
    except PermissionError as e:
        x = Look().all["connections"]["refused"] - a.all["connections"]["refused"]
        check(x == 1, what, "is refused:", e)


def as_other(function):
    """Run in a process of the other user."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(OTHER)
            os.setuid(OTHER)
            function()
            os._exit(0)
        except BaseException as e:
            print("        as user %d: %s" % (OTHER, e), flush=True)
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def carol():
    subprocess.run(["weir", "load", "-n", "10", "--tls-psk", "keys.psk",
                    "nbds+unix:///backup?socket=" + NBD], check=True, stdout=subprocess.DEVNULL)


counted("this user", "vms", lambda: use("vm-1", path=NBD))
counted("this user, another export on another back end", "vms", lambda: use("vm-2", path=NBD))
counted("an address", "vms", lambda: use("vm-1", port=NBD_PORT))
counted("another address, which is more exactly named", "lan", lambda: use("vm-1", port=NBD_PORT, source="127.0.0.2"))
if os.getuid() == 0:
    counted("another user", "user", lambda: check(as_other(lambda: use("vm-1", path=NBD)), "as another user"))
else:
    print("        not run: another user, which needs root")
counted("a client with a key", "carol", carol)
refused("this user at another export", "backup", path=NBD)
refused("an address at another export", "backup", port=NBD_PORT, source="127.0.0.2")
try:
    use("vm-3", path=NBD)
    check(False, "there is no vm-3")
except FileNotFoundError:
    check(True, "there is no vm-3")

# With a default, unknown clients are its; and connected clients stay connected, as the default's or
# as before.
inside = nbdraw.client("vm-1", path=NBD)
ask("PUT", "/v1/policy", open("next.yaml").read())
counted("an unknown one", "guests", lambda: use("backup", path=NBD))
counted("an unknown one, by address", "guests", lambda: use("backup", port=NBD_PORT))
counted("a known one", "vms", lambda: use("vm-1", path=NBD))
unknown = nbdraw.client("backup", path=NBD)
ask("PUT", "/v1/policy", open("weir.yaml").read())
try:
    unknown.sendall(nbdraw.request(nbdraw.READ, 0, 4096))
    nbdraw.reply(unknown, 4096)
    check(False, "a client that is now refused was not disconnected")
except (EOFError, ConnectionError):
    check(True, "a client that is now refused is disconnected")
inside.sendall(nbdraw.request(nbdraw.READ, 0, 4096))
check(nbdraw.reply(inside, 4096)[0] == 0, "other clients stay connected")
finish()
END
serve_stop gate
