# SPDX-License-Identifier: BSD-3-Clause
"""live-keys: change every key of the policy of a running gateway, and compare with the table in docs/operations.md.

write FILE: the policy to start with. check FILE: do it, with the gateway's own policy in FILE."""
import os, re, signal, subprocess, sys, time
import nbdraw

SOURCE = os.environ["WEIR_SOURCE"]
HERE = os.getcwd()

# key: its line after the change
TOP = {
    "tenants": "tenants: [{name: all, weight: 2, max: 9k iops}, {name: b, match: {export: b}}]",
    "classes": "classes: {gold: {weight: 3}}",
    "exports": "exports: [{name: a, resource: a, description: new}]",
    "default": "default: b",
    "enforce": "enforce: false",
    "client_timeout": "client_timeout: 9s",
    "resources": 'resources: [{name: a, back: "file:a.raw"}, {name: b, back: "memory:1M"}]',
    "listen": f'listen: ["unix:{HERE}/s.sock", "unix:{HERE}/t.sock"]',
    "tls": "tls: {psk: keys.psk}",
    "threads": "threads: 2",
    "memory": "memory: 256 MiB",
    "log": "log: {level: debug}",
    "peers": "peers: {listen: \"udp:127.0.0.1:0\", to: [\"udp:127.0.0.1:7099\"], key: peer.key, cluster: x}",
    "cluster": "cluster: {name: x, key: peer.key, controller: \"tcp:127.0.0.1:7098\", servers: [a]}",
    "api": f'api: "unix:{HERE}/other.sock"',
    "token": "token: token",
    "access": "access: {tokens: tokens}",
    "state": "state: elsewhere",
    "recordings": "recordings: elsewhere",
    "links": "links: [{name: l, rate: 1 Gbit/s}]",
    "network": "network: {devices: [{name: eth0}]}",
    "together": "together: [all, b]",
}
RESOURCE = {
    "back": "memory:16M", "cost": "bytes", "depth": "8", "capacity": "9k iops", "run": "4", "run_distance": "64 KiB",
    "credit": "4", "io_unit": "64 KiB", "flush_cost": "2", "trim_cost": "2", "stall": "2s", "controller": "parda, threshold: 25ms", "timeout": "9s",
    "connections": "2", "keep": "1 MiB", "direct": "true", "threads": "true", "read_only": "true", "lock": "false",
    "tls": "{psk: keys.psk}", "volumes": '[{name: a, back: "file:a.raw"}]',
    "profile": "a.profile",
}
UNSAID = {"name", "version", "lab"}  # what a resource is; the format; experiments

wrong = 0


def check(so, *what):
    global wrong
    print("ok:    " if so else "failed:", *what)
    wrong += not so


def policy(top={}, resource={}):
    of = {"back": '"file:a.raw"', **resource}
    if "volumes" in of:
        del of["back"]
    lines = {
        "listen": f'listen: "unix:{HERE}/s.sock"',
        "resources": "resources: [{name: a, " + ", ".join(f"{k}: {v}" for k, v in of.items()) + "}]",
        "tenants": "tenants: [{name: all, trace: a.trace}, {name: b, trace: b.trace, match: {export: b}}]",  # for together
        "default": "default: all",
        **top,
    }
    return "\n".join(lines.values()) + "\n"


def table():
    """Return the class of each key, by (scope, key)."""
    found = {}
    text = open(f"{SOURCE}/docs/operations.md").read().split("<!-- keys -->")[1]
    for line in text.split("\n\n")[0].splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        for key in re.findall(r"`(\w+)`", cells[0]):
            scope = "resource" if cells[0].startswith("of a resource") else "top"
            assert (scope, key) not in found, f"{key} has two rows"
            found[scope, key] = cells[1]
    return found


def keys_of(file, name):
    """The keys that the reader of policies knows."""
    text = open(f"{SOURCE}/src/policy/{file}").read()
    return set(re.findall(r'"(\w+)"', text.split(f"{name}[] = {{")[1].split("}")[0])) - UNSAID


def apply(text):
    open("next.yaml", "w").write(text)
    p = subprocess.run(["weir", "policy", "apply", "next.yaml"], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def reload(own, text):
    """By SIGHUP: wait until the log has its result, and return that."""
    before = len(open("gate.log").read())
    open(own, "w").write(text)
    os.kill(int(open("gate.pid").read()), signal.SIGHUP)
    for _ in range(500):
        log = open("gate.log").read()[before:]
        if " policy-refused " in log or " policy how=" in log:
            time.sleep(0.1)
            return " policy-refused " not in log, open("gate.log").read()[before:]
        time.sleep(0.02)
    return False, "no answer to SIGHUP"


def alive(s):
    try:
        s.sendall(nbdraw.request(nbdraw.READ, 0, 512))
        return nbdraw.reply(s, 512)[0] == 0
    except (EOFError, OSError):
        return False


def change(own, scope, key, kind, line):
    new = policy({key: line}, {"controller": "pshift"} if key == "cluster" else {})
    if scope == "resource":
        new = policy({}, {key: line})
    name = key if scope == "top" else "a resource's " + key
    s = nbdraw.client("a", path="s.sock")
    status, said = apply(new)
    if kind == "restart":
        check(status == 2 and "restart" in said or status == 0 and f"{key}: unchanged until a restart: " in said
              or status == 0 and "api: unchanged until a restart: " in said, name, "needs a restart:", said)
        check(alive(s), name, "leaves the client alone")
    elif kind == "own file":
        check("only the gateway's own policy file may name" in said, name, "is of the own file:", said)
        done, log = reload(own, new)
        check(done, name, "changes by SIGHUP:", log)
        check(alive(s) == (scope == "top" or key == "profile"), name, "and the client")
        if key == "listen":
            nbdraw.client("a", path="t.sock").close()
    else:
        check(status == 0 and "restart" not in said, name, f"is {kind}:", said)
        check(alive(s) == (kind == "in place"), name, "and the client")
        check((kind == "replaced") == ("closed and opened anew" in said), name, "is told:", said)
    s.close()
    done, log = reload(own, policy())
    check(done, name, "and back:", log)
    time.sleep(0.2)  # the log has ten lines a second of one kind


def main(verb, own):
    open("keys.psk", "w").write("bob:" + "12" * 32 + "\n")
    open("peer.key", "w").write("34" * 32 + "\n")
    work = "{work: [{work: [100us]}]}"
    open("a.profile", "w").write(f"profile: 1\ndepth: 8\nsizes: [4 KiB]\nread: {work}\nwrite: {work}\n")
    for file in "keys.psk", "peer.key":
        os.chmod(file, 0o600)
    if verb == "write":
        open(own, "w").write(policy())
        return
    rows = table()
    known = {("top", k) for k in keys_of("policy.c", "top_keys")}
    known |= {("resource", k) for k in keys_of("resource.c", "resource_keys")}
    check(known == set(rows), "the table has every key, and no other:", sorted(known ^ set(rows)))
    for (scope, key), kind in rows.items():
        lines = TOP if scope == "top" else RESOURCE
        line = lines[key]
        if scope == "resource" and key == "back":
            line = f'"{line}"'
        change(own, scope, key, kind, line)
    sys.exit(1 if wrong else 0)


main(*sys.argv[1:])
