# SPDX-License-Identifier: BSD-3-Clause
"""attack: malicious clients, for robust.sh. `attack.py SECONDS KIND[=N]...`: run N of each kind at once, for so long;
then print how often each acted. Fails if the gateway let an attack succeed.

NBD_SOCKET and NBD_PORT are the gateway's addresses; the export is "bad", of 8 MiB."""
import os, random, select, struct, sys, threading, time
from nbdraw import *

SOCKET, PORT = os.environ["NBD_SOCKET"], int(os.environ["NBD_PORT"])
SIZE = 8 << 20
until = 0
counts, faults = {}, []


def hostile(export="bad"):
    """Return a connection to one of the two addresses."""
    return client(export, path=SOCKET) if random.random() < 0.5 else client(export, port=PORT)


def over():
    return time.monotonic() >= until


def count(kind, n=1):
    counts[kind] = counts.get(kind, 0) + n


def wait(s, what, seconds):
    """Wait until it is readable or writable, up to a time and to the end."""
    p = select.poll()  # poll supports descriptors beyond 1,024
    p.register(s, what)
    return p.poll(1000 * max(0, min(seconds, until - time.monotonic())))


def pour(s, data):
    """Send as long as the other side accepts it. Return true if all was sent."""
    s.setblocking(False)
    at = 0
    while not over() and at < len(data):
        try:
            at += s.send(data[at:])
        except BlockingIOError:
            wait(s, select.POLLOUT, 0.2)
    s.settimeout(30)
    return at == len(data)


def closed(s):
    """Wait until the gateway has closed it, and drop the input."""
    try:
        while s.recv(1 << 16):
            pass
    except (ConnectionError, BrokenPipeError):
        pass
    s.close()


def deaf():
    """Send reads, and never receive a reply."""
    s = hostile()
    size = random.choice((4096, 65536, 1 << 20, 4 << 20))
    try:
        while not over():
            pour(s, request(READ, 0, size) * 256)
            count("deaf")
    finally:
        s.close()


def drip():
    """Send a byte a second: first a request, then its payload."""
    s = hostile()
    for byte in (request(WRITE, 0, 65536) + bytes(65536)):
        if over():
            break
        s.send(bytes([byte]))
        count("drip")
        time.sleep(1)
    s.close()


def half():
    """Start a large write and stop."""
    s = hostile()
    pour(s, request(WRITE, 0, 4 << 20) + bytes(random.randrange(1 << 20)))
    count("half")
    time.sleep(max(0, until - time.monotonic()))
    s.close()


def giant():
    """Send a read and a write of 4 GiB. The read gets an error, the write ends the connection."""
    while not over():
        s = hostile()
        for length in 0xFFFFFFFF, 0xFFFFF000, 0x80000000, SIZE + 1:
            s.sendall(request(READ, 0, length, 5))
            assert reply(s)[0] in (22, 75), "a read of %d" % length
        s.sendall(request(READ, 1 << 63, 4096, 6))
        assert reply(s) == (22, 6), "a read far beyond the end"
        s.sendall(request(READ, 0, 512, 7))
        assert reply(s, 512) == (0, 7), "a read after one of 4 GiB"
        try:
            s.sendall(request(WRITE, 0, 0xFFFFFFFF) + bytes(1 << 20))
        except (ConnectionError, BrokenPipeError):
            pass
        closed(s)
        count("giant")
        time.sleep(0.02)


def leaver():
    """Close with 1,000 requests in flight, again and again: reads, or writes and half of another one."""
    while not over():
        s = hostile()
        if random.random() < 0.5:
            data = b"".join(request(READ, 4096 * i, 4096, i) for i in range(1000))
        else:
            data = (request(WRITE, 4096, 4096) + b"x" * 4096) * 1000 + request(WRITE, 0, 65536)
        try:
            if pour(s, data):
                count("leaver")
        except (ConnectionError, BrokenPipeError):
            pass
        s.close()
        time.sleep(0.02)


def noise():
    """Send random bytes, after the handshake or in it."""
    while not over():
        s = hostile() if random.random() < 0.7 else connect(path=SOCKET)
        try:
            s.sendall(random.randbytes(random.randrange(1, 5000)))
            s.shutdown(1)
        except OSError:  # the server closed it already: a reset, or ENOTCONN from shutdown
            pass
        closed(s)
        count("noise")
        time.sleep(0.02)


def silent():
    """Connect and send nothing, or part of a handshake, a hundred times."""
    all = []
    for i in range(100):
        s = connect(path=SOCKET) if i % 2 else connect(port=PORT)
        s.send((struct.pack(">I", 3) + option(7, bytes(200)))[:random.randrange(0, 40)])
        all.append(s)
        count("silent")
    time.sleep(max(0, until - time.monotonic()))
    for s in all:
        s.close()


def crowd():
    """Keep 2,000 connections, of which one sends a request now and then."""
    global until
    all = [hostile() for i in range(2000)]
    count("crowd", len(all))
    until = max(until, time.monotonic() + 1)  # keep all connections open for a second, however long it took to make them
    while not over():
        s = random.choice(all)
        s.sendall(request(READ, 0, 4096, 9))
        if wait(s, select.POLLIN, 30):
            assert reply(s, 4096) == (0, 9)
            count("asked")
        else:
            s.close()
            all.remove(s)
        time.sleep(0.02)
    for s in all:
        s.close()


def guarded(kind):
    try:
        globals()[kind]()
    except Exception as e:
        if not over() or not isinstance(e, (TimeoutError, OSError)):
            faults.append("%s: %r" % (kind, e))


os.nice(19)  # the test is about the gateway, not about CPU time
until = time.monotonic() + float(sys.argv[1])
threads = []
for word in sys.argv[2:]:
    kind, _, n = word.partition("=")
    threads += [threading.Thread(target=guarded, args=(kind,)) for i in range(int(n or 1))]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("        did:", counts)
sys.exit("\n".join(faults) or 0)
