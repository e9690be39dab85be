# SPDX-License-Identifier: BSD-3-Clause
"""Load for tests of links, over UDP: `netload.py send ADDRESS RATE PORT...` sends up to RATE Mbit/s from each port to the same
port there, until it is killed; `netload.py receive SECONDS PORT...` prints "PORT RATE" for each, in Mbit/s with all headers,
of one window for all that begins once each port has received for half a second."""
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


def main():
    if sys.argv[1] == "send":
        for port in sys.argv[4:]:
            threading.Thread(target=send, args=(sys.argv[2], float(sys.argv[3]), int(port))).start()
    else:
        got, span = receive(float(sys.argv[2]), [int(port) for port in sys.argv[3:]])
        for port, n in got.items():
            print(port, round(n * 8e-6 / span, 3))


main()
