# SPDX-License-Identifier: BSD-3-Clause
"""Check which source folder needs which (docs/architecture.md), by includes and by symbols as tools/house finds
them: only the arrows below, and no circle. Also check that the pure rooms include no header whose functions reach
outside the process; purity.py checks the same by symbols."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import sys

ARROWS = {  # room: the rooms that it may need
    "base": set(),
    "wire": {"base"},
    "gate": {"base"},
    "model": {"base"},
    "policy": {"base", "control", "gate", "wire"},
    "control": {"base", "gate", "wire"},
    "plan": {"base", "control", "gate", "model", "policy"},
    "sim": {"base", "bench", "control", "gate", "model", "policy", "wire"},
    "serve": {"base", "control", "gate", "model", "plan", "policy", "wire"},
    "load": {"base", "model", "serve", "wire"},
    "cli": {"base", "bench", "control", "gate", "load", "model", "plan", "policy", "serve", "sim", "wire"},
    "bench": {"base", "cli", "control", "gate", "load", "model", "plan", "policy", "serve", "sim",
              "wire"},
}
# Inside serve a folder may need the folders of the lines above its own.
SERVE = [
    {"loop"},
    {"back", "drive", "handover", "show", "store"},
    {"access"},
    {"http"},
    {"front", "gateway/plan", "page", "peer", "versions"},
    {"lease"},
    {"shape", "snapshot"},
    {"history", "resource"},
    {"gateway"},
    {"member"},
    {"host"},
    {"api"},
]
PURE = {"base", "wire", "gate", "model", "policy", "control"}
# stdio.h is needed for snprintf; purity.py checks that nothing prints. emmintrin.h and stdatomic.h have instructions and no
# calls.
PURE_HEADERS = {
    "assert.h", "ctype.h", "emmintrin.h", "errno.h", "float.h", "fnmatch.h", "inttypes.h", "limits.h",
    "math.h", "search.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "strings.h", "yaml.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
ROOT = pathlib.Path(os.environ["WEIR_SOURCE"])


def load_house():
    """Return tools/house as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("house", str(ROOT / "tools/house"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("house", loader))
    loader.exec_module(module)
    return module


def layer(folder):
    """Return the layer of a folder inside serve, that of the longest name which SERVE has, or None."""
    names = folder.split("/")[1:]
    while names:
        for i, names_of in enumerate(SERVE):
            if "/".join(names) in names_of:
                return i
        names.pop()
    return None


def allowed(a, b):
    """Return true if folder a may need folder b. A front end, say serve/front/nbd, may need serve/front."""
    room, other = a.split("/")[0], b.split("/")[0]
    if room != other:
        return other in ARROWS.get(room, ())
    if room != "serve" or None in (layer(a), layer(b)):
        return True
    return layer(b) < layer(a) or a.startswith(b + "/")


def places(arrows):
    """Yield a fault for each folder that the tables above do not know."""
    for folder in arrows:
        if folder.split("/")[0] not in ARROWS:
            yield f"{folder}: a room without arrows; add it to {pathlib.Path(__file__).name}"
        elif folder.startswith("serve/") and layer(folder) is None:
            yield f"{folder}: a folder of serve without a layer; add it to {pathlib.Path(__file__).name}"


def forbidden(arrows):
    """Yield a fault for each arrow that is not allowed, with its reasons."""
    for a, needs in arrows.items():
        for b, arrow in needs.items():
            if not allowed(a, b):
                yield f"{a} must not need {b} ({arrow}):"
                yield from (f"  {line}" for line in arrow.reasons())


def closed(house, arrows):
    """Yield a fault for each circle."""
    for circle in house.circles(arrows):
        yield f"circle: {', '.join(circle)}:"
        for a in circle:
            for b in sorted(set(arrows[a]) & set(circle)):
                yield f"  {a} -> {b} ({arrows[a][b]})"
                yield from (f"    {line}" for line in list(arrows[a][b].reasons())[:5])


def headers():
    """Yield a fault for each include that is not written with its room, or that makes a pure room impure."""
    for path in sorted(ROOT.joinpath("src").rglob("*.[ch]")):
        room = path.relative_to(ROOT / "src").parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            ours, system = found.groups()
            where = f"{path.relative_to(ROOT)}:{number}"
            if ours and "/" not in ours and not ours.endswith(".inc"):
                yield f'{where}: "{ours}" is not written with its room'
            if system and not system.startswith("weir/") and room in PURE and system not in PURE_HEADERS:
                yield f"{where}: a pure room includes <{system}>"


def judged():
    """Yield a fault where pShift and the max-flow algorithm that judges its allocations share code."""
    for path in sorted(ROOT.glob("src/control/pshift/alloc*.[ch]")):
        if "maxflow" in path.read_text():
            yield f"{path.relative_to(ROOT)}: pShift must not use the max-flow that it is judged by"
    judge = ROOT / "src/sim/cluster/judge.c"
    for call in re.findall(r"\bpshift_(?:new|allocate|explain|dense|top)\b", judge.read_text()):
        yield f"{judge.relative_to(ROOT)}: calls {call}, which it judges"


def self_test(house):
    """Yield a fault for each kind of mistake that the checks do not find in a small graph of their own."""
    class Reason:
        def reasons(self):
            return ["x.c uses x"]

    small = {"gate": {"base": Reason()}, "base": {}, "sim": {"sim/control": Reason()}, "sim/control": {"sim": Reason()}}
    cases = {
        "a circle": (list(closed(house, small)), True),
        "no circle": (list(closed(house, {"gate": {"base": Reason()}, "base": {}})), False),
        "a forbidden arrow": (list(forbidden({"base": {"gate": Reason()}})), True),
        "an allowed arrow": (list(forbidden({"gate": {"base": Reason()}})), False),
        "an unknown room": (list(places({"attic": {}})), True),
    }
    for name, (faults, wanted) in cases.items():
        if bool(faults) != wanted:
            yield f"self-test: {name} was {'not found' if wanted else 'refused'}"


def main():
    house = load_house()
    arrows = house.graph(ROOT, pathlib.Path(os.environ["WEIR_BUILD"]))
    faults = [*self_test(house), *places(arrows), *forbidden(arrows), *closed(house, arrows), *headers(), *judged()]
    print("\n".join(faults) or f"{sum(map(len, arrows.values()))} arrows between {len(arrows)} folders as allowed")
    return 1 if faults else 0


sys.exit(main())
