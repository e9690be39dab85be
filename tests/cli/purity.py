# SPDX-License-Identifier: BSD-3-Clause
"""The pure rooms link without a clock, a socket, a file or a thread: their archives need only the outside symbols in
purity.allow."""
import os
import pathlib
import re
import subprocess
import sys

PURE = ["base", "wire", "gate", "control", "policy", "model"]


def nm(archive, *options):
    """Yield (room/object, symbol) of each line of `nm -A`: "path/libbase.a:err.c.o:  U strlen"."""
    lines = subprocess.run(["nm", "-A", *options, archive], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    for line in lines:
        place, rest = line.rsplit(":", 1)
        yield f"{archive.parent.name}/{re.split('[/:]', place)[-1]}", rest.split()[-1].split("@")[0]


def allowed():
    for line in pathlib.Path(__file__).with_name("purity.allow").read_text().splitlines():
        yield from line.split("#")[0].split()


def main():
    source = pathlib.Path(os.environ["WEIR_SOURCE"], "src")
    build = pathlib.Path(os.environ["WEIR_BUILD"], "src")
    faults, archives = [], []
    for room in PURE:
        archive = build / room / f"lib{room}.a"
        if archive.exists():
            archives.append(archive)
        elif any(source.joinpath(room).glob("*.c")):
            faults.append(f"src/{room} has code, but {archive.name} was not built")
    if not archives:
        faults.append("no archive at all: nothing was checked")
    needed = [pair for a in archives for pair in nm(a, "--undefined-only")]
    if any(symbol.startswith(("__asan_", "__ubsan_", "__sanitizer_")) for _, symbol in needed):
        print("skipped: a sanitized build needs the sanitizers' own symbols")
        return 77
    fine = {symbol for a in archives for _, symbol in nm(a, "--defined-only")} | set(allowed())
    faults += [f"{place} uses {symbol}" for place, symbol in sorted(set(needed))
               if symbol not in fine and not symbol.startswith("yaml_")]
    rooms = ", ".join(a.parent.name for a in archives)
    print("\n".join(faults) or f"pure: {rooms} ({len(set(needed))} uses checked)")
    return 1 if faults else 0


sys.exit(main())
