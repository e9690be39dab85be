# SPDX-License-Identifier: BSD-3-Clause
"""facts.py SOCKET: prints the names, not the values, of all that the gateway or controller with this API shows."""
import http.client, json, re, socket, subprocess, sys

API = sys.argv[1]


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(API)


def get(path):
    """The body; None if there is no such path."""
    c = Unix("localhost")
    c.request("GET", path)
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return text if r.status == 200 else None


def members(value, at, found):
    """The path of every member below value, with [] for each element of a list."""
    if isinstance(value, dict):
        for key, v in value.items():
            found.add(at + "." + key)
            members(v, at + "." + key, found)
    elif isinstance(value, list):
        for v in value:
            members(v, at + "[]", found)


def answer(path):
    text = get(path)
    found = set()
    if text is None:
        print(path, "is not there")
        return
    members(json.loads(text), "", found)
    for name in sorted(found):
        print(path, name)


def metrics():
    heads, labels = {}, {}
    for line in get("/metrics").splitlines():
        words = line.split(" ", 3)
        if words[0] == "#":
            heads.setdefault(words[2], {})[words[1]] = words[3]
            continue
        name, _, rest = re.match(r"(\w+)(\{(.*)\})? ", line).groups()
        name = re.sub(r"_(bucket|sum|count)$", "", name) if name not in heads else name
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', rest or ""))
    for name in sorted(heads):
        print("/metrics", heads[name]["TYPE"], name, ",".join(sorted(labels.get(name, {"(no sample)"}))), "#",
              heads[name]["HELP"])


def lines(*args):
    """The first line of each paragraph, which is a sentence or the heading of a table."""
    r = subprocess.run(["weir", *args, "--socket", API], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print("weir", *args, "ends with", r.returncode)
    for paragraph in r.stdout.strip().split("\n\n") if r.stdout else []:
        line = re.sub(r"\d+(\.\d+)?", "N", paragraph.split("\n")[0].replace(socket.gethostname(), "HOST"))
        line = re.sub(r"buffers .*", "buffers", line)
        print("weir", *args, "|", re.sub(r"  +", " | ", line.strip()))


for path in ("/v1/status", "/v1/ledger", "/v1/policy?show=json", "/v1/bypass", "/v1/record", "/v1/clients"):
    answer(path)
metrics()
lines("status")
lines("top", "--once", "--interval", "100ms")
lines("status", "--ledger")
