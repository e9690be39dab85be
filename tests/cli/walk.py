# SPDX-License-Identifier: BSD-3-Clause
"""Check the walk of a weight in docs/architecture.md: at most ten files; each function is defined in its file, and calls, there or
through other functions of that file, those after its arrow, which are defined in a file of the walk."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["WEIR_SOURCE"])
STEP = re.compile(r"^(\d+)\. `([^`]+)`, `(\w+)\(\)`((?: →|,)(?: `\w+\(\)`,?)+)?:", re.M)


def bodies(text):
    """Return the text of each function by its name. A definition begins at the margin and ends with a brace there."""
    found = {}
    for m in re.finditer(r"^(?!static const struct)[a-zA-Z_][^;{}=#]*?(\w+)\((?:[^;{}]*)\)\n\{\n(.*?)^\}", text, re.M | re.S):
        found[m.group(1)] = m.group(2)
    return found


def reached(functions, name):
    """Return the names of all functions that `name` calls, through others of the same file."""
    seen, todo = set(), [name]
    while todo:
        for call in re.findall(r"(\w+)\s?\(", functions.get(todo.pop(), "")):
            if call not in seen:
                seen.add(call)
                todo.append(call)
    return seen


def faults():
    page = (ROOT / "docs/architecture.md").read_text()
    part = re.search(r"^## The way of a weight\n(.*?)^## ", page, re.M | re.S)
    if not part:
        return ["there is no section 'The way of a weight'"]
    steps = [(int(n), f, name, re.findall(r"`(\w+)\(\)`", calls or "")) for n, f, name, calls in STEP.findall(part.group(1))]
    found = []
    if [n for n, *_ in steps] != list(range(1, len(steps) + 1)) or len(re.findall(r"^\d+\. ", part.group(1), re.M)) != len(steps):
        found.append("a step is not written as: N. `FILE`, `FUNCTION()` → `FUNCTION()`: text")
    if not 5 <= len({f for _, f, *_ in steps}) <= 10:
        found.append(f"{len(steps)} steps, in other than 5 to 10 files")
    files = {file: bodies((ROOT / file).read_text()) if (ROOT / file).exists() else {} for _, file, *_ in steps}
    for n, file, name, calls in steps:
        if name not in files[file]:
            found.append(f"step {n}: {file} does not define {name}()")
            continue
        for call in calls:
            if call not in reached(files[file], name):
                found.append(f"step {n}: {name}() in {file} does not call {call}()")
            if not any(call in functions for functions in files.values()):
                found.append(f"step {n}: no file of the walk defines {call}()")
    return found


found = faults()
print("\n".join(found))
sys.exit(bool(found))
