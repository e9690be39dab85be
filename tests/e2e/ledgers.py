# SPDX-License-Identifier: BSD-3-Clause
"""ledgers.py SECONDS LIMIT API...: read repeatedly what the servers of a cluster counted in each QoS period, by
tenant. Fails if the sum over the servers exceeds LIMIT for any tenant in any period."""
import collections
import http.client
import json
import socket
import sys
import time


def status(path):
    c = http.client.HTTPConnection("localhost")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(path)
    c.request("GET", "/v1/status")
    return json.loads(c.getresponse().read())


seconds, limit, paths = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
seen = collections.defaultdict(dict)  # (period, tenant): {server: used}
end = time.monotonic() + seconds
while time.monotonic() < end:
    for path in paths:
        p = status(path)["resources"][0]["pshift"]
        for lease in p["leases"] if p["last_period"] else []:
            seen[p["last_period"], lease["tenant"]][path] = lease["last_used"]
    time.sleep(0.2)
periods = {k for k, _ in seen}
sums = {key: sum(by.values()) for key, by in seen.items()}
over = {key: n for key, n in sums.items() if n > limit}
print(len(periods), "periods, at most", max(sums.values()))
if len(periods) < seconds / 2:
    sys.exit("only %d periods were seen" % len(periods))
if over:
    sys.exit("more than %d: %s" % (limit, over))
