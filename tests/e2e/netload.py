# SPDX-License-Identifier: BSD-3-Clause
"""Load for tests of links, over UDP: `netload.py send ADDRESS RATE PORT...` sends up to RATE Mbit/s from each port to the same
port there, until it is killed; `netload.py receive SECONDS PORT...` prints "PORT RATE" for each, in Mbit/s with all headers,
of one window for all that begins once each port has received for half a second. `netload.py burst ADDRESS N PORT...` sends N
packets at once from each port, `netload.py count N PORT...` waits for as many, and exits with 1 if they do not come within 5 s
after the last one. `netload.py echo PORT` and `netload.py talk ADDRESS PORT FILE`: a TCP connection that must not end, with 20
messages a second; FILE gets a number for each that came back."""
import selectors
import socket
import sys
import threading
import time

SIZE = 1400
WIRE = SIZE + 42  # with the headers of UDP, IPv4 and Ethernet
WARM = 0.5


def send(address, rate, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port))
    s.connect((address, port))
    data = bytes(SIZE)
    gap = WIRE * 8 / (rate * 1e6)
    due = time.monotonic()
    while True:
        try:
            s.send(data)
        except ConnectionRefusedError:  # nobody receives yet
            pass
        due = max(due + gap, time.monotonic() - 0.05)
        if due > time.monotonic() + 0.002:
            time.sleep(due - time.monotonic())


def receive(seconds, ports):
    """Return the bytes of each port in the window, and its length."""
    select, got, first = selectors.DefaultSelector(), dict.fromkeys(ports, 0), {}
    for port in ports:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.setblocking(False)
        s.bind(("", port))
        select.register(s, selectors.EVENT_READ, port)
    print("ready", file=sys.stderr, flush=True)
    begin, limit = None, time.monotonic() + 20
    while True:
        events = select.select(1)
        now = time.monotonic()
        if begin is None and len(first) == len(ports) and now > max(first.values()) + WARM:
            begin, got = now, dict.fromkeys(ports, 0)
        if begin is not None and now >= begin + seconds:
            return got, now - begin
        if now > limit:
            sys.exit("not every port receives")
        for key, _ in events:
            try:
                while True:
                    key.fileobj.recv(2048)
                    got[key.data] += WIRE
                    first.setdefault(key.data, now)
            except BlockingIOError:
                pass


def burst(address, n, ports):
    for port in ports:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("", port))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        for _ in range(n):
            s.sendto(bytes(SIZE), (address, port))


def count(n, ports):
    """Return how many packets of each port came."""
    select, got = selectors.DefaultSelector(), dict.fromkeys(ports, 0)
    for port in ports:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        s.bind(("", port))
        select.register(s, selectors.EVENT_READ, port)
    print("ready", file=sys.stderr, flush=True)
    while sum(got.values()) < n * len(ports):
        events = select.select(5)
        if not events:
            break
        for key, _ in events:
            key.fileobj.recv(2048)
            got[key.data] += 1
    return got


def echo(port):
    listener = socket.create_server(("", port))
    print("ready", file=sys.stderr, flush=True)
    connection, _ = listener.accept()
    while data := connection.recv(100):
        connection.sendall(data)


def talk(address, port, path):
    s = socket.create_connection((address, port), timeout=5)
    number = 0
    while True:
        number += 1
        s.sendall(b"x" * 100)
        left = 100
        while left:
            data = s.recv(left)
            if not data:
                sys.exit("the connection ended")
            left -= len(data)
        with open(path, "w") as f:
            f.write("%d\n" % number)
        time.sleep(0.05)


def main():
    if sys.argv[1] == "burst":
        burst(sys.argv[2], int(sys.argv[3]), [int(port) for port in sys.argv[4:]])
    elif sys.argv[1] == "count":
        got = count(int(sys.argv[2]), [int(port) for port in sys.argv[3:]])
        print(*("%d %d\n" % one for one in got.items()), sep="", end="")
        sys.exit(any(n != int(sys.argv[2]) for n in got.values()))
    elif sys.argv[1] == "echo":
        echo(int(sys.argv[2]))
    elif sys.argv[1] == "talk":
        talk(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] == "send":
        for port in sys.argv[4:]:
            threading.Thread(target=send, args=(sys.argv[2], float(sys.argv[3]), int(port))).start()
    else:
        got, span = receive(float(sys.argv[2]), [int(port) for port in sys.argv[3:]])
        for port, n in got.items():
            print(port, round(n * 8e-6 / span, 3))


main()
