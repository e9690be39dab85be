# SPDX-License-Identifier: BSD-3-Clause
"""An emulated machine with a kernel of its own, for tests of the kernel's clients: QEMU without hardware support,
Debian's kernel for virtual machines (tools/guest), and a file system in memory with busybox and the given programs and
scripts.

The guest reaches servers on this machine's loopback as 10.0.2.2; its shell reads commands from such a connection."""
import glob
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

MODULES = """virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net
    nbd libcrc32c xfs""".split()
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for m in $(cat /modules); do insmod /lib/$m.ko; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
exec nc 10.0.2.2 $(cat /port) -e /bin/sh
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_kernel(folder):
    """Return a folder with boot/vmlinuz-* and lib/modules: the given one, or / if its kernel is of that kind."""
    for root in (folder, "/"):
        kernels = sorted(glob.glob(f"{root}/boot/vmlinuz-*-cloud-*"))
        if kernels:
            return root, kernels[-1]
    return None, None


class Guest:
    def __init__(self, kernel_folder, programs, scripts):
        for tool in ("qemu-system-x86_64", "busybox", "ldd"):
            if not shutil.which(tool):
                skip(f"no {tool}")
        root, kernel = find_kernel(kernel_folder)
        if not kernel:
            skip(f"no kernel for a guest; tools/guest {kernel_folder} fetches one")
        release = kernel.split("vmlinuz-")[1]
        listening = socket.create_server(("127.0.0.1", 0))
        scripts = {**scripts, "init": INIT, "port": str(listening.getsockname()[1])}
        self.pack(pathlib.Path("guest"), f"{root}/lib/modules/{release}", programs, scripts)
        self.log = open("guest.log", "wb")
        self.text = b""
        self.child = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-m", "512", "-smp", "2", "-display", "none", "-nodefaults",
             "-no-reboot", "-kernel", kernel, "-initrd", "guest.cpio", "-append",
             "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on", "-serial", "file:kernel.log",
             "-nic", "user,model=virtio-net-pci"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        listening.settimeout(120)
        try:
            self.shell, _ = listening.accept()
        except TimeoutError:
            self.end()
            skip("the guest does not start: " + " / ".join(open("guest.log", errors="replace").read().splitlines()[-2:]
                                                           + open("kernel.log", errors="replace").read().splitlines()[-2:]))

    @staticmethod
    def pack(folder, modules, programs, scripts):
        """Write guest.cpio: the programs with their libraries, the modules, and the scripts of the shell."""
        files = {}
        for program in programs:
            path = shutil.which(program, path=os.environ["PATH"] + ":/sbin:/usr/sbin")
            if not path:
                skip(f"no {program}")
            files[f"bin/{pathlib.Path(path).name}"] = path
            for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", path], capture_output=True, text=True).stdout):
                files[library.lstrip("/")] = library
        for name in MODULES:
            found = glob.glob(f"{modules}/kernel/**/{name}.ko*", recursive=True)
            if found:  # else it is built in
                files[f"lib/{name}.ko"] = found[0]
        files["bin/busybox"] = shutil.which("busybox")
        for where, what in files.items():
            (folder / where).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(what, folder / where)
            (folder / where).chmod(0o755)
        subprocess.run(["strip", folder / "bin/weir"], check=False)
        for name in ("proc", "sys", "dev", "tmp", "mnt"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "modules").write_text("\n".join(m for m in MODULES if f"lib/{m}.ko" in files))
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        subprocess.run("find . | busybox cpio -o -H newc >../guest.cpio 2>/dev/null", shell=True, cwd=folder, check=True)
        shutil.rmtree(folder)

    def ask(self, command, limit=120):
        """Run a shell command in the guest. Return its exit status and output."""
        mark = f"=={time.monotonic_ns()}=="
        self.shell.sendall(f"{{ {command}\n}} </dev/null 2>&1; echo {mark} $?\n".encode())
        found = self.read(re.compile(rb"(.*?)" + mark.encode() + rb" (\d+)\n", re.S), limit, command)
        return int(found.group(2)), found.group(1).decode(errors="replace").strip()

    def read(self, pattern, limit, what):
        until = time.monotonic() + limit
        while not (found := pattern.search(self.text)):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer after {limit} s: {what}\n{self.text.decode(errors='replace')[-2000:]}")
            self.shell.settimeout(left)
            more = self.shell.recv(65536)
            if not more:
                raise ConnectionError(f"the guest ended: {what}")
            self.text += more
        self.text = self.text[found.end():]
        return found

    def run(self, command, limit=120, status=0):
        """The same; fail unless the exit status is the expected one. Return the output."""
        got, text = self.ask(command, limit)
        if got != status:
            raise AssertionError(f"{command}: exit status {got}, not {status}\n{text}")
        return text

    def end(self):
        self.child.kill()
        self.child.wait()
        self.log.close()
