# SPDX-License-Identifier: BSD-3-Clause
"""Roles, TLS and the record of changes of a running gateway; called by roles.sh."""
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import time

HERE = pathlib.Path.cwd()
ROLES = ["none", "read", "operate", "admin"]
METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"]


def fail(why):
    print(f"failed: {why}", file=sys.stderr)
    sys.exit(1)


def check(holds, why):
    if not holds:
        fail(why)


def run(status, *words, text=None):
    """Run weir; return its output and errors."""
    r = subprocess.run(["weir", *words], capture_output=True, text=True, input=text)
    check(r.returncode == status, f"weir {' '.join(words)}: exit {r.returncode}, not {status}: {r.stdout}{r.stderr}")
    return r.stdout + r.stderr


# ---- certificates


def certificate(name, authority, *lines):
    """Make NAME/cert.pem and key.pem, signed by `authority`, or by itself."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "template").write_text("\n".join(lines) + "\n")
    make = ["certtool", "--generate-privkey", "--key-type", "ecdsa", "--outfile", folder / "key.pem"]
    subprocess.run(make, check=True, capture_output=True)
    sign = ["--generate-self-signed"] if authority is None else [
        "--generate-certificate", "--load-ca-certificate", HERE / authority / "cert.pem", "--load-ca-privkey", HERE / authority / "key.pem"]
    subprocess.run(["certtool", *sign, "--load-privkey", folder / "key.pem", "--template", folder / "template", "--outfile",
                    folder / "cert.pem"], check=True, capture_output=True)


def certificates():
    days = "expiration_days = 2"
    certificate("ca", None, 'cn = "test authority"', "ca", "cert_signing_key", days)
    certificate("other", None, 'cn = "another authority"', "ca", "cert_signing_key", days)
    server = ['cn = "gateway"', 'dns_name = "localhost"', 'ip_address = "127.0.0.1"', "tls_www_server", "signing_key", days]
    certificate("server", "ca", *server)
    certificate("renewed", "ca", *server)
    certificate("served", "ca", 'cn = "served.ops.example.org"', "tls_www_server", "signing_key", days)
    certificate("any", "ca", 'cn = "any.ops.example.org"', "signing_key", days)
    for name, authority, cn, more in [("anna", "ca", "anna.ops.example.org", [days]), ("mallory", "other", "anna.ops.example.org", [days]),
                                      ("bert", "ca", "bert.example.org", [days]),
                                      ("late", "ca", "late.ops.example.org", ["activation_date = \"2020-01-01\"", "expiration_date = \"2020-01-02\""])]:
        certificate(name, authority, f'cn = "{cn}"', "tls_www_client", "signing_key", *more)


# ---- requests


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weir", timeout=10)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(self.path)


def tls(client=None, authority="ca"):
    context = ssl.create_default_context(cafile=HERE / authority / "cert.pem")
    if client:
        context.load_cert_chain(HERE / client / "cert.pem", HERE / client / "key.pem")
    return http.client.HTTPSConnection("127.0.0.1", PORT, timeout=10, context=context)


def ask_once(connection, method, path, token=None, body=None, headers=None, keep=False):
    """Return the status and the reply, as JSON if it is. keep: leave the connection open."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, body=body, headers=headers)
    reply = connection.getresponse()
    text = reply.read()
    if not keep:
        connection.close()
    try:
        return reply.status, json.loads(text)
    except ValueError:
        return reply.status, text.decode(errors="replace")


def ask(connection, method, path, *more, **named):
    """The same; wait while this address may not ask, because of its requests without a token."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            got = ask_once(connection, method, path, *more, **named)
            if got[0] != 429:
                return got
        except (ConnectionResetError, ssl.SSLEOFError):
            connection.close()
        time.sleep(0.05)
    return fail(f"{method} {path}: limited for 20 s")


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


PORT = free_port()
API = HERE / "api.sock"


def serve(policy):
    (HERE / "weir.yaml").write_text(policy)
    for name in ("pid", "log"):
        (HERE / name).unlink(missing_ok=True)
    child = subprocess.Popen(["weir", "serve", "--pidfile", "pid", "--log-level", "debug", "weir.yaml"], stderr=open("log", "w"))
    until = time.monotonic() + 10
    while not (HERE / "pid").exists() or not (HERE / "pid").read_text():
        check(child.poll() is None and time.monotonic() < until, "weir serve: " + (HERE / "log").read_text())
        time.sleep(0.02)
    return child


def stop(child):
    child.terminate()
    check(child.wait(20) == 0, "weir serve ended with an error: " + (HERE / "log").read_text())


POLICY = f"""
listen: "unix:{HERE}/s.sock"
api: ["unix:{API}", "tcp:127.0.0.1:{PORT}"]
token: one
state: state
recordings: {HERE}
access:
  tls: {{cert: server/cert.pem, key: server/key.pem, ca: ca/cert.pem}}
  audit: audit.json
  clients:
    - {{cert: "*.ops.example.org", role: operate}}
    - {{user: 65533, role: read}}
    - {{group: 65531, role: operate}}
