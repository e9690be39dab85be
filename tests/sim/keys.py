# SPDX-License-Identifier: BSD-3-Clause
"""The page weir-scenario(5) and the readers of scenarios have the same keys: every key that is read is in a table or
an example of the page, and every key in a table's first column is read."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
PAGE = (SOURCE / "docs/man/weir-scenario.5.pod").read_text()
READERS = [*(SOURCE / "src/sim/scenario").glob("*.c"), SOURCE / "src/sim/control/hosts.c",
           SOURCE / "src/sim/control/hosts-faults.c", SOURCE / "src/sim/cluster/read.c",
           SOURCE / "src/sim/run/parse.c", SOURCE / "src/sim/run/systems.c", SOURCE / "src/sim/network/read.c",
           SOURCE / "src/model/station-keys.c"]

# Keys of the policy's own schema, which the page only names.
POLICY = {"weight", "min", "max", "burst", "slo", "match", "children", "name"}


def read_keys():
    """Return every key in a list of keys, or in a table of fields."""
    keys = set()
    for path in READERS:
        text = path.read_text()
        for name, body in re.findall(r"\*const (\w+)\[\] = \{([^}]*)\}", text):
            if re.search(r"keys|more", name):
                keys |= set(re.findall(r'"(\w+)"', body))
        keys |= set(re.findall(r'\{[\s\\]*"(\w+)",[\s\\]*FIELD_\w+', text))
        keys |= set(re.findall(r'\{\s*"(\w+)",\s*KEY_\w+', text))
        keys |= set(re.findall(r'keys\[n\+\+\] = "(\w+)"', text))
    return keys


def tables():
    """Return the first columns of the page's tables: blocks whose first line begins with `key`."""
    keys = set()
    for block in re.split(r"\n\n", PAGE):
        lines = block.splitlines()
        if not lines or not re.match(r"  key ", lines[0]):
            continue
        for line in lines[1:]:
            column = re.match(r"  (\w+(?:, \w+)*)", line)
            if column and not line.startswith("   "):
                keys |= set(column.group(1).split(", "))
    return keys


def main():
    read, written = read_keys(), tables()
    shown = written | set(re.findall(r"(\w+):", PAGE)) | set(re.findall(r"C<(\w+)>", PAGE))
    shown |= {word for line in re.findall(r"\n  \{(?:tenant|device_tenant|host|device|link).*(?:\n {6,}.*)*", PAGE)
              for word in re.findall(r"\w+", line)}
    faults = [f"'{key}' is read, but not in weir-scenario(5)" for key in sorted(read - shown - POLICY)]
    faults += [f"'{key}' is in weir-scenario(5), but not read" for key in sorted(written - read)]
    print("\n".join(faults) or f"{len(read)} keys, {len(written)} of them in tables")
    return 1 if faults or len(read) < 100 else 0


sys.exit(main())
