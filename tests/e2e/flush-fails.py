# SPDX-License-Identifier: BSD-3-Clause
"""flush-fails: an NBD server that fails 5 % of all FLUSHes and then loses unflushed data, behind a gateway with two
tenants. Data that a client was told are durable must be; no client sees an error. When every FLUSH fails, the
tenant that has written gets an error, and the one that has not does not."""
import os, random, socket, struct, sys, threading
import nbdraw

SIZE, BLOCK, ROUNDS = 1 << 20, 4096, 150
here, lock = sys.argv[1], threading.Lock()


class Disk:
    def __init__(self):
        self.now, self.sure = bytearray(SIZE), bytearray(SIZE)
        self.random, self.percent, self.failed = random.Random(1), 0, 0

    def flush(self):
        if self.random.randrange(100) < self.percent:
            self.now[:] = self.sure
            self.failed += 1
            return 5
        self.sure[:] = self.now
        return 0


disk = Disk()


def hello(s):
    s.sendall(struct.pack(">QQH", 0x4E42444D41474943, 0x49484156454F5054, 3))
    nbdraw.receive(s, 4)
    while True:
        _, number, length = struct.unpack(">QII", nbdraw.receive(s, 16))
        nbdraw.receive(s, length)
        head = struct.pack(">QI", 0x3E889045565A9, number)
        if number != 7:
            s.sendall(head + struct.pack(">II", 1 << 31 | 1, 0))
            continue
        flags = 1 | 4 | 256  # FLUSH, several connections
        s.sendall(head + struct.pack(">IIHQH", 3, 12, 0, SIZE, flags) + head + struct.pack(">II", 1, 0))
        return


def serve(s):
    try:
        hello(s)
        while True:
            _, _, command, cookie, offset, length = struct.unpack(">IHHQQI", nbdraw.receive(s, 28))
            data, error = nbdraw.receive(s, length) if command == nbdraw.WRITE else b"", 0
            if command == nbdraw.DISC:
                return
            with lock:
                if command == nbdraw.WRITE:
                    disk.now[offset:offset + length] = data
                elif command == nbdraw.READ:
                    data = bytes(disk.now[offset:offset + length])
                elif command == nbdraw.FLUSH:
                    error = disk.flush()
            s.sendall(struct.pack(">IIQ", 0x67446698, error, cookie) + (data if command == nbdraw.READ else b""))
    except (EOFError, OSError):
        pass


def listen():
    l = socket.socket(socket.AF_UNIX)
    l.bind(here + "/up.sock")
    l.listen(16)
    while True:
        threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()


def ask(s, command, offset, length, data=b""):
    s.sendall(nbdraw.request(command, offset, length) + data)
    return nbdraw.reply(s)[0]


def client(export, base, errors, rng):
    s = nbdraw.client(export, path=here + "/s.sock")
    for i in range(ROUNDS):
        at, data = rng.randrange(64) * BLOCK, rng.randbytes(BLOCK)
        errors.append(ask(s, nbdraw.WRITE, at, BLOCK, data))
        errors.append(ask(s, nbdraw.FLUSH, 0, 0))
        with lock:
            assert errors[-1] or disk.sure[base + at:base + at + BLOCK] == data, "told durable, and is not"
    s.close()


def five_percent():
    disk.percent, errors = 5, []
    all = [threading.Thread(target=client, args=(e, b, errors, random.Random(b)))
           for e, b in (("a", 0), ("b", SIZE // 2)) for _ in range(1)]
    for t in all:
        t.start()
    for t in all:
        t.join()
    assert len(errors) == 4 * ROUNDS, "a client stopped"
    assert not any(errors), "%d errors at the clients" % sum(map(bool, errors))
    assert disk.failed > 5, disk.failed
    print("%d FLUSHes failed upstream, none at the clients" % disk.failed)


def all_of_them():
    a, b = (nbdraw.client(e, path=here + "/s.sock") for e in "ab")
    assert ask(b, nbdraw.FLUSH, 0, 0) == 0
    disk.percent = 100
    assert ask(a, nbdraw.WRITE, 0, BLOCK, b"x" * BLOCK) == 0
    for _ in range(4):  # the first at once, the others 200 ms apart
        assert ask(a, nbdraw.FLUSH, 0, 0) == 5
        assert ask(b, nbdraw.FLUSH, 0, 0) == 0
    disk.percent = 0
    while ask(a, nbdraw.FLUSH, 0, 0):
        pass
    with lock:
        assert disk.sure[:BLOCK] == b"x" * BLOCK, "it was kept, and is not there"


threading.Thread(target=listen, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
five_percent()
all_of_them()
os._exit(0)
