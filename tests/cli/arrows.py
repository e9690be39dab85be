# SPDX-License-Identifier: BSD-3-Clause
"""Which room may include which (docs/architecture.md), and that pure rooms include no header whose
functions reach outside. The linker's view of the same is purity.py."""
import os
import pathlib
import re
import sys

ARROWS = {
    "base": set(),
    "wire": {"base"},
    "gate": {"base"},
    "model": {"base"},
    "policy": {"base", "control", "gate", "wire"},
    "control": {"base", "gate", "policy", "wire"},
    "sim": {"base", "bench", "control", "gate", "model", "policy", "wire"},
    "serve": {"base", "control", "gate", "model", "policy", "wire"},
    "load": {"base", "model", "serve", "wire"},
    "cli": {"base", "bench", "control", "gate", "load", "model", "policy", "serve", "sim", "wire"},
}
PURE = {"base", "wire", "gate", "model", "policy", "control"}
PUBLIC = {"clock": "base", "err": "base", "hist": "base", "units": "base", "gate": "gate", "policy": "policy"}
# stdio.h is here for snprintf; that nothing prints is purity.py's to say. emmintrin.h is instructions, no calls.
PURE_HEADERS = {
    "assert.h", "ctype.h", "emmintrin.h", "errno.h", "float.h", "fnmatch.h", "inttypes.h", "limits.h",
    "math.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "strings.h", "yaml.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def faults(source):
    for room in sorted(p.name for p in source.iterdir() if p.is_dir()):
        if room not in ARROWS:
            yield f"src/{room}: a room without arrows; add it to {pathlib.Path(__file__).name}"
            continue
        for path in sorted(source.joinpath(room).rglob("*.[ch]")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                ours, system = found.groups()
                where = f"src/{path.relative_to(source)}:{number}"
                if system and system.startswith("weir/"):
                    ours = f"{PUBLIC[system[5:-2]]}/{system}"
                    system = None
                if system:
                    if room in PURE and system not in PURE_HEADERS:
                        yield f"{where}: a pure room includes <{system}>"
                elif "/" not in ours:
                    if not ours.endswith(".inc"):
                        yield f'{where}: "{ours}" is not written with its room'
                else:
                    other = ours.split("/")[0]
                    if other != room and other not in ARROWS[room]:
                        yield f"{where}: {room} must not include {other}"


def judged(source):
    """What judges an allocation shares no code with what made it: max-flow stands apart from pShift."""
    for path in sorted(source.glob("control/pshift/alloc*.[ch]")):
        if "maxflow" in path.read_text():
            yield f"src/{path.relative_to(source)}: pShift must not use the max-flow that it is judged by"
    judge = source / "sim/control/pshift-judge.c"
    for call in re.findall(r"\bpshift_(?:new|allocate|explain|dense|top)\b", judge.read_text()):
        yield f"src/{judge.relative_to(source)}: calls {call}, which it judges"


SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"], "src")
found = [*faults(SOURCE), *judged(SOURCE)]
print("\n".join(found) or "every include follows the arrows")
sys.exit(1 if found else 0)
