# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine for tests of links: a program at a tap with the address 10.10.2.2 and 02:00:00:00:00:01. `netvm.py TAP send ADDRESS
RATE PORT` sends UDP up to RATE Mbit/s until it is killed; `netvm.py TAP receive SECONDS PORT` prints "PORT RATE" of one window
that begins half a second after the first packet, in Mbit/s with all headers."""
import fcntl
import os
import select
import socket
import struct
import sys
import time

SIZE = 1400
OWN = bytes.fromhex("020000000001")


def attach(tap):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH", tap.encode(), 0x1002))  # IFF_TAP | IFF_NO_PI
    s = socket.socket()
    return fd, fcntl.ioctl(s, 0x8927, struct.pack("256s", tap.encode()))[18:24]  # SIOCGIFHWADDR


def checksum(b):
    n = sum(struct.unpack(f"!{len(b) // 2}H", b))
    while n >> 16:
        n = (n & 0xFFFF) + (n >> 16)
    return n ^ 0xFFFF


def frame(to, address, port):
    data = bytes(SIZE)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + SIZE, 1, 0, 64, 17, 0, bytes([10, 10, 2, 2]), socket.inet_aton(address))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return to + OWN + b"\x08\0" + ip + struct.pack("!HHHH", port, port, 8 + SIZE, 0) + data


def send(fd, packet, rate):
    gap, due = len(packet) * 8 / (rate * 1e6), time.monotonic()
    while True:
        os.write(fd, packet)
        due = max(due + gap, time.monotonic() - 0.05)
        if due > time.monotonic() + 0.002:
            time.sleep(due - time.monotonic())


def receive(fd, seconds, port):
    begin, got, limit = None, 0, time.monotonic() + 20
    while True:
        now = time.monotonic()
        if begin is not None and now >= begin + seconds:
            return got * 8e-6 / (now - begin)
        if now > limit:
            sys.exit("nothing comes")
        select.select([fd], [], [], 0.1)
        try:
            while True:
                packet = os.read(fd, 2048)
                if packet[12:14] == b"\x08\0" and packet[36:38] == struct.pack("!H", port):
                    begin = begin or now + 0.5
                    got += len(packet) if time.monotonic() >= begin else 0
        except BlockingIOError:
            pass


def main():
    tap, what = sys.argv[1:3]
    fd, to = attach(tap)
    if what == "send":
        send(fd, frame(to, sys.argv[3], int(sys.argv[5])), float(sys.argv[4]))
    print(sys.argv[4], receive(fd, float(sys.argv[3]), int(sys.argv[4])))


main()
