# SPDX-License-Identifier: BSD-3-Clause
# Wrong connections to a controller: a server with another key, an unknown server, a client that
# sends garbage, and a second controller, which the servers follow from then on.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_key key
cluster_key other
cluster_files 2 "\"unix:$PWD/c.sock\", \"unix:$PWD/d.sock\""
control c control.yaml
serve s1 --api "unix:$PWD/s1.api" s1.yaml

# Another key: one line in the log, however often the server tries.
sed 's/key: key/key: other/' s2.yaml >wrong.yaml
serve wrong --api "unix:$PWD/wrong.api" wrong.yaml
await wrong 'd["controllers"][0]["lost"] >= 3' True
[ "$(grep -c 'server-refused.*not sealed with this cluster' c.log)" -eq 1 ] || fail "a wrong key is logged more than once: $(cat c.log)"
[ "$(cluster_state wrong 'd["controllers"][0]["up"]')" = False ] || fail "a server with a wrong key is connected"
serve_stop wrong

# Garbage: an HTTP request, nothing at all, and many zero bytes.
python3 - <<'END' || fail "garbage is answered"
import os
import socket


def knock(text):
    s = socket.socket(socket.AF_UNIX)
    s.connect("c.sock")
    s.settimeout(8)
    try:
        s.sendall(text)
    except BrokenPipeError:
        pass
    got = b""
    try:
        while True:
            part = s.recv(4096)
            if not part:
                break
            got += part
    except ConnectionResetError:
        pass
    assert len(got) in (0, 256), len(got)  # its HELLO only


knock(b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n" + b"x" * 200)
knock(os.urandom(1 << 20))
knock(b"WEIR" + bytes(4000))
END
[ "$(grep -c 'server-refused.*not this protocol' c.log)" -eq 1 ] || fail "garbage is logged more than once: $(cat c.log)"

# A name that the controller does not know.
sed 's/s2/s9/g' s2.yaml >stranger.yaml
sed 's/s2/s9/g' tenants.yaml >tenants9.yaml
sed -i 's/tenants.yaml/tenants9.yaml/' stranger.yaml
serve stranger --api "unix:$PWD/stranger.api" stranger.yaml
await stranger 'd["controllers"][0]["lost"] >= 2' True
[ "$(grep -c "not a server of the cluster" c.log)" -eq 1 ] || fail "an unknown server is logged more than once: $(cat c.log)"
serve_stop stranger

# The other servers still get their tokens.
serve s2 --api "unix:$PWD/s2.api" s2.yaml
await c 'd["state"]' granting
await s1 'd["resources"][0]["pshift"]["state"]' leased
first=$(cluster_state s1 'd["resources"][0]["pshift"]["generation"]')

# A second controller: the servers follow it, and the first one stands down.
sed "s#c.api#d.api#" control.yaml >second.yaml
control d --listen "unix:$PWD/d.sock" --name second second.yaml
await d 'd["state"]' granting
await s1 "d['resources'][0]['pshift']['generation'] > $first" True
await s1 'd["resources"][0]["pshift"]["state"]' leased
await c 'd["state"]' 'stood down'
[ "$(grep -c stood-down c.log)" -eq 1 ] || fail "standing down is logged more than once"
serve_stop s1
serve_stop s2
serve_stop c
serve_stop d

# Configurations without anything to control.
run 2 weir control nothing.yaml
run 2 weir control
printf 'tenants: [{name: a}]\n' >alone.yaml
run 2 weir control alone.yaml
has stderr 'there is nothing to control'
run 0 weir control --check control.yaml
has stdout 'control.yaml: ok'
sed 's/, listen: "[^"]*"//' control.yaml >several.yaml
run 2 weir control several.yaml
has stderr 'there are several controllers'
chmod 644 key
run 1 weir control control.yaml
has stderr 'readable or writable by all users'