resources: [{{name: disk, back: "memory:64M", depth: 8}}]
tenants: [{{name: db, weight: 3, match: {{export: "*"}}}}]
"""

# ---- the table


def version(tokens):
    return ask(tls(), "GET", "/v1/policy", tokens["admin"])[1]["version"]


def state_of(tokens):
    """What a change would change."""
    paths = ["/v1/policy", "/v1/bypass", "/v1/record", "/v1/plan", "/v1/tokens"]
    volumes = ask(tls(), "GET", "/v1/volumes", tokens["admin"])[1]
    return [ask(tls(), "GET", p, tokens["admin"])[1] for p in paths] + [[v["name"] for v in volumes["volumes"]]]


def walk(tokens, routes):
    """Ask for every path by every method with each role, and with none. (A token decides on a unix socket, too, without handshakes.)"""
    before = state_of(tokens)
    needs = {(r["method"], r["path"]): r["role"] for r in routes}
    pairs = {(r["path"], r["method"]) for r in routes}
    stranger = tls()
    for path in sorted({r["path"] for r in routes}):
        named = next(r["name"] for r in routes if r["path"] == path)
        for method in METHODS:
            need = needs.get(("GET" if method == "HEAD" else method, path))
            for role in ROLES:
                if role == "none" and (path, method) not in pairs:
                    continue  # requests without a token are limited
                if need and role != "none" and ROLES.index(role) >= ROLES.index(need) and method not in ("GET", "HEAD"):
                    continue  # it may, and would change something
                got, text = ask(Unix(API) if role in tokens else stranger, method, path + ("x" if named else ""), tokens.get(role),
                                headers={"Content-Length": "0"}, keep=role not in tokens)
                if need == "none":
                    want = [200]
                elif role == "none":
                    want = [401]
                elif need is None:
                    want = [405, 501]
                elif ROLES.index(role) < ROLES.index(need):
                    want = [403]
                else:
                    want = [200, 400, 404, 409]
                check(got in want, f"{method} {path} as {role}: {got} {text}, not {want}")
                if got == 403 and method != "HEAD":
                    check(f"needs the role {need}; {role}-token has the role {role}" in text["error"], text)
    check(state_of(tokens) == before, "a request without the role changed something")


def is_safe(routes):
    """Nothing that changes something is for the role read."""
    for r in routes:
        if r["method"] != "GET":
            check(r["role"] in ("operate", "admin"), f"{r}: changes something")
        check(r["role"] != "none" or r["path"] == "/healthz", f"{r}: needs no role")


def read_changes_nothing(tokens):
    """Bodies and keys that would change something, with the role read."""
    before = version(tokens)
    for method, path, body in [("PUT", "/v1/set/db.weight", "9"), ("PUT", "/v1/policy", POLICY), ("PUT", "/v1/policy?dry=1", POLICY),
                               ("PUT", "/v1/bypass/disk", ""), ("PUT", "/v1/volumes/x", '{"resource": "disk", "size": 1}'),
                               ("POST", "/v1/record?file=r", ""), ("PUT", "/v1/tokens/mine?role=admin", ""),
                               ("DELETE", "/v1/tokens/read-token", ""), ("POST", "/v1/plan", "{}")]:
        got, text = ask(tls(), method, path, tokens["read"], body)
        check(got == 403, f"{method} {path} as read: {got} {text}")
        for trick in [{"X-HTTP-Method-Override": method}, {"X-Method": method}]:
            got, text = ask(tls(), "GET", path, tokens["read"], body, trick)
            check(got != 500, f"{path}: {got} {text}")
    for path in ["//v1/set/db.weight", "/v1/./set/db.weight", "/v1/set/../set/db.weight", "/V1/set/db.weight", "/v1%2fset/db.weight"]:
        got, text = ask(tls(), "PUT", path, tokens["read"], "9")
        check(got in (403, 404, 405), f"{path}: {got} {text}")
    check(version(tokens) == before, "the policy was changed with the role read")
    check(not (HERE / "r").exists(), "a recording was begun with the role read")


def table():
    tokens = {"admin": ask(Unix(API), "PUT", "/v1/tokens/admin-token?role=admin")[1]["token"]}
    for role in ("read", "operate"):
        got, made = ask(tls(), "PUT", f"/v1/tokens/{role}-token?role={role}", tokens["admin"])
        check(got == 200, made)
        tokens[role] = made["token"]
    got, access = ask(tls(), "GET", "/v1/access", tokens["read"])
    check((got, access["name"], access["by"], access["role"]) == (200, "read-token", "token", "read"), access)
    routes = access["routes"]
    check(len(routes) >= 30, f"{len(routes)} routes")
    is_safe(routes)
    walk(tokens, routes)
    read_changes_nothing(tokens)
    # those with the role can
    check(ask(tls(), "PUT", "/v1/set/db.weight", tokens["operate"], "5")[0] == 200, "operate cannot set")
    check(ask(tls(), "PUT", "/v1/policy?dry=1", tokens["operate"], POLICY)[0] == 403, "operate can apply")
    check(ask(tls(), "PUT", "/v1/policy?dry=1", tokens["admin"], POLICY)[0] == 200, "admin cannot apply")
    check(ask(tls(), "GET", "/metrics", tokens["read"])[0] == 200, "read cannot scrape")
    one = (HERE / "one").read_text().strip()
    check(ask(tls(), "GET", "/v1/access", one)[1]["role"] == "admin", "the token of the file is not admin")
    return tokens


# ---- what a client proves


def proofs(tokens):
    def role(connection, token=None):
        got, reply = ask(connection, "GET", "/v1/access", token)
        return reply["role"] if got == 200 else (got, reply["error"])

    check(role(tls("anna")) == "operate", role(tls("anna")))
    check(role(tls("anna"), tokens["read"]) == "read", "a token that is sent decides")
    check(role(tls("bert"))[0] == 403 and "bert.example.org has none" in role(tls("bert"))[1], role(tls("bert")))
    check(role(tls("mallory"))[0] == 401 and "certificate is refused" in role(tls("mallory"))[1], role(tls("mallory")))
    check(role(tls("late"))[0] == 401 and "expired" in role(tls("late"))[1], role(tls("late")))
    check(role(tls())[0] == 401, role(tls()))
    check(role(tls("served"))[0] == 401 and "purpose" in role(tls("served"))[1], "a certificate for servers only")
    check(role(tls("any")) == "operate", "a certificate that states no purpose")
    # a certificate that the client does not trust, and no TLS at all
    try:
        role(tls(authority="other"))
        fail("a client took a certificate of another authority")
    except ssl.SSLCertVerificationError:
        pass
    try:
        got = ask_once(http.client.HTTPConnection("127.0.0.1", PORT, timeout=10), "GET", "/v1/status", tokens["admin"])
        fail(f"an answer without TLS: {got}")
    except (http.client.HTTPException, ConnectionError):
        pass
    # the page of another site, in a browser that has the certificate
    got, text = ask(tls("anna"), "PUT", "/v1/bypass/disk", headers={"Origin": "https://evil.example.org"})
    check(got == 403 and "another site" in text["error"], text)
    check(ask(tls("anna"), "PUT", "/v1/bypass/disk", headers={"Origin": f"https://127.0.0.1:{PORT}"})[0] == 200, "its own page")
    check(ask(tls("anna"), "DELETE", "/v1/bypass/disk")[0] == 200, "bypass off")


def verbs(tokens):
    """Verbs by TLS, with each role."""
    url = f"https://127.0.0.1:{PORT}"
    for name in ("plain", "own", "wrong"):
        (HERE / name).mkdir()
        shutil.copy(HERE / ("other" if name == "wrong" else "ca") / "cert.pem", HERE / name / "ca-cert.pem")
    shutil.copy(HERE / "anna/cert.pem", HERE / "own/client-cert.pem")
    shutil.copy(HERE / "anna/key.pem", HERE / "own/client-key.pem")
    for role in ("read", "operate", "admin"):
        (HERE / f"{role}.token").write_text(tokens[role] + "\n")

    def weir(status, role, *words, folder="plain"):
        return run(status, *words, "--url", url, "--tls", folder, *(["--token-file", f"{role}.token"] if role else []))

    weir(0, "read", "status")
    out = weir(1, "read", "set", "db.weight", "7")
    check("this needs the role operate; read-token has the role read" in out, out)
    out = weir(1, "operate", "policy", "apply", "weir.yaml")
    check("this needs the role admin; operate-token has the role operate" in out, out)
    weir(0, "operate", "bypass", "disk")
    weir(0, "operate", "bypass", "--off", "disk")
    weir(0, None, "bypass", "--off", "disk", folder="own")  # by the certificate
    out = weir(1, None, "status")
    check("the token is missing or wrong (--token-file)" in out, out)
    out = weir(1, "read", "status", folder="wrong")
    check("its certificate is not trusted (--tls)" in out, out)
    secret = weir(0, "admin", "token", "add", "by-verb", "--role", "read", "--for", "30d").strip()
    check(ask(tls(), "GET", "/v1/access", secret)[1]["name"] == "by-verb", "the new token is not taken")
    out = weir(1, "admin", "token", "add", "by-verb", "--role", "read")
    check("there is a token 'by-verb' already" in out, out)
    check("by-verb" in weir(0, "admin", "token", "list") and secret not in weir(0, "admin", "token", "list", "--json"), "the list")
    check("needs the role admin" in weir(1, "operate", "token", "list"), "operate lists tokens")
    weir(0, "admin", "token", "rm", "by-verb")
    check(ask(tls(), "GET", "/v1/access", secret)[0] == 401, "a removed token is taken")
    # without the server
    secret = run(0, "token", "add", "offline", "--role", "admin", "--file", "state/tokens").strip()
    check(ask(tls(), "GET", "/v1/access", secret)[1]["role"] == "admin", "a token of the file is not taken")
    run(0, "token", "rm", "offline", "-f", "state/tokens")


def ends(tokens):
    """A token that has ended, one that is removed while its connection is open, and a damaged file."""
    made = ask(tls(), "PUT", "/v1/tokens/short?role=operate&for=1s", tokens["admin"])[1]
    until = time.monotonic() + 10
    while ask(tls(), "GET", "/v1/status", made["token"])[0] == 200:
        check(time.monotonic() < until, "a token of 1 s does not end")
        time.sleep(0.1)
    got, text = ask(tls(), "GET", "/v1/status", made["token"])
    check(got == 401 and "the token 'short' has ended on" in text["error"], text)
    made = ask(tls(), "PUT", "/v1/tokens/gone?role=operate", tokens["admin"])[1]
    check(ask(tls(), "PUT", "/v1/tokens/gone?role=read", tokens["admin"])[0] == 409, "a name twice")
    kept = tls()
    for want in (200, 401):
        kept.request("GET", "/v1/status", headers={"Authorization": f"Bearer {made['token']}"})
        reply = kept.getresponse()
        reply.read()
        check(reply.status == want, f"{reply.status}, not {want}, on an open connection")
        ask(tls(), "DELETE", "/v1/tokens/gone", tokens["admin"])
    file = HERE / "state/tokens"
    whole = file.read_text()
    check(made["token"] not in whole and tokens["admin"] not in whole, "the file has a token")
    file.write_text(whole[: len(whole) // 2])
    check(ask(tls(), "GET", "/v1/status", tokens["admin"])[0] == 401, "a token of a damaged file is taken")
    file.write_text(whole)
    check(ask(tls(), "GET", "/v1/status", tokens["admin"])[0] == 200, "the file is not read again")


def users():
    """Users of the unix socket, by user and group."""
    if os.geteuid() != 0:
        return
    os.chmod(API, 0o666)
    os.chmod(HERE, 0o755)
    for uid, gid, groups, want in [(65533, 65533, "--clear-groups", "read"), (65530, 65531, "--clear-groups", "operate"),
                                   (65530, 65530, "--groups=65531", "operate"), (65530, 65530, "--clear-groups", None)]:
        r = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={gid}", groups, "curl", "-sS", "--unix-socket", API,
                            "http://weir/v1/access"], capture_output=True, text=True, check=True)
        reply = json.loads(r.stdout)
        check(reply.get("role") == want, f"{uid}:{gid} {groups}: {reply}")
        if want is None:
            check("uid 65530 has none" in reply["error"], reply)


def renews(tokens):
    """A renewed certificate is used without a restart; half of a pair is not."""
    def serial():
        with ssl.create_default_context(cafile=HERE / "ca/cert.pem").wrap_socket(
                socket.create_connection(("127.0.0.1", PORT), timeout=10), server_hostname="localhost") as s:
            return s.getpeercert()["serialNumber"]

    before = serial()
    os.replace("renewed/cert.pem", "server/cert.pem")
    check(serial() == before, "a certificate without its key is used")
    os.replace("renewed/key.pem", "server/key.pem")
    check(serial() != before, "the renewed certificate is not used")
    check(ask(tls(), "GET", "/v1/status", tokens["read"])[0] == 200, "after the renewal")


def recorded(tokens):
    """The record has every change, and no token."""
    lines = [json.loads(line) for line in (HERE / "audit.json").read_text().splitlines()]
    done = [r for r in lines if r["path"] == "/v1/set/db.weight" and r["status"] == 200]
    check(len(done) == 1, done)
    for key, value in {"who": "operate-token", "by": "token", "role": "operate", "method": "PUT", "body": "5"}.items():
        check(done[0][key] == value, done[0])
    check(done[0]["from"].startswith("127.0.0.1:") and "T" in done[0]["time"], done[0])
    refused = [r for r in lines if r["path"] == "/v1/policy" and r["status"] == 403 and r["who"] == "read-token"]
    check(refused and "needs the role admin" in refused[0]["error"], refused)
    mine = [r for r in lines if r["path"] == "/v1/tokens/mine"]
    check(mine and mine[0]["role"] == "read" and mine[0]["query"] == {"role": "admin"}, mine)
    big = [r for r in lines if r["path"] == "/v1/policy" and r["status"] == 200]
    check(big and big[0]["bytes"] == len(POLICY) and len(big[0]["sha256"]) == 64 and big[0]["query"] == {"dry": "1"}, big)
    check(any(r["by"] == "unix" and r["who"] == "uid %d" % os.getuid() for r in lines), "no change by the unix socket")
    check(any(r["by"] == "certificate" and r["who"] == "anna.ops.example.org" for r in lines), "no change by a certificate")
    for file in ("audit.json", "log"):
        text = (HERE / file).read_text()
        for name, token in tokens.items():
            check(token not in text, f"{file} has the token of {name}")


def too_many(tokens):
    """Handshakes from one address are limited; afterwards it is served again."""
    for _ in range(1000):
        socket.create_connection(("127.0.0.1", PORT), timeout=10).close()
    refused = 0
    for _ in range(5):
        try:
            ask_once(tls(), "GET", "/v1/status", tokens["read"])
        except (OSError, ssl.SSLError):
            refused += 1
    check(refused, "1,000 handshakes at once from one address are begun")
    until = time.monotonic() + 10
    while True:
        try:
            if ask_once(tls(), "GET", "/v1/access", tokens["read"])[0] == 200:
                break
        except (OSError, ssl.SSLError):
            pass
        check(time.monotonic() < until, "it is not served again")
        time.sleep(0.05)


def starts():
    """An API that others can reach needs TLS, wherever it is stated."""
    (HERE / "bare.yaml").write_text('api: "tcp:0.0.0.0:%d"\ntoken: one\nresources: [{name: disk, back: "memory:8M"}]\n' % PORT)
    for words in (["serve", "bare.yaml"], ["serve", "--check", "bare.yaml"], ["policy", "check", "bare.yaml"]):
        out = run(2, *words)
        check("beyond this machine it needs TLS" in out and "bare.yaml:1:" in out, out)
    for words in (["serve"], ["serve", "--check"]):
        out = run(2, *words, "--api", f"tcp:0.0.0.0:{PORT}", "--token-file", "one", "memory:8M")
        check("beyond this machine needs TLS" in out, out)
    (HERE / "bare.yaml").write_text(POLICY.replace("cert: server/cert.pem", "cert: anna/cert.pem"))
    check("do not match" in run(2, "serve", "bare.yaml"), "a certificate with another's key")
    (HERE / "bare.yaml").write_text(POLICY.replace("user: 65533", "user: no-such-user"))
    check("there is no user 'no-such-user'" in run(2, "serve", "bare.yaml"), "an unknown user")


def step(name, call, *more):
    at = time.monotonic()
    got = call(*more)
    print(f"ok {name}, {time.monotonic() - at:.1f} s")
    return got


def main():
    (HERE / "one").write_text("a secret of some length\n")
    os.chmod(HERE / "one", 0o600)
    step("certificates", certificates)
    step("starts", starts)
    child = serve(POLICY)
    tokens = step("table", table)
    for name, call, more in [("proofs", proofs, [tokens]), ("verbs", verbs, [tokens]), ("ends", ends, [tokens]), ("users", users, []), ("renews", renews, [tokens]),
                             ("recorded", recorded, [tokens]), ("too many", too_many, [tokens])]:
        step(name, call, *more)
    stop(child)


main()
