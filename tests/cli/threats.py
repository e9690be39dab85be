# SPDX-License-Identifier: BSD-3-Clause
"""Check that each promise of docs/threats.md has a test, and that the test is run."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["WEIR_SOURCE"])


def known():
    """Return the names of all tests, as SUITE/NAME; unit tests from the lists in meson.build."""
    names = set()
    for suite in ("e2e", "cli"):
        text = (ROOT / "tests" / suite / "meson.build").read_text()
        names |= {f"{suite}/{n}" for n in re.findall(r"'([a-z0-9-]+)'", text)
                  if list((ROOT / "tests" / suite).glob(f"{n}.sh")) + list((ROOT / "tests" / suite).glob(f"{n}.py"))}
    for build in [*(ROOT / "tests").rglob("meson.build"), ROOT / "fuzz/meson.build"]:
        text = build.read_text()
        for prefix in re.findall(r"test\('([a-z-]+-)' \+ name", text):
            for group in re.findall(r"foreach name : \[(.*?)\]", text, re.S):
                names |= {f"unit/{prefix}{n}" for n in re.findall(r"'([a-z0-9_-]+)'", group)}
    return names


def rows(text):
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|") and not line.startswith(("|---", "| who ")):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def faults(text, names):
    lines = list(rows(text))
    if len(lines) < 15:
        yield f"only {len(lines)} promises"
    for number, cells in lines:
        tests = re.findall(r"`([^`]+)`", cells[-1])
        if len(cells) != 4 or not cells[2] or not tests:
            yield f"docs/threats.md:{number}: a promise without a test"
        yield from (f"docs/threats.md:{number}: there is no test {t}" for t in tests if t not in names)


def main():
    names = known()
    text = (ROOT / "docs/threats.md").read_text()
    found = list(faults(text, names))
    # the check can fail
    if not list(faults(text + "\n| a | b | c | `e2e/no-such-test` |\n", names)) or not list(faults(text + "\n| a | b | c | |\n", names)):
        found.append("self-test: a promise without a test is not found")
    print("\n".join(found) or f"{len(list(rows(text)))} promises have tests")
    return 1 if found else 0


sys.exit(main())
