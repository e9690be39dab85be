# SPDX-License-Identifier: BSD-3-Clause
"""nbdraw: NBD by hand, for clients that do what no library would: break off, lie, or send nothing."""
import socket, struct

READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZEROES, STATUS = range(8)


def connect(path=None, port=None, source=None):
    """Return a socket; by TCP from the address `source`, if given."""
    if path:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(path)
    else:
        s = socket.create_connection(("127.0.0.1", port), 30, (source, 0) if source else None)
    return s


def receive(s, n):
    data = b""
    while len(data) < n:
        some = s.recv(n - len(data))
        if not some:
            raise EOFError
        data += some
    return data


def greet(s):
    magic, have, flags = struct.unpack(">QQH", receive(s, 18))
    assert magic == 0x4E42444D41474943 and have == 0x49484156454F5054 and flags & 1
    s.sendall(struct.pack(">I", flags & 3))


def option(number, data):
    return struct.pack(">QII", 0x49484156454F5054, number, len(data)) + data


def go(s, export):
    """Return size and flags of the export; raise PermissionError or FileNotFoundError if the server refuses."""
    name = export.encode()
    s.sendall(option(7, struct.pack(">I", len(name)) + name + struct.pack(">H", 0)))
    size = flags = None
    while True:
        magic, number, kind, length = struct.unpack(">QIII", receive(s, 20))
        data = receive(s, length)
        assert magic == 0x3E889045565A9 and number == 7
        if kind == 1:
            return size, flags
        if kind == 3 and data[:2] == b"\0\0":
            size, flags = struct.unpack(">QH", data[2:12])
        if kind == 1 << 31 | 2:
            raise PermissionError(data.decode())
        if kind == 1 << 31 | 6:
            raise FileNotFoundError(data.decode())
        assert not kind >> 31, (hex(kind), data)


def client(export, **where):
    """Return a connection that may send requests."""
    s = connect(**where)
    try:
        greet(s)
        go(s, export)
    except BaseException:
        s.close()
        raise
    return s


def request(command, offset, length, cookie=0, flags=0):
    return struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length)


def reply(s, data=0):
    """Return error and cookie of the next reply, a simple one. `data`: bytes that follow if it is a read without
    error."""
    magic, error, cookie = struct.unpack(">IIQ", receive(s, 16))
    assert magic == 0x67446698, hex(magic)
    if data and not error:
        receive(s, data)
    return error, cookie
